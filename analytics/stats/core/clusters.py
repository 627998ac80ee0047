"""Means over items that come in clusters: standard errors that hold with few clusters of unequal size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]


def number_of(cluster: NDArray[Any]) -> int:
    """How many clusters the items of (n,) come in. Source: METHODS 0."""
    return len(np.unique(cluster))


def effective_number(sizes: Floats | Codes, multiplicity: Codes | None = None) -> float:
    """How many equal clusters tell as much as these: (sum n_c)^2 / sum n_c^2 = C / (1 + CV^2), C when all are alike.

    ``sizes`` (U,) items of a cluster of each kind, ``multiplicity`` (U,) how many there are. Less 1 it gives degrees of
    freedom. Source: Kish 1965, Survey Sampling; Carter, Schnepel & Steigerwald 2017 (doi 10.1162/REST_a_00639).
    """
    n = np.asarray(sizes, dtype=np.float64)
    m = np.ones(len(n)) if multiplicity is None else multiplicity
    squares = float(m @ n**2)
    return float(m @ n) ** 2 / squares if squares > 0 else 0.0


def error_of_mean(x: Floats, cluster: Codes) -> tuple[float, float]:
    """Standard error and degrees of freedom of the mean of x (n,) from clusters (n,) left out one by one.

    se^2 = (C - 1)/C sum_c (mean without c - mean)^2; for items that stand alone this is s^2 / n, with n - 1 degrees of
    freedom. NaN for one cluster. Source: cluster jackknife (CV3), MacKinnon, Nielsen & Webb 2023
    (doi 10.1016/j.jeconom.2022.04.001).
    """
    _, index, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        return float("nan"), 0.0
    moved = np.bincount(index, weights=x - x.mean()) / (len(x) - sizes)
    factor = (len(sizes) - 1) / len(sizes)
    return float(np.sqrt(factor * (moved**2).sum())), effective_number(sizes) - 1


def jackknife_error(value: float, without: Floats, parts: NDArray[Any]) -> float:
    """Standard error of a figure from its values with each cluster left out (C,), clusters drawn within ``parts`` (C,).

    se^2 = sum over parts of (C_h - 1)/C_h sum_c (without c - value)^2. NaN where a part has one cluster or a value is
    undefined. Source: Rust & Rao 1996 (doi 10.1177/096228029600500305), the stratified jackknife.
    """
    _, index, sizes = np.unique(parts, return_inverse=True, return_counts=True)
    if sizes.min(initial=2) < 2:
        return float("nan")
    return float(np.sqrt((((sizes - 1) / sizes)[index] * (without - value) ** 2).sum()))
