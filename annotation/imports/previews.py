"""What an import would store, without storing it: the first rows, the mapping, the report and every problem."""

from __future__ import annotations

import json
from collections import abc
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import accumulate, islice
from typing import Any

from django.db.models import Count

from accounts.inputs import storable_value
from accounts.models import Project
from analytics.stats.core.identifiers import normal_identifier, spellings_of
from annotation import blinding
from annotation.blinding import Finding
from annotation.imports import targets
from annotation.imports.parsed_files import ParsedFiles, parse_files, parse_import
from annotation.imports.rating_rows import RatingsReport, fit_ratings, scale_words, score_labels
from annotation.imports.targets import Target
from annotation.models import Annotator, Criterion, Dataset, Import, Item
from annotation.readers import (
    ColumnFacts,
    File,
    InvalidValue,
    ItemRow,
    Mapping,
    Problem,
    Problems,
    Progress,
    Report,
    RubricDocument,
    ShareProgress,
    TwoStepProgress,
    Words,
    as_answer,
    as_language,
    case_folded,
    content_digest,
    excerpt,
    is_with_decimal_comma,
    kind_of_problem,
    likely_score,
    note_on_rater_addresses,
    parse_rubric,
    shortened_list,
    unpacked_files,
    words_by_text,
)

FIRST_ROWS = 50
NAMES_SHOWN = "generator_name"  # the code of the problem that somebody has to decide about


@dataclass(slots=True, kw_only=True)
class Preview:
    """``mapping`` is the one that gave the rows; ``rows`` are the first of them, `ItemRow`, `RatingRow` or a verdict's.

    ``criteria`` are the names that the file gives to criteria, with the key that each stands for ("" for none).
    ``first_lines`` are the first rows of the first table as they stand, with their numbers; ``sheets`` the names of its
    sheets.
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
    """What `lifecycle.carry_out` would store, and what it would refuse; stores nothing.

    What was read is kept, and is what storing stores.
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
    """What was read, and what the database has to say to it."""
    if kind == Import.Kind.DATASET:
        extends = (
            targets.extended(project=project, target_fields=target_fields) if target_fields.get("extends") else None
        )
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
    """The preview of what was read."""
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
    """The documents of all files that have one, and what is wrong with the others."""
    documents, problems = [], Problems()
    for name, raw in unpacked_files(files, problems):
        parsed = parse_rubric(name, raw)
        for problem in parsed.problems:
            problems.add(problem)
        if parsed.document is not None:
            documents.append(parsed.document)
    return documents, problems


# --- datasets -------------------------------------------------------------------------------------------------------
def compare_items(
    parsed: ParsedFiles, extends: Dataset | None = None, *, names: str = ""
) -> tuple[Report, list[Finding]]:
    """The report of some items; everything that speaks against storing them is among their problems, and so is
    everything that speaks against adding them to the dataset that they are to extend.

    Generators' names in what annotators and judges see are masked or kept, as ``names`` says, or else a problem; those
    that are left come back too.
    """
    report = parsed.report
    shown_names = _settle_names(parsed, extends, names)
    unfit = fit_items(parsed.rows)
    append_problems(parsed.problems, unfit)
    report.refused = parsed.problems.refused
    report.notes += _name_notes(shown_names, names)
    if extends:
        append_problems(parsed.problems, compare_with_dataset(extends, parsed.rows, report))
    report.stored -= unfit.refused
    return report, [] if names == blinding.MASK else shown_names


def _settle_names(parsed: ParsedFiles, extends: Dataset | None, names: str) -> list[Finding]:
    """The generators' names that the items show; masked, kept, or else among the problems."""
    layout = extends.layout if extends else None
    before = Item.objects.of(extends).order_by().values_list("generator", flat=True).distinct() if extends else ()
    shown = blinding.find_generator_names(parsed.rows, layout, generators=[*parsed.names, *before])
    if names == blinding.MASK:
        parsed.rows.change(blinding.masker(shown))
    elif names != blinding.KEEP:
        expected = Words("text that does not show who wrote it: mask the names, or decide to keep them")
        for finding in shown:
            text = Words(
                "the name of the generator %(name)s (items: %(items)s), such as %(examples)s",
                name=excerpt(finding.generator),
                items=f"{finding.items:,}",
                examples=excerpt(finding.example),
            )
            parsed.problems.add(Problem(finding.file, finding.line, finding.place, text, expected, NAMES_SHOWN))
    return shown


def _name_notes(shown: Sequence[Finding], names: str) -> list[str]:
    if not shown or names not in blinding.CHOICES:
        return []
    done = "masked" if names == blinding.MASK else Words("kept, and seen by annotators and judges")
    return [f"Generators' names {done}: {shortened_list([finding.words for finding in shown], len(shown))}."]


# --- ratings --------------------------------------------------------------------------------------------------------
def report_ratings(parsed: ParsedFiles, target: Target | None) -> Report:
    """The report of some ratings, with notes on their raters; it lacks what only the database can say."""
    report = parsed.report
    if not parsed.mapping.positional:
        report.notes += _rater_notes(parsed.names, target)
    return report


def _rater_notes(raters: Collection[str], target: Target | None) -> list[str]:
    """Who is called by name, who is new, and who is somebody here already."""
    notes = note_on_rater_addresses(raters)
    if target is None or not raters:
        return notes
    annotators = Annotator.objects.filter(project=target.dataset.project, pseudonym__in=spellings_of(raters))
    counted = annotators.annotate(taken=Count("seats")).values_list("pseudonym", "taken")
    seats = {normal_identifier(name): taken for name, taken in counted}
    if new := [rater for rater in raters if rater not in seats]:
        text = Words("an annotator is created for each name, without a panel and without an account")
        notes.append(
            Words(
                "Raters who are not known in this project: %(names)s; %(rest)s.", names=shortened_list(new), rest=text
            )
        )
    if known := [rater for rater in raters if rater in seats]:
        notes.append(
            Words(
                "Raters taken for the annotators of that name in this project: %(names)s.", names=shortened_list(known)
            )
        )
    if unseated := [rater for rater in known if not seats[rater]]:
        notes.append(Words("Of these, on no panel: %(names)s.", names=shortened_list(unseated)))
    return notes


def add_stored(report: Report, stored: RatingsReport) -> None:
    """Complete a report by what holding the rows against the database came to."""
    report.stored, report.not_applicable = stored.stored + stored.not_applicable, stored.not_applicable
    report.collapsed += stored.collapsed
    report.missing = stored.missing
    if stored.collapsed:
        report.notes.append(
            Words("%(number)s ratings were already stored and are the same.", number=f"{stored.collapsed:,}")
        )


def _named_criteria(rows: Sequence[Any], target: Target | None) -> dict[str, str]:
    """The criteria that rows name, with the rubric's key for each: itself, or "" where the rubric has none such."""
    keys = {criterion.key for criterion in target.rubric_version.criteria.all()} if target else set()
    return {row.criterion: row.criterion if row.criterion in keys else "" for row in rows}


def append_problems(problems: Problems, more: Problems) -> None:
    """Add the problems of a second look to those of the first; a row has at most one of them."""
    problems.refused += more.refused
    problems.codes.update(more.codes)
    problems.alike.update(more.alike)
    problems.shown.extend(more.shown[: max(0, problems.limit - len(problems.shown))])


# --- what storing would come to, in plain values ---------------------------------------------------------------------
# One shape for the page, the API and what a worker leaves behind.
PreviewReport = dict[str, Any]
MOST_KINDS, FIRST_PLACES = 50, 5
MOST_UNREAD = 30  # values of a column
LONGEST_CELL, LONGEST_LINE = 40, 120
MOST_SHOWN = 4 * 2**20  # bytes of first rows: fifty long documents are more than a page can show


def preview_report(preview: Preview, target: Target | None) -> PreviewReport:
    """The preview as JSON can hold it. Keys: kind, mapping, columns, rows, report, criteria, scales, problems,
    more_problems, documents, first_lines, sheets,
    kinds_of_problems, words (of problems and notes by their text, for pages).
    """
    criteria = {criterion.key: criterion for criterion in target.rubric_version.criteria.all()} if target else {}
    shown = {
        "kind": str(preview.kind),
        "mapping": preview.mapping.as_dict(),
        "columns": [_column(column, preview.mapping, criteria) for column in preview.columns],
        "rows": _few([_row(row) for row in preview.rows]),
        "report": preview.report.as_dict(),
        "criteria": preview.criteria,
        "scales": {key: scale_words(criterion) for key, criterion in criteria.items()},
        "problems": [problem.as_dict() for problem in preview.problems],
        "more_problems": preview.problems.more,
        "kinds_of_problems": _kinds(preview.problems),
        "documents": [document.as_yaml() for document in preview.documents],
        "first_lines": [{"number": number, "text": _line(cells)} for number, cells in preview.first_lines],
        "sheets": list(preview.sheets),
        "words": words_by_text(
            [
                *preview.report.notes,
                *(text for problem in preview.problems for text in (problem.found, problem.expected)),
                *(expected for _code, _column, expected in preview.problems.alike),
            ]
        ),
    }
    return plain(shown)


def plain(shown: abc.Mapping[str, Any]) -> PreviewReport:
    """What is shown as JSON that the database can keep."""
    kept: PreviewReport = storable_value(json.loads(_text(shown)))
    return kept


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _row(row: Any) -> dict[str, Any]:
    return asdict(row) if isinstance(row, ItemRow) else dict(row._asdict())


def _kinds(problems: Problems) -> list[dict[str, Any]]:
    """The problems by kind, the most frequent first: the count, the first places, and one example value."""
    kinds = []
    for (code, column, expected), count in problems.alike.most_common(MOST_KINDS):
        alike = [one for one in problems if kind_of_problem(one) == (code, column, expected)]
        places = [{"file": one.file, "line": one.line} for one in alike[:FIRST_PLACES]]
        kind = {"code": code, "column": column, "expected": expected, "count": count, "places": places}
        kinds.append({**kind, "found": alike[0].found if alike else ""})
    return kinds


def _line(cells: Sequence[str]) -> str:
    """A row of a table as one short line."""
    return " · ".join(cell.strip()[:LONGEST_CELL] for cell in cells)[:LONGEST_LINE]


def _few(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    sizes = accumulate(len(_text(row)) for row in rows)
    return [row for row, size in zip(rows, sizes, strict=True) if size <= MOST_SHOWN]


# --- columns --------------------------------------------------------------------------------------------------------
def _column(facts: ColumnFacts, mapping: Mapping, criteria: abc.Mapping[str, Criterion]) -> PreviewReport:
    return {
        "name": facts.name,
        "target": facts.target,
        "filled": facts.filled,
        "blank": facts.blank,
        "distinct": facts.distinct,
        "is_many": facts.is_many,
        "examples": facts.examples,
        "most": [{"value": value, "count": count} for value, count in facts.most],
        "off_scale": _off_scale(facts, mapping, criteria),
        "unread": _unread(facts, mapping, criteria),
    }


def _unread(facts: ColumnFacts, mapping: Mapping, criteria: abc.Mapping[str, Criterion]) -> list[dict[str, Any]]:
    """The values of a column of languages or scores that mean nothing by themselves: how often each occurs, what the
    mapping says that it means, and what it may mean."""
    field, _dot, key = facts.target.partition(".")
    if field not in ("language", "score"):
        return []
    meanings = {**mapping.values.get(field, {}), **mapping.values.get(facts.target, {})}
    labels = score_labels([criteria[key]] if key in criteria else criteria.values())
    unread_values = []
    for value, count in facts.counts.most_common():
        try:
            as_language(value) if field == "language" else as_answer(value, decimal_comma=mapping.decimal_comma)
        except InvalidValue:
            if field == "score" and is_with_decimal_comma(value):  # one setting for all of them
                continue
            likely = labels.get(case_folded(value), likely_score(value) if field == "score" else "")
            unread_values.append({"value": value, "count": count, "means": meanings.get(value, ""), "likely": likely})
    return unread_values[:MOST_UNREAD]


def _off_scale(facts: ColumnFacts, mapping: Mapping, criteria: abc.Mapping[str, Criterion]) -> int | None:
    """How many cells of a score column are not on the scale of its criterion (in a long file: on no scale)."""
    field, _dot, key = facts.target.partition(".")
    if field != "score" or not criteria:
        return None
    scales = [criteria[key]] if key in criteria else list(criteria.values())
    meant = {**mapping.values.get("score", {}), **mapping.values.get(facts.target, {})}
    is_off = _misses(scales, mapping.decimal_comma)
    return sum(count for value, count in facts.counts.items() if is_off(meant.get(value, value)))


def _misses(scales: Iterable[Criterion], decimal_comma: bool) -> Callable[[str], bool]:
    def misses(text: str) -> bool:
        with suppress(InvalidValue):
            score = as_answer(text, decimal_comma=decimal_comma).score
            return score is not None and not any(scale.is_on_scale(score) for scale in scales)
        return True

    return misses


LONGEST = {"external_id": 200, "language": 35, "generator": 120, "scenario": 200}


def fit_items(items: Iterable[ItemRow]) -> Problems:
    """The values of parsed items that are longer than the database columns."""
    problems = Problems()
    for row in items:
        faults = [
            Problem(
                row.file,
                row.line,
                name,
                f"{length} characters",
                Words("at most %(number)s characters", number=longest),
                "too_long",
            )
            for name, longest in LONGEST.items()
            if (length := len(getattr(row, name) or "")) > longest
        ]
        for number, fault in enumerate(faults):
            (problems.add if number else problems.refuse)(fault)
    return problems


LOOKED_UP_AT_ONCE = 1_000


class Additions:
    """Compare rows with a version: new ones pass, identical ones collapse, another item with the same id is refused.

    The version never changes, so rows held against it twice come out the same.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.new = self.collapsed = 0
        self.problems = Problems()

    def among(self, rows: Iterable[ItemRow]) -> Iterator[ItemRow]:
        """The rows whose ids the version has not got, in bounded memory."""
        source = iter(rows)
        while some := list(islice(source, LOOKED_UP_AT_ONCE)):
            known = self._known(some)
            for row in some:
                if row.external_id not in known:
                    self.new += 1
                    yield row
                else:
                    self._meet(row, *known[row.external_id])

    def _known(self, rows: list[ItemRow]) -> dict[str, tuple[str, int]]:
        """By id, content digest and the version that brought it."""
        names = spellings_of(row.external_id for row in rows)
        items = Item.objects.of(self.dataset).filter(external_id__in=names).order_by()
        columns = items.values_list("external_id", "digest", "dataset__version")
        return {normal_identifier(name): (digest, version) for name, digest, version in columns}

    def _meet(self, row: ItemRow, digest: str, version: int) -> None:
        if digest == content_digest(row):
            self.collapsed += 1
            return
        place = f"{self.dataset.name} v{version}"
        text = Words("%(item)s, which is another item in %(place)s", item=excerpt(row.external_id), place=place)
        expected = Words("an id of its own for each item, or the very same item")
        self.problems.refuse(Problem(row.file, row.line, "id", text, expected, "duplicate_id"))


def compare_with_dataset(dataset: Dataset, items: Iterable[ItemRow], report: Report) -> Problems:
    """What speaks against adding ``items`` to a version; puts into their report how many of them are new to it."""
    additions = Additions(dataset)
    report.stored = sum(1 for _each in additions.among(items))
    report.collapsed += additions.collapsed
    report.refused += additions.problems.refused
    if additions.collapsed:
        report.notes.append(
            Words(
                "%(number)s items are in %(dataset)s already, saying the same.",
                number=f"{additions.collapsed:,}",
                dataset=dataset,
            )
        )
    if additions.collapsed and not (report.stored or report.refused):
        expected = Words("at least one item that is not in %(dataset)s", dataset=dataset)
        additions.problems.add(Problem("", None, None, Words("no new item"), expected, "nothing_new"))
    return additions.problems
