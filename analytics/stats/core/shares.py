"""The interval of a share from its count, without numpy and scipy: for code that has to start quickly."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson_of_share(share: float, n: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval (lower, upper) of a share p in [0, 1] of n independent answers, n >= 1.

    The same as `estimates.wilson_interval` with the binomial standard error. For the mean of n values in [0, 1] that
    are no 0 or 1 it is wider than needed, never narrower: their variance is at most p (1 - p).
    Source: Wilson 1927 (doi 10.2307/2276774).
    """
    if n < 1 or not 0 <= share <= 1:
        raise ValueError("a share from 0 to 1 of at least one answer")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)
