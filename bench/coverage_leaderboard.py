"""Do the simultaneous intervals of the Results page cover? ``python -m bench.coverage_leaderboard [SIMULATIONS]``.

Four generators answer 200 scenarios; three people label a random share of the scenarios, and a judge that shrinks
scores and errs alike within a scenario scores all. Two processes: `parallel` (every scenario has four answers) and
`apart` (each generator has scenarios of its own). Printed: the share of samples in which all intervals of a family hold
the truth (from one sample of 40,000 scenarios), its Monte Carlo error, the share of single intervals, the mean width.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd

from analytics.stats.core.estimates import CellEstimate
from analytics.stats.core.scales import Scale
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge.leaderboard import leaderboard_report

SCENARIOS, TRUTH = 200, 40_000
LABELLED = (10, 25, 60)
SCALE = {"clarity": Scale(points=(0.0, 1.0, 2.0, 3.0, 4.0), level="ordinal")}
GENERATORS = {"atlas": 2.6, "birch": 2.4, "cedar": 2.4, "dune": 1.6}
STATISTICS = ("panel_mean", "corrected_mean", "corrected_difference")


def studied(scenarios: int, labelled: int, rng: np.random.Generator, *, parallel: bool) -> pd.DataFrame:
    """Ratings of the answers of every generator, by three people on the labelled scenarios and by the judge on all."""
    parts = []
    theme, slip = rng.normal(0, 0.7, scenarios), rng.normal(0, 0.4, scenarios)
    drawn = rng.permutation(scenarios) < labelled
    for name, level in GENERATORS.items():
        if not parallel:
            theme, slip = rng.normal(0, 0.7, scenarios), rng.normal(0, 0.4, scenarios)
            drawn = rng.permutation(scenarios) < labelled
        quality = level + theme + rng.normal(0, 0.6, scenarios)
        raters = {f"p{person}": (drawn, quality + rng.normal(0, 0.7, scenarios)) for person in range(3)}
        raters["judge"] = np.ones(scenarios, bool), 1 + 0.6 * quality + slip + rng.normal(0, 0.4, scenarios)
        prefix = "" if parallel else name
        for rater, (there, score) in raters.items():
            places = np.flatnonzero(there)
            parts.append(
                pd.DataFrame(
                    {
                        "item": [f"{name}-{place}" for place in places],
                        "cluster": [f"{prefix}{place}" for place in places],
                        "language": "en",
                        "criterion": "clarity",
                        "generator": name,
                        "rater": rater,
                        "rater_kind": "judge" if rater == "judge" else "annotator",
                        "score": np.clip(np.rint(score[there]), 0, 4),
                        "repeat": 1,
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def true_means() -> dict[str, float]:
    """The mean panel score of each generator, from one large sample."""
    frame = studied(TRUTH, TRUTH, np.random.default_rng(1), parallel=True)
    people = frame[frame["rater_kind"] == "annotator"]
    return {str(name): float(mean) for name, mean in people.groupby("generator")["score"].mean().items()}


class Held:
    """How often the intervals of each statistic held the truth, and how wide they were."""

    def __init__(self, truth: dict[str, float]) -> None:
        self.truth = truth
        self.families: dict[str, list[list[bool]]] = {name: [] for name in STATISTICS}
        self.widths: dict[str, list[float]] = {name: [] for name in STATISTICS}
        self.missing = dict.fromkeys(STATISTICS, 0)

    def add(self, rows: list[CellEstimate]) -> None:
        """The rows of one sample."""
        family: dict[str, list[bool]] = {name: [] for name in STATISTICS}
        for row in rows:
            estimate, name = row.estimate, row.estimate.statistic
            if name not in family:
                continue
            if estimate.low is None or estimate.high is None:
                self.missing[name] += 1
                continue
            true = self.truth[str(row.cell["generator"])]
            true -= self.truth[str(estimate.variant)] if name == "corrected_difference" else 0.0
            family[name].append(estimate.low <= true <= estimate.high)
            self.widths[name].append(estimate.high - estimate.low)
        for name, holds in family.items():
            if holds:
                self.families[name].append(holds)

    def line(self, name: str) -> str:
        """The figures of one statistic as cells of a table."""
        families = self.families[name]
        if not families:
            return f"{name} | | | | | {self.missing[name]} |"
        together = float(np.mean([all(holds) for holds in families]))
        alone = float(np.mean([hold for holds in families for hold in holds]))
        error = np.sqrt(together * (1 - together) / len(families))
        width = np.mean(self.widths[name])
        return f"{name} | {together:.3f} | {error:.3f} | {alone:.3f} | {width:.2f} | {self.missing[name]} |"


def coverage_lines(simulations: int) -> Iterator[str]:
    """The table, a row for each process, number of labelled scenarios and statistic."""
    truth = true_means()
    yield "| process | labelled of 200 | statistic | all hold | error | one holds | mean width | not defined |"
    yield "|---|---|---|---|---|---|---|---|"
    for parallel in (True, False):
        for labelled in LABELLED:
            rng, held = np.random.default_rng(labelled), Held(truth)
            for _study in range(simulations):
                table = ratings_table(studied(SCENARIOS, labelled, rng, parallel=parallel), scales=SCALE)
                held.add(leaderboard_report(table, judge="judge", seed=int(rng.integers(2**31))))
            for name in STATISTICS:
                yield f"| {'parallel' if parallel else 'apart'} | {labelled} | {held.line(name)}"


if __name__ == "__main__":
    for line in coverage_lines(int(sys.argv[1]) if len(sys.argv) > 1 else 1000):
        print(line, flush=True)
