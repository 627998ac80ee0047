"""Versions of a judge against reference labels: agreement, paired gain, and how much of it the tuning items flatter.

What is averaged is a pair of item and criterion: 1 where judge and label agree (or 1 less their distance as a share of
the scale). Clusters are scenarios. The level of an interval on locked items is corrected for the number of looks that
were allowed before the first one.
"""

from __future__ import annotations

import math

import numpy as np

from analytics.stats.core.estimates import FEW_UNITS, Estimate, jackknife_interval, t_interval
from analytics.stats.core.messages import Message, approximate
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import error_of_mean, number_of

_BY = Message("clusters left out")
NOTHING = Message("no pair of item and criterion has both a verdict and a reference label")


def agreement_of_pairs(scores: Floats, labels: Floats, widths: Floats, *, measure: str) -> Floats:
    """(N,) scores and labels, (N,) widths of their scales (NaN: nominal) -> (N,) agreement in [0, 1].

    ``accuracy``: 1 where they are equal. ``closeness``: 1 - |x - y| / width, on nominal scales the same as accuracy
    (METHODS 3: exact accuracy, and mean absolute error turned round).
    """
    equal = (np.abs(scores - labels) < 1e-9).astype(np.float64)
    if measure == "accuracy":
        return equal
    return np.where(np.isnan(widths), equal, 1.0 - np.minimum(1.0, np.abs(scores - labels) / widths))


def corrected_confidence(confidence: float, *, looks: int, parts: int = 1) -> float:
    """The level of each of ``looks`` x ``parts`` intervals that together hold at ``confidence``: 1 - alpha / (k m).

    Bonferroni's inequality asks for no independence: it holds for whichever of ``looks`` versions that were fixed
    before the first look is reported, however it was chosen among them. Source: Dunn 1961
    (doi 10.1080/01621459.1961.10482090).
    """
    return 1.0 - (1.0 - confidence) / (looks * parts)


def mean_agreement(values: Floats, cluster: Codes, *, items: int, confidence: float = 0.95) -> Estimate:
    """Mean of (N,) agreements in clusters (N,): cluster jackknife, Wilson's interval with t (as shares have).

    Source: MacKinnon, Nielsen & Webb 2023 (doi 10.1016/j.jeconom.2022.04.001); Wilson 1927.
    """
    base = _counted("alignment_agreement", cluster, items)
    if not len(values):
        return base
    value = float(values.mean())
    se, df = error_of_mean(values, cluster)
    shape = "share" if np.isin(values, (0.0, 1.0)).all() else "free"
    interval = jackknife_interval(value, se, df, shape, confidence=confidence, by=_BY)  # type: ignore[arg-type]
    return base.with_(value=value, reason=None, **interval.as_changes()).cut(0.0, 1.0)


def paired_gain(candidate: Floats, base: Floats, cluster: Codes, *, items: int, confidence: float = 0.95) -> Estimate:
    """Mean of candidate - base (N,), (N,) over the same pairs in clusters (N,): cluster jackknife, t.

    Source: MacKinnon, Nielsen & Webb 2023 (doi 10.1016/j.jeconom.2022.04.001), as ``resampling.error_of_mean``.
    """
    estimate = _counted("alignment_gain", cluster, items)
    if not len(candidate):
        return estimate
    gain = candidate - base
    value, (se, df) = float(gain.mean()), error_of_mean(gain, cluster)
    return _with_t(estimate, value, se, df, confidence)


def overfit(
    tuning: Floats, tuning_cluster: Codes, test: Floats, test_cluster: Codes, *, items: int, confidence: float = 0.95
) -> Estimate:
    """Mean agreement on tuning (N,) less that on test (M,), which share no cluster: Welch's t on cluster jackknives.

    Positive: the tuning items flatter the version. Source: Welch 1947 (doi 10.1093/biomet/34.1-2.28).
    """
    estimate = _counted("alignment_overfit", np.concatenate([tuning_cluster, test_cluster + 2**40]), items)
    if not len(tuning) or not len(test):
        return estimate.with_(reason=Message("one side has no pair with both a verdict and a reference label"))
    value = float(tuning.mean() - test.mean())
    errors = [error_of_mean(tuning, tuning_cluster), error_of_mean(test, test_cluster)]
    variances = [se**2 for se, _df in errors]
    total = sum(variances)
    parts = sum(variance**2 / df for variance, (_se, df) in zip(variances, errors, strict=True) if df > 0)
    return _with_t(estimate, value, math.sqrt(total), total**2 / parts if parts > 0 else 0.0, confidence)


def _with_t(estimate: Estimate, value: float, se: float, df: float, confidence: float) -> Estimate:
    interval = t_interval(value, se, df, method=Message("t, %(method)s", method=_BY), confidence=confidence)
    changes = interval.as_changes()
    if interval.method and df + 1 < FEW_UNITS:
        changes["method"] = approximate(
            interval.method, Message("%(number)s independent clusters", number=f"{df + 1:.3g}")
        )
    return estimate.with_(value=value, reason=None, **changes).cut(-1.0, 1.0)


def _counted(statistic: str, cluster: Codes, items: int) -> Estimate:
    return Estimate(
        statistic=statistic,
        value=None,
        reason=NOTHING,
        n_items=items,
        n_ratings=len(cluster),
        n_clusters=number_of(cluster),
    )
