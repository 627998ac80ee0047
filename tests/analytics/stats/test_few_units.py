"""Few clusters and few items: intervals cover, or say in words that they may not (docs/decisions/0017)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import stdtrit

from analytics.stats.agreement import coefficient_estimates, pairwise
from analytics.stats.agreement.coefficient_estimates import Resampling
from analytics.stats.core.estimates import Estimate, jackknife_interval, wilson_interval
from analytics.stats.core.scales import Scale, scale_of
from analytics.stats.core.tables import coded_from_matrix
from analytics.stats.judge import calibration
from bench import populations
from bench.populations import PopulationSample, against_panel

FLAG, GRADES = scale_of([0, 1], "nominal"), scale_of(range(4))
ALPHA = 0.3995
"""Of flags in dialogues (300,000 of them: bench/coverage_processes.py)."""


def coefficients(drawn: PopulationSample, scale: Scale) -> dict[str, Estimate]:
    """Alpha, Fleiss' kappa and AC1 of the panel, the mean kappa of its pairs, and Conger's."""
    cell = coded_from_matrix(drawn.humans, scale=scale, clusters=drawn.cluster)
    rng, how = np.random.default_rng(0), Resampling(300)
    wanted = {("krippendorff_alpha", None), ("fleiss_kappa", "unequal"), ("gwet_ac", "identity")}
    chosen = [f for f in coefficient_estimates.figures_for(cell) if (f.statistic, f.variant) in wanted]
    found = {e.statistic: e for e in coefficient_estimates.estimates_from_counts(cell, chosen, rng=rng, how=how)}
    for rows in (pairwise.cohen_rows, pairwise.conger_rows):
        found |= {e.statistic: e for e, raters in rows(cell, rng=rng, how=how, positional=False) if raters is None}
    return found


@pytest.mark.slow
def test_of_flags_in_ten_dialogues_alpha_covers() -> None:
    """300 samples: Fisher's z held the truth in 281 of them, Wilson's interval holds it in 289."""
    held = 0
    for number in range(300):
        drawn = populations.clustered_flags(10, np.random.default_rng([17, 10, number]))
        alpha = coefficients(drawn, FLAG)["krippendorff_alpha"]
        assert alpha.low is not None and alpha.high is not None
        held += alpha.low <= ALPHA <= alpha.high
    assert held >= 285


@pytest.mark.parametrize(("clusters", "is_wilson"), [(10, True), (29, True), (30, False)])
@pytest.mark.parametrize("scale", [FLAG, GRADES])
def test_kappas_and_alpha_of_few_clusters_have_wilsons_interval(clusters: int, is_wilson: bool, scale: Scale) -> None:
    draw = populations.clustered_flags if scale is FLAG else populations.dialogue_sample
    found = coefficients(draw(clusters, np.random.default_rng(clusters)), scale)
    for name in ("krippendorff_alpha", "fleiss_kappa", "cohen_kappa", "conger_kappa"):
        assert (found[name].method or "").startswith(
            "Wilson t, jackknife" if is_wilson else "jackknife t of Fisher's z"
        )
        assert "approximate" not in (found[name].method or "")
    assert found["gwet_ac"].method == "jackknife t of Fisher's z"
    if is_wilson and (alpha := found["krippendorff_alpha"]).se is not None:
        by_hand = wilson_interval(alpha.value or 0, alpha.se, clusters, df=clusters - 1)
        plain = (alpha.value or 0) - float(stdtrit(clusters - 1, 0.975)) * alpha.se
        assert (alpha.low, alpha.high) == pytest.approx((min(by_hand.low or 0, plain), by_hand.high))


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "true"), [(0.0, 0.0), (0.37, 0.1015)])
def test_of_raters_who_hardly_agree_kappas_and_alpha_cover(spread: float, true: float) -> None:
    """300 samples of flags in ten dialogues: Wilson's interval held 0 in 146 of them, a kappa of .1 in 269."""
    held: Counter[str] = Counter()
    for number in range(300):
        drawn = populations.clustered_flags(10, np.random.default_rng([17, 10, number]), spread=spread)
        for name, e in coefficients(drawn, FLAG).items():
            assert e.low is not None and e.high is not None
            held[name] += e.low <= true <= e.high
    assert min(held[name] for name in ("krippendorff_alpha", "fleiss_kappa", "cohen_kappa", "conger_kappa")) >= 282


@pytest.mark.parametrize("se", [0.05, 0.15, 0.3])
def test_intervals_of_kappa_have_no_jump(se: float) -> None:
    values = np.arange(-0.9, 0.95, 0.005)
    made = [jackknife_interval(value, se, 9, "coefficient", is_kappa=True) for value in values]
    low, high = (np.array([getattr(one, end) for one in made]) for end in ("low", "high"))
    assert (np.abs(np.diff(low)) < 0.02).all() and (np.abs(np.diff(high)) < 0.02).all()
    assert (low <= values).all() and (values <= high).all() and low.min() >= -1 and high.max() <= 1
    reaches = values < 2 * se
    assert (low[reaches] < 0).all(), "less than two standard errors from 0, and 0 is not in it"
    clear = values >= 0.5
    wilson = [wilson_interval(value, se, 10, df=9) for value in values[clear]]
    assert low[clear] == pytest.approx([min(one.low or 0, v - stdtrit(9, 0.975) * se)
                                        for one, v in zip(wilson, values[clear], strict=True)])  # fmt: skip
    assert high[clear] == pytest.approx([one.high for one in wilson])


def test_a_kappa_below_0_has_its_value_in_its_interval() -> None:
    scores = np.array([[0, 1], [1, 0]] * 10, dtype=float)
    scores[0] = 0
    drawn = PopulationSample(scores, scores[:, 0], np.arange(20))
    kappa = coefficients(drawn, FLAG)["cohen_kappa"]
    assert kappa.value is not None and kappa.value < 0
    assert kappa.low is not None and kappa.high is not None and -1 <= kappa.low < kappa.value < kappa.high


def test_items_with_a_single_rating_give_no_degree_of_freedom() -> None:
    """Ten items with three ratings decide alpha and kappas, however many others one rater scored alone."""
    rng = np.random.default_rng(4)
    three = populations.clustered_flags(10, rng, size=6).humans
    alone = np.full((300, 3), np.nan)
    alone[:, 0] = rng.integers(0, 2, 300)
    both = np.vstack([three, alone])
    few = coefficients(PopulationSample(three, both[:, 0], np.arange(60) // 6), FLAG)
    clusters = np.concatenate([np.arange(60) // 6, 10 + np.arange(300) // 6])
    many = coefficients(PopulationSample(both, both[:, 0], clusters), FLAG)
    for name in ("krippendorff_alpha", "fleiss_kappa", "cohen_kappa"):
        assert (few[name].value, few[name].low) != (None, None)
        assert (many[name].method or "").startswith("Wilson t, jackknife"), "units without a pair are none"
        widths = [(e.high or 0) - (e.low or 0) for e in (few[name], many[name])]
        assert widths[1] > 0.95 * widths[0], name
    assert ("commonest" in (few["fleiss_kappa"].method or "")) == ("commonest" in (many["fleiss_kappa"].method or ""))
    assert "approximate" in (few_off(both, clusters).method or ""), "items off the commonest point that have no pair"


def few_off(scores: NDArray[np.float64], clusters: NDArray[np.intp]) -> Estimate:
    """Fleiss' kappa where of the items that have a pair only five leave the commonest point."""
    changed = scores.copy()
    changed[:55, :] = 0
    return coefficients(PopulationSample(changed, changed[:, 0], clusters), FLAG)["fleiss_kappa"]


def test_continuous_scores_with_a_single_rating_give_no_degree_of_freedom() -> None:
    rng = np.random.default_rng(5)
    scores = np.full((250, 2), np.nan)
    scores[:, 0] = rng.random(250)
    scores[:10, 1] = np.clip(scores[:10, 0] + 0.1 * rng.normal(size=10), 0, 1)
    scale = scale_of(np.unique(scores[~np.isnan(scores)]), "interval", declared=False)
    cell = coded_from_matrix(scores, scale=scale)
    chosen = [f for f in coefficient_estimates.figures_for(cell) if f.statistic == "krippendorff_alpha"]
    alpha = coefficient_estimates.estimates_from_counts(cell, chosen, rng=rng, how=Resampling(300))[0]
    assert (alpha.method or "").startswith("Wilson t, jackknife")


def methods(humans: NDArray[np.float64], judge: NDArray[np.float64]) -> dict[str, str]:
    found = calibration.calibrate(against_panel(humans, judge, GRADES), rule="median", bootstrap=300)
    return {e.statistic: e.method or "" for e in found}


def test_rmse_and_weighted_f1_of_few_items_say_so() -> None:
    rng = np.random.default_rng(2)
    for n in (44, 45, 59, 60):
        seen = np.clip(np.round(1.5 + 0.6 * rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, 4))), 0, 3)
        found = methods(seen[:, :3], seen[:, 3])
        assert (f"approximate: {n} items do not show whether tails are heavy" in found["rmse"]) == (n < 45)
        assert "approximate" not in found["mae"] + found["accuracy"]
        assert "approximate" not in found["f1_weighted"], "scores are all over the scale"
        drawn = populations.ceiling(n, rng)
        found = methods(drawn.humans, drawn.judge)
        assert ("items off the commonest point" in found["f1_weighted"]) == (n < 60)
