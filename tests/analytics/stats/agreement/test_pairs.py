"""Cohen's and Conger's kappas: published tables, other implementations, and two raters as the common case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

from analytics.stats.agreement.coefficients import cohen_kappa_kernel, cohen_kappa_se, conger_kappa_kernel
from analytics.stats.agreement.rater_agreement import measure
from analytics.stats.core.scales import Weighting, disagreement, scale_of
from tests.analytics.stats.published import COHEN, KRIPPENDORFF

Array = NDArray[Any]

pairs = hnp.arrays(np.int64, st.tuples(st.integers(3, 40), st.just(2)), elements=st.integers(0, 3))


def from_table(table: Any) -> tuple[Array, Array, Array]:
    a, b = np.indices(table.shape)
    return a.ravel(), b.ravel(), table.ravel().astype(float)


def test_cohens_published_table() -> None:
    a, b, totals = from_table(COHEN)
    assert cohen_kappa_kernel(a, b, totals[None, :], 1 - np.eye(3))[0] == pytest.approx(0.492, abs=5e-4)


def test_weighted_kappa_of_the_same_table() -> None:
    # Cohen 1968 weighs the disagreements 0 1 3 / 1 0 6 / 3 6 0 and prints kappa_w = .348.
    a, b, totals = from_table(COHEN)
    w = np.array([[0, 1, 3], [1, 0, 6], [3, 6, 0]]) / 6
    assert cohen_kappa_kernel(a, b, totals[None, :], w)[0] == pytest.approx(0.348, abs=5e-4)


@pytest.mark.parametrize(
    ("weighting", "theirs"), [("identity", None), ("linear", "linear"), ("quadratic", "quadratic")]
)
@settings(max_examples=40, deadline=None)
@given(codes=pairs)
def test_cohen_equals_scikit_learn(weighting: Weighting, theirs: str | None, codes: Array) -> None:
    assume(np.unique(codes).size > 1)
    w = disagreement(scale_of(range(4)), weighting)
    found = cohen_kappa_kernel(codes[:, 0], codes[:, 1], np.ones((1, len(codes))), w)[0]
    assert found == pytest.approx(
        cohen_kappa_score(codes[:, 0], codes[:, 1], labels=range(4), weights=theirs), abs=1e-9
    )


@pytest.mark.parametrize(
    ("weighting", "theirs"), [("identity", None), ("linear", "linear"), ("quadratic", "quadratic")]
)
def test_standard_error_equals_statsmodels(weighting: Weighting, theirs: str | None) -> None:
    a, b, totals = from_table(COHEN)
    w = disagreement(scale_of(range(3)), weighting)
    expected = inter_rater.cohens_kappa(COHEN, wt=theirs).std_kappa
    assert cohen_kappa_se(a, b, totals, w) == pytest.approx(expected, abs=1e-12)


def test_items_scored_by_one_only_are_left_out() -> None:
    a, b = np.array([0, 1, 1, 0, -1, 2]), np.array([0, 1, 0, 0, 1, -1])
    expected = cohen_kappa_score([0, 1, 1, 0], [0, 1, 0, 0])
    assert cohen_kappa_kernel(a, b, np.ones((1, 6)), 1 - np.eye(3))[0] == pytest.approx(expected)


def test_one_point_only_is_undefined() -> None:
    assert np.isnan(cohen_kappa_kernel(np.zeros(4, int), np.zeros(4, int), np.ones((1, 4)), 1 - np.eye(2))[0])
    assert np.isnan(cohen_kappa_kernel(np.array([-1, 0]), np.array([0, -1]), np.ones((1, 2)), 1 - np.eye(2))[0])


@settings(max_examples=40, deadline=None)
@given(codes=pairs)
def test_conger_of_two_raters_is_cohen(codes: Array) -> None:
    weights = np.ones((1, len(codes)))
    for weighting in ("identity", "linear"):
        w = disagreement(scale_of(range(4)), weighting)
        cohen = cohen_kappa_kernel(codes[:, 0], codes[:, 1], weights, w)[0]
        assert conger_kappa_kernel(codes, weights, w)[0] == pytest.approx(cohen, abs=1e-9, nan_ok=True)


def test_conger_of_gwets_raw_example() -> None:
    """Gwet's irrCAC prints .76282 (.14917) for its 4 raters; there unit 12 was rated by the third, not the second."""
    scores = KRIPPENDORFF.copy()
    scores[11] = [np.nan, np.nan, 3, np.nan]
    found = measure(scores, "conger_kappa", scale=scale_of(range(1, 6), "nominal"), bootstrap=0)
    assert found.value == pytest.approx(0.76282, abs=5e-6)
    assert found.se == pytest.approx(0.14917, abs=5e-6)


def test_the_standard_error_on_near_points_of_a_wide_scale_is_that_of_two_points() -> None:
    a = np.array([0, 0, 1, 1, 0, 1, 0, 0, 1, 0])
    b = np.array([0, 1, 1, 0, 0, 1, 1, 0, 1, 0])
    plain = cohen_kappa_se(a, b, np.ones(10), disagreement(scale_of([0, 1], "interval"), "quadratic"))
    w = disagreement(scale_of([0, 0.002, 10], "interval"), "quadratic")
    assert cohen_kappa_se(a, b, np.ones(10), w) == pytest.approx(plain, rel=1e-6)
