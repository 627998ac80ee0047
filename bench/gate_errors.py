"""How often does the gate pass a judge that is exactly at a threshold? ``python -m bench.gate_errors [SIMULATIONS]``.

Each scenario draws campaigns in which the judge's true figure lies on the threshold of one condition and is good
otherwise, and counts how often that condition holds and how often the decision is the use that it guards or a wider
one. The true figures come from 200,000 items. Asked for: 5 % at most.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analytics.stats.core.scales import Scale
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge.alt_test import advantage
from analytics.stats.planning.gate import PRESETS, Decision, gated_cells

Floats = NDArray[np.float64]
Rng = np.random.Generator
Judge = Callable[[Floats, NDArray[np.intp], Rng], Floats]
THRESHOLDS = PRESETS["skilled"]
SCALE = Scale(points=(0, 1, 2, 3, 4, 5, 6), level="ordinal")
MARGIN = THRESHOLDS.bias_margin * 6
LARGE = 200_000
GENERATORS = 4
ALONE = (Decision.JUDGE_ALONE,)
CORRECTED = (*ALONE, Decision.JUDGE_WITH_CORRECTION)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A judge at the threshold of a condition; decisions in `passes` are wrong. `per_cluster`: items of a dialogue.

    `unreadable`: the share of items whose replies cannot be read. `flips`: the share whose second reply differs.
    """

    name: str
    condition: str
    passes: tuple[Decision, ...]
    judge: Judge
    per_cluster: int = 1
    unrated: int = 0
    unreadable: float = 0.0
    flips: float = 0.0


def quality(generator: NDArray[np.intp], rng: Rng) -> Floats:
    """(N,) what an item is worth, within 1 to 5; generators are half a point apart."""
    return np.clip(np.round(2.25 + 0.5 * generator + rng.normal(0, 0.8, len(generator))), 1, 5)


def annotator_scores(truth: Floats, rng: Rng) -> Floats:
    """(N, 3) what annotators give: a point off in two of five."""
    return np.asarray(truth[:, None] + rng.choice([-1.0, 0.0, 1.0], p=[0.2, 0.6, 0.2], size=(len(truth), 3)))


def at_margin(truth: Floats, cluster: NDArray[np.intp], rng: Rng) -> Floats:
    """A point too high in a share of dialogues equal to the margin: people are symmetric, so the bias is the margin."""
    lifted = rng.random(int(cluster.max()) + 1) < MARGIN
    return truth + lifted[cluster]


def wrong_by(share: float) -> Judge:
    """The truth, but three points off, to either side within the scale, in a share of the items."""

    def judge(truth: Floats, cluster: NDArray[np.intp], rng: Rng) -> Floats:
        off = np.where(truth + 3 > 6, -3.0, np.where(truth - 3 < 0, 3.0, rng.choice([-3.0, 3.0], len(truth))))
        return truth + np.where(rng.random(len(truth)) < share, off, 0)

    return judge


def at_epsilon(rng: Rng) -> float:
    """The share of wrong items with which annotators lead the judge by epsilon, by bisection."""
    truth = quality(rng.integers(0, GENERATORS, LARGE), rng)
    given, low, high = annotator_scores(truth, rng), 0.0, 1.0
    for _step in range(20):
        share = (low + high) / 2
        scores = wrong_by(share)(truth, np.arange(LARGE), np.random.default_rng(1))
        judge_wins, annotator_wins = advantage(scores, given, "rmse")
        low, high = (share, high) if float((annotator_wins - judge_wins).mean()) < THRESHOLDS.epsilon else (low, share)
    return (low + high) / 2


def flawless(truth: Floats, cluster: NDArray[np.intp], rng: Rng) -> Floats:
    """It sees what an item is worth."""
    return truth


def blind(truth: Floats, cluster: NDArray[np.intp], rng: Rng) -> Floats:
    """It does not look at the item: its correction gains nothing."""
    return rng.integers(0, 7, len(truth)).astype(float)


def swapped(truth: Floats, cluster: NDArray[np.intp], rng: Rng) -> Floats:
    """Replaced by `drawn`: the second and the third generator change places, so that tau-b is .67."""
    return truth


def drawn(scenario: Scenario, n: int, rng: Rng) -> pd.DataFrame:
    """A campaign: n rated items and what the judge alone scored, the judge twice with the same score."""
    total = n + scenario.unrated
    generator = np.arange(total) // scenario.per_cluster % GENERATORS
    cluster = np.arange(total) // scenario.per_cluster
    truth = quality(generator, rng)
    given = annotator_scores(truth, rng)
    seen = truth
    if scenario.judge is swapped:
        seen = np.clip(truth + np.array([0.0, 1.0, -1.0, 0.0])[generator], 0, 6)
    scores = scenario.judge(seen, cluster, rng)
    item = np.arange(total)
    about = {
        "item": item,
        "cluster": cluster,
        "generator": generator.astype(str),
        "length": 200 + rng.integers(0, 400, total),
    }
    items = pd.DataFrame(about).assign(criterion="c", language="et")
    rows = [
        items[:n].assign(rater=f"a{j}", rater_kind="annotator", score=given[:n, j], repeat=0)
        for j in range(given.shape[1])
    ]
    again = np.where(rng.random(total) < scenario.flips, np.where(scores < 6, scores + 1, scores - 1), scores)
    unreadable = rng.random(total) < scenario.unreadable
    rows += [
        items.assign(
            rater="judge", rater_kind="judge", score=np.where(unreadable, np.nan, given_by_judge), repeat=repeat
        )
        for repeat, given_by_judge in enumerate((scores, again))
    ]
    return pd.concat(rows, ignore_index=True).astype({"item": str, "cluster": str})


def passed(scenario: Scenario, n: int, simulations: int) -> tuple[float, float]:
    """How often the condition holds, and how often the decision is one of the wrong ones.

    Thresholds of the other shares are wide, so that the decision depends on this condition.
    """
    wide: dict[str, Any] = {"readable": 0.8, "flip_rate": 0.3}
    wide.pop(scenario.condition, None)
    thresholds = replace(THRESHOLDS, **wide)
    holds = wrong = 0
    for seed in range(simulations):
        rng = np.random.default_rng([seed, n])
        table = ratings_table(drawn(scenario, n, rng), scales={"c": SCALE})
        (cell,) = gated_cells(table, thresholds, judge="judge", length="length", bootstrap=200, seed=seed)
        found = {each.name: each.holds for each in (*cell.verdict.findings, *cell.verdict.others)}
        holds += found[scenario.condition]
        wrong += cell.verdict.decision in scenario.passes
    return holds / simulations, wrong / simulations


def _simulate() -> None:
    warnings.simplefilter("ignore")
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    worse = wrong_by(at_epsilon(np.random.default_rng(3)))
    scenarios = (
        Scenario("bias on the margin", "bias", ALONE, at_margin),
        Scenario("bias on the margin, four items a dialogue", "bias", ALONE, at_margin, per_cluster=4),
        Scenario("behind the annotators by epsilon", "alt_test", ALONE, worse),
        Scenario("1 % of replies unreadable", "readable", ALONE, flawless, unreadable=1 - THRESHOLDS.readable),
        Scenario("8 % of items flip", "flip_rate", ALONE, flawless, flips=THRESHOLDS.flip_rate),
        Scenario(
            "8 % flip, four items a dialogue", "flip_rate", ALONE, flawless, per_cluster=4, flips=THRESHOLDS.flip_rate
        ),
        Scenario("a judge that does not look", "ppi_gain", CORRECTED, blind, unrated=200),
        Scenario("two of four generators swapped", "tau_b", (Decision.RANKING_ONLY,), swapped),
    )
    print("| judge | condition | rated items | condition met | wrong decision | MC error |\n|---|---|---|---|---|---|")
    for scenario in scenarios:
        for n in (40, 100, 400) if scenario.condition in ("readable", "flip_rate") else (40, 100):
            holds, wrong = passed(scenario, n, simulations)
            error = (max(wrong * (1 - wrong), 1e-9) / simulations) ** 0.5
            print(
                f"| {scenario.name} | {scenario.condition} | {n} | {holds:.3f} | {wrong:.3f} | {error:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    _simulate()
