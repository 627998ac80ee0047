"""McNemar's test: do two raters get equally many of the same items right? (METHODS 3; S3 judge vs annotator.)"""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from analytics.stats.estimate import Estimate

FEW_DISCORDANT = 25
"""Below this many discordant items the mid-p variant is the default, from there the plain chi-square."""


def exact(b: int, c: int) -> float:
    """Two-sided binomial p of discordant counts b, c: min(1, 2 P(X <= min(b, c))), X ~ Bin(b + c, 1/2); 1 at 0, 0.

    Source: McNemar 1947, doi:10.1007/BF02295996.
    """
    return min(1.0, 2 * float(bdtr(min(b, c), b + c, 0.5)))


def midp(b: int, c: int) -> float:
    """Mid-p of discordant counts b, c: the doubled tail less P(X = min(b, c)); 1 where b = c.

    Source: Fagerland, Lydersen & Laake 2013, doi:10.1186/1471-2288-13-91.
    """
    n, k = b + c, min(b, c)
    below = float(bdtr(k - 1, n, 0.5)) if k else 0.0
    # 2 P(X <= k) - P(X = k), written as a sum so that nothing cancels.
    return min(1.0, float(bdtr(k, n, 0.5)) + below)


def chi2(b: int, c: int) -> float | None:
    """Chi-square p, 1 df, of (b - c)^2 / (b + c); undefined when b + c = 0."""
    return _tail((b - c) ** 2 / (b + c)) if b + c else None


def chi2_corrected(b: int, c: int) -> float | None:
    """Chi-square p with Edwards' continuity correction, max(0, |b - c| - 1)^2 / (b + c); undefined when b + c = 0.

    Source: Edwards 1948, doi:10.1007/BF02289261.
    """
    return _tail(max(0, abs(b - c) - 1) ** 2 / (b + c)) if b + c else None


VARIANTS: dict[str, Callable[[int, int], float | None]] = {
    "exact": exact,
    "midp": midp,
    "chi2": chi2,
    "chi2_corrected": chi2_corrected,
}


def default_variant(b: int, c: int) -> str:
    """The variant to read first: mid-p for few discordant items, the plain chi-square otherwise."""
    return "midp" if b + c < FEW_DISCORDANT else "chi2"


def estimates(is_right: NDArray[np.bool_], is_other_right: NDArray[np.bool_]) -> list[Estimate]:
    """All variants for two raters' hits (N,), (N,) on the same items; the p value stands in ``value`` and ``p``."""
    b = int((is_right & ~is_other_right).sum())
    c = int((~is_right & is_other_right).sum())
    return [_estimate(name, test(b, c) if len(is_right) else None, len(is_right)) for name, test in VARIANTS.items()]


def _estimate(variant: str, p: float | None, n_items: int) -> Estimate:
    reason = None
    if p is None:
        reason = "no discordant item: both raters are right on the same ones" if n_items else "no item in common"
    return Estimate(
        statistic="mcnemar", variant=variant, value=p, p=p, n_items=n_items, n_raters=2, n_ratings=2 * n_items,
        reason=reason,
    )  # fmt: skip


def _tail(statistic: float) -> float:
    """Upper tail of chi-square with one degree of freedom."""
    return erfc(sqrt(statistic / 2))
