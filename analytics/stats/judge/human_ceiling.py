"""The human ceiling: does the judge agree with the panel as well as a panel member does? (METHODS 3)

For each annotator j and item, the judge and j are compared with the same other raters of that item; both figures and
their difference come from the same (item, j) pairs, so that an easy item helps neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analytics.stats.core.estimates import (
    Estimate,
    Interval,
    Shape,
    jackknife_interval,
    n_points,
    tails_of,
)
from analytics.stats.core.messages import Message
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import Units, left_out_error
from analytics.stats.core.scales import Scale, snapped
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel

if TYPE_CHECKING:
    pass


CEILING_STATISTICS = ("ceiling_accuracy", "ceiling_mae", "ceiling_pearson")
SIDES = ("judge", "human", "difference")
_FREE: Shape = "free"
_FLAT = 1e-14
"""Variance, in units of the mean square, below which scores count as constant: what rounding leaves."""
_FLAT_SCORES = Message("the scores of the judge, of the annotator or of the others do not vary")
_NO_PANEL = Message("no judged item has two annotators")


def ceiling_estimates(
    compared: JudgeAgainstPanel, *, bootstrap: int = 2000, confidence: float = 0.95, seed: int = 0
) -> list[Estimate]:
    """``ceiling_accuracy``, and on ordered scales ``ceiling_mae`` and ``ceiling_pearson``; variants in ``SIDES``.

    accuracy: mean share of the other raters with the same label. mae: mean distance from their mean. pearson:
    correlation with their mean over all (item, j) pairs. difference = judge - human.
    """
    item, moments = _moments(compared)
    figures = {"ceiling_accuracy": _accuracy}
    if compared.scale.has_order:
        figures |= {"ceiling_mae": _mae, "ceiling_pearson": _pearson}
    clusters, place = np.unique(compared.cluster[item], return_inverse=True)
    sums = np.stack([np.bincount(place, weights=column, minlength=len(clusters)) for column in moments], axis=1)
    units = Units(np.ones(len(clusters), dtype=np.intp), sums[:, :1])
    estimates = []
    for statistic, figure in figures.items():
        totals = sums.sum(axis=0, keepdims=True)
        both, without = figure(totals)[:, 0], figure(totals - sums)
        intervals = _intervals(statistic, both, without, units, compared, confidence) if bootstrap else [Interval()] * 3
        three = _three(statistic, both, intervals, compared, len(np.unique(item)), len(clusters))
        if statistic == "ceiling_mae":
            three = [cut_distance(e, compared.scale, signed=e.variant == "difference") for e in three]
        estimates += three
    return estimates


def cut_distance(estimate: Estimate, scale: Scale, *, signed: bool = False) -> Estimate:
    """The interval of a distance in points, cut at how far two points of a declared scale can lie apart."""
    if not scale.declared or not scale.q:
        return estimate
    width = float(scale.values[-1] - scale.values[0])
    return estimate.cut(-width if signed else 0.0, width)


def _intervals(
    statistic: str, both: Floats, without: Floats, units: Units, compared: JudgeAgainstPanel, confidence: float
) -> list[Interval]:
    """The intervals of judge, human and difference, from the two figures (2,) and the figures with each cluster left
    out (2, C).
    """
    values = np.array([*both, both[0] - both[1]])
    errors, dfs = left_out_error(values, np.vstack([without, without[0] - without[1]]), units)
    shapes: dict[str, Shape] = {
        "ceiling_accuracy": "share",
        "ceiling_mae": "positive",
        "ceiling_pearson": "coefficient",
    }
    has_score = ~np.isnan(compared.humans)
    scores, judged = compared.humans[has_score], compared.judge[~np.isnan(compared.judge)]
    doubt = (
        tails_of(n_points(scores), len(judged), (scores,)) or tails_of(n_points(judged), len(judged), (judged,))
        if statistic == "ceiling_pearson"
        else None
    )
    unit = float(np.abs(scores).max(initial=0.0)) if statistic == "ceiling_mae" else 1.0
    return [
        jackknife_interval(
            float(value), float(se), units.df, shape, tail_df=float(df), n=float(units.n), confidence=confidence,
            doubt=doubt, unit=unit,
        )
        for value, se, df, shape in zip(values, errors, dfs, (shapes[statistic], shapes[statistic], _FREE), strict=True)
    ]  # fmt: skip


def _moments(compared: JudgeAgainstPanel) -> tuple[Codes, Floats]:
    """Items (M,) of all (item, j) pairs, and per pair (13, M) what the figures are sums of."""
    known = ~np.isnan(compared.humans)
    item, j = np.nonzero(known & ~np.isnan(compared.judge)[:, None] & (known.sum(axis=1) > 1)[:, None])
    human, judge = compared.humans[item, j], compared.judge[item]
    rest = known.sum(axis=1)[item] - 1
    others = (np.nansum(compared.humans, axis=1)[item] - human) / rest
    label = compared.scale.values[snapped(judge, compared.scale)] if len(judge) else judge
    with_human = (compared.humans[item] == human[:, None]).sum(axis=1) - 1
    with_judge = (compared.humans[item] == label[:, None]).sum(axis=1) - (human == label)
    errors = (abs(judge - others), abs(human - others))
    f, h, o = (_centred(x) for x in (judge, human, others))
    products = (f, h, o, f * f, h * h, o * o, f * o, h * o)
    return item, np.stack([np.ones(len(item)), with_judge / rest, with_human / rest, *errors, *products])


def _centred(x: Floats) -> Floats:
    """Scores from the middle one in units of their range: sums of squares then lose no digits."""
    return np.asarray((x - np.median(x)) / (float(np.ptp(x)) or 1.0)) if len(x) else x


def _accuracy(sums: Floats) -> Floats:
    return _over(sums[:, 1:3], sums[:, :1]).T


def _mae(sums: Floats) -> Floats:
    return _over(sums[:, 3:5], sums[:, :1]).T


def _pearson(sums: Floats) -> Floats:
    f, h, o, ff, hh, oo, fo, ho = _over(sums[:, 5:], sums[:, :1]).T
    pairs = ((fo - f * o, ff - f**2, ff), (ho - h * o, hh - h**2, hh))
    spread = oo - o**2
    with np.errstate(invalid="ignore", divide="ignore"):
        r = [np.where((s > _FLAT * ss) & (spread > _FLAT * oo), c / np.sqrt(s * spread), np.nan) for c, s, ss in pairs]
    return np.stack(r)


def _over(sums: Floats, n: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / n)


def _three(
    statistic: str,
    both: Floats,
    intervals: Sequence[Interval],
    compared: JudgeAgainstPanel,
    n_items: int,
    n_clusters: int,
) -> list[Estimate]:
    """The judge, the human and their difference."""
    values = (both[0], both[1], both[0] - both[1])
    kept = ~np.isnan(compared.judge) & (compared.n_human > 1)
    estimates = []
    for side, value, interval in zip(SIDES, values, intervals, strict=True):
        base = Estimate(
            statistic=statistic, variant=side, level=compared.scale.level, n_items=n_items, value=None,
            n_clusters=n_clusters, n_ratings=int(compared.n_human[kept].sum()),
            n_raters=len(compared.annotators), reason=_FLAT_SCORES if n_items else _NO_PANEL,
        )  # fmt: skip
        if not np.isnan(value):
            base = base.with_(value=float(value), reason=None).with_(**interval.as_changes())
        estimates.append(base)
    return estimates
