"""Agreement between named raters: Cohen's kappa of a pair, Conger's kappa of a panel.

Here it matters who gave a score, so an item's pattern is its ordered row of codes (P, R), -1 where a rater gave none.
Kernels take weights (B, P) and return (B,), NaN where undefined, as in ``coefficients``. Disagreement d_kl = 1 - w_kl
(``scales.disagreement``) keeps its digits where points lie near each other on a wide scale; a sum of products without
a minus sign is 0 exactly where nothing disagrees, so that no tolerance is needed. Rulings: METHODS 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.resampling import Units

if TYPE_CHECKING:
    from analytics.stats.core.tables import Coded

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]

ROUNDING = 1e-12
"""Spread of what items contribute, in units of the largest contribution, below which they are all alike."""


@dataclass(frozen=True, slots=True)
class OrderedPatterns:
    """``codes`` (P, R): the distinct rows of codes, one column per rater; ``units``: what is resampled."""

    codes: Codes
    units: Units

    @property
    def weights(self) -> Floats:
        """(1, P) how many items show each row."""
        return self.units.pattern_totals[None, :]


def ordered_patterns_of(cell: Coded) -> OrderedPatterns:
    """Distinct ordered rows of a coded cell; its clusters are the units."""
    codes, row = np.unique(cell.matrix(), axis=0, return_inverse=True)
    return OrderedPatterns(codes, Units.of(row.ravel(), cell.cluster))


def cohen_kappa(a: Codes, b: Codes, weights: Floats, d: Floats) -> Floats:
    """Cohen's kappa of codes (P,), (P,) with disagreement d (q, q) under weights (B, P) -> (B,).

    kappa = 1 - sum d_kl p_kl / sum d_kl p_k. p_.l over items scored by both. Level:
    nominal (d = [k != l]) or ordinal. Undefined without a common item or when both use one and the same point only.
    Source: Cohen 1960 (doi 10.1177/001316446002000104), 1968 (doi 10.1037/h0026256).
    """
    both = (a >= 0) & (b >= 0)
    a, b, weights = a[both], b[both], weights[:, both]
    n = weights.sum(axis=1)
    p_k, p_l = _shares(weights @ one_hot(a, len(d)), n), _shares(weights @ one_hot(b, len(d)), n)
    observed, expected = _shares(weights @ d[a, b], n), ((p_k @ d) * p_l).sum(axis=1)
    return _lost(observed, expected)


def cohen_kappa_se(a: Codes, b: Codes, totals: Floats, d: Floats) -> float:
    """Large-sample standard error of Cohen's kappa (weighted or not), items standing alone; totals (P,).

    var = {sum p_kl [w_kl - (wbar_k. + wbar_.l)(1 - kappa)]^2 - [kappa - p_e (1 - kappa)]^2} / (n (1 - p_e)^2).
    Source: Fleiss, Cohen & Everitt 1969 (doi 10.1037/h0028106).
    """
    both = (a >= 0) & (b >= 0)
    a, b, totals = a[both], b[both], totals[both]
    n, q = totals.sum(), len(d)
    if n < 2:
        return np.nan
    p = np.bincount(a.astype(np.intp) * q + b, weights=totals, minlength=q * q).reshape(q, q) / n
    p_k, p_l = p.sum(axis=1), p.sum(axis=0)
    expected = float(p_k @ d @ p_l)
    if not expected > 0:
        return np.nan
    # The mean is taken off before squaring: near points have 1 - p_e near 0, which would magnify what rounding leaves.
    observed = float((p * d).sum())
    inner = np.add.outer(d @ p_l, p_k @ d) * (observed / expected) - d
    apart, size = inner - observed, float(np.abs(inner[p > 0]).max())
    error = float(np.sqrt((p * apart**2).sum()))
    return error / (np.sqrt(n) * expected) if error > ROUNDING * size else 0.0


def conger_kappa(codes: Codes, weights: Floats, d: Floats) -> Floats:
    """Conger's kappa of ordered codes (P, R) with disagreement d (q, q) under weights (B, P) -> (B,).

    (p_a - p_e) / (1 - p_e), p_a as in Gwet's AC; 1 - p_e = mean over raters g != h of sum d_kl p_gk p_hl, p_g the
    shares of the points among rater g's own scores. Equals Cohen's kappa for two raters. Undefined when a rater has no
    score in the (re)sample or when one point only is used. Source: Conger 1980 (doi 10.1037/0033-2909.88.2.322);
    missing scores: Gwet 2014, chapter 2.
    """
    apart, paired = _pair_disagreement(codes, d)
    margins = _margins(codes, weights, len(d))
    r = codes.shape[1]
    expected = np.zeros(len(weights))
    before = np.zeros((len(weights), len(d)))
    for g in range(r):  # each pair of raters once: nothing is taken off again
        expected += 2 * ((before @ d) * margins[:, g]).sum(axis=1)
        before = before + margins[:, g]
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = (weights @ apart) / (weights @ paired)
    return _lost(observed, expected / (r * (r - 1)))


def conger_influence(codes: Codes, totals: Floats, d: Floats) -> Floats:
    """(P,) linearised contribution of an item of each pattern to Conger's kappa; their mean over items is kappa.

    Codes (P, R), -1 where missing; the derivative goes through every rater's own margins, each over the items that
    rater scored. Source: METHODS 1, with the p_e of Conger 1980 (doi 10.1037/0033-2909.88.2.322).
    """
    (n_items, r), q = codes.shape, len(d)
    n = totals.sum()
    apart, paired = _pair_disagreement(codes, d)
    margins = _margins(codes, totals[None, :], q)[0]
    toward = np.stack([np.delete(margins, g, axis=0).sum(axis=0) for g in range(r)]) @ d
    expected = float((toward * margins).sum()) / (r * (r - 1))
    lost = float(totals @ apart / (totals @ paired)) / expected
    step = np.zeros(n_items)
    for g in range(r):
        scored = codes[:, g] >= 0
        gain = toward[g][codes[:, g]] - toward[g] @ margins[g]
        step += np.where(scored, gain * n / (totals @ scored), 0) * 2 / (r * (r - 1))
    own = n / (totals @ paired) * np.where(paired, 1 - apart / expected, 0)
    return np.asarray(own + lost * step / expected)


def one_hot(codes: Codes, q: int) -> Floats:
    """(P, q) indicator of each code; a row of zeros for -1."""
    return np.asarray(codes[:, None] == np.arange(q), dtype=np.float64)


def _margins(codes: Codes, weights: Floats, q: int) -> Floats:
    """(B, R, q) shares of the points among each rater's own scores."""
    counted = [weights @ one_hot(codes[:, g], q) for g in range(codes.shape[1])]
    return np.stack([_shares(rows, rows.sum(axis=1)) for rows in counted], axis=1)


def _pair_disagreement(codes: Codes, d: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """(P,) mean disagreement over the pairs of scores of a pattern, 0 without a pair, and whether it has a pair."""
    counts = sum((one_hot(codes[:, g], len(d)) for g in range(codes.shape[1])), start=np.zeros((len(codes), len(d))))
    n = counts.sum(axis=1)
    return (counts * (counts @ d)).sum(axis=1) / np.maximum(n * (n - 1), 1), n >= 2


def _lost(observed: Floats, expected: Floats) -> Floats:
    """1 - observed / expected disagreement (B,), undefined where chance alone agrees always."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - observed / expected, np.nan)


def _shares(rows: Floats, n: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(rows / (n[:, None] if rows.ndim == 2 else n))
