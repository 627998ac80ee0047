"""The human ceiling: does the judge agree with the panel as well as a panel member does? (METHODS 3)

For each annotator j and item, the judge and j meet the same other raters of that item; both figures and their
difference come from the same (item, j) pairs, so that an easy item helps neither.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analytics.stats import association
from analytics.stats.estimate import Estimate
from analytics.stats.intervals import percentile
from analytics.stats.meeting import Meeting, snapped
from analytics.stats.resampling import Statistic, Units, resampled

Floats = NDArray[np.float64]

SIDES = ("judge", "human", "difference")


def estimates(meeting: Meeting, *, bootstrap: int = 2000, confidence: float = 0.95, seed: int = 0) -> list[Estimate]:
    """``ceiling_accuracy``, and on ordered scales ``ceiling_mae`` and ``ceiling_pearson``; variants in ``SIDES``.

    accuracy: mean share of the other raters with the same label. mae: mean distance from their mean. pearson:
    correlation with their mean over all (item, j) pairs. difference = judge - human.
    """
    item, _, judge, human, others, shares = _met(meeting)
    kernels = {"ceiling_accuracy": _mean_of(*shares)}
    if meeting.scale.has_order:
        kernels["ceiling_mae"] = _mean_of(abs(judge - others), abs(human - others))
        kernels["ceiling_pearson"] = _correlations(judge, human, others)
    units = Units.of(np.arange(len(item)), meeting.cluster[item])
    found = []
    for statistic, kernel in kernels.items():
        both = kernel(np.ones((1, len(item))))[:, 0]
        draws = _draws(kernel, units, bootstrap, seed)
        found += _three(statistic, both, draws, meeting, len(np.unique(item)), confidence)
    return found


def _met(meeting: Meeting) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats, Floats, Floats, tuple[Floats, Floats]]:
    """Per (item, annotator) pair: item, annotator, judge's and annotator's score, mean of the others, label shares."""
    known = ~np.isnan(meeting.humans)
    usable = known & ~np.isnan(meeting.judge)[:, None] & (known.sum(axis=1) > 1)[:, None]
    item, j = np.nonzero(usable)
    human, judge = meeting.humans[item, j], meeting.judge[item]
    rest = known.sum(axis=1)[item] - 1
    others = (np.nansum(meeting.humans, axis=1)[item] - human) / rest
    label = meeting.scale.values[snapped(judge, meeting.scale)] if len(judge) else judge
    same_human = (meeting.humans[item] == human[:, None]).sum(axis=1) - 1
    same_judge = (meeting.humans[item] == label[:, None]).sum(axis=1) - (human == label)
    return item, j, judge, human, others, (same_judge / rest, same_human / rest)


def _mean_of(judge: Floats, human: Floats) -> Statistic:
    def kernel(w: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            means: Floats = np.stack([w @ judge, w @ human]) / w.sum(axis=1)
        return means

    return kernel


def _correlations(judge: Floats, human: Floats, others: Floats) -> Statistic:
    def kernel(w: Floats) -> Floats:
        if not len(others):
            return np.full((2, len(w)), np.nan)
        return np.stack([association.pearson(x, others, w) for x in (judge, human)])

    return kernel


def _draws(kernel: Statistic, units: Units, resamples: int, seed: int) -> Floats | None:
    """(2, B) judge's and human's figure over resampled clusters."""
    if not resamples or units.n < 2:
        return None
    return resampled(kernel, units, resamples=resamples, rng=np.random.default_rng(seed))


def _three(
    statistic: str, both: Floats, draws: Floats | None, meeting: Meeting, n_items: int, confidence: float
) -> list[Estimate]:
    values = (both[0], both[1], both[0] - both[1])
    rows = None if draws is None else (draws[0], draws[1], draws[0] - draws[1])
    found = []
    for i, (side, value) in enumerate(zip(SIDES, values, strict=True)):
        base = Estimate(
            statistic=statistic, variant=side, level=meeting.scale.level, n_items=n_items, value=None,
            n_raters=len(meeting.annotators), reason="no judged item has two annotators, or the scores do not vary",
        )  # fmt: skip
        if not np.isnan(value):
            interval = percentile(rows[i], confidence=confidence).as_changes() if rows is not None else {}
            base = base.with_(value=float(value), reason=None).with_(**interval)
        found.append(base)
    return found
