"""Figures that ask who gave a score: Cohen's kappa of each pair of raters and on average, Conger's of the panel."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats import linearised
from analytics.stats import pairs as kernels
from analytics.stats.countwise import MOST_POINTS, Resampling
from analytics.stats.estimate import Estimate
from analytics.stats.intervals import Interval, bca, normal_interval, percentile, t_interval
from analytics.stats.pairs import OrderedPatterns, ordered_patterns_of
from analytics.stats.resampling import Statistic, jackknife, left_out, resampled
from analytics.stats.scales import Scale, Weighting, agreement_weights

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.stats.tables import Coded

Floats = NDArray[np.float64]
Pair = tuple[int, int]
Row = tuple[Estimate, tuple[str, ...] | None]
"""An estimate and the two raters it compares; None for the whole panel."""

MOST_RESAMPLED_PAIRS = 100
"""Larger panels get large-sample intervals for their pairs and none for the mean: pairs grow with the square."""
MOST_RESAMPLED_RATERS = 30
MOST_LISTED_RATERS = 20
"""Larger panels list only the pairs that share an item."""

COHEN_VARIANTS: dict[str, Weighting] = {"unweighted": "identity", "linear": "linear", "quadratic": "quadratic"}
ANONYMOUS = "raters are anonymous slots (--positional): who agrees with whom is unknown"


def cohen_rows(cell: Coded, *, rng: np.random.Generator, how: Resampling, positional: bool) -> Iterator[Row]:
    """Per variant (unweighted; linear and quadratic where the scale has an order): a row per pair, and their mean."""
    reason = _refusal(cell, positional)
    patterns = None if reason else ordered_patterns_of(cell)
    for variant, weighting in COHEN_VARIANTS.items():
        if variant != "unweighted" and not cell.scale.has_order:
            continue
        if patterns is None:
            yield _undefined(cell, "cohen_kappa", variant, reason), None
        else:
            yield from _cohen_rows(cell, patterns, variant, agreement_weights(cell.scale, weighting), rng, how)


def conger_rows(cell: Coded, *, rng: np.random.Generator, how: Resampling, positional: bool) -> Iterator[Row]:
    """Conger's kappa of the panel per weighting."""
    reason = _refusal(cell, positional)
    patterns = None if reason else ordered_patterns_of(cell)
    for weighting in _weightings(cell.scale):
        if patterns is None:
            yield _undefined(cell, "conger_kappa", weighting, reason), None
        else:
            yield _conger_estimate(cell, patterns, weighting, rng, how), None


def _refusal(cell: Coded, positional: bool) -> str | None:
    if positional:
        return ANONYMOUS
    if not cell.code.size:
        return "nothing is rated"
    if len(cell.raters) < 2:
        return "only one rater"
    if cell.scale.q > MOST_POINTS:
        return f"the scores take {cell.scale.q} values: figures on categories need a scale"
    return None


def _weightings(scale: Scale) -> tuple[Weighting, ...]:
    return ("identity", "linear", "quadratic", "ordinal") if scale.has_order else ("identity",)


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


def _cohen_rows(
    cell: Coded, patterns: OrderedPatterns, variant: str, w: Floats, rng: np.random.Generator, how: Resampling
) -> Iterator[Row]:
    """A row per pair, then their mean over the pairs that have a kappa; one set of resamples serves all."""
    listed = _listed_pairs(cell)
    several = _several(patterns, listed, w)
    values = several(patterns.weights)[:, 0] if listed else np.zeros(0)
    draws = None
    if how.resamples and len(listed) <= MOST_RESAMPLED_PAIRS and patterns.units.n > 1 and listed:
        draws = resampled(several, patterns.units, resamples=how.resamples, rng=rng)
    for index, (pair, value) in enumerate(zip(listed, values, strict=True)):
        names = (cell.raters[pair[0]], cell.raters[pair[1]])
        yield (
            _pair_estimate(cell, patterns, variant, w, pair, value, None if draws is None else draws[index], how),
            names,
        )
    yield _mean_estimate(cell, patterns, variant, listed, values, draws, several, how), None


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


def _several(patterns: OrderedPatterns, listed: Sequence[Pair], w: Floats) -> Statistic:
    """Kappas of many pairs as one statistic of weights (B, P) -> (pairs, B)."""

    def values(weights: Floats) -> Floats:
        columns = patterns.codes.T
        return np.stack([kernels.cohen_kappa(columns[a], columns[b], weights, w) for a, b in listed])

    return values


def _pair_estimate(
    cell: Coded,
    patterns: OrderedPatterns,
    variant: str,
    w: Floats,
    pair: Pair,
    value: float,
    draws: Floats | None,
    how: Resampling,
) -> Estimate:
    a, b = patterns.codes[:, pair[0]], patterns.codes[:, pair[1]]
    totals = patterns.weights[0]
    n = int(totals @ ((a >= 0) & (b >= 0)))
    base = Estimate(
        statistic="cohen_kappa", variant=variant, level=cell.scale.level, value=None, reason="not computed",
        n_items=n, n_raters=2, n_ratings=2 * n, n_missing=cell.n_missing,
    )  # fmt: skip
    if np.isnan(value):
        return base.with_(reason=_reason_for_pair(n, a, b))
    se = kernels.cohen_kappa_se(a, b, totals, w)
    if draws is not None:
        interval = percentile(draws, confidence=how.confidence)
    elif patterns.units.composition is not None:
        interval = _clustered(patterns, pair, w, how)
    else:
        interval = normal_interval(value, se, method="Fleiss-Cohen-Everitt", confidence=how.confidence)
    found = base.with_(value=float(value), reason=None, se=se if np.isfinite(se) else None)
    return found.with_(**interval.as_changes())


def _clustered(patterns: OrderedPatterns, pair: Pair, w: Floats, how: Resampling) -> Interval:
    """The large-sample error takes items for independent; clusters are left out whole instead."""
    one = _several(patterns, [pair], w)
    return jackknife(lambda weights: one(weights)[0], patterns.units, confidence=how.confidence)


def _reason_for_pair(n: int, a: NDArray[np.integer], b: NDArray[np.integer]) -> str:
    if n == 0:
        return "the two raters share no item"
    both = (a >= 0) & (b >= 0)
    one = np.unique(np.concatenate([a[both], b[both]])).size == 1
    return "only one category is used: chance alone would agree always" if one else "chance alone would agree always"


def _mean_estimate(
    cell: Coded,
    patterns: OrderedPatterns,
    variant: str,
    listed: Sequence[Pair],
    values: Floats,
    draws: Floats | None,
    several: Statistic,
    how: Resampling,
) -> Estimate:
    """Unweighted mean of the pairs' kappas."""
    base = _undefined(cell, "cohen_kappa", variant, "no pair of raters has a kappa")
    defined = ~np.isnan(values)
    if not defined.any():
        return base
    note = None if defined.all() else f"mean of the {int(defined.sum())} of {len(values)} pairs that have a kappa"
    found = base.with_(value=float(values[defined].mean()), reason=None, note=note)
    if len(listed) > MOST_RESAMPLED_PAIRS:
        return found.with_(interval_reason=f"more than {MOST_RESAMPLED_PAIRS} pairs are not resampled")
    if draws is None:
        interval = jackknife(lambda weights: _mean_over_pairs(several(weights)[defined]), patterns.units,
                             confidence=how.confidence)  # fmt: skip
    else:
        interval = percentile(_mean_over_pairs(draws[defined]), confidence=how.confidence)
    return found.with_(**interval.as_changes())


def _mean_over_pairs(values: Floats) -> Floats:
    """(B,) mean of (pairs, B); undefined where a pair is."""
    return np.asarray(values.mean(axis=0))


def _conger_estimate(
    cell: Coded, patterns: OrderedPatterns, weighting: Weighting, rng: np.random.Generator, how: Resampling
) -> Estimate:
    w = agreement_weights(cell.scale, weighting)
    codes, totals = patterns.codes, patterns.weights
    base = _undefined(cell, "conger_kappa", weighting, "no item has two ratings")
    if not ((codes >= 0).sum(axis=1) >= 2).any():
        return base
    value = float(kernels.conger_kappa(codes, totals, w)[0])
    if np.isnan(value):
        return base.with_(reason="only one category is used: chance alone would agree always")
    se = linearised.standard_error(kernels.conger_influence(codes, totals[0], w), patterns.units)
    found = base.with_(value=value, reason=None, se=se if np.isfinite(se) else None)
    if how.resamples and len(cell.raters) <= MOST_RESAMPLED_RATERS and patterns.units.n > 1:
        interval = _conger_resampled(patterns, w, value, rng, how)
    else:
        interval = t_interval(value, se, patterns.units.n - 1, method="linearised t", confidence=how.confidence)
    return found.with_(**interval.as_changes())


def _conger_resampled(
    patterns: OrderedPatterns, w: Floats, value: float, rng: np.random.Generator, how: Resampling
) -> Interval:
    def statistic(weights: Floats) -> Floats:
        return kernels.conger_kappa(patterns.codes, weights, w)

    values = resampled(statistic, patterns.units, resamples=how.resamples, rng=rng)
    if how.method == "percentile":
        return percentile(values, confidence=how.confidence)
    m = patterns.units.multiplicity.astype(np.float64)
    return bca(value, values, left_out(statistic, patterns.units), m, confidence=how.confidence)
