"""McNemar: published value, statsmodels and the edge rulings."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar as oracle

from analytics.stats import mcnemar

COUNTS = [(1, 7), (10, 30), (0, 3), (5, 5), (121, 59), (4, 0)]


@pytest.mark.parametrize(("b", "c"), COUNTS)
def test_variants_match_statsmodels(b: int, c: int) -> None:
    table = [[0, b], [c, 0]]
    assert mcnemar.exact(b, c) == pytest.approx(oracle(table, exact=True).pvalue)
    assert mcnemar.chi2(b, c) == pytest.approx(oracle(table, exact=False, correction=False).pvalue)
    if b != c:  # statsmodels counts (|0| - 1)^2 at b = c; by our ruling the corrected statistic is 0 there
        assert mcnemar.chi2_corrected(b, c) == pytest.approx(oracle(table, exact=False, correction=True).pvalue)


def test_published_airway_example() -> None:
    # Fagerland, Lydersen & Laake 2013, table 1: b = 1, c = 7; exact p .0703, mid-p .0391, asymptotic .0339.
    found = mcnemar.exact(1, 7), mcnemar.midp(1, 7), mcnemar.chi2(1, 7)
    assert found == pytest.approx((0.0703, 0.0391, 0.0339), abs=5e-5)


def test_equal_discordant_counts() -> None:
    assert mcnemar.exact(5, 5) == 1
    assert mcnemar.midp(5, 5) == 1
    assert mcnemar.chi2_corrected(5, 5) == 1


def test_no_discordant_item() -> None:
    right = np.array([True, False, True])
    by_variant = {e.variant: e for e in mcnemar.estimates(right, right)}
    assert by_variant["exact"].value == 1
    assert by_variant["chi2"].value is None
    assert "discordant" in by_variant["chi2"].reason


def test_no_common_item_is_undefined_in_every_variant() -> None:
    nothing = np.empty(0, bool)
    assert [e.reason for e in mcnemar.estimates(nothing, nothing)] == ["no item in common"] * 4


def test_swapping_the_raters_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.random(50) < 0.5, rng.random(50) < 0.8
    assert mcnemar.estimates(first, second) == mcnemar.estimates(second, first)


def test_the_default_is_midp_below_25_discordant() -> None:
    assert [mcnemar.default_variant(10, 14), mcnemar.default_variant(10, 15)] == ["midp", "chi2"]
