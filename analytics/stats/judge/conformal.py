"""Conformal intervals: which items a judge's score leaves too open, and people should see (METHODS 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.scales import rounding

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def radius(f: Floats, y: Floats, cluster: Codes, *, confidence: float = 0.9) -> float:
    """Split-conformal radius from held-out judge (or calibrated) scores f (n,) and panel scores y (n,).

    The ceil((n + 1) confidence)-th smallest error |y - f|, each cluster standing with its largest error: clusters are
    what is exchangeable. Infinite when there are too few of them to promise anything. f must not have been fitted on
    these labels. Source: Lei et al. 2018, doi:10.1080/01621459.2017.1307116.
    """
    clusters, index = np.unique(cluster, return_inverse=True)
    worst = np.zeros(len(clusters))
    np.maximum.at(worst, index, abs(y - f))
    place = int(np.ceil((len(worst) + 1) * confidence))
    return float(np.sort(worst)[place - 1]) if place <= len(worst) else float("inf")


def intervals(f: Floats, half: float, points: Floats, *, snap: bool = True) -> Floats:
    """(m, 2) bounds of the panel score of new items from their scores f (m,), cut to the scale's ends.

    ``snap`` keeps only the points of an ordinal scale inside the interval; where there are none, the nearest point.
    """
    low, high = np.clip(f - half, points[0], points[-1]), np.clip(f + half, points[0], points[-1])
    if not snap:
        return np.column_stack([low, high])
    # A hair's width lets a point on the very edge count as inside.
    edge = rounding(points)
    first = np.searchsorted(points, low - edge)
    last = np.searchsorted(points, high + edge, side="right") - 1
    nearest = abs(points[:, None] - f).argmin(axis=0)
    is_empty = first > last
    return np.column_stack([points[np.where(is_empty, nearest, first)], points[np.where(is_empty, nearest, last)]])


def for_people(bounds: Floats, widest: float) -> NDArray[np.bool_]:
    """(m,) items whose interval (m, 2) is wider than what may be left to the judge."""
    wide: NDArray[np.bool_] = bounds[:, 1] - bounds[:, 0] > widest * (1 + 1e-9)
    return wide
