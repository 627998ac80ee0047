"""Correlation kernels: scipy as the oracle, resampling weights as repeated rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analytics.stats.judge import association

KERNELS = [
    (association.pearson, stats.pearsonr),
    (association.spearman, stats.spearmanr),
    (association.kendall_tau_b, stats.kendalltau),
]
scores = st.integers(0, 4).map(float)


@pytest.mark.parametrize(("kernel", "oracle"), KERNELS)
@pytest.mark.parametrize("is_continuous", [False, True])
def test_each_row_of_weights_is_the_statistic_of_the_repeated_rows(
    kernel: Any, oracle: Any, is_continuous: bool
) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=60) if is_continuous else rng.integers(0, 5, 60).astype(float)
    y = x + rng.normal(size=60) if is_continuous else rng.integers(0, 3, 60).astype(float)
    w = rng.multinomial(60, np.full(60, 1 / 60), size=20).astype(float)
    expected = [oracle(np.repeat(x, row.astype(int)), np.repeat(y, row.astype(int))).statistic for row in w]
    assert kernel(x, y, w) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("kernel", "_"), KERNELS)
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9])
def test_a_constant_vector_has_no_correlation(kernel: Any, _: Any, constant: float) -> None:
    x, y = np.full(7, constant), np.arange(7.0)
    assert np.isnan(kernel(x, y, np.ones((1, 7)))[0])
    assert np.isnan(kernel(y, x, np.ones((1, 7)))[0])


@pytest.mark.parametrize(("kernel", "_"), KERNELS)
def test_a_resample_that_drew_one_value_only_is_undefined_and_the_others_are_not(kernel: Any, _: Any) -> None:
    x, y = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    first, second = kernel(x, y, np.array([[3.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    assert np.isnan(first)
    assert second == pytest.approx(1)


@given(st.lists(st.tuples(scores, scores), min_size=3, max_size=30))
@settings(max_examples=60, deadline=None)
def test_rank_correlations_ignore_order_preserving_relabelling_and_flip_with_reversal(pairs: Any) -> None:
    x, y = np.array(pairs).T
    w = np.ones((1, len(x)))
    for kernel in (association.spearman, association.kendall_tau_b):
        value = kernel(x, y, w)
        assert kernel(x**3, np.exp(y), w) == pytest.approx(value, nan_ok=True)
        assert kernel(-x, y, w) == pytest.approx(-value, nan_ok=True)
        assert kernel(y, x, w) == pytest.approx(value, nan_ok=True)


def test_midranks_worked_by_hand() -> None:
    # 5 occurs twice (ranks 1 and 2), 7 three times (ranks 3 to 5), 9 never, 6 not at all.
    assert association.midranks(np.array([7.0, 5.0]), np.array([[3.0, 2.0]])).tolist() == [[4.0, 1.5]]
