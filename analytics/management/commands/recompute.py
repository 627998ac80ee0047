"""`panelbench recompute`: the figures of a bundle computed again, without a database."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.refusals import Refused
from analytics.management.commands.export import REFUSED


class Command(BaseCommand):
    help = "Compute the figures of a recomputation bundle again, and compare them with those in it."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="the zip, or the folder it was unpacked to")

    def handle(self, *, bundle: Path, **_options: Any) -> None:
        from analytics.reports import recomputation  # pandas

        try:
            done = recomputation.recompute(bundle)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=REFUSED) from None
        for other in done.other_versions:
            self.stderr.write(f"note: another version than when the bundle was written: {other}")
        digits = recomputation.DIGITS
        self.stdout.write(f"{done.figures} figures are the same to {digits} digits; estimates.json {done.sha256}")
