"""Figures read off a confusion matrix of reference (rows) against judge (columns) (METHODS 3).

A stack of matrices has shape (R, q, q): one for the sample and one per resample. Every kernel returns (R,), NaN where
the figure is undefined.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def confusion(reference: Codes, judge: Codes, w: Floats, q: int) -> Floats:
    """Counts of category codes (m,), (m,) under weights (R, m) -> (R, q, q), reference in rows."""
    return counts(reference * q + judge, w, q * q).reshape(len(w), q, q)


def counts(codes: Codes, w: Floats, size: int) -> Floats:
    """Total weight of each code 0..size-1, codes (m,), weights (R, m) -> (R, size)."""
    order = np.argsort(codes, kind="stable")
    used, starts = np.unique(codes[order], return_index=True)
    total = np.zeros((len(w), size))
    if len(used):
        total[:, used] = np.add.reduceat(w[:, order], starts, axis=1)
    return total


def row_shares(c: Floats) -> Floats:
    """Share of each judge label given the reference label, (R, q, q) -> (R, q, q); NaN for a label never used."""
    return _over(c, c.sum(axis=2, keepdims=True))


def accuracy(c: Floats) -> Floats:
    """Share of items where judge and reference give the same label, (R, q, q) -> (R,)."""
    return _over(np.trace(c, axis1=1, axis2=2), c.sum(axis=(1, 2)))


def adjacent(c: Floats) -> Floats:
    """Share of items where the two lie at most one step of the scale apart, (R, q, q) -> (R,)."""
    k = np.arange(c.shape[1])
    return _over(c[:, abs(k[:, None] - k) <= 1].sum(axis=1), c.sum(axis=(1, 2)))


def judged(c: Floats, k: int) -> Floats:
    """Items the judge gives label k, (R, q, q) -> (R,)."""
    items: Floats = c[:, :, k].sum(axis=1)
    return items


def referred(c: Floats, k: int) -> Floats:
    """Items with reference label k, (R, q, q) -> (R,)."""
    items: Floats = c[:, k, :].sum(axis=1)
    return items


def involved(c: Floats, k: int) -> Floats:
    """Items to which the judge, the reference, or both give label k, (R, q, q) -> (R,)."""
    return judged(c, k) + referred(c, k) - c[:, k, k]


def precision(c: Floats, k: int) -> Floats:
    """Of the items the judge gives label k, the share the reference gives it too, (b, q, q) -> (b,).

    Level: nominal. Undefined where the judge never gives the label.
    """
    return _over(c[:, k, k], judged(c, k))


def recall(c: Floats, k: int) -> Floats:
    """Of the items with reference label k, the share the judge gives it too, (b, q, q) -> (b,).

    Level: nominal. Undefined where the reference never gives the label.
    """
    return _over(c[:, k, k], referred(c, k))


def f1(c: Floats, k: int) -> Floats:
    """F1 of label k = 2 TP / (2 TP + FP + FN), (R, q, q) -> (R,); undefined (NaN) when neither ever gives it.

    Source: van Rijsbergen 1979, Information Retrieval, ch. 7.
    """
    return _over(2 * c[:, k, k], referred(c, k) + judged(c, k))


def f1_weighted(c: Floats) -> Floats:
    """Mean of the labels' F1 weighted by how often the reference gives each, (R, q, q) -> (R,)."""
    support = c.sum(axis=2)
    each = np.stack([f1(c, k) for k in range(c.shape[1])], axis=1)
    # A label without support weighs nothing, so its 0/0 must not spread.
    return _over(np.where(support > 0, support * each, 0.0).sum(axis=1), support.sum(axis=1))


def cohen_kappa(c: Floats, d: Floats) -> Floats:
    """Cohen's kappa (R, q, q), disagreement (q, q) -> (R,); undefined (NaN) when only one label is used.

    kappa = 1 - sum d_kl p_kl / sum d_kl p_k. p_.l, which is (p_o - p_e) / (1 - p_e) of the weights w = 1 - d. Nothing
    is subtracted below the line, so that it is 0 exactly where no two labels are used.
    Source: Cohen 1960, doi:10.1177/001316446002000104; weighted: Cohen 1968, doi:10.1037/h0026256.
    """
    p = _over(c, c.sum(axis=(1, 2), keepdims=True))
    expected = np.einsum("rk,kl,rl->r", p.sum(axis=2), d, p.sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - np.einsum("rkl,kl->r", p, d) / expected, np.nan)


def _over(total: Floats, n: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n > 0, total / n, np.nan)
