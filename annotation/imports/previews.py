"""What an import would store, without storing it: the first rows, the mapping, the report and every problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from accounts.models import Project
from annotation.imports import targets
from annotation.imports.checks import add_stored, append_problems, compare_items, note_people, report_ratings
from annotation.imports.parsed_files import parse_import
from annotation.imports.parsing import ParsedFiles, parse_files
from annotation.imports.rating_rows import fit_ratings
from annotation.imports.targets import Target
from annotation.models import Import
from annotation.readers import (
    ColumnFacts,
    File,
    Mapping,
    Problems,
    Progress,
    Report,
    RubricDocument,
    ShareProgress,
    TwoStepProgress,
    parse_rubric,
    unpacked_files,
)

FIRST_ROWS = 50


@dataclass(slots=True, kw_only=True)
class Preview:
    """``mapping`` is the mapping that was used; ``rows`` are the first rows, `ItemRow`, `RatingRow` or a verdict's.

    ``criteria`` maps the file's names of criteria to keys ("" if the rubric has no such criterion). ``first_lines`` are
    the first rows of the first table unchanged, with their numbers; ``sheets`` are the names of its sheets.
    """

    kind: str
    mapping: Mapping = field(default_factory=Mapping)
    columns: Sequence[ColumnFacts] = ()
    rows: Sequence[Any] = ()
    report: Report = field(default_factory=Report)
    problems: Problems = field(default_factory=Problems)
    documents: Sequence[RubricDocument] = ()
    criteria: dict[str, str] = field(default_factory=dict)
    first_lines: Sequence[tuple[int, list[str]]] = ()
    sheets: Sequence[str] = ()


def preview_files(
    *,
    project: Project,
    kind: str,
    files: Sequence[File],
    mapping: Mapping,
    target_fields: dict[str, Any],
) -> Preview:
    """Read files that are not an import yet; ``target_fields`` as in `Import.target`. For verdicts see `judging`."""
    if kind == Import.Kind.RUBRIC:
        return _rubrics(files)
    target = targets.resolve(project=project, target_fields=target_fields) if kind == Import.Kind.RATINGS else None
    parsed = parse_files(kind, files, mapping, target.rubric_version if target else None, is_shown=True)
    return _compared(parsed, project, kind, target_fields, target)


def preview_import(file_import: Import, progress: Progress | None = None) -> Preview:
    """A preview of what `lifecycle.carry_out` would store and refuse; stores no rows.

    The result of reading is cached, and storing uses it.
    """
    project, kind, target_fields = file_import.project, file_import.kind, file_import.target
    mapping = file_import.column_mapping()
    if kind == Import.Kind.RUBRIC:
        with file_import.opened() as files:
            return _rubrics(files)
    target = targets.resolve(project=project, target_fields=target_fields) if kind == Import.Kind.RATINGS else None
    way = TwoStepProgress(progress)
    reading_progress = way.reading if target else progress
    parsed = parse_import(
        file_import, mapping, target.rubric_version if target else None, reading_progress, is_shown=True
    )
    return _compared(parsed, project, kind, target_fields, target, way.holding)


def _compared(
    parsed: ParsedFiles,
    project: Project,
    kind: str,
    target_fields: dict[str, Any],
    target: Target | None,
    progress: ShareProgress | None = None,
) -> Preview:
    """The preview of parsed files after they are compared with the database."""
    if kind == Import.Kind.DATASET:
        extends = (
            targets.extended(project=project, target_fields=target_fields) if target_fields.get("extends") else None
        )
        note_people(parsed, project)
        report, _shown = compare_items(parsed, extends, names=target_fields.get("generator_names", ""))
    else:
        report = report_ratings(parsed, target)
        if target is not None:
            fit = fit_ratings(
                dataset=target.dataset,
                rubric_version=target.rubric_version,
                campaign=target.campaign,
                rows=parsed.rows,
                progress=progress,
            )
            append_problems(parsed.problems, fit.problems)
            add_stored(report, fit.report)
        report.refused = parsed.problems.refused
    return preview_of(kind, parsed, report, target)


def preview_of(kind: str, parsed: ParsedFiles, report: Report, target: Target | None) -> Preview:
    """The preview of parsed files."""
    return Preview(
        kind=kind,
        mapping=parsed.mapping,
        columns=parsed.columns,
        rows=parsed.rows[:FIRST_ROWS],
        report=report,
        problems=parsed.problems,
        criteria={} if kind == Import.Kind.DATASET else _named_criteria(parsed.rows, target),
        first_lines=parsed.first_lines,
        sheets=parsed.sheets,
    )


# --- rubrics --------------------------------------------------------------------------------------------------------
def _rubrics(files: Sequence[File]) -> Preview:
    documents, problems = read_rubrics(files)
    report = Report(read=len(files), stored=len(documents), refused=len(files) - len(documents))
    return Preview(kind=Import.Kind.RUBRIC, documents=documents, problems=problems, report=report)


def read_rubrics(files: Sequence[File]) -> tuple[list[RubricDocument], Problems]:
    """The documents of all valid files, and the problems of the others."""
    documents, problems = [], Problems()
    for name, raw in unpacked_files(files, problems):
        parsed = parse_rubric(name, raw)
        for problem in parsed.problems:
            problems.add(problem)
        if parsed.document is not None:
            documents.append(parsed.document)
    return documents, problems


def _named_criteria(rows: Sequence[Any], target: Target | None) -> dict[str, str]:
    """Map the criteria in the rows to the rubric's keys: to the key itself, or to "" if the rubric does not have it."""
    keys = {criterion.key for criterion in target.rubric_version.criteria.all()} if target else set()
    return {row.criterion: row.criterion if row.criterion in keys else "" for row in rows}
