"""The common part of the import commands: read the files, store or preview them, and print the result.

Exit status: 0 stored (or could be); 1 refused, with one line per problem; 2 wrong usage; 3 the disk, the database
or the reader of the output failed.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import yaml
from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project
from accounts.refusals import Refused
from annotation.imports import checks, lifecycle, opening, previews, undoing
from annotation.imports import storage as storing
from annotation.imports.storage import FileRefused
from annotation.models import Import
from annotation.readers import File, FormatError, Mapping, Problems, Report

REFUSED, USAGE = 1, 2


@contextmanager
def discarded_on_failure(file_import: Import, clear: Callable[[Import], None] = storing.unstage) -> Iterator[None]:
    """Delete an import if storing it fails with anything but a refusal, which the command handles.

    ``clear`` deletes the rows stored so far. If the database can't be written at all, the sweep later marks the import
    as failed, and no worker stores it.
    """
    try:
        yield
    except Refused:
        raise
    except BaseException:
        with suppress(Exception):
            clear(file_import)
            undoing.discard(file_import=file_import)
        raise


class ImportCommand(BaseCommand):
    """``kind``: the kind of import. Subclasses define `target` (where the rows are stored) and `outcome` (what was
    created)."""

    kind: ClassVar[str]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--project", required=True, metavar="P", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--dry-run", action="store_true", help="show what would be stored, and store nothing")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print the report as JSON")
        if self.kind != Import.Kind.RUBRIC:
            parser.add_argument("--mapping", type=Path, metavar="FILE.yaml", help="a saved mapping (docs/formats.md)")
            parser.add_argument("--map", nargs="+", action="extend", default=[], metavar="column=field", dest="columns")
            parser.add_argument(
                "--set", nargs="+", action="extend", default=[], metavar="field=value", dest="constants",
                help="a value that no column contains, such as language=et",
            )  # fmt: skip

    def handle(self, *, files: list[Path], project: str, as_json: bool, **options: Any) -> None:
        current_project = self._project(project)
        with ExitStack() as stack:
            uploads = [(path.name, self._open(stack, path)) for path in files]
            try:
                parts = {name: options.get(name) for name in ("mapping", "columns", "constants")}
                mapping = self._given_mapping(**parts)
                target = self.target(current_project, options)
            except FormatError as error:
                raise CommandError(str(error.problem), returncode=USAGE) from None
            except Refused as refused:
                raise CommandError(refused.sentence, returncode=USAGE) from None
            if options["dry_run"]:
                self._show_preview(current_project, uploads, mapping, target, as_json)
            else:
                self._store(current_project, uploads, mapping, target, as_json, options)

    def target(self, project: Project, options: dict[str, Any]) -> dict[str, Any]:
        """The `Import.target` of the options. Raises `Refused` with the available names."""
        return {}

    def outcome(self, file_import: Import, options: dict[str, Any]) -> dict[str, str]:
        """What a stored import has created, by kind: ``{"dataset": "Dialogues v1"}``."""
        return {}

    def preview(
        self, project: Project, files: Sequence[File], mapping: Mapping, target: dict[str, Any]
    ) -> previews.Preview:
        return previews.preview_files(
            project=project, kind=self.kind, files=files, mapping=mapping, target_fields=target
        )

    def carry_out(self, file_import: Import) -> None:
        lifecycle.carry_out(file_import=file_import)

    def _show_preview(
        self, project: Project, files: Sequence[File], given_mapping: Mapping, target: dict[str, Any], as_json: bool
    ) -> None:
        laid = opening.proposal(project, self.kind, files, given_mapping)
        seen = self.preview(project, files, laid, target)
        self._tell(seen.report, seen.problems, {}, as_json, (laid, given_mapping))
        if seen.problems:
            sys.exit(REFUSED)

    def _store(
        self,
        project: Project,
        files: Sequence[File],
        given_mapping: Mapping,
        target: dict[str, Any],
        as_json: bool,
        options: dict[str, Any],
    ) -> None:
        file_import = opening.open_import(
            project=project, kind=self.kind, files=files, mapping=given_mapping, target=target
        )
        laid = file_import.column_mapping()
        try:
            with discarded_on_failure(file_import):
                self.carry_out(file_import)
        except FileRefused as refused:
            report = Report.from_dict(file_import.report).after_refusal(refused.problems.refused)
            self._tell(report, refused.problems, {}, as_json, (laid, given_mapping))
            undoing.discard(file_import=file_import)
            sys.exit(REFUSED)
        except Refused as refused:
            undoing.discard(file_import=file_import)
            raise CommandError(refused.sentence, returncode=REFUSED) from None
        texts = {"import": f"#{file_import.pk}", **self.outcome(file_import, options)}
        self._tell(Report.from_dict(file_import.report), Problems(), texts, as_json, (laid, given_mapping), stored=True)

    def _tell(
        self,
        report: Report,
        problems: Problems,
        texts: dict[str, str],
        as_json: bool,
        mappings: tuple[Mapping, Mapping],
        *,
        stored: bool = False,
    ) -> None:
        """Print the result; ``mappings`` are the mapping that was used and the one that the options give."""
        if as_json:
            faults = {"problems": [problem.as_dict() for problem in problems], "more_problems": problems.more}
            result = {
                "is_stored": stored,
                **texts,
                "mapping": mappings[0].as_dict(),
                "report": report.as_dict(),
                **faults,
            }
            self.stdout.write(json.dumps(result, ensure_ascii=False, indent=2))
            return
        for sentence in problems.grouped_sentences():
            self.stderr.write(sentence)
        if any(problem.code == "no_column" for problem in problems):
            self.stderr.write(
                "Name the column with --map COLUMN=FIELD, or set a value for all rows with --set FIELD=VALUE."
            )
        if any(problem.code == checks.NAMES_SHOWN for problem in problems):
            self.stderr.write("Choose --generator-names mask, or --generator-names keep.")
        for line in report.lines():
            self.stdout.write(line)
        if guessed := _guessed_parts(*mappings):
            self.stdout.write(f"guessed: {guessed}")
        for kind, name in texts.items():
            self.stdout.write(f"{kind}: {name}")
        if not stored:
            self.stdout.write("Nothing was stored.")

    def _project(self, slug: str) -> Project:
        project = Project.objects.filter(slug=slug).first()
        if project is None:
            available = ", ".join(Project.objects.values_list("slug", flat=True)) or "none"
            raise CommandError(f"There is no project “{slug}”. Available: {available}.", returncode=USAGE)
        return project

    def _open(self, stack: ExitStack, path: Path) -> BinaryIO:
        try:
            return stack.enter_context(path.open("rb"))
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}", returncode=USAGE) from None

    def _given_mapping(self, mapping: Path | None, columns: list[str] | None, constants: list[str] | None) -> Mapping:
        try:
            read = Mapping.from_yaml(mapping.name, mapping.read_bytes()) if mapping else Mapping()
        except OSError as error:
            raise CommandError(f"{mapping}: {error.strerror}", returncode=USAGE) from None
        return read.updated(Mapping.from_pairs(columns or (), constants or ()))


def _guessed_parts(used: Mapping, given_mapping: Mapping) -> str:
    """The parts of the used mapping that were detected and not given, as YAML on one line; "" if there are none."""
    known = given_mapping.as_dict()
    guessed = {name: _difference(value, known.get(name)) for name, value in used.as_dict().items()}
    kept = {name: value for name, value in guessed.items() if value}
    written = yaml.safe_dump(kept, allow_unicode=True, sort_keys=False, default_flow_style=True, width=10**6)
    return written.strip() if kept else ""


def _difference(used: Any, known: Any) -> Any:
    if isinstance(used, dict):
        return {name: value for name, value in used.items() if name not in (known or {})}
    if isinstance(used, list):
        return [value for value in used if value not in (known or [])]
    return used if used != known else None
