"""Rows of files written by other people's judges -> verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from annotation.formats.mapping import Mapping
from annotation.formats.problems import Problems


class VerdictRow(NamedTuple):
    """One judge's answer on one criterion of one item; the score may be a fraction or off the scale (intake flags it).

    ``generator`` is given where the id of an item is only unique together with it; ``reply`` is the judge's raw text.
    """

    item: str
    judge: str
    criterion: str
    score: float | None
    applicable: bool
    missing: bool
    rationale: str
    repeat: int
    reply: str
    generator: str | None
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class ParsedVerdicts:
    """``read = len(rows) + collapsed + refused``; ``rows`` holds the missing ones too, marked so."""

    rows: list[VerdictRow]
    read: int
    collapsed: int
    collapsed_blank: int
    missing: int
    refused: int
    problems: Problems


def parse_verdicts(files: Iterable[tuple[str, bytes | BinaryIO]], mapping: Mapping) -> ParsedVerdicts:
    """Read verdicts from all ``(name, content)`` files at once, long or with one column per criterion."""
    raise NotImplementedError
