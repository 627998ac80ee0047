"""Intervals: percentile and BCa from resampled values; t, normal and Wilson ones from a standard error."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_UNDEFINED_SHARE = 0.05
"""Above this share of undefined resamples no interval is given (METHODS 0)."""
FEWEST_RESAMPLES = 200
"""With fewer the ends of a percentile interval are chance (METHODS 0)."""
NO_WIDTH = 1e-12
"""Width, as a share of the numbers it is made of, below which there is none but rounding: such bounds say nothing about
units not seen, and no interval is given. Statistics without a unit are of size 1."""
NO_RESAMPLE_DIFFERS = "every resample gives the same value: nothing tells how far it may be off"
NO_UNIT_DIFFERS = "every unit gives the same value: nothing tells how far it may be off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Two bounds at ``confidence`` made by ``method``, or None and the reason there are none."""

    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    method: str | None = None
    se: float | None = None
    undefined_share: float | None = None
    interval_reason: str | None = None

    def within(self, lowest: float, highest: float) -> Interval:
        """The same, cut where the statistic itself can't go."""
        if self.low is None or self.high is None:
            return self
        return replace(self, low=max(self.low, lowest), high=min(self.high, highest))

    def as_changes(self) -> dict[str, Any]:
        """The fields to set on an Estimate: ``estimate.with_(**interval.as_changes())``."""
        changes = {name: getattr(self, name) for name in Interval.__slots__}
        return {name: value for name, value in changes.items() if value is not None}


def approximate(method: str, why: str = "") -> str:
    """The name of a method that says that its intervals may cover less than they should."""
    return method if "approximate" in method else f"{method} (approximate{why and ': '}{why})"


def percentile(resampled: Floats, *, confidence: float = 0.95, unit: float = 1.0) -> Interval:
    """Percentile interval of (B,) resampled values, NaN where a resample leaves the statistic undefined.

    The bounds are the empirical quantiles (1 - confidence)/2 and (1 + confidence)/2 of the defined resamples. ``unit``
    is the size of the numbers that the statistic is made of (the largest score, for a mean). No interval where all
    resamples are equal.
    Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 13 (doi 10.1201/9780429246593).
    """
    tail = (1 - confidence) / 2
    return _from_resamples(resampled, (tail, 1 - tail), confidence, "bootstrap percentile", unit)


def bca(
    value: float,
    resampled: Floats,
    left_out: Floats,
    multiplicity: Floats,
    *,
    confidence: float = 0.95,
    unit: float = 1.0,
) -> Interval:
    """Bias-corrected and accelerated interval.

    ``left_out`` (U,) holds the statistic with one unit of each kind left out, ``multiplicity`` (U,) how many such
    units there are. z0 = Phi^-1(share of resamples below the value, ties counted half); a = sum d^3 / (6 (sum d^2)^1.5)
    with d the mean of the left-out values minus each. Undefined when a left-out value is, or when all resamples lie on
    one side. Source: Efron 1987 (doi 10.1080/01621459.1987.10478410).
    """
    from scipy.special import ndtr, ndtri

    defined = resampled[~np.isnan(resampled)]
    if not defined.size or np.isnan(left_out).any():
        return _none("leaving one unit out makes the statistic undefined: BCa has no acceleration", resampled)
    share = float(np.mean(defined < value) + np.mean(defined == value) / 2)
    if not 0 < share < 1:
        return _none("every resample lies on one side of the value: BCa has no bias correction", resampled)
    z0, a = float(ndtri(share)), _acceleration(left_out, multiplicity)
    z = z0 + ndtri(np.array([(1 - confidence) / 2, (1 + confidence) / 2]))
    low, high = ndtr(z0 + z / (1 - a * z))
    return _from_resamples(resampled, (float(low), float(high)), confidence, "bootstrap BCa", unit)


def t_interval(
    value: float, se: float, df: float, *, method: str, confidence: float = 0.95, unit: float = 1.0
) -> Interval:
    """value +- t(df) se; none where the standard error or its degrees of freedom are undefined, or it is 0."""
    from scipy.special import stdtrit

    if not (math.isfinite(se) and df >= 1):
        return Interval(interval_reason="the standard error needs two independent units")
    half = float(stdtrit(df, (1 + confidence) / 2)) * se
    return _around(value, half, se, method, confidence, unit)


def normal_interval(value: float, se: float, *, method: str, confidence: float = 0.95, unit: float = 1.0) -> Interval:
    """value +- z se; none where the standard error is undefined or 0."""
    from scipy.special import ndtri

    if not math.isfinite(se):
        return Interval(interval_reason="the standard error is undefined")
    half = float(ndtri((1 + confidence) / 2)) * se
    return _around(value, half, se, method, confidence, unit)


def log_t_interval(
    value: float, resampled: Floats, df: float, *, confidence: float = 0.95, unit: float = 1.0
) -> Interval:
    """Interval of a positive, right-skewed value: value times or over exp(t(df) s), s the spread of the (B,) logs.

    Where a resample is 0 or undefined its logarithm is none, and the interval is the percentile one.
    """
    from scipy.special import stdtrit

    if not (resampled > 0).all():
        return percentile(resampled, confidence=confidence, unit=unit)
    spread = float(np.log(resampled).std())
    if spread <= NO_WIDTH:
        return _none(NO_RESAMPLE_DIFFERS, resampled)
    factor = math.exp(float(stdtrit(df, (1 + confidence) / 2)) * spread)
    method = "bootstrap t of the logarithm"
    return Interval(low=value / factor, high=value * factor, confidence=confidence, method=method, undefined_share=0.0)


def wilson_interval(
    value: float,
    se: float,
    n: float,
    *,
    ends: tuple[float, float] = (0.0, 1.0),
    df: float | None = None,
    method: str = "Wilson",
    confidence: float = 0.95,
) -> Interval:
    """Wilson's interval of a share, or of any mean that can't leave its ends a and b.

    The means mu with |value - mu| <= z sqrt((mu - a)(b - mu) / m). m = (value - a)(b - value) / se^2 is how many
    answers of a or b give the standard error seen, which may come from clusters; where nothing varies it is ``n``,
    the number of independent ones. z is normal, or t with ``df``. No interval when that is undefined.
    Source: Wilson 1927 (doi 10.2307/2276774); with m in place of n: Franco, Little, Louis & Slud 2019 (PMC6690503).
    """
    from scipy.special import ndtri, stdtrit

    if not math.isfinite(se) or n <= 0 or (df is not None and df < 1):
        return Interval(interval_reason="the standard error needs two independent units")
    (low, high), tail = ends, (1 + confidence) / 2
    z, width = float(ndtri(tail) if df is None else stdtrit(df, tail)), high - low
    p = (value - low) / width
    m = p * (1 - p) / (se / width) ** 2 if se > NO_WIDTH * width else n
    middle, half = (p + z**2 / (2 * m)) / (1 + z**2 / m), z * math.sqrt(p * (1 - p) / m + z**2 / (4 * m**2))
    half /= 1 + z**2 / m
    if se <= NO_WIDTH * width and 0 < p < 1:
        method = approximate(method, "no unit differs")
    bounds = (low + width * (middle - half), low + width * (middle + half))
    return Interval(low=bounds[0], high=bounds[1], confidence=confidence, method=method, se=se).within(low, high)


def _acceleration(left_out: Floats, multiplicity: Floats) -> float:
    d = np.average(left_out, weights=multiplicity) - left_out
    spread = float(multiplicity @ d**2)
    return float(multiplicity @ d**3) / (6 * spread**1.5) if spread > 0 else 0.0


def _from_resamples(
    resampled: Floats, tails: tuple[float, float], confidence: float, method: str, unit: float
) -> Interval:
    undefined = float(np.isnan(resampled).mean()) if resampled.size else 1.0
    if undefined > MAX_UNDEFINED_SHARE:
        return _none(f"{undefined:.1%} of the resamples leave the statistic undefined (more than 5%)", resampled)
    low, high = (float(bound) for bound in np.quantile(resampled[~np.isnan(resampled)], tails))
    if high - low <= NO_WIDTH * max(unit, abs(low), abs(high)):
        return _none(NO_RESAMPLE_DIFFERS, resampled)
    return Interval(low=low, high=high, confidence=confidence, method=method, undefined_share=undefined)


def _around(value: float, half: float, se: float, method: str, confidence: float, unit: float) -> Interval:
    if half <= NO_WIDTH * max(unit, abs(value)):
        return Interval(se=se, interval_reason=NO_UNIT_DIFFERS)
    return Interval(low=value - half, high=value + half, confidence=confidence, method=method, se=se)


def _none(reason: str, resampled: Floats) -> Interval:
    share = float(np.isnan(resampled).mean()) if resampled.size else None
    return Interval(undefined_share=share, interval_reason=reason)
