"""How many labels, which raters, whose language: planning the human side (METHODS 8)."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

import numpy as np
from numpy.typing import NDArray

from analytics.stats.judge import alt_test

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
    score: alt_test.Score,
    cluster: NDArray[np.integer] | None = None,
    epsilon: float = 0.15,
    min_items: int = 30,
    simulations: int = 200,
) -> float | None:
    """Share of simulated studies of n items, drawn from a pilot (M,), (M, J), in which the judge passes the test.

    Whole clusters (M,) are drawn, as many as make n items on average, and the test takes them for its witnesses.
    ``score`` and ``min_items`` are those of the test (``alt_test.measured``, ``alt_test.run``). None where no simulated
    study has an annotator with enough items: the test would say nothing, which is not a failure of the judge.
    """
    names = [str(j) for j in range(humans.shape[1])]
    of_cluster = np.unique(np.arange(len(judge)) if cluster is None else cluster, return_inverse=True)[1]
    members = np.split(np.argsort(of_cluster, kind="stable"), np.cumsum(np.bincount(of_cluster))[:-1])
    n_clusters = max(1, round(n_items * len(members) / len(judge)))
    studies = []
    for _ in range(simulations):
        chosen = [members[index] for index in rng.integers(0, len(members), n_clusters)]
        drawn, witness = np.concatenate(chosen), np.repeat(np.arange(n_clusters), [len(items) for items in chosen])
        studies.append(
            alt_test.run(
                judge[drawn], humans[drawn], names, epsilon=epsilon, score=score, min_items=min_items, cluster=witness
            )
        )
    if all(study.omega is None for study in studies):
        return None
    return sum(study.passes for study in studies) / simulations


def _z(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))
