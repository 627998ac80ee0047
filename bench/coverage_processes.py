"""Do 95 % intervals cover, and tests keep their size, where assumptions fail? ``python -m bench.coverage_processes``.

Each cell draws a sample from a process of ``bench/processes.py``, asks for intervals the way the command line does, and
counts how many hold the figure of the population. Of tests the share of p below .05 is counted where both sides are
alike. Printed: coverage of the intervals given, its Monte Carlo error, the shares of samples without an interval and
with one that says it is approximate, and the coverage of those that do not say so.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analytics.stats import agreement, alt_test, calibration, comparison, corrected, countwise, pairwise
from analytics.stats.countwise import Resampling
from analytics.stats.estimate import Estimate
from analytics.stats.meeting import Meeting
from analytics.stats.patterns import patterns_of
from analytics.stats.scales import Scale, scale_of
from analytics.stats.tables import RatingsTable, coded_from_matrix, ratings_table
from bench import processes
from bench.processes import Drawn

Floats = NDArray[np.float64]
Rng = np.random.Generator
Named = Iterable[tuple[str, Estimate]]

SIMULATIONS, RESAMPLES, LARGE = 1000, 400, 300_000
GRADES, FLAG = scale_of(range(4)), scale_of([0, 1], "nominal")
LABELS, DISTANCES = scale_of(range(4), "nominal"), scale_of([0.0, 1.0], "interval", declared=False)
COUNTED = {
    ("percent_agreement", None), ("fleiss_kappa", "unequal"), ("krippendorff_alpha", None), ("gwet_ac", "identity"),
    ("gwet_ac", "quadratic"),
}  # fmt: skip
CALIBRATED = ("mae", "rmse", "bias", "pearson", "spearman", "kendall_tau_b", "accuracy", "cohen_kappa", "f1_weighted",
              "f1")  # fmt: skip
CORRECTED = ("classical_mean", "ppi_mean", "ppi_plus_mean", "rogan_gladen")


@dataclass(slots=True)
class Tally:
    """Of one interval: samples, intervals given, those that hold the truth, and the same of those not marked."""

    samples: int = 0
    given: int = 0
    held: int = 0
    marked: int = 0
    plain_held: int = 0
    methods: set[str] = field(default_factory=set)

    def count(self, e: Estimate, truth: float) -> None:
        """One more sample; a p value counts as held when it rejects."""
        self.samples += 1
        if e.p is not None:
            self.given, self.held = self.given + 1, self.held + (e.p < 0.05)
            return
        if e.low is None or e.high is None:
            return
        holds, is_marked = e.low - 1e-9 <= truth <= e.high + 1e-9, "approximate" in (e.method or "")
        self.given, self.held, self.marked = self.given + 1, self.held + holds, self.marked + is_marked
        self.plain_held += holds and not is_marked
        self.methods.add((e.method or "").split(" (approx")[0])


def agreed(drawn: Drawn, scale: Scale, rng: Rng) -> Iterator[tuple[str, Estimate]]:
    """Agreement of the three raters: counts, one pair's and the mean kappa, ICC."""
    cell, how = coded_from_matrix(drawn.humans, scale=scale, clusters=drawn.cluster), Resampling(RESAMPLES)
    chosen = [f for f in countwise.figures_for(cell) if (f.statistic, f.variant) in COUNTED]
    yield from ((_name(e), e) for e in countwise.estimates(cell, chosen, rng=rng, how=how))
    for e, raters in pairwise.cohen_rows(cell, rng=rng, how=how, positional=False):
        if e.variant != "linear" and raters in (None, ("1", "2")):
            yield f"kappa {'of a pair' if raters else 'of pairs, mean'} {e.variant}", e
    if scale.has_order:
        yield from icc(drawn, scale, rng)


def icc(drawn: Drawn, scale: Scale, rng: Rng) -> Iterator[tuple[str, Estimate]]:
    """Intraclass correlations."""
    scale = scale if scale.declared or scale.q > 2 else scale_of(np.unique(drawn.humans), "interval", declared=False)
    for form in ("1,1", "2,1", "3,1"):
        found = agreement.measure(
            drawn.humans, "icc", scale=scale, variant=form, clusters=drawn.cluster, bootstrap=RESAMPLES, rng=rng
        )
        yield f"icc {form}", found
    if not scale.declared:
        alpha = agreement.measure(
            drawn.humans, "krippendorff_alpha", scale=scale, clusters=drawn.cluster, bootstrap=RESAMPLES, rng=rng
        )
        yield "krippendorff_alpha", alpha


def calibrated(drawn: Drawn, scale: Scale, rng: Rng) -> Named:
    """The judge against the panel."""
    meeting = _meeting(drawn.humans, drawn, scale)
    rule = calibration.default_reference(scale)
    found = calibration.calibrate(
        meeting, rule=rule, statistics=CALIBRATED, bootstrap=RESAMPLES, seed=int(rng.integers(2**31))
    )
    return [(f"judge {_name(e)}", e) for e in found if e.reason is None or e.statistic == "f1"]


def corrections(drawn: Drawn, scale: Scale, rng: Rng) -> Named:
    """Means and prevalence from labels of the first tenth of the clusters and the judge's scores of all."""
    names = np.unique(drawn.cluster)
    labelled = drawn.cluster < len(names) // 10
    humans = np.where(labelled[:, None], drawn.humans, np.nan)
    found = corrected.correct(_meeting(humans, drawn, scale), statistics=CORRECTED, seed=int(rng.integers(2**31)))
    return [(_name(e), e) for e in found]


def tests(drawn: Drawn, scale: Scale, rng: Rng) -> Named:
    """McNemar's test of two raters who are alike, and the alternative annotator test of a judge at the limit."""
    table = _table(drawn.humans[:, :2], drawn.humans[:, 2], drawn.cluster, scale)
    pair = comparison.report(table, raters=("a", "b"), by=["criterion"], truth="labels" if scale.q == 2 else "mode")
    for one in pair:
        if "read this one first" in (one.estimate.note or ""):
            yield "size of McNemar's test", one.estimate
    # The judge is one rater more, so that W_h - W_f has mean 0, the limit at epsilon 0.
    rows = alt_test.report(
        _table(drawn.humans, drawn.judge, drawn.cluster, scale), judge="gpt", by=["criterion"], epsilon=0.0, bootstrap=0
    )
    yield "size of the alternative annotator test", next(r.estimate for r in rows if r.annotator == "a")


def _meeting(humans: Floats, drawn: Drawn, scale: Scale) -> Meeting:
    return Meeting(drawn.judge, humans, drawn.cluster, ("a", "b", "c")[: humans.shape[1]], scale, pd.DataFrame())


def _table(humans: Floats, judge: Floats, cluster: NDArray[np.intp], scale: Scale) -> RatingsTable:
    (n, r), names = humans.shape, [*"abc"]
    frame = pd.DataFrame(
        {
            "item": np.repeat(np.arange(n), r + 1),
            "cluster": np.repeat(cluster, r + 1),
            "rater": np.tile([*names[:r], "gpt"], n),
            "rater_kind": np.tile([*["annotator"] * r, "judge"], n),
            "score": np.column_stack([humans, judge]).ravel(),
        }
    )
    return ratings_table(frame, scales={"*": scale})


def alike(n_clusters: int, rng: Rng, *, flags: bool) -> Drawn:
    """Four raters who are alike, each in a mood of their own in every dialogue of ten turns."""
    cluster = np.repeat(np.arange(n_clusters), 10)
    quality = rng.normal(size=n_clusters)[cluster] + rng.normal(size=len(cluster))
    seen = quality[:, None] + rng.normal(size=(n_clusters, 4))[cluster] + rng.normal(size=(len(cluster), 4))
    scores = (seen > 1).astype(float) if flags else np.clip(np.round(1.5 + seen), 0, 3)
    return Drawn(scores[:, :3], scores[:, 3], cluster)


@dataclass(frozen=True, slots=True)
class Cell:
    """``draw`` one sample; ``large`` one that gives the population's figures; what is asked of both."""

    draw: Callable[[Rng], Drawn]
    large: Callable[[Rng], Drawn] | None
    scale: Scale
    asked: tuple[Callable[[Drawn, Scale, Rng], Named], ...]
    known: dict[str, float] = field(default_factory=dict)


def _of(drawn_from: Callable[..., Drawn], scale: Scale, *asked: Any, large: int = LARGE, **fixed: Any) -> Any:
    return lambda n: Cell(
        lambda rng: drawn_from(n, rng, **fixed), lambda rng: drawn_from(large, rng, **fixed), scale, asked
    )


HEAVY = {
    "icc 1,1": 0.8, "icc 2,1": 0.8, "icc 3,1": 0.8, "krippendorff_alpha": 0.8, "judge rmse": 0.89**0.5,
    "judge bias": 0.2, "judge pearson": 2.4 / (2.4 * 3.25) ** 0.5,
}  # fmt: skip
"""Of ``processes.heavy_tails``, from the variances of its parts."""


def _heavy(n: int) -> Cell:
    return Cell(
        lambda rng: processes.heavy_tails(n, rng), lambda rng: processes.heavy_tails(20_000, rng), DISTANCES,
        (icc, calibrated), HEAVY,
    )  # fmt: skip


def _sizes(n: int, *, flags: bool) -> Cell:
    return Cell(lambda rng: alike(n, rng, flags=flags), None, FLAG if flags else GRADES, (tests,))


CELLS: dict[str, tuple[Callable[[int], Cell], tuple[int, ...]]] = {
    "dialogues of 10": (_of(processes.dialogues, GRADES, agreed, calibrated, large=20_000), (10, 20, 30)),
    "dialogues of 1 to 19": (
        _of(processes.dialogues, GRADES, agreed, calibrated, large=20_000, unequal=True), (10, 20, 30)),
    "flags in dialogues of 10": (_of(processes.clustered_flags, FLAG, agreed, calibrated, large=20_000), (10, 20, 30)),
    "labels in a tenth of the dialogues": (
        _of(processes.dialogues, GRADES, corrections, large=20_000), (100, 200, 300)),
    "labels of flags in a tenth of the dialogues": (
        _of(processes.clustered_flags, FLAG, corrections, large=20_000), (200, 300)),
    "tests of grades in dialogues of 10": (lambda n: _sizes(n, flags=False), (10, 20, 30)),
    "tests of flags in dialogues of 10": (lambda n: _sizes(n, flags=True), (10, 20, 30)),
    "rare flag": (_of(processes.rare_flag, FLAG, agreed, calibrated), (50, 100, 200)),
    "agreement near one": (_of(processes.near_one, FLAG, agreed, calibrated), (50, 100, 200)),
    "Dirichlet-multinomial": (_of(processes.dirichlet_multinomial, LABELS, agreed, calibrated), (50, 100, 200)),
    "ceiling": (_of(processes.ceiling, GRADES, agreed, calibrated), (50, 100, 200)),
    "heavy tails": (_heavy, (50, 100, 200)),
}  # fmt: skip


def truth(cell: Cell) -> dict[str, float]:
    """The population's figures: of a very large sample, all items alone, or known."""
    if cell.large is None:
        return defaultdict(float)
    large = cell.large(np.random.default_rng(99))
    found: dict[str, float] = {}
    alone = Drawn(large.humans, large.judge, np.arange(len(large.judge)))
    if agreed in cell.asked:
        coded = coded_from_matrix(alone.humans, scale=cell.scale)
        patterns = patterns_of(coded)
        for f in countwise.figures_for(coded):
            found[" ".join(filter(None, (f.statistic, f.variant)))] = float(
                f.kernel(patterns.counts, patterns.weights)[0]
            )
        for e, raters in pairwise.cohen_rows(coded, rng=np.random.default_rng(0), how=Resampling(0), positional=False):
            found[f"kappa {'of a pair' if raters else 'of pairs, mean'} {e.variant}"] = e.value or 0.0
        if cell.scale.has_order:
            for form in ("1,1", "2,1", "3,1"):
                found[f"icc {form}"] = (
                    agreement.measure(alone.humans, "icc", scale=cell.scale, variant=form, bootstrap=0).value or 0.0
                )
    if calibrated in cell.asked:
        rule, meeting = calibration.default_reference(cell.scale), _meeting(alone.humans, alone, cell.scale)
        made = calibration.calibrate(meeting, rule=rule, statistics=CALIBRATED, bootstrap=0)
        found |= {f"judge {_name(e)}": e.value for e in made if e.value is not None}
    mean, share = float(alone.humans.mean()), float((alone.humans.sum(axis=1) >= 2).mean())
    means = ("classical_mean", "ppi_mean plain", "ppi_plus_mean plain", "ppi_plus_mean crossfit")
    return found | dict.fromkeys(means, mean) | {"rogan_gladen": share} | cell.known


def rows(name: str, cell: Cell, n: int, simulations: int) -> Iterator[str]:
    """Lines of the table."""
    true, tallies = truth(cell), defaultdict[str, Tally](Tally)
    for number in range(simulations):
        rng = np.random.default_rng([17, n, number])
        drawn = cell.draw(rng)
        for ask in cell.asked:
            for figure, estimate in ask(drawn, cell.scale, rng):
                tallies[figure].count(estimate, true.get(figure, float("nan")) if true else 0.0)
    for figure, t in tallies.items():
        if not t.given:
            continue
        share, plain = t.held / t.given, t.given - t.marked
        error = (share * (1 - share) / t.given) ** 0.5
        unmarked = f"{t.plain_held / plain:.3f}" if plain >= 0.05 * t.samples and t.methods else ""
        yield (
            f"| {name} | {n} | {figure} | {share:.3f} | {error:.3f} | {1 - t.given / t.samples:.2f} |"
            f" {t.marked / t.given:.2f} | {unmarked} | {'; '.join(sorted(t.methods))} |"
        )


def _name(estimate: Estimate) -> str:
    return " ".join(filter(None, (estimate.statistic, estimate.variant)))


def main() -> None:
    """One table to standard output, rows as soon as they are known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*", metavar="CELL", help="; ".join(CELLS))
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    parser.add_argument("--size", type=int, help="only this number of items or dialogues")
    arguments = parser.parse_args()
    print("| process | n | figure | coverage | MC error | none | approximate | of the others | method |")
    print("|---" * 9 + "|")
    for name in arguments.cells or CELLS:
        make, sizes = CELLS[name]
        for n in sizes if arguments.size is None else [arguments.size]:
            for line in rows(name, make(n), n, arguments.simulations):
                print(line, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
