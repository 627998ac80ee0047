"""Random small tables at every edge through the statistics: ``python -m bench.fuzz_stats --tables 2000 --seed 1``.

Every table is made from its own number: ``python -m bench.fuzz_stats --seed 1 --only 137`` sends one through all.
Each estimate must be finite and inside its range, or undefined with a reason; no exception and no warning; p in [0, 1];
bounds around the value where the method promises it; the rows must be writable as JSON; and the order of rows must not
matter. A table that the reader refuses must be refused in a sentence. The exit status is 1 when anything failed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from analytics.stats.agreement import rater_agreement
from analytics.stats.core.estimates import CellEstimate
from analytics.stats.core.scales import Scale, scale_of
from analytics.stats.core.tables import RatingsTable, TableError
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import alt_test, calibration, consistency, corrected_means, mcnemar, reference
from analytics.stats.planning import pilot
from analytics.stats.ranking import stability

JUDGE = "gpt"
LETTERS = ("poor", "fair", "good", "fine")
WITHIN: dict[str, tuple[float, float]] = {
    **dict.fromkeys(rater_agreement.STATISTICS[:4], (0, 1)),
    **dict.fromkeys(
        ("applicability_agreement", "accuracy", "accuracy_adjacent", "f1_weighted", "f1_macro", "f1"), (0, 1)
    ),
    **dict.fromkeys(("precision", "recall", "alt_test_omega", "alt_test_rho", "alt_test_power"), (0, 1)),
    **dict.fromkeys(("panel_reliability", "rogan_gladen", "confusion", "class_share", "score_share"), (0, 1)),
    **dict.fromkeys(("pearson", "spearman", "kendall_tau_b", "cohen_kappa", "verdict_confidence"), (-1, 1)),
    **dict.fromkeys(("fleiss_kappa", "krippendorff_alpha", "gwet_ac", "brennan_prediger"), (-math.inf, 1)),
    **dict.fromkeys(("conger_kappa", "icc", "calibration_gain", "applicability_alpha"), (-math.inf, 1)),
    **dict.fromkeys(("variance_component", "mae", "rmse", "ppi_gain", "out_of_range"), (0, math.inf)),
    **dict.fromkeys(("labels_needed", "items_needed", "raters_needed", "without_reference"), (0, math.inf)),
    **dict.fromkeys(("inversions", "confirmed_inversions", "tied_pairs"), (0, math.inf)),
    **dict.fromkeys(("ceiling_accuracy",), (-1, 1)),
    **dict.fromkeys(("ceiling_pearson",), (-2, 2)),
}
"""Where the values of a statistic lie; of one that is not named only that they are finite."""
AROUND = ("linearised", "jackknife", "Wilson", "F", "cluster-robust", "normal", "cross-fitted", "Fleiss-Cohen")
"""Methods whose bounds lie on both sides of the value; a bootstrap interval may miss it."""
SLACK = 1e-9
PAPER = "paper_compat"
"""A published script's own procedure, shown beside the sound one, which its faults may push out of the range."""


@dataclass(slots=True)
class DrawnTable:
    """A table to be: its rows, what is declared about it, and the words of what it is made of."""

    rows: list[dict[str, Any]]
    words: str
    scale: Scale | None = None
    level: Any = None
    allow_values: bool = False


def read(drawn: Sequence[DrawnTable], order: Sequence[int] | None = None) -> RatingsTable:
    """One ratings table with a criterion for each of them, its rows in another order where one is given."""
    rows = [{**row, "criterion": f"t{at}", "item": f"t{at} {row['item']}", "cluster": f"t{at} {row['cluster']}"}
            for at, one in enumerate(drawn) for row in one.rows]  # fmt: skip
    frame = pd.DataFrame(rows if order is None else [rows[place] for place in order])
    scales = {f"t{at}": one.scale for at, one in enumerate(drawn) if one.scale is not None}
    return ratings_table(frame, scales=scales, level=drawn[0].level, allow_values=drawn[0].allow_values)


def _scores(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """(N, R) scores of one kind."""
    grades = rng.integers(0, rng.integers(2, 6), shape)
    truth = rng.integers(0, 4, (shape[0], 1))
    near = np.clip(truth + rng.integers(-1, 2, shape), 0, 3)
    made: dict[str, Callable[[], Any]] = {
        "grades": lambda: grades,
        "near": lambda: near,
        "unanimous": lambda: np.broadcast_to(truth, shape),
        "constant": lambda: np.full(shape, rng.choice([0, 1, 3, 0.1, -2.5, 1e30])),
        "constant raters": lambda: np.broadcast_to(rng.integers(0, 3, (1, shape[1])), shape),
        "rare flag": lambda: (rng.random(shape) < 0.05).astype(int),
        "opposed": lambda: (np.arange(shape[1]) + np.arange(shape[0])[:, None]) % 2,
        "decimals": lambda: np.round(rng.normal(3, 1, shape), 2),
        "slider": lambda: rng.integers(0, 1001, shape) / 10,
        "huge": lambda: near * rng.choice([1e9, 1e20, 1e49]),
        "tiny": lambda: near * rng.choice([1e-5, 1e-20, 1e-45]),
        "huge offset": lambda: near + rng.choice([1e6, 1e12]),
        "huge and tiny": lambda: near * 10.0 ** rng.integers(-40, 40, shape),
        "nearly equal": lambda: 1 + near * 2.0**-52,
        "nearly nought": lambda: near * 5e-324,
        "below nought": lambda: near - 2,
        "gaps": lambda: near**4,
        "labels": lambda: np.array(LETTERS, dtype=object)[near],
        "yes and no": lambda: np.array(["Yes", "no"], dtype=object)[near % 2],
    }
    return np.array(made[kind](), dtype=object)


KINDS = (
    "grades", "near", "unanimous", "constant", "constant raters", "rare flag", "opposed", "decimals", "slider", "huge",
    "tiny", "huge offset", "huge and tiny", "nearly equal", "nearly nought", "below nought", "gaps", "labels",
    "yes and no",
)  # fmt: skip
BATCH = 20
"""Tables that are read at once, each a criterion of its own; they share a level."""
LEVELS = (None, "interval", None, "ordinal", "nominal", "ratio", None)
HOLES = ("none", "some", "most", "disjoint", "one rater", "all", "N/A", "all N/A", "pairs")


def _with_holes(scores: np.ndarray[Any, Any], holes: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """The same with scores left out, or judged not to apply."""
    found = scores.copy()
    n, r = found.shape
    left_out = {
        "some": rng.random((n, r)) < 0.25,
        "most": rng.random((n, r)) < 0.8,
        "disjoint": np.arange(r) != rng.integers(0, r, (n, 1)),
        "one rater": np.broadcast_to(np.arange(r) > 0, (n, r)),
        "all": np.ones((n, r), dtype=bool),
        "pairs": np.argsort(rng.random((n, r)), axis=1) > 1,
    }
    if holes in left_out:
        found[left_out[holes]] = ""
    elif holes == "N/A":
        found[rng.random((n, r)) < 0.3] = "N/A"
    elif holes == "all N/A":
        found[:] = "N/A"
    return found


def draw_table(seed: int, number: int) -> DrawnTable:
    """The table of a number: the same on every machine."""
    rng = np.random.default_rng([seed, number])
    kind, holes = KINDS[number % len(KINDS)], str(rng.choice(HOLES, p=[0.3, 0.2, 0.1, *[0.06] * 5, 0.1]))
    n = int(rng.choice([1, 2, 3, 6, 12, 35], p=[0.08, 0.1, 0.12, 0.3, 0.25, 0.15]))
    r = int(rng.choice([1, 2, 3, 5], p=[0.08, 0.3, 0.42, 0.2]))
    humans = _with_holes(_scores(kind, (n, r), rng), holes, rng)
    judge = _judge(humans, kind, rng)
    clusters = int(rng.integers(1, n + 1)) if rng.random() < 0.4 else n
    across = rng.random() < 0.4
    rows = []
    for i in range(n):
        of_item: dict[str, Any] = {"item": f"i{i}", "cluster": f"c{i % clusters}", "language": "et", "generator": "g"}
        if across:
            name = f"i{i // 4}"
            of_item = {"item": name, "cluster": name, "language": ("et", "en")[i % 2], "generator": f"g{i // 2 % 2}"}
        for name, kinds, score in [
            *((f"h{j}", "annotator", humans[i, j]) for j in range(r)),
            (JUDGE, "judge", judge[i]),
        ]:
            rows.append({**of_item, "rater": name, "rater_kind": kinds, "score": score})
    found = DrawnTable(rows, f"{kind}; holes: {holes}; {n} x {r}; {clusters} clusters{'; languages' if across else ''}")
    found.allow_values = number // BATCH % 10 > 0
    found.level = LEVELS[number // BATCH % len(LEVELS)]
    if rng.random() < 0.3 or kind in ("labels", "yes and no", "below nought", "constant", "decimals"):
        found.scale = _declared(humans, rng)
    return found


def _judge(humans: np.ndarray[Any, Any], kind: str, rng: np.random.Generator) -> list[Any]:
    """A judge near the panel, constant, silent, between points or beyond the scale."""
    given = [score for score in humans.ravel() if score not in ("", "N/A")]
    if not given or rng.random() < 0.1:
        return [""] * len(humans)
    manner = rng.choice(["panel", "constant", "between", "beyond", "silent at times"])
    if manner == "constant":
        return [given[0]] * len(humans)
    chosen = [given[int(place)] for place in rng.integers(0, len(given), len(humans))]
    if kind in ("labels", "yes and no") or manner == "panel":
        return chosen
    if manner == "silent at times":
        return [score if rng.random() < 0.7 else "" for score in chosen]
    shift = 0.5 if manner == "between" else 2.5
    return [score + shift * (abs(score) or 1) for score in chosen]


def _declared(humans: np.ndarray[Any, Any], rng: np.random.Generator) -> Scale | None:
    """A scale that has every point people gave, and sometimes more."""
    given = sorted(
        {score for score in humans.ravel() if score not in ("", "N/A")}, key=lambda score: (str(type(score)), score)
    )
    if not given:
        return None
    if isinstance(given[0], str):
        return scale_of(LETTERS if given[0] in LETTERS else ("Yes", "no"), rng.choice(["nominal", "ordinal"]))
    more = [given[-1] + abs(given[-1]) + 1] if rng.random() < 0.5 else []
    return Scale(tuple(float(score) for score in [*given, *more]), rng.choice(["nominal", "ordinal", "interval"]))


def _by(table: RatingsTable) -> tuple[str, ...]:
    return tuple(column for column in ("language", "criterion") if table.frame[column].astype(bool).any())


def _agreement(table: RatingsTable, b: int) -> list[CellEstimate]:
    return rater_agreement.agreement_report(table, by=("criterion",), bootstrap=b, leave_one_out=bool(b))


def _components(table: RatingsTable, b: int) -> list[CellEstimate]:
    wanted = ("variance_component", "panel_reliability", "icc", "cohen_kappa", "conger_kappa")
    return rater_agreement.agreement_report(
        table, by=("criterion",), statistics=wanted, bootstrap=0, leave_one_out=True
    )


def _calibration(table: RatingsTable, b: int) -> list[CellEstimate]:
    return calibration.calibration_report(table, judge=JUDGE, by=("criterion",), bootstrap=b)


def _each_reference(table: RatingsTable, b: int) -> list[CellEstimate]:
    rules = ("median", "mean", "each")
    return [
        row for rule in rules
        for row in calibration.calibration_report(table, judge=JUDGE, by=("criterion",), bootstrap=0, reference=rule)
    ]  # fmt: skip


def _beside_humans(table: RatingsTable, b: int) -> list[CellEstimate]:
    wanted = calibration.STATISTICS
    return calibration.beside_humans(table, judge=JUDGE, by=("criterion",), bootstrap=b, statistics=wanted)


def _alternative(table: RatingsTable, b: int) -> list[CellEstimate]:
    return [
        row for score in ("accuracy", "rmse")
        for row in alt_test.alt_test_report(
            table, judge=JUDGE, by=("criterion",), bootstrap=b, min_items=2, score=score
        )
    ]  # fmt: skip


def _corrected(table: RatingsTable, b: int) -> list[CellEstimate]:
    return corrected_means.correction_report(table, judge=JUDGE, by=("criterion",))


def _compared(table: RatingsTable, b: int) -> list[CellEstimate]:
    return mcnemar.mcnemar_report(table, raters=("h0", JUDGE), by=("criterion",))


def _stability(table: RatingsTable, b: int) -> list[CellEstimate]:
    return stability.stability_report(table, judge=JUDGE, by=("criterion",), bootstrap=b)


def _consistency(table: RatingsTable, b: int) -> list[CellEstimate]:
    return consistency.consistency_report(table, judge=JUDGE, by=("criterion",), bootstrap=b)


def _plan(table: RatingsTable, b: int) -> list[CellEstimate]:
    return pilot.pilot_report(table, pilot.Goals(min_items=2), judge=JUDGE, by=("criterion",), bootstrap=b)


def _references(table: RatingsTable, b: int) -> list[CellEstimate]:
    for rule in ("mode", "median", "mean", "dawid_skene", "adjudicated_first"):
        if rule != "mean" or all(scale.is_numeric for scale in table.scales.values()):
            labels = reference.reference_labels(table, rule=rule)
            assert np.isfinite(labels.frame["score"].astype(float)).all(), f"reference {rule} is not finite"
    return []


COMMANDS: tuple[Callable[[RatingsTable, int], list[CellEstimate]], ...] = (
    _components, _calibration, _alternative, _compared, _beside_humans, _corrected, _stability, _consistency,
    _each_reference, _references,
)  # fmt: skip
"""Beside ``_agreement``, which every table goes through, one of these in turn; ``_plan``, which simulates, seldom."""
EVERY_PLAN, EVERY_BOOTSTRAP, EVERY_ORDER = 50, 15, 9


def wrongs(row: CellEstimate) -> Iterator[str]:
    """What is wrong with one estimate."""
    e = row.estimate
    name = f"{e.statistic} {e.variant or ''}".strip()
    if e.value is None:
        if not e.reason:
            yield f"{name}: undefined without a reason"
        return
    if not math.isfinite(e.value):
        yield f"{name}: {e.value}"
    low, high = WITHIN.get(e.statistic, (-math.inf, math.inf))
    if e.variant != PAPER and not low - SLACK <= e.value <= high + SLACK:
        yield f"{name}: {e.value} is outside [{low}, {high}]"
    if e.p is not None and not 0 <= e.p <= 1:
        yield f"{name}: p is {e.p}"
    if e.se is not None and not (math.isfinite(e.se) and e.se >= 0):
        yield f"{name}: se is {e.se}"
    yield from _wrong_interval(row, name)
    json.dumps(row.as_row(), allow_nan=False)


def _wrong_interval(row: CellEstimate, name: str) -> Iterator[str]:
    e = row.estimate
    if (e.low is None) != (e.high is None):
        yield f"{name}: one bound without the other"
    if e.value is None or e.low is None or e.high is None:
        return
    slack = SLACK * max(abs(e.low), abs(e.high), abs(e.value))
    if not (math.isfinite(e.low) and math.isfinite(e.high) and e.low < e.high):
        yield f"{name}: bounds {e.low}, {e.high}"
    if not e.method or e.confidence is None:
        yield f"{name}: an interval without method or confidence"
    elif e.method.startswith(AROUND) and not e.low - slack <= e.value <= e.high + slack:
        yield f"{name}: {e.value} is outside its own {e.method} interval [{e.low}, {e.high}]"


def _moved(plain: Sequence[CellEstimate], again: Sequence[CellEstimate]) -> Iterator[str]:
    """Figures that depend on the order of rows; S0's script takes n from the first item, and may."""
    for one, other in zip(plain, again, strict=True):
        a, b = one.estimate, other.estimate
        if a.variant != PAPER and (a.value, a.low, a.high, a.reason) != (b.value, b.low, b.high, b.reason):
            yield f"{a.statistic} {a.variant or ''} depends on the order of rows: {a.value} and {b.value}"


@dataclass(slots=True)
class Result:
    """What came of one table or of many: counts, and a line per failure."""

    tables: int = 0
    refused: int = 0
    defined: int = 0
    undefined: int = 0
    statistics: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def check_tables(seed: int, numbers: Sequence[int], result: Result, *, thorough: bool = False) -> None:
    """Send the tables of some numbers through the statistics together, or, where that fails, one by one."""
    drawn = [draw_table(seed, number) for number in numbers]
    try:
        table = read(drawn)
    except TableError as error:
        if len(numbers) > 1:
            for number in numbers:
                check_tables(seed, [number], result, thorough=thorough)
            return
        result.tables += 1
        result.refused += 1
        if not all(problem.message for problem in error.problems):
            result.failures.append(f"table {numbers[0]}: refused without a sentence")
        return
    result.tables += len(numbers)
    batch = numbers[0] // BATCH
    b = 200 if batch % EVERY_BOOTSTRAP == 0 else 0
    chosen = [_agreement, *(COMMANDS if thorough else [COMMANDS[batch % len(COMMANDS)]])]
    if thorough or batch % EVERY_PLAN == 1:
        chosen.append(_plan)
    for command in chosen:
        found = _failures(table, command, b)
        if command is _agreement and batch % EVERY_ORDER == 0 and not found:
            order = np.random.default_rng(batch).permutation(sum(len(one.rows) for one in drawn)).tolist()
            found = list(_moved(command(table, b), command(read(drawn, order), b)))
        words = "; ".join(one.words for one in drawn) if len(drawn) == 1 else f"{len(drawn)} tables"
        result.failures += [f"tables {numbers[0]}.. ({words}) {command.__name__[1:]}: {wrong}" for wrong in found]
        result.defined += _counted.pop("defined", 0)
        result.undefined += _counted.pop("undefined", 0)
        result.statistics.update(_counted)


_counted: Counter[str] = Counter()


def _failures(table: RatingsTable, command: Callable[[RatingsTable, int], list[CellEstimate]], b: int) -> list[str]:
    """What is wrong with the estimates of one command."""
    _counted.clear()
    try:
        rows = command(table, b)
    except Exception as error:  # noqa: BLE001 - any exception, and any warning, is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        return [f"{type(error).__name__}: {error} ({place.filename.rpartition('/')[2]}:{place.lineno})"]
    _counted.update(row.estimate.statistic for row in rows)
    _counted["defined"] = sum(row.estimate.is_defined for row in rows)
    _counted["undefined"] = len(rows) - _counted["defined"]
    return [f"{row.cell.get('criterion')}: {wrong}" for row in rows for wrong in wrongs(row)]


def check_in_processes(tables: int, seed: int, workers: int = 1) -> Result:
    """Check so many tables in so many processes, warnings being errors."""
    if workers == 1:
        return _part(tables, seed, 0, 1)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        shares = [pool.submit(_part, tables, seed, worker, workers) for worker in range(workers)]
        parts = [share.result() for share in shares]
    whole = Result()
    for part in parts:
        whole.tables, whole.refused = whole.tables + part.tables, whole.refused + part.refused
        whole.defined, whole.undefined = whole.defined + part.defined, whole.undefined + part.undefined
        whole.statistics += part.statistics
        whole.failures += part.failures
    return whole


def _part(tables: int, seed: int, worker: int, workers: int) -> Result:
    """Every so many-th batch, beginning with the worker's own."""
    result = Result()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in range(worker * BATCH, tables, workers * BATCH):
            check_tables(seed, range(start, min(start + BATCH, tables)), result)
    return result


def _main(argv: Sequence[str] | None = None) -> int:
    """Check the tables and print what came of them; 1 when anything failed."""
    parser = argparse.ArgumentParser(description="Random small tables through the statistics.")
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this table alone, through every statistic")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    arguments = parser.parse_args(argv)
    started = perf_counter()
    if arguments.only is None:
        result = check_in_processes(arguments.tables, arguments.seed, arguments.workers)
    else:
        result = Result()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_tables(arguments.seed, [arguments.only], result, thorough=True)
    sys.stdout.write("".join(f"{failure}\n" for failure in result.failures))
    sys.stdout.write(
        f"{result.tables} tables, {result.refused} refused in a sentence; {result.defined} estimates, "
        f"{result.undefined} undefined with a reason, of {len(result.statistics)} statistics; "
        f"{len(result.failures)} failures; {perf_counter() - started:.0f} s\n"
    )
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(_main())
