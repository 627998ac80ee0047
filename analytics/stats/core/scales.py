"""Scales: the points a criterion may be scored with, their level of measurement, and agreement weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast, get_args
from unicodedata import decimal

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.messages import Message
from analytics.stats.core.number_arrays import Floats

if TYPE_CHECKING:
    from collections.abc import Iterable

Level = Literal["nominal", "ordinal", "interval", "ratio"]
Weighting = Literal["identity", "linear", "quadratic", "ordinal"]
Point = float | str
LEVELS: tuple[Level, ...] = get_args(Level)
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)

MOST_POINTS = 1001
"""Scores with more possible values are continuous: figures that compare points are undefined."""
MOST_SPANNED = 10_000
"""Whole numbers further apart span no scale of their own."""
FEW_POINTS = 12
"""Scales with more points are described by their ends."""


@dataclass(frozen=True)
class Scale:
    """The whole ordered list of points of one criterion (METHODS 0: the scale, not the values that happen to occur).

    ``declared`` is False when nobody named the scale and its points are the sorted values of the criterion in the
    whole file; some edge rulings depend on that. Points are all numbers or all texts. ``any_number``: every number
    between the ends may be given, and the points are the ends and the values that occur. ``lower_is_better`` turns
    rankings round, and nothing else: scales that differ in it alone are the same scale.
    """

    points: tuple[Point, ...]
    level: Level
    declared: bool = True
    any_number: bool = False
    lower_is_better: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"unknown level {self.level!r}: use one of {', '.join(LEVELS)}")
        if self.declared and not self.points:
            raise ValueError("a declared scale has at least one point")
        if len(set(self.points)) != len(self.points):
            raise ValueError("a scale names each point once")
        if self.is_numeric and list(self.points) != sorted(cast("tuple[float, ...]", self.points)):
            raise ValueError("numeric points are given in ascending order")

    @property
    def q(self) -> int:
        """Number of points."""
        return len(self.points)

    @cached_property
    def is_numeric(self) -> bool:
        """Whether the points are numbers."""
        return all(not isinstance(point, str) for point in self.points)

    @cached_property
    def values(self) -> Floats:
        """(q,) the numbers x_k: the points themselves, or the ranks 0..q-1 of text points; read-only."""
        values = np.array(self.points if self.is_numeric else range(self.q), dtype=np.float64)
        values.setflags(write=False)
        return values

    @property
    def is_continuous(self) -> bool:
        """Whether scores are too many to be points: those that occur, the whole numbers between their ends, or any
        number; ordinal scores are ranks, however many they may be.
        """
        return self.q > MOST_POINTS or self.is_sparse or (self.any_number and self.level != "ordinal")

    @property
    def is_sparse(self) -> bool:
        """Whether these are the whole numbers that occur, so far apart that nobody can tell what lies between them."""
        return not self.declared and self.is_whole and self._span > max(self.q, MOST_SPANNED)

    @property
    def why_continuous(self) -> str:
        """The reason that is shown if figures that compare points are undefined."""
        if self.is_sparse:
            ends = f"{self.label(0)} to {self.label(-1)}"
            return Message(
                "whole numbers from %(ends)s, and no scale is declared: figures on categories need one", ends=ends
            )
        if self.any_number:
            return Message(
                "any number from %(low)s to %(high)s may be given: figures on categories need points",
                low=self.label(0),
                high=self.label(-1),
            )
        return Message("the scores take %(number)s values: figures on categories need a scale", number=self.q)

    @property
    def is_whole(self) -> bool:
        """Whether the points are whole numbers."""
        return self.is_numeric and all(float(point).is_integer() for point in self.points)

    @property
    def _span(self) -> float:
        numbers = cast("tuple[float, ...]", self.points)
        return numbers[-1] - numbers[0] + 1 if numbers else 0.0

    @property
    def has_order(self) -> bool:
        """Whether "one step apart" means anything."""
        return self.level != "nominal"

    def described(self) -> str:
        """The scale in words, as every answer shows it: "1, 2, 3, 4, 5 (ordinal, inferred)"."""
        origin = self.level if self.declared else f"{self.level}, inferred"
        if not self.points:
            return f"no score ({origin})"
        ends = f"{self.label(0)} to {self.label(-1)}"
        if self.any_number:
            return f"any number from {ends} ({origin})"
        if self.is_continuous:
            return f"{self.q} values from {ends} ({origin})"
        if self.q <= FEW_POINTS:
            return f"{', '.join(map(self.label, range(self.q)))} ({origin})"
        kind = (
            "whole numbers from "
            if self.is_whole and self._span == self.q
            else "points from "
            if self.is_numeric
            else ""
        )
        return f"{self.q} {kind}{ends} ({origin})"

    def label(self, code: int) -> str:
        """The point as people write it: 2, 2.5 or Yes."""
        return spelled(self.points[code])


def spelled(point: Point) -> str:
    """A point as people write it: whole numbers without their .0."""
    if isinstance(point, str):
        return point
    return str(int(point)) if float(point).is_integer() else repr(float(point))


def parse_point(text: str) -> Point:
    """A point from a command line or a file: a finite number when it reads as one, else the text itself."""
    try:
        number = math.nan if "_" in text else float(western(text))
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def western(text: str) -> str:
    """The same with the decimal digits of any script (Thai, Arabic, full width) as 0 to 9 and a true minus as -."""
    if text.isascii():
        return text
    return "".join("-" if char == "\N{MINUS SIGN}" else str(decimal(char, char)) for char in text)


def scale_of(points: Iterable[Any], level: Level | None = None, *, declared: bool = True) -> Scale:
    """A scale from points in any spelling; without a level: text is nominal, whole numbers ordinal, others interval."""
    spelt = [str(point).strip() for point in points]
    parsed = [parse_point(text) for text in spelt]
    if any(isinstance(point, str) for point in parsed):
        return Scale(tuple(spelt), level or "nominal", declared)
    numbers = tuple(sorted(cast("list[float]", parsed)))
    return Scale(numbers, level or default_level(numbers), declared)


def range_scale(low: float, high: float, step: float | None, level: Level) -> Scale:
    """The scale from ``low`` to ``high``: its points where a step leads from one to the next, else its ends."""
    count = round((high - low) / step) + 1 if step else 0
    if step and count <= MOST_POINTS:
        return Scale(tuple(round(low + number * step, 9) for number in range(count)), level)
    return Scale((low, high), level, any_number=True)


def inferred_scale(numbers: Iterable[float], level: Level | None = None) -> Scale:
    """The scale of scores that nobody declared: whole numbers span least to greatest, others are those that occur.

    Whole numbers further apart than ``MOST_SPANNED`` stay as they occur and are continuous.
    """
    occurring = np.unique(np.fromiter(numbers, dtype=np.float64))
    whole = occurring.size > 0 and bool((occurring == np.floor(occurring)).all())
    if whole and occurring[-1] - occurring[0] < MOST_SPANNED:
        occurring = np.arange(occurring[0], occurring[-1] + 1)
    return Scale(tuple(occurring.tolist()), level or default_level(occurring), declared=False)


def default_level(numbers: Iterable[float]) -> Level:
    """Whole numbers are ordinal, other decimals interval (METHODS 0)."""
    return "ordinal" if all(float(number).is_integer() for number in numbers) else "interval"


def rounding(*scores: Floats) -> float:
    """Difference up to which two numbers made of these scores are equal: 1e-9 of their range, or a double's rounding.

    Relative, so that a score of 1e-5 and one of 1e12 are treated alike. 0.0 where nothing is scored.
    """
    finite = [part if (known := np.isfinite(part)).all() else part[known] for part in scores]  # few have NaN to drop
    lows, highs = ([float(end(part)) for part in finite if part.size] for end in (np.min, np.max))
    if not lows:
        return 0.0
    low, high = min(lows), max(highs)
    return 1e-9 * (high - low) + 16 * float(np.finfo(np.float64).eps) * max(abs(low), abs(high))


def snapped(x: Floats, scale: Scale) -> NDArray[np.intp]:
    """Place on the scale of the point nearest to each value (m,), halves upwards (METHODS 3: S2, D.2.3)."""
    points = scale.values
    return np.searchsorted((points[1:] + points[:-1]) / 2, x, side="right")


def agreement_weights(scale: Scale, weighting: Weighting) -> Floats:
    """(q, q) weights w_kl in [0, 1], 1 on the diagonal: 1 - ``disagreement``."""
    return np.asarray(1 - disagreement(scale, weighting))


def disagreement(scale: Scale, weighting: Weighting) -> Floats:
    """(q, q) disagreement d_kl = 1 - w_kl in [0, 1], 0 on the diagonal, exact where w_kl would round to 1.

    identity: [k != l]; linear: |x_k - x_l| / (x_max - x_min); quadratic: (x_k - x_l)^2 / (x_max - x_min)^2;
    ordinal: C(|k - l| + 1, 2) / C(q, 2) on ranks. Source: Gwet, Handbook of Inter-Rater Reliability, 4th ed.,
    chapter 3 (ISBN 978-0-9708062-8-4).
    """
    q = scale.q
    if weighting == "identity" or q < 2:
        return 1 - np.eye(q)
    if weighting == "ordinal":
        step = np.abs(np.subtract.outer(np.arange(q), np.arange(q))).astype(np.float64)
        return np.asarray(step * (step + 1) / (q * (q - 1)))
    distance = np.abs(np.subtract.outer(scale.values, scale.values)) / np.ptp(scale.values)
    return np.asarray(distance ** {"linear": 1, "quadratic": 2}[weighting])
