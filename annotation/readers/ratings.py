"""Rows of rating files -> ratings, one per rater, item and criterion."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import NamedTuple

from annotation.readers.answers import AnswerReader, Counts, as_answer, optional_number
from annotation.readers.cells import Columns
from annotation.readers.columns import Facts
from annotation.readers.fields import as_key, as_language, is_blank
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems
from annotation.readers.progress import Meter, Progress
from annotation.readers.reading import File
from annotation.readers.remembering import converted, remembered
from annotation.readers.spool import Plain, Spool


class RatingRow(NamedTuple):
    """One person's answer on one criterion of one item: a score, or not applicable, or missing (never two of them).

    ``file``, ``line`` and ``column`` are where a fault in the score is to be found.
    """

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
    column: str = "score"


@dataclass(frozen=True, slots=True)
class ParsedRatings:
    """``read = len(rows) + collapsed + refused``; ``rows`` holds the missing ones too, marked so.

    ``collapsed`` identical repetitions (``collapsed_blank`` of them blank); ``missing`` rows without a score.
    """

    rows: Spool[RatingRow]
    read: int
    collapsed: int
    collapsed_blank: int
    refused: int
    problems: Problems

    def counts(self) -> Counts:
        """How many rows carry a score, N/A or nothing, and what they name."""
        return Counts.of(self.rows)

    @property
    def missing(self) -> int:
        """Rows without a score."""
        return self.counts().missing

    @property
    def scored(self) -> int:
        """Rows that carry a score."""
        return self.counts().scored


def parse_ratings(
    files: Iterable[File], mapping: Mapping, *, progress: Progress | None = None, facts: Facts | None = None
) -> ParsedRatings:
    """Read the ratings of one study from all its ``(name, content)`` files at once. Never raises on bad input.

    Repeated (rater, item, criterion) rows that say the same collapse and are counted, also across files; rows that
    contradict each other are problems naming both lines. A blank score is missing, never 0.
    """
    reader = AnswerReader(mapping, _Builder(mapping), RatingRow._make, _key)
    rows = reader.read_files(Meter(files, progress, facts))
    return ParsedRatings(
        rows=rows,
        read=reader.read,
        collapsed=reader.repetitions.collapsed,
        collapsed_blank=reader.repetitions.collapsed_blank,
        refused=reader.problems.refused,
        problems=reader.problems,
    )


_key: Callable[[Plain], Hashable] = itemgetter(0, 1, 2)


class _Builder:
    """Makes ratings of answers. Files say the same few things over and over: what was converted is remembered."""

    who = "rater"

    def __init__(self, mapping: Mapping) -> None:
        key = partial(as_key, is_trusted=mapping.trust_ids)
        self._answer = remembered(as_answer)
        self._key = {name: remembered(partial(key, field=name)) for name in ("item", "rater", "criterion")}
        self._number = {name: remembered(partial(optional_number, field=name)) for name in ("seconds", "scale_max")}
        self._language = remembered(lambda value: None if is_blank(value) else as_language(value))

    def rows(self, answers: Columns, file: str) -> list[Plain]:
        given = zip(*self._answer.each(answers["score"]), strict=True)  # score, applicable, missing
        blank = [None] * len(answers["line"])
        keys = [convert.each(answers.get(name, blank)) for name, convert in self._key.items()]
        seconds, scale_max = (converted(convert, answers.get(name)) for name, convert in self._number.items())
        language = converted(self._language, answers.get("language"))
        beside = (answers["rationale"], seconds, language, scale_max)
        return list(zip(*keys, *given, *beside, repeat(file), answers["line"], answers["column"], strict=False))
