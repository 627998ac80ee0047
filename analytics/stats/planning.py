"""How many labels, which raters, whose language: planning the human side (METHODS 8)."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

import numpy as np
from numpy.typing import NDArray

from analytics.stats import alt_test

Floats = NDArray[np.float64]

FLOOR = 30
MOST_RATERS = 25


def labels_for_mean(sd: float, half_width: float, *, confidence: float = 0.95) -> int:
    """Human labels for a mean known to +- half_width: n = ceil((z sd / h)^2). Level: interval."""
    return ceil((_z(confidence) * sd / half_width) ** 2)


def labels_with_judge(sd: float, half_width: float, rho: float, *, confidence: float = 0.95) -> int:
    """The same with a judge that correlates rho with the labels and has scored everything: about n (1 - rho^2)."""
    return ceil((_z(confidence) * sd / half_width) ** 2 * (1 - rho**2))


def items_by_pilot(n_pilot: int, pilot_half_width: float, half_width: float) -> int:
    """Items for alpha or kappa known to +- half_width, from a pilot's interval: widths fall as 1 / sqrt n."""
    return ceil(n_pilot * (pilot_half_width / half_width) ** 2)


def reliability_of(n_raters: int, item: float, rater: float, residual: float) -> float:
    """Reliability of the mean of n raters from variance components: item / (item + (rater + residual) / n).

    Source: Brennan 2001, Generalizability Theory, doi:10.1007/978-1-4757-3456-0.
    """
    noise = (rater + residual) / n_raters
    return item / (item + noise) if item + noise > 0 else 1.0


def raters_per_item(item: float, rater: float, residual: float, *, target: float = 0.8) -> int | None:
    """Fewest raters whose mean is as reliable as the target; None when 25 don't suffice."""
    enough = (n for n in range(1, MOST_RATERS + 1) if reliability_of(n, item, rater, residual) >= target)
    return next(enough, None)


def allocate(
    budget: float,
    sd: Mapping[str, float],
    price: Mapping[str, float],
    *,
    size: Mapping[str, float] | None = None,
    floor: int = FLOOR,
    minimax: bool = False,
) -> dict[str, int]:
    """Labels per language within a budget: Neyman (n ~ size sd / sqrt price) or minimax interval width (n ~ sd^2).

    Every language gets ``floor`` labels first. Raises ``ValueError`` when the budget doesn't pay for them. Source:
    Cochran 1977, Sampling Techniques, section 5.5.
    """
    cost = sum(floor * price[language] for language in sd)
    if cost > budget:
        raise ValueError(f"{floor} labels in every language cost {cost:g}, more than the budget of {budget:g}")
    share = {k: sd[k] ** 2 if minimax else (size[k] if size else 1.0) * sd[k] / price[k] ** 0.5 for k in sd}
    at_floor: set[str] = set()
    while True:
        free = [k for k in sd if k not in at_floor]
        left = budget - sum(floor * price[k] for k in at_floor)
        weight = sum(share[k] * price[k] for k in free)
        labels = {k: int(left * share[k] / weight) if weight > 0 else floor for k in free}
        short = {k for k in free if labels[k] < floor}
        if not short:
            return {k: labels.get(k, floor) for k in sd}
        at_floor |= short


def alt_test_power(
    judge: Floats,
    humans: Floats,
    n_items: int,
    *,
    rng: np.random.Generator,
    epsilon: float = 0.15,
    score: alt_test.Score = "rmse",
    simulations: int = 200,
) -> float:
    """Share of simulated studies of n items, drawn from a pilot (M,), (M, J), in which the judge passes the test."""
    names = [str(j) for j in range(humans.shape[1])]
    passed = 0
    for _ in range(simulations):
        drawn = rng.integers(0, len(judge), n_items)
        passed += alt_test.run(judge[drawn], humans[drawn], names, epsilon=epsilon, score=score).passes
    return passed / simulations


def _z(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))
