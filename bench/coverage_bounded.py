"""Do intervals of means near the end of a scale cover? ``python -m bench.coverage_bounded [SAMPLES] [--process NAME]``.

Ceilings, rare flags, flags in dialogues, draws with unequal probabilities: processes that were not in the other studies
(issue 26). ``n`` items are labelled of 600 that the judge scored; of four generators the means are read together, at
1 - .05 / 4 each. ``mean_of_these_items`` is held against the mean of the 600 items of the sample, all other figures
against that of the population. Beside the coverage of all intervals stands that of those that are not marked
"approximate". Seeds depend on the sample alone.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import Estimate
from analytics.stats.core.scales import Scale, scale_of
from analytics.stats.judge import ppi
from analytics.stats.judge.corrected_means import ScoredItems, correct
from analytics.stats.judge.leaderboard import weighted_mean
from bench.coverage_processes import IntervalTally
from bench.populations import against_panel

Floats = NDArray[np.float64]
Rng = np.random.Generator
ITEMS, LABELS, GENERATORS, LARGE = 600, (40, 60, 100, 200), 4, 400_000
FLAG, GRADES = scale_of([0, 1]), scale_of(range(5))
HEADS = ("process", "labels", "figure", "coverage", "samples", "error", "width", "none", "approximate", "of the others",
         "verdict")  # fmt: skip
Population = Callable[[int, Rng], tuple[Floats, Floats, NDArray[np.intp]]]
"""Labels, judge scores and clusters of n items."""


def graded_ceiling(n: int, rng: Rng) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Grades 0 to 4 of which 93 % are the best and 1 % the worst, and a judge who misses half of the low ones."""
    y = rng.choice(5, size=n, p=[0.01, 0.005, 0.01, 0.045, 0.93]).astype(float)
    f = np.where(rng.random(n) < 0.5, y, np.clip(y + rng.choice(3, size=n), 0, 4))
    f = np.where(rng.random(n) < 0.03, np.maximum(f - 1, 0), f)
    return y, f, np.arange(n)


def panel_ceiling(n: int, rng: Rng) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Means of three raters of whom each gives the best of four grades to nine items in ten."""
    quality = rng.normal(size=(n, 1))
    grades = np.digitize(quality + 0.7 * rng.normal(size=(n, 4)), [-2.6, -2.1, -1.56]).astype(float)
    return grades[:, :3].mean(axis=1), grades[:, 3], np.arange(n)


def rare(n: int, rng: Rng) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """A flag on 3 % of the items; the judge finds three in four of them and raises 2 % wrongly."""
    y = rng.random(n) < 0.03
    return y.astype(float), np.where(y, rng.random(n) < 0.75, rng.random(n) < 0.02).astype(float), np.arange(n)


def rare_in_dialogues(n: int, rng: Rng) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """The flag on one turn in ten of every third dialogue; dialogues have 1 to 9 turns."""
    cluster = np.repeat(np.arange(n), rng.integers(1, 10, size=n))[:n]
    risk = np.where(rng.random(n) < 1 / 3, 0.1, 0.005)[cluster]
    y = rng.random(n) < risk
    return y.astype(float), np.where(y, rng.random(n) < 0.75, rng.random(n) < 0.02).astype(float), cluster


def grades(n: int, rng: Rng) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Grades 0 to 4 all over the scale: t intervals as before."""
    quality = rng.normal(size=n)
    y, f = (np.clip(np.round(2 + quality + 0.6 * rng.normal(size=n)), 0, 4) for _ in range(2))
    return y, f, np.arange(n)


PROCESSES: dict[str, tuple[Population, Scale]] = {
    "ceiling": (graded_ceiling, GRADES),
    "panel at the ceiling": (panel_ceiling, scale_of(range(4))),
    "flags of 3 %": (rare, FLAG),
    "flags in dialogues": (rare_in_dialogues, FLAG),
    "grades": (grades, GRADES),
}


def labelled_clusters(cluster: NDArray[np.intp], n: int, rng: Rng) -> NDArray[np.bool_]:
    """Whole clusters, drawn by chance, with about n items."""
    order = rng.permutation(np.unique(cluster))
    sizes = np.bincount(cluster, minlength=int(cluster.max()) + 1)[order]
    return np.isin(cluster, order[: max(int(np.searchsorted(sizes.cumsum(), n, side="left")) + 1, 2)])


def corrected_figures(
    y: Floats, f: Floats, cluster: NDArray[np.intp], n: int, scale: Scale, rng: Rng
) -> Iterator[tuple[str, Estimate]]:
    """What ``panelbench stats correct`` says of one sample."""
    has_label = labelled_clusters(cluster, n, rng)
    compared = against_panel(np.where(has_label, y, np.nan)[:, None], f, scale, cluster)
    wanted = ("classical_mean", "ppi_mean", "ppi_plus_mean", "mean_of_these_items")
    for e in correct(compared, statistics=wanted, seed=int(rng.integers(2**31))):
        yield " ".join(filter(None, (e.statistic, e.variant))), e
    # Items that the judge marks down are drawn four times as often.
    chance = np.where(f < f.max() if scale.q > 2 else f > 0, 4.0, 1.0)
    chance = np.minimum(chance * n / chance.sum(), 1)
    drawn = rng.random(len(y)) < chance
    items = ScoredItems(
        np.where(drawn, y, np.nan), f, np.arange(len(y)), ppi.LabelledSample.of(y[:0], f[:0], f[:0]), chance, True,
        (float(scale.values[0]), float(scale.values[-1])),
    )  # fmt: skip
    if len(np.unique(cluster)) == len(cluster):
        yield "corrected mean, unequal probabilities", weighted_mean(items, f, 0.95)


def family(draw: Population, n: int, scale: Scale, rng: Rng) -> Iterator[tuple[str, Estimate]]:
    """The corrected means of four generators, each at 1 - .05 / 4."""
    confidence = 1 - 0.05 / GENERATORS
    ends = float(scale.values[0]), float(scale.values[-1])
    for _ in range(GENERATORS):
        y, f, cluster = draw(ITEMS, rng)
        own = labelled_clusters(cluster, n, rng)
        s = ppi.LabelledSample(y[own], f[own], f[~own], cluster[own], cluster[~own])
        how = {"confidence": confidence, "ends": ends}
        yield "panel means of 4, together", ppi.classical_mean(s.y, s.cluster, **how)  # type: ignore[arg-type]
        yield "corrected means of 4, together", ppi.crossfit_mean(s, rng=rng, **how).estimate  # type: ignore[arg-type]


def study(name: str, n: int, numbers: range) -> dict[str, IntervalTally]:
    """The coverage of each figure over the samples of these numbers."""
    draw, scale = PROCESSES[name]
    truth = float(draw(LARGE, np.random.default_rng(99))[0].mean())
    tallies: defaultdict[str, IntervalTally] = defaultdict(IntervalTally)
    for number in numbers:
        rng = np.random.default_rng([26, n, number])
        y, f, cluster = draw(ITEMS, rng)
        for figure, e in corrected_figures(y, f, cluster, n, scale, rng):
            tallies[figure].count(e, float(y.mean()) if e.statistic == "mean_of_these_items" else truth)
        together: defaultdict[str, list[Estimate]] = defaultdict(list)
        for figure, e in family(draw, n, scale, rng):
            together[figure].append(e)
        for figure, found in together.items():
            tallies[figure].count(_joint(found, truth), truth)
    return dict(tallies)


def _joint(found: list[Estimate], truth: float) -> Estimate:
    """One interval that holds the truth where all of them do; marked where one is."""
    missing = next((e for e in found if e.low is None or e.high is None), None)
    if missing is not None:
        return missing
    wrong = next((e for e in found if not e.low - 1e-9 <= truth <= e.high + 1e-9), found[0])  # type: ignore[operator]
    marked = any("approximate" in (e.method or "") for e in found)
    return wrong.with_(method="approximate" if marked else wrong.method)


def print_table() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("samples", nargs="?", type=int, default=2000)
    parser.add_argument("--process", choices=tuple(PROCESSES), action="append")
    parser.add_argument("--start", type=int, default=0)
    asked = parser.parse_args()
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    for name in asked.process or PROCESSES:
        for n in LABELS:
            for figure, t in study(name, n, range(asked.start, asked.start + asked.samples)).items():
                given = max(t.given, 1)
                share, plain = t.held / given, t.given - t.marked
                others = f"{t.plain_held / plain:.3f}" if plain >= 0.05 * t.samples else ""
                cells = (
                    name, n, figure, f"{share:.3f}", f"{t.samples:,}",
                    f"{math.sqrt(share * (1 - share) / given):.3f}", f"{t.width / given:.3g}",
                    f"{1 - t.given / t.samples:.2f}", f"{t.marked / given:.2f}", others, t.verdict(0.93, 0.97),
                )  # fmt: skip
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    print_table()
