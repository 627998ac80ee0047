"""Agreement statistics side by side with what people use: ``python bench/stats_agreement.py [CROWDKIT_PYTHON]``.

Prints a table of ratios measured in one run; each time is the best of several. CROWDKIT_PYTHON is an interpreter that
has crowd-kit (it needs an environment of its own); without it that row is left out.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analytics.stats.agreement import rater_agreement
from analytics.stats.agreement.coefficient_estimates import patterns_of_codes
from analytics.stats.agreement.coefficients import krippendorff_alpha_kernel
from analytics.stats.core import resampling
from analytics.stats.core.scales import scale_of
from analytics.stats.core.tables import coded_from_matrix
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge.reference import fit

Codes = NDArray[np.int8]
X = np.arange(5.0)
CROWDKIT = """
import json, sys, time
import pandas as pd
from crowdkit.aggregation import DawidSkene
frame = pd.read_csv(sys.argv[1])
times = []
for _ in range(3):
    start = time.perf_counter()
    DawidSkene(n_iter=int(sys.argv[2]), tol=0).fit_predict(frame)
    times.append(time.perf_counter() - start)
print(json.dumps(min(times)))
"""


def best(action: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def random_codes(n_items: int, n_raters: int = 3, missing: float = 0.2) -> Codes:
    """Codes of raters who agree more often than not; -1 where missing."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 5, (n_items, 1))
    codes = np.where(rng.random((n_items, n_raters)) < 0.6, truth, rng.integers(0, 5, (n_items, n_raters)))
    return np.where(rng.random(codes.shape) < missing, -1, codes).astype(np.int8)


def ours_alpha(codes: Codes, level: str) -> float:
    patterns = patterns_of_codes(codes, 5)
    return float(krippendorff_alpha_kernel(patterns.counts, patterns.weights, X, level)[0])  # type: ignore[arg-type]


def ours_bootstrap(codes: Codes, level: str) -> resampling.Interval:
    patterns = patterns_of_codes(codes, 5)
    return resampling.bootstrap(
        lambda weights: krippendorff_alpha_kernel(patterns.counts, weights, X, level),  # type: ignore[arg-type]
        patterns.units,
        rng=np.random.default_rng(0),
        resamples=1500,
    )


def alpha_rows() -> list[str]:
    codes = random_codes(333_334)
    scores = np.where(codes < 0, np.nan, codes.astype(float)).T
    rows = []
    for level in ("nominal", "ordinal"):
        theirs = best(lambda level=level: krippendorff.alpha(scores, level_of_measurement=level), 3)  # type: ignore[misc]
        ours = best(lambda level=level: ours_alpha(codes, level), 9)  # type: ignore[misc]
        same = abs(ours_alpha(codes, level) - krippendorff.alpha(scores, level_of_measurement=level))
        rows.append(
            row(f"alpha {level}, 1 M ratings", "krippendorff 1 x", theirs, ours, ">= 50", f"differ by {same:.0e}")
        )
    tracemalloc.start()
    ours_alpha(codes, "ordinal")
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return [*rows, f"| memory beyond the input, alpha on 1 M ratings | | | {peak:.1f} MB | | <= 64 MB | |"]


def bootstrap_rows() -> list[str]:
    small, large = random_codes(1000), random_codes(333_000)
    rows = []
    for level in ("nominal", "ordinal"):
        theirs = best(lambda level=level: package_loop(small, level, 100), 3) * 15  # type: ignore[misc]
        ours = best(lambda level=level: ours_bootstrap(small, level), 9)  # type: ignore[misc]
        many = best(lambda level=level: ours_bootstrap(large, level), 5)  # type: ignore[misc]
        name = f"alpha {level}, 1,500 resamples of 1,000 x 3"
        rows.append(row(name, "loop over krippendorff (100 timed, x 15)", theirs, ours, ">= 60", ""))
        rows.append(f"| the same over 333,000 x 3 | the 1,000 x 3 one | {ours * 1e3:.1f} ms | {many * 1e3:.1f} ms "
                    f"| {many / ours:.1f} x | <= 10 x | |")  # fmt: skip
    return rows


def package_loop(codes: Codes, level: str, resamples: int) -> list[float]:
    rng = np.random.default_rng(0)
    scores = np.where(codes < 0, np.nan, codes.astype(float)).T
    return [
        krippendorff.alpha(scores[:, rng.integers(0, len(codes), len(codes))], level_of_measurement=level)
        for _ in range(resamples)
    ]


def dawid_skene_row(interpreter: str) -> str:
    """100,000 labels: 20,000 items, 5 of 50 annotators each, 5 points; both run the same number of iterations."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 5, (20_000, 1))
    scores = np.full((20_000, 50), np.nan)
    who = np.argsort(rng.random(scores.shape), axis=1)[:, :5]
    given = np.where(rng.random(who.shape) < 0.6, truth, rng.integers(0, 5, who.shape))
    np.put_along_axis(scores, who, given, axis=1)
    cell = coded_from_matrix(scores, scale=scale_of(range(5), "nominal"))
    iterations = 20
    ours = best(lambda: fit(cell, iterations=iterations, tolerance=0), 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.csv"
        pd.DataFrame({"task": cell.item, "worker": cell.rater, "label": cell.code}).to_csv(path, index=False)
        command = [interpreter, "-c", CROWDKIT, str(path), str(iterations)]
        theirs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return row(f"Dawid-Skene, 100,000 labels, {iterations} iterations", "crowd-kit", theirs, ours, ">= 4", "")


def campaign_row() -> str:
    """68 criteria, 490,000 ratings: 11,500 answers x about 16 criteria x 2 to 5 raters, all intervals resampled."""
    rng = np.random.default_rng(3)
    parts = []
    for answer in range(11_500):
        for criterion in rng.choice(68, 16, replace=False):
            raters = rng.choice(40, int(rng.choice([2, 3], p=[0.34, 0.66])), replace=False)
            parts.append((answer, criterion, raters))
    sizes = [len(raters) for *_, raters in parts]
    frame = pd.DataFrame(
        {
            "item": np.repeat([answer for answer, *_ in parts], sizes),
            "criterion": np.repeat([criterion for _, criterion, _ in parts], sizes),
            "rater": np.concatenate([raters for *_, raters in parts]),
        }
    )
    frame = frame.iloc[:490_000].assign(score=rng.choice(3, min(490_000, len(frame)), p=[0.2, 0.3, 0.5]))
    wanted = ("percent_agreement", "fleiss_kappa", "krippendorff_alpha", "gwet_ac", "verdict_confidence")
    start = time.perf_counter()
    table = ratings_table(frame)
    checked = time.perf_counter() - start
    found = rater_agreement.agreement_report(table, by=("criterion",), statistics=wanted, bootstrap=2000)
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"| 68 criteria, {len(frame):,} ratings, {len(found)} estimates with 2,000 resamples | | | {seconds:.1f} s "
        f"({checked:.1f} s of it validation), peak {memory:.0f} MB of the whole run | | <= 10 s, <= 1 GB | |"
    )


def row(what: str, against: str, theirs: float, ours: float, target: str, remark: str) -> str:
    ratio = f"{theirs / ours:.0f} x"
    return f"| {what} | {against} | {theirs * 1e3:.1f} ms | {ours * 1e3:.1f} ms | {ratio} | {target} | {remark} |"


def _main(argv: list[str]) -> None:
    rows = [*alpha_rows(), *bootstrap_rows(), campaign_row()]
    if argv:
        rows.append(dawid_skene_row(argv[0]))
    head = ["| what | against | theirs | ours | ratio | target | |", "|---|---|---|---|---|---|---|"]
    sys.stdout.write("\n".join([*head, *rows]) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
