"""Intervals of means that cannot leave the ends of a scale, where scores are skewed: ceilings, rare flags.

Most labels at one end leave little spread, and a t interval then covers too little: the few labels that differ decide
it. Bounded empirical likelihood gives every mean the largest likelihood that any distribution on the scale with that
mean has, so that scores nobody gave yet can have some probability at the ends. Sources: Owen 1990
(doi 10.1214/aos/1176347494); bounded support, as KL_inf: Honda & Takemura 2010 (COLT), Garivier et al. 2022
(jmlr.org/papers/v23/19-717); compared with betting intervals (Waudby-Smith & Ramdas 2024, doi 10.1093/jrsssb/qkad009)
in docs/decisions/0044; observations added at the ends: Chen, Variyath & Abraham 2008 (doi 10.1198/106186008X321068).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import FEW_OFF_POINT, NO_WIDTH, Interval, wilson_interval
from analytics.stats.core.messages import Message, approximate
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import error_of_mean

Ends = tuple[float, float]
"""The lowest and the highest value there can be."""

MOST_SKEWNESS, MOST_KURTOSIS = 1.0, 3.0
"""Skewness, and excess kurtosis, above which t intervals of a bounded mean cover too little (docs/decisions/0044)."""
AT_ENDS = 0.25
FEW_DIFFER = Message("few labels differ")
BOUNDED = Message("bounded empirical likelihood")
_STEPS = 45


def needs_bounds(x: Floats, weights: Floats) -> bool:
    """Whether the mean of x (C,) with weights (C,) is of values so skewed that t falls short, or that do not vary."""
    moments = _moments(x, weights)
    return moments is None or abs(moments[0]) > MOST_SKEWNESS or moments[1] > MOST_KURTOSIS


def within_bounds(
    interval: Interval,
    value: float,
    x: Floats,
    cluster: NDArray[Any],
    ends: Ends | None,
    *,
    df: float,
    weights: Floats | None = None,
    se: float | None = None,
    confidence: float = 0.95,
) -> Interval:
    """The ``interval`` of a mean, or a bounded one where t falls short: x (n,) in clusters (n,), with weights (n,).

    ``value`` is the mean of x and of what is added to it; ``se`` its standard error, if that is of more than x.
    ``ends`` None: x has none, and the interval stays. Where it is bounded, ``interval`` says nothing.
    """
    if ends is None or len(x) < 2:
        return interval
    w = np.ones(len(x)) if weights is None else weights
    _, index = np.unique(cluster, return_inverse=True)
    sizes = np.bincount(index, weights=w).astype(np.float64)
    means: Floats = np.bincount(index, weights=w * x) / sizes
    if not needs_bounds(means, sizes):
        return interval
    own = error_of_mean(x, cluster)[0] if weights is None else 0.0
    more = max(se**2 - own**2, 0.0) if se is not None and weights is None and math.isfinite(se) else 0.0
    bounded = bounded_interval(means, sizes, ends, df, more=more, confidence=confidence)
    if bounded.low is None or bounded.high is None:
        return interval
    middle = float(w @ x / w.sum())
    if weights is not None and se is not None and bounded.se is not None and math.isfinite(se):
        bounded = _stretched(bounded, middle, math.sqrt(max(se**2 - bounded.se**2, 0.0)), df, confidence)
    moved = replace(bounded, low=bounded.low + value - middle, high=bounded.high + value - middle)  # type: ignore[operator]
    return replace(moved, se=interval.se if se is None else se)


def _stretched(interval: Interval, middle: float, more: float, df: float, confidence: float) -> Interval:
    """The bounds farther away by sqrt(d^2 + (t more)^2)."""
    from scipy.special import stdtrit

    if interval.low is None or interval.high is None:
        return interval
    reach = float(stdtrit(df, (1 + confidence) / 2)) * more
    low, high = middle - math.hypot(middle - interval.low, reach), middle + math.hypot(interval.high - middle, reach)
    return replace(interval, low=low, high=high)


def added(value: float, parts: Sequence[tuple[float, float, Interval]], method: str, confidence: float) -> Interval:
    """Interval of sum c v from independent values v with intervals: parts of (c, v, interval), c of either sign.

    low = value - sqrt(sum of squares of the arms that point down). Source: Zou & Donner 2008 (doi 10.1002/sim.3095).
    """
    down = up = 0.0
    for factor, middle, interval in parts:
        if interval.low is None or interval.high is None:
            return Interval(interval_reason=interval.interval_reason or "a part has no interval")
        arms = factor * (middle - interval.low), factor * (interval.high - middle)
        down, up = down + (arms[0] if factor > 0 else arms[1]) ** 2, up + (arms[1] if factor > 0 else arms[0]) ** 2
    low, high = value - math.sqrt(down), value + math.sqrt(up)
    return Interval(low=low, high=high, confidence=confidence, method=method)


def is_bounded(method: str | None) -> bool:
    """Whether an interval was made by this module."""
    return BOUNDED in (method or "")


def bounded_interval(
    x: Floats, weights: Floats, ends: Ends, df: float, *, more: float = 0.0, confidence: float = 0.95
) -> Interval:
    """Interval of sum w x / sum w from C independent units: x (C,) in [a, b], weights (C,).

    All mu with max over l of sum log(1 + l w_c (x_c - mu) / max w) at most half the quantile of F(1, df), l within
    [-1 / (b - mu), 1 / (mu - a)], where a quarter of a unit more is counted at each end (``AT_ENDS``): without it the
    samples in which a rare low score is missing give too narrow an interval. And all mu of Wilson's interval with t,
    which covers better where x has two values. ``more``: the variance of what is added to the mean from elsewhere; the
    bounds move away by sqrt(d^2 + q^2 more), q the quantile of t. Marked where few units decide the spread.
    """
    from scipy.special import stdtrit

    if len(x) < 2 or df < 1:
        return Interval(interval_reason=Message("the standard error needs two independent units"))
    a, b = ends
    mean = float(weights @ x / weights.sum())
    if not b > a or not a - NO_WIDTH <= mean <= b + NO_WIDTH:
        return Interval(interval_reason=Message("values beyond the ends of the scale have no bounded interval"))
    mean = min(max(mean, a), b)
    quantile = float(stdtrit(df, (1 + confidence) / 2))
    x, w, counts = _distinct(x, weights / weights.max())
    spread = (counts * w**2 * (x - mean) ** 2).sum()
    n = float(counts.sum())
    se = math.sqrt(float(spread) * n / (n - 1)) / float(counts @ w)
    wilson = wilson_interval(mean, se, df + 1, ends=ends, df=df, confidence=confidence)
    middling = float(counts @ w) / n
    with_ends = np.append(x, ends), np.append(w, [middling, middling]), np.append(counts, [AT_ENDS, AT_ENDS])
    centre = float((with_ends[1] * with_ends[2]) @ with_ends[0] / (with_ends[1] @ with_ends[2]))
    bounds = [_bound(*with_ends, centre, end, ends, quantile**2 / 2) for end in ends]
    if wilson.low is not None and wilson.high is not None:
        bounds = [min(bounds[0], wilson.low), max(bounds[1], wilson.high)]
    low = mean - math.hypot(mean - bounds[0], quantile * math.sqrt(more))
    high = mean + math.hypot(bounds[1] - mean, quantile * math.sqrt(more))
    moments, units = _moments(x, counts * w), float(counts @ w) ** 2 / float(counts @ w**2)
    few = moments is None or units / (moments[1] + 3) < FEW_OFF_POINT
    method = approximate(BOUNDED, FEW_DIFFER) if few else BOUNDED
    return Interval(low=low, high=high, confidence=confidence, method=method, se=math.sqrt(se**2 + more))


def _moments(x: Floats, weights: Floats) -> tuple[float, float] | None:
    """Skewness and excess kurtosis of x (C,) that occur ``weights`` (C,) times; None where nothing varies.

    Weights are how often, not how far: clusters of unequal size are few (``df``), but not skewed.
    """
    total = float(weights.sum())
    d = x - float(weights @ x) / total
    largest = float(np.abs(d).max(initial=0.0))
    if largest <= NO_WIDTH * max(1.0, float(np.abs(x).max(initial=0.0))):
        return None
    d = d / largest
    variance = float(weights @ d**2) / total
    return float(weights @ d**3) / total / variance**1.5, float(weights @ d**4) / total / variance**2 - 3


def _distinct(x: Floats, w: Floats) -> tuple[Floats, Floats, Floats]:
    """Distinct pairs of value and weight, and how often each occurs: scores on a scale repeat."""
    pairs, counts = np.unique(np.column_stack([x, w]), axis=0, return_counts=True)
    return pairs[:, 0], pairs[:, 1], counts.astype(np.float64)


def _bound(x: Floats, w: Floats, counts: Floats, mean: float, end: float, ends: Ends, most: float) -> float:
    """The mean farthest towards an end that is not refuted: the root of the log ratio less ``most`` (Illinois)."""
    least = 1e-9 * (ends[1] - ends[0])
    if abs(end - mean) <= least:
        return end
    inside, outside = mean, end + (least if end < mean else -least)
    at_inside, at_outside = -most, _log_ratio(x, w, counts, outside, ends) - most
    if at_outside <= 0:
        return end
    for step in range(_STEPS):
        # The ratio grows like a square near the mean and without end at the end: halve where the line is slow.
        line = (inside * at_outside - outside * at_inside) / (at_outside - at_inside)
        middle = line if step % 3 and at_outside < 50 * most else (inside + outside) / 2
        found = _log_ratio(x, w, counts, middle, ends) - most
        if found > 0:
            outside, at_outside = middle, found
        else:
            inside, at_inside = middle, found
        if abs(outside - inside) <= least * 10 or abs(found) <= 1e-7 * most:
            return middle
    return (inside + outside) / 2


def _log_ratio(x: Floats, w: Floats, counts: Floats, mu: float, ends: Ends) -> float:
    """max over l of sum counts log(1 + l w (x - mu)), l so that no value between the ends makes a factor negative."""
    d = w * (x - mu)
    low, high = -(1 - 1e-9) / (ends[1] - mu), (1 - 1e-9) / (mu - ends[0])
    low, high = (0.0, high) if float(counts @ d) > 0 else (low, 0.0)  # the best l has the sign of the slope at 0
    at = low + high
    ratios = d / (1 + at * d)
    if (float(counts @ ratios) > 0) == (at > 0):  # still rising at the farthest l there may be
        return float(counts @ np.log1p(at * d))
    at = (low + high) / 2
    for _ in range(_STEPS):
        ratios = d / (1 + at * d)
        slope = float(counts @ ratios)
        low, high = (at, high) if slope > 0 else (low, at)
        newton = at + slope / float(counts @ ratios**2)
        step = newton if low < newton < high else (low + high) / 2
        if abs(step - at) <= 1e-9 * (1 + abs(at)):
            break
        at = step
    return float(counts @ np.log1p(at * d))
