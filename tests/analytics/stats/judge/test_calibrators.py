"""Calibrators: worked by hand, scikit-learn and statsmodels as oracles, useless ones found out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from analytics.stats.judge import calibrators
from analytics.stats.judge.calibrators import fit_ordinal


def graded(n: int = 200, seed: int = 10) -> tuple[calibrators.Floats, calibrators.Floats]:
    rng = np.random.default_rng(seed)
    f = rng.integers(0, 4, n).astype(float)
    return f, np.clip(f - 1 + rng.integers(0, 2, n), 0, 3).astype(float)


def test_offset_removes_the_bias() -> None:
    assert calibrators.offset(np.array([1.0, 2.0]), np.array([2.0, 4.0]))(np.array([0.0])) == pytest.approx([1.5])


def test_ridge_affine_worked_by_hand() -> None:
    # f = 0, 2 and y = 0, 2: S_fy = S_ff = 2, var f = 1: slope 2/3 around (1, 1).
    predict = calibrators.ridge_affine(np.array([0.0, 2.0]), np.array([0.0, 2.0]))
    assert predict(np.array([1.0, 4.0])) == pytest.approx([1, 3])


def test_isotonic_matches_scikit_learn() -> None:
    f, y = graded()
    oracle = IsotonicRegression().fit(f, y).predict(np.arange(4.0))
    assert calibrators.isotonic(f, y)(np.arange(4.0)) == pytest.approx(oracle)


def test_cell_means_shrink_and_fall_back() -> None:
    # Overall mean 1; the cell f = 3 holds one label 3: (3 + 5) / 6; 2 was never seen.
    predict = calibrators.cell_means(np.array([0.0, 0.0, 3.0]), np.array([0.0, 0.0, 3.0]))
    assert predict(np.array([3.0, 2.0])) == pytest.approx([8 / 6, 1])


def test_ordinal_logit_matches_statsmodels_up_to_its_weak_prior() -> None:
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    rng = np.random.default_rng(11)
    f = rng.normal(size=600)
    y = np.digitize(f + rng.logistic(size=600), [-1, 0.5, 2]).astype(float)
    fitted = OrderedModel(y, f[:, None], distr="logit").fit(method="bfgs", disp=False)
    grid = np.array([-2.0, 0.0, 2.0])
    expected = fitted.predict(grid[:, None]) @ np.arange(4)
    assert calibrators.ordinal_logit(f, y)(grid) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("name", calibrators.CALIBRATORS)
def test_every_calibrator_survives_constant_scores_and_single_labels(name: str) -> None:
    fit = calibrators.CALIBRATORS[name]
    assert np.isfinite(fit(np.ones(5), np.array([0.0, 1.0, 2.0, 1.0, 1.0]))(np.array([1.0, 2.0]))).all()
    assert fit(np.arange(3.0), np.full(3, 2.0))(np.array([1.0])) == pytest.approx([2.0], abs=1.1)


def test_cross_validation_finds_a_good_judge_useful_and_random_ones_useless() -> None:
    f, y = graded()
    rng = np.random.default_rng(12)
    good = calibrators.cross_validate("ridge_affine", f, y, np.arange(200), rng=rng)
    assert good.is_useful
    assert good.gain_low > 0.3
    noise = [
        calibrators.cross_validate("cell_means", rng.permutation(f), y, np.arange(200), rng=rng) for _ in range(30)
    ]
    assert np.mean([each.gain for each in noise]) < 0
    assert np.mean([each.gain_low > 0 for each in noise]) < 0.1


def test_folds_keep_clusters_whole_and_even() -> None:
    cluster = np.repeat(np.arange(23), 4)
    fold = calibrators.folds_by_cluster(cluster, folds=5, rng=np.random.default_rng(0))
    assert all(len(set(fold[cluster == c])) == 1 for c in range(23))
    assert sorted(np.bincount(fold[::4])) == [4, 4, 5, 5, 5]
    with pytest.raises(ValueError, match="two clusters"):
        calibrators.folds_by_cluster(np.zeros(4), folds=5, rng=np.random.default_rng(0))


def test_partial_pooling_trusts_a_language_as_its_labels_grow() -> None:
    # Language 0: 20 labels, judge right; language 1: 60 labels, judge one too high. A share of 20/40 and of 60/80.
    f = np.ones(80)
    language = np.repeat([0, 1], [20, 60])
    y = np.where(language == 0, 1.0, 0.0)
    predict = calibrators.pooled(calibrators.offset, f, y, language)
    everywhere = 1 - 60 / 80
    expected = [0.5 * 1 + 0.5 * everywhere, 0.75 * 0 + 0.25 * everywhere, everywhere]
    assert predict(np.ones(3), np.array([0, 1, 2])) == pytest.approx(expected)


def test_share_of_scores_outside_what_the_labels_saw() -> None:
    assert calibrators.share_outside(np.array([1.0, 3.0]), np.array([0.0, 1.0, 2.0, 4.0])) == 0.5


def test_ordinal_logit_reaches_the_likelihood_of_statsmodels() -> None:
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    rng = np.random.default_rng(12)
    columns = np.column_stack([rng.normal(size=400), rng.random(400) < 0.4]).astype(float)
    codes = np.digitize(columns @ [1.5, -0.7] + rng.logistic(size=400), [-1, 0.5, 2])
    oracle = OrderedModel(codes, columns, distr="logit").fit(method="newton", maxiter=100, disp=False)
    found = fit_ordinal(codes, columns)
    assert -found.loss == pytest.approx(oracle.llf, abs=1e-7)
    assert found.slopes == pytest.approx(oracle.params[:2], abs=1e-5)
    assert found.cuts == pytest.approx(oracle.model.transform_threshold_params(oracle.params)[1:-1], abs=1e-5)


def test_ordinal_logit_stays_finite_where_the_judge_separates_the_labels() -> None:
    found = fit_ordinal(np.array([0, 0, 1, 1, 2, 2]), np.arange(6.0)[:, None])
    assert np.isfinite([*found.slopes, *found.cuts, found.loss]).all()
    assert found.loss < 0.1


def test_isotonic_pools_back_more_than_one_step() -> None:
    f, y = np.arange(6.0), np.array([3.0, 2.0, 1.0, 5.0, 4.0, 4.5])
    assert calibrators.isotonic(f, y)(f) == pytest.approx([2, 2, 2, 4.5, 4.5, 4.5])
