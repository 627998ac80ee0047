"""Do 95 % intervals cover, and tests keep their size, where assumptions fail? ``python -m bench.coverage_processes``.

Each cell draws a sample from a process of ``bench/populations.py``, asks for intervals as the command line does, and
counts how many hold the figure of the population; of tests, the share of p below .05 where both sides are alike.
Blocks of samples are kept in a file (``--store``), all cells in turn, so that a run can be stopped, go on later
(``--minutes``) and be read at any time: ``--table`` prints what is in the file. Seeds depend on the sample alone."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analytics.stats.agreement import coefficient_estimates, pairwise, rater_agreement, reliability
from analytics.stats.agreement.coefficient_estimates import Resampling, patterns_of
from analytics.stats.core.estimates import Estimate
from analytics.stats.core.messages import is_conservative
from analytics.stats.core.scales import Scale, scale_of
from analytics.stats.core.tables import RatingsTable, coded_from_matrix
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import alt_test, calibration, corrected_means, mcnemar
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel
from bench import populations
from bench.populations import PopulationSample

# --- counts that can be stored, taken up again, and set in a table with a verdict -------------------------------------


SEEN = 0.05
"""Where fewer of the samples have an interval that is not marked, its coverage says nothing: the row is marked."""
HEADS = ("process", "n", "figure", "coverage", "samples", "MC error", "width", "none", "approximate", "of the others",
         "conservative", "verdict", "method")  # fmt: skip


@dataclass(slots=True)
class IntervalTally:
    """Of one figure: samples, intervals given, those that hold the truth, and the same of those not approximate.

    ``wide``: how many of the latter say that they are conservative.
    """

    samples: int = 0
    given: int = 0
    held: int = 0
    marked: int = 0
    plain_held: int = 0
    wide: int = 0
    width: float = 0.0
    is_test: bool = False
    methods: list[str] = field(default_factory=list)

    def count(self, e: Estimate, truth: float) -> None:
        """One more sample; a p value counts as held when it rejects."""
        self.samples += 1
        if e.p is not None:
            self.given, self.held, self.is_test = self.given + 1, self.held + (e.p < 0.05), True
            return
        if e.low is None or e.high is None:
            return
        holds, is_marked = e.low - 1e-9 <= truth <= e.high + 1e-9, "approximate" in (e.method or "")
        self.given, self.held, self.marked = self.given + 1, self.held + holds, self.marked + is_marked
        self.plain_held += holds and not is_marked
        self.wide += not is_marked and is_conservative(e.method)
        self.width += e.high - e.low
        method = re.sub(r" \((approx|conserv).*?\)|, (approx|design effect).*", "", e.method or "")
        if method not in self.methods:
            self.methods.append(method)

    def add(self, other: IntervalTally) -> None:
        """The counts of further samples."""
        for name in ("samples", "given", "held", "marked", "plain_held", "wide", "width"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.is_test |= other.is_test
        self.methods += [method for method in other.methods if method not in self.methods]

    def verdict(self, low: float, high: float) -> str:
        """Whether intervals hold the truth in a share of ``low`` to ``high`` of the samples, or say they may not.

        ``inside``; ``marked``: nearly all say that they are approximate; ``limit``: beyond a limit by less than two
        Monte Carlo errors; ``conservative``: above, and more than half say so; ``wide``: above; ``OUTSIDE``: below.
        Judged are the intervals that are not approximate, conservative or not; where these are few and below, but all
        together are inside, ``all inside``: a mark that looks at the sample leaves the unlucky samples without one. Of
        a test: rejections up to 1 - ``low``.
        """
        plain, held = self.given - self.marked, self.plain_held
        if self.is_test:
            plain, held, high = self.given, self.given - self.held, 1.0
        if plain < SEEN * self.samples:
            return "marked"
        share = held / plain
        error = max(share * (1 - share), low * (1 - low)) ** 0.5 / plain**0.5
        if low <= share <= high:
            return "inside"
        if share > high and self.wide > plain / 2:
            return "conservative"
        if max(low - share, share - high) < 2 * error:
            return "limit"
        if share < low and plain < self.given / 2 and low <= self.held / self.given <= high:
            return "all inside"
        return "wide" if share > high else "OUTSIDE"


class Store:
    """A file with one line for each block of samples of a process, so that a run can stop and go on.

    A line belongs to the code that made it (``code``, a commit): start a new file when intervals have changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks: dict[tuple[str, int], dict[int, dict[str, Any]]] = defaultdict(dict)
        for line in path.read_text().splitlines() if path.exists() else ():
            block = json.loads(line)
            self.blocks[block["process"], block["n"]][block["start"]] = block

    def has(self, population: str, n: int, start: int) -> bool:
        """Whether this block has been counted."""
        return start in self.blocks[population, n]

    def keep(self, population: str, n: int, start: int, code: str, tallies: dict[str, IntervalTally]) -> None:
        """Store a block."""
        figures = {figure: asdict(tally) for figure, tally in tallies.items()}
        block = {"process": population, "n": n, "start": start, "code": code, "figures": figures}
        with self.path.open("a") as lines:
            lines.write(json.dumps(block) + "\n")
        self.blocks[population, n][start] = block

    def tallies(self, population: str, n: int) -> dict[str, IntervalTally]:
        """The figures of all blocks of a process."""
        found: dict[str, IntervalTally] = {}
        for block in self.blocks[population, n].values():
            for figure, counts in block["figures"].items():
                found.setdefault(figure, IntervalTally()).add(IntervalTally(**counts))
        return found

    def codes(self) -> list[str]:
        """The commits that the blocks were made with."""
        return sorted({block["code"] for blocks in self.blocks.values() for block in blocks.values()})


def table_rows(
    population: str, n: int, tallies: dict[str, IntervalTally], limits: tuple[float, float] | None
) -> Iterator[str]:
    """Lines of the table; ``limits`` None: coverage of something that the intervals do not claim, without a verdict."""
    for figure, t in tallies.items():
        if not t.given:
            continue
        share, plain = t.held / t.given, t.given - t.marked
        others = f"{t.plain_held / plain:.3f}" if plain >= SEEN * t.samples and not t.is_test else ""
        verdict = t.verdict(*limits) if limits and not figure.endswith(", these") else ""
        cells = (
            population, n, figure, f"{share:.3f}", f"{t.samples:,}", f"{(share * (1 - share) / t.given) ** 0.5:.3f}",
            "" if t.is_test else f"{t.width / t.given:.3g}", f"{1 - t.given / t.samples:.2f}",
            "" if t.is_test else f"{t.marked / t.given:.2f}", others,
            f"{t.wide / plain:.2f}" if plain and t.wide else "", verdict, "; ".join(sorted(t.methods)),
        )  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"


# --- the study --------------------------------------------------------------------------------------------------------


Floats = NDArray[np.float64]
Rng = np.random.Generator
Named = Iterable[tuple[str, Estimate]]

SAMPLES, BLOCK, RESAMPLES, LARGE = 2000, 100, 400, 300_000
LIMITS = (0.93, 0.97)
GRADES, FLAG = scale_of(range(4)), scale_of([0, 1], "nominal")
LABELS, DISTANCES = scale_of(range(4), "nominal"), scale_of([0.0, 1.0], "interval", declared=False)
COUNTED = {
    ("percent_agreement", None), ("percent_agreement_exact", None), ("fleiss_kappa", "unequal"),
    ("krippendorff_alpha", None), ("gwet_ac", "identity"), ("gwet_ac", "quadratic"), ("brennan_prediger", "quadratic"),
    ("verdict_confidence", "observed"), ("verdict_confidence", "corrected"),
}  # fmt: skip
CALIBRATED = ("mae", "rmse", "bias", "pearson", "spearman", "kendall_tau_b", "accuracy", "cohen_kappa", "f1_weighted",
              "f1", "precision", "recall")  # fmt: skip
FORMS: tuple[reliability.Form, ...] = ("1,1", "2,1", "3,1")
FRESH = {
    ("percent_agreement", None), ("krippendorff_alpha", None), ("fleiss_kappa", "unequal"), ("gwet_ac", "quadratic"),
    ("conger_kappa", "quadratic"), ("icc", "1,1"), ("icc", "2,1"), ("icc", "2,k"),
}  # fmt: skip
FRESH_AGREEMENT = sorted({statistic for statistic, _ in FRESH})
FRESH_JUDGED = ("mae", "bias", "spearman", "accuracy", "cohen_kappa")
PANELS, FRESH_ITEMS, THESE_TOO = 300, 1000, 0.25
"""Panels and items behind the mean figure, and the share of samples in which these raters' interval is asked for."""
CORRECTED = ("classical_mean", "ppi_mean", "ppi_plus_mean", "rogan_gladen")


def agreed(drawn: PopulationSample, scale: Scale, rng: Rng) -> Iterator[tuple[str, Estimate]]:
    """Agreement of the three raters: counts, one pair's and the mean kappa, ICC."""
    cell, how = coded_from_matrix(drawn.humans, scale=scale, clusters=drawn.cluster), Resampling(RESAMPLES)
    chosen = [f for f in coefficient_estimates.figures_for(cell) if (f.statistic, f.variant) in COUNTED]
    yield from ((_name(e), e) for e in coefficient_estimates.estimates_from_counts(cell, chosen, rng=rng, how=how))
    for e, raters in pairwise.cohen_rows(cell, rng=rng, how=how, positional=False):
        if e.variant != "linear" and raters in (None, ("1", "2")):
            yield f"kappa {'of a pair' if raters else 'of pairs, mean'} {e.variant}", e
    if scale.has_order:
        yield from icc_forms(drawn, scale, rng)


def icc_forms(drawn: PopulationSample, scale: Scale, rng: Rng) -> Iterator[tuple[str, Estimate]]:
    """Intraclass correlations, and of continuous scores interval alpha."""
    for form in FORMS:
        yield f"icc {form}", reliability.icc(drawn.humans, form, cluster=drawn.cluster)
    if not scale.declared:
        scale = scale_of(np.unique(drawn.humans), "interval", declared=False)
        alpha = rater_agreement.measure(
            drawn.humans, "krippendorff_alpha", scale=scale, clusters=drawn.cluster, bootstrap=RESAMPLES, rng=rng
        )
        yield "krippendorff_alpha", alpha


def calibrated(drawn: PopulationSample, scale: Scale, rng: Rng) -> Named:
    """The judge against the panel."""
    compared = _against_panel(drawn.humans, drawn, scale)
    rule = calibration.default_reference(scale)
    found = calibration.calibrate(
        compared, rule=rule, statistics=CALIBRATED, bootstrap=RESAMPLES, seed=int(rng.integers(2**31))
    )
    return [(f"judge {_name(e)}", e) for e in found if e.reason is None or e.statistic == "f1"]


def corrections(drawn: PopulationSample, scale: Scale, rng: Rng) -> Named:
    """Means and prevalence from labels of the first tenth of the clusters and the judge's scores of all."""
    names = np.unique(drawn.cluster)
    labelled = drawn.cluster < len(names) // 10
    humans = np.where(labelled[:, None], drawn.humans, np.nan)
    found = corrected_means.correct(
        _against_panel(humans, drawn, scale), statistics=CORRECTED, seed=int(rng.integers(2**31))
    )
    return [(_name(e), e) for e in found]


def tests(drawn: PopulationSample, scale: Scale, rng: Rng) -> Named:
    """McNemar's test of two raters who are alike, and the alternative annotator test of a judge at the limit."""
    table = _table(drawn.humans[:, :2], drawn.humans[:, 2], drawn.cluster, scale)
    pair = mcnemar.mcnemar_report(
        table, raters=("a", "b"), by=["criterion"], truth="labels" if scale.q == 2 else "mode"
    )
    for one in pair:
        if "read this one first" in (one.estimate.note or ""):
            yield "size of McNemar's test", one.estimate
    # The judge is one rater more, so that W_h - W_f has mean 0, the limit at epsilon 0.
    rows = alt_test.alt_test_report(
        _table(drawn.humans, drawn.judge, drawn.cluster, scale), judge="gpt", by=["criterion"], epsilon=0.0, bootstrap=0
    )
    yield "size of the alternative annotator test", next(r.estimate for r in rows if r.annotator == "a")


def _against_panel(humans: Floats, drawn: PopulationSample, scale: Scale) -> JudgeAgainstPanel:
    return JudgeAgainstPanel(
        drawn.judge, humans, drawn.cluster, ("a", "b", "c")[: humans.shape[1]], scale, pd.DataFrame()
    )


def _table(humans: Floats, judge: Floats, cluster: NDArray[np.intp], scale: Scale) -> RatingsTable:
    n, r = humans.shape
    names = [*"abcdefghij"] if r <= 10 else [f"r{number:02}" for number in range(r)]
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


def fresh(drawn: PopulationSample, scale: Scale, rng: Rng) -> Named:
    """Agreement and the judge beside the panel, by raters like these; beside it what speaks for these raters alone."""
    asked = {"sample": ""} | ({"these": ", these"} if rng.random() < THESE_TOO else {})
    for raters_as, suffix in asked.items():
        yield from ((f"{name}{suffix}", e) for name, e in _of_panel(drawn, scale, rng, raters_as, RESAMPLES))


def _of_panel(drawn: PopulationSample, scale: Scale, rng: Rng, raters_as: Any, resamples: int) -> Named:
    table, by = _table(drawn.humans, drawn.judge, drawn.cluster, scale), ["criterion"]
    made = rater_agreement.agreement_report(
        table,
        by=by,
        statistics=FRESH_AGREEMENT,
        bootstrap=resamples,
        seed=int(rng.integers(2**31)),
        raters_as=raters_as,
    )
    for row in made:
        if row.raters is None and (row.estimate.statistic, row.estimate.variant) in FRESH:
            yield _name(row.estimate), row.estimate
    for rule in ("mode", "each"):
        met = calibration.calibration_report(
            table, judge="gpt", by=by, reference=rule, statistics=FRESH_JUDGED, bootstrap=resamples, raters_as=raters_as
        )
        for row in met:
            if row.estimate.variant in (None, "quadratic"):
                yield f"judge {_name(row.estimate)} ({rule})", row.estimate


def panels_of(n_raters: int, drawn_from: Any = populations.fresh_raters) -> dict[str, float]:
    """The mean figure of PANELS panels of so many raters drawn anew, each on FRESH_ITEMS items."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for number in range(PANELS):
        rng = np.random.default_rng([99, n_raters, number])
        drawn = drawn_from(FRESH_ITEMS, n_raters, rng)
        for name, e in _of_panel(drawn, GRADES, rng, "these", 0):
            found[name].append(float("nan") if e.value is None else e.value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def alike(n_clusters: int, rng: Rng, *, flags: bool) -> PopulationSample:
    """Four raters who are alike, each in a mood of their own in every dialogue of ten turns."""
    cluster = np.repeat(np.arange(n_clusters), 10)
    quality = rng.normal(size=n_clusters)[cluster] + rng.normal(size=len(cluster))
    seen = quality[:, None] + rng.normal(size=(n_clusters, 4))[cluster] + rng.normal(size=(len(cluster), 4))
    scores = (seen > 1).astype(float) if flags else np.clip(np.round(1.5 + seen), 0, 3)
    return PopulationSample(scores[:, :3], scores[:, 3], cluster)


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """``draw`` one sample; ``large`` one that gives the population's figures; what is asked of both."""

    draw: Callable[[Rng], PopulationSample]
    large: Callable[[Rng], PopulationSample] | None
    scale: Scale
    asked: tuple[Callable[[PopulationSample, Scale, Rng], Named], ...]
    known: dict[str, float] | Callable[[], dict[str, float]] = field(default_factory=dict)


def _of(
    drawn_from: Callable[..., PopulationSample], scale: Scale, *asked: Any, large: int = LARGE, **fixed: Any
) -> Any:
    return lambda n: CoverageCell(
        lambda rng: drawn_from(n, rng, **fixed), lambda rng: drawn_from(large, rng, **fixed), scale, asked
    )


HEAVY = {
    "icc 1,1": 0.8, "icc 2,1": 0.8, "icc 3,1": 0.8, "krippendorff_alpha": 0.8, "judge rmse": 0.89**0.5,
    "judge bias": 0.2, "judge pearson": 2.4 / (2.4 * 3.25) ** 0.5,
}  # fmt: skip
"""Of ``populations.heavy_tails``, from the variances of its parts."""


def _heavy(n: int) -> CoverageCell:
    return CoverageCell(
        lambda rng: populations.heavy_tails(n, rng), lambda rng: populations.heavy_tails(20_000, rng), DISTANCES,
        (icc_forms, calibrated), HEAVY,
    )  # fmt: skip


def _fresh(n_raters: int, drawn_from: Any = populations.fresh_raters) -> Callable[[int], CoverageCell]:
    return lambda n: CoverageCell(
        lambda rng: drawn_from(n, n_raters, rng), None, GRADES, (fresh,), lambda: panels_of(n_raters, drawn_from)
    )


def _sizes(n: int, *, flags: bool) -> CoverageCell:
    return CoverageCell(lambda rng: alike(n, rng, flags=flags), None, FLAG if flags else GRADES, (tests,))


CELLS: dict[str, tuple[Callable[[int], CoverageCell], tuple[int, ...]]] = {
    "dialogues of 10": (_of(populations.dialogue_sample, GRADES, agreed, calibrated, large=20_000), (10, 20, 30)),
    "dialogues of 1 to 19": (
        _of(populations.dialogue_sample, GRADES, agreed, calibrated, large=20_000, unequal=True), (10, 20, 30)),
    "flags in dialogues of 10": (
        _of(populations.clustered_flags, FLAG, agreed, calibrated, large=20_000), (10, 20, 30)),
    "flags by chance in dialogues of 10": (
        _of(populations.clustered_flags, FLAG, agreed, calibrated, large=20_000, spread=0.0), (10, 20)),
    "flags of kappa .1 in dialogues of 10": (
        _of(populations.clustered_flags, FLAG, agreed, calibrated, large=20_000, spread=0.37), (10, 20)),
    "labels in a tenth of the dialogues": (
        _of(populations.dialogue_sample, GRADES, corrections, large=20_000), (100, 200, 300)),
    "labels of flags in a tenth of the dialogues": (
        _of(populations.clustered_flags, FLAG, corrections, large=20_000), (200, 300)),
    "tests of grades in dialogues of 10": (lambda n: _sizes(n, flags=False), (10, 20, 30)),
    "tests of flags in dialogues of 10": (lambda n: _sizes(n, flags=True), (10, 20, 30)),
    "rare flag": (_of(populations.rare_flag, FLAG, agreed, calibrated), (50, 100, 200)),
    "agreement near one": (_of(populations.near_one, FLAG, agreed, calibrated), (50, 100, 200)),
    "Dirichlet-multinomial": (_of(populations.dirichlet_multinomial, LABELS, agreed, calibrated), (50, 100, 200)),
    "ceiling": (_of(populations.ceiling, GRADES, agreed, calibrated), (50, 100, 200)),
    "heavy tails": (_heavy, (50, 100, 200)),
    "grades, a fifth missing": (_of(populations.grades_with_gaps, GRADES, agreed, calibrated), (50, 100, 200)),
    "flags, a fifth missing": (_of(populations.flags_with_gaps, FLAG, agreed, calibrated), (50, 100, 200)),
    "20 fresh raters": (_fresh(20), (50, 100)),
    "20 raters, some careless": (_fresh(20, populations.careless_raters), (50, 100)),
    "30 raters, some careless": (_fresh(30, populations.careless_raters), (50, 100)),
}  # fmt: skip


def truth(cell: CoverageCell) -> dict[str, float]:
    """The population's figures: of a very large sample, all items alone, or known."""
    if callable(cell.known):
        return cell.known()
    if cell.large is None:
        return {}
    large = cell.large(np.random.default_rng(99))
    found: dict[str, float] = {}
    alone = PopulationSample(large.humans, large.judge, np.arange(len(large.judge)))
    if agreed in cell.asked:
        coded = coded_from_matrix(alone.humans, scale=cell.scale)
        patterns = patterns_of(coded)
        for f in coefficient_estimates.figures_for(coded):
            found[" ".join(filter(None, (f.statistic, f.variant)))] = float(
                f.kernel(patterns.counts, patterns.weights)[0]
            )
        for e, raters in pairwise.cohen_rows(coded, rng=np.random.default_rng(0), how=Resampling(0), positional=False):
            found[f"kappa {'of a pair' if raters else 'of pairs, mean'} {e.variant}"] = e.value or 0.0
        if cell.scale.has_order:
            found |= {f"icc {form}": reliability.icc(alone.humans, form).value or 0.0 for form in FORMS}
    if calibrated in cell.asked:
        rule, compared = (
            calibration.default_reference(cell.scale),
            _against_panel(alone.humans, alone, cell.scale),
        )
        made = calibration.calibrate(compared, rule=rule, statistics=CALIBRATED, bootstrap=0)
        found |= {f"judge {_name(e)}": e.value for e in made if e.value is not None}
    mean, share = float(alone.humans.mean()), float((alone.humans.sum(axis=1) >= 2).mean())
    means = ("classical_mean", "ppi_mean plain", "ppi_plus_mean plain", "ppi_plus_mean crossfit")
    return found | dict.fromkeys(means, mean) | {"rogan_gladen": share} | cell.known


def counted(cell: CoverageCell, true: dict[str, float], n: int, numbers: Iterable[int]) -> dict[str, IntervalTally]:
    """Of the samples of these numbers."""
    tallies: defaultdict[str, IntervalTally] = defaultdict(IntervalTally)
    for number in numbers:
        rng = np.random.default_rng([17, n, number])
        drawn = cell.draw(rng)
        for ask in cell.asked:
            for figure, estimate in ask(drawn, cell.scale, rng):
                wanted = true.get(figure.removesuffix(", these"), float("nan")) if true else 0.0
                tallies[figure].count(estimate, wanted)
    return tallies


def _name(estimate: Estimate) -> str:
    return " ".join(filter(None, (estimate.statistic, estimate.variant)))


def run_blocks(chosen: list[tuple[str, int]], store: Store, samples: int, minutes: float) -> None:
    """Blocks of all cells in turn, until there are ``samples`` of each or the time is over."""
    end, truths, code = time.monotonic() + 60 * minutes, dict[tuple[str, int], dict[str, float]](), _commit()
    for block in range(-(-samples // BLOCK)):
        for name, n in chosen:
            size = BLOCK // 4 if "fresh" in name else BLOCK  # these take longest
            start = block * size
            if store.has(name, n, start):
                continue
            if time.monotonic() > end:
                return
            cell = CELLS[name][0](n)
            if (name, n) not in truths:
                truths[name, n] = truth(cell)
            numbers = range(start, min(start + size, samples))
            store.keep(name, n, start, code, counted(cell, truths[name, n], n, numbers))


def _commit() -> str:
    made = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return made.stdout.strip() or "unknown"


def coverage_table(chosen: list[tuple[str, int]], store: Store) -> Iterator[str]:
    """Lines of the table of what is stored."""
    yield f"| {' | '.join(HEADS)} |"
    yield "|---" * len(HEADS) + "|"
    for name, n in chosen:
        yield from table_rows(name, n, store.tallies(name, n), LIMITS)


def _main() -> None:
    """Count what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*", metavar="CELL", help="; ".join(CELLS))
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"of each cell (default {SAMPLES:,})")
    parser.add_argument("--size", type=int, help="only this number of items or dialogues")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time; run again to go on")
    parser.add_argument("--table", action="store_true", help="only print what is stored")
    stored = Path(tempfile.gettempdir()) / "coverage_processes.jsonl"
    parser.add_argument("--store", type=Path, default=stored, help="file of the samples counted (default %(default)s)")
    arguments = parser.parse_args()
    sizes = {name: [arguments.size] if arguments.size else CELLS[name][1] for name in arguments.cells or CELLS}
    chosen, store = [(name, n) for name, several in sizes.items() for n in several], Store(arguments.store)
    if not arguments.table:
        run_blocks(chosen, store, arguments.samples, arguments.minutes)
    print("\n".join(coverage_table(chosen, store)))
    print("\nCode:", ", ".join(store.codes()))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _main()
