"""A million ratings on a slider, through the command line: ``python -m bench.stats_sliders [--against DIRECTORY]``.

Each row is a file of items x (four annotators and a judge) x criteria with scores of 0 to 100, and the seconds,
processor seconds and memory that ``panelbench stats`` takes for it. ``--against`` names another checkout of this
repository that runs the same files, ``--limit`` the seconds after which a run is stopped, ``--ratings`` the size.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

ANNOTATORS = ("anna", "bela", "cili", "dora")
SUBCOMMANDS = {
    "agreement": ["--raters", ",".join(ANNOTATORS)],
    "calibration": ["--judge", "judge", "--reference", "mean"],
}
FILES = {
    "three decimals": {"decimals": 3},
    "three decimals, 10 criteria": {"decimals": 3, "criteria": 10},
    "three decimals, clusters of 10": {"decimals": 3, "per_cluster": 10},
    "one decimal": {"decimals": 1},
    "whole numbers": {"decimals": 0},
}


def slider(ratings: int, *, decimals: int, criteria: int = 1, per_cluster: int = 1) -> pd.DataFrame:
    """A table of ratings whose raters share the item's quality and differ in severity."""
    rng = np.random.default_rng(5)
    raters = np.array([*ANNOTATORS, "judge"])
    n = ratings // (criteria * len(raters))
    quality = rng.normal(50, 18, (n, 1, 1)) + rng.normal(0, 6, (n, criteria, 1))
    severity = rng.normal(0, 4, (1, 1, len(raters)))
    scores = np.clip(quality + severity + rng.normal(0, 9, (n, criteria, len(raters))), 0, 100).round(decimals)
    item, criterion, rater = np.indices(scores.shape).reshape(3, -1)
    frame = pd.DataFrame({"item": item, "criterion": criterion, "rater": raters[rater], "score": scores.ravel()})
    if per_cluster > 1:
        frame["cluster"] = item // per_cluster
    return frame.astype({"score": int}) if decimals == 0 else frame


def measured_command(checkout: Path, arguments: list[str], limit: float) -> str:
    """Seconds on the clock, seconds of the processor and memory of one run, or that it took too long."""
    command = [sys.executable, "-m", "analytics.stats.cli.commandline", *arguments, "--format", "csv"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        done = subprocess.run(
            command,
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout)},
            capture_output=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {limit:.0f} s"
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return f"failed: {done.stderr.decode().strip().splitlines()[-1]}"
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{seconds:.1f} s ({own:.1f} s of processor)"


def _main() -> None:
    """Rows of a table to standard output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=1_000_000)
    parser.add_argument("--against", type=Path, metavar="DIRECTORY")
    parser.add_argument("--limit", type=float, default=600)
    arguments = parser.parse_args()
    checkouts = [Path.cwd(), *([arguments.against] if arguments.against else [])]
    print("| subcommand | scores | distinct |", " | ".join(["this", "against"][: len(checkouts)]), "|")
    print("|---" * (3 + len(checkouts)) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in FILES.items():
            frame, path = slider(arguments.ratings, **shape), Path(folder) / "slider.csv"
            frame.to_csv(path, index=False)
            for subcommand, options in SUBCOMMANDS.items():
                runs = [
                    measured_command(checkout, [subcommand, str(path), *options], arguments.limit)
                    for checkout in checkouts
                ]
                print("|", " | ".join([subcommand, name, f"{frame['score'].nunique():,}", *runs]), "|", flush=True)
    print(f"\nMost memory of one run: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    _main()
