"""Dawid-Skene: what the settled score probably is, and how each annotator confuses the points, from ratings alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from analytics.stats.tables import Coded

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DawidSkene:
    """``prior`` (q,), ``confusion`` (R, q, q): P(rater gives k | true j) as [rater, j, k], ``posterior`` (N, q).

    ``log_likelihood`` of the ratings after each of the iterations; ``converged`` says whether they came to rest.
    """

    prior: Floats
    confusion: Floats
    posterior: Floats
    log_likelihood: tuple[float, ...]
    converged: bool

    @property
    def code(self) -> NDArray[np.intp]:
        """(N,) the most probable point of each item; -1 where two are equally probable to 1e-9."""
        top = np.sort(self.posterior, axis=1)
        tied = (top[:, -1] - top[:, -2] < 1e-9) if top.shape[1] > 1 else np.zeros(len(top), dtype=bool)
        return np.where(tied, -1, self.posterior.argmax(axis=1))


def fit(cell: Coded, *, smoothing: float = 0.01, iterations: int = 200, tolerance: float = 1e-7) -> DawidSkene:
    """Fit one cell (one criterion and language) of annotators' ratings by EM; judges must not be among the raters.

    E: log T_ij = log p_j + sum_{r, k} n_irk log pi_rjk, normalised over j. M: p_j = mean_i T_ij, pi_rjk proportional to
    smoothing + sum_i T_ij n_irk (a Dirichlet prior that keeps an unseen confusion possible). Starts from the raters'
    votes; stops when the log-likelihood per rating gains less than ``tolerance``. Level: nominal. Source: Dawid & Skene
    1979 (doi 10.2307/2346806); smoothing: Kim & Ghahramani 2012 (PMLR 22:619-627).
    """
    votes = _votes(cell)
    by_rater = votes.T.tocsr()
    n_raters, q = len(cell.raters), cell.scale.q
    posterior = cell.counts() / np.maximum(cell.counts().sum(axis=1, keepdims=True), 1)
    likelihoods: list[float] = []
    converged = False
    for _ in range(iterations):
        prior, confusion = _maximised(by_rater, posterior, n_raters, smoothing)
        posterior, likelihood = _expected(votes, prior, confusion)
        likelihoods.append(likelihood)
        if len(likelihoods) > 1 and abs(likelihoods[-1] - likelihoods[-2]) < tolerance * cell.code.size:
            converged = True
            break
    return DawidSkene(
        prior, confusion.reshape(n_raters, q, q).transpose(0, 2, 1), posterior, tuple(likelihoods), converged
    )


def _votes(cell: Coded) -> csr_array:
    """(N, R q) sparse: 1 where rater r gave item i the point k, at column r q + k."""
    from scipy.sparse import csr_array

    q = cell.scale.q
    ones = np.ones(cell.code.size)
    shape = (cell.n_items, len(cell.raters) * q)
    return csr_array((ones, (cell.item, cell.rater * q + cell.code)), shape=shape)


def _maximised(by_rater: csr_array, posterior: Floats, n_raters: int, smoothing: float) -> tuple[Floats, Floats]:
    """Prior (q,) and P(k | j) as (R q, q) rows r q + k and columns j."""
    q = posterior.shape[1]
    given = np.asarray(by_rater @ posterior).reshape(n_raters, q, q) + smoothing
    shares = given / np.maximum(given.sum(axis=1, keepdims=True), 1e-300)
    return posterior.mean(axis=0), shares.reshape(n_raters * q, q)


def _expected(votes: csr_array, prior: Floats, confusion: Floats) -> tuple[Floats, float]:
    """Posterior (N, q) and the log-likelihood of the ratings."""
    tiny = np.finfo(np.float64).tiny
    logs = np.asarray(votes @ np.log(np.maximum(confusion, tiny))) + np.log(np.maximum(prior, tiny))
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, float((np.log(total) + top).sum())
