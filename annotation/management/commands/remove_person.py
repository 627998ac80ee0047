"""`panelbench remove_person`: remove a person's data from a project when they ask for it.

Exit status: 0 removed, 2 usage error or refused.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import panels
from annotation.management.importing import USAGE


class Command(BaseCommand):
    help = "Remove a person's data from a project: their ratings stay under the pseudonym, unless --with-ratings."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("pseudonym", help="as pages and exports show it")
        parser.add_argument("--project", required=True, metavar="P", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--as", dest="lead", required=True, metavar="EMAIL", help="the lead who removes them")
        parser.add_argument("--with-ratings", action="store_true", help="delete their ratings, too")
        parser.add_argument(
            "--with-account", action="store_true", help="erase their account, if no other project has it"
        )
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *, pseudonym: str, project: str, lead: str, yes: bool, **options: Any) -> None:
        led = Project.objects.filter(
            slug=project, memberships__role="lead", memberships__user__email=lead.lower()
        ).first()
        if led is None:
            raise CommandError(f"{lead} leads no project with the address {project!r}.", returncode=USAGE)
        person = panels.people_held(led).select_related("project").filter(pseudonym=pseudonym).first()
        if person is None:
            raise CommandError(f"The project has no data of a person called {pseudonym!r}.", returncode=USAGE)
        asked = f"Remove {pseudonym}? This cannot be undone. Type the pseudonym again: "
        typed = pseudonym if yes else input(asked)
        chosen = {name: options[name] for name in ("with_ratings", "with_account")}
        try:
            actor = User.objects.get(email=lead.lower())
            deleted = panels.remove_person(annotator=person, typed=typed, actor=actor, **chosen)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        self.stdout.write(f"Removed the data of {pseudonym}; {deleted} ratings deleted.")
