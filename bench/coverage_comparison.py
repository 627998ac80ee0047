"""Do 95 % intervals of differences and effects between judges cover? ``python -m bench.coverage_comparison``.

Four judges (two prompts by two temperatures) and three people score scenarios of two items each, again and again; the
judges' errors share a part that belongs to the scenario. Printed, per number of scenarios and statistic: the share of
samples whose interval holds the truth (from one sample of 20,000 scenarios), its Monte Carlo error, and the mean width.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from analytics.stats.core.scales import Scale
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import comparison

SIMULATIONS, RESAMPLES, TRUTH = 400, 500, 20_000
SIZES = (10, 20, 40)
SCALE = {"clarity": Scale(points=(0.0, 1.0, 2.0, 3.0), level="ordinal")}
LEVELS = {
    "a cold": {"prompt": "a", "temperature": "0"},
    "a warm": {"prompt": "a", "temperature": "1"},
    "b cold": {"prompt": "b", "temperature": "0"},
    "b warm": {"prompt": "b", "temperature": "1"},
}
NOISE = {"a cold": 0.5, "a warm": 0.8, "b cold": 0.9, "b warm": 1.3}
STATISTICS = [f"{measure}_{kind}" for measure in ("accuracy", "kappa") for kind in ("difference", "effect")]


def sample(scenarios: int, rng: np.random.Generator) -> pd.DataFrame:
    """Ratings of two items in each of so many scenarios."""
    items = 2 * scenarios
    cluster = np.repeat(np.arange(scenarios), 2)
    quality = rng.normal(1.5, 0.7, scenarios)[cluster] + rng.normal(0, 0.7, items)
    shared = rng.normal(0, 0.5, scenarios)[cluster]
    raters = {f"p{person}": ("annotator", rng.normal(0, 0.3, items)) for person in range(3)}
    raters |= {name: ("judge", shared + rng.normal(0, sd, items)) for name, sd in NOISE.items()}
    parts = [
        pd.DataFrame(
            {
                "item": np.arange(items).astype(str),
                "cluster": cluster.astype(str),
                "language": "en",
                "criterion": "clarity",
                "rater": name,
                "rater_kind": kind,
                "score": np.clip(np.rint(quality + error), 0, 3),
                "repeat": 1,
            }
        )
        for name, (kind, error) in raters.items()
    ]
    return pd.concat(parts, ignore_index=True)


def estimates(scenarios: int, rng: np.random.Generator, bootstrap: int) -> dict[tuple[str, str], Any]:
    """By statistic and what it is of, its estimate."""
    found = comparison.comparison_report(
        ratings_table(sample(scenarios, rng), scales=SCALE),
        judges=sorted(LEVELS),
        rules=[(["clarity"], None, "exclude")],
        statistics=STATISTICS,
        levels=LEVELS,
        min_items=1,  # the interval, whatever the limit for showing an effect
        bootstrap=bootstrap,
        seed=int(rng.integers(2**31)),
    )
    return {
        (row.estimate.statistic, row.estimate.variant or " - ".join(row.raters or ())): row.estimate for row in found
    }


def lines() -> Iterator[str]:
    """The table, a row for each number of scenarios and statistic."""
    truth = {key: each.value for key, each in estimates(TRUTH, np.random.default_rng(1), 0).items()}
    yield "| scenarios | statistic | covered | Monte Carlo error | mean width | without interval |"
    yield "|---|---|---|---|---|---|"
    for scenarios in SIZES:
        rng = np.random.default_rng(scenarios)
        held: dict[str, list[bool]] = {name: [] for name in STATISTICS}
        widths: dict[str, list[float]] = {name: [] for name in STATISTICS}
        without = dict.fromkeys(STATISTICS, 0)
        for _study in range(SIMULATIONS):
            for (statistic, about), estimate in estimates(scenarios, rng, RESAMPLES).items():
                if estimate.low is None:
                    without[statistic] += 1
                    continue
                held[statistic].append(estimate.low <= truth[statistic, about] <= estimate.high)
                widths[statistic].append(estimate.high - estimate.low)
        for name in STATISTICS:
            share = float(np.mean(held[name]))
            error = np.sqrt(share * (1 - share) / SIMULATIONS)
            yield (
                f"| {scenarios} | {name} | {share:.3f} | {error:.3f} | {np.mean(widths[name]):.3f} | {without[name]} |"
            )


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
