"""`panelbench load_demo`: load the demo project once, and print its accounts."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from panelbench.demo import loading


class Command(BaseCommand):
    help = "Load the demo project (once) and start its judges on the provider that is declared."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--figures", action="store_true", help="compute what the pages show first, and nothing else"
        )

    def handle(self, *, figures: bool, **options: Any) -> None:
        if figures:
            loading.compute_first_figures()
            return
        logins = loading.load_demo()
        self.stdout.write(f"Sign in with the password: {loading.PASSWORD}")
        for login in logins:
            rest = f", {login.to_score} dialogues to score" if login.to_score else ""
            self.stdout.write(f"  {login.email:<32} {login.role.lower()}{rest}")
