"""`panelbench import_study PROJECT FILE...`: import the files of a known study, completely or not at all.

Exit status: 0 stored, or could be; 1 refused, with a line per problem; 2 wrong usage.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project
from accounts.refusals import Refused
from annotation.blinding import CHOICES
from annotation.imports import opening, undoing
from annotation.imports.storage import FileRefused
from annotation.management.importing import discarded_on_failure
from annotation.models import Import
from annotation.readers import File, FormatError, KnownStudy, Mapping, Report, recognise
from annotation.readers import known_studies as studies
from judging.imports.studies import carry_out_study, study_preview_report, take_back

REFUSED, USAGE = 1, 2


class Command(BaseCommand):
    help = "Store all the files of a known study, or of a tool's export, in one call."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", nargs="?", metavar="PROJECT", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="files, or folders of them")
        parser.add_argument(
            "--as", dest="name", metavar="NAME", help="which study; by default the one that its files show"
        )
        parser.add_argument("--list", action="store_true", dest="only_list", help="list the known studies")
        parser.add_argument(
            *("--set", "-s"), nargs="+", action="extend", default=[], metavar="field=value", dest="constants",
            help="a value that the files don't contain, such as language=et",
        )  # fmt: skip
        parser.add_argument(
            "--generator-names", choices=CHOICES, help="what to do with generators' names that annotators would see"
        )
        parser.add_argument("--dry-run", action="store_true", help="show what would be stored, and store nothing")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print a report per line as JSON")

    def handle(self, *, only_list: bool, project: str | None, files: list[Path], **options: Any) -> None:
        if only_list:
            self.stdout.write("\n".join(f"{name:<14} {study.title}" for name, study in studies().items()))
            return
        if not project or not files:
            raise CommandError("Name a project and the files: import_study PROJECT FILE...", returncode=USAGE)
        with ExitStack() as stack:
            opened_files = [(path.name, stack.enter_context(_open(path))) for path in _inside(files)]
            study, taken = self._study(options["name"], opened_files, is_folder=any(path.is_dir() for path in files))
            target: dict[str, Any] = {"study": study.name, "constants": _constants(options["constants"])}
            if options["generator_names"]:
                target["generator_names"] = options["generator_names"]
            kind = Import.Kind.STUDY
            file_import = opening.open_import(project=_project(project), kind=kind, files=taken, target=target)
            (self._look if options["dry_run"] else self._store)(file_import, options["as_json"])

    def _study(self, name: str | None, files: list[File], *, is_folder: bool) -> tuple[KnownStudy, list[File]]:
        """The study and those of the files that are its own; all of them, unless they came as a folder."""
        study = studies().get(name) if name else _recognised(files, is_folder)
        if study is None:
            text = f"There is no study “{name}”" if name else "The study of these files is not known"
            raise CommandError(f"{text}. Known studies: {', '.join(studies())}. See --list.", returncode=USAGE)
        foreign = study.unclaimed(files)
        taken = [file for file in files if file[0] not in foreign]
        if not taken or (foreign and not is_folder):
            sentence = f"Not a file of {study.name}, by its name or its columns: {', '.join(foreign)}."
            raise CommandError(sentence, returncode=USAGE)
        if foreign:
            self.stderr.write(f"Ignored, not part of {study.name}: {', '.join(foreign)}.")
        return study, taken

    def _look(self, file_import: Import, as_json: bool) -> None:
        """Report what would be stored, and store nothing."""
        try:
            seen = study_preview_report(file_import, lambda _done, _total: None)
        except Refused as refused:
            self._refuse(refused.sentence, file_import)
        undoing.discard(file_import=file_import)
        self._tell(seen["parts"], seen["report"], as_json)
        if seen["sentence"]:
            self._say([problem["sentence"] for problem in seen["problems"]] or [seen["sentence"]])
            sys.exit(REFUSED)
        self.stdout.write("Nothing was stored.")

    def _store(self, file_import: Import, as_json: bool) -> None:
        try:
            with discarded_on_failure(file_import, take_back):
                carry_out_study(file_import=file_import)
        except FileRefused as refused:
            self._say(refused.problems.grouped_sentences())
            self._refuse("Nothing of the study was stored.", file_import)
        except Refused as refused:
            self._refuse(refused.sentence, file_import)
        self._tell(file_import.report["parts"], file_import.report, as_json)
        if not as_json:
            self.stdout.write(f"All of it is import #{file_import.pk}, which can be undone as a whole.")

    def _refuse(self, sentence: str, file_import: Import) -> NoReturn:
        self._say([sentence])
        undoing.discard(file_import=file_import)
        sys.exit(REFUSED)

    def _say(self, sentences: Iterable[str]) -> None:
        for sentence in sentences:
            self.stderr.write(sentence)

    def _tell(self, parts: list[dict[str, Any]], report: dict[str, Any], as_json: bool) -> None:
        for part in parts:
            if as_json:
                self.stdout.write(json.dumps(part, ensure_ascii=False))
                continue
            number = f" (import #{part['import_id']})" if part["import_id"] else ""
            self.stdout.write(f"{part['kind']}: {part['made']}{number}")
            for line in Report.from_dict(part["report"]).lines():
                self.stdout.write(f"  {line}")
        for note in report["notes"] if not as_json else ():
            self.stdout.write(note)


def _recognised(files: list[File], is_folder: bool) -> KnownStudy | None:
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
        raise CommandError(f"There is no project “{slug}”. Available: {there_is}.", returncode=USAGE)
    return project


def _constants(pairs: list[str]) -> dict[str, str]:
    try:
        return Mapping.from_pairs(constants=pairs).constants
    except FormatError as error:
        raise CommandError(str(error.problem), returncode=USAGE) from None
