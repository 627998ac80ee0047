"""Resampling by kinds of units is resampling of the units themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from analytics.stats.core.estimates import (
    Interval,
    bca,
    log_t_interval,
    normal_interval,
    percentile,
    t_interval,
    wilson_interval,
)
from analytics.stats.core.resampling import Units, bootstrap, jackknife, left_out, resampled

Array = NDArray[Any]

X = np.array([1.0, 2.0, 4.0, 8.0])
"""The value an item of each pattern has."""


def mean(weights: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return weights @ X / weights.sum(axis=1)


def test_units_of_items_that_stand_alone() -> None:
    units = Units.of(np.array([0, 0, 2, 3, 3, 3]))
    assert units.multiplicity.tolist() == [2, 0, 1, 3]
    assert units.pattern_totals.tolist() == [2, 0, 1, 3]


def test_clusters_that_hold_the_same_are_of_one_kind() -> None:
    units = Units.of(np.array([0, 1, 1, 0, 2]), np.array([5, 5, 7, 7, 9]))
    assert units.n == 3
    assert sorted(units.multiplicity.tolist()) == [1, 2]
    assert units.pattern_totals.tolist() == [2, 2, 1]


@settings(max_examples=30, deadline=None)
@given(
    pattern=st.lists(st.integers(0, 3), min_size=2, max_size=30),
    cluster_seed=st.integers(0, 2**16),
)
def test_left_out_is_what_a_loop_over_clusters_finds(pattern: list[int], cluster_seed: int) -> None:
    pattern = np.array(pattern)
    cluster = np.random.default_rng(cluster_seed).integers(0, 5, len(pattern))
    names = np.unique(cluster)
    if names.size < 2:
        return
    units = Units.of(np.append(pattern, 3), np.append(cluster, names[0]))
    loop = sorted(X[np.append(pattern, 3)[np.append(cluster, names[0]) != name]].mean() for name in names)
    found = np.repeat(left_out(mean, units), units.multiplicity)
    assert sorted(found) == pytest.approx(loop)


@pytest.mark.parametrize("n_items", [12, 4000])
def test_resamples_spread_as_the_mean_does(n_items: int) -> None:
    """Few and many units take different roads to the same multinomial; se of a mean is sd / sqrt(n)."""
    pattern = np.arange(n_items) % 4
    units = Units.of(pattern)
    values = resampled(mean, units, resamples=20_000, rng=np.random.default_rng(1))
    assert values.mean() == pytest.approx(X.mean(), abs=0.05)
    assert values.std() == pytest.approx(X.std() / np.sqrt(n_items), rel=0.03)


def test_clusters_widen_the_interval() -> None:
    pattern = np.repeat(np.arange(4), 50)
    together = np.repeat(np.arange(40), 5)
    rng = np.random.default_rng
    alone = bootstrap(mean, Units.of(pattern), rng=rng(0))
    clustered = bootstrap(mean, Units.of(pattern, together), rng=rng(0))
    assert clustered.high - clustered.low > 1.8 * (alone.high - alone.low)


def test_the_same_seed_gives_the_same_bytes() -> None:
    units = Units.of(np.arange(40) % 4)
    first, again = (bootstrap(mean, units, rng=np.random.default_rng(3)) for _ in range(2))
    assert first == again


def test_jackknife_of_a_mean_is_its_textbook_error() -> None:
    pattern = np.array([0, 1, 1, 2, 3, 3, 0])
    found = jackknife(mean, Units.of(pattern))
    assert found.se == pytest.approx(X[pattern].std(ddof=1) / np.sqrt(7))


def test_too_many_undefined_resamples_give_no_interval() -> None:
    values = np.concatenate([np.full(6, np.nan), np.zeros(94)])
    found = percentile(values)
    assert found.low is None
    assert found.undefined_share == 0.06
    assert "6.0%" in found.interval_reason


def test_a_few_undefined_resamples_are_told_and_left_out() -> None:
    found = percentile(np.concatenate([[np.nan], np.arange(99.0)]))
    assert (found.low, found.high) == pytest.approx((98 * 0.025, 98 * 0.975))
    assert found.undefined_share == 0.01


def test_one_unit_cannot_be_resampled() -> None:
    assert bootstrap(mean, Units.of(np.array([0])), rng=np.random.default_rng(0)).interval_reason


def test_bca_of_a_symmetric_sample_is_the_percentile_interval() -> None:
    rng = np.random.default_rng(0)
    values = np.sort(rng.normal(size=9999))
    symmetric = np.concatenate([values, -values])
    found = bca(0.0, symmetric, np.array([-1.0, 1.0]), np.array([5.0, 5.0]))
    assert (found.low, found.high) == pytest.approx((percentile(symmetric).low, percentile(symmetric).high))


def test_bca_moves_with_a_skewed_statistic() -> None:
    """Against scipy's own BCa on the same sample (its resamples differ, so only to Monte Carlo error)."""
    from scipy import stats

    sample = X[np.random.default_rng(5).integers(0, 4, 60)]
    pattern = np.searchsorted(X, sample)
    ours = bootstrap(mean, Units.of(pattern), rng=np.random.default_rng(0), resamples=20_000, method="bca")
    theirs = stats.bootstrap((sample,), np.mean, n_resamples=20_000, rng=np.random.default_rng(1)).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.04)


def test_bca_without_an_acceleration_says_so() -> None:
    assert bca(1.0, np.arange(9.0), np.array([np.nan, 1.0]), np.ones(2)).interval_reason


def test_closed_form_intervals() -> None:
    assert t_interval(1.0, 0.5, 10, method="t").high == pytest.approx(1 + 2.228139 * 0.5, abs=1e-6)
    assert normal_interval(1.0, 0.5, method="z").low == pytest.approx(1 - 1.959964 * 0.5, abs=1e-6)
    assert t_interval(1.0, float("nan"), 10, method="t").interval_reason
    assert Interval(low=1.0).as_changes() == {"low": 1.0}


def test_a_wide_table_of_clusters_is_kept_sparse_and_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, cluster = np.array([0, 1, 1, 3, 2, 0]), np.array([0, 0, 1, 1, 2, 3])
    dense = Units.of(pattern, cluster)
    monkeypatch.setattr("analytics.stats.core.resampling.DENSE_CELLS", 1)
    sparse = Units.of(pattern, cluster)
    assert not isinstance(sparse.composition, np.ndarray)
    assert sparse.pattern_totals == pytest.approx(dense.pattern_totals)
    assert jackknife(mean, sparse).se == pytest.approx(jackknife(mean, dense).se)
    wide = bootstrap(mean, sparse, rng=np.random.default_rng(0), resamples=20_000)
    assert wide.low == pytest.approx(
        bootstrap(mean, dense, rng=np.random.default_rng(1), resamples=20_000).low, abs=0.1
    )


def test_wilson_of_a_mean_keeps_to_its_ends_and_moves_with_them() -> None:
    share = wilson_interval(0.1, 0.05, 30, df=29)
    mean = wilson_interval(-0.6, 0.2, 30, ends=(-1, 3), df=29)
    assert (mean.low, mean.high) == pytest.approx((4 * share.low - 1, 4 * share.high - 1))
    assert 0.1 - share.low < share.high - 0.1
    middle = wilson_interval(2.0, 0.0, 10, ends=(0, 4))
    assert middle.low < 2 < middle.high
    assert "no unit differs" in middle.method
    assert wilson_interval(0.5, float("nan"), 1).interval_reason


def test_the_log_t_interval_is_a_factor_each_way_and_needs_positive_resamples() -> None:
    drawn = np.exp([-0.1, 0.1] * 50)
    found = log_t_interval(2.0, drawn, 1000)
    assert found.low * found.high == pytest.approx(4)
    assert found.high == pytest.approx(2 * np.exp(0.1 * 1.9623), abs=1e-3)
    assert log_t_interval(2.0, np.append(drawn, 0.0), 1000) == percentile(np.append(drawn, 0.0))
    constant = log_t_interval(2.0, np.full(9, 2.0), 8)
    assert constant.low is None
    assert "every resample gives the same value" in constant.interval_reason


@pytest.mark.parametrize("most", [1, 5, 40])
def test_kinds_of_clusters_stand_in_the_order_of_their_counts(most: int) -> None:
    numbers = np.random.default_rng(most)
    cluster = np.append(np.arange(60), numbers.integers(0, 60, 20 * most))
    pattern = np.append(numbers.integers(0, 12, 60), numbers.integers(0, 12, 20 * most))
    table = np.zeros((60, 12))
    np.add.at(table, (cluster, pattern), 1)
    kinds, multiplicity = np.unique(table, axis=0, return_counts=True)
    units = Units.of(pattern, cluster)
    assert np.array_equal(units.composition, kinds)
    assert units.multiplicity.tolist() == multiplicity.tolist()
