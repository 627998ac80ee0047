"""Do the 95 % intervals about judges cover? ``python -m bench.coverage_judges [STUDY ...]``.

Each study draws a sample of n items, asks for intervals the way the command line does, and counts how many hold the
truth: the figure on 400,000 items or more, or, where the figure depends on n by its nature (what calibration gains from
n labels), its value over all simulated samples. Printed: coverage, its Monte Carlo error, and the share of samples
without an interval. Agreement and calibration are in ``bench.coverage_processes``, rankings in
``bench.coverage_rankings``.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import Estimate, percentile
from analytics.stats.judge import (
    alt_test,
    audits,
    calibration_curve,
    calibrators,
    differences,
    human_ceiling,
    ppi,
    substitution,
)
from analytics.stats.judge.ppi import Flags, LabelledSample, rogan_gladen
from analytics.stats.ranking import concordance
from bench.coverage_rankings import POPULATIONS
from bench.populations import GRADES, against_panel, graded, panel, two_criteria

Floats = NDArray[np.float64]
Rng = np.random.Generator
Named = Iterable[tuple[str, Estimate]]
Truth = dict[str, float]

SIMULATIONS = 2000
RESAMPLES = 500
LARGE = 400_000
FEWER = (50, 100)
UNLABELLED = 1000
RARE = 0.03
CHEAP_CALIBRATORS = [name for name in calibrators.CALIBRATORS if name not in ("constant", "ordinal_logit")]


@dataclass(frozen=True, slots=True)
class SimulatedStudy:
    """``draw`` (n, rng) -> named estimates; ``truth`` (n) -> the figures of the population."""

    draw: Callable[[int, Rng], Named]
    truth: Callable[[int], Truth]
    sizes: tuple[int, ...] = (50, 100, 200)


@dataclass(slots=True)
class CoverageTally:
    """Of one interval at one n: samples, intervals given, intervals that hold the truth."""

    samples: int = 0
    given: int = 0
    held: int = 0
    methods: set[str] = field(default_factory=set)

    def count(self, estimate: Estimate, truth: float) -> None:
        """One more sample."""
        self.samples += 1
        if estimate.low is None or estimate.high is None:
            return
        self.given += 1
        self.held += estimate.low - 1e-9 <= truth <= estimate.high + 1e-9
        self.methods.add(estimate.method or "")


def _main() -> None:
    """One table to standard output, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=", ".join(STUDIES))
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    arguments = parser.parse_args()
    print("| study | interval | n | coverage | MC error | none given | method |\n|---|---|---|---|---|---|---|")
    for name in arguments.studies or STUDIES:
        for row in judge_coverage(name, STUDIES[name], arguments.simulations):
            print(row, flush=True)


def judge_coverage(name: str, study: SimulatedStudy, simulations: int) -> Iterator[str]:
    """Rows of the table."""
    for n in study.sizes:
        truth, rng = study.truth(n), np.random.default_rng([3, n, len(name)])
        tallies: defaultdict[str, CoverageTally] = defaultdict(CoverageTally)
        for _ in range(simulations):
            for figure, estimate in study.draw(n, rng):
                tallies[figure].count(estimate, truth[figure])
        for figure, tally in tallies.items():
            yield f"| {name} | {figure} | {n} | {_spelled(tally)} | {', '.join(sorted(tally.methods))} |"


def _spelled(tally: CoverageTally) -> str:
    none = 1 - tally.given / tally.samples
    if not tally.given:
        return f"| | {none:.3f}"
    share = tally.held / tally.given
    return f"{share:.3f} | {(share * (1 - share) / tally.given) ** 0.5:.3f} | {none:.3f}"


def _values(found: Named) -> Truth:
    return {name: float("nan") if e.value is None else e.value for name, e in found}


def _of_large(draw: Callable[[int, Rng, int], Named], n: int = LARGE) -> Callable[[int], Truth]:
    """The figures of one very large sample, whatever n."""
    kept: Truth = {}

    def truth(_: int) -> Truth:
        kept.update(kept or _values(draw(n, np.random.default_rng(4), 0)))
        return kept

    return truth


def _study(
    draw: Callable[[int, Rng, int], Named], *, sizes: tuple[int, ...] = (50, 100, 200), large: int = LARGE
) -> SimulatedStudy:
    return SimulatedStudy(lambda n, rng: draw(n, rng, RESAMPLES), _of_large(draw, large), sizes)


def _seed(rng: Rng) -> int:
    return int(rng.integers(2**31))


# --- a judge beside a panel ------------------------------------------------------------------------------------------


def _ceiling(n: int, rng: Rng, resamples: int) -> Named:
    compared = against_panel(*graded(n, rng), GRADES)
    return [(_name(e), e) for e in human_ceiling.ceiling_estimates(compared, bootstrap=resamples, seed=_seed(rng))]


def _substitution(n: int, rng: Rng, _: int) -> Named:
    found = substitution.substitution_estimates(against_panel(*graded(n, rng), GRADES), seed=_seed(rng))
    return [(_name(e), e) for e in found if e.variant != "paper_compat"]


def _curve(n: int, rng: Rng, _: int) -> Named:
    return [(_name(e), e) for e in calibration_curve.reliability_table(against_panel(*graded(n, rng), GRADES))]


def _alt_test(n: int, rng: Rng, resamples: int) -> Named:
    humans, judge = graded(n, rng)
    found = []
    for score in ("rmse", "accuracy"):
        if resamples:
            rows = alt_test.alt_test_report(
                panel(humans, judge), judge="gpt", score=score, bootstrap=resamples, seed=_seed(rng)
            )
            rho = next(row.estimate for row in rows if row.estimate.statistic == "alt_test_rho")
        else:
            rho = Estimate(
                statistic="alt_test_rho", value=alt_test.run_alt_test(judge, humans, [*"abc"], score=score).rho
            )
        found.append((f"alt_test_rho {score}", rho))
    return found


def _boards(n: int, rng: Rng) -> Named:
    """The mean of one generator of six in one of two languages, scenarios drawn jointly."""
    scores = POPULATIONS["neighbours"].draw(n, rng)
    boards = concordance.resampled_boards(scores, resamples=RESAMPLES, rng=rng, parallel=True)
    yield (
        "mean",
        Estimate(statistic="mean", value=concordance.board(scores)[0, 0]).with_(
            **percentile(boards[:, 0, 0]).as_changes()
        ),
    )


# --- corrected means -------------------------------------------------------------------------------------------------


def _means(n: int, rng: Rng) -> Named:
    humans, judge = graded(n + UNLABELLED, rng)
    y = humans.mean(axis=1)
    s = LabelledSample.of(y[:n], judge[:n], judge[n:])
    yield "classical_mean", ppi.classical_mean(s.y, s.cluster)
    yield "ppi_mean", ppi.ppi_mean(s)
    yield "ppi_plus_mean plain", ppi.ppi_plus_mean(s)
    yield "ppi_plus_mean crossfit", ppi.crossfit_mean(s, rng=rng).estimate
    yield "ppi_plus_mean stratified", ppi.stratified_mean(_strata(y, judge, n))
    yield "ppi_plus_mean active", _active(y, judge, n, rng)
    d, g = np.where(np.arange(len(y)) < n, humans[:, 0], np.nan), np.where(np.arange(len(y)) < n, humans[:, 1], np.nan)
    yield (
        "ppi_plus_difference",
        ppi.paired_difference((d, judge), (g, judge + rng.normal(size=len(y))), np.arange(len(y))),
    )


def _strata(y: Floats, judge: Floats, n: int) -> list[LabelledSample]:
    """Two strata by the judge's score, labels in proportion."""
    found = []
    for inside in (judge >= 2, judge < 2):
        labelled = np.flatnonzero(inside[:n])
        found.append(LabelledSample.of(y[labelled], judge[labelled], judge[n:][inside[n:]]))
    return found


def _active(y: Floats, judge: Floats, n: int, rng: Rng) -> Estimate:
    """About n labels, items the judge finds bad twice as likely."""
    weight = np.where(judge < 2, 2.0, 1.0)
    probability = np.minimum(1, n * weight / weight.sum())
    drawn = np.where(rng.random(len(y)) < probability, y, np.nan)
    return ppi.active_mean(drawn, judge, probability, np.arange(len(y)))


def _true_means(_: int) -> Truth:
    mean = float(graded(2_000_000, np.random.default_rng(4))[0].mean())
    names = (
        "classical_mean",
        "ppi_mean",
        *(f"ppi_plus_mean {v}" for v in ("plain", "crossfit", "stratified", "active")),
    )
    return dict.fromkeys(names, mean) | {"ppi_plus_difference": 0.0}


def _gain(n: int, rng: Rng) -> Named:
    """Gains from n labels, and per calibrator."""
    humans, judge = graded(n + UNLABELLED, rng)
    y = humans.mean(axis=1)[:n]
    found = ppi.crossfit_mean(LabelledSample.of(y, judge[:n], judge[n:]), rng=rng)
    yield (
        "ppi_gain",
        Estimate(
            statistic="ppi_gain",
            value=found.gain,
            low=found.gain_low,
            high=found.gain_high,
            reason="the labels do not vary",
        ),
    )
    for name in CHEAP_CALIBRATORS:
        v = calibrators.cross_validate(name, judge[:n], y, np.arange(n), rng=rng)
        gain = Estimate(
            statistic="calibration_gain", value=v.gain, low=v.gain_low, high=v.gain_high, reason="no variation"
        )
        yield f"calibration_gain {name}", gain


def _true_gain(n: int) -> Truth:
    """Variance of the labels' mean over that of theta, and errors beside the constant's, over many samples."""
    rng = np.random.default_rng([5, n])
    classical, powered = [], []
    errors: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for _ in range(4 * SIMULATIONS):
        humans, judge = graded(n + UNLABELLED, rng)
        y = humans.mean(axis=1)[:n]
        classical.append(y.mean())
        powered.append(ppi.crossfit_mean(LabelledSample.of(y, judge[:n], judge[n:]), rng=rng).estimate.value or 0.0)
        if len(classical) <= SIMULATIONS:
            for name in CHEAP_CALIBRATORS:
                v = calibrators.cross_validate(name, judge[:n], y, np.arange(n), rng=rng)
                errors[name].append((v.error, v.constant_error))
    gains = {f"calibration_gain {name}": 1 - np.divide(*np.mean(pairs, axis=0)) for name, pairs in errors.items()}
    return {"ppi_gain": float(np.var(classical) / np.var(powered)), **{k: float(v) for k, v in gains.items()}}


def _flags(n: int, rng: Rng) -> Named:
    """A flag on 15 % of the items, a judge with sensitivity .8 and specificity .9, n labelled and 1,000 other items."""
    truth = rng.random(n + UNLABELLED) < 0.15
    flag = np.where(truth, rng.random(len(truth)) < 0.8, rng.random(len(truth)) < 0.1)
    known, flagged = truth[:n], flag[:n]
    yield "rogan_gladen", rogan_gladen(
        Flags(
            flagged=int(flag[n:].sum()), judged=UNLABELLED,
            true_positives=int((known & flagged).sum()), positives=int(known.sum()),
            true_negatives=int((~known & ~flagged).sum()), negatives=int((~known).sum()),
        )
    )  # fmt: skip


# --- audits and contrasts --------------------------------------------------------------------------------------------


def _audits(n: int, rng: Rng, _: int) -> Named:
    humans, judge = graded(n, rng)
    where = np.arange(n)
    repeats = np.clip(judge[:, None] + rng.choice([-1, 0, 0, 0, 0, 1], size=(n, 3)), 0, 3)
    yield from ((_name(e), e) for e in audits.repeat_consistency(repeats, where))
    yield from ((_name(e), e) for e in audits.perturbation(repeats[:, 0], repeats[:, 1] - (rng.random(n) < 0.3), where))
    length = np.exp(rng.normal(5, 0.7, size=n))
    error = judge - humans.mean(axis=1) + 0.2 * np.log2(length) + (0.3 * length / 200) * rng.normal(size=n)
    yield "verbosity", audits.verbosity(error, length, rng.integers(0, 2, size=n))
    family = rng.integers(0, 2, size=n)
    own = np.stack([family == 0, family == 1, np.zeros(n, bool)], axis=1)
    three = rng.normal(size=(n, 1)) + np.array([0, 0.3, -0.2]) + 0.4 * own + 0.7 * rng.normal(size=(n, 3))
    yield "self_preference", audits.self_preference(three, own, where)
    yield from ((_name(e), e) for e in audits.scale_use(judge, GRADES.values) if e.variant != "out_of_range")
    rare = np.stack([judge, np.where(rng.random(n) < RARE, (judge + 1) % 4, judge)], axis=1)
    yield from ((f"{_name(e)}, {RARE:.0%} of the items", e) for e in audits.repeat_consistency(rare, where))


def _contrasts(n: int, rng: Rng, resamples: int) -> Named:
    table = two_criteria(n, rng)
    rows = differences.between_criteria(table, resamples=resamples or 1, seed=_seed(rng))
    rows += differences.between_panels(table.only(criterion=["tone"]), "crowd", "experts", resamples=resamples or 1)
    return [(row.estimate.statistic, row.estimate) for row in rows]


def _name(estimate: Estimate) -> str:
    return " ".join(filter(None, (estimate.statistic, estimate.variant)))


STUDIES = {
    "ceiling": _study(_ceiling),
    "alt-test": _study(_alt_test, sizes=FEWER),
    "substitution": _study(_substitution),
    "curve": _study(_curve),
    "audits": _study(_audits),
    "gain": SimulatedStudy(_gain, _true_gain, FEWER),
    "means": SimulatedStudy(_means, _true_means),
    "generators": SimulatedStudy(_boards, lambda _: {"mean": 0.0}),
    "prevalence": SimulatedStudy(_flags, lambda _: {"rogan_gladen": 0.15}),
    "contrasts": _study(_contrasts, sizes=FEWER, large=50_000),
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _main()
