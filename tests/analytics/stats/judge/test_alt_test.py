"""The alternative annotator test: worked by hand, and against the definition written out with loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from analytics.stats.judge import alt_test

NAN = np.nan


def written_out(judge: Any, humans: Any, score: str) -> list[tuple[int, int, bool, bool]]:
    """The paper's indicators, one item, one annotator and one other rater at a time."""
    wins = []
    for j in range(humans.shape[1]):
        for i in range(len(judge)):
            others = [x for k, x in enumerate(humans[i]) if k != j and not np.isnan(x)]
            if np.isnan(judge[i]) or np.isnan(humans[i, j]) or not others:
                continue
            if score == "accuracy":
                s_f, s_h = (np.mean([x == other for other in others]) for x in (judge[i], humans[i, j]))
            else:
                s_f, s_h = (-np.sqrt(np.mean([(x - o) ** 2 for o in others])) for x in (judge[i], humans[i, j]))
            wins.append((j, i, s_f >= s_h - 1e-12, s_h >= s_f - 1e-12))
    return wins


@pytest.mark.parametrize("score", ["accuracy", "rmse"])
def test_indicators_follow_the_definition_with_missing_scores(score: str) -> None:
    rng = np.random.default_rng(4)
    humans = rng.integers(0, 4, (80, 5)).astype(float)
    humans[rng.random(humans.shape) < 0.5] = NAN
    judge = rng.integers(0, 4, 80).astype(float)
    judge[::9] = NAN
    w_f, w_h = alt_test.advantage(judge, humans, score)
    expected = written_out(judge, humans, score)
    assert [(w_f[i, j], w_h[i, j]) for j, i, _, _ in expected] == [(f, h) for _, _, f, h in expected]
    assert np.isfinite(w_f).sum() == len(expected)


def test_three_items_worked_by_hand() -> None:
    # Item 1: judge 2 = the others of annotator A (2, 2), A says 1: the judge wins. Item 2: both match: a tie counts
    # for both. Item 3: A matches one of two others, the judge none: A wins.
    judge = np.array([2.0, 3.0, 0.0])
    humans = np.array([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0], [1.0, 1.0, 2.0]])
    w_f, w_h = alt_test.advantage(judge, humans, "accuracy")
    assert w_f[:, 0].tolist() == [1, 1, 0]
    assert w_h[:, 0].tolist() == [0, 1, 1]


def test_p_is_the_one_sided_t_test_and_wilcoxon_for_few_items() -> None:
    rng = np.random.default_rng(5)
    many, few = rng.choice([-1.0, 0.0, 1.0], 60), rng.choice([-1.0, 0.0, 1.0], 20)
    t = (many.mean() - 0.15) / (many.std(ddof=1) / np.sqrt(60))
    assert alt_test.p_value(many, 0.15) == pytest.approx(stats.t.cdf(t, 59))
    assert alt_test.p_value(few, 0.15) == stats.wilcoxon(few - 0.15, alternative="less").pvalue


@pytest.mark.parametrize(("constant", "p"), [(0.0, 0.0), (-1.0, 0.0), (1.0, 1.0)])
def test_a_constant_difference_is_decided_without_a_variance(constant: float, p: float) -> None:
    assert alt_test.p_value(np.full(40, constant), 0.1) == p


def test_a_judge_that_copies_the_consensus_passes_and_a_random_one_does_not() -> None:
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 5, 200).astype(float)
    humans = np.where(rng.random((200, 3)) < 0.7, truth[:, None], rng.integers(0, 5, (200, 3)))
    names = ["a", "b", "c"]
    good = alt_test.run_alt_test(truth, humans, names, score="accuracy")
    bad = alt_test.run_alt_test(rng.integers(0, 5, 200).astype(float), humans, names, score="accuracy")
    assert (good.omega, good.passes) == (1.0, True)
    assert (bad.omega, bad.passes) == (0.0, False)
    assert good.rho > 0.8 > bad.rho


def test_an_annotator_with_few_items_is_listed_but_stays_outside() -> None:
    rng = np.random.default_rng(7)
    humans = rng.integers(0, 3, (100, 3)).astype(float)
    humans[10:, 2] = NAN
    result = alt_test.run_alt_test(humans[:, 0], humans, ["a", "b", "late"])
    outside = result.comparisons[2]
    assert (outside.annotator, outside.n_items, outside.p, outside.is_beaten) == ("late", 10, None, None)
    assert outside.judge_wins is not None
    assert result.rho == pytest.approx(np.mean([c.judge_wins for c in result.comparisons[:2]]))


def test_nobody_with_enough_items_is_undefined_and_min_items_can_be_lowered() -> None:
    judge, humans = np.array([1.0, 2.0, 2.0]), np.array([[1.0, 1.0], [2.0, 1.0], [2.0, NAN]])
    assert alt_test.run_alt_test(judge, humans, ["a", "b"]).omega is None
    assert "30 items" in alt_test.run_alt_test(judge, humans, ["a", "b"]).reason
    assert alt_test.run_alt_test(judge, humans, ["a", "b"], min_items=2).omega is not None


def test_clusters_are_the_witnesses_and_clusters_of_one_item_change_nothing() -> None:
    rng = np.random.default_rng(8)
    difference = rng.choice([-1.0, 0.0, 1.0], 60)
    assert alt_test.p_value(difference, 0.15, np.arange(60)) == pytest.approx(alt_test.p_value(difference, 0.15))
    # Every item three times over: as many witnesses as before, and the t of 60 cluster means.
    thrice, cluster = np.repeat(difference, 3), np.repeat(np.arange(60), 3)
    assert alt_test.p_value(thrice, 0.15, cluster) == pytest.approx(alt_test.p_value(difference, 0.15))
    assert alt_test.p_value(thrice, 0.15) < alt_test.p_value(difference, 0.15)
    assert alt_test.p_value(difference, 0.15, np.zeros(60, int)) == 1


def test_a_judge_at_the_limit_passes_in_one_of_twenty_samples_of_clusters() -> None:
    rng, rejected, ignoring = np.random.default_rng(9), 0, 0
    cluster = np.repeat(np.arange(12), 10)
    for _ in range(500):
        mood = rng.normal(size=12)[cluster]
        difference = np.sign(np.round(mood + rng.normal(size=120)))  # of mean 0
        rejected += alt_test.p_value(difference, 0.0, cluster) < 0.05
        ignoring += alt_test.p_value(difference, 0.0) < 0.05
    assert ignoring / 500 > 0.12
    assert 0.02 <= rejected / 500 <= 0.08
