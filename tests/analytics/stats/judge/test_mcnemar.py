"""McNemar: published value, statsmodels and the edge rulings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2
from statsmodels.stats.contingency_tables import mcnemar as oracle

from analytics.stats.judge import mcnemar

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
    by_variant = {e.variant: e for e in mcnemar.mcnemar_estimates(right, right)}
    assert by_variant["exact"].value == 1
    assert by_variant["chi2"].value is None
    assert "discordant" in by_variant["chi2"].reason


def test_no_common_item_is_undefined_in_every_variant() -> None:
    nothing = np.empty(0, bool)
    assert [e.reason for e in mcnemar.mcnemar_estimates(nothing, nothing)] == ["no item in common"] * 4


def test_swapping_the_raters_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.random(50) < 0.5, rng.random(50) < 0.8
    assert mcnemar.mcnemar_estimates(first, second) == mcnemar.mcnemar_estimates(second, first)


def test_the_default_is_midp_below_25_discordant() -> None:
    assert [mcnemar.default_variant(10, 14), mcnemar.default_variant(10, 15)] == ["midp", "chi2"]


def test_clusters_of_one_item_give_the_unclustered_test() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.random(80) < 0.5, rng.random(80) < 0.7
    alone = mcnemar.mcnemar_estimates(first, second)
    assert mcnemar.mcnemar_estimates(first, second, rng.permutation(80)) == alone
    d = first.astype(int) - second
    assert [mcnemar.clustered(d)[e.variant] for e in alone] == pytest.approx([e.p for e in alone], rel=1e-12)


def test_three_clusters_worked_by_hand() -> None:
    # d = 3, 1, -1: of the eight sums 5, 3, 3, 1 and their negatives, six lie at 3 or beyond, four of them at 3.
    found = mcnemar.clustered(np.array([3, 1, -1]))
    assert (found["exact"], found["midp"]) == pytest.approx((6 / 8, 2 / 8 + 4 / 16))
    # chi-square 3^2 / (9 + 1 + 1) and 2^2 / 11
    assert found["chi2"] == pytest.approx(chi2.sf(9 / 11, 1))
    assert found["chi2_corrected"] == pytest.approx(chi2.sf(4 / 11, 1))


def test_many_large_clusters_are_counted_by_fourier_transforms_to_the_same_p(monkeypatch: pytest.MonkeyPatch) -> None:
    d = np.random.default_rng(5).integers(-9, 11, 60)
    direct = mcnemar.clustered(d)
    monkeypatch.setattr(mcnemar, "DIRECT_PRODUCTS", 0)
    assert mcnemar.clustered(d)["exact"] == pytest.approx(direct["exact"], rel=1e-9)


def test_raters_who_are_alike_are_told_apart_in_one_of_twenty_samples_of_clusters() -> None:
    # Each dialogue of ten turns favours one of two equally good raters: item by item the size was .33.
    rng, rejected, ignoring = np.random.default_rng(6), 0, 0
    cluster = np.repeat(np.arange(12), 10)
    for _ in range(400):
        mood = rng.normal(size=(12, 2))[cluster]
        first, second = (mood + rng.normal(size=(120, 2)) > 0).T
        rejected += next(e.p for e in mcnemar.mcnemar_estimates(first, second, cluster) if e.variant == "midp") < 0.05
        ignoring += next(e.p for e in mcnemar.mcnemar_estimates(first, second) if e.variant == "midp") < 0.05
    assert ignoring / 400 > 0.2
    assert 0.02 <= rejected / 400 <= 0.08
