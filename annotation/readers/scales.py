"""The scale on which the answers of some files seem to be, and a rubric that says so, to be looked at and published."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from annotation.readers.aligning import aligned
from annotation.readers.fields import Planner, as_number, first_of, is_blank, written
from annotation.readers.guessing import SCORE_KEYS
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems, Unfit
from annotation.readers.reading import File, read
from annotation.readers.rubric_document import CriterionDocument, PointDocument, RubricDocument, ScaleDocument

MOST_DISTINCT = 1_000
MOST_POINTS = 11


@dataclass(slots=True)
class ScaleFacts:
    """What the answers on one criterion are: ``scores`` and ``words`` count each value, the first thousand of them."""

    criterion: str
    scores: Counter[float] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    blank: int = 0
    not_applicable: int = 0
    minimum: float = float("inf")
    maximum: float = float("-inf")
    fractional: bool = False

    def see(self, value: Any) -> None:
        """Count one answer."""
        if is_blank(value):
            self.blank += 1
        elif isinstance(value, str) and value.strip().upper() == "N/A":
            self.not_applicable += 1
        else:
            self._see_answer(value)

    def _see_answer(self, value: Any) -> None:
        try:
            score = as_number(value, "score")
        except Unfit:
            _count(self.words, written(value))
            return
        _count(self.scores, score)
        self.minimum, self.maximum = min(self.minimum, score), max(self.maximum, score)
        self.fractional |= not score.is_integer()

    def beside(self, other: ScaleFacts) -> ScaleFacts:
        """The answers of both."""
        return ScaleFacts(
            criterion=self.criterion,
            scores=self.scores + other.scores,
            words=self.words + other.words,
            blank=self.blank + other.blank,
            not_applicable=self.not_applicable + other.not_applicable,
            minimum=min(self.minimum, other.minimum),
            maximum=max(self.maximum, other.maximum),
            fractional=self.fractional or other.fractional,
        )

    @property
    def sentence(self) -> str:
        """``irony: 0 to 1, 2 values, whole numbers``."""
        if self.words:
            return f"{self.criterion}: the words {', '.join(sorted(self.words)[:MOST_POINTS])}"
        if not self.scores:
            return f"{self.criterion}: no score"
        kind = "fractions too" if self.fractional else "whole numbers"
        count = f"{len(self.scores):,} values" + (" or more" if len(self.scores) == MOST_DISTINCT else "")
        return f"{self.criterion}: {self.minimum:g} to {self.maximum:g}, {count}, {kind}"


def _count(counter: Counter[Any], value: Any) -> None:
    if value in counter or len(counter) < MOST_DISTINCT:
        counter[value] += 1


def observed(files: Iterable[File], mapping: Mapping) -> dict[str, ScaleFacts]:
    """The answers of some files of ratings or verdicts by criterion, as their mapping reads them."""
    facts: dict[str, ScaleFacts] = {}
    for criterion, value in _answers(files, mapping):
        name = written(criterion)
        facts.setdefault(name, ScaleFacts(name)).see(value)
    return facts


def _answers(files: Iterable[File], mapping: Mapping) -> Iterator[tuple[Any, Any]]:
    problems = Problems()
    for name, raw in aligned(files, mapping, problems):
        planner = Planner(mapping.of(name))
        for row in read(name, raw, layout=mapping, problems=problems):
            try:
                values = planner.plan(row.fields).take(row.fields)
            except Unfit:
                continue  # refused when the file is read for good
            yield from _said(values)


def _said(values: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    for target, value in values.items():
        kind, _, criterion = target.partition(".")
        if target == "score":
            yield values.get("criterion"), value
        elif kind == "score":
            yield criterion, value
        elif kind == "ratings" and isinstance(value, list):
            yield from ((criterion, first_of(entry, SCORE_KEYS)) for entry in value if isinstance(entry, dict))


def coded(mapping: Mapping, facts: dict[str, ScaleFacts]) -> Mapping:
    """The mapping with a number for each word that answers are, from 0 in the order of the words; a number that is an
    answer already is stepped over."""
    taken = {score for each in facts.values() for score in each.scores}
    free = (number for number in range(len(taken) + 10 * MOST_DISTINCT) if number not in taken)
    words = sorted({word for each in facts.values() for word in each.words})
    codes = dict(zip(words, map(str, free), strict=False))
    return replace(mapping, values={**mapping.values, "score": {**codes, **mapping.values.get("score", {})}})


def proposed(key: str, facts: dict[str, ScaleFacts], mapping: Mapping) -> RubricDocument:
    """A rubric in which the observed answers fit; ``mapping`` is the coded one. Its words are the file's own."""
    codes = mapping.values.get("score", {})
    return RubricDocument(
        key=as_rubric_key(key),
        name={"en": key},
        source_language="en",
        criteria=tuple(
            CriterionDocument(
                key=as_rubric_key(each.criterion),
                name={"en": each.criterion},
                scale=_scale(each, codes),
                not_applicable=each.not_applicable > 0,
                direction="none" if each.words else "higher_is_better",
            )
            for each in facts.values()
        ),
    )


def _scale(facts: ScaleFacts, codes: dict[str, str]) -> ScaleDocument:
    if facts.words:
        labels = {float(codes[word]): word for word in facts.words if word in codes}
        labels |= {score: f"{score:g}" for score in facts.scores}
        points = [PointDocument(value, {"en": labels[value]}) for value in sorted(labels)]
        # A nominal scale has two points; where one word was all that was said, there is another that was not.
        points += [PointDocument(points[-1].value + 1, {"en": "other"})] if len(points) == 1 else []
        return ScaleDocument("nominal", tuple(points), points[0].value, points[-1].value)
    low, high = _ends(facts)
    if not facts.fractional and high - low < MOST_POINTS:
        values = [low + step for step in range(round(high - low) + 1)]
        return ScaleDocument("ordinal", tuple(PointDocument(value) for value in values), low, high)
    return ScaleDocument("interval", (), low, high, None if facts.fractional else 1)


def _ends(facts: ScaleFacts) -> tuple[float, float]:
    """The least and the most that was said; two different numbers, because one is no scale."""
    if not facts.scores:
        return 0, 1
    low, high = facts.minimum, facts.maximum
    return (low, high) if low < high else (min(low, 0), max(high, 1))


def in_words(scale: ScaleDocument) -> str:
    """The scale as a sentence names it: ``No, Yes``, ``1, 2, 3`` or ``0 to 100``."""
    if scale.points:
        return ", ".join(next(iter(point.label.values()), f"{point.value:g}") for point in scale.points)
    return f"{scale.minimum:g} to {scale.maximum:g}"


def as_rubric_key(name: str) -> str:
    """A name as rubrics write their keys: ``Is it fluent?`` -> ``is_it_fluent``."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    key = re.sub(r"[^a-z0-9_-]+", "_", plain).strip("_-")[:60]
    return key or "criterion_" + format(sum(map(ord, name)), "x")
