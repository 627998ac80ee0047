"""Rows of rating files -> ratings, one per rater, item and criterion; rows of files of judges -> verdicts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

from annotation.readers.answers import (
    AnswerCounts,
    AnswerReader,
    ValuesByField,
    as_answer,
    cached_conversion,
    convert_column,
    optional_number,
)
from annotation.readers.archives import File
from annotation.readers.columns import TableFacts
from annotation.readers.mapping import Mapping
from annotation.readers.problems import InvalidValue, Problems, Progress, excerpt
from annotation.readers.reading import FileProgress
from annotation.readers.spool import PlainRow, Spool
from annotation.readers.values import as_key, as_language, as_number, as_text, is_blank


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

    def counts(self) -> AnswerCounts:
        """How many rows carry a score, N/A or nothing, and what they name."""
        return AnswerCounts.of(self.rows)

    @property
    def missing(self) -> int:
        """Rows without a score."""
        return self.counts().missing

    @property
    def scored(self) -> int:
        """Rows that carry a score."""
        return self.counts().scored


def parse_ratings(
    files: Iterable[File], mapping: Mapping, *, progress: Progress | None = None, facts: TableFacts | None = None
) -> ParsedRatings:
    """Read the ratings of one study from all its ``(name, content)`` files at once. Never raises on bad input.

    Repeated (rater, item, criterion) rows that say the same collapse and are counted, also across files; rows that
    contradict each other are problems naming both lines. A blank score is missing, never 0.
    """
    reader = AnswerReader(mapping, _RatingBuilder(mapping), RatingRow._make, _rating_key)
    rows = reader.read_files(FileProgress(files, progress, facts))
    return ParsedRatings(
        rows=rows,
        read=reader.read,
        collapsed=reader.repetitions.collapsed,
        collapsed_blank=reader.repetitions.collapsed_blank,
        refused=reader.problems.refused,
        problems=reader.problems,
    )


_rating_key: Callable[[PlainRow], Hashable] = itemgetter(0, 1, 2)


class _RatingBuilder:
    """Makes ratings of answers. Files say the same few things over and over: what was converted is remembered."""

    who = "rater"

    def __init__(self, mapping: Mapping) -> None:
        key = partial(as_key, is_trusted=mapping.trust_ids)
        self._answer = cached_conversion(as_answer)
        self._key = {name: cached_conversion(partial(key, field=name)) for name in ("item", "rater", "criterion")}
        self._number = {
            name: cached_conversion(partial(optional_number, field=name)) for name in ("seconds", "scale_max")
        }
        self._language = cached_conversion(lambda value: None if is_blank(value) else as_language(value))

    def rows(self, answers: ValuesByField, file: str) -> list[PlainRow]:
        given = zip(*self._answer.each(answers["score"]), strict=True)  # score, applicable, missing
        blank = [None] * len(answers["line"])
        keys = [convert.each(answers.get(name, blank)) for name, convert in self._key.items()]
        seconds, scale_max = (convert_column(convert, answers.get(name)) for name, convert in self._number.items())
        language = convert_column(self._language, answers.get("language"))
        beside = (answers["rationale"], seconds, language, scale_max)
        return list(zip(*keys, *given, *beside, repeat(file), answers["line"], answers["column"], strict=False))


class VerdictRow(NamedTuple):
    """One judge's answer on one criterion of one item; the score may be a fraction or off the scale (import flags it).

    ``generator`` is given where the id of an item is only unique together with it; ``reply`` is the judge's raw text;
    ``variant`` names the prompt where a study put several to one judge. ``file``, ``line`` and ``column`` are where a
    fault in the score is to be found.
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
    column: str = "score"
    variant: str = ""


@dataclass(frozen=True, slots=True)
class ParsedVerdicts:
    """``read = len(rows) + collapsed + refused``; ``rows`` holds the missing ones too, marked so."""

    rows: Spool[VerdictRow]
    read: int
    collapsed: int
    collapsed_blank: int
    refused: int
    problems: Problems

    def counts(self) -> AnswerCounts:
        """How many rows carry a score, N/A or nothing, and what they name."""
        return AnswerCounts.of(self.rows)

    @property
    def missing(self) -> int:
        """Rows without a score."""
        return self.counts().missing

    @property
    def scored(self) -> int:
        """Rows that carry a score."""
        return self.counts().scored


def parse_verdicts(
    files: Iterable[File], mapping: Mapping, *, progress: Progress | None = None, facts: TableFacts | None = None
) -> ParsedVerdicts:
    """Read verdicts from all ``(name, content)`` files at once, long or with one column per criterion.

    Repetitions and contradictions are those of ``parse_ratings``, by (judge, variant, item, generator, criterion,
    repeat).
    """
    reader = AnswerReader(mapping, _VerdictBuilder(mapping), VerdictRow._make, _verdict_key)
    rows = reader.read_files(FileProgress(files, progress, facts))
    return ParsedVerdicts(
        rows=rows,
        read=reader.read,
        collapsed=reader.repetitions.collapsed,
        collapsed_blank=reader.repetitions.collapsed_blank,
        refused=reader.problems.refused,
        problems=reader.problems,
    )


_VERDICT_KEY = ("judge", "variant", "item", "generator", "criterion", "repeat")
_verdict_key: Callable[[PlainRow], Hashable] = itemgetter(*map(VerdictRow._fields.index, _VERDICT_KEY))


class _VerdictBuilder:
    """Makes verdicts of answers; what was converted is remembered."""

    who = "judge"

    def __init__(self, mapping: Mapping) -> None:
        key = partial(as_key, is_trusted=mapping.trust_ids)
        self._answer = cached_conversion(as_answer)
        self._key = {name: cached_conversion(partial(key, field=name)) for name in ("item", "judge", "criterion")}
        self._repeat = cached_conversion(_repeat)
        self._generator = cached_conversion(lambda value: None if is_blank(value) else key(value, "generator"))
        self._variant = cached_conversion(lambda value: "" if is_blank(value) else key(value, "variant"))

    def rows(self, answers: ValuesByField, file: str) -> list[PlainRow]:
        given = zip(*self._answer.each(answers["score"]), strict=True)  # score, applicable, missing
        blank = [None] * len(answers["line"])
        keys = [convert.each(answers.get(name, blank)) for name, convert in self._key.items()]
        repeats = self._repeat.each(answers.get("repeat", blank))
        replies = map(_reply, answers.get("reply", repeat(None)))
        generators = convert_column(self._generator, answers.get("generator"))
        variants = map(self._variant, answers.get("variant", repeat("")))
        beside = (answers["rationale"], repeats, replies, generators)
        places = (repeat(file), answers["line"], answers["column"])
        return list(zip(*keys, *given, *beside, *places, variants, strict=False))


def _reply(value: Any) -> str:
    return value if type(value) is str else as_text(value, "reply")


def _repeat(value: Any) -> int:
    number = 0.0 if is_blank(value) else as_number(value, "repeat")
    if number < 0 or not number.is_integer():
        raise InvalidValue(excerpt(value), "a whole number from 0 for repeat", "repeat", field="repeat")
    return int(number)
