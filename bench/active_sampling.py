"""Do estimates stay valid after active sampling, and may one stop when one likes?
``python -m bench.active_sampling [CAMPAIGNS]`` writes two tables in Markdown.

A simulated campaign: 600 items of three generators in scenarios of two, scored by a judge that is often wrong where it
gives middle scores; people label a random pilot of 60, then about 90 more. `active`: drawn with the probabilities of
`stats.planning.pilot` from what the pilot showed, estimated as on the page Results (pilot certain, the wave with its
probabilities). `uncertainty`: the 90 items with the largest expected error, unweighted (classical mean, and
cross-fitted PPI++). `random`: 90 more at random. Printed: how often the 95 % interval holds the mean label of the
campaign's items.

Stopping: labels of one language arrive one by one; the study stops when the interval is narrow enough, or looks after
each label for an interval that excludes the truth. `sequence`: `interval_sequence`; `naive`: the t interval, looked at
again and again from the tenth label on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import Estimate
from analytics.stats.judge.corrected_means import ScoredItems
from analytics.stats.judge.leaderboard import weighted_mean
from analytics.stats.judge.ppi import classical_mean, crossfit_mean
from analytics.stats.planning.pilot import expected_error, inclusion_probabilities, independent_draws, interval_sequence

Floats = NDArray[np.float64]
ITEMS, PILOT, WAVE = 600, 60, 90
LOW, HIGH = 0.0, 4.0
LABELS, FIRST_LOOK, TARGET = 500, 10, 0.25


class SimulatedItems(NamedTuple):
    """Labels y (M,), judge scores f (M,) and scenarios (M,) of a campaign's items."""

    y: Floats
    f: Floats
    cluster: NDArray[np.intp]


def simulated_items(rng: np.random.Generator, *, kind: str) -> SimulatedItems:
    """Items of scenarios of two. `middle`: the judge is wrong on middle scores; `biased`: it is too high, and worse on
    low labels; `rare`: a tenth of the items has a label far below what the judge gives."""
    scenario = np.repeat(rng.normal(0, 0.5, ITEMS // 2), 2)
    quality = 2.3 + scenario + rng.normal(0, 0.8, ITEMS)
    seen = np.clip(np.rint(quality + rng.normal(0, 0.3, ITEMS)), LOW, HIGH)
    y = quality + rng.normal(0, 0.3, ITEMS)
    if kind == "middle":
        y = np.where(seen == 2, y + rng.normal(0, 1.6, ITEMS), y)
    elif kind == "biased":
        seen = np.clip(seen + 1.0, LOW, HIGH)
        y = np.where(seen < 3, y + rng.normal(0, 1.2, ITEMS), y)
    else:
        y = np.where((rng.random(ITEMS) < 0.1) & (seen >= 3), y - 2.5, y)
    return SimulatedItems(np.clip(np.rint(2 * y) / 2, LOW, HIGH), seen, np.repeat(np.arange(ITEMS // 2), 2))


def labelled(s: SimulatedItems, chosen: NDArray[np.bool_], probability: Floats | None = None) -> ScoredItems:
    """The campaign with the labels of the chosen items alone."""
    return ScoredItems.of_scores(np.where(chosen, s.y, np.nan), s.f, s.cluster, probability)


def estimates_of(s: SimulatedItems, rng: np.random.Generator) -> Iterator[tuple[str, Estimate]]:
    """The mean of all items by every way of drawing the second wave."""
    pilot = np.zeros(ITEMS, dtype=np.bool_)
    pilot[rng.permutation(ITEMS)[:PILOT]] = True
    error, left = expected_error(np.where(pilot, s.y, np.nan), s.f), ~pilot
    probability = np.ones(ITEMS)
    probability[left] = inclusion_probabilities(error[left], WAVE)
    active = pilot | (left & independent_draws(probability, rng=rng))
    yield "active, stored probabilities", weighted_mean(labelled(s, active, probability), s.f, 0.95)
    yield "active, without weights", classical_mean(s.y[active], s.cluster[active])
    worst = pilot.copy()
    worst[np.flatnonzero(left)[np.argsort(-error[left] + 1e-6 * rng.random(left.sum()))[:WAVE]]] = True
    yield "uncertainty, mean of the labels", classical_mean(s.y[worst], s.cluster[worst])
    yield "uncertainty, PPI++", crossfit_mean(labelled(s, worst).sample, rng=rng).estimate
    more = pilot.copy()
    more[rng.choice(np.flatnonzero(left), WAVE, replace=False)] = True
    yield "random, PPI++", crossfit_mean(labelled(s, more).sample, rng=rng).estimate


def active_lines(campaigns: int) -> Iterator[str]:
    """How often the interval holds the mean of the campaign's items, and how wide it is."""
    yield "| kind | second wave | holds the mean | error | mean width | bias | root mean squared error |"
    yield "|---|---|---|---|---|---|---|"
    for kind in ("middle", "biased", "rare"):
        rng, found = np.random.default_rng(20260101), dict[str, list[tuple[bool, float, float]]]()
        for _campaign in range(campaigns):
            s = simulated_items(rng, kind=kind)
            for name, estimate in estimates_of(s, rng):
                found.setdefault(name, []).append(_outcome(estimate, float(s.y.mean())))
        for name, rows in found.items():
            holds, width, bias = np.nanmean(rows, axis=0)
            error = np.sqrt(holds * (1 - holds) / campaigns)
            missed = np.sqrt(np.nanmean([off**2 for _holds, _width, off in rows]))
            cells = f"{100 * holds:.1f} % | {100 * error:.1f} | {width:.3f} | {bias:+.3f} | {missed:.3f}"
            yield f"| {kind} | {name} | {cells} |"


def _outcome(estimate: Estimate, truth: float) -> tuple[bool, float, float]:
    """Whether the interval holds the truth (an estimate that is refused does not), its width, the error."""
    if estimate.low is None or estimate.high is None or estimate.value is None:
        return False, np.nan, np.nan
    return estimate.low <= truth <= estimate.high, estimate.high - estimate.low, estimate.value - truth


def true_mean(draw: Callable[[np.random.Generator, int], Floats]) -> float:
    return float(draw(np.random.default_rng(1), 2_000_000).mean())


DRAWS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "labels of 5 points": lambda rng, n: np.clip(np.rint(rng.normal(2.4, 1.1, n)), LOW, HIGH),
    "a rare low score": lambda rng, n: np.where(rng.random(n) < 0.05, LOW, HIGH),
    "two points": lambda rng, n: np.where(rng.random(n) < 0.3, HIGH, LOW),
    "means of 3 raters": lambda rng, n: np.clip(np.rint(rng.normal(2.4, 0.9, (n, 3))), LOW, HIGH).mean(axis=1),
}


def stopping_lines(studies: int) -> Iterator[str]:
    """The error of looking after every label, of stopping by the width, and how many labels that takes."""
    yield "| labels | rule | excludes the truth at some look | wrong when stopped | median labels when stopped |"
    yield "|---|---|---|---|---|"
    for name, draw in DRAWS.items():
        truth, rng = true_mean(draw), np.random.default_rng(20260101)
        rules: dict[str, list[tuple[bool, bool, float]]] = {"sequence": [], "naive": []}
        for _study in range(studies):
            x = draw(rng, LABELS)
            for rule, (low, high) in {"sequence": interval_sequence(x, LOW, HIGH), "naive": naive_bounds(x)}.items():
                outside = (low > truth) | (high < truth)
                place = stopping_time(low, high, TARGET)
                at = LABELS if place is None else place
                rules[rule].append((bool(outside.any()), bool(outside[at - 1]), float(at)))
        for rule, rows in rules.items():
            found = np.array(rows, dtype=np.float64)
            ever, wrong = 100 * found[:, 0].mean(), 100 * found[:, 1].mean()
            yield f"| {name} | {rule} | {ever:.1f} % | {wrong:.1f} % | {np.median(found[:, 2]):.0f} |"


def stopping_time(lower: Floats, upper: Floats, half_width: float) -> int | None:
    """After how many values the interval is first no wider than twice the half width; None where it never is."""
    narrow = np.flatnonzero(upper - lower <= 2 * half_width)
    return int(narrow[0]) + 1 if len(narrow) else None


def naive_bounds(x: Floats) -> tuple[Floats, Floats]:
    """The t interval of all labels so far, looked at from the tenth on."""
    from scipy.special import stdtrit

    n = np.arange(1, len(x) + 1)
    mean = np.cumsum(x) / n
    variance = np.maximum(np.cumsum(x * x) - n * mean**2, 0) / np.maximum(n - 1, 1)
    half = np.where(n >= FIRST_LOOK, stdtrit(np.maximum(n - 1, 1), 0.975) * np.sqrt(variance / n), np.inf)
    return mean - half, mean + half


if __name__ == "__main__":
    campaigns = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    print(f"{campaigns} campaigns of {ITEMS} items, {PILOT} labels at random, then about {WAVE}\n")
    print("\n".join(active_lines(campaigns)))
    print(f"\n{campaigns} studies of {LABELS} labels each; stopped at a half width of {TARGET}\n")
    print("\n".join(stopping_lines(campaigns)))
