"""Correlation of judge and reference under many weightings at once (METHODS 3).

Every kernel takes distinct pairs ``x, y`` of shape (m,) and whole-number weights ``w`` of shape (R, m) that say how
often each pair occurs: one row of ones is the sample itself, R rows of resampling counts are R bootstrap samples. It
returns (R,), NaN where the correlation is undefined because one of the two does not vary.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FLAT = 1e-14
"""Variance, in units of the mean square, below which a vector counts as constant: what rounding leaves."""
BLOCK_CELLS = 2_000_000
"""Most numbers one block of resamples may hold at once (16 MB)."""


def pearson(x: Floats, y: Floats, w: Floats) -> Floats:
    r"""Pearson's r of pairs (m,), (m,) under weights (R, m) -> (R,).

    r = sum w (x - mx)(y - my) / sqrt(sum w (x - mx)^2 sum w (y - my)^2). Level: interval. Undefined (NaN) for a
    constant vector. Source: Pearson 1895, doi:10.1098/rspl.1895.0041.
    """
    x, y = _unit(x), _unit(y)
    n = w.sum(axis=1)
    mx, my = _over(w @ x, n), _over(w @ y, n)
    qx, qy = _over(w @ x**2, n), _over(w @ y**2, n)
    sxx, syy = qx - mx**2, qy - my**2
    return _ratio(
        _over(w @ (x * y), n) - mx * my, np.where(sxx > _FLAT * qx, sxx, 0), np.where(syy > _FLAT * qy, syy, 0)
    )


def spearman(x: Floats, y: Floats, w: Floats) -> Floats:
    """Spearman's rho of pairs (m,), (m,) under weights (R, m) -> (R,): Pearson's r of the midranks.

    Level: ordinal. Undefined (NaN) for a constant vector. Source: Spearman 1904, doi:10.2307/1412159.
    """
    blocks = [_spearman_block(x, y, rows) for rows in _blocks(w, len(x))]
    return np.concatenate(blocks) if blocks else np.empty(0)


def kendall_tau_b(x: Floats, y: Floats, w: Floats) -> Floats:
    r"""Kendall's tau-b of pairs (m,), (m,) under weights (R, m) -> (R,).

    tau_b = (C - D) / sqrt((P - T_x)(P - T_y)) over all P pairs of observations, C concordant, D discordant, T tied.
    Copies of one pair are tied with each other in both. Level: ordinal. Undefined (NaN) for a constant vector.
    Source: Kendall 1945, doi:10.1093/biomet/33.3.239.
    """
    n = w.sum(axis=1)
    pairs = n * (n - 1) / 2
    free_x, free_y = pairs - _tied(x, w), pairs - _tied(y, w)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((free_x > 0) & (free_y > 0), _concordance(x, y, w) / np.sqrt(free_x * free_y), np.nan)


def midranks(x: Floats, w: Floats) -> Floats:
    """Average ranks (from 1) of values (m,) that occur w (R, m) times -> (R, m)."""
    order = np.argsort(x, kind="stable")
    starts, inverse = _groups(x[order])
    size = np.add.reduceat(w[:, order], starts, axis=1)
    middle = np.cumsum(size, axis=1) - (size - 1) / 2
    ranks = np.empty_like(w, dtype=np.float64)
    ranks[:, order] = middle[:, inverse]
    return ranks


def _spearman_block(x: Floats, y: Floats, w: Floats) -> Floats:
    n = w.sum(axis=1, keepdims=True)
    # The mean midrank is (n + 1)/2 whatever the ties: a constant vector leaves exactly 0.
    u, v = (_over(midranks(a, w) - (n + 1) / 2, n) for a in (x, y))
    total = n[:, 0]
    return _ratio(*(_over((w * a * b).sum(axis=1), total) for a, b in ((u, v), (u, u), (v, v))))


def _concordance(x: Floats, y: Floats, w: Floats) -> Floats:
    """C - D for each row of weights: over the grid of distinct values when it is small, else over all pairs."""
    ux, kx = np.unique(x, return_inverse=True)
    uy, ky = np.unique(y, return_inverse=True)
    if len(ux) * len(uy) <= 16 * len(x):
        shape = (len(ux), len(uy))
        return np.concatenate([_grid_concordance(b, kx, ky, shape) for b in _blocks(w, shape[0] * shape[1])])
    return _pair_concordance(x, y, w)


def _grid_concordance(w: Floats, kx: NDArray[np.intp], ky: NDArray[np.intp], shape: tuple[int, int]) -> Floats:
    table = counts(kx * shape[1] + ky, w, shape[0] * shape[1]).reshape(len(w), *shape)
    below = np.cumsum(np.cumsum(table, axis=1), axis=2)
    lower_x = below[:, :-1, :]
    # Of the cells with a smaller x: those with a smaller y agree, those with a larger y disagree.
    agree = np.concatenate([np.zeros((*lower_x.shape[:2], 1)), lower_x[:, :, :-1]], axis=2)
    disagree = lower_x[:, :, -1:] - lower_x
    scores: Floats = (table[:, 1:, :] * (agree - disagree)).sum(axis=(1, 2))
    return scores


def _pair_concordance(x: Floats, y: Floats, w: Floats) -> Floats:
    m = len(x)
    total = np.zeros(len(w))
    step = max(1, BLOCK_CELLS // max(m, 1))
    for start in range(0, m, step):
        rows = slice(start, start + step)
        signs = np.sign(x[rows, None] - x) * np.sign(y[rows, None] - y)
        total += ((w @ signs.T) * w[:, rows]).sum(axis=1)
    return total / 2


def _tied(x: Floats, w: Floats) -> Floats:
    order = np.argsort(x, kind="stable")
    size = np.add.reduceat(w[:, order], _groups(x[order])[0], axis=1)
    tied: Floats = (size * (size - 1) / 2).sum(axis=1)
    return tied


def _groups(ordered: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each run of equal values starts, and the run each value belongs to."""
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    return np.flatnonzero(is_new), np.cumsum(is_new) - 1


def _blocks(w: Floats, width: int) -> Iterator[Floats]:
    step = max(1, BLOCK_CELLS // max(width, 1))
    for start in range(0, len(w), step):
        yield w[start : start + step]


def _unit(x: Floats) -> Floats:
    """Values around their middle one, divided by their range: exactly zero everywhere when they are all equal.

    Resamples without a far value then keep their digits.
    """
    return np.asarray((x - np.median(x)) / (float(np.ptp(x)) or 1.0))


def _over(total: Floats, n: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / n


def _ratio(sxy: Floats, sxx: Floats, syy: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((sxx > 0) & (syy > 0), np.clip(sxy / np.sqrt(sxx * syy), -1, 1), np.nan)


# Figures read off a confusion matrix of reference (rows) against judge (columns) (METHODS 3).
#
# A stack of matrices has shape (R, q, q): one for the sample and one per resample. Every kernel returns (R,), NaN where
# the figure is undefined.

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
    return _quotient(c, c.sum(axis=2, keepdims=True))


def accuracy(c: Floats) -> Floats:
    """Share of items where judge and reference give the same label, (R, q, q) -> (R,)."""
    return _quotient(np.trace(c, axis1=1, axis2=2), c.sum(axis=(1, 2)))


def adjacent(c: Floats) -> Floats:
    """Share of items where the two lie at most one step of the scale apart, (R, q, q) -> (R,)."""
    k = np.arange(c.shape[1])
    return _quotient(c[:, abs(k[:, None] - k) <= 1].sum(axis=1), c.sum(axis=(1, 2)))


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
    return _quotient(c[:, k, k], judged(c, k))


def recall(c: Floats, k: int) -> Floats:
    """Of the items with reference label k, the share the judge gives it too, (b, q, q) -> (b,).

    Level: nominal. Undefined where the reference never gives the label.
    """
    return _quotient(c[:, k, k], referred(c, k))


def f1(c: Floats, k: int) -> Floats:
    """F1 of label k = 2 TP / (2 TP + FP + FN), (R, q, q) -> (R,); undefined (NaN) when neither ever gives it.

    Source: van Rijsbergen 1979, Information Retrieval, ch. 7.
    """
    return _quotient(2 * c[:, k, k], referred(c, k) + judged(c, k))


def f1_weighted(c: Floats) -> Floats:
    """Mean of the labels' F1 weighted by how often the reference gives each, (R, q, q) -> (R,)."""
    support = c.sum(axis=2)
    each = np.stack([f1(c, k) for k in range(c.shape[1])], axis=1)
    # A label without support weighs nothing, so its 0/0 must not spread.
    return _quotient(np.where(support > 0, support * each, 0.0).sum(axis=1), support.sum(axis=1))


def cohen_kappa(c: Floats, d: Floats) -> Floats:
    """Cohen's kappa (R, q, q), disagreement (q, q) -> (R,); undefined (NaN) when only one label is used.

    kappa = 1 - sum d_kl p_kl / sum d_kl p_k. p_.l, which is (p_o - p_e) / (1 - p_e) of the weights w = 1 - d. Nothing
    is subtracted below the line, so that it is 0 exactly where no two labels are used.
    Source: Cohen 1960, doi:10.1177/001316446002000104; weighted: Cohen 1968, doi:10.1037/h0026256.
    """
    p = _quotient(c, c.sum(axis=(1, 2), keepdims=True))
    expected = np.einsum("rk,kl,rl->r", p.sum(axis=2), d, p.sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - np.einsum("rkl,kl->r", p, d) / expected, np.nan)


def _quotient(total: Floats, n: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n > 0, total / n, np.nan)
