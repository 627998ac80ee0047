"""Proportional-odds regression: ordered categories on numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class OrdinalFit:
    """Slopes (p,), cuts (q - 1,) and negative log-likelihood of logit P(Y > k) = x b - c_k."""

    slopes: Floats
    cuts: Floats
    loss: float

    def above(self, columns: Floats) -> Floats:
        """(N, q - 1) probability of a category above each cut."""
        from scipy.special import expit

        return np.asarray(expit((columns @ self.slopes)[:, None] - self.cuts))


def fit_ordinal(codes: Codes, columns: Floats, *, ridge: float = 0.0) -> OrdinalFit:
    """Maximum likelihood for codes 0..q-1 (N,) on columns (N, p), less ``ridge`` times the squared slopes.

    Source: McCullagh 1980, doi:10.1111/j.2517-6161.1980.tb01109.x.
    """
    from scipy.optimize import minimize
    from scipy.special import expit, logit

    n, p, q = len(codes), columns.shape[1], int(codes.max()) + 1
    own = np.arange(n), codes

    def cuts_of(theta: Floats) -> Floats:
        # Steps are exponentials, so that cuts rise whatever the optimiser tries.
        return np.cumsum(np.concatenate([theta[p : p + 1], np.exp(theta[p + 1 :])]))

    def loss(theta: Floats) -> float:
        above = expit((columns @ theta[:p])[:, None] - cuts_of(theta))
        edges = np.column_stack([np.ones(n), above, np.zeros(n)])
        likelihood = (edges[:, :-1] - edges[:, 1:])[own]
        return float(-np.log(likelihood.clip(1e-300)).sum() + ridge * (theta[:p] ** 2).sum())

    cuts = logit(np.clip(1 - np.bincount(codes, minlength=q)[::-1].cumsum()[::-1][1:] / n, 1e-6, 1 - 1e-6))
    start = np.concatenate([np.zeros(p), cuts[:1], np.log(np.diff(cuts).clip(1e-3))])
    best = minimize(loss, start, method="BFGS")
    return OrdinalFit(best.x[:p], cuts_of(best.x), float(best.fun))
