"""Few clusters and few items: intervals cover, or say in words that they may not (docs/decisions/0017)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from analytics.stats.agreement import coefficient_estimates, pairwise
from analytics.stats.agreement.coefficient_estimates import Resampling
from analytics.stats.core.estimates import Estimate, wilson_interval
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
        assert (alpha.low, alpha.high) == pytest.approx((by_hand.low, by_hand.high))


def test_a_kappa_that_is_not_between_0_and_1_keeps_fishers_z() -> None:
    scores = np.array([[0, 1], [1, 0]] * 10, dtype=float)
    scores[0] = 0
    drawn = PopulationSample(scores, scores[:, 0], np.arange(20))
    kappa = coefficients(drawn, FLAG)["cohen_kappa"]
    assert kappa.value is not None and kappa.value < 0
    assert kappa.low is not None and kappa.low < kappa.value


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
