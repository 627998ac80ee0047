"""Rows of rating files -> ratings, one per rater, item and criterion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from annotation.formats.mapping import Mapping
from annotation.formats.problems import Problems


class RatingRow(NamedTuple):
    """One person's answer on one criterion of one item: a score, or not applicable, or missing (never two of them)."""

    item: str
    rater: str
    criterion: str
    score: float | None
    applicable: bool
    missing: bool
    rationale: str
    seconds: float | None
    language: str | None
    scale_max: float | None
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class ParsedRatings:
    """``read = len(rows) + collapsed + refused``; ``rows`` holds the missing ones too, marked so.

    ``collapsed`` identical repetitions (``collapsed_blank`` of them blank); ``missing`` rows without a score.
    """

    rows: list[RatingRow]
    read: int
    collapsed: int
    collapsed_blank: int
    missing: int
    refused: int
    problems: Problems

    @property
    def scored(self) -> int:
        """Rows that carry a score."""
        return sum(row.score is not None for row in self.rows)


def parse_ratings(files: Iterable[tuple[str, bytes | BinaryIO]], mapping: Mapping) -> ParsedRatings:
    """Read the ratings of one study from all its ``(name, content)`` files at once. Never raises on bad input.

    Repeated (rater, item, criterion) rows that say the same collapse and are counted, also across files; rows that
    contradict each other are problems naming both lines. A blank score is missing, never 0.
    """
    raise NotImplementedError
