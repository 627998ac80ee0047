"""Rows of a dataset file -> items."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import orjson

from annotation.readers.aligning import aligned
from annotation.readers.columns import Facts
from annotation.readers.fields import Plan, Planner, as_key, as_language, as_text, is_blank, lacking
from annotation.readers.gathering import gathered
from annotation.readers.headings import Headings
from annotation.readers.ledger import DROPPED, KEPT, Ledger
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problem, Problems, Unfit, excerpt
from annotation.readers.progress import Meter, Progress
from annotation.readers.reading import File, is_tabular, read
from annotation.readers.report import MOST_NAMED, add
from annotation.readers.rows import Row
from annotation.readers.spool import Plain, Spool
from annotation.readers.turns import as_turns

NAMED_FIELDS = (
    *("context", "question", "source", "document", "passages", "passage_a", "passage_b", "answer", "reference"),
)


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item as its file gives it, checked and named in our words.

    ``turns``: ``{"speaker", "name"?, "text"}`` each. ``fields``: the named texts (context, question, source, document,
    passages, answer, reference ...). ``attributes``: every other column, untouched.
    """

    external_id: str
    language: str
    generator: str | None
    scenario: str | None
    title: str
    turns: list[dict[str, str]]
    fields: dict[str, Any]
    attributes: dict[str, Any]
    content_warning: str
    line: int
    file: str = ""


@dataclass(slots=True)
class ItemReport:
    """What was read: ``read = taken + collapsed + refused``.

    ``collapsed`` identical repetitions of an id; ``derived_ids`` items that had none and got one from their content;
    ``empty`` items without any content that were kept because the mapping allows it, the first of them ``empty_at``;
    ``embedded_ratings`` ratings that stand inside the items (``parse_ratings`` reads them);
    ``dropped`` keys of turns that are not kept, with how often.
    """

    read: int = 0
    taken: int = 0
    collapsed: int = 0
    refused: int = 0
    derived_ids: int = 0
    embedded_ratings: int = 0
    empty: int = 0
    empty_at: list[str] = field(default_factory=list)
    languages: Counter[str] = field(default_factory=Counter)
    generators: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ParsedItems:
    """Items of one or several files; to be stored only when there are no problems."""

    items: Spool[ItemRow]
    problems: Problems
    report: ItemReport


def parse_items(
    files: Iterable[File], mapping: Mapping, *, progress: Progress | None = None, facts: Facts | None = None
) -> ParsedItems:
    """Read items from ``(name, content)`` files that share one mapping. Never raises on bad input.

    ``facts`` counts what stands in the columns.
    """
    reader, meter = _ItemReader(mapping), Meter(files, progress, facts)
    for name, raw in aligned(meter.members(reader.problems), mapping, reader.problems):
        rows = read(name, raw, layout=mapping, problems=reader.problems)
        reader.read_file(name, meter.following(rows))
    return reader.result()


def content_digest(item: ItemRow) -> str:
    """SHA-256 (hex) of everything an item says, whatever its id and its place in the file."""
    return sha256(_said(item)).hexdigest()


def _said(item: ItemRow) -> bytes:
    return orjson.dumps([getattr(item, name) for name in _SAID], option=orjson.OPT_SORT_KEYS)


_SAID = ("language", "generator", "scenario", "title", "turns", "fields", "attributes", "content_warning")


class _ItemReader:
    """Reads files into items, one row at a time."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.problems = Problems()
        self.report = ItemReport()
        self._headings = Headings()
        self._ledger: Ledger[ItemRow] = Ledger(_restored, _family)
        self._duplicates = 0

    def read_file(self, name: str, rows: Iterator[Row]) -> None:
        """Read the rows of one file to their end, or to the first when its file lacks what is needed."""
        rows, mapping = gathered(name, rows, self.mapping.of(name), self.problems)
        planner = Planner(mapping, self._headings)
        for number, row in enumerate(rows):
            plan = planner.plan(row.fields)
            if number == 0 and (problem := _lacking(name, plan, mapping, row)):
                self.problems.add(problem)
                return
            try:
                self._enter(self._item(plan, row, name, mapping), plan.column("id"))
            except Unfit as fault:
                column = plan.column(fault.field) if fault.field else None
                self.problems.refuse(fault.at(name, row.line, column))

    def result(self) -> ParsedItems:
        """The items with their ids settled, and what became of all that was read."""
        report, entered = self.report, self._ledger.entered
        self.problems.notes += self._headings.notes("Columns kept as attributes of the items")
        self.problems.left_out = self._headings.left_out(keeps=True)
        items = self._ledger.settle(self._decide, _numbered)
        report.taken, report.refused = len(items), self.problems.refused
        report.read = entered + report.refused - self._duplicates
        return ParsedItems(items, self.problems, report)

    def _item(self, plan: Plan, row: Row, name: str, mapping: Mapping) -> ItemRow:
        values = plan.take(row.fields)
        item = ItemRow(
            external_id=_optional_key(values.get("id"), "id", mapping) or "",
            language=as_language(values.get("language")),
            generator=_optional_key(values.get("generator"), "generator", mapping),
            scenario=_scenario(values.get("scenario"), mapping),
            title=as_text(values.get("title"), "title"),
            turns=as_turns(values.get("turns"), mapping.speakers, self.report.dropped),
            fields={field: _content(values[field], field) for field in NAMED_FIELDS if values.get(field) is not None},
            attributes=_attributes(values, plan.rest(row.fields)),
            content_warning=as_text(values.get("content_warning"), "content_warning"),
            line=row.line,
            file=name,
        )
        self._require_content(item, mapping)
        self.report.embedded_ratings += sum(
            len(value) for field, value in values.items() if field.startswith("ratings.") and isinstance(value, list)
        )
        return item

    def _require_content(self, item: ItemRow, mapping: Mapping) -> None:
        if item.turns or not all(is_blank(text) for text in item.fields.values()):
            return
        if not mapping.allow_empty:
            expected = f"turns, or one of {', '.join(NAMED_FIELDS)} (allow_empty: on in the mapping keeps such items)"
            raise Unfit("an item without content", expected, "empty_item")
        self.report.empty += 1
        if len(self.report.empty_at) < MOST_NAMED:
            self.report.empty_at.append(_place(item))

    def _enter(self, item: ItemRow, column: str) -> None:
        said = _said(item)
        digest, derived = sha256(said).hexdigest(), not item.external_id
        # An id from the content begins with a word, so that no spreadsheet takes it for a number.
        name = f"item-{digest[:16]}" if derived else item.external_id
        rest = [getattr(item, part) for part in ItemRow.__slots__[1:]]
        self._ledger.extend([(name, *rest, column, digest, derived)], len(said))
        self.report.derived_ids += derived
        add(self.report.languages, {item.language: 1})
        add(self.report.generators, {item.generator or "": 1})

    def _decide(self, rows: list[Plain]) -> list[int]:
        """What becomes of items whose ids are one, or would be: copies without an id, which nothing tells apart, are
        numbered; the same id is the same item, or a problem."""
        copies: Counter[str] = Counter()
        taken: dict[str, Plain] = {}
        fates = []
        for row in rows:
            digest, derived = row[-2:]
            copies[digest] += derived
            fate = copies[digest] if derived and copies[digest] > 1 else KEPT
            earlier = taken.setdefault(_numbered(row, fate)[0], row)
            if earlier is not row:
                self._leave_out(row, earlier)
                fate = DROPPED
            fates.append(fate)
        return fates

    def _leave_out(self, row: Plain, earlier: Plain) -> None:
        item, first = _restored(row), _restored(earlier)
        add(self.report.languages, {item.language: -1})
        add(self.report.generators, {item.generator or "": -1})
        if row[-2] == earlier[-2]:
            self.report.collapsed += 1
            return
        found = f"{excerpt(item.external_id)}, which is another item in {_place(first)}"
        expected = (
            f"an id of its own for each item, or the same item: they differ in {', '.join(_differing(item, first))}"
        )
        column = row[-3]
        self.problems.refuse(Problem(item.file, item.line, column, found, expected, "duplicate_id"))
        self._duplicates += 1


def _differing(item: ItemRow, other: ItemRow) -> list[str]:
    """What two items don't have in common, at most the first few."""
    named = ("language", "generator", "scenario", "title", "turns", "content_warning")
    parts = [name for name in named if getattr(item, name) != getattr(other, name)]
    for ours, theirs in ((item.fields, other.fields), (item.attributes, other.attributes)):
        parts += [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return [*parts[:MOST_NAMED], *(["…"] if len(parts) > MOST_NAMED else [])]


def _restored(row: Plain) -> ItemRow:
    return ItemRow(*row[:-3])


# An item without an id may come to be called as another is: what begins alike is looked at together.
_COPY = re.compile(r"(item-[0-9a-f]{16})-[0-9]+")


def _family(row: Plain) -> str:
    name: str = row[0]
    if name.startswith("item-") and (copy := _COPY.fullmatch(name)):
        return copy[1]
    return name


def _numbered(row: Plain, copy: int) -> Plain:
    return (f"{row[0]}-{copy}", *row[1:]) if copy else row


def _lacking(name: str, plan: Plan, mapping: Mapping, first: Row) -> Problem | None:
    given = {source.field for source in plan.sources} | {*mapping.constants}
    if not is_tabular(name, mapping):
        given |= {*mapping.columns.values()}
    missing = [field for field in ("language",) if field not in given]
    return lacking(name, missing, mapping, first.fields)


def _place(item: ItemRow) -> str:
    return f"{item.file}, line {item.line}"


def _optional_key(value: Any, field: str, mapping: Mapping) -> str | None:
    return None if is_blank(value) else as_key(value, field, is_trusted=mapping.trust_ids)


def _scenario(value: Any, mapping: Mapping) -> str | None:
    """The scenario, exactly as it is written: spaces around it are part of it."""
    key = _optional_key(value, "scenario", mapping)
    return value if key is not None and isinstance(value, str) else key


def _content(value: Any, field: str) -> Any:
    """A named field: text, or for ``passages`` a list of texts."""
    if field == "passages" and isinstance(value, list):
        return [as_text(passage, field) for passage in value]
    return as_text(value, field)


def _attributes(values: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    named = {field.partition(".")[2]: value for field, value in values.items() if field.startswith("attributes.")}
    return {**rest, **named}
