"""Values of one record: their paths, the comparison of names and texts, and the conversion of text to keys and numbers.

`score`, or `annotations.safety.scores` for what is inside objects. Patterns are names with holes: `Human {rater}
{criterion}` takes a column apart, `{Model}-{position}` makes an id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from accounts.languages import canonical_language
from annotation.readers.problems import InvalidValue, excerpt

# What a spreadsheet makes of a long number: 2.9E+15.
_MANGLED = re.compile(r"[+-]?[0-9](?:[.,][0-9]+)?[Ee][+-]?[0-9]+")
# What it makes of an identifier such as 3-1: 1-Mar, Mar-01.
_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_DATED = re.compile(rf"[0-9]{{1,2}}-(?:{_MONTH})|(?:{_MONTH})-[0-9]{{2}}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,300}(?:\.[0-9]*)?")


def key_path(fields: Mapping[str, Any], path: str) -> tuple[str, ...] | None:
    """The keys that lead to a path, or None where the record has no such place. A key may itself hold dots: the
    whole name comes first, then what is before each dot, the shortest first."""
    if path in fields:
        return (path,)
    for place, character in enumerate(path):
        inner = fields.get(path[:place]) if character == "." else None
        if isinstance(inner, dict) and (rest := key_path(inner, path[place + 1 :])):
            return (path[:place], *rest)
    return None


def value_under(fields: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The value under some keys, one inside the other; nothing where one of them is missing."""
    value: Any = fields
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def value_at(fields: Mapping[str, Any], path: str) -> Any:
    """The value at a path, or nothing."""
    if path in fields:
        return fields[path]
    keys = key_path(fields, path)
    return value_under(fields, keys) if keys else None


def with_value_at(fields: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The record with another value at a path; what it shares with other records is not touched."""
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
    """A hole takes one of its words, `{name=one|two}`, or else one character or more, the first of two the most; `*`
    outside the holes takes anything."""
    parts = _HOLE.split(pattern)
    fixed = [".*".join(map(re.escape, text.split("*"))) for text in parts[::2]]
    holes = [f"({'|'.join(map(re.escape, words)) or '.+'})" for _name, words in map(_hole, parts[1::2])]
    return re.compile("".join(text for pair in zip(fixed, [*holes, ""], strict=True) for text in pair), re.DOTALL)


def _hole(inside: str) -> tuple[str, list[str]]:
    name, _, words = inside.partition("=")
    return name.strip(), [word.strip() for word in words.split("|") if word.strip()]


def hole_names(pattern: str) -> tuple[str, ...]:
    """What the holes of a pattern or template are called."""
    return tuple(_hole(inside)[0] for inside in _HOLE.findall(pattern))


def match_pattern(pattern: str, text: str) -> dict[str, str] | None:
    """What stands in the holes, or None where the text does not fit; a name used twice must stand for the same."""
    match = _compiled(pattern).fullmatch(text)
    if match is None:
        return None
    taken: dict[str, str] = {}
    for name, value in zip(hole_names(pattern), match.groups(), strict=True):
        if taken.setdefault(name, value) != value:
            return None
    return taken


def fill_template(template: str, fields: Mapping[str, Any]) -> str:
    """The template with its holes filled from a row. Raises ``Unfit`` where a column is blank or no plain value."""
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
        "nothing" if value is None else excerpt(value), f"text or a number in {column}", "compose", column
    )


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether a column goes by one of some names, in which `*` stands for anything."""
    return any(name == pattern or ("*" in pattern and fnmatchcase(name, pattern)) for pattern in patterns)


def match_file_name(pattern: str, name: str) -> dict[str, str] | None:
    """What a file's name says in the holes of a pattern. A pattern without folders looks at the name alone, so that
    `labels.csv` is also the file of that name in a zip."""
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
    """A name as it is compared: upper and lower case alike, and so is the space between its words."""
    return " ".join(as_written(name).casefold().split())


def is_blank(value: Any) -> bool:
    """Nothing, or nothing but white space."""
    return value is None or (isinstance(value, str) and not value.strip())


def as_key(value: Any, field: str, *, is_trusted: bool = False) -> str:
    """An identifier as text. What a spreadsheet has turned into a rounded number or a date is refused, unless somebody
    vouches for it (``is_trusted``)."""
    if isinstance(value, str):
        key = value.strip()
        if is_trusted and key:
            return key
        if _MANGLED.fullmatch(key):
            expected = (
                f"the whole {field}: a spreadsheet has rounded it (to accept it, set trust_ids: on in the mapping)"
            )
            raise InvalidValue(excerpt(key), expected, "mangled_id", field=field)
        if _DATED.fullmatch(key) and field != "criterion":
            expected = (
                f"the {field} as it was: a spreadsheet has changed it to a date (to accept it, set trust_ids: on)"
            )
            raise InvalidValue(excerpt(key), expected, "mangled_id", field=field)
        if key:
            return key
    elif isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    elif isinstance(value, float):
        raise InvalidValue(excerpt(value), f"the whole {field} as text or a whole number", "mangled_id", field=field)
    if is_blank(value):
        raise InvalidValue("nothing", f"the {field}", f"no_{field}", field=field)
    raise InvalidValue(excerpt(value), f"the {field} as text", "shape", field=field)


def as_text(value: Any, field: str) -> str:
    """Text, untouched; a number is written out."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise InvalidValue(excerpt(value), f"text for {field}", "shape", field=field)


def as_number(value: Any, field: str) -> float:
    """A number written out in digits with a point: no exponent, no decimal comma, no NaN."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and _NUMBER.fullmatch(text := value.strip()):
        return float(text)
    hint = f"a number for {field}; a word can be given a value in the mapping, as in values: {{{field}: {{Yes: 1}}}}"
    raise InvalidValue(excerpt(value), hint, "not_a_number", field=field)


def as_language(value: Any) -> str:
    """A language tag in its one spelling."""
    if is_blank(value):
        raise InvalidValue("nothing", "a language tag such as et or pt-BR", "no_language", field="language")
    try:
        return canonical_language(str(value))
    except ValueError as error:
        raise InvalidValue(excerpt(value), f"a language tag ({error})", "language", field="language") from None


def first_of(entry: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The value under the first of some names that an object has."""
    return next((entry[name] for name in names if name in entry), None)
