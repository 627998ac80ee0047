"""The four pictures of a study, as values that a template draws: squares, intervals on an axis, and a heat map.

Positions are percentages of the width of a drawing, from its left end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from analytics.figures import MINUS, Figure
from analytics.judges.reasons import CellDecision, Condition
from analytics.models import GateThresholds


# --- where a judge may be used: squares ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Square:
    """One criterion of a judge in a language: its letters, its decision, and what is said of it to those who can't
    see colours."""

    letters: str
    criterion: str
    language: str
    use: str
    state: str
    title: str
    query: str
    is_chosen: bool


def initials(names: Mapping[str, str]) -> dict[str, str]:
    """The first letter or the first two that tell the names apart, without the Arabic article; else their numbers."""
    cleaned = {key: name.strip().removeprefix("ال") for key, name in names.items()}
    for length in (1, 2):
        short = {key: name[:length] for key, name in cleaned.items()}
        if len({text.casefold() for text in short.values()}) == len(short):
            return {key: text[:1].upper() + text[1:] for key, text in short.items()}
    return {key: str(number) for number, key in enumerate(cleaned, 1)}


def decision_square(cell: CellDecision, *, letters: str, name: str, query: str, is_chosen: bool = False) -> Square:
    """The square of a decision; ``name`` is that of its criterion and language."""
    state = _("not certain") if cell.state == "not_certain" else ""
    about = (cell.row["judge"], name, cell.use.label, state, cell.basis)
    return Square(
        letters=letters,
        criterion=cell.row["criterion"],
        language=cell.row["language"],
        use=cell.use.value,
        state=cell.state,
        title=" · ".join(str(part) for part in about if part),
        query=query,
        is_chosen=is_chosen,
    )


# --- an axis ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Axis:
    """A horizontal axis from `low` to `high`, with its ticks."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float]) -> Axis:
        """An axis with some space beside the outermost values."""
        known = [value for value in values if math.isfinite(value)] or [0.0]
        low, high = min(known), max(known)
        space = 0.06 * (high - low) or 0.5
        return cls(low - space, high + space)

    def at(self, value: float) -> float:
        """The position of a value in percent, at the nearest end if it lies outside."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Four to seven round values: the position and the text of each."""
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
        while (self.high - self.low) / step > 7:
            step *= 2.5 if str(step)[0] == "2" else 2
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(self.at(place * step), _tick(place * step)) for place in range(first, last + 1)]


def _tick(value: float) -> str:
    text = f"{round(value, 6):g}"
    return "0" if float(text) == 0 else text.replace("-", MINUS)


SHAPES = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",  # circle
    "M-5-5h10v10h-10z",  # square
    "M0-6l6 10h-12z",  # triangle
    "M0-6l6 6l-6 6l-6-6z",  # diamond
    "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",  # cross
    "M0 6l-6-10h12z",  # triangle pointing down
)
"""Outlines around (0, 0), 10 to 12 pixels wide, so that not only a colour tells generators apart."""
MARK_HEIGHT = 13
"""Pixels between the marks of one row."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A figure on an axis: its point and its interval. `kind`: its colour; `shape`: its outline."""

    name: str
    figure: Figure
    at: float
    start: float | None
    end: float | None
    kind: str
    shape: str


@dataclass(frozen=True, slots=True)
class PlacedMark:
    """A mark, and how far below the top of its row it is drawn, in percent of the row's height."""

    mark: Mark
    y: float


@dataclass(frozen=True, slots=True)
class AxisRow:
    """One row of a drawing, with the marks of one or several figures, one below the other."""

    name: str
    marks: tuple[Mark, ...]
    is_undecided: bool = False

    @property
    def height(self) -> int:
        return MARK_HEIGHT * (len(self.marks) + 1)

    @property
    def placed(self) -> list[PlacedMark]:
        step = 100 / (len(self.marks) + 1)
        return [PlacedMark(mark, round(step * number, 2)) for number, mark in enumerate(self.marks, 1)]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Rows of marks on one axis; `kinds`: colour, outline and name of each mark for the key; `band`: from where to
    where the margin reaches; `zero`: where 0 is, if on the axis."""

    axis: Axis
    rows: tuple[AxisRow, ...]
    kinds: tuple[tuple[str, str, str], ...] = ()
    band: tuple[float, float] | None = None
    margin: str = ""

    @property
    def band_width(self) -> float:
        return self.band[1] - self.band[0] if self.band else 0.0

    @property
    def zero(self) -> float | None:
        return self.axis.at(0.0) if self.axis.low <= 0 <= self.axis.high else None


def _mark(figure: Figure, axis: Axis, name: str, kind: str, shape: str = SHAPES[0]) -> Mark:
    ends = [None if end is None else axis.at(end) for end in (figure.low, figure.high)]
    return Mark(name, figure, axis.at(figure.value or 0.0), ends[0], ends[1], kind, shape)


def _ends(figures: Iterable[Figure]) -> list[float]:
    return [end for figure in figures for end in (figure.low, figure.value, figure.high) if end is not None]


def bias_forest(figures: Sequence[tuple[str, Figure]], margin: float | None) -> Drawing | None:
    """The bias by language, the largest first, with the band of the margin; None without a value."""
    known = [(name, figure) for name, figure in figures if figure.value is not None]
    if not known:
        return None
    bounds = [-margin, margin] if margin else []
    axis = Axis.around([*_ends(figure for _name, figure in known), *bounds, 0.0])
    rows = []
    for name, figure in sorted(known, key=lambda found: -(found[1].value or 0.0)):
        is_beyond = margin is not None and (
            (figure.low is not None and figure.low > margin) or (figure.high is not None and figure.high < -margin)
        )
        rows.append(
            AxisRow(
                name, (_mark(figure, axis, name, *(("beyond", SHAPES[3]) if is_beyond else ("within", SHAPES[0]))),)
            )
        )
    band = (axis.at(-margin), axis.at(margin)) if margin else None
    return Drawing(axis, tuple(rows), band=band, margin=f"±{margin:.3g}" if margin else "")


def generator_dots(
    means: Mapping[str, Sequence[tuple[str, Figure]]], generators: Sequence[str], undecided: Iterable[str] = ()
) -> Drawing | None:
    """Means of generators by language, with their intervals; `undecided`: languages where no first one is certain."""
    everything = [figure for row in means.values() for _name, figure in row if figure.value is not None]
    if not everything:
        return None
    axis = Axis.around(_ends(everything))
    kinds = {
        name: (f"kind-{number % 6 + 1}", SHAPES[(number + number // 6) % 6]) for number, name in enumerate(generators)
    }
    open_languages = set(undecided)
    rows = tuple(
        AxisRow(
            language,
            tuple(_mark(figure, axis, name, *kinds[name]) for name, figure in row if figure.value is not None),
            is_undecided=language in open_languages,
        )
        for language, row in means.items()
    )
    return Drawing(axis, rows, kinds=tuple((*kinds[name], name) for name in generators))


# --- a decision's reasons as bars ---------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Meter:
    """A condition of a decision as a bar: the interval of its figure, and the span in which the condition holds."""

    title: str
    number: str
    state: str
    state_name: str
    start: float
    end: float
    at: float
    allowed: tuple[float, float]

    @property
    def allowed_width(self) -> float:
        return self.allowed[1] - self.allowed[0]


SIGNED = ("bias", "verbosity", "self_preference", "perturbation")
_SHARES = ("alt_test", "readable", "flip_rate")


def meters(cell: CellDecision) -> list[Meter]:
    """The conditions of a decision that have a figure and a span in which they hold."""
    return [meter for condition in cell.conditions if (meter := _meter(condition, cell.row["margin"], cell.thresholds))]


def _meter(condition: Condition, margin: float, thresholds: GateThresholds) -> Meter | None:
    figure = condition.figures[0] if condition.figures else None
    if condition.state == "not_run" or figure is None or figure.value is None:
        return None
    if condition.name in SIGNED:
        axis = Axis.around([*_ends([figure]), -2 * margin, 2 * margin])
        low, high = -margin, margin
    elif condition.name in _SHARES:
        axis = Axis(0.0, 1.0)
        spans = {
            "alt_test": (thresholds.omega, 1.0),
            "readable": (thresholds.readable, 1.0),
            "flip_rate": (0.0, thresholds.flip_rate),
        }
        low, high = spans[condition.name]
    else:
        return None
    ends = [axis.at(figure.value if end is None else end) for end in (figure.low, figure.high)]
    allowed = (axis.at(low), axis.at(high))
    about = (condition.title, figure.number, condition.state, condition.state_name)
    return Meter(*about, ends[0], ends[1], axis.at(figure.value), allowed)
