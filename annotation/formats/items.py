"""Rows of a dataset file -> items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, BinaryIO

import orjson

from annotation.formats.fields import Plan, Planner, as_key, as_language, as_text, is_blank, lacking
from annotation.formats.mapping import Mapping
from annotation.formats.problems import Problem, Problems, Unfit, excerpt
from annotation.formats.reading import File, is_tabular, read
from annotation.formats.rows import Row
from annotation.formats.turns import as_turns

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
    ``empty`` places of items without any content that were kept because the mapping allows it;
    ``embedded_ratings`` ratings that stand inside the items (``parse_ratings`` reads them);
    ``dropped`` keys of turns that are not kept, with how often.
    """

    read: int = 0
    taken: int = 0
    collapsed: int = 0
    refused: int = 0
    derived_ids: int = 0
    embedded_ratings: int = 0
    empty: list[str] = field(default_factory=list)
    languages: Counter[str] = field(default_factory=Counter)
    generators: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ParsedItems:
    """Items of one or several files; to be stored only when there are no problems."""

    items: list[ItemRow]
    problems: Problems
    report: ItemReport


def parse_items(files: Iterable[File], mapping: Mapping) -> ParsedItems:
    """Read items from ``(name, content)`` files that share one mapping. Never raises on bad input."""
    reader = _ItemReader(mapping)
    for name, raw in files:
        reader.read_file(name, raw)
    return reader.result()


def content_digest(item: ItemRow) -> str:
    """SHA-256 (hex) of everything an item says, whatever its id and its place in the file."""
    said = [getattr(item, name) for name in _SAID]
    return sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()


_SAID = ("language", "generator", "scenario", "title", "turns", "fields", "attributes", "content_warning")


class _ItemReader:
    """Reads files into items, one row at a time."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.problems = Problems()
        self.report = ItemReport()
        self.items: list[ItemRow] = []
        self._entered = 0
        self._places: dict[str, tuple[str, str]] = {}  # external id -> content digest, place
        self._copies: Counter[str] = Counter()  # content digest of items without an id -> how often

    def read_file(self, name: str, raw: bytes | BinaryIO) -> None:
        planner = Planner(self.mapping)
        for number, row in enumerate(read(name, raw, layout=self.mapping, problems=self.problems)):
            plan = planner.plan(row.fields)
            if number == 0 and (problem := self._lacking(name, plan)):
                self.problems.add(problem)
                return
            try:
                self._enter(self._item(plan, row, name))
                self._entered += 1
            except Unfit as fault:
                column = plan.column(fault.field) if fault.field else None
                self.problems.refuse(fault.at(name, row.line, column))

    def result(self) -> ParsedItems:
        report = self.report
        report.taken, report.refused = len(self.items), self.problems.refused
        report.read = self._entered + report.refused
        return ParsedItems(self.items, self.problems, report)

    def _lacking(self, name: str, plan: Plan) -> Problem | None:
        given = {source.field for source in plan.sources} | {*self.mapping.constants}
        if not is_tabular(name, self.mapping):
            given |= {*self.mapping.columns.values()}
        return lacking(name, [field for field in ("language",) if field not in given])

    def _item(self, plan: Plan, row: Row, name: str) -> ItemRow:
        values = plan.take(row.fields)
        item = ItemRow(
            external_id="" if is_blank(values.get("id")) else as_key(values["id"], "id"),
            language=as_language(values.get("language")),
            generator=_optional_key(values.get("generator"), "generator"),
            scenario=_optional_key(values.get("scenario"), "scenario"),
            title=as_text(values.get("title"), "title"),
            turns=as_turns(values.get("turns"), self.mapping.speakers, self.report.dropped),
            fields={field: _content(values[field], field) for field in NAMED_FIELDS if values.get(field) is not None},
            attributes=_attributes(values, plan.rest(row.fields)),
            content_warning=as_text(values.get("content_warning"), "content_warning"),
            line=row.line,
            file=name,
        )
        self._require_content(item)
        self.report.embedded_ratings += sum(
            len(value) for field, value in values.items() if field.startswith("ratings.") and isinstance(value, list)
        )
        return item

    def _require_content(self, item: ItemRow) -> None:
        if item.turns or not all(is_blank(text) for text in item.fields.values()):
            return
        if not self.mapping.allow_empty:
            expected = f"turns, or one of {', '.join(NAMED_FIELDS)} (allow_empty: on in the mapping keeps such items)"
            raise Unfit("an item without content", expected, "empty_item")
        self.report.empty.append(_place(item))

    def _enter(self, item: ItemRow) -> None:
        digest = content_digest(item)
        if not item.external_id:
            item = replace(item, external_id=self._derived(digest))
            self.report.derived_ids += 1
        earlier = self._places.get(item.external_id)
        if earlier is None:
            self._places[item.external_id] = (digest, _place(item))
            self.items.append(item)
            self.report.languages[item.language] += 1
            self.report.generators[item.generator or ""] += 1
        elif earlier[0] == digest:
            self.report.collapsed += 1
        else:
            found = f"{excerpt(item.external_id)}, which is another item in {earlier[1]}"
            raise Unfit(found, "an id of its own for each item", "duplicate_id", field="id")

    def _derived(self, digest: str) -> str:
        """An id from the content; copies, which nothing tells apart, are numbered. It begins with a word so that no
        spreadsheet takes it for a number."""
        self._copies[digest] += 1
        copy = self._copies[digest]
        return f"item-{digest[:16]}" + (f"-{copy}" if copy > 1 else "")


def _place(item: ItemRow) -> str:
    return f"{item.file}, line {item.line}"


def _optional_key(value: Any, field: str) -> str | None:
    return None if is_blank(value) else as_key(value, field)


def _content(value: Any, field: str) -> Any:
    """A named field: text, or for ``passages`` a list of texts."""
    if field == "passages" and isinstance(value, list):
        return [as_text(passage, field) for passage in value]
    return as_text(value, field)


def _attributes(values: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    named = {field.partition(".")[2]: value for field, value in values.items() if field.startswith("attributes.")}
    return {**rest, **named}
