"""Means near the ends of a scale: intervals that respect the ends and cover (issue 26, C17)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import stdtrit

from analytics.stats.core.bounded import AT_ENDS, BOUNDED, added, bounded_interval, needs_bounds, within_bounds
from analytics.stats.core.estimates import Interval, t_interval, wilson_interval
from analytics.stats.core.scales import Scale, scale_of
from analytics.stats.judge.corrected_means import correct, scale_ends
from analytics.stats.judge.ppi import LabelledSample, classical_mean, crossfit_mean
from bench.coverage_bounded import PROCESSES, labelled_clusters, study
from bench.populations import against_panel

GRADES = scale_of(range(5))


def test_all_labels_at_the_top_are_worked_by_hand() -> None:
    """40 labels of 4 on a scale of 0 to 4, and a quarter of one at each end. The likelihood of a mean mu is largest
    with p at 4 and 1 - p at 0, mu = 4 p:
    40.25 log(p / p0) + 0.25 log((1 - p) / (1 - p0)) = -q^2 / 2, p0 = 40.25 / 40.5.
    """
    q = float(stdtrit(39, 0.975))
    p0 = (40 + AT_ENDS) / (40 + 2 * AT_ENDS)

    def excess(p: float) -> float:
        return -40.25 * math.log(p / p0) - 0.25 * math.log((1 - p) / (1 - p0)) - q**2 / 2

    low = 4 * brentq(excess, 0.5, p0)
    wilson = wilson_interval(4.0, 0.0, 40, ends=(0, 4), df=39).low
    assert wilson is not None
    found = bounded_interval(np.full(40, 4.0), np.ones(40), (0, 4), 39)
    assert (found.low, found.high) == (pytest.approx(min(low, wilson), abs=1e-5), pytest.approx(4.0, abs=1e-6))
    assert found.method == f"{BOUNDED} (approximate: few labels differ)"


@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_those_of_a_general_maximiser(seed: int) -> None:
    """The largest likelihood of each mean by scipy's search over l, clusters of unequal size included."""
    rng = np.random.default_rng(seed)
    x, w = rng.choice(5, 30, p=[0.1, 0.02, 0.03, 0.05, 0.8]).astype(float), rng.integers(1, 4, 30).astype(float)
    v = w / w.max()
    every, weights = np.append(x, [0.0, 4.0]), np.append(v, [v.mean()] * 2)
    counts = np.append(np.ones(30), [AT_ENDS] * 2)

    def refuted(mu: float) -> bool:
        d = weights * (every - mu)
        most = (-1 / (4 - mu) + 1e-9, 1 / mu - 1e-9)
        best = minimize_scalar(
            lambda at: -float(counts @ np.log1p(at * d)), bounds=most, method="bounded", options={"xatol": 1e-10}
        )
        return -best.fun > float(stdtrit(20, 0.975)) ** 2 / 2

    found = bounded_interval(x, w, (0, 4), 20)
    assert found.low is not None and found.high is not None
    # Bounds are those of the likelihood or of Wilson's interval, whichever is farther.
    assert refuted(found.low - 0.01) and refuted(found.high + 0.01)
    shifted = bounded_interval(4 - x, w, (0, 4), 20)
    assert shifted.low == pytest.approx(4 - found.high, abs=1e-5)
    scaled = bounded_interval(10 + 25 * x, w, (10, 110), 20)
    assert scaled.low == pytest.approx(10 + 25 * found.low, abs=1e-3)


def test_scores_all_over_the_scale_keep_t() -> None:
    rng = np.random.default_rng(2)
    y = np.clip(np.round(2 + rng.normal(size=60)), 0, 4)
    assert not needs_bounds(y, np.ones(60)) and needs_bounds(np.r_[np.zeros(3), np.full(57, 4.0)], np.ones(60))
    plain, ended = classical_mean(y, np.arange(60)), classical_mean(y, np.arange(60), ends=(0, 4))
    assert plain == ended and plain.method == "cluster-robust t"


def test_what_is_added_moves_the_bounds_away() -> None:
    y, q = np.r_[np.zeros(2), np.ones(58)], float(stdtrit(59, 0.975))
    alone = bounded_interval(y, np.ones(60), (0, 1), 59)
    more = bounded_interval(y, np.ones(60), (0, 1), 59, more=0.02**2)
    assert alone.low is not None and more.low is not None
    assert more.low == pytest.approx(y.mean() - math.hypot(y.mean() - alone.low, 0.02 * q))
    t = t_interval(0.5, 0.1, 59, method="t")
    assert within_bounds(t, 0.5, y, np.arange(60), None, df=59) is t
    two = added(1.0, [(1.0, 3.0, Interval(low=2, high=5)), (-1.0, 2.0, Interval(low=1, high=6))], "two", 0.95)
    assert (two.low, two.high) == (pytest.approx(1 - math.hypot(1, 4)), pytest.approx(1 + math.hypot(2, 1)))


def test_scales_without_ends_have_none() -> None:
    assert scale_ends(scale_of([0, 1], "nominal")) is None
    assert scale_ends(scale_of([0.5, 3.25], "interval", declared=False)) is None
    assert scale_ends(GRADES) == (0.0, 4.0)
    assert scale_ends(Scale(("low", "high"), "ordinal")) == (0.0, 1.0)


def test_the_mean_of_these_items_is_a_finite_population() -> None:
    """The value of PPI++, the error of y - b f by ordinary least squares, times sqrt(1 - n / M)."""
    rng = np.random.default_rng(3)
    y = np.clip(np.round(2 + rng.normal(size=300)), 0, 4)
    f = np.clip(np.round(y + 0.7 * rng.normal(size=300)), 0, 4)
    has_label = np.arange(300) < 120
    compared = against_panel(np.where(has_label, y, np.nan)[:, None], f, GRADES)
    found = {(e.statistic, e.variant): e for e in correct(compared)}
    these, plus = found["mean_of_these_items", None], found["ppi_plus_mean", "crossfit"]
    assert these.value == plus.value and these.note == "120 of 300 items are labelled"
    slope = np.polyfit(f[has_label], y[has_label], 1)
    residual = y[has_label] - np.polyval(slope, f[has_label])
    assert these.se == pytest.approx(math.sqrt(0.6) * residual.std(ddof=1) / math.sqrt(120), rel=0.05)
    assert these.low is not None and plus.low is not None and plus.low < these.low

    every = against_panel(y[:, None], f, GRADES)
    known = next(e for e in correct(every) if e.statistic == "mean_of_these_items")
    assert known.value == pytest.approx(y.mean())
    assert (known.low, known.interval_reason) == (None, "every item is labelled: the mean of these items is known")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n", "before"), [("ceiling", 60, 0.885), ("flags of 3 %", 100, 0.824)])
def test_means_near_the_ends_cover(name: str, n: int, before: float) -> None:
    """60 samples; with t alone ``before`` of 2,000 held the truth (classical mean; docs/decisions/0044)."""
    tallies = study(name, n, range(60))
    for figure in ("classical_mean", "ppi_plus_mean crossfit", "mean_of_these_items", "corrected means of 4, together"):
        tally = tallies[figure]
        assert tally.given == 60, figure
        assert tally.held >= 54 > 60 * before, figure


@pytest.mark.slow
def test_four_corrected_means_near_the_ceiling_hold_together() -> None:
    """40 labels for each of four generators: t intervals at 1 - .05 / 4 held all four truths in .72 of the samples."""
    process, scale = PROCESSES["ceiling"]
    truth, held, by_t = float(process(400_000, np.random.default_rng(99))[0].mean()), 0, 0
    for number in range(40):
        rng = np.random.default_rng([4, number])
        inside = {"bounded": True, "t": True}
        for _ in range(4):
            y, f, cluster = process(600, rng)
            own = labelled_clusters(cluster, 40, rng)
            s = LabelledSample(y[own], f[own], f[~own], cluster[own], cluster[~own])
            for how, ends in (("bounded", scale_ends(scale)), ("t", None)):
                e = crossfit_mean(s, rng=np.random.default_rng(1), confidence=0.9875, ends=ends).estimate
                inside[how] &= e.low is not None and e.high is not None and e.low <= truth <= e.high
        held, by_t = held + inside["bounded"], by_t + inside["t"]
    assert held >= 37 > by_t
