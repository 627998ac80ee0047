"""Intraclass correlations and variance components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from analytics.stats.agreement.reliability import FORMS, Form, icc, mean_squares, reliability_curve, variance_components
from tests.analytics.stats.published import SHROUT_FLEISS

Array = NDArray[Any]

PRINTED = {"1,1": 0.17, "2,1": 0.29, "3,1": 0.71, "1,k": 0.44, "2,k": 0.62, "3,k": 0.91}
UNBOUNDED = np.array([[1.0, 3, 3], [1, 2, 4], [4, 4, 1], [3, 4, 3]])
BOUNDS = {"1,1": (-0.133, 0.723), "2,1": (0.019, 0.761), "3,1": (0.342, 0.946)}


@pytest.mark.parametrize("form", FORMS)
def test_shrout_and_fleiss(form: Form) -> None:
    assert icc(SHROUT_FLEISS, form).value == pytest.approx(PRINTED[form], abs=5e-3)


@pytest.mark.parametrize("form", BOUNDS)
def test_intervals_of_shrout_and_fleiss(form: Form) -> None:
    """The bounds R's psych package prints for the same table."""
    found = icc(SHROUT_FLEISS, form)
    assert (found.low, found.high) == pytest.approx(BOUNDS[form], abs=6e-4)


def test_only_complete_rows_count() -> None:
    with_a_gap = np.vstack([SHROUT_FLEISS, [1, np.nan, 2, 3]])
    found = icc(with_a_gap, "2,1")
    assert (found.value, found.n_items) == (icc(SHROUT_FLEISS, "2,1").value, 6)


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        (np.full((4, 3), 2.0), "do not differ"),
        (np.array([[1.0, 2.0]]), "fewer than two items"),
        (np.array([[1.0], [2.0]]), "only one rater"),
        (np.empty((0, 0)), "nothing is rated"),
    ],
)
def test_undefined_says_why(scores: Array, reason: str) -> None:
    found = icc(scores, "2,1")
    assert found.value is None
    assert reason in found.reason


def test_perfect_agreement_is_one_without_an_interval() -> None:
    found = icc(np.array([[1.0, 1], [2, 2], [3, 3]]), "3,1")
    assert found.value == 1.0
    assert found.low is None
    assert found.interval_reason


def test_no_total_variance_no_correlation() -> None:
    scores = np.array([[1.0, 4, 2], [0, 3, 3], [4, 0, 0], [4, 0, 2]])
    assert "not positive" in (icc(scores, "2,k").reason or "")


def test_a_bound_without_end_is_no_bound() -> None:
    found = icc(UNBOUNDED, "2,k")
    assert found.value is not None
    assert found.low is None
    assert "infinity" in (found.interval_reason or "")


def test_anonymous_slots_warn_where_persons_matter() -> None:
    assert icc(SHROUT_FLEISS, "1,1", positional=True).note is None
    assert "anonymous" in icc(SHROUT_FLEISS, "2,1", positional=True).note


def test_components_of_a_complete_panel_are_those_of_the_mean_squares() -> None:
    m = mean_squares(SHROUT_FLEISS)
    found = variance_components(SHROUT_FLEISS)
    assert found.item == pytest.approx((m.bms - m.ems) / m.k)
    assert found.rater == pytest.approx((m.jms - m.ems) / m.n)
    assert found.residual == pytest.approx(m.ems)
    curve = reliability_curve(found, 4)
    assert curve[0][1] == pytest.approx(icc(SHROUT_FLEISS, "2,1").value)
    assert curve[3][1] == pytest.approx(icc(SHROUT_FLEISS, "2,k").value)
    assert curve[3][2] == pytest.approx(icc(SHROUT_FLEISS, "3,k").value)


def test_components_of_an_incomplete_panel_find_what_made_it() -> None:
    rng = np.random.default_rng(7)
    item, rater = rng.normal(0, 2, (4000, 1)), rng.normal(0, 1, (1, 30))
    scores = 5 + item + rater + rng.normal(0, 1.5, (4000, 30))
    scores[rng.random(scores.shape) < 0.85] = np.nan
    found = variance_components(scores)
    assert found.item == pytest.approx(4, rel=0.08)
    assert found.rater == pytest.approx(float(np.var(rater, ddof=1)), rel=0.05)
    assert found.residual == pytest.approx(2.25, rel=0.05)


def test_a_design_that_separates_nothing_is_undefined() -> None:
    assert variance_components(np.array([[1.0, np.nan], [np.nan, 2.0]])) is None


@settings(max_examples=50, deadline=None)
@given(
    scores=hnp.arrays(np.float64, st.tuples(st.integers(3, 15), st.integers(2, 5)), elements=st.integers(0, 6)),
    shift=st.integers(-9, 9),
    factor=st.sampled_from([0.5, 2.0, 4.0]),
)
def test_unit_and_order_do_not_matter(scores: Array, shift: float, factor: float) -> None:
    for form in FORMS:
        before, after = icc(scores, form), icc(factor * scores[::-1, ::-1] + shift, form)
        assert (before.value is None) == (after.value is None)
        if before.value is not None:
            assert after.value == pytest.approx(before.value, rel=1e-9, abs=1e-9)
