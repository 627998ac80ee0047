"""The result of every statistic: an estimate with its interval and counts, or the reason why there is no estimate.

Intervals: percentile and BCa from resampled values; t, normal and Wilson ones from a standard error. Families of tests,
corrected together (METHODS 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from analytics.stats.core.messages import Message, approximate, conservative, joined
from analytics.stats.core.number_arrays import Floats

_CUT = Message("%(method)s, cut at the ends of the scale", method="").template


def _without_cut(method: str) -> str:
    """The name of a method, without the words that an interval which it was made from was cut."""
    if not isinstance(method, Message):
        return method
    values = {name: _without_cut(value) for name, value in method.values.items()}
    return values["method"] if method.template == _CUT else Message(method.template, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One figure about one cell (METHODS 0).

    ``value`` is ``None`` when the statistic is undefined, and then ``reason`` says why; an undefined figure is a
    result that is shown, never an exception and never 1.0. ``low`` and ``high`` bound the interval at
    ``confidence`` made by ``method``; they are ``None`` with ``interval_reason`` when no interval can be given.
    ``n_clusters`` counts the clusters of the ``n_items`` items, where they are known.
    ``speaks_for``: ``these raters``, or ``raters like these`` where raters are taken as a sample, too.
    ``p_corrected``: ``p`` after correction for the ``family`` tests that it is one of (``corrected_together``).
    """

    statistic: str
    value: float | None
    variant: str | None = None
    level: str | None = None
    se: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    method: str | None = None
    n_items: int = 0
    n_raters: int = 0
    n_ratings: int = 0
    n_missing: int = 0
    seed: int | None = None
    undefined_share: float | None = None
    reason: str | None = None
    interval_reason: str | None = None
    note: str | None = None
    n_clusters: int | None = None
    speaks_for: str | None = None
    p_corrected: float | None = None
    family: int | None = None

    def __post_init__(self) -> None:
        if self.value is None and not self.reason:
            raise ValueError(f"{self.statistic}: an undefined estimate must say why")

    @property
    def is_defined(self) -> bool:
        """Whether there is a value at all."""
        return self.value is not None

    def with_(self, **changes: Any) -> Estimate:
        """The same estimate with some fields changed."""
        return replace(self, **changes)

    def cut(self, lowest: float, highest: float) -> Estimate:
        """The same, its interval cut at the ends of the scale; the method says so if the interval was clipped.

        A value outside them (a corrected mean can be) keeps its interval: cut, it would not hold the value.
        """
        if self.value is None or self.low is None or self.high is None or not lowest <= self.value <= highest:
            return self
        if self.low >= lowest and self.high <= highest:
            return self
        method = Message(_CUT, method=_without_cut(self.method or ""))
        return self.with_(low=max(self.low, lowest), high=min(self.high, highest), method=method)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {column.name: getattr(self, column.name) for column in fields(self)}


COLUMNS = (
    "statistic",
    "variant",
    "level",
    "criterion",
    "language",
    "languages",
    "judge",
    "raters",
    "generator",
    "annotator",
    "reference",
    "weights",
    "value",
    "se",
    "p",
    "low",
    "high",
    "confidence",
    "method",
    "n_items",
    "n_raters",
    "n_ratings",
    "n_missing",
    "reason",
)
"""The published names of one estimate's columns, in order; ``CellEstimate.as_row`` only ever adds to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEstimate:
    """An estimate and the cell of the ratings table it speaks of.

    ``cell`` maps each grouping column (criterion, language, generator, any ``--by`` column) to its value. The other
    fields name what the figure is about when that is no grouping column: the judge, the pair of raters, the pair
    of languages, the annotator (compared, or left out), the rule of the reference label, the weighting, the scale.
    """

    estimate: Estimate
    cell: dict[str, str | None] = field(default_factory=dict)
    criterion: str | None = None
    language: str | None = None
    languages: tuple[str, ...] | None = None
    judge: str | None = None
    raters: tuple[str, ...] | None = None
    generator: str | None = None
    annotator: str | None = None
    reference: str | None = None
    weights: str | None = None
    scale: str | None = None

    def on_scale(self, scale: str | None) -> CellEstimate:
        """The same, with the scale its scores were given on, in words."""
        return replace(self, scale=scale)

    def remarked(self, min_items: int) -> CellEstimate:
        """The same, with a remark where a value rests on fewer items than that."""
        if self.estimate.value is None or self.estimate.n_items >= min_items:
            return self
        note = joined((Message("fewer than %(number)s items", number=min_items), self.estimate.note))
        return replace(self, estimate=self.estimate.with_(note=note))

    def as_row(self) -> dict[str, Any]:
        """One flat row: the published columns first, then seed, notes and the cell's other columns."""
        own = {
            name: self.cell.get(name, getattr(self, name)) if name in ("criterion", "language", "generator")
            else getattr(self, name)
            for name in ("criterion", "language", "languages", "judge", "raters", "generator", "annotator", "reference",
                         "weights")
        }  # fmt: skip
        row = self.estimate.as_dict() | {name: list(v) if isinstance(v, tuple) else v for name, v in own.items()}
        ordered = {name: row.pop(name) for name in COLUMNS} | row
        if self.scale is not None:
            ordered["scale"] = self.scale
        return ordered | {name: value for name, value in self.cell.items() if name not in ordered}


# --- intervals --------------------------------------------------------------------------------------------------------


Weighted = tuple[Floats] | tuple[Floats, Floats]
"""Values, and how often they occur where they are not listed one by one."""

MAX_UNDEFINED_SHARE = 0.05
"""Above this share of undefined resamples no interval is given (METHODS 0)."""
FEWEST_RESAMPLES = 200
"""With fewer the ends of a percentile interval are chance (METHODS 0)."""
NO_WIDTH = 1e-12
"""Width, as a share of the numbers it is made of, below which there is none but rounding: such bounds say nothing about
units not seen, and no interval is given. Statistics without a unit are of size 1."""
NO_RESAMPLE_DIFFERS = Message("every resample gives the same value: nothing tells how far it may be off")
FEW_UNITS = 6
"""With fewer independent units (their effective number) an interval says that it is approximate."""
ENOUGH_UNITS = 30
"""With fewer independent units, kappas and alpha get Wilson's with t, widened near 0 (``_skewed_interval``)."""
FEW_OFF_POINT = 25
"""Fewer items with a score off the commonest point leave chance-corrected figures skewed: approximate."""
ENOUGH_FOR_SHARES = 60
"""From fewer items, of which few are off the commonest point, shares, MAE and bias cover up to .98: conservative."""
NEAR_CHANCE = 0.15
"""Kappas and alpha from fewer than ENOUGH_UNITS whose interval reaches below it cover .97 to .99: conservative."""
HEAVY_TAILS = 1.0
"""Excess kurtosis of scores on few points from which their squares have no steady spread: approximate."""
FEW_POINTS = 11
"""Scores on more points can have tails of any weight: ``tails_of`` asks more of them."""
TAILS_SEEN = 200
"""Fewer such scores do not show whether tails are heavy: approximate."""
SPREAD_OF_SQUARES = 0.3, 0.08
"""Excess kurtosis, and share of the largest deviation in the sum of fourth powers, above which tails are heavy: then
few scores decide the spread of squares. A normal sample of 200 exceeds both in one case of seven, one of 1,000 never
(docs/decisions/0017)."""
WILSON = Message("Wilson")
NO_UNIT_DIFFERS = Message("every unit gives the same value: nothing tells how far it may be off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Two bounds at ``confidence`` made by ``method``, or None and the reason there are none."""

    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    method: str | None = None
    se: float | None = None
    undefined_share: float | None = None
    interval_reason: str | None = None

    def within(self, lowest: float, highest: float) -> Interval:
        """The same, cut where the statistic itself can't go."""
        if self.low is None or self.high is None:
            return self
        return replace(self, low=max(self.low, lowest), high=min(self.high, highest))

    def as_changes(self) -> dict[str, Any]:
        """The fields to set on an Estimate: ``estimate.with_(**interval.as_changes())``."""
        changes = {name: getattr(self, name) for name in Interval.__slots__}
        return {name: value for name, value in changes.items() if value is not None}


def percentile(resampled: Floats, *, confidence: float = 0.95, unit: float = 1.0) -> Interval:
    """Percentile interval of (B,) resampled values, NaN where a resample leaves the statistic undefined.

    The bounds are the empirical quantiles (1 - confidence)/2 and (1 + confidence)/2 of the defined resamples. ``unit``
    is the size of the numbers that the statistic is made of (the largest score, for a mean). No interval where all
    resamples are equal.
    Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 13 (doi 10.1201/9780429246593).
    """
    tail = (1 - confidence) / 2
    return _from_resamples(resampled, (tail, 1 - tail), confidence, Message("bootstrap percentile"), unit)


def bca(
    value: float,
    resampled: Floats,
    left_out: Floats,
    multiplicity: Floats,
    *,
    confidence: float = 0.95,
    unit: float = 1.0,
) -> Interval:
    """Bias-corrected and accelerated interval.

    ``left_out`` (U,) holds the statistic with one unit of each kind left out, ``multiplicity`` (U,) how many such
    units there are. z0 = Phi^-1(share of resamples below the value, ties counted half); a = sum d^3 / (6 (sum d^2)^1.5)
    with d the mean of the left-out values minus each. Undefined when a left-out value is, or when all resamples lie on
    one side. Source: Efron 1987 (doi 10.1080/01621459.1987.10478410).
    """
    from scipy.special import ndtr, ndtri

    defined = resampled[~np.isnan(resampled)]
    if not defined.size or np.isnan(left_out).any():
        return _none(Message("leaving one unit out makes the statistic undefined: BCa has no acceleration"), resampled)
    share = float(np.mean(defined < value) + np.mean(defined == value) / 2)
    if not 0 < share < 1:
        return _none(Message("every resample lies on one side of the value: BCa has no bias correction"), resampled)
    z0, a = float(ndtri(share)), _acceleration(left_out, multiplicity)
    z = z0 + ndtri(np.array([(1 - confidence) / 2, (1 + confidence) / 2]))
    low, high = ndtr(z0 + z / (1 - a * z))
    return _from_resamples(resampled, (float(low), float(high)), confidence, Message("bootstrap BCa"), unit)


def t_interval(
    value: float, se: float, df: float, *, method: str, confidence: float = 0.95, unit: float = 1.0
) -> Interval:
    """value +- t(df) se; none where the standard error or its degrees of freedom are undefined, or it is 0."""
    from scipy.special import stdtrit

    if not (math.isfinite(se) and df >= 1):
        return Interval(interval_reason=Message("the standard error needs two independent units"))
    half = float(stdtrit(df, (1 + confidence) / 2)) * se
    return _around(value, half, se, method, confidence, unit)


Shape = Literal["share", "coefficient", "positive", "free"]
"""What a figure can be: a mean of answers in [0, 1]; at most 1, with 0 for chance; above 0; anything."""
Keeps = Callable[[str, str | None, str], bool]
"""Whether a reader wants a variant of a statistic on a level of measurement."""


def jackknife_interval(
    value: float,
    se: float,
    df: float,
    shape: Shape,
    *,
    tail_df: float = math.inf,
    n: float = 0.0,
    doubt: Doubt | None = None,
    is_kappa: bool = False,
    confidence: float = 0.95,
    unit: float = 1.0,
    by: str = Message("jackknife"),
) -> Interval:
    """t interval from the jackknife (``by``) standard error of clusters or single items, made where it is symmetric.

    ``share``: Wilson's with t. ``coefficient``: value +- t se on Fisher's z scale, se / (1 - value^2). ``positive``: on
    the logarithm's, se / value. ``free``: as it is. ``n``: independent answers behind a share that does not vary.
    ``df`` comes from the units, ``tail_df`` from the tails of what each of them changes (of shares only the former
    counts). ``doubt`` says why the interval is only approximate; if it is ``skewed``, a coefficient gets Wilson's,
    widened near 0; so does a kappa or alpha (``is_kappa``) from fewer than ENOUGH_UNITS, which says that it is
    conservative where it reaches below NEAR_CHANCE. Fewer than FEW_UNITS degrees of freedom + 1 are a doubt, too.
    Sources: jackknife t with few clusters: MacKinnon, Nielsen & Webb 2023 (doi 10.1016/j.jeconom.2022.04.001); z:
    Fisher 1921; comparison: docs/decisions/0017.
    """
    if not math.isfinite(se) or df <= 0:
        return Interval(interval_reason=Message("the standard error needs two independent units"))
    skewed = (doubt is not None and doubt.skewed) or (is_kappa and df + 1 < ENOUGH_UNITS)
    skewed &= shape == "coefficient" and abs(value) < 1
    if df + 1 < FEW_UNITS and (doubt is None or doubt.is_wide):
        doubt = Doubt(Message("%(number)s independent units", number=f"{df + 1:.3g}"))
    if skewed:
        interval = _skewed_interval(value, se, max(df, 1), confidence, by)
        if doubt is None and interval.low is not None and interval.low < NEAR_CHANCE:
            doubt = Doubt(Message("near 0"), is_wide=True)
    elif shape == "share" and 0 <= value <= 1:
        quantile = None if se <= NO_WIDTH else max(df, 1)  # nothing was estimated where nothing varies
        method = Message("Wilson t, %(method)s", method=by)
        interval = wilson_interval(value, se, n or df + 1, df=quantile, method=method, confidence=confidence)
    else:
        interval = _on_scale(value, se, max(min(df, tail_df), 1), shape, confidence, unit, by)
    return doubted(interval, doubt)


def _skewed_interval(value: float, se: float, df: float, confidence: float, by: str) -> Interval:
    """Wilson's interval with t of a coefficient whose standard error grows with it, also where it is near 0.

    A sample that falls low has too small an error, so that the truth is missed above. Wilson's upper end makes up for
    it, but no mean of answers is below 0: neither is its lower end, and its upper one has no meaning at 0. So the lower
    end is not above value - t se, and below one standard error the distance of the upper end is that at one standard
    error. Above .5 this is Wilson's interval. Coverage from 0 to .9: docs/decisions/0017.
    """
    if se <= NO_WIDTH:
        return Interval(interval_reason=NO_UNIT_DIFFERS)
    method, at = Message("Wilson t, %(method)s", method=by), max(value, min(se, 0.5))
    wilson = wilson_interval(at, se, df + 1, df=df, method=method, confidence=confidence)
    plain = t_interval(value, se, df, method=method, confidence=confidence)
    low, high = wilson.low, wilson.high
    if low is None or high is None or plain.low is None:
        return wilson
    return replace(wilson, low=max(min(plain.low, low + value - at), -1.0), high=high + value - at)


class Doubt(NamedTuple):
    """Why an interval is only approximate; ``skewed``: of a coefficient Wilson's, widened near 0, covers best.

    ``stand_alone``: it is about few items, each of them a unit. ``is_wide``: why the interval is not approximate but
    conservative: it holds the truth more often than it says.
    """

    why: str
    skewed: bool = False
    stand_alone: bool = False
    is_wide: bool = False


CARRIED = Doubt(Message("one unit alone makes it defined"))


def few_off_point(n_items: int, n_units: int, enough: int = FEW_OFF_POINT) -> Doubt | None:
    """The doubt that few items, or items of few units, have a score off the commonest point."""
    if n_items >= enough and n_units >= FEW_UNITS:
        return None
    few = Message("%(items)s items off the commonest point", items=n_items)
    if n_units < n_items:
        counts = {"items": n_items, "clusters": n_units}
        few = Message("%(items)s items of %(clusters)s clusters off the commonest point", **counts)
    return Doubt(few, skewed=True, stand_alone=n_units == n_items)


def few_for_shares(doubt: Doubt | None, n_items: int = 0) -> Doubt | None:
    """The doubt of skewed figures as that of shares and errors, whose intervals are then conservative.

    Few items are off the commonest point, these stand alone, and (shares, errors) ``n_items`` are not enough. How often
    raters differ does not count: the samples without a mark would be those with more differences than usual.
    Source: bench/results/coverage_processes.md.
    """
    if doubt is None or not doubt.stand_alone or n_items >= ENOUGH_FOR_SHARES:
        return None
    return Doubt(doubt.why, is_wide=True)


def tails_of(n_points: int, n_items: int, scores: Weighted, *parts: Weighted) -> Doubt | None:
    """The doubt that tails are so heavy that squares of deviations have no steady spread.

    Of scores on up to FEW_POINTS different points their own excess kurtosis counts (HEAVY_TAILS). On more points it
    hides what it is made of: there ``parts`` (items' means, what is left of each score, what one rater's scores do not
    tell of another's) are judged, too, by SPREAD_OF_SQUARES, and fewer than TAILS_SEEN items are a doubt of their own.
    """
    if n_points <= FEW_POINTS:
        return Doubt(Message("heavy tails"), skewed=True) if kurtosis(*scores) > HEAVY_TAILS else None
    if any(_has_heavy_tails(*one) for one in (scores, *parts)):
        return Doubt(Message("heavy tails"))
    return (
        Doubt(Message("%(items)s items do not show whether tails are heavy", items=n_items))
        if n_items < TAILS_SEEN
        else None
    )


def n_points(scores: Floats) -> int:
    """How many different values there are, told exactly where they are FEW_POINTS or fewer."""
    first = len(np.unique(scores[:LOOK_FIRST]))
    return first if first > FEW_POINTS else len(np.unique(scores))


LOOK_FIRST = 1000


def doubted(interval: Interval, doubt: Doubt | None) -> Interval:
    """The same estimate, marked approximate or conservative with the reason if there is a doubt."""
    if doubt is None or not interval.method:
        return interval
    return replace(interval, method=(conservative if doubt.is_wide else approximate)(interval.method, doubt.why))


def _on_scale(value: float, se: float, df: float, shape: Shape, confidence: float, unit: float, by: str) -> Interval:
    """value +- t se on Fisher's z scale, on the logarithm's, or as it is."""
    method, inside = Message("%(method)s t", method=by), se > NO_WIDTH * max(unit, abs(value))
    if shape == "coefficient" and abs(value) < 1 and inside:
        z, dz, back, method = (
            math.atanh(value),
            se / (1 - value**2),
            math.tanh,
            Message("%(method)s t of Fisher's z", method=by),
        )
    elif shape == "positive" and value > 0 and inside:
        z, dz, back, method = math.log(value), se / value, math.exp, Message("%(method)s t of the logarithm", method=by)
    else:
        return t_interval(value, se, df, method=method, confidence=confidence, unit=unit)
    around = t_interval(z, dz, df, method=method, confidence=confidence)
    if around.low is None or around.high is None or around.high > MOST_LOGARITHM:
        return t_interval(value, se, df, method=Message("%(method)s t", method=by), confidence=confidence, unit=unit)
    return replace(around, low=back(around.low), high=back(around.high), se=se)


MOST_LOGARITHM = 700.0


def kurtosis(x: Floats, weights: Floats | None = None) -> float:
    """Excess kurtosis of (n,) values that occur ``weights`` times; 0 where they do not differ. Normal: 0."""
    return _fourth_powers(x, weights)[0]


def _has_heavy_tails(x: Floats, weights: Floats | None = None) -> bool:
    excess, share = _fourth_powers(x, weights)
    return excess > SPREAD_OF_SQUARES[0] and share > SPREAD_OF_SQUARES[1]


def _fourth_powers(x: Floats, weights: Floats | None) -> tuple[float, float]:
    """Excess kurtosis, and the share of the largest deviation in the sum of fourth powers; 0 where nothing differs."""
    w = np.ones(len(x)) if weights is None else weights
    total = float(w.sum())
    if not total:
        return 0.0, 0.0
    d = x - float(w @ x) / total
    largest = float(np.abs(d[w > 0]).max())
    squares = (d / largest) ** 2 if largest > 0 else np.zeros(len(x))
    spread, fourths = float(w @ squares) / total, float(w @ squares**2)
    return (fourths / total / spread**2 - 3, 1 / fourths) if spread > 0 else (0.0, 0.0)


def normal_interval(value: float, se: float, *, method: str, confidence: float = 0.95, unit: float = 1.0) -> Interval:
    """value +- z se; none where the standard error is undefined or 0."""
    from scipy.special import ndtri

    if not math.isfinite(se):
        return Interval(interval_reason=Message("the standard error is undefined"))
    half = float(ndtri((1 + confidence) / 2)) * se
    return _around(value, half, se, method, confidence, unit)


def log_t_interval(
    value: float, resampled: Floats, df: float, *, confidence: float = 0.95, unit: float = 1.0
) -> Interval:
    """Interval of a positive, right-skewed value: value times or over exp(t(df) s), s the spread of the (B,) logs.

    Where a resample is 0 or undefined its logarithm is none, and the interval is the percentile one.
    """
    from scipy.special import stdtrit

    if not (resampled > 0).all():
        return percentile(resampled, confidence=confidence, unit=unit)
    spread = float(np.log(resampled).std())
    if spread <= NO_WIDTH:
        return _none(NO_RESAMPLE_DIFFERS, resampled)
    factor = math.exp(float(stdtrit(df, (1 + confidence) / 2)) * spread)
    method = Message("%(method)s t of the logarithm", method=Message("bootstrap"))
    return Interval(low=value / factor, high=value * factor, confidence=confidence, method=method, undefined_share=0.0)


def wilson_interval(
    value: float,
    se: float,
    n: float,
    *,
    ends: tuple[float, float] = (0.0, 1.0),
    df: float | None = None,
    method: str = WILSON,
    confidence: float = 0.95,
) -> Interval:
    """Wilson's interval of a share, or of any mean that can't leave its ends a and b.

    The means mu with |value - mu| <= z sqrt((mu - a)(b - mu) / m). m = (value - a)(b - value) / se^2 is how many
    answers of a or b give the standard error seen, which may come from clusters; where nothing varies it is ``n``,
    the number of independent ones. z is normal, or t with ``df``. No interval when that is undefined.
    Source: Wilson 1927 (doi 10.2307/2276774); with m in place of n: Franco, Little, Louis & Slud 2019 (PMC6690503).
    """
    from scipy.special import ndtri, stdtrit

    if not math.isfinite(se) or n <= 0 or (df is not None and df < 1):
        return Interval(interval_reason=Message("the standard error needs two independent units"))
    (low, high), tail = ends, (1 + confidence) / 2
    z, width = float(ndtri(tail) if df is None else stdtrit(df, tail)), high - low
    p = min(max((value - low) / width, 0.0), 1.0)
    m = p * (1 - p) / (se / width) ** 2 if se > NO_WIDTH * width and 0 < p < 1 else n
    middle, half = (p + z**2 / (2 * m)) / (1 + z**2 / m), z * math.sqrt(p * (1 - p) / m + z**2 / (4 * m**2))
    half /= 1 + z**2 / m
    if se <= NO_WIDTH * width and 0 < p < 1:
        method = approximate(method, Message("no unit differs"))
    bounds = (low + width * (middle - half), low + width * (middle + half))
    return Interval(low=bounds[0], high=bounds[1], confidence=confidence, method=method, se=se).within(low, high)


def _acceleration(left_out: Floats, multiplicity: Floats) -> float:
    d = np.average(left_out, weights=multiplicity) - left_out
    spread = float(multiplicity @ d**2)
    return float(multiplicity @ d**3) / (6 * spread**1.5) if spread > 0 else 0.0


def _from_resamples(
    resampled: Floats, tails: tuple[float, float], confidence: float, method: str, unit: float
) -> Interval:
    undefined = float(np.isnan(resampled).mean()) if resampled.size else 1.0
    if undefined > MAX_UNDEFINED_SHARE:
        return _none(
            Message(
                "%(share)s of the resamples leave the statistic undefined (more than 5%%)", share=f"{undefined:.1%}"
            ),
            resampled,
        )
    low, high = (float(bound) for bound in np.quantile(resampled[~np.isnan(resampled)], tails))
    if high - low <= NO_WIDTH * max(unit, abs(low), abs(high)):
        return _none(NO_RESAMPLE_DIFFERS, resampled)
    return Interval(low=low, high=high, confidence=confidence, method=method, undefined_share=undefined)


def _around(value: float, half: float, se: float, method: str, confidence: float, unit: float) -> Interval:
    if half <= NO_WIDTH * max(unit, abs(value)):
        return Interval(se=se, interval_reason=NO_UNIT_DIFFERS)
    return Interval(low=value - half, high=value + half, confidence=confidence, method=method, se=se)


def _none(reason: str, resampled: Floats) -> Interval:
    share = float(np.isnan(resampled).mean()) if resampled.size else None
    return Interval(undefined_share=share, interval_reason=reason)


# --- many tests at once ----------------------------------------------------------------------------------------------
def holm(p: Sequence[float]) -> list[float]:
    """Holm-adjusted p values of m tests, whatever their dependence. Source: Holm 1979, jstor.org/stable/4615733."""
    order = np.argsort(p, kind="stable")
    m = len(p)
    stepped = np.maximum.accumulate(np.asarray(p, dtype=np.float64)[order] * (m - np.arange(m)))
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(stepped, 1)
    return [float(value) for value in adjusted]


def corrected_together(
    rows: Sequence[CellEstimate], family_of: Callable[[CellEstimate], object] = lambda _row: None
) -> list[CellEstimate]:
    """The same rows, with Holm's p and the size of its family in each that has a p; ``family_of`` tells families apart.

    Rows for which it is NO_FAMILY stay as they are. The note says both where a family has more than one test.
    """
    families: dict[object, list[int]] = {}
    for i, row in enumerate(rows):
        if row.estimate.p is not None and (family := family_of(row)) is not NO_FAMILY:
            families.setdefault(family, []).append(i)
    corrected = list(rows)
    for places in families.values():
        size = len(places)
        adjusted = holm([rows[i].estimate.p or 0.0 for i in places])
        for i, p in zip(places, adjusted, strict=True):
            estimate = rows[i].estimate
            words = Message("Holm p %(p)s in a family of %(number)s", p=f"{p:.4g}", number=size) if size > 1 else None
            note = joined((estimate.note, words)) or None
            corrected[i] = replace(rows[i], estimate=estimate.with_(p_corrected=p, family=size, note=note))
    return corrected


NO_FAMILY = object()


def benjamini_yekutieli(p: Sequence[float], alpha: float) -> list[bool]:
    """Which of m dependent hypotheses are rejected at false discovery rate alpha.

    Source: Benjamini & Yekutieli 2001, doi:10.1214/aos/1013699998.
    """
    m = len(p)
    ranked = np.sort(p)
    allowed = alpha * np.arange(1, m + 1) / (m * (1 / np.arange(1, m + 1)).sum())
    met = np.flatnonzero(ranked <= allowed)
    return [bool(len(met)) and value <= ranked[met[-1]] for value in p]
