"""Do intervals of looks at a locked split hold, when the best look is reported? ``python -m bench.coverage_alignment``.

An alignment has versions of one judge with true agreements near each other, scenarios of four items whose agreement is
correlated, and k looks. Two ways of choosing what is looked at: the k versions that are best on tuning (fixed before
the first look), and hill climbing, where each further version is a change of the one with the best look so far.
Reported is the look with the highest figure. Printed: how often its interval holds the truth, without and with the
correction. A second table takes the dialogues and the judge of `tests/analytics/test_alignment.py`, `sim-flawed`
before and after it was mended: the truth is the mean over 3,000 scenarios, locked splits are drawn from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from analytics.stats.judge.alignment import corrected_confidence, mean_agreement, paired_gain

ALIGNMENTS, SCENARIOS, ITEMS, VERSIONS = 500, 40, 4, 12
LOOKS = (1, 3, 5, 10)
SHARED, CHANGE = 0.35, 0.3
"""Share of the variance that belongs to the scenario, and of what is new in a version that is a change of another."""
Floats = NDArray[np.float64]


class Side:
    """Latent difficulty of the items of one side; versions that are alike err on the same items."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.cluster = np.repeat(np.arange(SCENARIOS), ITEMS)
        self.items = self.part()

    def part(self) -> Floats:
        """(N,) standard normal, correlated within scenarios."""
        shared = self.rng.normal(size=SCENARIOS)[self.cluster]
        return np.sqrt(SHARED) * shared + np.sqrt(1 - SHARED) * self.rng.normal(size=len(self.cluster))

    def agreement(self, own: Floats, truth: float) -> Floats:
        """(N,) 0 or 1 with mean ``truth``: half of the latent variance is the items', half the version's own."""
        return (np.sqrt(0.5) * self.items + np.sqrt(0.5) * own < ndtri(truth)).astype(np.float64)


def one(rng: np.random.Generator, looks: int, *, climbs: bool) -> Iterator[tuple[str, bool, bool]]:
    """For the reported look, by figure: whether its interval holds the truth at 95 %, and at the corrected level."""
    tuning, test = Side(rng), Side(rng)
    base_truth = 0.65
    base = test.agreement(test.part(), base_truth)
    truths = [float(ndtr(ndtri(base_truth) + rng.normal(0.15, 0.05))) for _version in range(max(VERSIONS, looks))]
    tuned = [tuning.agreement(tuning.part(), truth).mean() for truth in truths]
    order = list(np.argsort(tuned)[::-1])
    looked: list[tuple[float, float, Floats]] = []
    parts: list[Floats] = []
    for number in range(looks):
        truth, own = truths[order[number]], test.part()
        if climbs and looked:
            best = int(np.argmax([figure for figure, _truth, _values in looked]))
            own = np.sqrt(1 - CHANGE) * parts[best] + np.sqrt(CHANGE) * own
            truth = float(ndtr(ndtri(looked[best][1]) + rng.normal(0, 0.05)))
        parts.append(own)
        values = test.agreement(own, truth)
        looked.append((float(values.mean()), truth, values))
    _figure, truth, values = max(looked, key=lambda look: look[0])
    level = corrected_confidence(0.95, looks=looks)
    for name, aim in (("agreement", truth), ("gain", truth - base_truth)):
        held = []
        for confidence in (0.95, level):
            if name == "gain":
                found = paired_gain(values, base, test.cluster, items=len(values), confidence=confidence)
            else:
                found = mean_agreement(values, test.cluster, items=len(values), confidence=confidence)
            held.append(found.low is not None and found.high is not None and found.low <= aim <= found.high)
        yield name, held[0], held[1]


def table_lines() -> Iterator[str]:
    """The table, a row for each way of choosing, number of looks and figure."""
    yield "| chosen by | looks | figure | naive 95 % covers | corrected covers | Monte Carlo error |"
    yield "|---|---|---|---|---|---|"
    for climbs in (False, True):
        for looks in LOOKS:
            rng = np.random.default_rng([looks, climbs])
            held: dict[str, list[tuple[bool, bool]]] = {"agreement": [], "gain": []}
            for _alignment in range(ALIGNMENTS):
                for name, naive, corrected in one(rng, looks, climbs=climbs):
                    held[name].append((naive, corrected))
            for name, rows in held.items():
                naive, corrected = np.mean(rows, axis=0)
                error = np.sqrt(corrected * (1 - corrected) / ALIGNMENTS)
                way = "hill climbing on the looks" if climbs else "tuning, before the first look"
                yield f"| {way} | {looks} | {name} | {naive:.3f} | {corrected:.3f} | {error:.3f} |"


SPLITS, POPULATION = 4000, 3000


def flawed_lines() -> Iterator[str]:
    """The table of the flawed judge: how often the interval of its gain holds the truth, by scenarios and looks."""
    import django

    django.setup()
    from judging.prompts import CriterionBrief, PointBrief
    from tests.analytics import test_alignment as study

    points = tuple(PointBrief(value, "", f"fluency at {value}") for value in range(4))
    brief = CriterionBrief(key="fluency", name="Fluency", points=points)
    gains = np.array([[_gain(study, brief, number, one) for one in ("en", "et")] for number in range(POPULATION)])
    truth = float(gains.mean())
    yield f"True gain {truth:.3f}; in the first 60 scenarios, which the test uses, {gains[:60].mean():.3f}."
    yield ""
    yield "| locked scenarios | looks allowed | covers | wanted | Monte Carlo error | half width |"
    yield "|---|---|---|---|---|---|"
    rng = np.random.default_rng(1)
    for scenarios, looks in product((12, 24, 40), (1, 3)):
        level, held, widths = corrected_confidence(0.95, looks=looks), [], []
        cluster = np.repeat(np.arange(scenarios), 2)
        for _split in range(SPLITS):
            own = gains[rng.integers(POPULATION, size=scenarios)].ravel()
            found = paired_gain(own, np.zeros(len(own)), cluster, items=len(own), confidence=level)
            if found.low is not None and found.high is not None:
                held.append(found.low <= truth <= found.high)
                widths.append((found.high - found.low) / 2)
        share = sum(held) / SPLITS
        error = np.sqrt(share * (1 - share) / SPLITS)
        yield f"| {scenarios} | {looks} | {share:.3f} | {level:.3f} | {error:.3f} | {np.mean(widths):.3f} |"


def _gain(study: Any, brief: Any, number: int, language: str) -> float:
    label = study.label(brief, number, language)
    mended, flawed = (study.judged(brief, number, language, text) for text in (study.MENDING, ""))
    return float((mended == label) - (flawed == label))


if __name__ == "__main__":
    for line in (*table_lines(), "", *flawed_lines()):
        print(line, flush=True)
