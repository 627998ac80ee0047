"""The items that a check-up reads, and what several checks need of them, worked out once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import regex

LONGEST_PART = 100_000  # characters of one turn or field that are read; a longer one is a finding of its own
LONGEST_ITEM = 400_000  # characters of one item that are read
_BETWEEN_WORDS = regex.compile(r"[^\p{L}\p{M}\p{N}]+")

# By the code of a script in language tags, the scripts of its letters as Unicode names them.
SCRIPTS: Mapping[str, tuple[str, ...]] = {
    "Arab": ("Arabic",),
    "Armn": ("Armenian",),
    "Beng": ("Bengali",),
    "Cyrl": ("Cyrillic",),
    "Deva": ("Devanagari",),
    "Ethi": ("Ethiopic",),
    "Geor": ("Georgian",),
    "Grek": ("Greek",),
    "Gujr": ("Gujarati",),
    "Guru": ("Gurmukhi",),
    "Hans": ("Han", "Bopomofo"),
    "Hant": ("Han", "Bopomofo"),
    "Hebr": ("Hebrew",),
    "Jpan": ("Han", "Hiragana", "Katakana"),
    "Khmr": ("Khmer",),
    "Knda": ("Kannada",),
    "Kore": ("Hangul", "Han"),
    "Laoo": ("Lao",),
    "Latn": ("Latin",),
    "Mlym": ("Malayalam",),
    "Mong": ("Mongolian",),
    "Mymr": ("Myanmar",),
    "Orya": ("Oriya",),
    "Sinh": ("Sinhala",),
    "Taml": ("Tamil",),
    "Telu": ("Telugu",),
    "Thaa": ("Thaana",),
    "Thai": ("Thai",),
    "Tibt": ("Tibetan",),
}
_NAMES = ["Latin", *sorted({name for names in SCRIPTS.values() for name in names} - {"Latin"})]  # most letters first
_RUNS = regex.compile("|".join(rf"(?P<{name}>[\p{{Script={name}}}&&[\p{{L}}\p{{M}}]]+)" for name in _NAMES), regex.V1)


class TextPart(NamedTuple):
    """A turn, by its index, or a named field of an item, with its text as far as it is read."""

    place: int | str
    text: str


class ScriptRun(NamedTuple):
    """Neighbouring letters of one script."""

    script: str
    place: int | str
    start: int
    letters: str


@dataclass(frozen=True)
class CheckedItem:
    """One item. ``roles``: who speaks, by turn. ``characters``: all that it has, read or not.

    ``cut``: the parts that are longer than what is read of them, with their lengths. ``unread``: a digest of what is
    not read; empty if everything is.
    """

    ordinal: int
    language: str
    generator: str
    scenario: str
    roles: tuple[str, ...]
    parts: tuple[TextPart, ...]
    characters: int
    cut: tuple[tuple[int | str, int], ...] = ()
    unread: bytes = b""

    @cached_property
    def turns(self) -> tuple[TextPart, ...]:
        return self.parts[: len(self.roles)]

    @cached_property
    def text(self) -> str:
        """Everything that is read of it."""
        return "\n".join(part.text for part in self.parts)

    @cached_property
    def words(self) -> str:
        """Its text without case, spaces and punctuation, as it is compared with others."""
        return str(_BETWEEN_WORDS.sub(" ", self.text.casefold()).strip())

    @cached_property
    def script_runs(self) -> list[ScriptRun]:
        return [
            ScriptRun(str(run.lastgroup), part.place, run.start(), run.group())
            for part in self.parts
            for run in _RUNS.finditer(part.text)
        ]

    @cached_property
    def letters(self) -> Counter[str]:
        """How many letters it has of every script."""
        counted: Counter[str] = Counter()
        for part in self.parts:
            for run in _RUNS.finditer(part.text):  # few items need `script_runs`, whose rows take as long again
                counted[str(run.lastgroup)] += run.end() - run.start()
        return counted


def checked_item(
    *,
    ordinal: int,
    language: str,
    generator: str,
    scenario: str,
    turns: Sequence[Mapping[str, str]],
    fields: Mapping[str, Any],
) -> CheckedItem:
    """An item of the database or of a file, with its texts cut to what a check-up reads."""
    parts: list[TextPart] = []
    cut: list[tuple[int | str, int]] = []
    left, characters, unread = LONGEST_ITEM, 0, blake2b(digest_size=12)
    for place, text in _texts(turns, fields):
        shown = text[: min(LONGEST_PART, left)]
        left -= len(shown)
        characters += len(text)
        parts.append(TextPart(place, shown))
        if len(shown) < len(text):
            cut.append((place, len(text)))
            unread.update(f"{place}\n{text[len(shown) :]}\n".encode(errors="surrogatepass"))
    roles = tuple(turn["speaker"] for turn in turns)
    return CheckedItem(
        ordinal=ordinal,
        language=language,
        generator=generator,
        scenario=scenario,
        roles=roles,
        parts=tuple(parts),
        characters=characters,
        cut=tuple(cut),
        unread=unread.digest() if cut else b"",
    )


def _texts(turns: Sequence[Mapping[str, str]], fields: Mapping[str, Any]) -> Iterator[tuple[int | str, str]]:
    yield from ((index, turn["text"]) for index, turn in enumerate(turns))
    for name, value in fields.items():
        yield name, "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def excerpt_around(text: str, start: int, end: int, *, around: int = 30) -> str:
    """A short piece of a text with what was found in it, in one line."""
    first, last = max(0, start - around), min(len(text), end + around, start + 160)
    piece = " ".join(text[first:last].split())
    return f"{'…' if first else ''}{piece}{'…' if last < len(text) else ''}"
