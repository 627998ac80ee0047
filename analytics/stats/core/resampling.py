"""Resampling whole clusters, fast: units of the same kind are exchangeable, so a resample is a multinomial count.

What is resampled is a *unit*: an item, or a cluster of items (a dialogue, a scenario). A statistic sees an item only
through its *pattern* (say, how many raters gave it each score), and a unit only through how many items of each
pattern it holds. Units that hold the same are of one *kind*. A bootstrap resample of C units is then a multinomial
draw of C over the kinds: its cost depends on the number of kinds, hardly on the number of items.

A statistic to resample is a function of weights: ``statistic(weights (b, P)) -> (..., b)``, where ``weights[i, p]``
says how often pattern p occurs in resample i, and an undefined result is NaN. The value itself is the statistic of
``units.pattern_totals[None, :]``, the jackknife that of ``units.left_out()``: one kernel serves all three.

Means over items that come in clusters: standard errors that hold with few clusters of unequal size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import (
    NO_WIDTH,
    CellEstimate,
    Estimate,
    Interval,
    Shape,
    bca,
    jackknife_interval,
    percentile,
    t_interval,
)
from analytics.stats.core.messages import Message
from analytics.stats.core.number_arrays import Floats, Integers

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_array

    from analytics.stats.core.tables import RatingsTable

# --- clusters --------------------------------------------------------------------------------------------------------


def number_of(cluster: NDArray[Any]) -> int:
    """How many clusters the items of (n,) come in. Source: METHODS 0."""
    return len(np.unique(cluster))


def effective_number(sizes: Floats | Integers, multiplicity: Integers | None = None) -> float:
    """How many equal clusters tell as much as these: (sum n_c)^2 / sum n_c^2 = C / (1 + CV^2), C when all are alike.

    ``sizes`` (U,) items of a cluster of each kind, ``multiplicity`` (U,) how many there are. Less 1 it gives degrees of
    freedom. Source: Kish 1965, Survey Sampling; Carter, Schnepel & Steigerwald 2017 (doi 10.1162/REST_a_00639).
    """
    n = np.asarray(sizes, dtype=np.float64)
    m = np.ones(len(n)) if multiplicity is None else multiplicity
    squares = float(m @ n**2)
    return float(m @ n) ** 2 / squares if squares > 0 else 0.0


def error_of_mean(x: Floats, cluster: Integers) -> tuple[float, float]:
    """Standard error and degrees of freedom of the mean of x (n,) from clusters (n,) left out one by one.

    se^2 = (C - 1)/C sum_c (mean without c - mean)^2; for items that stand alone this is s^2 / n, with n - 1 degrees of
    freedom. NaN for one cluster. Source: cluster jackknife (CV3), MacKinnon, Nielsen & Webb 2023
    (doi 10.1016/j.jeconom.2022.04.001).
    """
    _, index, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        return float("nan"), 0.0
    moved = np.bincount(index, weights=x - x.mean()) / (len(x) - sizes)
    factor = (len(sizes) - 1) / len(sizes)
    return float(np.sqrt(factor * (moved**2).sum())), effective_number(sizes) - 1


def jackknife_error(value: float, without: Floats, parts: NDArray[Any]) -> float:
    """Standard error of a figure from its values with each cluster left out (C,), clusters drawn within ``parts`` (C,).

    se^2 = sum over parts of (C_h - 1)/C_h sum_c (without c - value)^2. NaN where a part has one cluster or a value is
    undefined. Source: Rust & Rao 1996 (doi 10.1177/096228029600500305), the stratified jackknife.
    """
    _, index, sizes = np.unique(parts, return_inverse=True, return_counts=True)
    if sizes.min(initial=2) < 2:
        return float("nan")
    return float(np.sqrt((((sizes - 1) / sizes)[index] * (without - value) ** 2).sum()))


# --- resampling ------------------------------------------------------------------------------------------------------
Statistic = Callable[[Floats], Floats]

CHUNK_CELLS = 2_000_000
"""Weights held at once (16 MB); larger resamples go through in chunks, with the same random numbers."""
DENSE_CELLS = 20_000_000
"""Clusters by patterns kept as a dense table; beyond this most of it is zeros and it is kept sparse."""
UNITS_PER_KIND = 20
"""Above so many units of each kind one multinomial draw is cheaper than drawing the units one by one."""
MOST_LEFT_OUT = 2_000
"""With more kinds of units it costs less to resample than to leave each out in turn, and they are many."""
CACHED_DRAWS = 200_000
"""Units drawn at once, so that they are counted while they are still in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Units:
    """Kinds of resampling units: (U,) how many of each, and (U, P) the patterns each kind is made of.

    ``composition`` is None when every unit is a single item, so that kind u is pattern u.
    """

    multiplicity: Integers
    composition: Floats | csr_array | None = None

    @classmethod
    def of(cls, pattern: Integers, cluster: Integers | None = None) -> Units:
        """Units from (N,) pattern index of each item and, unless items stand alone, (N,) cluster index of each."""
        n_patterns = int(pattern.max()) + 1 if pattern.size else 0
        if cluster is None or np.unique(cluster).size == cluster.size:
            return cls(np.bincount(pattern, minlength=n_patterns))
        _, cluster = np.unique(cluster, return_inverse=True)
        kinds, multiplicity = _distinct_rows(cluster, pattern, n_patterns)
        return cls(multiplicity, kinds)

    @property
    def n(self) -> int:
        """Number of units, C."""
        return int(self.multiplicity.sum())

    @property
    def n_kinds(self) -> int:
        """Number of kinds, U."""
        return int(self.multiplicity.size)

    @property
    def df(self) -> float:
        """Degrees of freedom: the effective number of units less 1 (C - 1 where all hold as many items)."""
        if self.composition is None:
            return float(self.n - 1)
        return effective_number(np.asarray(self.composition.sum(axis=1)).ravel(), self.multiplicity) - 1

    def holding(self, keep: NDArray[np.bool_]) -> Units:
        """The units without the patterns that are not kept (P,), those left empty taken out, too."""
        if self.composition is None:
            return Units(self.multiplicity[keep])
        kept = self.composition[:, keep]
        filled = np.asarray(kept.sum(axis=1)).ravel() > 0
        return Units(self.multiplicity[filled], kept[filled])

    @property
    def pattern_totals(self) -> Floats:
        """(P,) how often each pattern occurs: the weights of the sample itself."""
        return np.asarray(self._patterns(self.multiplicity[None, :].astype(np.float64))[0])

    def draw(self, rng: np.random.Generator, resamples: int) -> Iterator[Floats]:
        """Weights (b, P) of ``resamples`` bootstrap resamples of C units, in chunks of b rows."""
        drawn = self.n if self._by_unit else self.multiplicity.size
        for size in _chunks(resamples, max(drawn, self._n_patterns)):
            yield self._patterns(self._counts(rng, size))

    def left_out(self) -> Iterator[Floats]:
        """Weights (b, P) with one unit of each kind left out: U rows in all, in chunks."""
        n_kinds = self.multiplicity.size
        start, totals = 0, self.pattern_totals
        for size in _chunks(n_kinds, max(totals.size, 1)):
            kinds = np.zeros((size, n_kinds))
            kinds[np.arange(size), np.arange(start, start + size)] = 1
            yield totals - self._patterns(kinds)
            start += size

    @property
    def _by_unit(self) -> bool:
        return self.n <= UNITS_PER_KIND * self.multiplicity.size

    @property
    def _n_patterns(self) -> int:
        return int(self.multiplicity.size if self.composition is None else self.composition.shape[1])

    def _counts(self, rng: np.random.Generator, size: int) -> Floats:
        """(size, U) multinomial counts; drawing unit by unit is cheaper when most units are of their own kind."""
        n_units = self.n
        if not self._by_unit:
            return rng.multinomial(n_units, self.multiplicity / n_units, size=size).astype(np.float64)
        rows = max(1, CACHED_DRAWS // n_units)
        return np.concatenate([self._drawn(rng, min(rows, size - start)) for start in range(0, size, rows)])

    def _drawn(self, rng: np.random.Generator, size: int) -> Floats:
        """(size, U) counts from (size, C) units drawn one by one, in the smallest integers that number them."""
        n_units, n_kinds = self.n, self.multiplicity.size
        smallest = np.uint16 if n_units <= np.iinfo(np.uint16).max else np.uint32
        drawn = rng.integers(0, n_units, size=(size, n_units), dtype=smallest)
        if n_units > CACHED_DRAWS // 20 and (self.multiplicity == 1).all():
            return np.stack([np.bincount(row, minlength=n_kinds) for row in drawn]).astype(np.float64)
        kinds = np.repeat(np.arange(n_kinds), self.multiplicity)[drawn]
        kinds += n_kinds * np.arange(size)[:, None]
        return np.bincount(kinds.ravel(), minlength=size * n_kinds).reshape(size, n_kinds).astype(np.float64)

    def _patterns(self, kinds: Floats) -> Floats:
        return kinds if self.composition is None else np.asarray(kinds @ self.composition)


def resampled(statistic: Statistic, units: Units, *, resamples: int, rng: np.random.Generator) -> Floats:
    """(..., resamples) values of the statistic over bootstrap resamples of the units."""
    return np.concatenate([statistic(weights) for weights in units.draw(rng, resamples)], axis=-1)


def resampled_sums(rows: NDArray[Any], *, resamples: int, rng: np.random.Generator) -> Floats:
    """(resamples, K) sums over bootstrap resamples of C units, from (C, K) what each unit adds."""
    kinds, multiplicity = np.unique(rows, axis=0, return_counts=True)
    return np.concatenate([weights @ kinds for weights in Units(multiplicity).draw(rng, resamples)])


def left_out(statistic: Statistic, units: Units) -> Floats:
    """(..., U) values of the statistic with one unit of each kind left out."""
    return np.concatenate([statistic(weights) for weights in units.left_out()], axis=-1)


def left_out_error(values: Floats, without: Floats, units: Units) -> tuple[Floats, Floats]:
    """(...,) jackknife standard errors, and how many degrees of freedom they have, of values (...,).

    ``without`` (..., U): the values with a unit of each kind left out. se^2 = (C - 1)/C sum_u m_u d_u^2, d the changes;
    NaN where leaving a unit out makes a figure undefined, or below two units. Degrees of freedom 2 C / (k - 1), k the
    kurtosis C sum m d^4 / (sum m d^2)^2: few, where few units make the spread. Sources: cluster jackknife (CV3),
    MacKinnon, Nielsen & Webb 2023 (doi 10.1016/j.jeconom.2022.04.001); Hinkley 1977 (doi 10.1093/biomet/64.1.21).
    """
    if units.n < 2:
        return np.full(np.shape(values), np.nan), np.zeros(np.shape(values))
    change = (without - np.asarray(values)[..., None]) ** 2
    # Sums row by row, so that a figure's error does not depend on which others are asked for.
    squares, fourths = ((part * units.multiplicity).sum(axis=-1) for part in (change, change**2))
    with np.errstate(invalid="ignore", divide="ignore"):
        df = 2 * units.n / np.maximum(units.n * fourths / squares**2 - 1, 1e-9)
    return np.sqrt((units.n - 1) / units.n * squares), np.where(np.isfinite(df), df, 0.0)


def left_out_interval(
    statistic: Statistic, units: Units, shape: Shape, *, confidence: float = 0.95, unit: float = 1.0
) -> Interval:
    """Jackknife interval of a statistic with (b,) values (``estimates.jackknife_interval``); no random numbers."""
    value = float(statistic(units.pattern_totals[None, :])[0])
    se, tail_df = left_out_error(np.array(value), left_out(statistic, units), units)
    return jackknife_interval(
        value, float(se), units.df, shape, tail_df=float(tail_df), n=float(units.n), confidence=confidence, unit=unit
    )


def bootstrap(
    statistic: Statistic,
    units: Units,
    *,
    rng: np.random.Generator,
    resamples: int = 2000,
    confidence: float = 0.95,
    method: str = "percentile",
    unit: float = 1.0,
) -> Interval:
    """Cluster bootstrap interval of a statistic with (b,) values; ``method`` is ``percentile`` or ``bca``,
    ``unit`` the size of the numbers it is made of.

    Undefined (no bounds, ``interval_reason``) when more than 5 % of the resamples leave the statistic undefined or
    when there are fewer than two units. Source: Efron & Tibshirani 1993 (doi 10.1201/9780429246593); clusters:
    Davison & Hinkley 1997, section 3.8 (doi 10.1017/CBO9780511802843).
    """
    if units.n < 2:
        return Interval(interval_reason=Message("an interval needs two units to resample"))
    values = resampled(statistic, units, resamples=resamples, rng=rng)
    if method == "bca":
        value = float(statistic(units.pattern_totals[None, :])[0])
        multiplicity = units.multiplicity.astype(np.float64)
        return bca(value, values, left_out(statistic, units), multiplicity, confidence=confidence, unit=unit)
    return percentile(values, confidence=confidence, unit=unit)


def jackknife(statistic: Statistic, units: Units, *, confidence: float = 0.95, unit: float = 1.0) -> Interval:
    """Delete-one-unit jackknife interval of a statistic with (b,) values: no random numbers, t with C - 1 df.

    se^2 = (C - 1)/C sum_u m_u (theta_(u) - mean)^2. Source: Efron 1982 (doi 10.1137/1.9781611970319).
    """
    if units.n < 2:
        return Interval(interval_reason=Message("an interval needs two units to leave out"))
    value = float(statistic(units.pattern_totals[None, :])[0])
    without, m = left_out(statistic, units), units.multiplicity
    if np.isnan(without).any():
        return Interval(interval_reason=Message("leaving one unit out makes the statistic undefined"))
    spread = float(m @ (without - np.average(without, weights=m)) ** 2)
    se = float(np.sqrt((units.n - 1) / units.n * spread))
    return t_interval(
        value,
        se,
        units.n - 1,
        method=Message("%(method)s t", method=Message("jackknife")),
        confidence=confidence,
        unit=unit,
    )


def _chunks(total: int, width: int) -> Iterator[int]:
    size = max(1, CHUNK_CELLS // width)
    for start in range(0, total, size):
        yield min(size, total - start)


def _distinct_rows(cluster: Integers, pattern: Integers, n_patterns: int) -> tuple[Floats | csr_array, Integers]:
    """Distinct clusters as (U, P) pattern counts, and how many clusters are like each.

    Where the table would be too wide almost every cluster is of its own kind, and none is looked for.
    """
    n_clusters = int(cluster.max()) + 1
    if n_clusters * n_patterns > DENSE_CELLS:
        from scipy.sparse import csr_array

        table = csr_array((np.ones(cluster.size), (cluster, pattern)), shape=(n_clusters, n_patterns))
        return table, np.ones(n_clusters, dtype=np.int64)
    rows = np.bincount(cluster * n_patterns + pattern, minlength=n_clusters * n_patterns)
    rows, base = rows.reshape(n_clusters, n_patterns), int(rows.max(initial=0)) + 1
    if base**n_patterns < 2**62:  # one number for each row, in the order of the rows
        numbers = rows @ base ** np.arange(n_patterns, dtype=np.int64)[::-1]
        _, first, multiplicity = np.unique(numbers, return_index=True, return_counts=True)
        return rows[first].astype(np.float64), multiplicity
    kinds, multiplicity = np.unique(rows, axis=0, return_counts=True)
    return kinds.astype(np.float64), multiplicity


# --- raters like these: items and raters are both a sample -----------------


Report = Callable[["RatingsTable"], Sequence[CellEstimate]]
RatersAs = Literal["these", "sample"]
THESE, LIKE_THESE, THIS_JUDGE = "these raters", "raters like these", "this judge"
"""The values of ``Estimate.speaks_for``."""
FEWEST_RATERS = 20
"""With fewer raters the careless ones may be missing among them: of six raters of whom each is careless with
probability .2, intervals for raters like these cover .73 to .84, of 10 .88, of 20 .91 to .93 (docs/decisions/0045)."""
FEW_RATERS = 30
"""With fewer raters (their effective number) an interval for raters like these says that it is approximate."""
TOO_FEW = Message("fewer than 20 raters are not a sample of raters: careless ones may be missing among them")
ANONYMOUS = Message("anonymous slots are not persons: raters cannot be taken as a sample")


def for_these(estimate: Estimate, whom: str = THESE) -> Estimate:
    """The same, saying that it speaks for these raters alone."""
    return estimate.with_(speaks_for=whom) if estimate.value is not None else estimate


def saying_whom(row: CellEstimate, whom: str | None) -> CellEstimate:
    """The same, speaking for ``whom`` where its figure does not say it itself; None: it is about no rater."""
    if whom is None or row.estimate.speaks_for is not None:
        return row
    return replace(row, estimate=for_these(row.estimate, whom))


def without_interval(estimate: Estimate, reason: str) -> Estimate:
    """The same without its interval, which would have spoken for these raters alone."""
    bare = estimate.with_(low=None, high=None, confidence=None, method=None, se=None, undefined_share=None, seed=None)
    return bare.with_(interval_reason=reason, speaks_for=LIKE_THESE)


def for_raters_like_these(
    estimate: Estimate,
    without: Sequence[float | None],
    sizes: Sequence[int] | NDArray[np.integer],
    shape: Shape,
    parts: Sequence[int] | NDArray[np.integer] | None = None,
) -> Estimate:
    """The estimate with an interval that holds items and raters for samples.

    ``estimate`` has the interval for these raters, [l, u]. ``without`` (R,) holds the value with each rater left out,
    ``sizes`` (R,) how many scores each gave. Raters left out one by one give a second interval [l', u']: jackknife
    error around the mean of these values (a panel of R - 1 may have another level), t with the effective number of
    raters less 1, on the scale of ``shape``. Together: low = value - sqrt((value - l)^2 + (value - l')^2), high alike.
    Raters who are all alike add nothing. What items and raters do together is in both parts, so that the interval is
    rather too wide. ``parts`` (R,): raters of two panels are left out within their own, and degrees of freedom added by
    Satterthwaite. No interval with fewer than FEWEST_RATERS raters in a part. Sources: two-way resampling, Owen 2007
    (doi 10.1214/07-AOAS122); adding intervals, Zou & Donner 2008 (doi 10.1002/sim.3095); docs/decisions/0020.
    """
    if estimate.value is None:
        return estimate
    if estimate.low is None or estimate.high is None:
        return estimate.with_(speaks_for=LIKE_THESE)
    kept = np.asarray(sizes) > 0
    n_scores = np.asarray(sizes)[kept]
    part = np.zeros(len(n_scores), dtype=np.intp) if parts is None else np.asarray(parts)[kept]
    own = [n_scores[part == one] for one in np.unique(part)]
    if min(map(len, own), default=0) < FEWEST_RATERS:
        return without_interval(estimate, TOO_FEW)
    values = np.array([np.nan if value is None else value for value in without], dtype=np.float64)
    if np.isnan(values).any():
        return without_interval(estimate, Message("without one of the raters the figure is undefined"))
    confidence, value = estimate.confidence or 0.95, estimate.value
    raters = _of_raters(value, values, n_scores, part, shape, confidence)
    if raters.low is None or raters.high is None:
        return without_interval(estimate, raters.interval_reason or TOO_FEW)
    low = value - math.hypot(value - estimate.low, value - raters.low)
    high = value + math.hypot(estimate.high - value, raters.high - value)
    lowest, highest = _BOUNDS[shape]
    method = Message("%(method)s and raters left out", method=estimate.method)
    fewest = min(map(effective_number, own))
    if fewest < FEW_RATERS:
        few = Message("%(number)s raters", number=f"{fewest:.3g}")
        method = Message("%(method)s (approximate: %(why)s)", method=method, why=few)
    return estimate.with_(
        low=max(low, lowest), high=min(high, highest), method=method, se=None, speaks_for=LIKE_THESE
    )  # fmt: skip


def of_report(
    rows: Sequence[CellEstimate],
    again: Report,
    table: RatingsTable,
    shapes: Mapping[str, Shape],
    *,
    raters: Sequence[str] | None = None,
    sides: tuple[str, tuple[str, str]] | None = None,
) -> list[CellEstimate]:
    """A report with intervals for raters like these: ``again`` makes it anew without each annotator.

    Rows of the statistics in ``shapes`` get them, the others stay with these raters. ``sides``: a column and two of its
    values that are compared; raters of one side only are a sample of their own. Source: docs/decisions/0020.
    """
    panel = table.annotators().frame
    panel = panel[(panel["code"] >= 0).to_numpy()]
    names = [name for name in sorted(map(str, panel["rater"].unique())) if raters is None or name in raters]
    left = {}
    for name in names:
        kept = replace(table, frame=table.frame[(table.frame["rater"] != name).to_numpy()])
        left[name] = {_key(row): row.estimate.value for row in again(kept)}
    return [
        _of_row(row, panel, left, shapes[row.estimate.statistic], sides)
        if row.estimate.statistic in shapes and row.annotator is None
        else row
        for row in rows
    ]


def _of_row(
    row: CellEstimate,
    panel: pd.DataFrame,
    left: Mapping[str, Mapping[tuple[object, ...], float | None]],
    shape: Shape,
    sides: tuple[str, tuple[str, str]] | None,
) -> CellEstimate:
    here = panel
    named = {"language": row.language, "generator": row.generator}
    for column, value in {**row.cell, **{column: value for column, value in named.items() if value}}.items():
        if column in here:
            here = here[(here[column].fillna("").astype(str) == (value or "")).to_numpy()]
    if sides:
        here = here[here[sides[0]].astype(str).isin(sides[1]).to_numpy()]
    scored = here["rater"].astype(str)
    names = [name for name in left if (scored == name).any()]
    sizes = [int((scored == name).sum()) for name in names]
    parts = None
    if sides:
        on = here[sides[0]].astype(str)
        parts = [sum(2**k for k, side in enumerate(sides[1]) if ((scored == n) & (on == side)).any()) for n in names]
    without = [left[name].get(_key(row)) for name in names]
    return replace(row, estimate=for_raters_like_these(row.estimate, without, sizes, shape, parts))


def _key(row: CellEstimate) -> tuple[object, ...]:
    """The key that distinguishes a row from the other rows of its report."""
    e = row.estimate
    return (
        e.statistic,
        e.variant,
        *row.cell.items(),
        row.language,
        row.languages,
        row.generator,
        row.raters,
        row.judge,
    )


_BOUNDS: dict[Shape, tuple[float, float]] = {
    "share": (0.0, 1.0),
    "coefficient": (-math.inf, 1.0),
    "positive": (0.0, math.inf),
    "free": (-math.inf, math.inf),
}


def _of_raters(
    value: float,
    without: Floats,
    sizes: NDArray[np.integer],
    part: NDArray[np.integer],
    shape: Shape,
    confidence: float,
) -> Interval:
    """The part of the raters; no width where they are all alike."""
    unit = max(1.0, abs(value)) if shape in ("share", "coefficient") else abs(value)
    variances, dfs = [], []
    for one in np.unique(part):
        own = without[part == one]
        variances.append((len(own) - 1) / len(own) * float(((own - own.mean()) ** 2).sum()))
        dfs.append(effective_number(sizes[part == one]) - 1)
    se = math.sqrt(sum(variances))
    if se <= NO_WIDTH * max(unit, float(np.abs(without).max())):
        return Interval(low=value, high=value)
    total = sum(v**2 / d for v, d in zip(variances, dfs, strict=True) if v > 0 and d > 0)
    df = se**4 / total if total > 0 and min(dfs) > 0 else 0.0
    if df < 1:
        return Interval(interval_reason=Message("one rater gave nearly all scores: raters cannot be taken as a sample"))
    return jackknife_interval(value, se, df, shape, confidence=confidence)
