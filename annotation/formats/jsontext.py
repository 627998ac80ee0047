"""JSON and JSON Lines, strictly: records with the line they start on; no doubled keys, no NaN, nothing unstorable."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from annotation.formats.problems import FormatError, Problem, Problems, Unfit, excerpt

_SPACE = re.compile(r"[ \t\r\n]*")
_DEEP = "records nested less deeply"
_LINES_HINT = "one object per line is JSON Lines: call such a file .jsonl"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise Unfit(f"the key {excerpt(repeated)} twice in one object", "each key once", "duplicate_key", repeated)
    return fields


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise Unfit(f"the number {excerpt(text)}", "a number that fits in 64 bits", "number")
    return value


def _integer(text: str) -> int:
    if len(text) > 20:
        raise Unfit(f"the number {excerpt(text)}", "a number that fits in 64 bits", "number")
    return int(text)


def _constant(text: str) -> float:
    raise Unfit(text, "a number, or null for a missing value", "number")


_STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_int=_integer, parse_constant=_constant)
_LENIENT = json.JSONDecoder(parse_int=float)


def read_json_lines(name: str, lines: Iterable[str], problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, object) of each line that is not blank; a bad line is refused and the next one read."""
    for number, line in enumerate(lines, start=1):
        text = line.strip(" \t\r\n")
        if not text:
            continue
        try:
            yield number, _storable_object(_parsed_line(text))
        except Unfit as fault:
            problems.refuse(fault.at(name, number))
        except json.JSONDecodeError as error:
            problems.refuse(_broken(name, number, error.colno, text, error))


def _parsed_line(text: str) -> Any:
    try:
        return _STRICT.decode(text)
    except RecursionError:
        raise Unfit("brackets within brackets, too deep to read", _DEEP, "nesting") from None


def read_json(name: str, text: str, records: str | None, problems: Problems) -> Iterator[tuple[int, str, Any]]:
    """Yield (line, key, object) of a document: a list of objects (key ``""``), or an object of such lists by key.

    ``records`` names the one list to read when the object holds other things too. Raises ``FormatError``.
    """
    document = _Document(name, text, problems)
    if document.peek() == "[":
        yield from ((line, "", record) for line, record in document.objects())
    elif document.peek() == "{":
        yield from document.lists(records)
    else:
        raise document.error(document.at, excerpt(text[:40].strip()), "a list of records", "shape")
    document.end()


class _Document:
    """A cursor over a JSON text that decodes one record at a time and knows the line it is on."""

    def __init__(self, name: str, text: str, problems: Problems) -> None:
        self.name, self.text, self.problems = name, text, problems
        self.at = 0
        self._counted, self._line = 0, 1

    def peek(self) -> str:
        """The next character that is not white space, or nothing."""
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.text[self.at : self.at + 1]

    def line(self, at: int) -> int:
        """The physical line of a position; positions are asked for in rising order, so lines are counted once."""
        if at < self._counted:
            return self.text.count("\n", 0, at) + 1
        self._line += self.text.count("\n", self._counted, at)
        self._counted = at
        return self._line

    def error(self, at: int, found: str, expected: str, code: str) -> FormatError:
        """A fault at a position, with its line and character."""
        character = at - self.text.rfind("\n", 0, at)
        return FormatError(Problem(self.name, self.line(at), f"character {character}", found, expected, code))

    def objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The objects of the list that begins here; what is no good object is refused."""
        for _ in self._separated("]"):
            line = self.line(self.at)
            try:
                yield line, _storable_object(self._value())
            except Unfit as fault:
                self.problems.refuse(fault.at(self.name, line))

    def lists(self, records: str | None) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """The objects of the lists of the object that begins here, with the key of their list."""
        seen: set[str] = set()
        for _ in self._separated("}"):
            start, key = self.at, self._key()
            if key in seen:
                raise self.error(start, f"the key {excerpt(key)} twice", "each key once", "duplicate_key")
            seen.add(key)
            if records is not None and key != records:
                self.certain_value()
            elif self.peek() == "[":
                yield from ((line, key, record) for line, record in self.objects())
            else:
                raise self.error(start, f"{excerpt(key)} beside the records", _which(seen), "shape")
        if records is not None and records not in seen:
            raise self.error(self.at, "no such list", f"a list called {excerpt(records)}", "shape")

    def end(self) -> None:
        """Nothing may follow the document."""
        if self.peek():
            found = f"more text: {excerpt(self.text[self.at : self.at + 40])}"
            raise self.error(self.at, found, f"one JSON document; {_LINES_HINT}", "json")

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
        found = self.peek()
        if not found:
            raise self._truncated()
        if found not in characters:
            names = " or ".join(excerpt(char) for char in characters)
            raise self.error(self.at, excerpt(self.text[self.at : self.at + 40]), names, "json")
        self.at += 1
        return found

    def _key(self) -> str:
        key = self.certain_value()
        if not isinstance(key, str):
            raise self.error(self.at, excerpt(key), "a key in quotes", "json")
        self._expected(":")
        self.peek()
        return key

    def certain_value(self) -> Any:
        """Decode a value that is no record, so that a fault in it is a fault of the document."""
        start = self.at
        try:
            value = self._value()
            require_storable(value)
        except Unfit as fault:
            raise self.error(start, fault.found, fault.expected, fault.code) from None
        return value

    def _value(self) -> Any:
        """Decode the value here and step over it, also when something in it is unfit (then ``Unfit`` is raised)."""
        start = self.at
        try:
            value, self.at = self._guarded(_STRICT.raw_decode, start)
        except Unfit:
            _, self.at = self._guarded(_LENIENT.raw_decode, start)
            raise
        return value

    def _guarded(self, decode: Callable[[str, int], tuple[Any, int]], start: int) -> tuple[Any, int]:
        try:
            return decode(self.text, start)
        except RecursionError:
            raise self.error(start, "brackets within brackets, too deep to read", _DEEP, "nesting") from None
        except json.JSONDecodeError as error:
            if not self.text[error.pos :].strip() or error.msg.startswith("Unterminated string"):
                raise self._truncated(start) from None
            found = f"{excerpt(self.text[error.pos : error.pos + 40])} ({error.msg})"
            raise self.error(error.pos, found, "valid JSON", "json") from None

    def _truncated(self, start: int | None = None) -> FormatError:
        where = f", inside the record that starts on line {self.line(start)}" if start is not None else ""
        return self.error(len(self.text), f"the end of the file{where}", "the rest of it", "truncated")


def _which(seen: set[str]) -> str:
    named = "records: NAME in the mapping to say which list holds them"
    return f"nothing but lists of records (seen: {', '.join(sorted(seen))}), or {named}; {_LINES_HINT}"


def _broken(name: str, number: int, character: int, text: str, error: json.JSONDecodeError) -> Problem:
    if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
        found = "the end of the line inside a record"
        return Problem(name, number, f"character {character}", found, "one whole JSON object per line", "truncated")
    found = f"{excerpt(text[error.pos : error.pos + 40])} ({error.msg})"
    return Problem(name, number, f"character {character}", found, "one JSON object per line", "json")


def _storable_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unfit(excerpt(value), "an object with named values", "shape")
    require_storable(value)
    return value


def require_storable(value: Any) -> None:
    """Raise ``Unfit`` for what no database or UTF-8 file holds: NUL, half surrogate pairs, integers beyond 64 bits."""
    try:
        written = orjson.dumps(value)
    except TypeError as error:
        raise Unfit(str(error), "text in whole Unicode characters and numbers within 64 bits", "unstorable") from None
    if b"\\u0000" in written and _holds_nul(value):
        raise Unfit("a NUL character (\\u0000)", "text without NUL characters", "nul")


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_holds_nul(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(_holds_nul(part) for part in value)


def parse_document(name: str, text: str) -> Any:
    """The one value of a JSON text. Raises ``FormatError``."""
    document = _Document(name, text, Problems())
    document.peek()
    value = document.certain_value()
    document.end()
    return value
