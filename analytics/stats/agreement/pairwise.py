"""Figures that ask who gave a score: Cohen's kappa of each pair of raters and on average, Conger's of the panel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement import coefficients, continuous_scales
from analytics.stats.agreement import coefficients as kernels
from analytics.stats.agreement.coefficient_estimates import Resampling, doubt_of, patterns_of
from analytics.stats.agreement.coefficients import OrderedPatterns, ordered_patterns_of
from analytics.stats.core.estimates import (
    CARRIED,
    Doubt,
    Estimate,
    Interval,
    doubted,
    jackknife_interval,
    normal_interval,
    t_interval,
)
from analytics.stats.core.messages import Message, approximate, joined
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import Statistic, Units, jackknife, left_out, left_out_error, resampled
from analytics.stats.core.scales import Weighting, disagreement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.stats.core.tables import Coded

Pair = tuple[int, int]
Row = tuple[Estimate, tuple[str, ...] | None]
"""An estimate and the two raters it compares; None for the whole panel."""

MOST_RESAMPLED_PAIRS = 200
"""Panels with more pairs get large-sample intervals for pairs and no interval for the mean: resampling them would take
too long."""
MOST_RESAMPLED_RATERS = 30
MOST_LISTED_RATERS = 20
"""Larger panels list only the pairs that share an item."""

MOST_PAIRED_RATERS = 24
"""Pairs of larger panels are listed on request only: 300 raters have 44,850 pairs for each kind of kappa."""
PAIRS_LEFT_OUT = Message(
    "pairs of more than %(number)s raters are left out: pairs=all lists them", number=MOST_PAIRED_RATERS
)
Pairs = Literal["few", "all"]

FEW_COMMON_ITEMS = 50
"""Below so many common items an interval of kappa on a rare flag covers too little (docs/decisions/0009)."""

COHEN_VARIANTS: dict[str, Weighting] = {"unweighted": "identity", "linear": "linear", "quadratic": "quadratic"}
ANONYMOUS = Message("raters are anonymous slots (--positional): who agrees with whom is unknown")


def cohen_rows(
    cell: Coded, *, rng: np.random.Generator, how: Resampling, positional: bool, pairs: Pairs = "all"
) -> Iterator[Row]:
    """Per variant (unweighted; linear and quadratic where the scale has an order): a row per pair, and their mean.

    ``pairs`` "few": with more than MOST_PAIRED_RATERS raters only the means, with a note that pairs are left out.
    """
    is_listed = pairs == "all" or len(cell.raters) <= MOST_PAIRED_RATERS
    reason = _refusal(cell, positional)
    is_wide = reason is None and coefficients.is_wide(cell.scale, cell.n_items)
    patterns = None if reason or is_wide else ordered_patterns_of(cell)
    for variant, weighting in COHEN_VARIANTS.items():
        if variant != "unweighted" and not cell.scale.has_order:
            continue
        if is_wide:
            rows = _wide_cohen_rows(cell, variant, weighting, how)
            yield from rows if is_listed else (_unlisted(e) for e, raters in rows if raters is None)
        elif patterns is None:
            yield _undefined(cell, "cohen_kappa", variant, reason), None
        elif is_listed:
            yield from _cohen_rows(cell, patterns, variant, disagreement(cell.scale, weighting), rng, how)
        else:
            # The mean kappa of all pairs that share an item, without a row for each.
            d = disagreement(cell.scale, weighting)
            kappas, shared = coefficients.pair_kappas(cell.matrix(), d)
            values = kappas[np.triu(shared > 0, 1)]
            several = _several(patterns, [], d)
            yield _unlisted(_mean_estimate(cell, patterns, variant, values, several, None, how))


def _unlisted(mean: Estimate) -> Row:
    return mean.with_(note=joined((mean.note, PAIRS_LEFT_OUT))), None


def conger_rows(cell: Coded, *, rng: np.random.Generator, how: Resampling, positional: bool) -> Iterator[Row]:
    """Conger's kappa of the panel per weighting."""
    reason = _refusal(cell, positional)
    is_wide = reason is None and coefficients.is_wide(cell.scale, cell.n_items)
    patterns = None if reason or is_wide else ordered_patterns_of(cell)
    for weighting in ("identity", "linear", "quadratic", "ordinal") if cell.scale.has_order else ("identity",):
        if is_wide:
            yield _wide_conger_estimate(cell, weighting, how), None
        elif patterns is None:
            yield _undefined(cell, "conger_kappa", weighting, reason), None
        else:
            yield _conger_estimate(cell, patterns, weighting, rng, how), None


def _refusal(cell: Coded, positional: bool) -> str | None:
    if positional:
        return ANONYMOUS
    if not cell.code.size:
        return Message("nothing is rated")
    if len(cell.raters) < 2:
        return Message("only one rater")
    if cell.scale.is_sparse or (cell.scale.is_continuous and cell.scale.level in ("interval", "ratio")):
        return cell.scale.why_continuous
    return None


def _undefined(cell: Coded, statistic: str, variant: str, reason: str | None) -> Estimate:
    return Estimate(
        statistic=statistic,
        variant=variant,
        level=cell.scale.level,
        value=None,
        reason=reason,
        n_items=cell.n_items,
        n_raters=len(cell.raters),
        n_ratings=int(cell.code.size),
        n_missing=cell.n_missing,
    )


@dataclass(frozen=True)
class _Resamples:
    """Kappas of all pairs: ``without`` (pairs, U), each with one unit of a kind left out, or None; and ``draws``
    (pairs, B), resampled.

    ``shared`` (pairs, P): whether both of a pair scored the items of a pattern. ``doubt`` says why intervals are only
    approximate.
    """

    several: Statistic
    units: Units
    shared: NDArray[np.bool_]
    how: Resampling
    seed: np.random.Generator
    without: Floats | None
    doubt: Doubt | None

    @cached_property
    def draws(self) -> Floats:
        """The resampled kappas; computed only if the jackknife is not used or is undefined."""
        return resampled(self.several, self.units, resamples=self.how.resamples, rng=self.seed)

    def interval(self, value: float, pairs: Any) -> Interval:
        """The interval of the mean over ``pairs`` (a mask; a single pair is its own mean), undefined if one pair is
        undefined.
        """
        without = None if self.without is None else self.without[pairs].mean(axis=0)
        if without is not None and self.how.leaves_out(self.units):
            interval = _left_out(value, without, self.units, self.shared[pairs].any(axis=0), self.doubt, self.how)
            if interval.interval_reason != UNDEFINED_LEFT_OUT:
                return interval
        m = self.units.multiplicity.astype(np.float64)
        interval = self.how.interval("cohen_kappa", value, self.draws[pairs].mean(axis=0), without, m)
        return doubted(interval, CARRIED if self.how.leaves_out(self.units) else self.doubt)


def _cohen_rows(
    cell: Coded, patterns: OrderedPatterns, variant: str, d: Floats, rng: np.random.Generator, how: Resampling
) -> Iterator[Row]:
    """A row per pair, then their mean over the pairs that have a kappa; one set of resamples serves all."""
    listed = _listed_pairs(cell)
    several = _several(patterns, listed, d)
    values = several(patterns.weights)[:, 0] if listed else np.zeros(0)
    resamples = (
        _resamples(_doubt(cell, d), several, patterns, listed, rng, how)
        if 0 < len(listed) <= MOST_RESAMPLED_PAIRS
        else None
    )
    shared = []
    for index, (pair, value) in enumerate(zip(listed, values, strict=True)):
        estimate = _pair_estimate(cell, patterns, variant, d, pair, float(value))
        if estimate.is_defined:
            shared.append(estimate.n_items)
            interval = (
                resamples.interval(float(value), [index]) if resamples else _closed(patterns, estimate, pair, d, how)
            )
            interval = interval if estimate.se is None else replace(interval, se=None)
            estimate = _marked(estimate.with_(**interval.within(-1, 1).as_changes()), estimate.n_items)
        yield estimate, (cell.raters[pair[0]], cell.raters[pair[1]])
    mean = _mean_estimate(cell, patterns, variant, values, several, resamples, how)
    yield _marked(mean, min(shared, default=0)), None


def _marked(estimate: Estimate, shared: int) -> Estimate:
    """An interval on few common items says that it is approximate."""
    if estimate.method is None or shared >= FEW_COMMON_ITEMS:
        return estimate
    return estimate.with_(method=approximate(estimate.method))


def _resamples(
    doubt: Doubt | None,
    several: Statistic,
    patterns: OrderedPatterns,
    listed: Sequence[Pair],
    rng: np.random.Generator,
    how: Resampling,
) -> _Resamples | None:
    units, scored = patterns.units, patterns.codes >= 0
    if not how.resamples or units.n < 2:
        return None
    without = left_out(several, units) if how.leaves_out(units) or how.wants_bca("cohen_kappa") else None
    shared = np.stack([scored[:, a] & scored[:, b] for a, b in listed])
    return _Resamples(several, units, shared, how, rng, without, doubt)


UNDEFINED_LEFT_OUT = Message("without one of the units the figure is undefined")


def _left_out(
    value: float, without: Floats, units: Units, shared: NDArray[np.bool_], doubt: Doubt | None, how: Resampling
) -> Interval:
    """The jackknife interval of a kappa from its values with a unit of each kind left out (U,).

    Units without an item that both raters scored (``shared`` (P,), by pattern) do not count as degrees of freedom.
    """
    se, tail_df = left_out_error(np.array(value), without, units)
    if np.isnan(se):
        return Interval(interval_reason=UNDEFINED_LEFT_OUT)
    return jackknife_interval(
        value, float(se), units.holding(shared).df, "coefficient", tail_df=float(tail_df), doubt=doubt, is_kappa=True,
        confidence=how.confidence,
    )  # fmt: skip


def _doubt(cell: Coded, d: Floats) -> Doubt | None:
    """Why kappas with the disagreement weights ``d`` may be skewed in this cell; None if there is no reason."""
    patterns = patterns_of(cell)
    weighted = bool((d != 1 - np.eye(len(d))).any())
    return doubt_of(patterns.counts, patterns.units, cell.scale, weighted=weighted)


def _listed_pairs(cell: Coded) -> list[Pair]:
    """All pairs of a small panel; of a large one those that share an item."""
    everyone = len(cell.raters)
    if everyone <= MOST_LISTED_RATERS:
        return list(combinations(range(everyone), 2))
    order = np.lexsort((cell.rater, cell.item))
    ends = np.flatnonzero(np.diff(cell.item[order])) + 1
    groups = np.split(cell.rater[order], ends)
    met = {number for group in groups for number in _pair_numbers(group, everyone)}
    return [divmod(number, everyone) for number in sorted(met)]


def _pair_numbers(group: NDArray[np.intp], everyone: int) -> list[int]:
    first, second = np.triu_indices(len(group), 1)
    return [int(number) for number in group[first] * everyone + group[second]]


def _several(patterns: OrderedPatterns, listed: Sequence[Pair], d: Floats) -> Statistic:
    """Kappas of many pairs as one statistic of weights (B, P) -> (pairs, B)."""

    def values(weights: Floats) -> Floats:
        columns = patterns.codes.T
        return np.stack([kernels.cohen_kappa_kernel(columns[a], columns[b], weights, d) for a, b in listed])

    return values


def _pair_estimate(
    cell: Coded, patterns: OrderedPatterns, variant: str, d: Floats, pair: Pair, value: float
) -> Estimate:
    """Kappa of one pair and its large-sample standard error; the interval comes after."""
    a, b = patterns.codes[:, pair[0]], patterns.codes[:, pair[1]]
    totals = patterns.weights[0]
    n = int(totals @ ((a >= 0) & (b >= 0)))
    undefined = np.isnan(value)
    se = np.nan if undefined else kernels.cohen_kappa_se(a, b, totals, d)
    return Estimate(
        statistic="cohen_kappa",
        variant=variant,
        level=cell.scale.level,
        value=None if undefined else value,
        reason=_reason_for_pair(n, a, b) if undefined else None,
        se=se if np.isfinite(se) else None,
        n_items=n,
        n_clusters=None if patterns.units.composition is None else patterns.units.holding((a >= 0) & (b >= 0)).n,
        n_raters=2,
        n_ratings=2 * n,
        n_missing=cell.n_missing,
    )


def _closed(patterns: OrderedPatterns, estimate: Estimate, pair: Pair, d: Floats, how: Resampling) -> Interval:
    """Large-sample interval, which assumes independent items. If there are clusters, a jackknife over clusters is used
    instead."""
    if patterns.units.composition is None:
        se = np.nan if estimate.se is None else estimate.se
        return normal_interval(
            estimate.value or 0.0, se, method=approximate("Fleiss-Cohen-Everitt"), confidence=how.confidence
        )
    one = _several(patterns, [pair], d)
    return jackknife(lambda weights: one(weights)[0], patterns.units, confidence=how.confidence)


def _reason_for_pair(n: int, a: NDArray[np.integer], b: NDArray[np.integer]) -> str:
    if n == 0:
        return Message("the two raters share no item")
    both = (a >= 0) & (b >= 0)
    one = np.unique(np.concatenate([a[both], b[both]])).size == 1
    return (
        Message("only one category is used: chance alone would agree always")
        if one
        else Message("chance alone would agree always")
    )


def _reason_for_all(cell: Coded) -> str:
    """Why no pair has a kappa."""
    if np.unique(cell.code).size == 1:
        return Message("only one category is used: chance alone would agree always")
    if np.bincount(cell.item).max() < 2:
        return Message("no item has two ratings")
    return Message("no pair of raters has a kappa: where two share items, chance alone would agree always")


def _mean_estimate(
    cell: Coded,
    patterns: OrderedPatterns,
    variant: str,
    values: Floats,
    several: Statistic,
    resamples: _Resamples | None,
    how: Resampling,
) -> Estimate:
    """Unweighted mean of the pairs' kappas."""
    base = _undefined(cell, "cohen_kappa", variant, _reason_for_all(cell))
    defined = ~np.isnan(values)
    if not defined.any():
        return base
    note = (
        None
        if defined.all()
        else Message(
            "mean of the %(number)s of %(all)s pairs that have a kappa", number=int(defined.sum()), all=len(values)
        )
    )
    value = float(values[defined].mean())
    estimate = base.with_(value=value, reason=None, note=note)
    if len(values) > MOST_RESAMPLED_PAIRS:
        return estimate.with_(
            interval_reason=Message("more than %(number)s pairs are not resampled", number=MOST_RESAMPLED_PAIRS)
        )
    if resamples:
        return estimate.with_(**resamples.interval(value, defined).as_changes())

    def mean(weights: Floats) -> Floats:
        return np.asarray(several(weights)[defined].mean(axis=0))

    return estimate.with_(**jackknife(mean, patterns.units, confidence=how.confidence).within(-1, 1).as_changes())


def _conger_estimate(
    cell: Coded, patterns: OrderedPatterns, weighting: Weighting, rng: np.random.Generator, how: Resampling
) -> Estimate:
    d = disagreement(cell.scale, weighting)
    codes, totals = patterns.codes, patterns.weights
    base = _undefined(cell, "conger_kappa", weighting, Message("no item has two ratings"))
    if not ((codes >= 0).sum(axis=1) >= 2).any():
        return base
    value = float(kernels.conger_kappa_kernel(codes, totals, d)[0])
    if np.isnan(value):
        return base.with_(reason=Message("only one category is used: chance alone would agree always"))
    se = coefficients.linearised_standard_error(kernels.conger_influence(codes, totals[0], d), patterns.units)
    estimate = base.with_(value=value, reason=None, se=se if np.isfinite(se) else None)
    if how.resamples and len(cell.raters) <= MOST_RESAMPLED_RATERS and patterns.units.n > 1:
        interval = replace(_conger_resampled(cell, patterns, d, value, rng, how), se=None)
    else:
        interval = t_interval(value, se, patterns.units.df, method=Message("linearised t"), confidence=how.confidence)
    return estimate.with_(**interval.within(-np.inf, 1).as_changes())


def _conger_resampled(
    cell: Coded, patterns: OrderedPatterns, d: Floats, value: float, rng: np.random.Generator, how: Resampling
) -> Interval:
    units, doubt = patterns.units, _doubt(cell, d)

    def statistic(weights: Floats) -> Floats:
        return kernels.conger_kappa_kernel(patterns.codes, weights, d)

    without = left_out(statistic, units) if how.leaves_out(units) or how.wants_bca("conger_kappa") else None
    if without is not None and how.leaves_out(units):
        shared = (patterns.codes >= 0).sum(axis=1) >= 2
        interval = _left_out(value, without, units, shared, doubt, how)
        if interval.interval_reason != UNDEFINED_LEFT_OUT:
            return interval
        doubt = CARRIED
    values = resampled(statistic, units, resamples=how.resamples, rng=rng)
    interval = how.interval("conger_kappa", value, values, without, units.multiplicity.astype(np.float64))
    return doubted(interval, doubt)


def _wide_cohen_rows(cell: Coded, variant: str, weighting: Weighting, how: Resampling) -> Iterator[Row]:
    """``_cohen_rows`` for a cell with many points and items. Intervals are linearised, and no points × points table is
    built."""
    distance, listed = continuous_scales.Distance.of(cell.scale, weighting), _listed_pairs(cell)
    codes = cell.matrix().astype(np.intp)
    values, slopes = [], []
    for pair in listed:
        a, b = codes[:, pair[0]], codes[:, pair[1]]
        value = continuous_scales.cohen_kappa_of_many_points(a, b, distance)
        n = int(((a >= 0) & (b >= 0)).sum())
        estimate = _undefined(cell, "cohen_kappa", variant, _reason_for_pair(n, a, b))
        estimate = estimate.with_(n_items=n, n_raters=2, n_ratings=2 * n)
        if not np.isnan(value[0]):
            values.append(value[0])
            slopes.append(value[1])
            estimate = _marked(_linearised(cell, estimate, value, how, -1), n)
        yield estimate, (cell.raters[pair[0]], cell.raters[pair[1]])
    mean = _undefined(cell, "cohen_kappa", variant, _reason_for_all(cell))
    if values:
        several = Message(
            "mean of the %(number)s of %(all)s pairs that have a kappa", number=len(values), all=len(listed)
        )
        mean = mean.with_(note=None if len(values) == len(listed) else several)
        mean = _linearised(cell, mean, (float(np.mean(values)), np.mean(slopes, axis=0)), how, -1)
    yield mean, None


def _wide_conger_estimate(cell: Coded, weighting: Weighting, how: Resampling) -> Estimate:
    value = continuous_scales.conger_kappa_of_many_points(
        continuous_scales.LongScores(cell), continuous_scales.Distance.of(cell.scale, weighting)
    )
    if np.isnan(value[0]):
        paired = np.bincount(cell.item).max() >= 2
        reason = (
            Message("only one category is used: chance alone would agree always")
            if paired
            else Message("no item has two ratings")
        )
        return _undefined(cell, "conger_kappa", weighting, reason)
    return _linearised(cell, _undefined(cell, "conger_kappa", weighting, "undefined"), value, how, -np.inf)


def _linearised(
    cell: Coded, base: Estimate, value: continuous_scales.Value, how: Resampling, lowest: float
) -> Estimate:
    interval = continuous_scales.interval(value, cell.cluster, "coefficient", is_kappa=True, confidence=how.confidence)
    return base.with_(value=value[0], reason=None, **interval.within(lowest, 1).as_changes())
