"""`panelbench erase_user`: erase a person's data when they ask for it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts import removal
from accounts.models import User
from accounts.refusals import Refused


class Command(BaseCommand):
    help = "Erase a person for good: name, address, sign-in and rationales go, ratings stay under their pseudonym."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--successor", metavar="EMAIL", help="becomes lead of the projects they lead alone")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *, email: str, successor: str | None, yes: bool, **options: Any) -> None:
        user, heir = _account(email), _account(successor) if successor else None
        left = [] if heir else [held.project.slug for held in removal.deleted_led_alone(user)]
        if not yes and input(f"Erase {email}? This cannot be undone. Type the address again: ").strip() != email:
            raise CommandError("Nothing was erased.")
        try:
            removal.erase_user(user=user, actor=None, successor=heir)
        except Refused as refused:
            raise CommandError(f"{refused.sentence} Or name one: --successor EMAIL") from None
        self.stdout.write(f"Erased account {user.pk}. Backups and files exported before still hold it.")
        if left:
            self.stdout.write(
                f"They alone led these deleted projects: {', '.join(left)}. Until the 30 days are over, an operator "
                "(superuser) finds them on the start page and can restore them."
            )


def _account(email: str) -> User:
    user = User.objects.filter(email=email.lower(), erased_at=None).first()
    if user is None:
        raise CommandError(f"There is no account for {email}.")
    return user
