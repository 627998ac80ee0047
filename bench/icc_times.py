"""How long do six intraclass correlations with intervals take, beside pingouin? ``python -m bench.icc_times``.

The same scores as a table of one row per score, in turn here and in a process of the interpreter ``--python`` that has
pingouin (GPL: not a dependency; ``python -m venv /tmp/pg && /tmp/pg/bin/pip install pingouin``). Without it only our
times are printed, and that is said. Each time is the median of the repeats after one that is not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

from analytics.stats.agreement.rater_agreement import agreement_report
from analytics.stats.agreement.reliability import FORMS, iccs
from analytics.stats.core.scales import scale_of
from analytics.stats.core.validation import ratings_table

SHAPES = ((5_000, 5), (200, 4))
THEIRS = """
import json, statistics, sys, time, warnings
warnings.simplefilter("ignore")
import pandas as pd, pingouin
frame, taken = pd.read_csv(sys.argv[1]), []
for _ in range(int(sys.argv[2]) + 1):
    start = time.perf_counter()
    found = pingouin.intraclass_corr(frame, targets="item", raters="rater", ratings="score")
    taken.append(time.perf_counter() - start)
value = dict(zip(found["Type"], map(float, found["ICC"])))
print(json.dumps([statistics.median(taken[1:]), value, pingouin.__version__]))
"""


def scores_to_time(items: int, raters: int) -> pd.DataFrame:
    """Normal scores: a quality of each item, a severity of each rater, and noise."""
    rng = np.random.default_rng(items)
    scores = rng.normal(size=(items, 1)) + 0.3 * rng.normal(size=raters) + rng.normal(size=(items, raters))
    item, rater = np.divmod(np.arange(scores.size), raters)
    return pd.DataFrame({"item": item, "rater": [f"r{number}" for number in rater], "score": scores.ravel()})


def timed(call: Callable[[], object], repeats: int) -> float:
    """The median of the seconds that a call takes."""
    taken = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return median(taken[1:])


def _rows(python: str, repeats: int) -> None:
    print("| items x raters | what | ours, ms | pingouin, ms | ours / pingouin |\n|---|---|---|---|---|")
    for items, raters in SHAPES:
        frame = scores_to_time(items, raters)
        matrix = frame["score"].to_numpy().reshape(items, raters)
        table = ratings_table(
            frame.assign(criterion="c", rater_kind="annotator"), scales={"*": scale_of(np.unique(matrix), "interval")}
        )
        ours = {
            "six ICCs of a table of rows": lambda frame=frame: iccs(
                frame.pivot(index="item", columns="rater", values="score").to_numpy(), FORMS
            ),
            "six ICCs of an array": lambda matrix=matrix: iccs(matrix, FORMS),
            "report of a ratings table": lambda table=table: agreement_report(table, by=(), statistics=("icc",)),
        }
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scores.csv"
            frame.to_csv(path, index=False)
            theirs = subprocess.run(
                [python, "-c", THEIRS, str(path), str(repeats)], capture_output=True, text=True, check=False
            )
        answer = json.loads(theirs.stdout) if theirs.returncode == 0 else None
        for what, call in ours.items():
            taken = timed(call, repeats)
            beside = f"{1000 * answer[0]:.2f} | {taken / answer[0]:.3f}" if answer else "not installed | "
            print(f"| {items:,} x {raters} | {what} | {1000 * taken:.2f} | {beside} |", flush=True)
        if answer:
            print(f"pingouin {answer[2]}: {answer[1]}; ours: {[e.value for e in iccs(matrix, FORMS)]}", file=sys.stderr)
        elif "No module named" not in theirs.stderr:
            print(theirs.stderr, file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has pingouin")
    parser.add_argument("--repeats", type=int, default=20)
    asked = parser.parse_args()
    _rows(asked.python, asked.repeats)
