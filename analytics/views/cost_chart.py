"""The chart of cost and agreement of the comparison page: where each judge, tick and line is, in pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from analytics.figures import MINUS

CHART = {"width": 640, "height": 330, "left": 72, "bottom": 52, "top": 16, "right": 28}
LABEL_PLACES = ((14, -6), (14, 16), (-14, -6), (-14, 16), (0, -14), (0, 22), (28, 4), (-28, 4))
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A judge in the chart: its number in the table, its name, its place in pixels, and where its number is written."""

    number: int
    name: str
    x: float
    y: float
    is_efficient: bool
    label_x: float = 0.0
    label_y: float = 0.0


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """An axis from its first to its last tick; ticks are multiples of 1, 2, 2.5 or 5 times a power of ten."""

    low: float
    high: float
    step: float

    @classmethod
    def over(cls, values: Sequence[float], *, from_zero: bool = False) -> ChartAxis:
        """The axis on which all of these values lie, with at most `MOST_TICKS` + 1 ticks."""
        low, high = min(values), max(values)
        low = min(low, 0.0) if from_zero else low
        width = (high - low) or abs(high) or 1.0
        raw = width / MOST_TICKS
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(each * power for each in STEPS if each * power >= raw * (1 - 1e-9))
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        return cls(first * step, max(last, first + 1) * step, step)

    def share(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Each tick with its text, as many decimals as the step has."""
        count = round((self.high - self.low) / self.step)
        decimals = next(n for n in range(20) if abs(round(self.step, n) - self.step) < 1e-9 * self.step)
        places = [self.low + place * self.step for place in range(count + 1)]
        return [(at, f"{at + 0.0:.{decimals}f}".replace("-", MINUS)) for at in places]


def cost_chart(judges: Sequence[tuple[int, str, float, float, bool]]) -> dict[str, Any]:
    """The chart of judges: number, name, cost, agreement, and whether it is on the Pareto line; two at least."""
    across = ChartAxis.over([cost for _number, _name, cost, _value, _best in judges], from_zero=True)
    up = ChartAxis.over([value for _number, _name, _cost, value, _best in judges])
    left, right = CHART["left"], CHART["width"] - CHART["right"]
    top, bottom = CHART["top"], CHART["height"] - CHART["bottom"]

    def x(cost: float) -> float:
        return round(left + across.share(cost) * (right - left), 1)

    def y(value: float) -> float:
        return round(bottom - up.share(value) * (bottom - top), 1)

    points = _labelled([ChartPoint(n, name, x(cost), y(value), best) for n, name, cost, value, best in judges])
    line = sorted((point.x, point.y) for point in points if point.is_efficient)
    return {
        **CHART,
        "points": points,
        "line": " ".join(f"{at},{height}" for at, height in line),
        "floor": bottom,
        "end": right,
        "x_ticks": [(x(at), f"${text}") for at, text in across.ticks],
        "y_ticks": [(y(at), text) for at, text in up.ticks],
        "x_middle": (left + right) / 2,
        "y_turned": -(top + bottom) / 2,
    }


def _labelled(points: Sequence[ChartPoint]) -> list[ChartPoint]:
    """The points with a place for each number, beside its point and apart from the numbers before it."""
    placed: list[ChartPoint] = []
    for point in points:
        places = [(point.x + x, point.y + y) for x, y in LABEL_PLACES]
        free = [
            (x, y)
            for x, y in places
            if all(abs(x - other.label_x) > 14 or abs(y - other.label_y) > 12 for other in placed)
        ]
        x, y = (free or places)[0]
        placed.append(replace(point, label_x=round(x, 1), label_y=round(y, 1)))
    return placed
