"""`panelbench allow_founding`: allow an account to create projects, or revoke it; for the operator."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts import people
from accounts.models import User


class Command(BaseCommand):
    help = "Allow an account to create projects, or stop it with --revoke. Its projects do not change."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--revoke", action="store_true")

    def handle(self, *, email: str, revoke: bool, **options: Any) -> None:
        user = User.objects.filter(email=email.lower()).first()
        if user is None:
            raise CommandError(
                f"There is no account for {email}. Create one: panelbench create_user {email} --may-found"
            )
        changed = people.allow_founding(user=user, allowed=not revoke)
        may = "may not" if revoke else "may"
        self.stdout.write(f"{email} {may} found projects{' now' if changed else ', as before'}.")
