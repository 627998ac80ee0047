"""Rows of a dataset file -> items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from annotation.formats.mapping import Mapping
from annotation.formats.problems import Problems


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


def parse_items(files: Iterable[tuple[str, bytes | BinaryIO]], mapping: Mapping) -> ParsedItems:
    """Read items from ``(name, content)`` files that share one mapping. Never raises on bad input."""
    raise NotImplementedError


def content_digest(item: ItemRow) -> str:
    """SHA-256 (hex) of everything an item says, whatever its id and its place in the file."""
    raise NotImplementedError
