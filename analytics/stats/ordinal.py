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


STEPS = 100
FLAT = 1e-10
"""A Newton step that gains less likelihood than this per observation is the last."""


def fit_ordinal(codes: Codes, columns: Floats, *, ridge: float = 0.0) -> OrdinalFit:
    """Maximum likelihood for codes 0..q-1 (N,), each of them used, on columns (N, p), less ``ridge`` times b'b.

    Newton's method, the likelihood being concave in slopes and cuts together (Pratt 1981, doi:
    10.1080/01621459.1981.10477613); scipy.optimize would do, at a second's import. Source: McCullagh 1980,
    doi:10.1111/j.2517-6161.1980.tb01109.x.
    """
    n, p, q = len(codes), columns.shape[1], int(codes.max()) + 1
    shares = np.bincount(codes, minlength=q)[::-1].cumsum()[::-1][1:] / n
    theta = np.concatenate([np.zeros(p), np.log((1 - shares) / shares)])
    penalty = np.concatenate([np.full(p, ridge), np.zeros(q - 1)])
    edges = _edges(codes, columns, q)
    loss, gradient, hessian = _likelihood(theta, edges, codes, penalty)
    for _ in range(STEPS):
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0].astype(np.float64)
        found = _descended(theta, step, loss, edges, codes, penalty)
        if found is None:
            break
        theta, gain = theta - found[0], loss - found[1][0]
        loss, gradient, hessian = found[1]
        if gain < FLAT * n:
            break
    return OrdinalFit(theta[:p], theta[p:], loss)


def _edges(codes: Codes, columns: Floats, q: int) -> tuple[Floats, Floats]:
    """Design of the logits of P(Y >= k) and P(Y > k), (N, p + q - 1) each, for the category k of each observation."""
    cuts = -np.eye(q + 1)[:, 1:q]
    return np.hstack([columns, cuts[codes]]), np.hstack([columns, cuts[codes + 1]])


def _likelihood(
    theta: Floats, edges: tuple[Floats, Floats], codes: Codes, penalty: Floats
) -> tuple[float, Floats, Floats]:
    """Penalised negative log-likelihood with its gradient and Hessian; infinite where cuts cross."""
    from scipy.special import expit

    lower, upper = edges
    last = int(codes.max())
    u, v = np.where(codes > 0, expit(lower @ theta), 1.0), np.where(codes < last, expit(upper @ theta), 0.0)
    share = u - v
    if (share <= 0).any():
        return float("inf"), theta, np.eye(len(theta))
    du, dv = u * (1 - u) / share, v * (1 - v) / share
    gradient = -(lower.T @ du - upper.T @ dv) + 2 * penalty * theta
    cross = lower.T @ (upper * (du * dv)[:, None])
    own = lower.T @ (lower * (du * (1 - 2 * u) - du**2)[:, None])
    other = upper.T @ (upper * (-dv * (1 - 2 * v) - dv**2)[:, None])
    hessian = -(own + other + cross + cross.T) + 2 * np.diag(penalty)
    return float(-np.log(share).sum() + penalty @ theta**2), gradient, hessian


def _descended(
    theta: Floats, step: Floats, loss: float, edges: tuple[Floats, Floats], codes: Codes, penalty: Floats
) -> tuple[Floats, tuple[float, Floats, Floats]] | None:
    """The largest of step, step/2, ... that lowers the loss, and what is there; None when none does."""
    for halvings in range(30):
        shorter = step / 2**halvings
        there = _likelihood(theta - shorter, edges, codes, penalty)
        if there[0] < loss:
            return shorter, there
    return None
