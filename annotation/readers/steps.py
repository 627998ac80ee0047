"""The steps that reshape records one by one, in the order in which a mapping's ``shape`` names them.

A step converts rows to rows. If it cannot read a value, the whole record is refused, with its line and column. Records
that it leaves out on purpose are counted in a note.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import lru_cache
from typing import Any

import orjson

from annotation.readers.documents import count_of, names_of, switch_of, word_of, words_of
from annotation.readers.json import parse_document, require_storable
from annotation.readers.problems import FormatError, InvalidValue, Problems, excerpt
from annotation.readers.rows import (
    KEY_COLUMN,
    SPEAKER_KEYS,
    TEXT_KEYS,
    FileRow,
    as_written,
    case_folded,
    fill_template,
    hole_names,
    is_blank,
    key_path,
    match_pattern,
    matches_any,
    value_at,
    with_value_at,
    without_value_at,
)
from annotation.readers.words import Words, either

_TELLING = ("number", "truncated", "nesting", "duplicate_key")  # faults that only a text meant as JSON has


def as_parsed(text: str, column: str) -> Any:
    """The value of a text of JSON, or of lists and objects as Python writes them. Raises ``InvalidValue``."""
    try:
        return parse_document(column, text)
    except FormatError as error:
        fault = error.problem
    try:
        value = _listed(ast.literal_eval(text.strip()))
        require_storable(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        if text.lstrip().startswith("{") and fault.code in _TELLING:
            raise InvalidValue(fault.found, fault.expected, fault.code, column) from None
        expected = Words("JSON, or a list as Python writes it (%(error)s)", error=fault.expected)
        raise InvalidValue(excerpt(text), expected, "not_a_list", column) from None
    return value


def _listed(value: Any) -> Any:
    """The value as JSON has it: tuples become lists; raises ``ValueError`` for bytes, sets and complex numbers."""
    if isinstance(value, list | tuple):
        return [_listed(item) for item in value]
    if isinstance(value, dict):
        return {_literal_key(key): _listed(item) for key, item in value.items()}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(value)


def _literal_key(key: Any) -> str:
    if isinstance(key, str | int):
        return str(key)
    raise ValueError(key)


def as_list(value: Any, column: str) -> list[Any]:
    """The value as a list: a list, a text of one, or a blank, which is an empty list. Raises ``InvalidValue``."""
    if isinstance(value, str) and value.strip():
        value = as_parsed(value, column)
    if is_blank(value):
        return []
    if not isinstance(value, list):
        raise InvalidValue(excerpt(value), Words("a list in %(column)s", column=column), "not_a_list", column)
    return value


def as_object(value: Any, column: str) -> dict[str, Any]:
    """The value as an object: an object, a text of one, or a blank (an empty object). Raises ``InvalidValue``."""
    if isinstance(value, str) and value.strip():
        value = as_parsed(value, column)
    if is_blank(value):
        return {}
    if not isinstance(value, dict):
        raise InvalidValue(excerpt(value), Words("an object in %(column)s", column=column), "not_an_object", column)
    return value


Fields = dict[str, Any]
# How the fields of steps are read from a mapping.
WORD, WORDS, NAMES, COUNT, SWITCH = (
    {"reader": reader} for reader in (word_of, words_of, names_of, count_of, switch_of)
)


@dataclass(frozen=True)
class ShapeStep:
    """One step. The first field of its class is its name in a mapping, the other fields are its options."""

    def rows(self, name: str, rows: Iterator[FileRow], problems: Problems) -> Iterator[FileRow]:
        """Convert the rows of one file."""
        left_out, reshape = 0, self.reshaper()
        for row in rows:
            try:
                records = list(reshape(row.fields))
            except InvalidValue as fault:
                problems.refuse(fault.at(name, row.line))
                continue
            left_out += not records
            for record in records:
                yield row.with_fields(record)
        if left_out:
            problems.note(name, self.left_out_note(left_out))

    def reshape(self, record: Fields) -> Iterable[Fields]:
        """Convert one record to any number of records. Raises ``InvalidValue``."""
        raise NotImplementedError

    def reshaper(self) -> Callable[[Fields], Iterable[Fields]]:
        """`reshape` for the records of one file; a step that uses the record before overrides this."""
        return self.reshape

    @property
    def made_from(self) -> tuple[str, ...]:
        """The columns from which the step makes others; they count as used even if the mapping ignores them."""
        return ()

    def left_out_note(self, count: int) -> str:
        """A note on how many records became no row, and why."""
        return Words("%(number)s records have nothing in %(column)s.", number=f"{count:,}", column=self.subject)

    @property
    def subject(self) -> str:
        """The value of the step's first field, which names its columns."""
        value = getattr(self, fields(self)[0].name)
        return value if isinstance(value, str) else ", ".join(value)

    def as_dict(self) -> dict[str, Any]:
        """The step as a mapping writes it."""
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        kept = {name: value for name, value in values.items() if value != _default(type(self), name)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}


def _default(kind: type[ShapeStep], name: str) -> Any:
    option: Field[Any] = kind.__dataclass_fields__[name]
    return option.default_factory() if option.default_factory is not MISSING else option.default


@dataclass(frozen=True)
class Keep(ShapeStep):
    """``keep: [columns]``: keeps only these columns for the next steps; `*` matches any text; the others are noted.
    ``without`` names a key: columns with objects that have it, or with lists of these, are left out in any case."""

    keep: tuple[str, ...] = field(metadata=NAMES)
    without: str = field(default="", metadata=WORD)

    def rows(self, name: str, rows: Iterator[FileRow], problems: Problems) -> Iterator[FileRow]:
        kept: dict[tuple[str, ...], list[str]] = {}
        for row in rows:
            names = tuple(row.fields)
            if names not in kept:
                kept[names] = [column for column in names if matches_any(column, self.keep)]
                if left := [column for column in names if column not in kept[names]]:
                    problems.note(name, Words("columns that the mapping leaves out: %(names)s.", names=", ".join(left)))
            wanted = (column for column in kept[names] if not _holds(row.fields[column], self.without))
            yield row.with_fields({column: row.fields[column] for column in wanted})


def _holds(value: Any, key: str) -> bool:
    """Whether a value is an object with that key, or a list of such objects."""
    entries = value if isinstance(value, list) and value else [value]
    return bool(key) and all(isinstance(entry, dict) and key in entry for entry in entries)


@dataclass(frozen=True)
class Parse(ShapeStep):
    """``parse: [column]``: a text of JSON, or of a list or object as Python writes it, becomes its value."""

    parse: tuple[str, ...] = field(metadata=NAMES)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        for column in self.parse:
            if isinstance(text := value_at(record, column), str) and text.strip():
                record = with_value_at(record, column, as_parsed(text, column))
        yield record


@dataclass(frozen=True)
class Split(ShapeStep):
    """``split: {column: ","}``: text that joins several values becomes a list of them."""

    split: dict[str, str] = field(metadata=WORDS)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        for column, separator in self.split.items():
            if isinstance(text := value_at(record, column), str):
                parts = [part.strip() for part in text.split(separator)] if text.strip() else []
                record = with_value_at(record, column, parts)
        yield record


@dataclass(frozen=True)
class Single(ShapeStep):
    """``single: [column]``: a list of one value becomes that value, an empty list a blank. A list of several values is
    refused; but if they are texts and ``join`` gives a separator, they become one text, in alphabetical order. An
    object counts as the list of its keys whose values are neither blank nor false."""

    single: tuple[str, ...] = field(metadata=NAMES)
    join: str = field(default="", metadata=WORD)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        for column in self.single:
            values = value_at(record, column)
            if isinstance(values, dict):
                values = [key for key, value in values.items() if not (is_blank(value) or value is False)]
            if isinstance(values, list):
                record = with_value_at(record, column, self._one(values, column))
        yield record

    def _one(self, values: list[Any], column: str) -> Any:
        if len(values) < 2:
            return values[0] if values else None
        if self.join and all(isinstance(value, str) for value in values):
            return f" {self.join} ".join(sorted(values))
        raise InvalidValue(excerpt(values), Words("one value in %(column)s", column=column), "several_values", column)


@dataclass(frozen=True)
class Transpose(ShapeStep):
    """``transpose: [column]``: an object of equally long lists becomes a list of objects; other values stay."""

    transpose: tuple[str, ...] = field(metadata=NAMES)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        for column in self.transpose:
            if isinstance(value := value_at(record, column), dict):
                lists = {key: as_list(part, f"{column}.{key}") for key, part in value.items()}
                _require_equal(lists)
                entries = zip(*lists.values(), strict=True)
                record = with_value_at(record, column, [dict(zip(lists, entry, strict=True)) for entry in entries])
        yield record


@dataclass(frozen=True)
class Explode(ShapeStep):
    """``explode: [columns]``: a list becomes one row per entry. Lists in several columns are exploded together, so they
    must be equally long. ``position`` names a column for the place in the list, from 1."""

    explode: tuple[str, ...] = field(metadata=NAMES)
    position: str = field(default="", metadata=WORD)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        lists = {column: as_list(value_at(record, column), column) for column in self._columns(tuple(record))}
        if not lists:
            raise InvalidValue(
                Words("no such column"), Words("a list in %(column)s", column=self.subject), "not_a_list"
            )
        _require_equal(lists)
        for place, values in enumerate(zip(*lists.values(), strict=True), start=1):
            exploded = record
            for column, value in zip(lists, values, strict=True):
                exploded = with_value_at(exploded, column, value)
            yield {**exploded, self.position: place} if self.position else exploded

    def _columns(self, names: tuple[str, ...]) -> list[str]:
        """The columns that match the given names, in which `*` matches any text."""
        columns = [column for column in self.explode if "*" not in column]
        return [*columns, *(name for name in names if name not in columns and matches_any(name, self.explode))]


def _require_equal(lists: dict[str, list[Any]]) -> None:
    for column, other in lists.items():
        first, values = next(iter(lists.items()))
        if len(other) != len(values):
            counts = Words(
                "%(number)s values in %(first)s and %(others)s in %(column)s",
                number=len(values),
                first=first,
                others=len(other),
                column=column,
            )
            raise InvalidValue(counts, Words("lists of one length, taken apart side by side"), "lengths", column)


@dataclass(frozen=True)
class Entries(ShapeStep):
    """``entries: column``: an object whose keys are values, such as {rater: score}, becomes one row per key, in the
    columns ``key`` and ``value``. With ``plain``, a value that is not an object becomes one row with a blank key."""

    entries: str = field(metadata=WORD)
    key: str = field(default="key", metadata=WORD)
    value: str = field(default="value", metadata=WORD)
    plain: bool = field(default=False, metadata=SWITCH)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        given = value_at(record, self.entries)
        if self.plain and not isinstance(given, dict):
            return [{**without_value_at(record, self.entries), self.key: None, self.value: given}]
        inside = as_object(given, self.entries)
        rest = without_value_at(record, self.entries)
        return ({**rest, self.key: key, self.value: value} for key, value in inside.items())


@dataclass(frozen=True)
class Pair(ShapeStep):
    """``pair: column``: two lists of equal length, in the columns ``keys`` and ``values``, become one object in a new
    column, such as {rater: explanation}. Texts with the same key are joined, each on its own line."""

    pair: str = field(metadata=WORD)
    keys: str = field(default="key", metadata=WORD)
    values: str = field(default="value", metadata=WORD)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        values = as_list(value_at(record, self.values), self.values)
        keys = as_list(value_at(record, self.keys), self.keys) if values else []
        _require_equal({self.keys: keys, self.values: values})
        paired: dict[str, Any] = {}
        for key, value in zip(map(as_written, keys), values, strict=True):
            paired[key] = f"{paired[key]}\n{value}" if key in paired else value
        yield {**without_value_at(record, self.values), self.pair: paired}


@dataclass(frozen=True)
class LookUp(ShapeStep):
    """``look_up: {column: "object.{key}"}``: the value of an object under the key that another column gives."""

    look_up: dict[str, str] = field(metadata=WORDS)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        for column, path in self.look_up.items():
            record = {**record, column: value_at(record, fill_template(path, record))}
        yield record


@dataclass(frozen=True)
class Match(ShapeStep):
    """``match: column``: the first object in the list ``among`` that has at the path ``by`` the same text or number as
    the record at the path ``to``; a blank if there is no such object. Rows of one record share the list, which is read
    once for all of them."""

    match: str = field(metadata=WORD)
    among: str = field(metadata=WORD)
    by: str = field(metadata=WORD)
    to: str = field(metadata=WORD)

    def reshaper(self) -> Callable[[Fields], Iterable[Fields]]:
        listed: Any = None
        found: dict[str | float, Fields] = {}

        def reshape(record: Fields) -> Iterable[Fields]:
            nonlocal listed, found
            wanted, entries = value_at(record, self.to), value_at(record, self.among)
            if entries is not listed:
                listed, found = entries, self._by_value(entries)
            return [{**record, self.match: found.get(wanted) if isinstance(wanted, str | int | float) else None}]

        return reshape

    def _by_value(self, entries: Any) -> dict[str | float, Fields]:
        """The first object with each value that is not blank."""
        found: dict[str | float, Fields] = {}
        for entry in entries if isinstance(entries, list) else ():
            value = value_at(entry, self.by) if isinstance(entry, dict) else None
            if isinstance(value, str | int | float) and not is_blank(value):
                found.setdefault(value, entry)
        return found


@dataclass(frozen=True)
class First(ShapeStep):
    """``first: column``: the first value at the paths ``of`` that is not blank."""

    first: str = field(metadata=WORD)
    of: tuple[str, ...] = field(metadata=NAMES)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        values = (value_at(record, path) for path in self.of)
        yield {**record, self.first: next((value for value in values if not is_blank(value)), None)}


@dataclass(frozen=True)
class Require(ShapeStep):
    """``require: {column: value}``, or several values joined by `|`: a record with another value is refused."""

    require: dict[str, str] = field(metadata=WORDS)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        for column, words in self.require.items():
            if as_written(value := value_at(record, column)) not in words.split("|"):
                given = Words("nothing") if is_blank(value) else excerpt(value)
                raise InvalidValue(
                    given,
                    Words("%(words)s in %(column)s", words=either(words.split("|")), column=column),
                    "other_value",
                    column,
                )
        yield record


@dataclass(frozen=True)
class Flatten(ShapeStep):
    """``flatten: [column]``: each value of an object becomes a column called ``column.key``; a value that is not an
    object stays in the column ``column``. So a column with objects in some records and plain values in others can be
    mapped in both forms."""

    flatten: tuple[str, ...] = field(metadata=NAMES)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        for column in self.flatten:
            value = value_at(record, column)
            opened = {f"{column}.{key}": part for key, part in value.items()} if isinstance(value, dict) else None
            record = {**without_value_at(record, column), **(opened if opened is not None else {column: value})}
        yield record


@dataclass(frozen=True)
class Melt(ShapeStep):
    """``melt: {"Human {rater} {criterion}": score}``: columns with matching names become rows. Each placeholder becomes
    a column with its part of the name, and the cell is in the column ``score``. Columns with equal placeholders that
    match different patterns give one row. Each row also has the other columns. ``having``: only columns with an object
    that has this key, or with a list of these objects."""

    melt: dict[str, str] = field(metadata=WORDS)
    having: str = field(default="", metadata=WORD)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        others = {column: value for column, value in record.items() if self.having and not _holds(value, self.having)}
        molten, kept = _molten(tuple(self.melt.items()), tuple(column for column in record if column not in others))
        if not molten and not self.having:
            raise InvalidValue(
                Words("the columns %(names)s", names=", ".join(list(record)[:5])),
                Words("columns like %(name)s", name=self.subject),
                "no_column",
            )
        rest = others | {name: record[name] for name in kept}
        for parts, cells in molten:
            yield {**rest, **dict(parts), **{value: record[name] for name, value in cells}}


@dataclass(frozen=True)
class PersonScores(ShapeStep):
    """``scores: {rating_anna: Anna, rating_boris: Boris}``: columns with the scores of one person each become rows with
    the columns ``rater``, ``criterion``, ``score`` and ``rationale``. ``criteria`` gives the criterion of a column,
    ``rationales`` the person of a column with reasons: for all scores of the person, or those on its criterion. Each
    row also has the other columns."""

    scores: dict[str, str] = field(metadata=WORDS)
    criteria: dict[str, str] = field(default_factory=dict, metadata=WORDS)
    rationales: dict[str, str] = field(default_factory=dict, metadata=WORDS)
    rater: str = field(default="rater", metadata=WORD)
    criterion: str = field(default="criterion", metadata=WORD)
    score: str = field(default="score", metadata=WORD)
    rationale: str = field(default="rationale", metadata=WORD)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        there = {column: value_at(record, column) for column in self.scores if key_path(record, column)}
        if not there:
            raise InvalidValue(
                Words("the columns %(names)s", names=", ".join(list(record)[:5])),
                Words("columns like %(name)s", name=self.subject),
                "no_column",
            )
        others = record
        for column in (*self.scores, *self.rationales):
            others = without_value_at(others, column)
        whys: dict[tuple[str, str], list[str]] = {}
        for column, rater in self.rationales.items():
            about = rater, case_folded(self.criteria.get(column, ""))
            whys.setdefault(about, []).append(as_written(value_at(record, column)))
        for column, value in there.items():
            rater, criterion = self.scores[column], self.criteria.get(column, "")
            row = {**others, self.rater: rater, self.criterion: criterion, self.score: value}
            named_or_not = dict.fromkeys(("", case_folded(criterion)))
            why = "\n".join(text for named in named_or_not for text in whys.get((rater, named), ()) if text)
            yield row | ({self.rationale: why} if whys else {})

    @property
    def made_from(self) -> tuple[str, ...]:
        return (*self.scores, *self.rationales)


NamedTexts = tuple[tuple[str, str], ...]


@lru_cache(maxsize=64)
def _molten(
    patterns: NamedTexts, names: tuple[str, ...]
) -> tuple[tuple[tuple[NamedTexts, NamedTexts], ...], tuple[str, ...]]:
    """The rows that columns become (placeholders of their names, and the column of each value); the other columns."""
    rows: dict[NamedTexts, dict[str, str]] = {}
    kept = []
    for name in names:
        fitting = ((match_pattern(pattern, name), value) for pattern, value in patterns if name != KEY_COLUMN)
        parts, value = next(((parts, value) for parts, value in fitting if parts is not None), (None, ""))
        if parts is None:
            kept.append(name)
        else:
            rows.setdefault(tuple(parts.items()), {})[name] = value
    return tuple((parts, tuple(cells.items())) for parts, cells in rows.items()), tuple(kept)


@dataclass(frozen=True)
class Extract(ShapeStep):
    """``extract: {column: "{language}-{number}"}``: the parts of a cell at the placeholders become columns."""

    extract: dict[str, str] = field(metadata=WORDS)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        columns: dict[str, str] = {}
        for column, pattern in self.extract.items():
            text = as_written(value_at(record, column))
            taken = match_pattern(pattern, text)
            if taken is None:
                raise InvalidValue(excerpt(text), Words("text like %(pattern)s", pattern=pattern), "pattern", column)
            columns |= taken
        yield {**record, **columns}


@dataclass(frozen=True)
class Compose(ShapeStep):
    """``compose: {id: "{Model}-{position}"}``: a column put together from others."""

    compose: dict[str, str] = field(metadata=WORDS)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        for column, template in self.compose.items():
            record = {**record, column: fill_template(template, record)}
        yield record

    @property
    def made_from(self) -> tuple[str, ...]:
        return tuple(name for template in self.compose.values() for name in hole_names(template))


@dataclass(frozen=True)
class Digest(ShapeStep):
    """``digest: column``: an identifier made of the values ``of`` several columns: the first 16 digits of the SHA-256
    of these values. Records with equal values have the same identifier, in any file: a number equals its text, because
    another file format may store it as text; a blank equals no value."""

    digest: str = field(metadata=WORD)
    of: tuple[str, ...] = field(metadata=NAMES)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        values = [None if is_blank(value := value_at(record, path)) else _as_text(value) for path in self.of]
        if not any(value is not None for value in values):
            raise InvalidValue(
                Words("nothing"), Words("a value in %(columns)s", columns=either(self.of)), "no_value", self.of[0]
            )
        yield {**record, self.digest: hashlib.sha256(orjson.dumps(values)).hexdigest()[:16]}

    @property
    def made_from(self) -> tuple[str, ...]:
        return self.of


def _as_text(value: Any) -> Any:
    return value if isinstance(value, str | list | dict) else as_written(value)


@dataclass(frozen=True)
class Transcript(ShapeStep):
    """``transcript: {column: turns}``: a list of turns as one text in a new column, a paragraph for each, such as
    `user: Hello`. ``skip`` is the number of turns left out at the beginning. If one turn is left, only its text is
    kept, without the speaker.
    """

    transcript: dict[str, str] = field(metadata=WORDS)
    skip: int = field(default=0, metadata=COUNT)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        for column, path in self.transcript.items():
            turns = as_list(value_at(record, path), path)[self.skip :]
            texts = [self._spoken(turn, path) for turn in turns]
            written = [words for _speaker, words in texts] if len(texts) == 1 else [": ".join(text) for text in texts]
            record = {**record, column: "\n\n".join(written)}
        yield record

    def _spoken(self, turn: Any, path: str) -> tuple[str, str]:
        """The speaker and the text of a turn."""
        parts = turn if isinstance(turn, dict) else {}
        speaker, words = (
            next((parts[key] for key in keys if key in parts), None) for keys in (SPEAKER_KEYS, TEXT_KEYS)
        )
        if not (isinstance(speaker, str) and isinstance(words, str)):
            raise InvalidValue(
                excerpt(turn), Words("turns with a speaker and a text in %(column)s", column=path), "turns", path
            )
        return speaker, words


@dataclass(frozen=True)
class Where(ShapeStep):
    """``where: {column: value}``, or several values joined by `|`; `*` means any value that is not blank. The other
    records are left out, and counted."""

    where: dict[str, str] = field(metadata=WORDS)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        wanted = (_is_one_of(as_written(value_at(record, column)), words) for column, words in self.where.items())
        return [record] if all(wanted) else []

    def left_out_note(self, count: int) -> str:
        named = {column: "|".join(word or "blank" for word in words.split("|")) for column, words in self.where.items()}
        why = ", ".join(f"{column} is not {words}" for column, words in named.items())
        return Words("%(number)s records are left out: %(why)s.", number=f"{count:,}", why=why)


def _is_one_of(text: str, words: str) -> bool:
    allowed = words.split("|")
    return text in allowed or (bool(text) and "*" in allowed)
