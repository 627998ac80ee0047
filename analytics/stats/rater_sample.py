"""Intervals for raters like these: items and raters are both a sample (the default takes the raters as they are)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analytics.stats.clusters import effective_number
from analytics.stats.estimate import Estimate
from analytics.stats.intervals import FEW_UNITS, NO_WIDTH, Interval, Shape, approximate, jackknife_interval

Floats = NDArray[np.float64]
RatersAs = Literal["these", "sample"]
RATERS_AS: tuple[RatersAs, ...] = ("these", "sample")
THESE, LIKE_THESE = "these raters", "raters like these"
"""What ``Estimate.speaks_for`` holds."""
FEWEST_RATERS = 3
FEW_RATERS = FEW_UNITS
"""With fewer raters (their effective number) an interval for raters like these says that it is approximate."""
TOO_FEW = "fewer than three raters are no sample of raters"
ANONYMOUS = "anonymous slots are no persons: raters cannot be taken as a sample"


def for_these(estimate: Estimate) -> Estimate:
    """The same, saying that it speaks for these raters alone."""
    return estimate.with_(speaks_for=THESE) if estimate.value is not None else estimate


def without_interval(estimate: Estimate, reason: str) -> Estimate:
    """The same without its interval, which would have spoken for these raters alone."""
    found = estimate.with_(low=None, high=None, confidence=None, method=None, se=None, undefined_share=None, seed=None)
    return found.with_(interval_reason=reason, speaks_for=LIKE_THESE)


def for_raters_like_these(
    estimate: Estimate, without: Sequence[float | None], sizes: Sequence[int] | NDArray[np.integer], shape: Shape
) -> Estimate:
    """The estimate with an interval that holds items and raters for samples.

    ``estimate`` has the interval for these raters, [l, u]. ``without`` (R,) holds the value with each rater left out,
    ``sizes`` (R,) how many scores each gave. Raters left out one by one give a second interval [l', u']: jackknife
    error around the mean of these values (a panel of R - 1 may have another level), t with the effective number of
    raters less 1, on the scale of ``shape``. Together: low = value - sqrt((value - l)^2 + (value - l')^2), high alike.
    Raters who are all alike add nothing. What items and raters do together is in both parts, so that the interval is
    rather too wide. No interval with fewer than three raters. Sources: two-way resampling, Owen 2007
    (doi 10.1214/07-AOAS122); adding intervals, Zou & Donner 2008 (doi 10.1002/sim.3095); docs/decisions/0020.
    """
    if estimate.value is None:
        return estimate
    if estimate.low is None or estimate.high is None:
        return estimate.with_(speaks_for=LIKE_THESE)
    given = np.asarray(sizes)[np.asarray(sizes) > 0]
    if len(given) < FEWEST_RATERS:
        return without_interval(estimate, TOO_FEW)
    values = np.array([np.nan if value is None else value for value in without], dtype=np.float64)
    if np.isnan(values).any():
        return without_interval(estimate, "without one of the raters the figure is undefined")
    confidence, value = estimate.confidence or 0.95, estimate.value
    raters = _of_raters(value, values, given, shape, confidence)
    if raters.low is None or raters.high is None:
        return without_interval(estimate, raters.interval_reason or TOO_FEW)
    low = value - math.hypot(value - estimate.low, value - raters.low)
    high = value + math.hypot(estimate.high - value, raters.high - value)
    lowest, highest = BOUNDS[shape]
    method = f"{estimate.method} and raters left out"
    if effective_number(given) < FEW_RATERS:
        method = approximate(method, f"{effective_number(given):.3g} raters")
    return estimate.with_(
        low=max(low, lowest), high=min(high, highest), method=method, se=None, speaks_for=LIKE_THESE
    )  # fmt: skip


BOUNDS: dict[Shape, tuple[float, float]] = {
    "share": (0.0, 1.0),
    "coefficient": (-math.inf, 1.0),
    "positive": (0.0, math.inf),
    "free": (-math.inf, math.inf),
}


def _of_raters(value: float, without: Floats, sizes: NDArray[np.integer], shape: Shape, confidence: float) -> Interval:
    """The part of the raters; no width where they are all alike."""
    n = len(without)
    unit = max(1.0, abs(value)) if shape in ("share", "coefficient") else abs(value)
    se = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    if se <= NO_WIDTH * max(unit, float(np.abs(without).max())):
        return Interval(low=value, high=value)
    df = effective_number(sizes) - 1
    if df < 1:
        return Interval(interval_reason="one rater gave nearly all scores: raters cannot be taken as a sample")
    return jackknife_interval(value, se, df, shape, confidence=confidence)
