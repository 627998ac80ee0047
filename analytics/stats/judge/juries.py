"""Several judges as one: majority, median or mean of their scores (METHODS 4)."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rule = Literal["majority", "median", "mean"]
RULES: tuple[Rule, ...] = get_args(Rule)


def verdicts(scores: Floats, rule: str) -> Floats:
    """One score per item from (N, J) judges' scores, NaN where missing -> (N,).

    ``majority`` is the most frequent score; a tie gives no label (NaN), never the first or the lowest.
    """
    if rule == "majority":
        return _majority(scores)
    given = ~np.isnan(scores).all(axis=1)
    out = np.full(len(scores), np.nan)
    out[given] = (np.nanmedian if rule == "median" else np.nanmean)(scores[given], axis=1)
    return out


def _majority(scores: Floats) -> Floats:
    points = np.unique(scores[~np.isnan(scores)])
    counts = np.stack([(scores == point).sum(axis=1) for point in points], axis=1) if len(points) else None
    if counts is None:
        return np.full(len(scores), np.nan)
    top = counts.max(axis=1, keepdims=True)
    is_settled = ((counts == top).sum(axis=1) == 1) & (top[:, 0] > 0)
    return np.where(is_settled, points[counts.argmax(axis=1)], np.nan)
