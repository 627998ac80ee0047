"""Correlation of judge and reference under many weightings at once (METHODS 3).

Every kernel takes distinct pairs ``x, y`` of shape (m,) and whole-number weights ``w`` of shape (R, m) that say how
often each pair occurs: one row of ones is the sample itself, R rows of resampling counts are R bootstrap samples. It
returns (R,), NaN where the correlation is undefined because one of the two does not vary.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from analytics.stats.confusion import counts

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
