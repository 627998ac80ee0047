"""Confusion-matrix kernels: worked by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from analytics.stats.core.scales import disagreement, scale_of
from analytics.stats.judge import association as cm

RNG = np.random.default_rng(2)
REFERENCE, JUDGE = RNG.integers(0, 4, 200), RNG.integers(0, 3, 200)
ONES = np.ones((1, 200))


def matrix() -> cm.Floats:
    return cm.confusion(REFERENCE, JUDGE, ONES, 4)


def test_counts_match_scikit_learn_with_the_whole_scale() -> None:
    assert (matrix()[0] == metrics.confusion_matrix(REFERENCE, JUDGE, labels=range(4))).all()


def test_figures_match_scikit_learn() -> None:
    c = matrix()
    per_label = metrics.precision_recall_fscore_support(REFERENCE, JUDGE, labels=range(4), zero_division=np.nan)
    assert [cm.precision(c, k)[0] for k in range(4)] == pytest.approx(per_label[0], nan_ok=True)
    assert [cm.recall(c, k)[0] for k in range(4)] == pytest.approx(per_label[1])
    assert [cm.f1(c, k)[0] for k in range(4)] == pytest.approx(per_label[2])
    assert cm.accuracy(c)[0] == pytest.approx(metrics.accuracy_score(REFERENCE, JUDGE))
    assert cm.f1_weighted(c)[0] == pytest.approx(metrics.f1_score(REFERENCE, JUDGE, average="weighted"))
    assert cm.f1_macro(c)[0] == pytest.approx(metrics.f1_score(REFERENCE, JUDGE, average="macro"))
    assert cm.adjacent(c)[0] == pytest.approx(np.mean(abs(REFERENCE - JUDGE) <= 1))


@pytest.mark.parametrize("weighting", ["identity", "linear", "quadratic"])
def test_kappa_matches_scikit_learn(weighting: str) -> None:
    oracle = metrics.cohen_kappa_score(REFERENCE, JUDGE, weights=None if weighting == "identity" else weighting)
    weights = disagreement(scale_of(range(4)), weighting)
    assert cm.cohen_kappa_of_confusion(matrix(), weights)[0] == pytest.approx(oracle)


def test_one_label_only_leaves_kappa_undefined_and_its_f1_perfect() -> None:
    c = cm.confusion(np.zeros(5, int), np.zeros(5, int), np.ones((1, 5)), 3)
    assert np.isnan(cm.cohen_kappa_of_confusion(c, 1 - np.eye(3))[0])
    assert cm.f1(c, 0)[0] == 1
    assert np.isnan(cm.f1(c, 1)[0])
    assert cm.f1_weighted(c)[0] == 1


def test_nothing_compared_is_undefined_everywhere() -> None:
    c = cm.confusion(np.empty(0, int), np.empty(0, int), np.ones((1, 0)), 3)
    figures = [cm.accuracy(c), cm.adjacent(c), cm.f1_weighted(c), cm.cohen_kappa_of_confusion(c, 1 - np.eye(3))]
    assert np.isnan(figures).all()


def test_row_shares_worked_by_hand() -> None:
    shares = cm.row_shares(np.array([[[3.0, 1.0], [0.0, 0.0]]]))[0]
    assert shares[0].tolist() == [0.75, 0.25]
    assert np.isnan(shares[1]).all()


def test_resampling_weights_count_as_repeated_rows() -> None:
    w = RNG.multinomial(200, np.full(200, 1 / 200), size=3).astype(float)
    for row, c in zip(w, cm.confusion(REFERENCE, JUDGE, w, 4), strict=True):
        again = np.repeat(np.arange(200), row.astype(int))
        assert (c == metrics.confusion_matrix(REFERENCE[again], JUDGE[again], labels=range(4))).all()
