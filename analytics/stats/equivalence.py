"""Two instructions, same scores? Equivalence by two one-sided tests (METHODS 4: meta-prompt language, S0 3.5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analytics.stats.correction import classical_mean
from analytics.stats.estimate import Estimate

Floats = NDArray[np.float64]
MARGIN = 0.05


def tost(first: Floats, second: Floats, cluster: NDArray[np.intp], *, margin: float = MARGIN) -> Estimate:
    """Mean paired difference (N,) - (N,) and the p of H1: its size is below the margin; 90 % interval.

    p = max of the one-sided p of mean > -margin and of mean < margin, cluster-robust t. p < .05 says equivalent, which
    is the same as the 90 % interval lying within the margins. Source: Schuirmann 1987, doi:10.1007/BF01068419.
    """
    from scipy.special import stdtr

    both = ~(np.isnan(first) | np.isnan(second))
    cluster = cluster[both]
    gap = classical_mean((first - second)[both], cluster, confidence=0.90).with_(statistic="tost")
    if gap.value is None or gap.se is None:
        return gap.with_(value=None, reason="equivalence needs pairs in two clusters or more")
    df = len(np.unique(cluster)) - 1
    if gap.se == 0:
        return gap.with_(p=float(abs(gap.value) >= margin), note=f"margin {margin:g}; every difference is the same")
    t_low, t_high = (gap.value + margin) / gap.se, (gap.value - margin) / gap.se
    p = max(1 - float(stdtr(df, t_low)), float(stdtr(df, t_high)))
    return gap.with_(p=p, method="TOST, cluster-robust t", note=f"margin {margin:g}")
