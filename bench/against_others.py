"""Sixty random tables through our statistics and through other people's packages, compared at 1e-6.

    python -m bench.against_others --others OTHER/bin/python

OTHER is an environment with irrCAC, krippendorff, pingouin, statsmodels, scikit-learn and pandas < 3 (irrCAC is wrong
without a word under pandas 3): ``python -m venv OTHER; OTHER/bin/pip install irrCAC krippendorff pingouin statsmodels
scikit-learn 'pandas<3'``. Nothing is skipped: a package that is missing ends the run. Both sides get the same scale,
declared in full. Each figure that a package gives is compared; one that we leave undefined is a difference unless
``AGREED`` says why. The exit status is 1 when anything differs. ``--only 17`` lists the figures of one table.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analytics.stats.agreement import rater_agreement, reliability
from analytics.stats.core.scales import LEVELS, Scale
from analytics.stats.core.validation import ratings_table
from bench.other_packages import PACKAGES, figure_key

TOLERANCE = 1e-6
TABLES = 60
LARGE = (7000, 5)
"""Items and raters of the table with more distinct scores than 16 bits can number."""
CATEGORICAL = (
    "percent_agreement", "percent_agreement_pooled", "percent_agreement_exact", "percent_agreement_adjacent",
    "cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "gwet_ac", "brennan_prediger", "conger_kappa", "icc",
    "variance_component", "panel_reliability",
)  # fmt: skip
NUMERIC = ("krippendorff_alpha", "icc", "variance_component", "panel_reliability")
OUTSIDE = reliability.VALUE_OUTSIDE
NONE_MEAN_OF_K = "the lower bound of the mean of k raters is minus infinity"
AGREED = {
    ("icc", NONE_MEAN_OF_K): "1 + (k - 1) low <= 0: the step-up has its pole there, so the package's bound lies "
    "on the wrong side of the value",
    ("icc", OUTSIDE): "McGraw and Wong's approximate bounds of ICC(2,.) miss a value below 0",
}
"""Statistic and reason of a figure that we rightly do not give where a package gives a number."""


@dataclass(slots=True)
class ScoreTable:
    """Scores (items, raters), NaN where missing; the points declared, None where scores are continuous."""

    name: str
    scores: np.ndarray[Any, Any]
    points: list[float] | None
    words: str


def draw_scores(seed: int, number: int) -> ScoreTable:
    """The table of a number: the same on every machine; the last has 35,000 distinct scores."""
    rng = np.random.default_rng([seed, number])
    if number == TABLES - 1:
        scores = rng.normal(size=(LARGE[0], 1)) + 0.5 * rng.normal(size=(1, LARGE[1])) + rng.normal(size=LARGE)
        return ScoreTable("large", scores, None, f"{len(np.unique(scores))} distinct scores")
    n, r = int(np.exp(rng.uniform(np.log(5), np.log(201)))), int(rng.integers(2, 9))
    missing = float(rng.choice([0, 0, 0.1, 0.2, 0.4]))
    continuous = number % 3 == 2
    scores, points, words = (_numbers if continuous else _grades)(n, r, rng)
    scores = _with_gaps(scores, missing, rng)
    return ScoreTable(str(number), scores, points, f"{words}; {n} x {r}; {missing:.0%} missing")


def _grades(n: int, r: int, rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], list[float], str]:
    """Raters who repeat an item's own grade or draw another: even, skewed, or with points that nobody uses."""
    q = int(rng.integers(2, 8))
    points = list(range(1, q + 1)) if rng.random() < 0.6 else sorted(rng.choice(30, q, replace=False).tolist())
    kind = str(rng.choice(["even", "skewed", "unused points"]))
    shares = np.ones(q) if kind == "even" else 0.35 ** np.arange(q)
    if kind == "unused points" and q > 2:
        shares[rng.integers(0, q)] = 0
    shares = rng.permutation(shares / shares.sum())
    truth = rng.choice(q, (n, 1), p=shares)
    lapse = rng.random((n, r)) > rng.uniform(0.3, 0.95, (1, r))
    codes = np.where(lapse, rng.choice(q, (n, r), p=shares), truth)
    return np.array(points, dtype=float)[codes], [float(point) for point in points], f"{q} points, {kind}"


def _numbers(n: int, r: int, rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], None, str]:
    """Continuous scores: even tails or heavy, ties, large and small units, shifted far from nought."""
    kind = str(rng.choice(["normal", "lognormal", "with ties", "small unit", "far from nought"]))
    made = (
        rng.normal(size=(n, 1))
        + rng.uniform(0, 1) * rng.normal(size=(1, r))
        + rng.uniform(0.2, 2) * rng.normal(size=(n, r))
    )
    changed = {
        "lognormal": np.exp(made), "with ties": np.round(made, 1), "small unit": 1e-5 * made,
        "far from nought": 1e4 + made,
    }  # fmt: skip
    return changed.get(kind, made), None, f"continuous, {kind}"


def _with_gaps(scores: np.ndarray[Any, Any], share: float, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Scores left out at random; every rater keeps two scores, and two items all of theirs."""
    left_out = rng.random(scores.shape) < share
    left_out[:2] = False
    return np.where(left_out, np.nan, scores)


@dataclass(slots=True)
class Ours:
    """A figure of ours, or the reason there is none."""

    value: float | None
    reason: str | None


def our_figures(table: ScoreTable) -> dict[str, Ours]:
    """Figures by name, through the reader and the report that the command uses."""
    n, r = table.scores.shape
    frame = pd.DataFrame(
        {
            "item": np.repeat([f"i{i:05}" for i in range(n)], r), "criterion": "t",
            "rater": np.tile([f"{j + 1}" for j in range(r)], n), "rater_kind": "annotator",
            "score": ["" if math.isnan(score) else repr(float(score)) for score in table.scores.ravel()],
        }
    )  # fmt: skip
    found: dict[str, Ours] = {}
    for level in LEVELS if table.points else ("interval", "ratio"):
        scales = {"t": Scale(tuple(table.points), level)} if table.points else None
        first = level == "interval"
        wanted = (CATEGORICAL if table.points else NUMERIC) if first else ("krippendorff_alpha",)
        if not first and (table.name == "large" or np.nanmin(table.scores) < 0):
            continue
        read = ratings_table(frame, scales=scales, level=None if table.points else level, allow_values=True)
        for row in rater_agreement.agreement_report(read, by=("criterion",), statistics=wanted, bootstrap=0):
            e = row.estimate
            if e.statistic == "cohen_kappa" and row.raters is None:
                continue
            of_alpha = level if e.statistic == "krippendorff_alpha" else ""
            pair = "-".join(row.raters) if row.raters else ""
            if e.statistic == "panel_reliability" and (int(e.variant or 0) != r or np.isnan(table.scores).any()):
                continue
            found[figure_key(e.statistic, e.variant or "", of_alpha, pair)] = Ours(e.value, e.reason)
            found[figure_key(e.statistic, e.variant or "", of_alpha, pair, "se")] = Ours(
                e.se, e.reason or e.interval_reason
            )
    found.update(_bounds(table))
    return found


def _bounds(table: ScoreTable) -> dict[str, Ours]:
    """F bounds of every form; the report shows them unless tails are heavy, when items are left out instead."""
    whole = table.scores[~np.isnan(table.scores).any(axis=1)]
    squares = reliability.mean_squares(reliability._unit(whole)[0])  # F's own, whether tails are heavy or not
    found = {}
    for form in reliability.FORMS:
        interval = reliability._interval(squares, form, 0.95)
        shown = reliability.icc(table.scores, form)
        if (shown.method or "").startswith("F") and (shown.low, shown.high) != (interval.low, interval.high):
            raise AssertionError(f"table {table.name}: icc {form} shows other bounds than F's")
        found[figure_key("icc", form, field="low")] = Ours(interval.low, interval.interval_reason)
        found[figure_key("icc", form, field="high")] = Ours(interval.high, interval.interval_reason)
    return found


@dataclass(slots=True)
class OutcomeCounts:
    """What came of one statistic beside one package."""

    tables: set[str] = field(default_factory=set)
    compared: int = 0
    largest: float = 0.0
    neither: int = 0
    agreed: int = 0
    differences: int = 0


def compared_figures(
    table: ScoreTable, theirs: Sequence[tuple[str, str, float | None]]
) -> Iterator[tuple[str, str, str, float, str]]:
    """(statistic, package, outcome, difference, words) of every figure that a package has a name for."""
    mine = our_figures(table)
    spread = float(np.nanvar(table.scores)) or 1.0
    for name, package, value in theirs:
        statistic, variant, level, _, of = name.split("|")
        label = " ".join(part for part in (statistic, variant, level, "" if of == "value" else of) if part)
        own = mine[name]
        if own.value is None or value is None:
            alike = own.value is None and value is None
            known = own.value is None and (statistic, own.reason) in AGREED
            outcome = "neither" if alike else "agreed" if known else "different"
            yield label, package, outcome, math.nan, f"{name}: {own.value} ({own.reason}), theirs {value}"
            continue
        unit = spread if statistic == "variance_component" else 1.0
        difference = abs(own.value - value) / unit
        outcome = "compared" if difference <= TOLERANCE else "different"
        yield label, package, outcome, difference, f"{name}: {own.value!r}, theirs {value!r}"


def run_others(python: str, tables: Sequence[ScoreTable]) -> dict[str, Any]:
    """Figures of the other packages, from an interpreter that has them."""
    sent = [
        {"name": table.name, "points": table.points,
         "scores": [[None if math.isnan(score) else score for score in row] for row in table.scores.tolist()]}
        for table in tables
    ]  # fmt: skip
    program = Path(__file__).with_name("other_packages.py")
    done = subprocess.run([python, str(program)], input=json.dumps(sent), text=True, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stderr}{python} can't run the other packages. It needs {', '.join(PACKAGES)}; see --help.")
    return dict(json.loads(done.stdout))


def _main(argv: Sequence[str] | None = None) -> int:
    """Compare and print a Markdown table; 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--others", default=sys.executable, help="Python with the other packages and pandas < 3")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this table alone, every figure listed")
    arguments = parser.parse_args(argv)
    numbers = range(TABLES) if arguments.only is None else [arguments.only]
    tables = [draw_scores(arguments.seed, number) for number in numbers]
    others = run_others(arguments.others, tables)
    lines: dict[tuple[str, str], OutcomeCounts] = defaultdict(OutcomeCounts)
    for table, theirs in zip(tables, others["tables"], strict=True):
        for statistic, package, outcome, difference, words in compared_figures(table, theirs):
            line = lines[statistic, package]
            line.tables.add(table.name)
            line.compared += outcome == "compared"
            line.neither += outcome == "neither"
            line.agreed += outcome == "agreed"
            line.differences += outcome == "different"
            line.largest = max(line.largest, difference) if outcome == "compared" else line.largest
            if outcome == "different" or arguments.only is not None:
                sys.stdout.write(f"table {table.name} ({table.words}) {package} {words}: {outcome}\n")
    _show(lines, others, tables)
    return 1 if any(line.differences for line in lines.values()) else 0


def _show(lines: dict[tuple[str, str], OutcomeCounts], others: dict[str, Any], tables: Sequence[ScoreTable]) -> None:
    write = sys.stdout.write
    here = ", ".join(f"{name} {version(name)}" for name in ("numpy", "pandas", "scipy"))
    write(f"\nOurs: Python {sys.version.split()[0]}, {here}.\n")
    there = ", ".join(f"{name} {number}" for name, number in others["versions"].items())
    write(f"Theirs: Python {others['python']}, {there}.\n\n")
    write("| statistic | package | tables | compared | largest difference | undefined on both sides "
          "| not given, rightly | differences |\n|---|---|---|---|---|---|---|---|\n")  # fmt: skip
    for (statistic, package), line in lines.items():
        write(f"| {statistic} | {package} | {len(line.tables)} | {line.compared} | {line.largest:.1e} | {line.neither} "
              f"| {line.agreed} | {line.differences} |\n")  # fmt: skip
    total = [
        sum(getattr(line, name) for line in lines.values()) for name in ("compared", "neither", "agreed", "differences")
    ]
    write(f"\n{len(tables)} tables; {total[0]} figures compared at {TOLERANCE:g}, {total[1]} undefined on both sides, "
          f"{total[2]} rightly not given; {total[3]} differences\n")  # fmt: skip


if __name__ == "__main__":
    sys.exit(_main())
