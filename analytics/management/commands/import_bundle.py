"""`panelbench import_bundle`: a project that was taken out elsewhere comes into an empty one here."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.refusals import Refused
from analytics.exporting import bundles
from analytics.management.commands.export import REFUSED, USAGE, project_at


class Command(BaseCommand):
    help = "Load a bundle, which `export PROJECT bundle` wrote, into an empty project: all of it or nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("file", type=Path, metavar="FILE.zip")

    def handle(self, *, project: str, file: Path, **options: Any) -> None:
        current_project = project_at(project)
        try:
            with file.open("rb") as content:
                carried = bundles.load_bundle(project=current_project, name=file.name, content=content)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}", returncode=USAGE) from None
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=REFUSED) from None
        self.stdout.write(carried.sentence)
