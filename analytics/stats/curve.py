"""The reliability table: what panel score stands behind each judge score; its plot is the calibration curve."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from analytics.stats.correction import classical_mean
from analytics.stats.estimate import Estimate
from analytics.stats.intervals import approximate
from analytics.stats.meeting import Meeting
from analytics.stats.scales import spelled

Floats = NDArray[np.float64]
MOST_BINS = 10
FEW_ITEMS = 50
"""Below so many items t covers the mean of skewed scores too rarely (bench/results/coverage_judges.md)."""


def reliability_table(meeting: Meeting, *, confidence: float = 0.95) -> list[Estimate]:
    """E[panel mean | judge score = s], one estimate per judge score; statistic ``panel_given_judge``, variant s.

    A judge with more than ten distinct scores is cut into ten bins of about equal size, named by their ends.
    Intervals are cluster-robust t, approximate where a score has fewer than 50 items.
    """
    both = ~np.isnan(meeting.judge) & (meeting.n_human > 0)
    judge, cluster = meeting.judge[both], meeting.cluster[both]
    panel = np.nanmean(meeting.humans[both], axis=1) if both.any() else np.empty(0)
    rows = ((name, classical_mean(panel[at], cluster[at], confidence=confidence)) for name, at in _bins(judge))
    return [
        row.with_(
            statistic="panel_given_judge", variant=name, level=meeting.scale.level,
            method=row.method and approximate(row.method) if row.n_items < FEW_ITEMS else row.method,
        )
        for name, row in rows
    ]  # fmt: skip


def _bins(judge: Floats) -> list[tuple[str, NDArray[np.bool_]]]:
    scores = np.unique(judge)
    if len(scores) <= MOST_BINS:
        return [(spelled(float(score)), judge == score) for score in scores]
    edges = np.unique(np.quantile(judge, np.linspace(0, 1, MOST_BINS + 1)))
    place = np.clip(np.searchsorted(edges, judge, side="right") - 1, 0, len(edges) - 2)
    return [(f"{low:.4g} to {high:.4g}", place == k) for k, (low, high) in enumerate(pairwise(edges))]
