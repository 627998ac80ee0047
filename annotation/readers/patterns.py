"""Names with holes: `Human {rater} {criterion}` takes a column apart, `{Model}-{position}` makes an id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from annotation.readers.paths import found
from annotation.readers.problems import Unfit, excerpt

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


def names_in(pattern: str) -> tuple[str, ...]:
    """What the holes of a pattern or template are called."""
    return tuple(_hole(inside)[0] for inside in _HOLE.findall(pattern))


def taken_apart(pattern: str, text: str) -> dict[str, str] | None:
    """What stands in the holes, or None where the text does not fit; a name used twice must stand for the same."""
    match = _compiled(pattern).fullmatch(text)
    if match is None:
        return None
    taken: dict[str, str] = {}
    for name, value in zip(names_in(pattern), match.groups(), strict=True):
        if taken.setdefault(name, value) != value:
            return None
    return taken


def put_together(template: str, fields: Mapping[str, Any]) -> str:
    """The template with its holes filled from a row. Raises ``Unfit`` where a column is blank or no plain value."""
    pieces = _HOLE.split(template)
    for place in range(1, len(pieces), 2):
        pieces[place] = _plain(pieces[place], found(fields, pieces[place]))
    return "".join(pieces)


def _plain(column: str, value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        return str(value).strip()
    raise Unfit("nothing" if value is None else excerpt(value), f"text or a number in {column}", "compose", column)


def fits(name: str, patterns: Iterable[str]) -> bool:
    """Whether a column goes by one of some names, in which `*` stands for anything."""
    return any(name == pattern or ("*" in pattern and fnmatchcase(name, pattern)) for pattern in patterns)


def file_fits(pattern: str, name: str) -> dict[str, str] | None:
    """What a file's name says in the holes of a pattern. A pattern without folders looks at the name alone, so that
    `labels.csv` is also the file of that name in a zip."""
    path = name.replace("\\", "/")
    return taken_apart(pattern, path if "/" in pattern else PurePosixPath(path).name)
