"""`panelbench changepassword`: Django's command, which here also revokes the account's API tokens."""

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword

from accounts import audit, tokens
from accounts.models import User


class Command(changepassword.Command):
    def handle(self, *arguments: Any, **options: Any) -> str | None:
        message: str | None = super().handle(*arguments, **options)
        user = User.objects.get_by_natural_key(options["username"] or getpass.getuser())
        audit.record_activity(verb="password set", user_pk=user.pk)
        tokens.revoke_all(user=user)
        return message
