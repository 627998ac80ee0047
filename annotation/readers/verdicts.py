"""Rows of files written by other people's judges -> verdicts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

from annotation.readers.answers import AnswerReader, Counts, as_answer
from annotation.readers.cells import Columns
from annotation.readers.columns import Facts
from annotation.readers.fields import as_key, as_number, as_text, is_blank
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems, Unfit, excerpt
from annotation.readers.progress import Meter, Progress
from annotation.readers.reading import File
from annotation.readers.remembering import converted, remembered
from annotation.readers.spool import Plain, Spool


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


def parse_verdicts(
    files: Iterable[File], mapping: Mapping, *, progress: Progress | None = None, facts: Facts | None = None
) -> ParsedVerdicts:
    """Read verdicts from all ``(name, content)`` files at once, long or with one column per criterion.

    Repetitions and contradictions are those of ``parse_ratings``, by (judge, variant, item, generator, criterion,
    repeat).
    """
    reader = AnswerReader(mapping, _Builder(mapping), VerdictRow._make, _key)
    rows = reader.read_files(Meter(files, progress, facts))
    return ParsedVerdicts(
        rows=rows,
        read=reader.read,
        collapsed=reader.repetitions.collapsed,
        collapsed_blank=reader.repetitions.collapsed_blank,
        refused=reader.problems.refused,
        problems=reader.problems,
    )


_NAMES = ("judge", "variant", "item", "generator", "criterion", "repeat")
_key: Callable[[Plain], Hashable] = itemgetter(*map(VerdictRow._fields.index, _NAMES))


class _Builder:
    """Makes verdicts of answers; what was converted is remembered."""

    who = "judge"

    def __init__(self, mapping: Mapping) -> None:
        key = partial(as_key, is_trusted=mapping.trust_ids)
        self._answer = remembered(as_answer)
        self._key = {name: remembered(partial(key, field=name)) for name in ("item", "judge", "criterion")}
        self._repeat = remembered(_repeat)
        self._generator = remembered(lambda value: None if is_blank(value) else key(value, "generator"))
        self._variant = remembered(lambda value: "" if is_blank(value) else key(value, "variant"))

    def rows(self, answers: Columns, file: str) -> list[Plain]:
        given = zip(*self._answer.each(answers["score"]), strict=True)  # score, applicable, missing
        blank = [None] * len(answers["line"])
        keys = [convert.each(answers.get(name, blank)) for name, convert in self._key.items()]
        repeats = self._repeat.each(answers.get("repeat", blank))
        replies = map(_reply, answers.get("reply", repeat(None)))
        generators = converted(self._generator, answers.get("generator"))
        variants = map(self._variant, answers.get("variant", repeat("")))
        beside = (answers["rationale"], repeats, replies, generators)
        places = (repeat(file), answers["line"], answers["column"])
        return list(zip(*keys, *given, *beside, *places, variants, strict=False))


def _reply(value: Any) -> str:
    return value if type(value) is str else as_text(value, "reply")


def _repeat(value: Any) -> int:
    number = 0.0 if is_blank(value) else as_number(value, "repeat")
    if number < 0 or not number.is_integer():
        raise Unfit(excerpt(value), "a whole number from 0 for repeat", "repeat", field="repeat")
    return int(number)
