"""`panelbench create_user`: create an account without an invitation; for the operator."""

import secrets
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email

from accounts.models import User


class Command(BaseCommand):
    help = "Create an account. Without --password-stdin, a random password is created and printed once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--name", default="")
        parser.add_argument(
            "--may-found",
            action="store_true",
            help="allow the account to create projects; the first account always can",
        )
        parser.add_argument("--password-stdin", action="store_true", help="read the password from standard input")

    def handle(self, *, email: str, name: str, may_found: bool, password_stdin: bool, **options: Any) -> None:
        password = sys.stdin.readline().rstrip("\n") if password_stdin else secrets.token_urlsafe(12)
        try:
            validate_email(email)
            validate_password(password, User(email=email, name=name))
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from None
        if User.objects.filter(email=email.lower()).exists():
            raise CommandError(f"There is an account for {email} already.")
        allowed = {"may_found_projects": True} if may_found else {}
        User.objects.create_user(email, password, name=name, **allowed)
        self.stdout.write(f"Created an account for {email}." + ("" if password_stdin else f" Password: {password}"))
