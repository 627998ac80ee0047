"""Language severity, equivalence and label recovery: statsmodels as the oracle, effects put in and found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from analytics.stats.judge.audits import differential_functioning, tost
from analytics.stats.judge.calibrators import fit_ordinal
from analytics.stats.judge.soundness import label_recovery


def judged(shift: float, slope: float, n: int = 600, seed: int = 15) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    language = np.arange(n) % 2
    reference = rng.normal(size=n)
    drive = reference * (1 + slope * language) + shift * language
    return np.digitize(drive + 0.6 * rng.logistic(size=n), [-1.0, 0.0, 1.0]), reference, language


def test_ordinal_regression_matches_statsmodels() -> None:
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    codes, reference, language = judged(0.5, 0)
    columns = np.column_stack([reference, language])
    oracle = OrderedModel(codes, columns, distr="logit").fit(method="bfgs", disp=False)
    fitted = fit_ordinal(codes, columns)
    assert fitted.slopes == pytest.approx(oracle.params[:2], abs=1e-3)
    assert fitted.loss == pytest.approx(-oracle.llf, rel=1e-6)


def test_a_lenient_language_is_found_with_its_direction() -> None:
    found = differential_functioning(*judged(0.8, 0))
    assert found.p_uniform < 0.001
    assert found.shift[0] > 0.5
    assert found.p_nonuniform > 0.01


def test_a_language_that_stretches_the_scale_is_non_uniform() -> None:
    assert differential_functioning(*judged(0, 1.5)).p_nonuniform < 0.001


def test_no_language_effect_is_seldom_claimed() -> None:
    p = [differential_functioning(*judged(0, 0, n=200, seed=s)).p_uniform for s in range(40)]
    assert stats.kstest(p, "uniform").pvalue > 0.001


def test_one_language_or_a_constant_judge_is_undefined() -> None:
    codes, reference, _ = judged(0, 0)
    assert differential_functioning(codes, reference, np.zeros(600, int)).reason
    assert differential_functioning(np.ones(600, int), reference, np.arange(600) % 2).reason


def test_tost_is_the_larger_of_two_one_sided_t_tests() -> None:
    rng = np.random.default_rng(16)
    first = rng.normal(3, 1, 80)
    second = first + rng.normal(0.01, 0.1, 80)
    gap = first - second
    expected = max(
        stats.ttest_1samp(gap, -0.05, alternative="greater").pvalue,
        stats.ttest_1samp(gap, 0.05, alternative="less").pvalue,
    )
    found = tost(first, second, np.arange(80))
    assert found.p == pytest.approx(expected)
    assert (found.p < 0.05) == (found.low > -0.05 and found.high < 0.05)


def test_tost_on_identical_scores_and_without_pairs() -> None:
    same = np.array([1.0, 2.0])
    assert tost(same, same, np.arange(2)).p == 0
    assert tost(np.array([np.nan]), np.array([1.0]), np.zeros(1, int)).value is None


def test_label_recovery_counts_missing_readings_apart() -> None:
    given = [{"channel": "email", "agent": "bot"}, {"channel": "chat", "agent": "human"}, {"channel": "chat"}]
    recovered = [{"channel": " Email", "agent": "human"}, {"channel": "email", "agent": None}, {}]
    agent, channel, overall = label_recovery(given, recovered, [0, 1, 2])
    assert (agent.variant, agent.value, agent.n_items, agent.n_missing) == ("agent", 0.0, 1, 2)
    assert (channel.value, channel.n_missing) == (0.5, 1)
    assert overall.value == pytest.approx((0.5 + 0) / 2)
