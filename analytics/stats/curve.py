"""The reliability table: what panel score stands behind each judge score; its plot is the calibration curve."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from analytics.stats.correction import classical_mean
from analytics.stats.estimate import Estimate
from analytics.stats.meeting import Meeting
from analytics.stats.scales import spelled

Floats = NDArray[np.float64]
MOST_BINS = 10


def reliability_table(meeting: Meeting, *, confidence: float = 0.95) -> list[Estimate]:
    """E[panel mean | judge score = s], one estimate per judge score; statistic ``panel_given_judge``, variant s.

    A judge with more than ten distinct scores is cut into ten bins of about equal size, named by their ends.
    Intervals are cluster-robust t.
    """
    both = ~np.isnan(meeting.judge) & (meeting.n_human > 0)
    judge, cluster = meeting.judge[both], meeting.cluster[both]
    panel = np.nanmean(meeting.humans[both], axis=1) if both.any() else np.empty(0)
    return [
        classical_mean(panel[at], cluster[at], confidence=confidence).with_(
            statistic="panel_given_judge", variant=name, level=meeting.scale.level
        )
        for name, at in _bins(judge)
    ]


def _bins(judge: Floats) -> list[tuple[str, NDArray[np.bool_]]]:
    scores = np.unique(judge)
    if len(scores) <= MOST_BINS:
        return [(spelled(float(score)), judge == score) for score in scores]
    edges = np.unique(np.quantile(judge, np.linspace(0, 1, MOST_BINS + 1)))
    place = np.clip(np.searchsorted(edges, judge, side="right") - 1, 0, len(edges) - 2)
    return [(f"{low:.4g} to {high:.4g}", place == k) for k, (low, high) in enumerate(pairwise(edges))]
