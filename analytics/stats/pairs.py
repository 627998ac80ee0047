"""Agreement between named raters: Cohen's kappa of a pair, Conger's kappa of a panel.

Here it matters who gave a score, so an item's pattern is its ordered row of codes (P, R), -1 where a rater gave none.
Kernels take weights (B, P) and return (B,), NaN where undefined, as in ``coefficients``. Rulings: METHODS 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.coefficients import TINY
from analytics.stats.resampling import Units

if TYPE_CHECKING:
    from analytics.stats.tables import Coded

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]


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


def cohen_kappa(a: Codes, b: Codes, weights: Floats, w: Floats) -> Floats:
    """Cohen's kappa of codes (P,), (P,) with agreement weights w (q, q) under weights (B, P) -> (B,).

    kappa = (p_o - p_e) / (1 - p_e) over items scored by both, p_o = sum w_kl p_kl, p_e = sum w_kl p_k. p_.l. Level:
    nominal (identity w) or ordinal. Undefined without a common item or when both use one and the same point only.
    Source: Cohen 1960 (doi 10.1177/001316446002000104), 1968 (doi 10.1037/h0026256).
    """
    both = (a >= 0) & (b >= 0)
    a, b, weights = a[both], b[both], weights[:, both]
    n = weights.sum(axis=1)
    p_k, p_l = _shares(weights @ one_hot(a, len(w)), n), _shares(weights @ one_hot(b, len(w)), n)
    p_o, p_e = _shares(weights @ w[a, b], n), ((p_k @ w) * p_l).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(1 - p_e > TINY, (p_o - p_e) / (1 - p_e), np.nan)


def cohen_kappa_se(a: Codes, b: Codes, totals: Floats, w: Floats) -> float:
    """Large-sample standard error of Cohen's kappa (weighted or not), items standing alone; totals (P,).

    var = {sum p_kl [w_kl - (wbar_k. + wbar_.l)(1 - kappa)]^2 - [kappa - p_e (1 - kappa)]^2} / (n (1 - p_e)^2).
    Source: Fleiss, Cohen & Everitt 1969 (doi 10.1037/h0028106).
    """
    both = (a >= 0) & (b >= 0)
    a, b, totals = a[both], b[both], totals[both]
    n, q = totals.sum(), len(w)
    if n < 2:
        return np.nan
    p = np.bincount(a.astype(np.intp) * q + b, weights=totals, minlength=q * q).reshape(q, q) / n
    p_k, p_l = p.sum(axis=1), p.sum(axis=0)
    distance = 1 - w
    expected = float(p_k @ distance @ p_l)
    if expected <= TINY:
        return np.nan
    # The mean is taken off before squaring: near points have 1 - p_e near 0, which would magnify what rounding leaves.
    observed = float((p * distance).sum())
    inner = np.add.outer(distance @ p_l, p_k @ distance) * (observed / expected) - distance
    variance = float((p * (inner - observed) ** 2).sum()) / (n * expected**2)
    return float(np.sqrt(variance)) if variance > TINY else 0.0


def conger_kappa(codes: Codes, weights: Floats, w: Floats) -> Floats:
    """Conger's kappa of ordered codes (P, R) with agreement weights w (q, q) under weights (B, P) -> (B,).

    p_a as in Gwet's AC; p_e = mean over ordered pairs of raters g != h of sum w_kl p_gk p_hl, p_g the shares of the
    points among rater g's own scores. Equals Cohen's kappa for two raters. Undefined when a rater has no score in the
    (re)sample or when one point only is used. Source: Conger 1980 (doi 10.1037/0033-2909.88.2.322); missing scores:
    Gwet 2014, chapter 2.
    """
    p_a, paired = _pair_agreement(codes, w)
    margins = _margins(codes, weights, len(w))
    together = margins.sum(axis=1)
    r = codes.shape[1]
    own = (margins @ w * margins).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        p_e = ((together @ w * together).sum(axis=1) - own) / (r * (r - 1))
        observed = (weights @ p_a) / (weights @ paired)
        return np.where(1 - p_e > TINY, (observed - p_e) / (1 - p_e), np.nan)


def conger_influence(codes: Codes, totals: Floats, w: Floats) -> Floats:
    """(P,) linearised contribution of an item of each pattern to Conger's kappa; their mean over items is kappa.

    Codes (P, R), -1 where missing; the derivative goes through every rater's own margins, each over the items that
    rater scored. Source: METHODS 1, with the p_e of Conger 1980 (doi 10.1037/0033-2909.88.2.322).
    """
    (n_items, r), q = codes.shape, len(w)
    n = totals.sum()
    p_a, paired = _pair_agreement(codes, w)
    margins = _margins(codes, totals[None, :], q)[0]
    toward = (margins.sum(axis=0) - margins) @ w
    p_e = float((toward * margins).sum()) / (r * (r - 1))
    kappa = (float(totals @ p_a / (totals @ paired)) - p_e) / (1 - p_e)
    step = np.zeros(n_items)
    for g in range(r):
        scored = codes[:, g] >= 0
        gain = toward[g][codes[:, g]] - toward[g] @ margins[g]
        step += np.where(scored, gain * n / (totals @ scored), 0) * 2 / (r * (r - 1))
    own = n / (totals @ paired) * np.where(paired, p_a - p_e, 0) / (1 - p_e)
    return np.asarray(own - (1 - kappa) * step / (1 - p_e))


def one_hot(codes: Codes, q: int) -> Floats:
    """(P, q) indicator of each code; a row of zeros for -1."""
    return np.asarray(codes[:, None] == np.arange(q), dtype=np.float64)


def _margins(codes: Codes, weights: Floats, q: int) -> Floats:
    """(B, R, q) shares of the points among each rater's own scores."""
    counted = [weights @ one_hot(codes[:, g], q) for g in range(codes.shape[1])]
    return np.stack([_shares(rows, rows.sum(axis=1)) for rows in counted], axis=1)


def _pair_agreement(codes: Codes, w: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """(P,) mean weighted agreement over the pairs of scores of a pattern, and whether it has a pair."""
    from analytics.stats.coefficients import item_agreement

    counts = sum((one_hot(codes[:, g], len(w)) for g in range(codes.shape[1])), start=np.zeros((len(codes), len(w))))
    return item_agreement(counts, w), counts.sum(axis=1) >= 2


def _shares(rows: Floats, n: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(rows / (n[:, None] if rows.ndim == 2 else n))
