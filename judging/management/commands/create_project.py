"""`panelbench create_project`: a project with its lead, and the providers that its judges may use."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction

from accounts.management.commands import create_project
from accounts.models import Project
from accounts.refusals import Refused
from judging.asking import allowances
from judging.management.commands.run_judge import money


class Command(create_project.Command):
    """The command of accounts, which knows no providers, and what judges need beside it."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        allowed = "declared providers that the project's judges may use"
        parser.add_argument("--allow-provider", nargs="+", action="extend", default=[], metavar="NAME", help=allowed)
        parser.add_argument("--cap", type=money, metavar="USD", help="what it may spend at each of them in all")
        parser.add_argument("--cap-per-day", type=money, metavar="USD", help="the same in one day of UTC")

    def handle(self, **options: Any) -> None:
        names, caps = options.pop("allow_provider"), (options.pop("cap"), options.pop("cap_per_day"))
        with transaction.atomic():
            before = set(Project.objects.values_list("pk", flat=True))
            super().handle(**options)
            project = Project.objects.exclude(pk__in=before).order_by("-pk")[0]
            try:
                for name in names:
                    allowances.allow(project=project, provider=name, cap_total=caps[0], cap_per_day=caps[1])
            except Refused as refused:
                raise CommandError(f"{refused.sentence} No project was created.") from None
