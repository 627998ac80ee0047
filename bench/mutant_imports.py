"""Mutants through the import itself: looked at, stored in a database or refused, and taken back.

Every table is counted before and after. A refused mutant must leave each as it was; of a stored one there must be as
many rows as its report says, as the dry run said, and as a reader that is not ours finds in the same bytes; and when it
is undone, each table must be as it was.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.db import connection

from accounts.models import Project
from accounts.refusals import Refused
from annotation import rubrics
from annotation.imports import lifecycle, opening, previews, undoing
from annotation.imports import storage as storing
from annotation.models import Annotation, Annotator, Campaign, Dataset, Import, Item, Rating, RubricVersion
from annotation.readers.items import ItemRow, parse_items
from annotation.readers.mapping import Mapping
from annotation.readers.ratings import parse_ratings, parse_verdicts
from annotation.readers.rubric import CriterionDocument, RubricDocument, ScaleDocument
from annotation.readers.steps import Compose, Keep
from annotation.readers.studies import Head, StudyImport, known_studies, observed_scales, with_word_codes
from bench.mutations import LAYOUTS, Original, forms, found_by_others, original
from judging.imports import verdicts
from judging.models import Attempt, Call, Judge, JudgeRun, Verdict

TABLES = (
    *(Dataset, Dataset.parts.through, Item, Campaign, Annotator, Annotation, Rating, Import),
    *(Judge, JudgeRun, Call, Attempt, Verdict),
)
PARSE: dict[str, Any] = {"dataset": parse_items, "ratings": parse_ratings, "verdicts": parse_verdicts}
IMPORT = Import._meta.db_table
Counts = dict[str, int]


@dataclass(frozen=True, slots=True)
class ImportWay:
    """One import of a whole file: how it is read, where its rows go, and how many rows ``each`` of its records is,
    where that is one number."""

    kind: str
    mapping: Mapping
    target: dict[str, Any]
    each: int | None


@dataclass(slots=True)
class Fate:
    """What became of a mutant: whether it was stored, and what is wrong with that."""

    stored: bool
    fault: str = ""


class Rooms:
    """A project in which mutants are stored, with the items and the rubric that each whole file is about."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.ways: dict[tuple[str, int], list[ImportWay]] = {}
        self._rooms = 0

    def wholes(self, paths: Iterable[Path], most: int) -> list[Original]:
        """Every form of the files that a ready study takes, and that can be stored as they are."""
        return [form for path in paths for form in self._forms(path.name, path.read_bytes(), most)]

    def _forms(self, name: str, raw: bytes, most: int) -> list[Original]:
        imports = _imports(name, raw)
        plain = original(name, raw, most, (_layout(imports[0]), *LAYOUTS)) if imports else None
        if plain is None or len(plain.raw) > 5 * most:
            print(f"{name}: left out, because no study takes it or a few of its records are too long", file=sys.stderr)
            return []
        kept = []
        for form in forms(plain):
            ways = [way for each in imports if (way := self._way(each, plain, form))]
            if ways:
                self.ways[form.name, len(form.raw)] = ways
                kept.append(form)
        return kept

    def _way(self, each: StudyImport, plain: Original, form: Original) -> ImportWay | None:
        mapping = (
            with_word_codes(each.mapping, observed_scales([(plain.name, plain.raw)], each.mapping))
            if _is_coded(each)
            else each.mapping
        )
        if form.kind in {"jsonl", "xlsx", "parquet"}:
            mapping = replace(mapping.of(plain.name), files={}, **_NO_LAYOUT)
        parsed = PARSE[each.kind]([(form.name, form.raw)], mapping)
        if parsed.problems or not len(parsed.items if each.kind == "dataset" else parsed.rows):
            sentence = next(iter(parsed.problems.sentences()), "it holds none")
            print(f"{form.name} as {each.kind}: left out, {sentence}", file=sys.stderr)
            return None
        target = {} if each.kind == "dataset" else self._target(parsed.rows)
        return ImportWay(each.kind, mapping, target, _rows_per_record(each, plain.name))

    def _target(self, rows: Sequence[Any]) -> dict[str, Any]:
        """A dataset of the items that the rows name, and a rubric on whose scales their scores are."""
        self._rooms += 1
        scores: dict[str, set[float]] = {}
        for row in rows:
            scores.setdefault(row.criterion, {0.0, 1.0}).update({row.score} - {None})
        items = [_item(name, number) for number, name in enumerate(sorted({row.item for row in rows}))]
        dataset = storing.store(project=self.project, name=f"Items {self._rooms}", items=items)
        return {"dataset": dataset.pk, "rubric_version": self._rubric(scores).pk, "name": f"Room {self._rooms}"}

    def _rubric(self, scores: dict[str, set[float]]) -> RubricVersion:
        criteria = [
            CriterionDocument(
                key, {"en": key}, ScaleDocument("interval", (), min(values), max(values)), not_applicable=True
            )
            for key, values in scores.items()
        ]
        document = RubricDocument(f"room-{self._rooms}", {"en": "Room"}, "en", tuple(criteria))
        return rubrics.publish(version=rubrics.draft(project=self.project, document=document))

    # --- one mutant -------------------------------------------------------------------------------------------------
    def examine(self, whole: Original, raw: bytes, turn: int, records: int | None = None) -> Fate:
        """Import a mutant in one of the ways in which its whole file is imported, by ``turn``. ``records`` are in it,
        where that is known."""
        ways = self.ways[whole.name, len(whole.raw)]
        way, name, others = ways[turn % len(ways)], whole.name, found_by_others(whole.name, raw, whole.layout)
        before = _counts()
        try:
            file_import = opening.open_import(
                project=self.project, kind=way.kind, files=[(name, raw)], mapping=way.mapping, target=way.target
            )
        except Refused:
            return Fate(False, _difference(before, _counts()))
        seen = _preview(file_import)
        try:
            _carry_out(file_import)
        except Refused:
            fault = "" if seen.problems else "refused, where the dry run saw nothing wrong"
            fault = fault or _difference({**before, IMPORT: before[IMPORT] + 1}, _counts())
            stored = False
        else:
            fault = _unaccounted(file_import, way, others, records) or _unlike(file_import, seen)
            undo = verdicts.remove_verdicts if way.kind == "verdicts" else undoing.undo
            undo(file_import=file_import)
            stored = True
        undoing.discard(file_import=file_import)
        return Fate(stored, fault or _difference(before, _counts()))


def _imports(name: str, raw: bytes) -> list[StudyImport]:
    """What the first study that takes a file imports of it; ratings also as if judges had given them."""
    taken = ([each for each in study.imports if _takes(each, name, raw)] for study in known_studies().values())
    found = next(filter(None, taken), [])
    return [*found, *(_as_verdicts(each) for each in found if each.kind == "ratings")]


def _takes(each: StudyImport, name: str, raw: bytes) -> bool:
    return each.kind in PARSE and not each.mapping.aligned and each.takes(Head(name, (name, raw)))


def _as_verdicts(each: StudyImport) -> StudyImport:
    fields = {column: "judge" if field == "rater" else field for column, field in each.mapping.columns.items()}
    return replace(each, kind="verdicts", mapping=replace(each.mapping, columns=fields))


def _is_coded(each: StudyImport) -> bool:
    return each.kind != "dataset" and "score" not in each.mapping.values


_NO_LAYOUT: dict[str, Any] = {
    "format": None,
    "encoding": None,
    "records": None,
    "delimiter": None,
    "quoting": True,
    "line_breaks": False,
    "header": (),
}


def _layout(each: StudyImport) -> Mapping:
    """How an import's files are laid out, with what their names say."""
    layout = {name: getattr(each.mapping, name) for name in _NO_LAYOUT}
    return Mapping(**layout, files={pattern: Mapping() for pattern in each.mapping.files})


def _item(name: str, number: int) -> ItemRow:
    return ItemRow(name, "en", None, None, "", [], {"answer": "text"}, {}, "", number)


def _rows_per_record(each: StudyImport, name: str) -> int | None:
    """One, unless the mapping makes records long, or they hold lists of ratings."""
    mapping = each.mapping.of(name)
    holds_lists = any(field.startswith("ratings.") for field in mapping.columns.values())
    makes_long = not all(isinstance(step, Compose | Keep) for step in mapping.shape)
    return None if makes_long or holds_lists else 1


def _preview(file_import: Import) -> Any:
    if file_import.kind != Import.Kind.VERDICTS:
        return previews.preview_import(file_import)
    return verdicts.preview_verdict_import(file_import)


def _carry_out(file_import: Import) -> None:
    is_of_verdicts = file_import.kind == Import.Kind.VERDICTS
    carry_out = verdicts.carry_out_verdicts if is_of_verdicts else lifecycle.carry_out
    carry_out(file_import=file_import)


def _counts() -> Counts:
    tables = [table._meta.db_table for table in TABLES]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in tables))
        return dict(cursor.fetchall())


def _difference(before: Counts, after: Counts) -> str:
    left = [f"{after[name] - count:+,} {name}" for name, count in before.items() if after[name] != count]
    return f"left behind: {', '.join(left)}" if left else ""


def _unaccounted(file_import: Import, way: ImportWay, others: int | None, records: int | None) -> str:
    """What of a stored file's rows is in no count, or counted and not there."""
    report = Import.objects.get(pk=file_import.pk).report
    accounted = sum(report[name] for name in ("stored", "collapsed", "missing", "refused"))
    if report["read"] != accounted or report["refused"]:
        return f"{report['read']} read, {accounted} accounted for, {report['refused']} of them refused, and yet stored"
    if way.each and others and accounted < others * way.each:
        return f"{accounted} rows accounted for where others find {others} records of {way.each}"
    if way.each and records is not None and accounted != records * way.each:
        return f"{accounted} rows accounted for where {records} records of {way.each} were written"
    there = _rows_of(file_import)
    return "" if there == report["stored"] else f"{there} rows are there where {report['stored']} were stored"


def _rows_of(file_import: Import) -> int:
    if file_import.kind == Import.Kind.DATASET:
        return Item.objects.filter(dataset=Dataset.objects.ready().get(file_import=file_import)).count()
    if file_import.kind == Import.Kind.RATINGS:
        return Rating.objects.filter(annotation__file_import=file_import).count()
    return Verdict.objects.filter(run__file_import=file_import).count()


def _unlike(file_import: Import, seen: Any) -> str:
    """How the report of a stored file differs from that of its dry run."""
    if seen.problems:
        return f"stored, where the dry run saw {seen.problems.sentences()[0]}"
    report, foreseen = Import.objects.get(pk=file_import.pk).report, seen.report.as_dict()
    unlike = [name for name, value in foreseen.items() if report[name] != value]
    return f"stored otherwise than the dry run said: {', '.join(unlike)}" if unlike else ""
