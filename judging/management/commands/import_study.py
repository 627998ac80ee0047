"""`panelbench import_study PROJECT FILE...`: a study whose files are known comes in whole.

Exit status: 0 stored, or could be; 1 refused, with a line per problem and what was stored before; 2 asked for wrongly.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project
from accounts.refusals import Refused
from annotation.formats.reading import File
from annotation.formats.studies import Study, recognise, studies, with_constants
from annotation.intake import FileRefused
from judging.studies import Outcome, carry_out, rehearse

REFUSED, USAGE = 1, 2


class Command(BaseCommand):
    help = "Store all the files of a study that is known, or of a tool's export, in one call."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", nargs="?", metavar="PROJECT", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="files, or folders of them")
        parser.add_argument(
            "--as", dest="name", metavar="NAME", help="which study; by default the one that its files show"
        )
        parser.add_argument("--list", action="store_true", dest="only_list", help="name the studies that are known")
        parser.add_argument(
            *("--set", "-s"), nargs="+", action="extend", default=[], metavar="field=value", dest="constants",
            help="what the files don't say, such as language=et",
        )  # fmt: skip
        parser.add_argument("--dry-run", action="store_true", help="say what would be stored, and store nothing")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print a report per line as JSON")

    def handle(self, *, only_list: bool, project: str | None, files: list[Path], **options: Any) -> None:
        if only_list:
            self.stdout.write("\n".join(f"{name:<14} {study.title}" for name, study in studies().items()))
            return
        if not project or not files:
            raise CommandError("Say a project and the files: import_study PROJECT FILE...", returncode=USAGE)
        with ExitStack() as stack:
            given = [(path.name, stack.enter_context(_open(path))) for path in _inside(files)]
            study, taken = self._study(options["name"], given, is_folder=any(path.is_dir() for path in files))
            self._bring_in(_project(project), with_constants(study, _constants(options["constants"])), taken, options)

    def _study(self, name: str | None, files: list[File], *, is_folder: bool) -> tuple[Study, list[File]]:
        """The study and those of the files that are its own; all of them, unless they came as a folder."""
        study = studies().get(name) if name else _recognised(files, is_folder)
        if study is None:
            said = f"There is no study “{name}”" if name else "These files are of no study that is known"
            raise CommandError(f"{said}. Known are: {', '.join(studies())}. See --list.", returncode=USAGE)
        foreign = study.unclaimed(files)
        taken = [file for file in files if file[0] not in foreign]
        if not taken or (foreign and not is_folder):
            sentence = f"Not a file of {study.name}, by its name or its columns: {', '.join(foreign)}."
            raise CommandError(sentence, returncode=USAGE)
        if foreign:
            self.stderr.write(f"Left alone, not part of {study.name}: {', '.join(foreign)}.")
        return study, taken

    def _bring_in(self, project: Project, study: Study, files: list[File], options: dict[str, Any]) -> None:
        told: list[Outcome] = []
        try:
            found = rehearse if options["dry_run"] else carry_out
            for outcome in found(project=project, study=study, files=files):
                told.append(outcome)
                self._tell(outcome, options["as_json"])
        except FileRefused as refused:
            for sentence in refused.problems.sentences():
                self.stderr.write(sentence)
            self._stop(told)
        except Refused as refused:
            self.stderr.write(refused.sentence)
            self._stop(told)
        if options["dry_run"]:
            self.stdout.write("Nothing was stored.")

    def _tell(self, outcome: Outcome, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(asdict(outcome), ensure_ascii=False))
            return
        number = f" (import #{outcome.intake})" if outcome.intake else ""
        self.stdout.write(f"{outcome.kind}: {outcome.made}{number}")
        for line in outcome.report.lines():
            self.stdout.write(f"  {line}")

    def _stop(self, told: list[Outcome]) -> None:
        """Say what is stored all the same, and how it is taken back."""
        numbers = [f"#{outcome.intake}" for outcome in told if outcome.intake]
        kept = f"Stored before that: {', '.join(f'{each.kind} {each.made}' for each in told)}." if told else ""
        undo = f"To take it back, undo the imports {', '.join(reversed(numbers))} in this order." if numbers else ""
        parts = ["Of this part nothing was stored.", kept, undo, "Carried out again, it goes on from here."]
        self.stderr.write(" ".join(part for part in parts if part))
        sys.exit(REFUSED)


def _recognised(files: list[File], is_folder: bool) -> Study | None:
    if not is_folder:
        return recognise(files)
    foreign = {name: len(study.unclaimed(files)) for name, study in studies().items()}
    best = min(foreign, key=lambda name: foreign[name])
    return studies()[best] if foreign[best] < len(files) else None


def _inside(paths: list[Path]) -> list[Path]:
    """The files, and those in the folders."""
    return [
        file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path]) if not file.is_dir()
    ]


def _open(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", returncode=USAGE) from None


def _project(slug: str) -> Project:
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        there_is = ", ".join(Project.objects.values_list("slug", flat=True)) or "none"
        raise CommandError(f"There is no project “{slug}”. There is: {there_is}.", returncode=USAGE)
    return project


def _constants(pairs: list[str]) -> dict[str, str]:
    wrong = [pair for pair in pairs if not all(pair.partition("="))]
    if wrong:
        raise CommandError(f"--set {wrong[0]}: write it as field=value.", returncode=USAGE)
    return dict(pair.split("=", 1) for pair in pairs)
