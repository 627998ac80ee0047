"""Planning: worked by hand, and what the formulas promise checked by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.stats.planning import pilot


def test_labels_worked_by_hand() -> None:
    # (1.96 * .5 / .1)^2 = 96.04; with rho .6: 96.04 * .64 = 61.5.
    assert pilot.labels_for_mean(0.5, 0.1) == 97
    assert pilot.labels_with_judge(0.5, 0.1, 0.6) == 62


def test_items_scale_with_the_square_of_the_width() -> None:
    assert pilot.items_by_pilot(50, 0.2, 0.1) == 200


def test_raters_per_item_is_spearman_brown() -> None:
    # Reliability .5 for one rater; two give .667, four .8.
    assert pilot.reliability_of(2, 1, 0.25, 0.75) == pytest.approx(2 / 3)
    assert pilot.raters_per_item(1, 0.25, 0.75, target=0.8) == 4
    assert pilot.raters_per_item(0.001, 1, 1, target=0.9) is None


def test_neyman_allocation_spends_the_budget_by_spread_and_price() -> None:
    labels = pilot.allocate_labels(600, {"et": 1.0, "fi": 1.0, "hu": 0.5}, {"et": 1.0, "fi": 4.0, "hu": 1.0})
    # n ~ sd / sqrt price: 1, .5, .5, costing 1 + 2 + .5 = 3.5 shares of 600.
    assert labels == {"et": 171, "fi": 85, "hu": 85}


def test_the_floor_is_paid_first_and_minimax_evens_the_widths() -> None:
    labels = pilot.allocate_labels(400, {"et": 1.0, "fi": 0.1}, {"et": 1.0, "fi": 1.0})
    assert labels == {"et": 363, "fi": 36}
    assert pilot.allocate_labels(400, {"et": 1.0, "fi": 0.01}, {"et": 1.0, "fi": 1.0}) == {"et": 370, "fi": 30}
    even = pilot.allocate_labels(500, {"et": 1.0, "fi": 0.5}, {"et": 1.0, "fi": 1.0}, minimax=True)
    assert even["et"] / even["fi"] == pytest.approx(4, rel=0.02)
    with pytest.raises(ValueError, match="more than the budget"):
        pilot.allocate_labels(10, {"et": 1.0}, {"et": 1.0})


def test_power_grows_with_items() -> None:
    rng = np.random.default_rng(22)
    truth = rng.integers(0, 4, 80).astype(float)
    humans = np.where(rng.random((80, 3)) < 0.6, truth[:, None], rng.integers(0, 4, (80, 3)))
    few, many = (
        pilot.alt_test_power(truth, humans, n, rng=rng, simulations=60, score="accuracy", epsilon=0.0)
        for n in (30, 200)
    )
    assert few < many
    assert many > 0.8
