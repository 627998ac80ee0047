"""The human ceiling: does the judge agree with the panel as well as a panel member does? (METHODS 3)

For each annotator j and item, the judge and j meet the same other raters of that item; both figures and their
difference come from the same (item, j) pairs, so that an easy item helps neither.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analytics.stats import resampling
from analytics.stats.estimate import Estimate
from analytics.stats.intervals import percentile
from analytics.stats.meeting import Meeting
from analytics.stats.resampling import Units
from analytics.stats.scales import snapped

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

STATISTICS = ("ceiling_accuracy", "ceiling_mae", "ceiling_pearson")
SIDES = ("judge", "human", "difference")
MANY_UNITS = 5000
"""With so many clusters each is left out once: 2,000 resamples would say the same after many seconds."""
_FLAT = 1e-14
"""Variance, in units of the squared width of the scale, below which scores count as constant."""
_FLAT_SCORES = "the scores of the judge, of the annotator or of the others do not vary"
_NO_PANEL = "no judged item has two annotators"


def estimates(meeting: Meeting, *, bootstrap: int = 2000, confidence: float = 0.95, seed: int = 0) -> list[Estimate]:
    """``ceiling_accuracy``, and on ordered scales ``ceiling_mae`` and ``ceiling_pearson``; variants in ``SIDES``.

    accuracy: mean share of the other raters with the same label. mae: mean distance from their mean. pearson:
    correlation with their mean over all (item, j) pairs. difference = judge - human.
    """
    item, moments = _moments(meeting)
    figures = {"ceiling_accuracy": _accuracy}
    if meeting.scale.has_order:
        figures |= {"ceiling_mae": _mae, "ceiling_pearson": _pearson}
    clusters, place = np.unique(meeting.cluster[item], return_inverse=True)
    sums = np.stack([np.bincount(place, weights=column, minlength=len(clusters)) for column in moments], axis=1)
    draws, many = None, bool(bootstrap) and len(clusters) > MANY_UNITS
    if bootstrap and 1 < len(clusters) <= MANY_UNITS:
        units = Units(np.ones(len(clusters), dtype=np.intp), sums)
        draws = np.concatenate(list(units.draw(np.random.default_rng(seed), bootstrap)))
    found = []
    for statistic, figure in figures.items():
        both = figure(sums.sum(axis=0, keepdims=True))[:, 0]
        rows = figure(sums.sum(axis=0) - sums) if many else None if draws is None else figure(draws)
        found += _three(statistic, both, rows, meeting, len(np.unique(item)), confidence, left_out=many)
    return found


def _moments(meeting: Meeting) -> tuple[Codes, Floats]:
    """Items (M,) of all (item, j) pairs, and per pair (13, M) what the figures are sums of."""
    known = ~np.isnan(meeting.humans)
    item, j = np.nonzero(known & ~np.isnan(meeting.judge)[:, None] & (known.sum(axis=1) > 1)[:, None])
    human, judge = meeting.humans[item, j], meeting.judge[item]
    rest = known.sum(axis=1)[item] - 1
    others = (np.nansum(meeting.humans, axis=1)[item] - human) / rest
    label = meeting.scale.values[snapped(judge, meeting.scale)] if len(judge) else judge
    with_human = (meeting.humans[item] == human[:, None]).sum(axis=1) - 1
    with_judge = (meeting.humans[item] == label[:, None]).sum(axis=1) - (human == label)
    errors = (abs(judge - others), abs(human - others))
    f, h, o = (_centred(x, meeting.scale.values) for x in (judge, human, others))
    products = (f, h, o, f * f, h * h, o * o, f * o, h * o)
    return item, np.stack([np.ones(len(item)), with_judge / rest, with_human / rest, *errors, *products])


def _centred(x: Floats, points: Floats) -> Floats:
    """Scores from the scale's middle in units of its width: sums of squares then lose no digits."""
    return (x - points.mean()) / (np.ptp(points) or 1.0) if len(x) else x


def _accuracy(sums: Floats) -> Floats:
    return _over(sums[:, 1:3], sums[:, :1]).T


def _mae(sums: Floats) -> Floats:
    return _over(sums[:, 3:5], sums[:, :1]).T


def _pearson(sums: Floats) -> Floats:
    f, h, o, ff, hh, oo, fo, ho = _over(sums[:, 5:], sums[:, :1]).T
    pairs = ((fo - f * o, ff - f**2), (ho - h * o, hh - h**2))
    spread = oo - o**2
    with np.errstate(invalid="ignore", divide="ignore"):
        r = [np.where((s > _FLAT) & (spread > _FLAT), c / np.sqrt(s * spread), np.nan) for c, s in pairs]
    return np.stack(r)


def _over(sums: Floats, n: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / n)


def _three(
    statistic: str,
    both: Floats,
    draws: Floats | None,
    meeting: Meeting,
    n_items: int,
    confidence: float,
    *,
    left_out: bool = False,
) -> list[Estimate]:
    """The judge, the human and their difference; ``draws`` (2, B) are resampled, or have one cluster left out."""
    values = (both[0], both[1], both[0] - both[1])
    rows = None if draws is None else (draws[0], draws[1], draws[0] - draws[1])
    unit = float(np.nanmax(np.abs(meeting.humans))) if n_items and statistic == "ceiling_mae" else 1.0
    found = []
    for i, (side, value) in enumerate(zip(SIDES, values, strict=True)):
        base = Estimate(
            statistic=statistic, variant=side, level=meeting.scale.level, n_items=n_items, value=None,
            n_raters=len(meeting.annotators), reason=_FLAT_SCORES if n_items else _NO_PANEL,
        )  # fmt: skip
        if not np.isnan(value):
            base = base.with_(value=float(value), reason=None)
        if rows is not None and base.value is not None:
            row = rows[i]
            jackknifed = resampling.jackknifed(base.value, row, confidence=confidence) if left_out else None
            interval = jackknifed or percentile(row, confidence=confidence, unit=unit)
            base = base.with_(**interval.as_changes())
        found.append(base)
    return found
