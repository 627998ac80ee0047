"""`panelbench report`: a campaign's methods, tables and figures as HTML, PDF, or a zip with LaTeX, CSV and SVG."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from accounts.refusals import Refused
from analytics.exporting import exports
from analytics.exporting.exports import Options
from analytics.management.commands.export import REFUSED, USAGE, project_at
from analytics.management.commands.export import Command as ExportCommand


class Command(ExportCommand):
    help = "Write a report of a campaign to a file, or to standard output."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--campaign", default="", metavar="NAME", help="by name; not needed for the only one")
        parser.add_argument("--format", default="html", choices=exports.FORMATS["report"], help="default: html")
        parser.add_argument("--as", default="", dest="layout", choices=exports.LAYOUTS, help="lay tables out as there")
        parser.add_argument("--question", default="", metavar="QUERY", help="the query string of a page of Explore")
        parser.add_argument("--out", type=Path, metavar="FILE", help="standard output by default")

    def handle(self, *, project: str, out: Path | None, **parameters: Any) -> None:
        options = Options(question=parameters["question"], layout=parameters["layout"])
        try:
            export = exports.named_export(
                project=project_at(project), what="report", parameters=parameters, options=options
            )
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        try:
            self._write(export, out)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=REFUSED) from None
