"""The reliability table: what panel score stands behind each judge score; its plot is the calibration curve."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import (
    Estimate,
    wilson_interval,
)
from analytics.stats.core.messages import Message, approximate
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import effective_number
from analytics.stats.core.scales import Scale, spelled
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel
from analytics.stats.judge.ppi import classical_mean

if TYPE_CHECKING:
    pass


MOST_BINS = 10
_FEW_UNITS = 5
"""Below so many independent items an interval says more about the scale than about the scores: approximate."""


def reliability_table(compared: JudgeAgainstPanel, *, confidence: float = 0.95) -> list[Estimate]:
    """E[panel mean | judge score = s], one estimate per judge score; statistic ``panel_given_judge``, variant s.

    A judge with more than ten distinct scores is cut into ten bins of about equal size, named by their ends.
    Intervals are cluster-robust: Wilson's between the ends of the scale, with t; plain t where nothing bounds the
    scores.
    """
    both = ~np.isnan(compared.judge) & (compared.n_human > 0)
    judge, cluster = compared.judge[both], compared.cluster[both]
    panel = np.nanmean(compared.humans[both], axis=1) if both.any() else np.empty(0)
    return [
        _row(panel[at], cluster[at], compared.scale, confidence).with_(
            variant=name,
            level=compared.scale.level,
            n_raters=len(compared.annotators),
            n_ratings=int(compared.n_human[both][at].sum()),
        )
        for name, at in _bins(judge)
    ]


def _row(panel: Floats, cluster: Codes, scale: Scale, confidence: float) -> Estimate:
    """Mean of the panel's scores behind one judge score."""
    mean = classical_mean(panel, cluster, confidence=confidence).with_(statistic="panel_given_judge")
    if mean.value is None or mean.se is None or not _is_bounded(scale):
        return mean
    sizes = np.unique(cluster, return_counts=True)[1]
    units = len(sizes)
    df = max(1.0, effective_number(sizes) - 1)
    interval = wilson_interval(
        mean.value, mean.se, units, ends=(float(scale.values[0]), float(scale.values[-1])), df=df,
        method=Message("cluster-robust Wilson t"), confidence=confidence,
    )  # fmt: skip
    if units < _FEW_UNITS:
        interval = replace(interval, method=interval.method and approximate(interval.method))
    return mean.with_(**interval.as_changes())


def _is_bounded(scale: Scale) -> bool:
    """Whether the points are all there is: an interval scale nobody declared may go on beyond them."""
    return scale.q > 1 and (scale.declared or scale.level in ("nominal", "ordinal"))


def _bins(judge: Floats) -> list[tuple[str, NDArray[np.bool_]]]:
    scores = np.unique(judge)
    if len(scores) <= MOST_BINS:
        return [(spelled(float(score)), judge == score) for score in scores]
    edges = np.unique(np.quantile(judge, np.linspace(0, 1, MOST_BINS + 1)))
    place = np.clip(np.searchsorted(edges, judge, side="right") - 1, 0, len(edges) - 2)
    return [(f"{low:.4g} to {high:.4g}", place == k) for k, (low, high) in enumerate(pairwise(edges))]
