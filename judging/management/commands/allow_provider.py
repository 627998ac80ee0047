"""`panelbench allow_provider PROJECT PROVIDER`: let a project use a provider; without one, list what is allowed."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project
from accounts.refusals import Refused
from judging.asking import allowances
from judging.management.commands.run_judge import money


class Command(BaseCommand):
    help = "Allow a project to use a provider within limits, stop it with --revoke, or list what is allowed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", nargs="?", help="the project's address; without it, every project is listed")
        parser.add_argument("provider", nargs="?", help="a declared provider; without it, the project's are listed")
        parser.add_argument("--cap", type=money, metavar="USD", help="what the project may spend there in all")
        parser.add_argument("--cap-per-day", type=money, metavar="USD", help="the same in one day of UTC")
        parser.add_argument("--revoke", action="store_true", help="do not allow the provider to the project any more")

    def handle(self, *, project: str | None, provider: str | None, **options: Any) -> None:
        chosen = Project.objects.filter(slug=project) if project else Project.objects.order_by("slug")
        if project and not chosen:
            raise CommandError(f"There is no project at /p/{project}/.", returncode=2)
        try:
            lines = _listed(chosen) if provider is None else [_set(chosen[0], provider, options)]
            self.stdout.write("\n".join(lines) or "No project may use a provider yet.")
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=2) from None


def _set(project: Project, provider: str, options: dict[str, Any]) -> str:
    if options["revoke"]:
        if not allowances.revoke(project=project, provider=provider):
            raise Refused(f"{project.slug} was not allowed {provider}.")
        return f"{project.slug} may not use {provider} any more."
    caps = {"cap_total": options["cap"], "cap_per_day": options["cap_per_day"]}
    allowances.allow(project=project, provider=provider, **caps)
    return next(line for line in _listed([project]) if line.startswith(f"{project.slug}: {provider},"))


def _listed(projects: Any) -> Iterator[str]:
    for project in projects:
        for allowance in allowances.allowed_providers(project):
            if allowance.simulated:
                continue
            in_all = _of(allowance.spent, allowance.cap_total)
            today = _of(allowance.spent_today, allowance.cap_per_day)
            yield f"{project.slug}: {allowance.provider}, spent {in_all}, today {today}"


def _of(spent: Decimal | None, cap: Decimal | None) -> str:
    return f"${spent or 0:.4f} of ${cap:.2f}" if cap is not None else f"${spent or 0:.4f} (no cap)"
