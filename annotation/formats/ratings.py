"""Rows of rating files -> ratings, one per rater, item and criterion."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from annotation.formats.answers import AnswerReader, Cell, as_answer
from annotation.formats.fields import as_key, as_language, as_number, is_blank
from annotation.formats.mapping import Mapping
from annotation.formats.problems import Problems
from annotation.formats.reading import File


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


def parse_ratings(files: Iterable[File], mapping: Mapping) -> ParsedRatings:
    """Read the ratings of one study from all its ``(name, content)`` files at once. Never raises on bad input.

    Repeated (rater, item, criterion) rows that say the same collapse and are counted, also across files; rows that
    contradict each other are problems naming both lines. A blank score is missing, never 0.
    """
    reader = AnswerReader(mapping, "rater", _rating)
    for name, raw in files:
        reader.read_file(name, raw)
    rows = reader.ledger.rows()
    return ParsedRatings(
        rows=rows,
        read=reader.read,
        collapsed=reader.ledger.collapsed,
        collapsed_blank=reader.ledger.collapsed_blank,
        missing=sum(row.missing for row in rows),
        refused=reader.problems.refused,
        problems=reader.problems,
    )


def _rating(values: dict[str, Any], cell: Cell, file: str, line: int) -> tuple[Hashable, RatingRow]:
    answer = as_answer(cell.score)
    row = RatingRow(
        item=as_key(values.get("item"), "item"),
        rater=as_key(cell.rater if cell.rater is not None else values.get("rater"), "rater"),
        criterion=as_key(cell.criterion, "criterion"),
        score=answer.score,
        applicable=answer.applicable,
        missing=answer.missing,
        rationale=cell.rationale,
        seconds=_optional_number(values.get("seconds"), "seconds"),
        language=None if is_blank(values.get("language")) else as_language(values["language"]),
        scale_max=_optional_number(values.get("scale_max"), "scale_max"),
        file=file,
        line=line,
    )
    return (row.rater, row.item, row.criterion), row


def _optional_number(value: Any, field: str) -> float | None:
    return None if is_blank(value) else as_number(value, field)
