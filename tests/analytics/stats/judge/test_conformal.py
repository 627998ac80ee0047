"""Conformal intervals: worked by hand, and the promise kept in simulation."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.stats.judge import audits

POINTS = np.arange(4.0)


def test_the_radius_is_an_order_statistic_of_the_clusters_worst_errors() -> None:
    f, y = np.zeros(6), np.array([1.0, 2.0, 3.0, 4.0, 0.5, 9.0])
    # Clusters 0..4 with worst errors 1, 2, 3, 4, 9: the ceil(6 * .8) = 5th is 9, at .6 the 4th is 4.
    cluster = np.array([0, 1, 2, 3, 4, 4])
    assert audits.radius(f, y, cluster, confidence=0.8) == 9
    assert audits.radius(f, y, cluster, confidence=0.6) == 4
    assert audits.radius(f, y, cluster, confidence=0.9) == float("inf")


def test_intervals_snap_to_points_and_stay_on_the_scale() -> None:
    bounds = audits.conformal_intervals(np.array([0.2, 1.5, 2.9]), 1.0, POINTS)
    assert bounds.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert audits.conformal_intervals(np.array([1.4]), 0.1, POINTS).tolist() == [[1, 1]]
    assert audits.conformal_intervals(np.array([1.4]), 0.5, POINTS, snap=False) == pytest.approx(np.array([[0.9, 1.9]]))
    assert audits.conformal_intervals(np.array([1.4]), float("inf"), POINTS).tolist() == [[0, 3]]


def test_wide_intervals_go_to_people() -> None:
    assert audits.for_people(np.array([[0.0, 1.0], [0.0, 3.0]]), 1.0).tolist() == [False, True]


def test_the_promise_holds_over_new_items() -> None:
    rng = np.random.default_rng(24)
    held = 0
    for _ in range(400):
        y = rng.integers(0, 4, 61).astype(float)
        f = y + rng.normal(0, 0.8, 61)
        half = audits.radius(f[:60], y[:60], np.arange(60))
        low, high = audits.conformal_intervals(f[60:], half, POINTS)[0]
        held += low <= y[60] <= high
    assert held / 400 > 0.9 - 3 * (0.09 / 400) ** 0.5
