"""Audits: statsmodels as the oracle, effects put in and found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analytics.stats.core.scales import range_scale
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import audits, soundness

NAN = np.nan


def test_repeats_worked_by_hand() -> None:
    # Items 1, 1 | 1, 3 | a single repeat: SDs 0 and sqrt 2, one flip in two.
    sd, flips = audits.repeat_consistency(np.array([[1, 1], [1, 3], [2, NAN]]), np.arange(3))
    assert sd.value == pytest.approx(np.sqrt(2) / 2)
    assert (flips.value, flips.n_items, flips.n_missing) == (0.5, 2, 1)


def test_shares_and_spreads_of_repeats_have_intervals_that_they_can_take() -> None:
    # Two of 150 items flip by a point: 2/150, and Wilson's interval with t(149); a t interval would begin below 0.
    scores = np.ones((150, 2))
    scores[:2, 1] = 2
    sd, flips = audits.repeat_consistency(scores, np.arange(150))
    assert (flips.n_items, flips.n_ratings, flips.n_clusters) == (150, 300, 150)
    t, p = stats.t.ppf(0.975, 149), 2 / 150
    m = p * (1 - p) / (p * (1 - p) / 149)  # answers that give the standard error of the mean, s / sqrt n
    by_hand = np.roots([1 + t**2 / m, -(2 * p + t**2 / m), p**2])
    assert [flips.low, flips.high] == pytest.approx(sorted(by_hand))
    assert 0 < sd.low < sd.value < sd.high
    assert "Wilson" in flips.method and "logarithm" in sd.method
    assert "approximate: 2 items are not 0" in sd.method
    none = audits.repeat_consistency(np.ones((150, 2)), np.arange(150))[1]
    assert none.low == pytest.approx(0, abs=1e-12)
    assert none.high == pytest.approx(stats.norm.ppf(0.975) ** 2 / (150 + stats.norm.ppf(0.975) ** 2))


def test_single_repeats_are_undefined() -> None:
    assert all(e.reason == "no item has two repeats" for e in audits.repeat_consistency(np.ones((3, 1)), np.arange(3)))


def test_perturbation_shares_worked_by_hand() -> None:
    before, after = np.array([3.0, 3.0, 2.0, NAN]), np.array([1.0, 3.0, 3.0, 1.0])
    found = {e.variant: e.value for e in audits.perturbation(before, after, np.arange(4))}
    assert found == pytest.approx({"fall": 1 / 3, "stay": 1 / 3, "rise": 1 / 3, "shift": -1 / 3})


def test_verbosity_matches_statsmodels_with_language_dummies_and_hc3() -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(20)
    language = rng.integers(0, 3, 120)
    length = np.exp(rng.normal(5 + language, 0.5))
    error = 0.3 * np.log2(length) + language + rng.normal(size=120) * np.log(length)
    design = np.column_stack([np.log2(length), *(language == k for k in range(3))]).astype(float)
    oracle = sm.OLS(error, design).fit(cov_type="HC3")
    found = audits.verbosity(error, length, language)
    assert found.value == pytest.approx(oracle.params[0])
    assert found.se == pytest.approx(oracle.bse[0])


def test_verbosity_without_differences_in_length_is_undefined() -> None:
    assert audits.verbosity(np.arange(5.0), np.full(5, 100.0), np.zeros(5)).value is None


def preferring(effect: float, seed: int = 21) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    own = np.zeros((300, 3), dtype=bool)
    own[np.arange(300), rng.integers(0, 3, 300)] = True
    quality, lenience = rng.normal(size=(300, 1)), np.array([0.0, 1.0, -1.0])
    return quality + lenience + effect * own + rng.normal(0, 0.3, (300, 3)), own


def test_self_preference_is_found_beside_lenience_and_quality() -> None:
    found = audits.self_preference(*preferring(0.5), np.arange(300))
    assert found.low < 0.5 < found.high
    none = audits.self_preference(*preferring(0.0), np.arange(300))
    assert none.low < 0 < none.high


def test_self_preference_matches_statsmodels_two_way_dummies_with_missing_scores() -> None:
    import statsmodels.api as sm

    scores, own = preferring(0.5)
    scores, own = scores[:40], own[:40]
    scores[::5, 1] = NAN
    item, judge = np.nonzero(~np.isnan(scores))
    design = np.column_stack([own[item, judge], *(item == i for i in range(40)), judge == 1, judge == 2]).astype(float)
    oracle = sm.OLS(scores[item, judge], design).fit()
    assert audits.self_preference(scores, own, np.arange(40)).value == pytest.approx(oracle.params[0], abs=1e-9)


def test_self_preference_leaves_out_clusters_and_marks_few() -> None:
    """Two judges, an item of each family in every cluster: with d = own less other family's difference of judges,
    the preference is the mean of d over clusters, and its error that of a mean of 8 or 20 values, t with 7 or 19."""
    rng = np.random.default_rng(4)
    for n, is_marked in ((8, True), (20, False)):
        scores, own = rng.normal(size=(2 * n, 2)), np.tile([[True, False], [False, True]], (n, 1))
        found = audits.self_preference(scores, own, np.repeat(np.arange(n), 2))
        gap = scores[:, 0] - scores[:, 1]
        d = (gap[::2] - gap[1::2]) / 2
        half = stats.t.ppf(0.975, n - 1) * d.std(ddof=1) / n**0.5
        assert found.value == pytest.approx(d.mean())
        assert (found.low, found.high) == pytest.approx((d.mean() - half, d.mean() + half))
        assert found.p == pytest.approx(2 * stats.t.cdf(-abs(d.mean()) / d.std(ddof=1) * n**0.5, n - 1))
        assert ("approximate: few clusters" in found.method) == is_marked


def test_self_preference_has_the_confidence_that_is_asked_for() -> None:
    wide, narrow = (audits.self_preference(*preferring(0.5), np.arange(300), confidence=c) for c in (0.95, 0.8))
    assert (wide.confidence, narrow.confidence) == (0.95, 0.8)
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_one_judge_has_no_self_preference() -> None:
    assert audits.self_preference(np.ones((5, 1)), np.ones((5, 1), bool), np.arange(5)).reason


def test_scale_use_worked_by_hand() -> None:
    scores = np.array([3.0, 3.0, 0.0, 1.0, 9.0, NAN])
    found = {e.variant: e.value for e in audits.scale_use(scores, np.arange(4.0), np.array([3.0, 1.0]))}
    assert found["top"] == 0.5
    assert found["middle"] == 0.25
    assert found["out_of_range"] == 0.2
    assert found["panel_top"] == 0.5


def test_wilson_interval_matches_statsmodels() -> None:
    from statsmodels.stats.proportion import proportion_confint

    found = audits.unreadable(3, 80)
    assert (found.low, found.high) == pytest.approx(proportion_confint(3, 80, method="wilson"))
    assert audits.unreadable(0, 0).value is None


def test_conditions_compare_with_the_first() -> None:
    scores = np.array([[1.0, 2.0], [2.0, 2.0], [NAN, 1.0]])
    found = {(e.statistic, e.variant): e.value for e in audits.conditions(scores, ["a", "b"], np.ones(3), np.arange(3))}
    assert found == {
        ("condition_mae", "a"): 0.5,
        ("condition_mae", "b"): pytest.approx(2 / 3),
        ("condition_shift", "b"): 0.5,
    }


def test_few_shot_examples_are_at_most_two_a_class() -> None:
    labels = np.array([0, 0, 0, 1, NAN, 2, 2])
    chosen = audits.few_shot_examples(labels, np.random.default_rng(0))
    assert sorted(labels[chosen]) == [0, 0, 1, 2, 2]


def test_the_length_effects_of_all_cells_are_corrected_together() -> None:
    """Four criteria: p of each as statsmodels gives it from the interval's standard error, then Holm over the four."""
    rng = np.random.default_rng(31)
    records = []
    for criterion, effect in (("a", 0.5), ("b", 0.25), ("c", 0.1), ("d", 0.0)):
        for item in range(60):
            length, truth = int(rng.integers(20, 400)), int(rng.integers(1, 6))
            judge = truth + effect * np.log2(length / 100) + rng.normal(0, 0.8)
            for rater, kind, score in (("h1", "annotator", truth), ("h2", "annotator", truth), ("j", "judge", judge)):
                records.append((f"i{item}", criterion, rater, kind, float(score), length))
    frame = pd.DataFrame(records, columns=["item", "criterion", "rater", "rater_kind", "score", "length"])
    table = ratings_table(frame, scales={name: range_scale(-5, 12, None, "interval") for name in "abcd"})
    found = [
        row.estimate
        for row in soundness.audit_report(table, judge="j", by=("criterion",), length="length")
        if row.estimate.statistic == "verbosity"
    ]
    for estimate in found:
        se = (estimate.high - estimate.low) / (2 * stats.norm.ppf(0.975))
        assert estimate.p == pytest.approx(2 * stats.norm.sf(abs(estimate.value) / se))
    assert [row.p_corrected for row in found] == pytest.approx(
        list(multipletests([row.p for row in found], method="holm")[1])
    )
    assert {row.family for row in found} == {4}
    assert found[0].p_corrected < 0.05 < found[3].p_corrected
