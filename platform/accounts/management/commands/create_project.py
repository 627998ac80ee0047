"""`panelbench create_project`: create a project with its lead."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts import people
from accounts.models import User
from accounts.refusals import Refused


class Command(BaseCommand):
    help = "Create a project with an existing account as its lead."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--lead", required=True, metavar="EMAIL")
        parser.add_argument("--slug", default="", help="the project's address; made from its name by default")

    def handle(self, *, name: str, lead: str, slug: str, **options: Any) -> None:
        founder = User.objects.filter(email=lead.lower()).first()
        if founder is None:
            raise CommandError(f"There is no account for {lead}. Create one: panelbench create_user {lead}")
        try:
            project = people.create_project(name=name, slug=slug, founder=founder)
        except Refused as refused:
            raise CommandError(refused.sentence) from None
        self.stdout.write(f"Created the project {project.slug}.")
