"""A snapshot's estimates for pages: looked up by statistic, criterion and language, and formatted. No numpy."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import get_language_bidi, ngettext
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

SMALL = 30
"""Below this many items a figure is shown in muted ink."""
MINUS = "−"
LEFT_TO_RIGHT = "\u200e"

PERCENTAGES = frozenset({"percent_agreement", "applicability_agreement"})
SIGNED = frozenset({"bias"})
SPEAKS_FOR = {
    "these raters": _lazy("for these raters"),
    "raters like these": _lazy("for raters like these"),
    "this judge": _lazy("for this judge"),
}
"""For whom a figure speaks (`Estimate.speaks_for`), as pages say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One estimate: a value with its interval and counts, or the reason there is none.

    `language` is None over all languages, `judge` is None for the panel alone.
    """

    statistic: str
    criterion: str
    language: str | None = None
    judge: str | None = None
    variant: str | None = None
    level: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n_items: int = 0
    n_raters: int = 0
    n_ratings: int = 0
    n_missing: int = 0
    n_clusters: int | None = None
    se: float | None = None
    p: float | None = None
    method: str = ""
    reason: str = ""
    interval_reason: str = ""
    note: str = ""
    speaks_for: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Figure:
        """A figure from its row in `Snapshot.content`."""
        return cls(**{name: row[name] for name in cls.__slots__ if name in row})

    @property
    def is_defined(self) -> bool:
        return self.value is not None

    @property
    def is_small(self) -> bool:
        """Whether it rests on too few items to lean on."""
        return self.n_items < SMALL

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def number(self) -> str:
        """0.71, 71% or +0.12."""
        return "" if self.value is None else self._spelt(self.value, suffix="%")

    @property
    def interval(self) -> str:
        """[0.64, 0.77], or nothing."""
        if self.low is None or self.high is None:
            return ""
        return f"[{self._spelt(self.low)}, {self._spelt(self.high)}]"

    @property
    def span(self) -> str:
        """0.64–0.77, where there is little room, or nothing; −0.42 to 0.34 where a dash would look like a sign."""
        if self.low is None or self.high is None:
            return ""
        if self.statistic in SIGNED or self.low < 0:
            return _("%(low)s to %(high)s") % {"low": self._spelt(self.low), "high": self._spelt(self.high)}
        return f"{self._spelt(self.low)}–{self._spelt(self.high)}"

    @property
    def basis(self) -> str:
        """What it rests on: 120 items × 3 raters where everyone rated everything."""
        items = ngettext("%d item", "%d items", self.n_items) % self.n_items
        raters = ngettext("%d rater", "%d raters", self.n_raters) % self.n_raters
        if self.n_ratings == self.n_items * self.n_raters:
            parts = [f"{items} × {raters}"]
        else:
            parts = [items, raters, ngettext("%d rating", "%d ratings", self.n_ratings) % self.n_ratings]
        if self.n_clusters is not None and self.n_clusters != self.n_items:
            parts.append(ngettext("%d cluster", "%d clusters", self.n_clusters) % self.n_clusters)
        if self.n_missing:
            parts.append(_("%d missing") % self.n_missing)
        return ", ".join(parts)

    @property
    def is_approximate(self) -> bool:
        """Whether the method of its interval is known to cover only about as often as it says."""
        return bool(self.interval) and "approximate" in self.method

    @property
    def made(self) -> str:
        """How the interval was made, or why there is none; standard error and p where there are any."""
        parts = [self.method if self.interval else self.no_interval if self.is_defined else self.reason]
        if self.is_defined and self.speaks_for:
            parts.append(str(SPEAKS_FOR.get(self.speaks_for, self.speaks_for)))
        parts += [
            f"{name} {_digits(number)}" for name, number in (("se", self.se), ("p", self.p)) if number is not None
        ]
        return " · ".join(part for part in (*parts, self.note) if part)

    @property
    def no_interval(self) -> str:
        """No interval: 3 items; or nothing where there is one."""
        if self.interval or not self.is_defined:
            return ""
        return _("no interval: %s") % (self.interval_reason or _("none was computed"))

    @property
    def why(self) -> str:
        """Why there is no value, or no interval."""
        return self.reason or self.interval_reason

    def __str__(self) -> str:
        """0.71 [0.64, 0.77] · 120 items × 3 raters, or why not."""
        if not self.is_defined:
            return f"{_('undefined')}: {self.reason} · {self.basis}"
        found = f"{self.number} {self.interval}".strip()
        return " · ".join(part for part in (found, self.basis, self.made) if part)

    def _spelt(self, value: float, suffix: str = "") -> str:
        if self.statistic in PERCENTAGES:
            return f"{100 * value:.0f}{suffix}"
        text = f"{value:+.2f}" if self.statistic in SIGNED else f"{value:.2f}"
        text = text.lstrip("+-") if float(text) == 0 else text.replace("-", MINUS)
        # In right-to-left text a sign would otherwise wander behind its number.
        return LEFT_TO_RIGHT + text if get_language_bidi() and not text[0].isdigit() else text


@dataclass(frozen=True, slots=True)
class Labelled:
    """A figure under the name its row bears."""

    name: str
    figure: Figure


def _digits(number: float) -> str:
    """Three decimals, or two digits that count where these would be 0."""
    return f"{number:.3f}" if number == 0 or abs(number) >= 0.001 else f"{number:.1e}"


Key = tuple[str, str, str | None, str | None]


class Figures:
    """The estimates of one snapshot, by statistic, criterion, language and judge."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        figures = map(Figure.of, rows)
        self._found: dict[Key, Figure] = {(f.statistic, f.criterion, f.language, f.judge): f for f in figures}

    def get(
        self, statistic: str, criterion: str, language: str | None = None, judge: str | None = None
    ) -> Figure | None:
        """The figure, or None when nobody rated this cell at all."""
        return self._found.get((statistic, criterion, language, judge))

    def each(
        self, statistic: str, criteria: Iterable[str], languages: Iterable[str | None], judge: str | None = None
    ) -> Iterator[Figure]:
        """The figures there are of these criteria and languages, criterion by criterion."""
        spoken = list(languages)
        for criterion in criteria:
            for language in spoken:
                if found := self.get(statistic, criterion, language, judge):
                    yield found


@dataclass(frozen=True, slots=True)
class Spread:
    """Several criteria's figures without pooling them: the middle one's value, and the outermost."""

    median: float
    lowest: Figure
    highest: Figure
    count: int

    @property
    def median_number(self) -> str:
        """The median in the figures' own spelling."""
        return replace(self.lowest, value=self.median).number

    @property
    def extent(self) -> str:
        """From the lowest to the highest, each with its interval; criteria are not pooled, so the median has none."""
        if self.count == 1:
            return str(self.lowest)
        ends = [f"{figure.number} {figure.interval}".strip() for figure in (self.lowest, self.highest)]
        counts = {"count": self.count, "lowest": ends[0], "highest": ends[1]}
        return _("%(count)d criteria, from %(lowest)s to %(highest)s; no interval for the median") % counts

    def between(self, lowest: str, highest: str) -> str:
        """The same below the median and the number of criteria, naming the outermost."""
        ends = [f"{figure.number} {figure.interval}".strip() for figure in (self.lowest, self.highest)]
        told = {"lowest": ends[0], "highest": ends[1], "first": lowest, "last": highest}
        return _("from %(lowest)s (%(first)s) to %(highest)s (%(last)s); no interval for the median") % told


def spread(figures: Iterable[Figure]) -> Spread | None:
    """How far the defined figures lie apart; None when there is none."""
    defined = sorted((f for f in figures if f.value is not None), key=lambda f: f.value or 0.0)
    if not defined:
        return None
    return Spread(statistics.median(f.value or 0.0 for f in defined), defined[0], defined[-1], len(defined))
