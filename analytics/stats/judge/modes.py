"""The commonest score of an item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.number_arrays import Floats

if TYPE_CHECKING:
    pass


def modes(scores: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Mode of each item's scores (N, R), NaN where missing: (N,) scores, NaN where tied or not rated, and (N,) ties.

    Any level; scales of any length, for no table of items by points is made. Source: METHODS 2.
    """
    in_order = np.sort(scores, axis=1)
    length = run_lengths(in_order)
    top = length.max(axis=1, initial=0)
    tied = (length == top[:, None]).sum(axis=1) > 1
    at = length.argmax(axis=1)[:, None] if scores.shape[1] else np.zeros((len(scores), 0), dtype=np.intp)
    value = np.take_along_axis(in_order, at, axis=1).sum(axis=1)
    return np.where((top > 0) & ~tied, value, np.nan), tied & (top > 0)


def run_lengths(in_order: Floats) -> NDArray[np.intp]:
    """(N, R) at the last of each run of equal scores in sorted rows (N, R) the run's length; 0 elsewhere and at NaN.

    Any level. Source: METHODS 2.
    """
    place, length = np.zeros(len(in_order), dtype=np.intp), np.zeros(in_order.shape, dtype=np.intp)
    for r in range(in_order.shape[1]):
        has_score = ~np.isnan(in_order[:, r])
        goes_on = has_score & (in_order[:, r] == in_order[:, r - 1]) if r else np.zeros(len(in_order), dtype=bool)
        place = np.where(goes_on, place + 1, has_score.astype(np.intp))
        length[:, r] = place
        if r:
            length[goes_on, r - 1] = 0
    return length
