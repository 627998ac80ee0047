"""Rows: the records that every reader yields, the values in them, and how much one file may hold.

Readers count while they read, and stop before memory grows. The operator sets the bounds (docs/operations.md);
`annotation.apps` copies them from the settings. A value is named by its path: `score`, or `annotations.safety.scores`
inside objects. Patterns are names with placeholders: `Human {rater} {criterion}` splits the name of a column, and
`{Model}-{position}` makes an id. A mapping can replace parts of the texts of items and rationales. Texts that look
wrongly decoded, or are not in NFC, are noted.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import groupby, islice, repeat
from pathlib import PurePosixPath
from typing import Any, NamedTuple, Self

from accounts.languages import canonical_language
from analytics.stats.core.identifiers import identifier_doubts, normal_identifier
from analytics.stats.declared.declaring import translatable
from annotation.readers.problems import FormatError, InvalidValue, Problem, excerpt, shortened_list
from annotation.readers.words import Setting, Words, joined_words

MEGABYTE = 2**20


@dataclass(slots=True)
class Bounds:
    """``columns`` of a row, ``cells`` of a file, characters of one ``cell`` (also of one line, row or JSON record), and
    bytes that a compressed file may have when ``unpacked``."""

    columns: int = 2_000
    cells: int = 200_000_000
    cell: int = 16 * MEGABYTE
    unpacked: int = 2_048 * MEGABYTE


BOUNDS = Bounds()


def set_bounds(*, columns: int, cells: int, cell_mb: int, unpacked_mb: int) -> None:
    """Set the bounds of this process."""
    BOUNDS.columns, BOUNDS.cells = columns, cells
    BOUNDS.cell, BOUNDS.unpacked = cell_mb * MEGABYTE, unpacked_mb * MEGABYTE
    csv.field_size_limit(BOUNDS.cell)  # one setting for the whole process; the module's own is 128 kB


def too_many_columns_error(name: str, line: int | None, count: int) -> FormatError:
    """The refusal of a row with more columns than a file may have."""
    expected = Words(
        "at most %(number)s columns; the operator raises IMPORT_MOST_COLUMNS", number=f"{BOUNDS.columns:,}"
    )
    return FormatError(
        Problem(
            name, line, None, Words("%(number)s columns or more", number=f"{count:,}"), expected, "too_many_columns"
        )
    )


def too_long_error(name: str, line: int | None, what: str, code: str) -> FormatError:
    """The refusal of a cell, line, row or record that is longer than the bound."""
    text = Words(
        "%(what)s of more than %(number)s million characters", what=what, number=f"{BOUNDS.cell / MEGABYTE:,.4g}"
    )
    expected = Words(
        "at most %(number)s MB; the operator raises IMPORT_LONGEST_CELL_MB", number=f"{BOUNDS.cell // MEGABYTE:,}"
    )
    return FormatError(Problem(name, line, None, text, expected, code))


def require_sparse(name: str, line: int, text: str) -> None:
    """Refuse a long JSON record if its many lists, objects and values need far more memory than its text."""
    inside = text.count("[") + text.count("{")
    if inside > BOUNDS.cell // 32 or inside + text.count(",") > BOUNDS.cell // 5:
        actual = Words(
            "a record of %(lists)s lists and objects with %(values)s values or more",
            lists=f"{inside:,}",
            values=f"{text.count(','):,}",
        )
        expected = Words(
            "at most %(lists)s and %(values)s in one record; the operator raises IMPORT_LONGEST_CELL_MB",
            lists=f"{BOUNDS.cell // 32:,}",
            values=f"{BOUNDS.cell // 5:,}",
        )
        raise FormatError(Problem(name, line, None, actual, expected, "record_size"))


class CellCount:
    """Counts the cells of one file as they come."""

    def __init__(self, name: str) -> None:
        self._name, self._cells = name, 0

    def count(self, line: int, columns: int, rows: int = 1) -> None:
        """Count ``rows`` rows of ``columns`` columns, from ``line`` on. Raises ``FormatError`` beyond the bounds."""
        if columns > BOUNDS.columns:
            raise too_many_columns_error(self._name, line, columns)
        self._cells += columns * rows
        if self._cells > BOUNDS.cells:
            text = Words("more than %(number)s cells", number=f"{BOUNDS.cells:,}")
            expected = Words(
                "at most %(number)s in one file; the operator raises IMPORT_MOST_CELLS", number=f"{BOUNDS.cells:,}"
            )
            raise FormatError(Problem(self._name, line, None, text, expected, "too_many_cells_in_file"))


set_bounds(columns=2_000, cells=200_000_000, cell_mb=16, unpacked_mb=2_048)

KEY_COLUMN = "(key)"
"""The name of the column with the JSON key of a record, or of the list that contains it."""


# The names of the keys of a turn that give the speaker and the text.
SPEAKER_KEYS = ("speaker", "role", "from_type", "author", "from", "sender")
TEXT_KEYS = ("text", "content", "message", "utterance", "value")


class FileRow(NamedTuple):
    """One record: the physical line it starts on, and its values by column (text from CSV, any JSON from JSON)."""

    line: int
    fields: dict[str, Any]

    @property
    def path(self) -> str:
        """The path of the record in its JSON document, such as ``[17]``, if several records are on one line."""
        return ""

    def with_fields(self, fields: dict[str, Any]) -> FileRow:
        """A record with other fields at the same line and path."""
        return located_row(self.line, fields, self.path)


class LocatedRow(FileRow):
    """A record of a JSON document that shares its line with others."""

    _path: str

    @property
    def path(self) -> str:
        return self._path


def located_row(line: int, fields: dict[str, Any], path: str) -> FileRow:
    """A record, with its path if it has one."""
    if not path:
        return FileRow(line, fields)
    row = LocatedRow(line, fields)
    row._path = path
    return row


class RowBlock(NamedTuple):
    """Some records with the same columns: the line of each, and for each column its values in all of them."""

    columns: tuple[str, ...]
    lines: Sequence[int]
    values: Sequence[Sequence[Any]]
    paths: Sequence[str] = ()  # the paths of all records, or empty

    @classmethod
    def of(cls, rows: Sequence[FileRow]) -> Self:
        """Make a block of rows that have the same columns."""
        values = zip(*(row.fields.values() for row in rows), strict=True)
        paths = [row.path for row in rows] if any(row.path for row in rows) else ()
        return cls(tuple(rows[0].fields), [row.line for row in rows], list(values), paths)

    @property
    def size(self) -> int:
        return len(self.lines)

    def first(self) -> dict[str, Any]:
        """The fields of the first record; in a block without records, its columns with ``None``."""
        return {name: values[0] if values else None for name, values in zip(self.columns, self.values, strict=True)}

    def column(self, name: str) -> Sequence[Any]:
        """The values of one column."""
        return self.values[self.columns.index(name)]

    def rows(self) -> Iterator[FileRow]:
        """The records one by one."""
        cells = zip(*self.values, strict=True) if self.values else iter([()] * self.size)
        for line, values, path in zip(self.lines, cells, self.paths or repeat(""), strict=False):
            yield located_row(line, dict(zip(self.columns, values, strict=True)), path)


def blocks_of(rows: Iterable[FileRow], most: int) -> Iterator[RowBlock]:
    """Yield the rows in their order, in blocks of at most ``most`` rows."""
    for _columns, alike in groupby(rows, key=_columns_of):
        while some := list(islice(alike, most)):
            yield RowBlock.of(some)


def _columns_of(row: FileRow) -> tuple[str, ...]:
    return tuple(row.fields)


# --- values and their paths -------------------------------------------------------------------------------------------
# A spreadsheet rewrites a long number like this: 2.9E+15.
_MANGLED = re.compile(r"[+-]?[0-9](?:[.,][0-9]+)?[Ee][+-]?[0-9]+")
# A spreadsheet changes an identifier such as 3-1 into a date: 1-Mar, Mar-01.
_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_DATED = re.compile(rf"[0-9]{{1,2}}-(?:{_MONTH})|(?:{_MONTH})-[0-9]{{2}}")
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]{1,300},[0-9]+")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(?:\.[0-9]{3})+")
_NUMBER = re.compile(r"[+-]?[0-9]{1,300}(?:\.[0-9]*)?")


def key_path(fields: Mapping[str, Any], path: str) -> tuple[str, ...] | None:
    """The keys that lead to a path, or None if the record has no value there. A key may itself contain dots: the whole
    path is tried as a key first, then the part before each dot, the shortest part first."""
    if path in fields:
        return (path,)
    for place, character in enumerate(path):
        inner = fields.get(path[:place]) if character == "." else None
        if isinstance(inner, dict) and (rest := key_path(inner, path[place + 1 :])):
            return (path[:place], *rest)
    return None


def value_under(fields: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The value under a sequence of nested keys; None if one of the keys is missing."""
    value: Any = fields
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def value_at(fields: Mapping[str, Any], path: str) -> Any:
    """The value at a path, or None."""
    if path in fields:
        return fields[path]
    keys = key_path(fields, path)
    return value_under(fields, keys) if keys else _value_in_lists(fields, path)


def _value_in_lists(value: Any, path: str) -> Any:
    """The value at a path that leads through lists, such as ``choices.0.message``; indices count from 0."""
    if isinstance(value, list):
        key, _dot, rest = path.partition(".")
        is_place = len(key) < 10 and key.isascii() and key.isdecimal()  # int() refuses thousands of digits
        entry = value[int(key)] if is_place and int(key) < len(value) else None
        return _value_in_lists(entry, rest) if rest else entry
    if not isinstance(value, Mapping):
        return None
    if path in value:
        return value[path]
    dots = (place for place, character in enumerate(path) if character == ".")
    inside = (_value_in_lists(value.get(path[:place]), path[place + 1 :]) for place in dots)
    return next((part for part in inside if part is not None), None)


def with_value_at(fields: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The record with another value at a path. Objects that it shares with other records are not changed."""
    return _put(fields, key_path(fields, path) or (path,), value)


def _put(fields: dict[str, Any], keys: tuple[str, ...], value: Any) -> dict[str, Any]:
    head, *rest = keys
    return {**fields, head: _put(fields[head], tuple(rest), value) if rest else value}


def without_value_at(fields: dict[str, Any], path: str) -> dict[str, Any]:
    """The record without the value at a path, and without objects that become empty."""
    keys = key_path(fields, path)
    return fields if keys is None else _cut(fields, keys)


def _cut(fields: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    head, *rest = keys
    inner = _cut(fields[head], tuple(rest)) if rest else {}
    return {key: inner if key == head else part for key, part in fields.items() if key != head or inner}


_HOLE = re.compile(r"\{([^{}]*)\}")


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression. A placeholder matches one of its words, `{name=one|two}`, or any text of
    one character or more; of two placeholders the first is greedy. `*` outside the placeholders matches any text."""
    parts = _HOLE.split(pattern)
    fixed = [".*".join(map(re.escape, text.split("*"))) for text in parts[::2]]
    holes = [f"({'|'.join(map(re.escape, words)) or '.+'})" for _name, words in map(_hole, parts[1::2])]
    return re.compile("".join(text for pair in zip(fixed, [*holes, ""], strict=True) for text in pair), re.DOTALL)


def _hole(inside: str) -> tuple[str, list[str]]:
    name, _, words = inside.partition("=")
    return name.strip(), [word.strip() for word in words.split("|") if word.strip()]


def hole_names(pattern: str) -> tuple[str, ...]:
    """The names of the placeholders of a pattern or template."""
    return tuple(_hole(inside)[0] for inside in _HOLE.findall(pattern))


def match_pattern(pattern: str, text: str) -> dict[str, str] | None:
    """The text of each placeholder, or None if the pattern does not match. A name used twice must match equal texts."""
    match = _compiled(pattern).fullmatch(text)
    if match is None:
        return None
    taken: dict[str, str] = {}
    for name, value in zip(hole_names(pattern), match.groups(), strict=True):
        if taken.setdefault(name, value) != value:
            return None
    return taken


def fill_template(template: str, fields: Mapping[str, Any]) -> str:
    """The template filled from a row. Raises ``InvalidValue`` if a column is blank or not a plain value."""
    pieces = _HOLE.split(template)
    for place in range(1, len(pieces), 2):
        pieces[place] = _plain_text(pieces[place], value_at(fields, pieces[place]))
    return "".join(pieces)


def _plain_text(column: str, value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        return str(value).strip()
    raise InvalidValue(
        Words("nothing") if value is None else excerpt(value),
        Words("text or a number in %(column)s", column=column),
        "compose",
        column,
    )


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether the name of a column matches one of the patterns, in which `*` matches any text."""
    return any(name == pattern or ("*" in pattern and fnmatchcase(name, pattern)) for pattern in patterns)


def match_file_name(pattern: str, name: str) -> dict[str, str] | None:
    """The text of each placeholder of a pattern in a file's name, or None. A pattern without folders is compared with
    the name without its folders, so that `labels.csv` also matches the file of that name in a zip."""
    path = name.replace("\\", "/")
    return match_pattern(pattern, path if "/" in pattern else PurePosixPath(path).name)


def as_written(value: Any) -> str:
    """A value as people write it in a value map: 2 and 2.0 are ``2``, true is ``true``."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def case_folded(name: Any) -> str:
    """A name in the form in which names are compared: case is folded, and every white space becomes one space."""
    return " ".join(as_written(name).casefold().split())


def is_blank(value: Any) -> bool:
    """Whether a value is None, or a text of white space only."""
    return value is None or (isinstance(value, str) and not value.strip())


def as_key(value: Any, field: str, *, is_trusted: bool = False) -> str:
    """An identifier as text, in Unicode normal form C without spaces around it. An identifier that a spreadsheet seems
    to have changed into a rounded number or a date is refused, unless the mapping trusts it (``is_trusted``)."""
    if isinstance(value, str):
        key = normal_identifier(value)
        if is_trusted and key:
            return key
        if _MANGLED.fullmatch(key):
            expected = Words(
                "the whole %(field)s: a spreadsheet has rounded it (to accept it, %(choice)s)",
                field=field,
                choice=Setting("trust_ids", "set trust_ids: on in the mapping"),
            )
            raise InvalidValue(excerpt(key), expected, "mangled_id", field=field)
        if _DATED.fullmatch(key) and field != "criterion":
            expected = Words(
                "the %(field)s as it was: a spreadsheet has changed it to a date (to accept it, %(choice)s)",
                field=field,
                choice=Setting("trust_ids", "set trust_ids: on"),
            )
            raise InvalidValue(excerpt(key), expected, "mangled_id", field=field)
        if key:
            return key
    elif isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    elif isinstance(value, float):
        raise InvalidValue(
            excerpt(value),
            Words("the whole %(field)s as text or a whole number", field=field),
            "mangled_id",
            field=field,
        )
    if is_blank(value):
        raise InvalidValue(Words("nothing"), Words("the %(field)s", field=field), f"no_{field}", field=field)
    raise InvalidValue(excerpt(value), Words("the %(field)s as text", field=field), "shape", field=field)


KINDS_OF_KEYS = {
    "id": "Items", "item": "Items", "rater": "Raters", "judge": "Judges", "criterion": "Criteria",
    "scenario": "Scenarios", "generator": "Generators",
}  # fmt: skip
_KEY_NOTES = {
    "Items": {
        "changed": translatable(
            "Items named in another Unicode form than NFC, or with outer spaces: %(number)s, such as %(names)s. "
            "They are compared in NFC, without these spaces."
        ),
        "near": translatable(
            "Items with names that differ only in case, characters without width or leading zeros: "
            "groups of names: %(number)s, such as %(names)s. They count as different."
        ),
    },
    "Raters": {
        "changed": translatable(
            "Raters named in another Unicode form than NFC, or with outer spaces: %(number)s, such as %(names)s. "
            "They are compared in NFC, without these spaces."
        ),
        "near": translatable(
            "Raters with names that differ only in case, characters without width or leading zeros: "
            "groups of names: %(number)s, such as %(names)s. They count as different."
        ),
    },
    "Judges": {
        "changed": translatable(
            "Judges named in another Unicode form than NFC, or with outer spaces: %(number)s, such as %(names)s. "
            "They are compared in NFC, without these spaces."
        ),
        "near": translatable(
            "Judges with names that differ only in case, characters without width or leading zeros: "
            "groups of names: %(number)s, such as %(names)s. They count as different."
        ),
    },
    "Criteria": {
        "changed": translatable(
            "Criteria named in another Unicode form than NFC, or with outer spaces: %(number)s, such as %(names)s. "
            "They are compared in NFC, without these spaces."
        ),
        "near": translatable(
            "Criteria with names that differ only in case, characters without width or leading zeros: "
            "groups of names: %(number)s, such as %(names)s. They count as different."
        ),
    },
    "Scenarios": {
        "changed": translatable(
            "Scenarios named in another Unicode form than NFC, or with outer spaces: %(number)s, such as %(names)s. "
            "They are compared in NFC, without these spaces."
        ),
        "near": translatable(
            "Scenarios with names that differ only in case, characters without width or leading zeros: "
            "groups of names: %(number)s, such as %(names)s. They count as different."
        ),
    },
    "Generators": {
        "changed": translatable(
            "Generators named in another Unicode form than NFC, or with outer spaces: %(number)s, such as %(names)s. "
            "They are compared in NFC, without these spaces."
        ),
        "near": translatable(
            "Generators with names that differ only in case, characters without width or leading zeros: "
            "groups of names: %(number)s, such as %(names)s. They count as different."
        ),
    },
}
MOST_KEYS_KEPT = 200_000
"""How many different identifiers of a kind are kept, to look for identifiers that are easily confused."""


class KeysRead:
    """Reads identifiers (``as_key``), counts changed spellings, and names identifiers that are easily confused."""

    def __init__(self) -> None:
        self._changed: dict[str, set[str]] = {kind: set() for kind in KINDS_OF_KEYS.values()}
        self._read: dict[str, set[str]] = {kind: set() for kind in KINDS_OF_KEYS.values()}

    def key(self, value: Any, field: str, *, is_trusted: bool = False) -> str:
        """The identifier in its normal spelling."""
        key = as_key(value, field, is_trusted=is_trusted)
        if (kind := KINDS_OF_KEYS.get(field)) and len(read := self._read[kind]) < MOST_KEYS_KEPT:
            read.add(key)
            if key != value and isinstance(value, str):
                self._changed[kind].add(value)
        return key

    def notes(self) -> list[str]:
        """Sentences for the report."""
        return [
            Words(_KEY_NOTES[kind][doubt.code], number=doubt.number, names=doubt.examples)
            for kind, read in self._read.items()
            for doubt in identifier_doubts(self._changed[kind], read)
        ]


def as_text(value: Any, field: str) -> str:
    """A text unchanged, or a number as its text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise InvalidValue(excerpt(value), Words("text for %(field)s", field=field), "shape", field=field)


def is_with_decimal_comma(text: str) -> bool:
    """Whether a text is a number such as ``3,5``."""
    return _COMMA_NUMBER.fullmatch(text.strip()) is not None


def as_number(value: Any, field: str, *, decimal_comma: bool = False) -> float:
    """A number written in digits with a point, or as ``3,5`` with ``decimal_comma``: no exponent, no NaN."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and is_with_decimal_comma(value):
        if decimal_comma:
            return float(value.strip().replace(",", "."))
        expected = Words(
            "a number for %(field)s with a decimal point; or %(choice)s",
            field=field,
            choice=Setting("decimal_comma", "decimal_comma: on in the mapping"),
        )
        raise InvalidValue(excerpt(value), expected, "not_a_number", field=field)
    if isinstance(value, str) and _NUMBER.fullmatch(text := value.strip()):
        if decimal_comma and _THOUSANDS.fullmatch(text):
            expected = Words(
                "a number for %(field)s without a separator of thousands, as decimal_comma is on", field=field
            )
            raise InvalidValue(excerpt(value), expected, "not_a_number", field=field)
        return float(text)
    hint = Words(
        "a number for %(field)s; a word can be given a value under “Mapping (YAML)”, as in values: {%(key)s: {Yes: 1}}",
        field=field,
        key=field,
    )
    raise InvalidValue(excerpt(value), hint, "not_a_number", field=field)


def as_language(value: Any) -> str:
    """A language tag in its canonical spelling."""
    if is_blank(value):
        raise InvalidValue(
            Words("nothing"), Words("a language tag such as et or pt-BR"), "no_language", field="language"
        )
    try:
        return canonical_language(str(value))
    except ValueError as error:
        raise InvalidValue(
            excerpt(value), Words("a language tag (%(error)s)", error=error), "language", field="language"
        ) from None


def first_of(entry: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The value under the first of some names that an object has."""
    return next((entry[name] for name in names if name in entry), None)


LONGEST_GAP = 1_000  # characters that a `*` in a text to replace can match
_UNKNOWN = "\ufffd"


# --- texts replaced ----------------------------------------------------------------------------------------------
def _literal_pieces(text: str) -> list[str]:
    return [piece.replace("\\*", "*") for piece in re.split(r"(?<!\\)\*", text)]


def replaced_pattern(text: str) -> re.Pattern[str]:
    """A regular expression for a text to replace. One ``*`` inside the text, as in ``<span*>``, matches up to
    `LONGEST_GAP` characters, none of which is the first character of the text; ``\\*`` is an asterisk. Raises
    ``ValueError`` with what is expected instead."""
    pieces = _literal_pieces(text)
    if len(pieces) > 2 or not all(pieces):
        raise ValueError(Words("a text with at most one * inside it, as in <span*>; \\* for an asterisk"))
    # The gap excludes the first character, so that a text with many of these characters still takes linear time.
    gap = rf"[^{re.escape(pieces[0][0])}]{{0,{LONGEST_GAP}}}?"
    return re.compile(gap.join(map(re.escape, pieces)))


class TextReplacement:
    """Replaces texts by others, one after the other, and remembers which of the texts to replace occurred.

    Texts without an asterisk are replaced first, and longer texts before shorter ones, because a stored mapping does
    not keep an order.
    """

    def __init__(self, replace: Mapping[str, str]) -> None:
        ordered = sorted(replace, key=lambda text: (len(_literal_pieces(text)), -len(text), text))
        self._patterns = [(text, replaced_pattern(text), replace[text]) for text in ordered]
        self._occurred: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def __call__(self, text: str) -> str:
        for name, pattern, words in self._patterns:
            # A function, because a backslash in a template would have a meaning.
            text, count = pattern.subn(lambda _match, words=words: words, text)  # type: ignore[misc]
            if count:
                self._occurred.add(name)
        return text

    def inside(self, value: Any) -> Any:
        """The value with its texts replaced, if it is a text or a list of texts; any other value unchanged."""
        if isinstance(value, list):
            return [self.inside(part) for part in value]
        return self(value) if isinstance(value, str) else value

    def notes(self, where: str) -> list[str]:
        """Notes on which texts were replaced and which did not occur; ``where`` names the texts that were searched."""
        names = [name for name, _pattern, _words in self._patterns]
        done = [excerpt(name) for name in names if name in self._occurred]
        absent = [excerpt(name) for name in names if name not in self._occurred]
        notes = (
            [
                Words(
                    "Replaced in %(where)s, as set under “Mapping (YAML)”: %(names)s.",
                    where=where,
                    names=shortened_list(done),
                )
            ]
            if done
            else []
        )
        return [
            *notes,
            *(
                [
                    Words(
                        "To be replaced, but not found in %(where)s: %(names)s.",
                        where=where,
                        names=shortened_list(absent),
                    )
                ]
                if absent
                else []
            ),
        ]


# --- doubtful texts -------------------------------------------------------------------------------------------------
_CONTINUATION = "\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
# Bytes of UTF-8 that were read as Windows-1252. Two-byte sequences of scripts other than Latin-1 occur in runs.
_MISREAD = re.compile(
    rf"[ð-ô][{_CONTINUATION}]{{3}}|[à-ï][{_CONTINUATION}]{{2}}|[ÂÃ][{_CONTINUATION}]"
    rf"|(?:[ÄÅÎÏÐÑ×ØÙ][{_CONTINUATION}]){{2,}}"
)
_ANY_CONTINUATION = re.compile(rf"[{_CONTINUATION}]")  # in few ordinary texts, and found faster
_CLOSING_QUOTES = "»’”“›"


def misread_utf8(text: str) -> tuple[str, str] | None:
    """The first part of a text that seems to be UTF-8 read as Windows-1252, with its correction: ``("Ã¼", "ü")``."""
    if not _ANY_CONTINUATION.search(text):
        return None
    for match in _MISREAD.finditer(text):
        part, after = match[0], text[match.end() : match.end() + 1]
        if len(part) == 2 and part[-1] in _CLOSING_QUOTES and not after.isalnum():
            continue  # a capital letter before a closing quote
        try:
            meant = b"".join(map(_misread_byte, part)).decode("utf-8")
        except (UnicodeEncodeError, UnicodeDecodeError):
            continue
        if meant.isprintable() or meant == "\xa0":
            return part, meant
    return None


def _misread_byte(character: str) -> bytes:
    try:
        return character.encode("cp1252")
    except UnicodeEncodeError:
        return character.encode("latin-1")


class TextDoubts:
    """Counts the items with texts that look wrongly decoded, or are not in Unicode normal form C. These texts are
    stored unchanged."""

    def __init__(self) -> None:
        self._misread: list[str] = []
        self._lost: list[str] = []
        self._other_form: list[str] = []
        self._example = ("", "")
        self._counts: Counter[str] = Counter()

    def see(self, texts: Iterable[str], file: str, line: int) -> None:
        """Check the texts of one item."""
        text = "\n".join([part for part in texts if not part.isascii()])
        if not text:
            return
        place = (file, line)
        if misread := misread_utf8(text):
            self._example = self._example if self._misread else misread
            self._note(self._misread, "misread", place)
        if _UNKNOWN in text:
            self._note(self._lost, "lost", place)
        if not unicodedata.is_normalized("NFC", text):
            self._note(self._other_form, "form", place)

    def _note(self, places: list[str], kind: str, place: tuple[str, int]) -> None:
        self._counts[kind] += 1
        if len(places) < 3:
            places.append(Words("%(file)s, line %(line)s", file=place[0], line=place[1]))

    def notes(self) -> list[str]:
        """A sentence on each kind of doubt, with its number of items and the first places in the files."""
        notes: list[str] = []
        if self._misread:
            wrong, right = self._example
            notes.append(
                Words(
                    "Items with text that looks wrongly decoded, such as %(wrong)s for %(right)s: %(items)s. It is "
                    "stored as it is; correct the file if it is wrong.",
                    wrong=excerpt(wrong),
                    right=excerpt(right),
                    items=self._listed(self._misread, "misread"),
                )
            )
        if self._lost:
            notes.append(
                Words(
                    "Items with the character U+FFFD, which replaces lost characters: %(items)s.",
                    items=self._listed(self._lost, "lost"),
                )
            )
        if self._other_form:
            notes.append(
                Words(
                    "Items with text that is not in Unicode normal form C (NFC), which is stored as it is: "
                    "%(items)s. The same word in another form counts as a different word.",
                    items=self._listed(self._other_form, "form"),
                )
            )
        return notes

    def _listed(self, places: list[str], kind: str) -> str:
        count = self._counts[kind]
        more = ", ..." if count > len(places) else ""
        return joined_words([f"{count:,} (", joined_words(places), f"{more})"], "")
