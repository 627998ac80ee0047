"""JSON and JSON Lines, strictly: records with the line they start on; no doubled keys, no NaN, nothing unstorable."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from accounts.inputs import holds_nul
from annotation.readers.problems import FormatError, InvalidValue, Problem, Problems, excerpt
from annotation.readers.rows import BOUNDS, FileRow, located_row, require_sparse, too_long_error, value_at
from annotation.readers.words import Words, either, joined_words

_SPACE = re.compile(r"[ \t\r\n]*")
_HALF = re.compile(r"(?<!\\)(?:\\\\)*\\u(d[89a-f][0-9a-f]{2})")
WHOLE = "."  # value of ``records`` if the whole document is one record
_DEEP = Words("records nested less deeply")
_CLOSED = '"]}'
_LONG = 2**21  # characters; a shorter text may hold what it likes
CUT_TOKEN = 32  # a word, an escape or a number cut at the end of the text looks wrong at most so far before it
SHOWN_AHEAD = 40
_LINES_HINT = Words("one object per line is JSON Lines: call such a file .jsonl")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key, count in Counter(keys).items() if count > 1)
        raise InvalidValue(
            Words("the key %(key)s twice in one object", key=excerpt(repeated)),
            Words("each key once"),
            "duplicate_key",
            repeated,
        )
    return fields


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidValue(
            Words("the number %(number)s", number=excerpt(text)), Words("a number that fits in 64 bits"), "number"
        )
    return value


def _integer(text: str) -> int:
    if len(text) > 20:
        raise InvalidValue(
            Words("the number %(number)s", number=excerpt(text)), Words("a number that fits in 64 bits"), "number"
        )
    return int(text)


def _constant(text: str) -> float:
    raise InvalidValue(text, Words("a number, or null for a missing value"), "number")


_STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_int=_integer, parse_constant=_constant)
_LENIENT = json.JSONDecoder(parse_int=float)


def read_json_lines(name: str, lines: Iterable[str], problems: Problems) -> Iterator[FileRow]:
    """Yield the object of each line that is not blank; a bad line is refused and the next one read."""
    for number, line in enumerate(lines, start=1):
        text = line.strip(" \t\r\n")
        if not text:
            continue
        try:
            if len(text) > _LONG:
                require_sparse(name, number, text)
            yield FileRow(number, _storable_object(_parsed_line(text)))
        except InvalidValue as fault:
            problems.refuse(fault.at(name, number))
        except json.JSONDecodeError as error:
            problems.refuse(_broken(name, number, error.colno, text, error))


def _parsed_line(text: str) -> Any:
    try:
        return _STRICT.decode(text)
    except RecursionError:
        raise InvalidValue(Words("brackets that are nested too deeply"), _DEEP, "nesting") from None


def read_json(
    name: str, pieces: Iterable[str], records: str | None, problems: Problems, beside: tuple[str, ...] = ()
) -> Iterator[tuple[str, FileRow]]:
    """Yield (key, record) of a document: a list of objects (key ``""``), or an object with objects or lists of objects
    as values, by key.

    ``records`` is the path of the list to read if the object has other values too, such as ``results.rows``, or is
    `WHOLE`. ``beside``: paths outside of that list; the values there, before the list, are added to each record under
    their paths. Raises ``FormatError``.
    """
    document = _Document(name, pieces, problems, beside)
    if document.peek() == "{" and records == WHOLE:
        yield from (("", record) for record in document.one_object())
    elif document.peek() == "[":
        yield from (("", record) for record in document.objects())
    elif document.peek() == "{" and records is not None:
        yield from document.in_list(records)
    elif document.peek() == "{":
        yield from document.by_key()
    else:
        raise document.error(document.place(), document.ahead(), Words("a list of records"), "shape")
    document.end()


def value_in_document(name: str, pieces: Iterable[str], path: str) -> Any:
    """The value of an object at a path, or None; the rest is skipped. Raises ``FormatError``."""
    document = _Document(name, pieces, Problems(), (path,))
    if document.peek() != "{":
        raise document.error(document.place(), document.ahead(), Words("an object with named values"), "shape")
    return document.wanted().get(path)


class _Place(NamedTuple):
    line: int
    character: int


class _Window:
    """A cursor over text that comes in pieces; the text before the cursor is freed."""

    def __init__(self, name: str, pieces: Iterable[str]) -> None:
        self.name = name
        self.text, self.at = "", 0
        self._pieces = iter(pieces)
        self._whole = False
        self._counted, self._line, self._line_start = 0, 1, 0  # how far lines are counted, within the text at hand

    def more(self) -> bool:
        """Read further pieces until the text ahead is twice as long; returns whether there were any."""
        if len(self.text) - self.at > BOUNDS.cell:
            raise too_long_error(self.name, self.place().line, Words("a record"), "record_size")
        taken, wanted = [], max(1, len(self.text) - self.at)
        while wanted > 0 and (piece := next(self._pieces, None)) is not None:
            taken.append(piece)
            wanted -= len(piece)
        if not any(taken):
            self._whole = True
            return False
        self._count(self.at)
        self.text = self.text[self.at :] + "".join(taken)
        if len(self.text) > _LONG:
            require_sparse(self.name, self._line, self.text)
        self._counted, self._line_start, self.at = 0, self._line_start - self.at, 0
        return True

    @property
    def is_whole(self) -> bool:
        """Whether the loaded text is known to reach to the end."""
        return self._whole

    def _count(self, at: int) -> None:
        self._line += self.text.count("\n", self._counted, at)
        if (last := self.text.rfind("\n", self._counted, at)) >= 0:
            self._line_start = last + 1
        self._counted = at

    def place(self, at: int | None = None) -> _Place:
        """Line and character of a position, by default the cursor's. Call it with increasing positions."""
        at = self.at if at is None else at
        self._count(at)
        return _Place(self._line, at - self._line_start + 1)

    def error(self, place: _Place, actual: str, expected: str, code: str) -> FormatError:
        """A fault at a place."""
        return FormatError(
            Problem(
                self.name, place.line, Words("character %(number)s", number=place.character), actual, expected, code
            )
        )

    def peek(self) -> str:
        """The next character that is not white space, or ""."""
        while True:
            self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.text) or not self.more():
                return self.text[self.at : self.at + 1]

    def ahead(self) -> str:
        """The next text, as shown in a sentence."""
        while len(self.text) - self.at < SHOWN_AHEAD and self.more():
            pass
        return excerpt(self.text[self.at : self.at + SHOWN_AHEAD].strip())


class _Document(_Window):
    """Decodes one record at a time and knows the line it is on."""

    def __init__(self, name: str, pieces: Iterable[str], problems: Problems, beside: tuple[str, ...] = ()) -> None:
        super().__init__(name, pieces)
        self.problems = problems
        self._beside = beside
        self._outside: dict[str, Any] = {}
        self._are_records_read = False

    def objects(self, of: str = "") -> Iterator[FileRow]:
        """The objects of the list that begins here; invalid entries are refused. ``of`` is the list's path."""
        before = self.place().line
        for number, _ in enumerate(self._separated("]")):
            line = self.place().line
            yield from self.one_object(f"{of}[{number}]" if line == before else "")
            before = line

    def one_object(self, path: str = "") -> Iterator[FileRow]:
        """The object that begins here, unless it is refused; ``path`` is given if the line number is not enough."""
        line = self.place().line
        try:
            yield located_row(line, _storable_object(self._value()), path)
        except InvalidValue as fault:
            self.problems.refuse(fault.at(self.name, line, path=path))

    def in_list(self, records: str, within: str = "") -> Iterator[tuple[str, FileRow]]:
        """The objects in the list at a path of the object that begins here, with the values beside the list."""
        head, _dot, rest = records.partition(".")
        seen: set[str] = set()
        for start, key in self._keys(seen):
            path = f"{within}.{key}" if within else key
            opening = "{" if key == head and key != records else "["
            if key not in (head, records):
                self._pass(path, start)
            elif self.peek() != opening:
                kind = Words("an object") if opening == "{" else Words("a list of records")
                raise self.error(
                    start, self.ahead(), Words("%(kind)s called %(path)s", kind=kind, path=excerpt(path)), "shape"
                )
            elif opening == "{":
                yield from self.in_list(rest, path)
            else:
                self._are_records_read = True
                for row in self.objects("".join(f"[{excerpt(part)}]" for part in path.split("."))):
                    yield key, row.with_fields({**self._outside, **row.fields}) if self._outside else row
        if records not in seen and head not in seen:
            raise self.error(
                self.place(), Words("no such list"), Words("a list called %(name)s", name=excerpt(records)), "shape"
            )

    def wanted(self) -> dict[str, Any]:
        """The values of the object that begins here at the ``beside`` paths, if there is no list of records."""
        for start, key in self._keys(set()):
            self._pass(key, start)
        return self._outside

    def _pass(self, path: str, start: _Place) -> None:
        """Step over a value outside of the records, and keep its values at the ``beside`` paths."""
        wanted = [wanted for wanted in self._beside if wanted == path or wanted.startswith(f"{path}.")]
        if wanted and self._are_records_read:
            raise self.error(
                start, Words("%(path)s after the records", path=excerpt(path)), Words("it before them"), "shape"
            )
        if not wanted:
            self._skip()
            return
        value = self.certain_value()
        for name in wanted:
            self._outside[name] = value if name == path else value_at({path: value}, name)

    def _keys(self, seen: set[str]) -> Iterator[tuple[_Place, str]]:
        """The keys of the object that begins here, each with its place; each is put into ``seen``."""
        for _ in self._separated("}"):
            start, key = self.place(), self._key()
            if key in seen:
                raise self.error(
                    start, Words("the key %(key)s twice", key=excerpt(key)), Words("each key once"), "duplicate_key"
                )
            seen.add(key)
            yield start, key

    def by_key(self) -> Iterator[tuple[str, FileRow]]:
        """The objects in the object that begins here with their keys; for lists in it, their objects with the key of
        the list."""
        seen: set[str] = set()
        opening, before = "", self.place().line
        for start, key in self._keys(seen):
            opening = opening or self.peek()
            if opening not in ("[", "{") or self.peek() != opening:
                raise self.error(start, Words("%(key)s beside the records", key=excerpt(key)), _which(seen), "shape")
            path = f"[{excerpt(key)}]"
            is_beside = start.line == before
            objects = self.objects(path) if opening == "[" else self.one_object(path if is_beside else "")
            yield from ((key, record) for record in objects)
            before = start.line

    def end(self) -> None:
        """Raise ``FormatError`` if anything follows the document."""
        if self.peek():
            text = Words("more text: %(text)s", text=self.ahead())
            raise self.error(self.place(), text, Words("one JSON document; %(hint)s", hint=_LINES_HINT), "json")

    def _separated(self, closing: str) -> Iterator[None]:
        """Step over the brackets and commas of a list or object; yields before each member."""
        self.at += 1
        if self.peek() == closing:
            self.at += 1
            return
        while True:
            self.peek()
            yield
            if self._expected(f",{closing}") == closing:
                return

    def _expected(self, characters: str) -> str:
        character = self.peek()
        if not character:
            raise self._truncated()
        if character not in characters:
            names = either(map(excerpt, characters))
            raise self.error(self.place(), self.ahead(), names, "json")
        self.at += 1
        return character

    def _key(self) -> str:
        key = self.certain_value()
        if not isinstance(key, str):
            raise self.error(self.place(), excerpt(key), Words("a key in quotes"), "json")
        self._expected(":")
        self.peek()
        return key

    def certain_value(self) -> Any:
        """Decode a value that is not a record; a fault in it is a fault of the document."""
        start = self.place()
        try:
            value = self._value()
            require_storable(value)
        except InvalidValue as fault:
            raise self.error(start, fault.found, fault.expected, fault.code) from None
        return value

    def _skip(self) -> None:
        """Step over a value that is not used, also if its numbers are invalid; a list is skipped entry by entry."""
        if self.peek() != "[":
            _value, self.at = self._decoded(_LENIENT)
            return
        for _ in self._separated("]"):
            _value, self.at = self._decoded(_LENIENT)

    def _value(self) -> Any:
        """Decode the value here and step over it, also when it is invalid (then ``InvalidValue`` is raised)."""
        try:
            value, end = self._decoded(_STRICT)
        except InvalidValue:
            # Now that all of it is at hand; a number that was cut at the end of the text may have looked unfit.
            _, end = self._decoded(_LENIENT)
            start, self.at = self.at, end
            return _STRICT.raw_decode(self.text, start)[0]
        self.at = end
        return value

    def _decoded(self, decoder: json.JSONDecoder) -> tuple[Any, int]:
        """The value that begins at the cursor and where it ends, once enough text is at hand."""
        while True:
            try:
                value, end = decoder.raw_decode(self.text, self.at)
            except RecursionError:
                place = self.place()
                raise self.error(place, Words("brackets that are nested too deeply"), _DEEP, "nesting") from None
            except json.JSONDecodeError as error:
                if self.is_whole or not _by_the_end(error, len(self.text)):
                    raise self._broken(error) from None
            else:
                # A list, object or text ends itself; a number may go on.
                if self.is_whole or self.text[end - 1] in _CLOSED or end < len(self.text) - CUT_TOKEN:
                    return value, end
            self.more()

    def _broken(self, error: json.JSONDecodeError) -> FormatError:
        if not self.text[error.pos :].strip() or error.msg.startswith("Unterminated string"):
            return self._truncated(self.place())
        place, self.at = self.place(error.pos), error.pos
        return self.error(place, f"{self.ahead()} ({error.msg})", Words("valid JSON"), "json")

    def _truncated(self, start: _Place | None = None) -> FormatError:
        actual: str = Words("the end of the file")
        if start:
            actual = Words("the end of the file, inside the record that starts on line %(line)s", line=start.line)
        return self.error(self.place(len(self.text)), actual, Words("the rest of it"), "truncated")


def _by_the_end(error: json.JSONDecodeError, length: int) -> bool:
    """Whether a fault may only come from the end of the loaded text, which cuts a text, a word or a number."""
    return error.msg.startswith("Unterminated string") or error.pos > length - CUT_TOKEN


def _which(seen: set[str]) -> str:
    named = Words("records: NAME under “Mapping (YAML)” to choose the list with them")
    return Words(
        "nothing but records, or lists of records (seen: %(names)s), or %(choice)s",
        names=", ".join(sorted(seen)),
        choice=joined_words([named, _LINES_HINT], "; "),
    )


def _broken(name: str, number: int, character: int, text: str, error: json.JSONDecodeError) -> Problem:
    if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
        ended = Words("the end of the line inside a record")
        return Problem(
            name,
            number,
            Words("character %(number)s", number=character),
            ended,
            Words("one whole JSON object per line"),
            "truncated",
        )
    actual = f"{excerpt(text[error.pos : error.pos + 40])} ({error.msg})"
    return Problem(
        name, number, Words("character %(number)s", number=character), actual, Words("one JSON object per line"), "json"
    )


def _storable_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValue(excerpt(value), Words("an object with named values"), "shape")
    require_storable(value)
    return value


def require_storable(value: Any) -> None:
    """Raise ``InvalidValue`` for values that no database stores: NUL, half surrogate pairs, integers over 64 bits."""
    try:
        written = orjson.dumps(value)
    except TypeError as error:
        expected = Words("text in whole Unicode characters and numbers within 64 bits")
        raise InvalidValue(_half(value) or str(error), expected, "unstorable", _key_of_fault(value)) from None
    if b"\\u0000" in written and holds_nul(value):
        raise InvalidValue(
            Words("a NUL character (U+0000)"), Words("text without NUL characters"), "nul", _key_of_fault(value)
        )


def _half(value: Any) -> str:
    """The name of half a surrogate pair in a value, or ""."""
    # Deep values are searched as Python writes them, which spells such halves out.
    spelt = _HALF.search(repr(value))
    return Words("half a surrogate pair (U+%(code)s)", code=spelt[1].upper()) if spelt else ""


def _key_of_fault(value: Any) -> str | None:
    """The key of the value in an object that can't be stored; None if the key itself can't be stored."""
    for key, part in value.items() if isinstance(value, dict) else ():
        try:
            require_storable(part)
        except InvalidValue:
            return str(key) if key.isprintable() else None
    return None


def parse_document(name: str, text: str) -> Any:
    """The one value of a JSON text. Raises ``FormatError``."""
    document = _Document(name, [text], Problems())
    document.peek()
    value = document.certain_value()
    document.end()
    return value
