"""Do 95 % intervals of tau-b, rho and inversions cover? ``python -m bench.coverage_rankings [POPULATION ...]``.

Generators of known quality in two languages are scored on n scenarios, again and again, and each kind of interval is
asked for. Printed, per population, n and kind: the share of samples whose interval holds the truth, of tau-b, rho and
inversions, the Monte Carlo error of the first, and the mean width of tau-b's interval.

``compatible`` is the default of ``stats stability`` (analytics/stats/ranking/concordance.py); ``percentile`` was, and
is the paper's; ``basic`` reflects it about the value seen; ``m of n`` is the percentile interval of n^(2/3) scenarios
drawn out of n.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.stats.ranking import concordance
from analytics.stats.ranking.concordance import Scores

Floats = NDArray[np.float64]
Rng = np.random.Generator

SIMULATIONS = 2000
RESAMPLES = 500
SIZES = (50, 100, 200)
TAILS = (0.025, 0.975)


@dataclass(frozen=True, slots=True)
class Population:
    """True quality (G, 2) of generators in two languages, in standard deviations of a score."""

    quality: Floats
    parallel: bool = True
    rounded: bool = False

    def draw(self, n: int, rng: Rng) -> Scores:
        """n scenarios in each language, the same ones when parallel."""
        shape = (n, *self.quality.shape)
        scenario, generator, language = (a.ravel() for a in np.indices(shape))
        shared = 0.5 * rng.normal(size=(n, 1, 1) if self.parallel else (n, 1, 2))
        score = self.quality + shared + rng.normal(size=shape)
        if not self.parallel:
            scenario = scenario + n * language
        names = tuple(map(str, range(shape[1])))
        return Scores(self._on_scale(score).ravel(), generator, language, scenario, names, ("en", "et"))

    def truth(self) -> Floats:
        """(3,) tau-b, rho and inversions of the true means."""
        quality = self.quality
        if self.rounded:
            quality = concordance.board(self.draw(400_000, np.random.default_rng(4)))
        found = concordance.compare_rankings(*quality.T)
        return np.array([found.tau_b, found.spearman, found.inversions], dtype=np.float64)

    def _on_scale(self, score: Floats) -> Floats:
        return np.clip(np.round(score + 2), 0, 4) if self.rounded else score


def _sides(first: list[float], second: list[float]) -> Floats:
    return np.array([first, second]).T


NEIGHBOURS = _sides([0, 0.25, 0.5, 0.75, 1, 1.25], [0, 0.5, 0.25, 0.75, 1, 1.25])
"""A quarter of a standard deviation apart; one pair of neighbours is turned round."""
TWELVE = _sides(list(np.arange(12) / 12), list(np.array([1, 0, 2, 3, 5, 4, 6, 7, 9, 8, 11, 10]) / 12))

POPULATIONS = {
    "separated": Population(2 * NEIGHBOURS),
    "neighbours": Population(NEIGHBOURS),
    "neighbours, points 0 to 4": Population(NEIGHBOURS, rounded=True),
    "neighbours, not parallel": Population(NEIGHBOURS, parallel=False),
    "close": Population(NEIGHBOURS / 3),
    "close in one language": Population(_sides([0, 1, 2, 3, 4, 5], [0, 0.01, 0.02, 0.03, 0.04, 0.05])),
    "twelve, close": Population(TWELVE),
    "two generators": Population(_sides([0, 0.1], [0, 0.1])),
    "one tie": Population(_sides([0, 1, 2, 3, 4, 5], [0, 0, 1, 2, 3, 4])),
    "tied pairs in one language": Population(_sides([0, 0.5, 1, 1.5, 2, 2.5], [0, 0, 1, 1, 2, 2])),
    "tied threes": Population(_sides([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1])),
}


def _main() -> None:
    """One table to standard output, rows as soon as they are known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("populations", nargs="*", metavar="POPULATION", help="; ".join(POPULATIONS))
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    arguments = parser.parse_args()
    print("| generators | n | interval | tau-b | rho | inversions | MC error | width of tau-b |")
    print("|---" * 8 + "|")
    for name in arguments.populations or POPULATIONS:
        for n in SIZES:
            for row in ranking_coverage(POPULATIONS[name], n, arguments.simulations):
                print(f"| {name} | {n} | {row} |", flush=True)


def ranking_coverage(population: Population, n: int, simulations: int) -> Iterator[str]:
    """A row for each kind of interval."""
    rng, truth = np.random.default_rng([11, n]), population.truth()
    found = [intervals(population, n, rng) for _ in range(simulations)]
    for kind in found[0]:
        low, high = np.moveaxis(np.array([one[kind] for one in found]), -1, 0)
        share = ((low - 1e-9 <= truth) & (truth <= high + 1e-9)).mean(axis=0)
        error = (share[0] * (1 - share[0]) / simulations) ** 0.5
        shares = " | ".join(f"{one:.3f}" for one in share)
        yield f"{kind} | {shares} | {error:.3f} | {(high - low)[:, 0].mean():.2f}"


def intervals(population: Population, n: int, rng: Rng) -> dict[str, Floats]:
    """(3, 2) bounds of tau-b, rho and inversions of one sample, by kind of interval."""
    scores = population.draw(n, rng)
    means = concordance.board(scores)
    boards = concordance.resampled_boards(scores, resamples=RESAMPLES, rng=rng, parallel=population.parallel)
    compatible = concordance.rank_intervals(means, boards, n_scenarios=n)
    percentile = _quantiles(boards)
    value = ranked(means[None])[:, :1]
    # A mean of m scenarios lies further from its own by the root of n / m.
    fewer = means + (boards - means) * n ** (1 / 6)
    return {
        "compatible": np.array([[one.low, one.high] for one in compatible], dtype=np.float64),
        "percentile": percentile,
        "basic": 2 * value - percentile[:, ::-1],
        "m of n": _quantiles(fewer),
    }


def ranked(boards: Floats) -> Floats:
    """(3, B) tau-b, rho and inversions of boards (B, G, 2)."""
    s, t = np.moveaxis(concordance.rank_pairs(boards), -1, 0)
    return np.stack(
        [concordance.tau_b(s, t), concordance.rank_spearman(s, t, boards.shape[1]), concordance.inversions(s, t)]
    )


def _quantiles(boards: Floats) -> Floats:
    return np.nanquantile(ranked(boards), TAILS, axis=1).T


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _main()
