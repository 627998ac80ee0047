"""Are the items that people rated like those that only the judge scored? (METHODS 0)

No interval covers what was not drawn. Where rated items differ in the judge's scores, in length or in their generators,
a figure of the rated items does not speak for all of them; the bias is then given weighted, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import NO_WIDTH, Estimate, t_interval
from analytics.stats.core.messages import Message, approximate
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import effective_number, number_of
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel

_FEWEST = 5
"""Items that there have to be of either kind, and rated ones of each point of the judge."""
_MOST_GENERATORS = 12
ALL_RATED = Message("people rated all items that the judge scored")
TO_ALL_SCORES = Message("weighted to the judge's scores of all items")
ASSUMED = Message("right where being rated depends on the judge's score alone")
_TOO_FEW = Message("fewer than 5 items are rated, or not rated")

BY_PROBABILITY = Message("weighted by 1 / probability")
_METHODS = {
    TO_ALL_SCORES: Message("jackknife t, weighted to the judge's scores of all items"),
    BY_PROBABILITY: Message("jackknife t, weighted by 1 / probability"),
}


def rated_differences(compared: JudgeAgainstPanel, length: Floats | None) -> Iterator[Estimate]:
    """``rated_difference``: rated items (two raters or one) less those that only the judge scored.

    Variants: ``judge score`` in points, ``length`` (N,) in doublings, and for each generator its share. Interval and p:
    t of the difference of two means, clusters left out one by one, which both kinds of items may share. Level:
    interval. Source: METHODS 0.
    """
    judged = ~np.isnan(compared.judge)
    rated = compared.n_human[judged] > 0
    n_rated, n_other = int(rated.sum()), int((~rated).sum())
    base = Estimate(
        statistic="rated_difference", value=None, reason=_TOO_FEW if n_other else ALL_RATED, n_items=int(judged.sum()),
        n_clusters=number_of(compared.cluster[judged]), n_raters=len(compared.annotators),
        n_ratings=int(compared.n_human[judged].sum()),
    )  # fmt: skip
    if min(n_rated, n_other) < _FEWEST:
        yield base.with_(variant="judge score")
        return
    cluster = compared.cluster[judged]
    measures: dict[str, Floats] = {}
    if compared.scale.has_order:
        measures["judge score"] = compared.judge[judged]
    if length is not None:
        size = length[judged]
        measures["length"] = np.log2(np.where(size > 0, size, np.nan))
    if "generator" in compared.rows:
        generator = compared.rows["generator"].fillna("").astype(str).to_numpy()[judged]
        names = sorted(set(generator) - {""})
        if 1 < len(names) <= _MOST_GENERATORS:
            measures |= {f"generator = {name}": (generator == name).astype(np.float64) for name in names}
    for name, x in measures.items():
        known = ~np.isnan(x)
        value, se, df = _difference_of_means(x[known], rated[known], cluster[known])
        if math.isnan(value):
            yield base.with_(variant=name)
            continue
        estimate = base.with_(
            variant=name, value=value, reason=None, n_items=int(known.sum()),
            note=Message(
                "%(number)s rated and %(others)s not rated", number=rated[known].sum(), others=(~rated[known]).sum()
            ),
        )  # fmt: skip
        interval = t_interval(
            value, se, df, method=Message("%(method)s, clusters left out", method=Message("t of the difference"))
        )
        estimate = estimate.with_(**interval.as_changes())
        if se > NO_WIDTH:
            from scipy.special import stdtr

            estimate = estimate.with_(p=float(2 * stdtr(df, -abs(value) / se)))
        yield estimate


def _difference_of_means(x: Floats, rated: NDArray[np.bool_], cluster: Codes) -> tuple[float, float, float]:
    """Mean of the rated less mean of the others, its jackknife error over clusters and degrees of freedom."""
    if min(rated.sum(), (~rated).sum()) < _FEWEST:
        return math.nan, math.nan, 0.0
    index = np.unique(cluster, return_inverse=True)[1]
    sides = []
    for side in (rated, ~rated):
        sums, counts = (np.bincount(index, weights=w * side) for w in (x, np.ones(len(x))))
        with np.errstate(invalid="ignore", divide="ignore"):
            sides.append((sums.sum() / counts.sum(), (sums.sum() - sums) / (counts.sum() - counts)))
    value, without = sides[0][0] - sides[1][0], sides[0][1] - sides[1][1]
    n = len(without)
    if n < 2 or np.isnan(without).any():
        return float(value), math.nan, 0.0
    se = float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))
    sizes = [effective_number(np.unique(cluster[side], return_counts=True)[1]) for side in (rated, ~rated)]
    return float(value), se, max(min(sizes) - 1, 1.0)


def weighted_bias(compared: JudgeAgainstPanel, panel: Floats) -> Estimate:
    """``bias_weighted``: the mean of judge less panel mean over all items that the judge scored, not the rated alone.

    Where probabilities of the draw are known, each rated item stands for 1 / pi items (Hajek). Else rated items are
    weighted within each point of the judge's scores (neighbouring points together until FEWEST are rated), so that
    their scores are distributed as those of all items: approximate, for it is right where being rated depends on the
    judge's score alone. Where it depends on what the text is worth, the plain bias is right and this one is not.
    Interval: t, clusters left out one by one and all weights made again. Level: ordinal or interval.
    Source: poststratification, Holt & Smith 1979 (doi 10.2307/2344652); Hajek 1971.
    """
    judged = ~np.isnan(compared.judge)
    f, y, cluster = compared.judge[judged], panel[judged], compared.cluster[judged]
    rated = ~np.isnan(y)
    base = Estimate(
        statistic="bias_weighted", value=None, n_items=int(judged.sum()), n_clusters=number_of(cluster),
        n_raters=len(compared.annotators), n_ratings=int(compared.n_human[judged].sum()), reason=_TOO_FEW,
    )  # fmt: skip
    if not compared.scale.has_order:
        return base.with_(reason=Message("a nominal scale has no distances"))
    if rated.all() and len(rated):
        return base.with_(reason=ALL_RATED)
    if min(int(rated.sum()), int((~rated).sum())) < _FEWEST:
        return base
    drawn = None if compared.probability is None else compared.probability[judged]
    index = np.unique(cluster, return_inverse=True)[1]
    gap = np.where(rated, f - y, 0.0)
    if drawn is not None and (drawn[rated] > 0).all():
        weight = np.where(rated, 1 / np.where(rated, drawn, 1.0), 0.0)
        totals = np.stack([np.bincount(index, weights=part).astype(np.float64) for part in (weight * gap, weight)])
        how, value, without = BY_PROBABILITY, *_ratios(totals)
    else:
        stratum = _strata(f, rated)
        of_cluster = np.zeros((3, int(index.max()) + 1, int(stratum.max()) + 1))  # items, rated items, sums of gaps
        for place, part in enumerate((np.ones(len(f)), rated.astype(np.float64), gap)):
            np.add.at(of_cluster[place], (index, stratum), part)
        how, value, without = TO_ALL_SCORES, *_poststratified(of_cluster)
    n = len(without)
    estimate = base.with_(value=float(value), reason=None, note=how)
    if n < 2 or np.isnan(without).any():
        return estimate.with_(
            interval_reason=Message("leaving one cluster out leaves a point of the judge without rated items")
        )
    se = float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))
    df = max(effective_number(np.unique(cluster[rated], return_counts=True)[1]) - 1, 1.0)
    unit = float(np.abs(f).max())
    method = _METHODS[how]
    if how == TO_ALL_SCORES:
        method = approximate(method, ASSUMED)
    return estimate.with_(**t_interval(float(value), se, df, method=method, unit=unit).as_changes())


def _strata(f: Floats, rated: NDArray[np.bool_]) -> Codes:
    """(N,) strata of neighbouring judge scores, with FEWEST rated items in each."""
    points, place = np.unique(f, return_inverse=True)
    counts = np.bincount(place, weights=rated, minlength=len(points))
    stratum = np.zeros(len(points), dtype=np.intp)
    current, filled = 0, 0.0
    for k in range(len(points)):
        stratum[k] = current
        filled += counts[k]
        if filled >= _FEWEST and counts[k + 1 :].sum() >= _FEWEST:
            current, filled = current + 1, 0.0
    return np.asarray(stratum[place], dtype=np.intp)


def _poststratified(of_cluster: Floats) -> tuple[float, Floats]:
    """The weighted mean, and those without each cluster, from items, rated items and sums by cluster and stratum."""
    totals = of_cluster.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        items, rated, gaps = totals - of_cluster
        without = (np.where(items > 0, items * gaps / rated, 0.0)).sum(axis=1) / items.sum(axis=1)
        n, m, g = totals[:, 0]
        value = float((n * g / m).sum() / n.sum())
    return value, np.asarray(without)


def _ratios(totals: Floats) -> tuple[float, Floats]:
    top, bottom = totals.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(top / bottom), np.asarray((top - totals[0]) / (bottom - totals[1]))
