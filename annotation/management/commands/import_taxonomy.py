"""`panelbench import_taxonomy`: check a taxonomy and store its next version; `--example` stores the one that ships.

Exit status: 0 stored (or sound, with --dry-run), 1 refused with a line per problem, 2 usage error.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project
from accounts.refusals import Refused
from annotation import taxonomies
from annotation.management.importing import REFUSED, USAGE
from annotation.readers import parse_taxonomy


class Command(BaseCommand):
    help = "Store a taxonomy: tasks, styles, groups of criteria, and the rules that give them to panels."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="YAML, or JSON if it ends in .json")
        parser.add_argument("--project", required=True, metavar="P", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--example", action="store_true", help="store the example and its rubric as a draft")
        parser.add_argument("--dry-run", action="store_true", help="check only, and store nothing")

    def handle(self, *, file: Path | None, project: str, **options: Any) -> None:
        current_project = Project.objects.filter(slug=project).first()
        if current_project is None:
            raise CommandError(f"There is no project {project!r}.", returncode=USAGE)
        if bool(file) == options["example"]:
            raise CommandError("Give a file, or --example.", returncode=USAGE)
        try:
            if file is None:
                stored, rubric = taxonomies.store_example(project=current_project)
                self.stdout.write(f"Taxonomy {stored.pk} “{stored}”; rubric “{rubric}” ({rubric.state})")
                return
            document, problems = parse_taxonomy(file.name, file.read_bytes())
            if document is None:
                self.stderr.write("\n".join(problems.sentences()))
                sys.exit(REFUSED)
            if options["dry_run"]:
                self.stdout.write(f"“{document.key}” is sound: {len(document.rules)} rules")
                return
            stored = taxonomies.store_taxonomy(project=current_project, document=document)
        except OSError as fault:
            raise CommandError(f"{file} can't be read: {fault}.", returncode=USAGE) from None
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        self.stdout.write(f"Taxonomy {stored.pk} “{stored}”: {len(document.rules)} rules")
