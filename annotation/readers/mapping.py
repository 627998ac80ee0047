"""The mapping of a file's columns to our fields, written in YAML or on the command line, or guessed; column names.

The shape of a mapping is its steps by their names, and those steps that look at several rows.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from difflib import get_close_matches
from itertools import islice
from typing import Any

import yaml

from annotation.readers.documents import Node, as_document, load_document, names_of, switch_of, word_of, words_of
from annotation.readers.encoding import codec_called
from annotation.readers.formats import FORMATS_BY_NAME
from annotation.readers.problems import FormatError, InvalidValue, Problem, Problems, excerpt, shortened_list
from annotation.readers.rows import (
    FileRow,
    as_written,
    case_folded,
    match_file_name,
    matches_any,
    replaced_pattern,
    value_at,
)
from annotation.readers.steps import (
    COUNT,
    NAMES,
    WORD,
    WORDS,
    Compose,
    Digest,
    Entries,
    Explode,
    Extract,
    Fields,
    First,
    Flatten,
    Keep,
    LookUp,
    Match,
    Melt,
    Pair,
    Parse,
    PersonScores,
    Require,
    ShapeStep,
    Single,
    Split,
    Transcript,
    Transpose,
    Where,
    as_list,
)
from annotation.readers.words import Setting, Words

MOST_ROWS = 10_000  # the header row must be one of these


@dataclass(frozen=True)
class Number(ShapeStep):
    """``number: column``: numbers the records in their order, from ``start``. With ``within``, the records of each
    value of that column have their own numbers."""

    number: str = field(metadata=WORD)
    within: str = field(default="", metadata=WORD)
    start: int = field(default=1, metadata=COUNT)

    def rows(self, name: str, rows: Iterator[FileRow], problems: Problems) -> Iterator[FileRow]:
        next_ones: dict[str, int] = {}
        for row in rows:
            group = as_written(value_at(row.fields, self.within)) if self.within else ""
            next_ones[group] = next_ones.get(group, self.start - 1) + 1
            yield row.with_fields({**row.fields, self.number: next_ones[group]})


@dataclass(frozen=True)
class Every(ShapeStep):
    """``every: 3``: each 3 successive rows are a group about one thing. They must agree in the columns ``same``;
    ``position`` and ``group`` name columns for the place in the group and the number of the group, from 1."""

    every: int = field(metadata=COUNT)
    same: tuple[str, ...] = field(default=(), metadata=NAMES)
    position: str = field(default="position", metadata=WORD)
    group: str = field(default="group", metadata=WORD)

    def rows(self, name: str, rows: Iterator[FileRow], problems: Problems) -> Iterator[FileRow]:
        run: list[FileRow] = []
        number = 0
        for row in rows:
            run.append(row)
            if len(run) < self.every:
                continue
            number += 1
            yield from self._run(name, run, number, problems)
            run = []
        short = InvalidValue(
            Words("%(number)s rows at the end", number=len(run)),
            Words("%(number)s rows for each of them", number=self.every),
            "short_run",
        )
        for row in run:
            problems.refuse(short.at(name, row.line))

    def _run(self, name: str, run: list[FileRow], number: int, problems: Problems) -> Iterator[FileRow]:
        if fault := self._fault(run):
            for row in run:
                problems.refuse(fault.at(name, row.line))
            return
        for place, row in enumerate(run, start=1):
            yield row.with_fields({**row.fields, self.position: place, self.group: number})

    def _fault(self, run: list[FileRow]) -> InvalidValue | None:
        first = run[0]
        for row in run[1:]:
            for column in self.same:
                value, other = value_at(first.fields, column), value_at(row.fields, column)
                if value != other:
                    text = Words(
                        "%(value)s on line %(line)s where line %(first)s has %(other)s",
                        value=excerpt(other),
                        line=row.line,
                        first=first.line,
                        other=excerpt(value),
                    )
                    return InvalidValue(
                        text,
                        Words("one %(column)s in %(number)s rows in a row", column=column, number=self.every),
                        "mixed_run",
                        column,
                    )
        return None


@dataclass(frozen=True)
class Total(ShapeStep):
    """``total: score``: one row for all rows that are equal in the columns ``by``, with the sum of the numbers in the
    column ``of``. ``weights`` gives a number for each text in ``of``; `*` matches any text; the first match counts.

    The texts in the columns ``join`` of rows that add to the sum are joined, each on its own line. The lists in the
    columns ``collect`` of all rows become one list. The other columns are left out. The step yields its rows after the
    whole file has been read, in the order of the first row of each group.
    """

    total: str = field(metadata=WORD)
    of: str = field(metadata=WORD)
    by: tuple[str, ...] = field(metadata=NAMES)
    weights: dict[str, str] = field(default_factory=dict, metadata=WORDS)
    join: tuple[str, ...] = field(default=(), metadata=NAMES)
    collect: tuple[str, ...] = field(default=(), metadata=NAMES)

    def rows(self, name: str, rows: Iterator[FileRow], problems: Problems) -> Iterator[FileRow]:
        groups: dict[tuple[str, ...], _Group] = {}
        for row in rows:
            key = tuple(as_written(value_at(row.fields, column)) for column in self.by)
            group = groups.setdefault(key, _Group(row.with_fields({})))
            try:
                weight = self._weight(value_at(row.fields, self.of))
            except InvalidValue as fault:
                problems.refuse(fault.at(name, row.line))
                group.is_whole = False
                continue
            group.score += weight
            for column in self.collect:
                group.lists.setdefault(column, []).extend(as_list(value_at(row.fields, column), column))
            if weight:
                group.texts.append([as_written(value_at(row.fields, column)) for column in self.join])
        for key, group in groups.items():
            if group.is_whole:
                texts = ("\n".join(filter(None, column)) for column in zip(*group.texts, strict=True))
                joined = dict.fromkeys(self.join, "") | dict(zip(self.join, texts, strict=False))
                yield group.first.with_fields(
                    dict(zip(self.by, key, strict=True)) | {self.total: float(group.score)} | joined | group.lists
                )

    def _weight(self, value: object) -> Decimal:
        """The number that a row adds to the sum; a blank adds nothing. Raises ``InvalidValue``."""
        text = as_written(value)
        if self.weights:
            words = (words for words in self.weights if matches_any(case_folded(text), [case_folded(words)]))
            if (fitting := next(words, None)) is None:
                raise InvalidValue(
                    excerpt(text),
                    Words("one of %(names)s in %(column)s", names=", ".join(self.weights), column=self.of),
                    "weight",
                    self.of,
                )
            text = self.weights[fitting]
        if text and re.fullmatch(r"[+-]?\d{1,15}(\.\d{1,15})?", text, re.ASCII) is None:
            raise InvalidValue(excerpt(text), Words("a number in %(column)s", column=self.of), "not_a_number", self.of)
        return Decimal(text or 0)


@dataclass(slots=True)
class _Group:
    """The rows that become one row: the place of the first, their sum, and the texts of the rows that add to it."""

    first: FileRow
    score: Decimal = Decimal(0)
    texts: list[list[str]] = field(default_factory=list)
    lists: dict[str, list[Any]] = field(default_factory=dict)
    is_whole: bool = True


@dataclass(frozen=True)
class Spans(ShapeStep):
    """``spans: evidence``: a new column with the marked texts of the columns ``of``, each with the name of its field.

    A mark begins with ``open`` and ends with ``close``. Offsets count the text without these markers, as `replace`
    would store it. ``label`` and ``severity`` are columns. An ``open`` without a ``close``, or the reverse, is no mark.
    """

    spans: str = field(metadata=WORD)
    of: dict[str, str] = field(metadata=WORDS)
    open: str = field(default="<v>", metadata=WORD)
    close: str = field(default="</v>", metadata=WORD)
    label: str = field(default="", metadata=WORD)
    severity: str = field(default="", metadata=WORD)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        named = {"label": self.label, "severity": self.severity}
        beside = {name: as_written(value_at(record, column)) for name, column in named.items() if column}
        found = [
            {"field": part, "start": start, "end": end, "quote": quote, **beside}
            for column, part in self.of.items()
            for start, end, quote in self._marked(as_written(value_at(record, column)))
        ]
        yield {**record, self.spans: found}

    @property
    def made_from(self) -> tuple[str, ...]:
        return (*self.of, *filter(None, (self.label, self.severity)))

    def _marked(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and text of each mark; the positions are counted in the text without markers."""
        plain, begins = "", None
        for piece in re.split(f"({re.escape(self.open)}|{re.escape(self.close)})", text):
            if piece == self.open:
                begins = len(plain)
            elif piece == self.close:
                if begins is not None and begins < len(plain):
                    yield begins, len(plain), plain[begins:]
                begins = None
            else:
                plain += piece


KINDS: tuple[type[ShapeStep], ...] = (
    *(Keep, Parse, Split, Single, Transpose, Flatten, Explode, Entries, Pair, LookUp, Match, First, Melt, PersonScores),
    *(Extract, Compose, Number, Every, Total, Spans, Digest, Transcript, Where, Require),
)
BY_NAME: dict[str, type[ShapeStep]] = {fields(kind)[0].name: kind for kind in KINDS}


def steps_of(node: Node) -> tuple[ShapeStep, ...]:
    """The steps of a mapping. Raises ``FormatError``."""
    if not isinstance(node.value, list):
        raise FormatError(node.problem(Words("a list of steps: %(names)s", names=", ".join(BY_NAME)), "shape"))
    return tuple(_step(child) for child in node.value)


def _step(node: Node) -> ShapeStep:
    members = dict(node.members()) if isinstance(node.value, dict) else {}
    kinds = [name for name in members if name in BY_NAME]
    if len(kinds) != 1:
        raise FormatError(node.problem(Words("one step of %(names)s", names=", ".join(BY_NAME)), "shape"))
    kind = BY_NAME[kinds[0]]
    known = {option.name: option for option in fields(kind)}
    for name, child in members.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
            expected = (
                Words("did you mean %(name)s?", name=near[0])
                if near
                else Words("one of %(names)s", names=", ".join(known))
            )
            raise FormatError(
                child.problem(
                    expected, "unknown_key", Words("the key %(key)s in %(kind)s", key=excerpt(name), kind=kinds[0])
                )
            )
    return kind(**{name: known[name].metadata["reader"](child) for name, child in members.items()})


@dataclass(frozen=True, slots=True)
class Mapping:
    """Which columns give which fields, constants, value maps, and the layout of the file. Immutable; as YAML and back.

    ``columns``: column (or ``outer.inner`` path; ``(key)`` = the JSON key of a record or of its list) -> field.
    Fields of a dataset: id language generator scenario title turns content_warning, the named fields, ``attributes``
    (an object, spread) and ``attributes.NAME``. Fields of ratings and verdicts: item rater | judge criterion score
    rationale evidence (spans, docs/evidence.md) seconds language scale_max | repeat (from 0) repeat_number (from 1)
    variant generator reply prompt served_model tokens_in tokens_out cost (USD) latency (seconds), ``score.CRITERION``
    and ``rationale.CRITERION`` for one column per criterion, ``ratings.CRITERION`` for a list of {rater, score} inside
    an item.
    ``constants``: field -> value if no column gives it or its cell is blank. ``values``: field -> {value in the file:
    its meaning}. ``ignore``: columns that are dropped; ``*`` matches any text. ``unmapped``: columns that give no field
    even if a guess gives them one: of items they are attributes, otherwise they are not stored. ``speakers``: prefix ->
    speaker, for turns written as one text. ``shape``: the steps that convert records to rows before columns are mapped
    (`steps`).
    ``files``: pattern of a file name -> mapping of those files only; the parts in braces become columns.
    ``aligned``: pattern of a file's name -> column, for files that belong together line by line. ``positional``: raters
    are slots, not persons.
    ``records``: the path of the list of records in a JSON document; ``beside``: paths outside of this list; their
    values are in every record. ``shared``: pattern of a file's name -> paths in that one JSON document, whose values
    are in every row of the files that belong to it; only together with ``aligned``.
    ``header_row``: the row with the names of the columns, counted from 1 as in an editor or spreadsheet; the rows above
    it are skipped. ``header``: the names of the columns; together with ``header_row`` they replace the names there.
    ``short_rows``: rows may lack their last cells, which are then blank. ``trust_ids``: ids that look as if a
    spreadsheet had rounded them (``7e1``) are correct. ``decimal_comma``: numbers are written as ``3,5``.
    ``replace``: text -> its replacement in the texts of items and in rationales (`rows.replaced_pattern`).
    ``encoding``: the encoding of a text file, UTF-8 by default. ``sheet``: the sheet of a workbook that has the rows.
    """

    columns: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    unmapped: tuple[str, ...] = ()
    speakers: dict[str, str] = field(default_factory=dict)
    shape: tuple[ShapeStep, ...] = ()
    files: dict[str, Mapping] = field(default_factory=dict)
    aligned: dict[str, str] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)
    positional: bool = False
    allow_empty: bool = False
    format: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    records: str | None = None
    beside: tuple[str, ...] = ()
    delimiter: str | None = None
    quoting: bool = True
    line_breaks: bool = False
    header: tuple[str, ...] = ()
    header_row: int | None = None
    short_rows: bool = False
    trust_ids: bool = False
    decimal_comma: bool = False
    replace: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_yaml(cls, name: str, text: str | bytes) -> Mapping:
        """Read a saved mapping. Raises ``FormatError`` naming the line that is wrong."""
        return cls.from_document(load_document(name, text.encode() if isinstance(text, str) else text))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Mapping:
        """The mapping from the values that ``as_dict`` returned. Raises ``FormatError``."""
        return cls.from_document(as_document(values))

    @classmethod
    def from_document(cls, document: Node) -> Mapping:
        """The mapping in a part of a document. Raises ``FormatError``."""
        if not isinstance(document.value, dict):
            raise FormatError(
                document.problem(Words("named values such as %(names)s", names=", ".join(_READERS)), "shape")
            )
        values = {key: _reader(key, node)(node) for key, node in document.members() if node.value is not None}
        return cls(**values)

    @classmethod
    def from_pairs(cls, columns: Iterable[str] = (), constants: Iterable[str] = ()) -> Mapping:
        """Read ``column=field`` and ``field=value`` pairs as typed on a command line. Raises ``FormatError``.

        A column or a value may contain an equals sign; a field never does.
        """
        of_columns = [_pair("--map", "column=field", pair, pair.rpartition("=")) for pair in columns]
        of_fields = [_pair("--set", "field=value", pair, pair.partition("=")) for pair in constants]
        return cls(columns=dict(of_columns), constants=dict(of_fields))

    def as_yaml(self) -> str:
        """The mapping as YAML text, which ``from_yaml`` reads back to an equal mapping."""
        return yaml.safe_dump(self.as_dict(), allow_unicode=True, sort_keys=False, width=120)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, in the order of the YAML; values that are not set are left out."""
        return {name: _plain(getattr(self, name)) for name in _READERS if getattr(self, name) != _DEFAULTS[name]}

    def updated(self, other: Mapping) -> Mapping:
        """This mapping, with every value that ``other`` sets in place of its own."""
        changes: dict[str, Any] = {}
        for name in _READERS:
            ours, theirs = getattr(self, name), getattr(other, name)
            if theirs != _DEFAULTS[name]:
                changes[name] = {**ours, **theirs} if isinstance(ours, dict) else theirs
        return replace(self, **changes)

    def of(self, name: str) -> Mapping:
        """The mapping of one file: the general mapping, updated by the matching sections of ``files``. Idempotent."""
        merged = self
        for pattern, section in self.files.items():
            if match_file_name(pattern, name) is not None:
                merged = merged.updated(section)
        return merged

    def columns_from_name(self, name: str) -> dict[str, str]:
        """The columns and values that the file name gives to every row of the file."""
        columns: dict[str, str] = {}
        for pattern in self.files:
            columns |= match_file_name(pattern, name) or {}
        return columns


def _pair(option: str, form: str, typed: str, parts: tuple[str, str, str]) -> tuple[str, str]:
    left, right = parts[0].strip(), parts[2].strip()
    if not left or not right:
        raise FormatError(Problem(option, None, None, excerpt(typed), form, "mapping"))
    return left, right


def _plain(value: Any) -> Any:
    """A part of a mapping as plain values."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.as_dict() if isinstance(value, Mapping | ShapeStep) else value


_DEFAULTS = {mapping_field.name: getattr(Mapping(), mapping_field.name) for mapping_field in fields(Mapping)}


def _reader(key: str, node: Node) -> Callable[[Node], Any]:
    if key in _READERS:
        return _READERS[key]
    near = get_close_matches(key, _READERS, 1)
    hint = (
        Words("did you mean %(name)s?", name=near[0]) if near else Words("one of %(names)s", names=", ".join(_READERS))
    )
    raise FormatError(node.problem(hint, "unknown_key", Words("the key %(key)s", key=excerpt(key))))


def _value_maps(node: Node) -> dict[str, dict[str, str]]:
    if not isinstance(node.value, dict):
        raise FormatError(node.problem(Words("an object: field -> {found: meant}"), "shape"))
    return {name: words_of(child) for name, child in node.members()}


def _sections(node: Node) -> dict[str, Mapping]:
    if not isinstance(node.value, dict):
        raise FormatError(node.problem(Words("an object: pattern of a file name -> mapping of those files"), "shape"))
    return {pattern: _section(child) for pattern, child in node.members()}


def _section(node: Node) -> Mapping:
    if node.value is None:
        return Mapping()
    section = Mapping.from_document(node)
    if section.files or section.aligned or section.shared:
        raise FormatError(node.problem(Words("the mapping of one file, without files, aligned and shared"), "shape"))
    return section


def _replacements(node: Node) -> dict[str, str]:
    for text in (replacements := words_of(node)):
        try:
            replaced_pattern(text)
        except ValueError as error:
            raise FormatError(node.problem(error.args[0], "replace", excerpt(text))) from None
    return replacements


def _format_name(node: Node) -> str:
    if node.text not in FORMATS_BY_NAME:
        raise FormatError(node.problem(Words("one of %(names)s", names=", ".join(FORMATS_BY_NAME)), "format"))
    return node.text


def _encoding(node: Node) -> str:
    if codec_called(node.text) is None:
        raise FormatError(node.problem(Words("an encoding such as utf-8, windows-1252 or utf-16-le"), "encoding"))
    return node.text


def _row_number(node: Node) -> int:
    if not (node.text.isascii() and node.text.isdecimal()) or not 0 < int(node.text) <= MOST_ROWS:
        raise FormatError(
            node.problem(Words("the number of a row, from 1 to %(number)s", number=f"{MOST_ROWS:,}"), "shape")
        )
    return int(node.text)


def _delimiter(node: Node) -> str:
    text = {"tab": "\t", "\\t": "\t"}.get(node.text, node.text)
    if len(text) != 1 or text in '"\r\n ':
        raise FormatError(node.problem(Words("one character, or tab"), "delimiter"))
    return text


_READERS: dict[str, Callable[[Node], Any]] = {
    "format": _format_name,
    "encoding": _encoding,
    "sheet": word_of,
    "records": word_of,
    "beside": names_of,
    "delimiter": _delimiter,
    "quoting": switch_of,
    "line_breaks": switch_of,
    "header": names_of,
    "header_row": _row_number,
    "short_rows": switch_of,
    "trust_ids": switch_of,
    "decimal_comma": switch_of,
    "replace": _replacements,
    "columns": words_of,
    "constants": words_of,
    "values": _value_maps,
    "ignore": names_of,
    "unmapped": names_of,
    "speakers": words_of,
    "shape": steps_of,
    "files": _sections,
    "aligned": words_of,
    "shared": words_of,
    "positional": switch_of,
    "allow_empty": switch_of,
}


# --- names of columns -------------------------------------------------------------------------------------------------
ROWS_BELOW_HEADER = 200  # rows
_NAME = re.compile(r"\(column ([0-9]+)\)")


def unnamed_column(number: int) -> str:
    """The name of the column at a place, from 1, if the header gives it no name."""
    return f"(column {number})"


def is_unnamed(column: str) -> bool:
    return _NAME.fullmatch(column) is not None


def unnamed_in_mapping(mapping: Mapping) -> frozenset[str]:
    """The columns without a name that a mapping mentions."""
    columns = (*mapping.columns, *mapping.ignore, *mapping.unmapped)
    return frozenset(column for column in columns if is_unnamed(column))


def unnamed_columns_read(
    name: str, line: int, rows: Collection[Iterable[int]], named: Collection[int], mapped: Iterable[str]
) -> list[int]:
    """The places, from 1, of the columns without a name that are read because the mapping mentions them.

    ``rows`` are the first rows, each as the places of its filled cells. Raises ``FormatError`` if more than half of
    them fill another unnamed column: the mapping must give its name, or the header row.
    """
    wanted = {int(match[1]) for column in mapped if (match := _NAME.fullmatch(column))}.difference(named)
    counts = Counter(place for row in rows for place in row)
    filled = [place for place, count in sorted(counts.items()) if 2 * count > len(rows)]
    if new := [place for place in filled if place not in wanted and place not in named]:
        column = unnamed_column(new[0])
        expected = Words(
            "a name for each column; or what %(column)s gives, or %(choice)s",
            column=column,
            choice=Setting("header_row", "header_row: NUMBER, in the mapping"),
        )
        raise FormatError(
            Problem(name, line, column, Words("no name for column %(number)s", number=new[0]), expected, "header")
        )
    return sorted(wanted)


ROWS_LOOKED_AT = 50
MOST_NOTED = 2_000
_EMAIL = re.compile(r"[^\s@<>(),;:\"]+@[^\s@<>(),;:\"]+\.[^\W\d_]{2,}")


def watch_headings(name: str, rows: Iterator[FileRow], layout: Mapping, problems: Problems) -> Iterator[FileRow]:
    """Yield the rows unchanged; after `ROWS_LOOKED_AT` rows, note the columns with an e-mail address in their names."""
    columns: dict[str, None] = {}
    for row in islice(rows, ROWS_LOOKED_AT):
        if len(columns) < MOST_NOTED:
            columns.update(dict.fromkeys(columns_of([row.fields])))
        yield row
    note_addresses(name, columns, layout, problems)
    yield from rows


def note_addresses(name: str, columns: Iterable[str], layout: Mapping, problems: Problems) -> None:
    """Note the columns with an e-mail address in their names."""
    if called := [column for column in _with_addresses(columns) if not _is_settled(column, layout)]:
        problems.note(name, _about_columns(called))


def columns_of(rows: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The columns of some rows in the order in which they appear; objects are opened one level deep."""
    columns: dict[str, None] = {}
    for row in rows:
        for name, value in row.items():
            inner = [f"{name}.{key}" for key in value] if isinstance(value, dict) else [name]
            columns.update(dict.fromkeys(inner))
    return tuple(columns)


def _address(text: str) -> str:
    """The e-mail address in a text, or ""."""
    match = _EMAIL.search(text)
    return match[0] if match else ""


def _with_addresses(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(_address, texts)))


def _is_settled(column: str, layout: Mapping) -> bool:
    """Whether the mapping leaves the column out, maps it to a field, or gives the person a code."""
    mapped = layout.columns.get(column)
    coded = any(person and person in column for person in layout.values.get("rater", {}))
    return coded or matches_any(column, layout.ignore) or (mapped is not None and not _address(mapped))


def _about_columns(columns: list[str]) -> str:
    return Words(
        "the names of these columns are e-mail addresses: %(names)s. Before you store them, give each "
        "person a code under “Mapping (YAML)”, for example %(codes)s. Or map the column to another "
        "field, or leave it out, as in ignore: [%(first)s].",
        names=shortened_list(map(excerpt, columns)),
        codes=_code(_address(columns[0])),
        first=json.dumps(columns[0], ensure_ascii=False),
    )


def _code(person: str) -> str:
    return f"values: {{rater: {{{json.dumps(person, ensure_ascii=False)}: rater-1}}}}"


def note_on_rater_addresses(raters: Iterable[str]) -> list[str]:
    """A note on raters who are called by their e-mail addresses, if there are any."""
    called = _with_addresses(raters)
    if not called:
        return []
    return [
        Words(
            "These raters are called by e-mail addresses: %(names)s. What raters are called is shown here "
            "and stands in exports: give each a code under “Mapping (YAML)”, as in %(codes)s.",
            names=shortened_list(map(excerpt, called)),
            codes=_code(called[0]),
        )
    ]
