"""Rows of a dataset file -> items, with their turns, in any of the forms in which files write turns.

Spreadsheets and chat logs often have one row per turn; these rows become one record per dialogue. A mapping asks for
this with fields that begin with ``turn.``: ``turn.speaker``, ``turn.text``, ``turn.name``, ``turn.number`` (the order),
and any other name for a column that differs from turn to turn and is not kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from itertools import groupby, islice
from typing import Any, NamedTuple

import orjson

from analytics.stats.declared.declaring import translatable
from annotation.readers.archives import File
from annotation.readers.columns import ColumnPlan, ColumnPlanner, ColumnUsage, TableFacts, missing_field_problem
from annotation.readers.json import parse_document
from annotation.readers.mapping import Mapping
from annotation.readers.problems import (
    MOST_LISTED,
    FormatError,
    InvalidValue,
    Problem,
    Problems,
    Progress,
    add_counts,
    excerpt,
    in_record,
)
from annotation.readers.reading import FileProgress, is_tabular, join_aligned_files, read_rows
from annotation.readers.rows import (
    SPEAKER_KEYS,
    TEXT_KEYS,
    FileRow,
    KeysRead,
    TextDoubts,
    TextReplacement,
    as_language,
    as_number,
    as_text,
    as_written,
    is_blank,
    matches_any,
    value_at,
    without_value_at,
)
from annotation.readers.spool import DROPPED, KEPT, KeyedRows, PlainRow, Spool
from annotation.readers.words import Field, Setting, Words, either, joined_words

Turn = dict[str, str]
NAME_KEYS = ("name", "from_name", "speaker_name")


def as_turns(value: Any, speakers: dict[str, str], dropped: Counter[str]) -> list[Turn]:
    """Turns from a list of objects, from the same list as JSON, or from one text if ``speakers`` gives the prefixes.

    Speakers keep the word of the source, in lower case. Keys that are not kept are counted in ``dropped``.
    """
    if is_blank(value):
        return []
    if isinstance(value, str):
        value = _split_turns(value, speakers) if speakers else _turns_from_json(value)
    if not isinstance(value, list):
        raise InvalidValue(excerpt(value), Words("a list of turns"), "turns", field="turns")
    return [_turn(number, turn, dropped) for number, turn in enumerate(value, start=1)]


class _Keys(NamedTuple):
    """The keys of a turn that give its speaker, its text and its name."""

    speaker: str | None
    text: str | None
    name: str | None
    dropped: tuple[str, ...]


@lru_cache(maxsize=1024)
def _keys(keys: tuple[str, ...]) -> _Keys:
    """Choose among the keys of a turn. The turns of one file have few different sets of keys; results are cached."""
    speaker, text, name = (
        next((key for key in names if key in keys), None) for names in (SPEAKER_KEYS, TEXT_KEYS, NAME_KEYS)
    )
    return _Keys(speaker, text, name, tuple(key for key in keys if key not in {speaker, text, name}))


def _turn(number: int, turn: Any, dropped: Counter[str]) -> Turn:
    if not isinstance(turn, dict):
        raise InvalidValue(
            excerpt(turn), Words("an object with speaker and text"), "turns", Words("turn %(number)s", number=number)
        )
    keys = _keys(tuple(turn))
    speaker = _turn_text(turn, keys.speaker, SPEAKER_KEYS, number).strip().lower()
    text = _turn_text(turn, keys.text, TEXT_KEYS, number)
    if not speaker:
        raise InvalidValue(
            Words("nothing"),
            Words("who speaks, under %(key)s", key=keys.speaker),
            "turns",
            Words("turn %(number)s", number=number),
        )
    if keys.dropped:
        dropped.update(keys.dropped)
    if keys.name is None or is_blank(turn[keys.name]):
        return {"speaker": speaker, "text": text}
    return {"speaker": speaker, "name": _turn_text(turn, keys.name, NAME_KEYS, number), "text": text}


_TURN = re.compile(r"turn ([0-9]+)")


def _turn_text(turn: dict[str, Any], key: str | None, names: tuple[str, ...], number: int) -> str:
    words = turn.get(key) if key else None
    if not isinstance(words, str):
        text = excerpt(words) if words is not None else Words("nothing")
        expected = Words("text under %(names)s", names=key or either(names))
        raise InvalidValue(text, expected, "turns", Words("turn %(number)s", number=number), field=key or "")
    return words


def _turns_from_json(text: str) -> Any:
    try:
        return parse_document("turns", text)
    except FormatError as error:
        choice = Setting("speakers", f"speakers: in the mapping to split the text ({error.problem.expected})")
        expected = Words("turns as a JSON list, or %(choice)s", choice=choice)
        raise InvalidValue(excerpt(text), expected, "turns", field="turns") from None


def _split_turns(text: str, speakers: dict[str, str]) -> list[Turn]:
    """``USER: hello\\nBOT: hi`` -> two turns. A prefix counts at the start of a line only."""
    first, *pieces = _prefixes(tuple(speakers)).split(text)
    if first.strip() or not pieces:
        raise InvalidValue(
            excerpt(first), Words("one of %(names)s at the start", names=", ".join(speakers)), "turns", field="turns"
        )
    pairs = zip(pieces[::2], pieces[1::2], strict=True)
    turns = [{"speaker": speakers[prefix], "text": words.removeprefix(" ")} for prefix, words in pairs]
    for turn in turns[:-1]:
        # The line end before the next prefix separates turns; it belongs to neither.
        turn["text"] = turn["text"].removesuffix("\n").removesuffix("\r")
    return turns


@lru_cache(maxsize=64)
def _prefixes(speakers: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(speakers, key=len, reverse=True)
    return re.compile(rf"^({'|'.join(re.escape(speaker) for speaker in longest_first)}):", re.MULTILINE)


TURN_PREFIX = "turn."
TURN_NUMBER = "number"
TURNS_COLUMN = "(turns)"
"""The name of the column with the gathered turns."""
MOST_TURNS = 10_000


class _TurnLayout(NamedTuple):
    """The column of the id, the part of a turn that each column gives, value maps, and the columns that may differ."""

    key: str
    parts: dict[str, str]
    values: dict[str, dict[str, str]]
    ignored: tuple[str, ...]


def gather_turns(
    name: str, rows: Iterator[FileRow], mapping: Mapping, problems: Problems
) -> tuple[Iterator[FileRow], Mapping]:
    """The rows of one file with the turns of each dialogue in one row, and the mapping for these rows.

    If the mapping has no ``turn.`` fields, rows and mapping stay unchanged. The rows of a dialogue must follow each
    other and agree in all columns that are not about the turn; otherwise the whole dialogue is refused.
    """
    parts = {column: field.removeprefix(TURN_PREFIX) for column, field in mapping.columns.items() if _is_part(field)}
    if not parts:
        return rows, mapping
    values = {field.removeprefix(TURN_PREFIX): meant for field, meant in mapping.values.items() if _is_part(field)}
    key = next((column for column, field in mapping.columns.items() if field == "id"), None)
    if key is None:
        expected = Words("a column for the id, which the rows of one dialogue have in common")
        problems.add(Problem(name, None, None, Words("turns without an id of their dialogue"), expected, "no_column"))
        next(rows, None)  # so that the caller that counts the columns has seen them
        return iter(()), mapping
    layout = _TurnLayout(key, parts, values, mapping.ignore)
    columns = {column: field for column, field in mapping.columns.items() if column not in parts}
    return _dialogues(name, rows, layout, problems), replace(mapping, columns={**columns, TURNS_COLUMN: "turns"})


def _is_part(field: str) -> bool:
    return field.startswith(TURN_PREFIX)


def _dialogues(name: str, rows: Iterator[FileRow], layout: _TurnLayout, problems: Problems) -> Iterator[FileRow]:
    seen: set[int] = set()
    columns = {f"{TURN_PREFIX}{part}": column for column, part in layout.parts.items()}
    turns = dialogues = 0
    for dialogue_id, group in groupby(rows, key=lambda row: as_written(value_at(row.fields, layout.key))):
        first, *others = islice(group, MOST_TURNS + 1)
        try:
            _require_new(dialogue_id, seen, layout.key)
            yield _dialogue([first, *others], layout)
        except InvalidValue as fault:
            problems.refuse(fault.at(name, first.line, columns.get(fault.field)))
        turns, dialogues = turns + 1 + len(others), dialogues + 1
    problems.note(
        name,
        Words(
            "%(number)s rows are the turns of %(dialogues)s dialogues.", number=f"{turns:,}", dialogues=f"{dialogues:,}"
        ),
    )


def _require_new(dialogue_id: str, seen: set[int], key: str) -> None:
    """Refuse an id that occurred before. Ids are kept as hashes, which need only a few bytes each."""
    if not dialogue_id:
        raise InvalidValue(Words("nothing"), Words("the id of the dialogue in each of its rows"), "no_id", key)
    if hash(dialogue_id) in seen:
        expected = Words("all rows of a dialogue below each other: sort the file by %(column)s", column=key)
        raise InvalidValue(
            Words("rows of %(dialogue)s again, after the rows of other dialogues", dialogue=excerpt(dialogue_id)),
            expected,
            "scattered",
            key,
        )
    seen.add(hash(dialogue_id))


def _dialogue(rows: list[FileRow], layout: _TurnLayout) -> FileRow:
    if len(rows) > MOST_TURNS:
        raise InvalidValue(
            Words("more than %(number)s rows", number=f"{MOST_TURNS:,}"),
            Words("the turns of one dialogue"),
            "too_many_turns",
            layout.key,
        )
    shared = rows[0].fields
    for column in layout.parts:
        shared = without_value_at(shared, column)
    for row in rows[1:]:
        _require_same(rows[0], row, shared, layout)
    turns = [{part: value for part, value in turn.items() if part != TURN_NUMBER} for turn in _in_order(rows, layout)]
    return FileRow(rows[0].line, {**shared, TURNS_COLUMN: turns})


def _require_same(first: FileRow, other: FileRow, shared: dict[str, Any], layout: _TurnLayout) -> None:
    for column, value in shared.items():
        differs = other.fields.get(column) != value
        if differs and not matches_any(column, layout.ignored):
            actual = Words(
                "%(value)s, but %(other)s on line %(line)s",
                value=excerpt(value),
                other=excerpt(other.fields.get(column)),
                line=other.line,
            )
            expected = Words(
                "one %(column)s in all rows of a dialogue; one that differs is ignored, or given %(field)s",
                column=column,
                field=f"{TURN_PREFIX}{column}",
            )
            raise InvalidValue(actual, expected, "mixed_dialogue", column)


def _in_order(rows: list[FileRow], layout: _TurnLayout) -> list[dict[str, Any]]:
    turns = [_turn_of_row(row, layout) for row in rows]
    column = next((column for column, part in layout.parts.items() if part == TURN_NUMBER), None)
    if column is None:
        return turns
    places = [as_number(turn[TURN_NUMBER], f"{TURN_PREFIX}{TURN_NUMBER}") for turn in turns]
    if twice := [place for place, count in Counter(places).items() if count > 1]:
        raise InvalidValue(
            Words("turn %(number)s more than once", number=as_written(twice[0])),
            Words("a number of its own for each turn"),
            "turn_twice",
            column,
        )
    return [turn for _, turn in sorted(zip(places, turns, strict=True), key=lambda numbered: numbered[0])]


def _turn_of_row(row: FileRow, layout: _TurnLayout) -> dict[str, Any]:
    """The parts of a turn; a text that a spreadsheet stored as a number becomes the text that it shows."""
    turn: dict[str, Any] = {}
    for column, part in layout.parts.items():
        value = value_at(row.fields, column)
        value = layout.values.get(part, {}).get(as_written(value), value)
        turn[part] = value if part == TURN_NUMBER else as_text(value, f"{TURN_PREFIX}{part}")
    return turn


NAMED_FIELDS = (
    *("context", "question", "source", "document", "passages", "passage_a", "passage_b", "answer", "reference"),
)


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item of a file, checked, with our names of fields.

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

    ``collapsed``: identical repetitions of an id; ``derived_ids``: items without an id, which got one from their
    content; ``empty``: items without any content, kept because the mapping allows it, the first of them at
    ``empty_at``; ``embedded_ratings``: ratings inside the items (``parse_ratings`` reads them); ``dropped``: keys of
    turns that are not kept, each with its count.
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
    files: Iterable[File], mapping: Mapping, *, progress: Progress | None = None, facts: TableFacts | None = None
) -> ParsedItems:
    """Read items from ``(name, content)`` files that share one mapping. Never raises on bad input.

    ``facts`` counts the values of the columns.
    """
    reader, meter = _ItemReader(mapping), FileProgress(files, progress, facts)
    for name, raw in join_aligned_files(meter.members(reader.problems), mapping, reader.problems):
        rows = read_rows(name, raw, layout=mapping, problems=reader.problems)
        reader.read_file(name, meter.following(rows))
    return reader.result()


def content_digest(item: ItemRow) -> str:
    """SHA-256 (hex) of the content of an item, without its id and its place in the file."""
    return sha256(_content_bytes(item)).hexdigest()


def _content_bytes(item: ItemRow) -> bytes:
    return orjson.dumps([getattr(item, name) for name in _SAID], option=orjson.OPT_SORT_KEYS)


_SAID = ("language", "generator", "scenario", "title", "turns", "fields", "attributes", "content_warning")


class _ItemReader:
    """Reads files into items, one row at a time."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.problems = Problems()
        self.report = ItemReport()
        self._headings = ColumnUsage()
        self._ledger: KeyedRows[ItemRow] = KeyedRows(_restored, _family)
        self._duplicates = 0
        self._replacement, self._doubts = TextReplacement(mapping.replace), TextDoubts()
        self._keys = KeysRead()

    def read_file(self, name: str, rows: Iterator[FileRow]) -> None:
        """Read all rows of one file, or only the first if the file lacks a needed field."""
        rows, mapping = gather_turns(name, rows, self.mapping.of(name), self.problems)
        planner = ColumnPlanner(mapping, self._headings)
        for number, row in enumerate(rows):
            plan = planner.plan(row.fields)
            if number == 0 and (problem := _lacking(name, plan, mapping, row)):
                self.problems.add(problem)
                return
            try:
                self._enter(self._item(plan, row, name, mapping), in_record(row.path, plan.column("id")) or "")
            except InvalidValue as fault:
                column = plan.column(fault.field) if fault.field else None
                if row.path and fault.column and (turn := _TURN.fullmatch(fault.column)):
                    # In a path, turns are counted from 0.
                    key = f".{fault.field}" if fault.field else ""
                    fault.column = f"{plan.column('turns')}[{int(turn[1]) - 1}]{key}"
                self.problems.refuse(fault.at(name, row.line, column, path=row.path))

    def result(self) -> ParsedItems:
        """The items with their final ids, and the report and problems of everything that was read."""
        report, entered = self.report, self._ledger.entered
        self.problems.notes += self._headings.notes(translatable("Columns kept as attributes of the items: %(names)s."))
        self.problems.notes += [*self._replacement.notes("texts"), *self._doubts.notes(), *self._keys.notes()]
        self.problems.left_out = self._headings.left_out(keeps=True)
        items = self._ledger.settle(self._decide, _numbered)
        report.taken, report.refused = len(items), self.problems.refused
        report.read = entered + report.refused - self._duplicates
        return ParsedItems(items, self.problems, report)

    def _item(self, plan: ColumnPlan, row: FileRow, name: str, mapping: Mapping) -> ItemRow:
        values = plan.take(row.fields)
        item = ItemRow(
            external_id=self._optional_key(values.get("id"), "id", mapping) or "",
            language=as_language(values.get("language")),
            generator=self._optional_key(values.get("generator"), "generator", mapping),
            scenario=self._optional_key(values.get("scenario"), "scenario", mapping),
            title=as_text(values.get("title"), "title"),
            turns=as_turns(values.get("turns"), mapping.speakers, self.report.dropped),
            fields={field: _content(values[field], field) for field in NAMED_FIELDS if values.get(field) is not None},
            attributes=_attributes(values, plan.rest(row.fields)),
            content_warning=as_text(values.get("content_warning"), "content_warning"),
            line=row.line,
            file=name,
        )
        if self._replacement:
            item = self._replaced(item)
        self._require_content(item, mapping)
        self.report.embedded_ratings += sum(
            len(value) for field, value in values.items() if field.startswith("ratings.") and isinstance(value, list)
        )
        return item

    def _optional_key(self, value: Any, field: str, mapping: Mapping) -> str | None:
        return None if is_blank(value) else self._keys.key(value, field, is_trusted=mapping.trust_ids)

    def _replaced(self, item: ItemRow) -> ItemRow:
        turns = [{**turn, "text": self._replacement(turn["text"])} for turn in item.turns]
        fields = {name: self._replacement.inside(value) for name, value in item.fields.items()}
        return replace(item, title=self._replacement(item.title), turns=turns, fields=fields)

    def _require_content(self, item: ItemRow, mapping: Mapping) -> None:
        if item.turns or not all(is_blank(text) for text in item.fields.values()):
            return
        if not mapping.allow_empty:
            expected = Words(
                "turns, or one of %(names)s (%(setting)s under “Mapping (YAML)” keeps such items)",
                names=joined_words(map(Field, NAMED_FIELDS)),
                setting="allow_empty: on",
            )
            raise InvalidValue(Words("an item without content"), expected, "empty_item")
        self.report.empty += 1
        if len(self.report.empty_at) < MOST_LISTED:
            self.report.empty_at.append(_place(item))

    def _enter(self, item: ItemRow, column: str) -> None:
        # The texts that annotators and judges read.
        texts = [item.title, *[turn["text"] for turn in item.turns]]
        for value in item.fields.values():
            texts += value if isinstance(value, list) else [value]
        self._doubts.see(texts, item.file, item.line)
        content = _content_bytes(item)
        digest, derived = sha256(content).hexdigest(), not item.external_id
        # An id from the content begins with a word, so that no spreadsheet takes it for a number.
        name = f"item-{digest[:16]}" if derived else item.external_id
        rest = [getattr(item, part) for part in ItemRow.__slots__[1:]]
        self._ledger.extend([(name, *rest, column, digest, derived)], len(content))
        self.report.derived_ids += derived
        add_counts(self.report.languages, {item.language: 1})
        add_counts(self.report.generators, {item.generator or "": 1})

    def _decide(self, rows: list[PlainRow]) -> list[int]:
        """What becomes of items with the same id: identical copies without an id of their own are numbered; a second
        item with the same given id is dropped if its content is equal, and is a problem otherwise."""
        copies: Counter[str] = Counter()
        taken: dict[str, PlainRow] = {}
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

    def _leave_out(self, row: PlainRow, earlier: PlainRow) -> None:
        item, first = _restored(row), _restored(earlier)
        add_counts(self.report.languages, {item.language: -1})
        add_counts(self.report.generators, {item.generator or "": -1})
        if row[-2] == earlier[-2]:
            self.report.collapsed += 1
            return
        text = Words(
            "%(item)s, which is another item in %(place)s", item=excerpt(item.external_id), place=_place(first)
        )
        expected = Words(
            "an id of its own for each item, or the same item: they differ in %(names)s",
            names=", ".join(_differing(item, first)),
        )
        column = row[-3]
        self.problems.refuse(Problem(item.file, item.line, column, text, expected, "duplicate_id"))
        self._duplicates += 1


def _differing(item: ItemRow, other: ItemRow) -> list[str]:
    """The first few fields in which two items differ."""
    named = ("language", "generator", "scenario", "title", "turns", "content_warning")
    parts = [name for name in named if getattr(item, name) != getattr(other, name)]
    for ours, theirs in ((item.fields, other.fields), (item.attributes, other.attributes)):
        parts += [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return [*parts[:MOST_LISTED], *(["…"] if len(parts) > MOST_LISTED else [])]


def _restored(row: PlainRow) -> ItemRow:
    return ItemRow(*row[:-3])


# The derived id of an item may equal the given id of another: ids with the same beginning are compared together.
_COPY = re.compile(r"(item-[0-9a-f]{16})-[0-9]+")


def _family(row: PlainRow) -> str:
    name: str = row[0]
    if name.startswith("item-") and (copy := _COPY.fullmatch(name)):
        return copy[1]
    return name


def _numbered(row: PlainRow, copy: int) -> PlainRow:
    return (f"{row[0]}-{copy}", *row[1:]) if copy else row


def _lacking(name: str, plan: ColumnPlan, mapping: Mapping, first: FileRow) -> Problem | None:
    given = {source.field for source in plan.sources} | {*mapping.constants}
    if not is_tabular(name, mapping):
        given |= {*mapping.columns.values()}
    missing = [field for field in ("language",) if field not in given]
    return missing_field_problem(name, missing, mapping, first.fields)


def _place(item: ItemRow) -> str:
    return Words("%(file)s, line %(line)s", file=item.file, line=item.line)


def _content(value: Any, field: str) -> Any:
    """A named field: text, or for ``passages`` a list of texts."""
    if field == "passages" and isinstance(value, list):
        return [as_text(passage, field) for passage in value]
    return as_text(value, field)


def _attributes(values: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    named = {field.partition(".")[2]: value for field, value in values.items() if field.startswith("attributes.")}
    return {**rest, **named}
