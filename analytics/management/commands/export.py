"""`panelbench export`: items, ratings, verdicts, rubrics and campaigns as files."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project
from accounts.refusals import Refused
from analytics.exporting import exports
from analytics.exporting.exports import Export, Options

REFUSED, USAGE = 1, 2


class Command(BaseCommand):
    help = "Write a project's items, ratings, verdicts, rubrics or campaigns to a file, or to standard output."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("what", metavar="WHAT", help=", ".join(exports.FORMATS))
        for subject in ("campaign", "dataset", "rubric"):
            parser.add_argument(f"--{subject}", default="", metavar="NAME", help="by name; not needed for the only one")
        parser.add_argument("--format", default="", metavar="F", help="the default format of WHAT")
        parser.add_argument("--out", type=Path, metavar="FILE", help="standard output by default")
        parser.add_argument("--renumbered", type=int, metavar="SEED", help="other pseudonyms, the same for a seed")
        parser.add_argument("--without-rationales", action="store_false", dest="rationales")
        parser.add_argument("--replies", action="store_true", help="the judges' raw replies too")
        parser.add_argument("--revisions", action="store_true", help="superseded ratings too")
        parser.add_argument("--every-run", action="store_true", help="all runs of a judge, not only the newest")
        parser.add_argument(
            "--split-seed", type=int, default=1, help="of a training set: which scenarios are for testing"
        )
        parser.add_argument("--test-share", type=float, default=0.2, help="of a training set: the share of scenarios")
        parser.add_argument(
            "--without-attribute", action="append", default=[], metavar="KEY", help="an attribute of the items left out"
        )
        parser.add_argument("--names", action="store_true", help="the names behind the pseudonyms, in a last column")

    def handle(self, *, project: str, what: str, out: Path | None, **parameters: Any) -> None:
        names = ("renumbered", "rationales", "replies", "revisions", "every_run", "names", "split_seed", "test_share")
        left_out = tuple(parameters["without_attribute"])
        options = Options(**{name: parameters[name] for name in names}, without_attributes=left_out)
        try:
            parameters["format"] = _named_format(out, what, parameters["format"])
            export = exports.named_export(
                project=project_at(project), what=what, parameters=parameters, options=options
            )
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        try:
            self._write(export, out)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=REFUSED) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            name = out or "standard output"
            raise CommandError(f"{name}: {error.strerror}", returncode=REFUSED) from None

    def _write(self, export: Export, out: Path | None) -> None:
        exports.record_export(export, actor=None)
        if out is None:
            sys.stdout.buffer.writelines(exports.export_pieces(export))
            return
        unfinished = out.with_name(f"{out.name}.part")
        try:
            with unfinished.open("wb") as file:
                file.writelines(exports.export_pieces(export))
            unfinished.replace(out)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        self.stdout.write(f"{out}: {out.stat().st_size:,} bytes")


def _named_format(out: Path | None, what: str, given: str) -> str:
    """The format of ``--format``, else that of the ending of ``--out``; refused where the two are not one."""
    formats = exports.FORMATS.get(what, ())
    ending = out.suffix.lower().removeprefix(".") if out else ""
    named = next((kind for kind in formats if ending and ending == exports.ending_of(kind)), "")
    known = {exports.ending_of(kind) for kinds in exports.FORMATS.values() for kind in kinds}
    if ending in known and ((given and given != named) or not (given or named)):
        wanted = f"--format is {given}" if given else f"{what} has the formats {', '.join(formats)}"
        raise Refused(f"{out} ends in .{ending}, and {wanted}: choose two that go together.", code="format")
    return given or named


def project_at(slug: str) -> Project:
    """The project of that address; an unknown one is answered with what there is."""
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        there_is = ", ".join(Project.objects.values_list("slug", flat=True)) or "none"
        raise CommandError(f"There is no project “{slug}”. Available: {there_is}.", returncode=USAGE)
    return project
