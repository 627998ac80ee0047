"""Standard errors by linearisation: each item's contribution to a coefficient, summed within what is resampled.

``*_influence`` kernels give (P,) contributions whose mean over items is the coefficient; ``standard_error`` turns them
into one number. With items that stand alone this is Gwet's variance, sum_i (c_i - c)^2 / (N (N - 1)); with clusters
the contributions are summed within clusters first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement.coefficients import item_agreement

if TYPE_CHECKING:
    from analytics.stats.core.resampling import Units

Floats = NDArray[np.float64]


def standard_error(influence: Floats, units: Units) -> float:
    """se of the mean of item contributions (P,): se^2 = C / (C - 1) sum_c (sum_{i in c} (c_i - c))^2 / N^2.

    NaN with fewer than two units. Source: Gwet 2008 (doi 10.1348/000711006X126600); clusters: Liang & Zeger 1986
    (doi 10.1093/biomet/73.1.13).
    """
    if units.n < 2:
        return float("nan")
    totals = units.pattern_totals
    n = totals.sum()
    centred = influence - totals @ influence / n
    per_unit = centred if units.composition is None else units.composition @ centred
    return float(np.sqrt(units.n / (units.n - 1) * (units.multiplicity @ per_unit**2)) / n)


def gwet_influence(counts: Floats, totals: Floats, w: Floats) -> Floats:
    """(P,) contributions to AC1 / AC2 of patterns (P, q) that occur totals (P,) times.

    p_e|i = T sum_k (n_ik / n_i)(1 - pi_k) / (q (q - 1)). Source: Gwet 2008 (doi 10.1348/000711006X126600).
    """
    q = counts.shape[1]
    shares, pi = _shares(counts), _prevalence(counts, totals)
    p_e_i = w.sum() * (shares * (1 - pi)).sum(axis=1) / (q * (q - 1))
    p_e = w.sum() * float((pi * (1 - pi)).sum()) / (q * (q - 1))
    return _contributions(counts, totals, w, p_e, p_e_i)


def brennan_prediger_influence(counts: Floats, totals: Floats, w: Floats) -> Floats:
    """(P,) contributions to Brennan-Prediger of patterns (P, q): chance agreement is a constant, p_e|i = T / q^2.

    Source: Gwet 2008 (doi 10.1348/000711006X126600), with the p_e of Brennan & Prediger 1981.
    """
    p_e = float(w.mean())
    return _contributions(counts, totals, w, p_e, np.full(len(counts), p_e))


def fleiss_influence(counts: Floats, totals: Floats, w: Floats) -> Floats:
    """(P,) contributions to Fleiss' kappa of patterns (P, q) with agreement weights w (identity: the kappa itself).

    p_e|i = sum_kl w_kl (n_ik / n_i) pi_l. Source: Gwet 2008 (doi 10.1348/000711006X126600), with Fleiss' p_e.
    """
    shares, pi = _shares(counts), _prevalence(counts, totals)
    return _contributions(counts, totals, w, float(pi @ w @ pi), shares @ (w @ pi))


def _contributions(counts: Floats, totals: Floats, w: Floats, p_e: float, p_e_i: Floats) -> Floats:
    """kappa_i - 2 (1 - kappa)(p_e|i - p_e)/(1 - p_e), kappa_i = (N/N')(p_a|i - p_e)/(1 - p_e), 0 where n_i < 2."""
    paired = counts.sum(axis=1) >= 2
    p_a_i = item_agreement(counts, w)
    scale = totals.sum() / (totals @ paired)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.where(paired, scale * (p_a_i - p_e) / (1 - p_e), 0)
        kappa = (float(totals @ p_a_i / (totals @ paired)) - p_e) / (1 - p_e)
        return np.asarray(own - 2 * (1 - kappa) * (p_e_i - p_e) / (1 - p_e))


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def _prevalence(counts: Floats, totals: Floats) -> Floats:
    return np.asarray(totals @ _shares(counts) / (totals @ (counts.sum(axis=1) >= 1)))
