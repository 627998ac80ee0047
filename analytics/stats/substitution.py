"""A judge in one annotator's place: how Verdict Confidence changes when it replaces a rater (S2, D.2.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

PAPER_TRIALS = 100


def substituted(counts: Counts, judge: NDArray[np.intp]) -> Floats:
    """(N,) expected confidence of each item when the judge's point replaces a random rater's.

    Counts n_ik (N, q) with n_i >= 1, the judge's point j (N,). The expectation in closed form:
    sum_k (n_ik / n_i) max_l(n_il - [l = k] + [l = j]) / n_i. Source: METHODS 1 (S2, D.2.2).
    """
    n = counts.sum(axis=1)
    expected = np.zeros(len(counts))
    for k in range(counts.shape[1]):
        after = counts.copy()
        after[:, k] -= 1
        after[np.arange(len(counts)), judge] += 1
        expected += np.where(counts[:, k] > 0, counts[:, k] / n * after.max(axis=1) / n, 0)
    return expected


def substituted_by_trials(
    counts: Counts, judge: NDArray[np.intp], *, rng: np.random.Generator, trials: int = PAPER_TRIALS
) -> Floats:
    """(trials,) mean confidence when in each trial one random rater of every item is replaced: S2's own procedure.

    Its mean over many trials is the mean of ``substituted``; 100 trials leave a Monte Carlo error of their own.
    """
    n = counts.sum(axis=1)
    cumulative = np.cumsum(counts, axis=1)
    rows, means = np.arange(len(counts)), np.empty(trials)
    for trial in range(trials):
        after = counts.copy()
        after[rows, (cumulative > rng.integers(0, n)[:, None]).argmax(axis=1)] -= 1
        after[rows, judge] += 1
        means[trial] = (after.max(axis=1) / n).mean()
    return means
