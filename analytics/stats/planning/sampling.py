"""Which items to label next, and when to stop: draws with known probabilities, and sequences of intervals (METHODS 8).

Items that a judge is likely to get wrong are drawn more often. Each draw has a known probability above zero, so that
the mean from those labels stays unbiased (``ppi.active_mean``). Intervals of a sequence hold all at once, however often
somebody looks at them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHRINKAGE = 20.0
"""Labels that the error of one judge score is drawn towards that of all by."""
UNIFORM_SHARE = 0.3
"""The share of the probability that every item has alike: none is left out, and no weight becomes extreme."""
FEWEST_FOR_ERRORS = 20
"""Labels below which nothing is known of the judge's errors: all items then have one probability."""


def expected_error(y: Floats, f: Floats, *, shrinkage: float = SHRINKAGE) -> Floats:
    """(M,) root mean squared error of the judge that its score lets one expect, from labels y (M,), NaN where missing.

    v_k = (n_k m_k + s m) / (n_k + s): m_k of the n_k labels with the judge score k, m of all labels, after the judge's
    mean error is taken off; s the shrinkage. Below ``FEWEST_FOR_ERRORS`` labels all are 1. f (M,) is finite.
    """
    has_label = ~np.isnan(y)
    if has_label.sum() < FEWEST_FOR_ERRORS:
        return np.ones(len(f))
    error = y[has_label] - f[has_label]
    squared = (error - error.mean()) ** 2
    overall = float(squared.mean())
    _values, place = np.unique(f, return_inverse=True)
    counts = np.bincount(place[has_label], minlength=place.max() + 1)
    sums = np.bincount(place[has_label], weights=squared, minlength=place.max() + 1)
    spread = np.sqrt((sums + shrinkage * overall) / (counts + shrinkage))
    return np.asarray(spread[place], dtype=np.float64) if overall > 0 else np.ones(len(f))


def inclusion_probabilities(error: Floats, expected: float, *, uniform: float = UNIFORM_SHARE) -> Floats:
    """(M,) probabilities in (0, 1] that add up to the expected number of labels, n <= M.

    pi_i = min(1, c ((1 - u) e_i / mean(e) + u)), c such that sum pi = n. Source: Zrnic & Candes 2024, arXiv:2403.03208
    (section 4: a mixture with uniform draws).
    """
    if not 0 < expected <= len(error):
        raise ValueError("the expected number of labels is above 0 and at most the number of items")
    share = (1 - uniform) * error / error.mean() + uniform if error.mean() > 0 else np.ones(len(error))
    certain = np.zeros(len(error), dtype=np.bool_)
    while True:
        free = ~certain
        factor = (expected - certain.sum()) / share[free].sum() if free.any() else 0.0
        probability = np.where(certain, 1.0, np.minimum(1.0, factor * share))
        beyond = free & (factor * share >= 1)
        if not beyond.any():
            return np.asarray(probability, dtype=np.float64)
        certain |= beyond


def independent_draws(probability: Floats, *, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(M,) which items are drawn, each by itself with its own probability (Poisson sampling); their number varies."""
    return np.asarray(rng.random(len(probability)) < probability)


# --- when to stop ----------------------------------------------------------------------------------------------------
def interval_sequence(x: Floats, low: float, high: float, *, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Lower and upper bounds (n,), (n,) after each of x (n,) in [low, high]: all hold at once with this confidence.

    Predictable plug-in empirical Bernstein: with x scaled to [0, 1], mu_t = (1/2 + sum x) / (t + 1), s_t^2 = (1/4 +
    sum (x - mu)^2) / (t + 1), l_t = min(1/2, sqrt(2 log(2/a) / (s_{t-1}^2 t log(1 + t)))), the centre is sum l x /
    sum l, the half width (log(2/a) + sum 4 (x - mu_{t-1})^2 psi(l)) / sum l with psi(l) = (-log(1 - l) - l) / 4; bounds
    are those of all former ones. x are in random order. Source: Waudby-Smith & Ramdas 2024,
    doi:10.1093/jrsssb/qkad009, theorem 2.
    """
    n, alpha = len(x), 1 - confidence
    scaled = (np.asarray(x, dtype=np.float64) - low) / (high - low)
    if n == 0 or scaled.min() < 0 or scaled.max() > 1:
        raise ValueError("there are values, all within the bounds")
    t = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(scaled)) / (t + 1)
    before = np.concatenate([[0.5], mean[:-1]])
    spread = (0.25 + np.cumsum((scaled - mean) ** 2)) / (t + 1)
    spread_before = np.concatenate([[0.25], spread[:-1]])
    bet = np.minimum(0.5, np.sqrt(2 * math.log(2 / alpha) / (spread_before * t * np.log1p(t))))
    cost = 4 * (scaled - before) ** 2 * (-np.log1p(-bet) - bet) / 4
    total = np.cumsum(bet)
    centre, half = np.cumsum(bet * scaled) / total, (math.log(2 / alpha) + np.cumsum(cost)) / total
    lower = np.maximum.accumulate(np.maximum(centre - half, 0.0))
    upper = np.minimum.accumulate(np.minimum(centre + half, 1.0))
    return low + (high - low) * lower, low + (high - low) * upper
