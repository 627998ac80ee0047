"""Does the bias cover that of all items where being rated depends on scores? ``python -m bench.coverage_missing``.

Each process draws 240 items, a judge with an error of one point, and which items people rated; the bias of all items is
0. `rated_difference`: how often the report says that rated items differ (after Holm), by the judge's score.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analytics.stats.core.scales import range_scale
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import calibration, soundness

Floats = NDArray[np.float64]
ITEMS, ALPHA = 240, 0.05
Chance = Callable[[Floats, Floats], Floats]
PROCESSES: dict[str, tuple[Chance, int]] = {
    "rated at random": (lambda judge, truth: np.full(len(judge), 0.4), 1),
    "high judge scores rated thrice as often": (lambda judge, truth: np.where(judge > 4, 0.6, 0.2), 1),
    "the same, four items a dialogue": (lambda judge, truth: np.where(judge > 4, 0.6, 0.2), 4),
    "good texts rated thrice as often": (lambda judge, truth: np.where(truth > 4, 0.6, 0.2), 1),
}


def partly_rated(chance: Chance, per_cluster: int, rng: np.random.Generator) -> pd.DataFrame:
    """The rows of one judge and one annotator; dialogues share half of the variance of what items are worth."""
    cluster = np.arange(ITEMS) // per_cluster
    shared = rng.normal(0, 1, cluster[-1] + 1)[cluster]
    truth = 4 + (shared if per_cluster == 1 else (shared + rng.normal(0, 1, ITEMS)) / np.sqrt(2))
    judge = np.round(truth + rng.normal(0, 1, ITEMS))
    rated = rng.random(ITEMS) < chance(judge, truth)
    items = pd.DataFrame({"item": np.arange(ITEMS).astype(str), "cluster": cluster.astype(str), "criterion": "c"})
    own = items.assign(rater="j", rater_kind="judge", score=judge)
    return pd.concat([own, items.assign(rater="h", rater_kind="annotator", score=truth)[rated]])


def covered(chance: Chance, per_cluster: int, samples: int) -> dict[str, float]:
    """Shares of samples: intervals of either bias that contain 0, and differences that are said."""
    counts = dict.fromkeys(("bias", "bias_weighted", "said"), 0)
    for seed in range(samples):
        rows = partly_rated(chance, per_cluster, np.random.default_rng([seed, per_cluster]))
        table = ratings_table(rows, scales={"c": range_scale(-20, 30, None, "interval")})
        (plain,) = calibration.calibration_report(
            table, judge="j", by=("criterion",), statistics=["bias"], reference="mean", bootstrap=200
        )
        report = soundness.audit_report(table, judge="j", by=("criterion",))
        found = {
            row.estimate.statistic: row.estimate for row in report if row.estimate.variant in (None, "judge score")
        }
        for name, estimate in (("bias", plain.estimate), ("bias_weighted", found["bias_weighted"])):
            counts[name] += estimate.low is not None and estimate.low <= 0 <= (estimate.high or 0.0)
        counts["said"] += (found["rated_difference"].p_corrected or 1.0) < ALPHA
    return {name: count / samples for name, count in counts.items()}


def _simulate() -> None:
    warnings.simplefilter("ignore")
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print("| who is rated | samples | plain bias covers 0 | weighted bias covers 0 | said to differ |")
    print("|---|---|---|---|---|")
    for name, (chance, per_cluster) in PROCESSES.items():
        shares = covered(chance, per_cluster, samples)
        print(
            f"| {name} | {samples:,} | {shares['bias']:.3f} | {shares['bias_weighted']:.3f} | {shares['said']:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    _simulate()
