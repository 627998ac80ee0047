"""Families of tests, corrected together (METHODS 0)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p: Sequence[float]) -> list[float]:
    """Holm-adjusted p values of m tests, whatever their dependence. Source: Holm 1979, jstor.org/stable/4615733."""
    order = np.argsort(p, kind="stable")
    m = len(p)
    stepped = np.maximum.accumulate(np.asarray(p, dtype=np.float64)[order] * (m - np.arange(m)))
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(stepped, 1)
    return [float(value) for value in adjusted]


def benjamini_yekutieli(p: Sequence[float], alpha: float) -> list[bool]:
    """Which of m dependent hypotheses are rejected at false discovery rate alpha.

    Source: Benjamini & Yekutieli 2001, doi:10.1214/aos/1013699998.
    """
    m = len(p)
    ranked = np.sort(p)
    allowed = alpha * np.arange(1, m + 1) / (m * (1 / np.arange(1, m + 1)).sum())
    met = np.flatnonzero(ranked <= allowed)
    return [bool(len(met)) and value <= ranked[met[-1]] for value in p]
