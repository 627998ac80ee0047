"""Count-based coefficients: by hand, against published tables and other implementations, under invariances."""

from __future__ import annotations

from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from statsmodels.stats import inter_rater

from analytics.stats.agreement import coefficients as kernels
from analytics.stats.agreement.coefficient_estimates import patterns_of_codes, patterns_of_counts
from analytics.stats.agreement.rater_agreement import measure
from analytics.stats.core.scales import LEVELS, Level, agreement_weights, scale_of
from tests.analytics.stats.published import FLEISS, KRIPPENDORFF, TEXTBOOK

Array = NDArray[Any]


def codes_of(scores: Array) -> Array:
    return np.where(np.isnan(scores), -1, scores - 1).astype(np.int8)


def value(kernel: Any, counts: Any, **options: Any) -> float:
    patterns = patterns_of_counts(np.asarray(counts, dtype=np.int64))
    return float(kernel(patterns.counts, patterns.weights, **options)[0])


def alpha(codes: Array, level: Level, q: int = 5) -> float:
    patterns = patterns_of_codes(codes, q)
    return float(kernels.krippendorff_alpha_kernel(patterns.counts, patterns.weights, np.arange(1.0, q + 1), level)[0])


ratings = hnp.arrays(np.int8, st.tuples(st.integers(2, 25), st.integers(2, 5)), elements=st.integers(-1, 3))


@pytest.mark.parametrize(
    ("level", "printed"), [("nominal", 0.743421), ("ordinal", 0.815388), ("interval", 0.849107), ("ratio", 0.797403)]
)
def test_alpha_of_krippendorffs_own_data(level: Level, printed: float) -> None:
    assert alpha(codes_of(KRIPPENDORFF), level) == pytest.approx(printed, abs=5e-7)


def test_fleiss_psychiatric_diagnoses() -> None:
    assert value(kernels.fleiss_kappa_kernel, FLEISS) == pytest.approx(0.430, abs=5e-4)
    assert value(kernels.fleiss_kappa_kernel, FLEISS) == pytest.approx(inter_rater.fleiss_kappa(FLEISS), abs=1e-12)


def test_fleiss_textbook_table() -> None:
    assert value(kernels.fleiss_kappa_kernel, TEXTBOOK) == pytest.approx(0.20993, abs=5e-6)


@pytest.mark.parametrize(
    ("statistic", "printed", "se"),
    [("gwet_ac", 0.77544, 0.14295), ("fleiss_kappa", 0.76117, 0.15302), ("brennan_prediger", 0.77273, 0.14472)],
)
def test_gwets_package_on_the_same_data(statistic: str, printed: float, se: float) -> None:
    """Values and standard errors printed by Gwet's irrCAC for its raw 4-rater example."""
    found = measure(KRIPPENDORFF, statistic, scale=scale_of(range(1, 6), "nominal"), bootstrap=0)
    assert found.value == pytest.approx(printed, abs=5e-6)
    assert found.se == pytest.approx(se, abs=5e-6)


def test_percent_agreement_by_hand() -> None:
    # items: AAB, AA, AB, C (alone). Pairs: 1 of 3, 1 of 1, 0 of 1.
    counts = [[2, 1, 0], [2, 0, 0], [1, 1, 0], [0, 0, 1]]
    assert value(kernels.percent_agreement_kernel, counts) == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert value(kernels.percent_agreement_pooled, counts) == pytest.approx(2 / 5)
    assert value(kernels.percent_agreement_exact, counts) == pytest.approx(1 / 3)
    assert value(kernels.percent_agreement_adjacent, counts) == 1.0


def test_adjacent_agreement_counts_a_step_not_two() -> None:
    assert value(kernels.percent_agreement_adjacent, [[1, 0, 1], [0, 1, 1]]) == pytest.approx(1 / 2)


def test_fleiss_with_unequal_raters_by_hand() -> None:
    # AAB and BB: p_a = (1/3 + 1)/2 = 2/3; pi_A = (2/3 + 0)/2 = 1/3; p_e = 1/9 + 4/9 = 5/9; kappa = (1/9)/(4/9).
    assert value(kernels.fleiss_kappa_kernel, [[2, 1], [0, 2]]) == pytest.approx(1 / 4)


def test_fleiss_of_the_paper_believes_the_first_row() -> None:
    # n = 3 everywhere: P = (5-3)/6, (4-3)/6; p = 2/6, 3/6; p_a = 1/4; p_e = 13/36.
    found = value(kernels.fleiss_kappa_fixed, [[2, 1], [0, 2]], n=3)
    assert found == pytest.approx((1 / 4 - 13 / 36) / (1 - 13 / 36))


def test_alpha_of_a_single_item() -> None:
    assert alpha(np.array([[0, 1]], dtype=np.int8), "nominal") == pytest.approx(0.0)
    assert np.isnan(alpha(np.array([[1, 1]], dtype=np.int8), "nominal"))


def test_ratio_distance_is_zero_at_zero_against_zero() -> None:
    assert kernels.distances(np.array([0.0, 1.0]), "ratio").tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=60, deadline=None)
@given(codes=ratings)
def test_alpha_equals_the_krippendorff_package(level: Level, codes: Array) -> None:
    paired = (codes >= 0).sum(axis=1) >= 2
    seen = np.unique(codes[paired][codes[paired] >= 0])
    if seen.size < 2:
        assert np.isnan(alpha(codes, level, q=4))
        return
    scores = np.where(codes < 0, np.nan, codes + 1.0).T
    theirs = krippendorff.alpha(reliability_data=scores, level_of_measurement=level)
    assert alpha(codes, level, q=4) == pytest.approx(theirs, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(codes=ratings)
def test_interval_alpha_from_moments_equals_the_one_from_categories(codes: Array) -> None:
    seen = codes >= 0
    moments = np.stack([(np.where(seen, codes, 0.0) ** power * seen).sum(axis=1) for power in range(3)], axis=1)
    found = kernels.krippendorff_alpha_interval(moments, np.ones((1, len(codes))))[0]
    assert found == pytest.approx(alpha(codes, "interval", q=4), abs=1e-9, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(codes=hnp.arrays(np.int8, st.tuples(st.integers(2, 25), st.integers(2, 5)), elements=st.integers(0, 3)))
def test_fleiss_equals_statsmodels_on_complete_panels(codes: Array) -> None:
    counts = np.stack([(codes == k).sum(axis=1) for k in range(4)], axis=1)
    found = value(kernels.fleiss_kappa_kernel, counts)
    if np.unique(codes).size == 1:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(codes=ratings, seed=st.integers(0, 2**16))
def test_order_of_raters_and_items_does_not_matter(codes: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(codes, axis=1)[rng.permutation(len(codes))]
    for level in LEVELS:
        assert alpha(shuffled, level, q=4) == pytest.approx(alpha(codes, level, q=4), abs=1e-9, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(codes=ratings, renaming=st.permutations(range(4)))
def test_nominal_coefficients_do_not_know_the_names(codes: Array, renaming: list[int]) -> None:
    renamed = np.where(codes < 0, -1, np.array([*renaming, -1])[codes]).astype(np.int8)
    before, after = patterns_of_codes(codes, 4), patterns_of_codes(renamed, 4)
    for kernel in (kernels.percent_agreement_kernel, kernels.fleiss_kappa_kernel, kernels.verdict_confidence):
        found = kernel(after.counts, after.weights)[0]
        assert found == pytest.approx(kernel(before.counts, before.weights)[0], abs=1e-9, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(codes=ratings, factor=st.floats(0.1, 10), shift=st.floats(-50, 50))
def test_interval_alpha_does_not_know_the_unit(codes: Array, factor: float, shift: float) -> None:
    patterns = patterns_of_codes(codes, 4)
    x = np.arange(4.0)
    moved = kernels.krippendorff_alpha_kernel(patterns.counts, patterns.weights, factor * x + shift, "interval")[0]
    assert moved == pytest.approx(alpha(codes, "interval", q=4), abs=1e-8, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(codes=ratings)
def test_few_patterns_and_sorted_rows_are_the_same_table(codes: Array) -> None:
    counts = np.stack([(codes == k).sum(axis=1) for k in range(4)], axis=1)
    by_table, by_rows = patterns_of_codes(codes, 4), patterns_of_counts(counts)
    assert sorted(map(tuple, by_table.counts)) == sorted(map(tuple, by_rows.counts))
    assert by_table.units.n == by_rows.units.n == len(codes)


@pytest.mark.parametrize("q", [2, 3, 5])
def test_identity_weights_make_ac2_ac1_and_full_agreement_one(q: int) -> None:
    counts = np.eye(q, dtype=int) * 3
    w = agreement_weights(scale_of(range(q)), "identity")
    assert value(kernels.gwet_ac_kernel, counts, w=w) == pytest.approx(1.0)
    assert value(kernels.brennan_prediger, counts, w=w) == pytest.approx(1.0)


def test_ac1_by_hand() -> None:
    # AAB, BB: p_a = 2/3; pi = 1/3, 2/3; p_e = (2 * 2/9)/1 = 4/9 with T = q = 2: T sum pi(1-pi)/(q(q-1)) = 4/9.
    assert value(kernels.gwet_ac_kernel, [[2, 1], [0, 2]], w=np.eye(2)) == pytest.approx((2 / 3 - 4 / 9) / (5 / 9))


def test_one_category_of_a_longer_scale() -> None:
    assert value(kernels.gwet_ac_kernel, [[2, 0], [3, 0]], w=np.eye(2)) == 1.0
    assert value(kernels.brennan_prediger, [[2, 0], [3, 0]], w=np.eye(2)) == 1.0
    assert np.isnan(value(kernels.fleiss_kappa_kernel, [[2, 0], [3, 0]]))


def test_ordinal_weights_are_gwets() -> None:
    # q = 4: 1 - C(d + 1, 2) / C(4, 2): 1, 5/6, 1/2, 0.
    assert agreement_weights(scale_of(range(4)), "ordinal")[0] == pytest.approx([1, 5 / 6, 1 / 2, 0])


def test_verdict_confidence_by_hand_and_by_chance() -> None:
    assert value(kernels.verdict_confidence, [[1, 1, 3], [2, 0, 0], [1, 0, 0]]) == pytest.approx((3 / 5 + 1) / 2)
    assert kernels.chance_majority(3, 3) == pytest.approx(17 / 27, abs=1e-12)
    assert kernels.chance_majority(2, 2) == pytest.approx(3 / 4)


@pytest.mark.parametrize(("n", "q"), [(2, 3), (4, 3), (5, 2), (6, 4)])
def test_chance_majority_by_listing_every_labelling(n: int, q: int) -> None:
    labellings = np.array(np.meshgrid(*[range(q)] * n)).reshape(n, -1).T
    majorities = [np.bincount(row, minlength=q).max() / n for row in labellings]
    assert kernels.chance_majority(n, q) == pytest.approx(np.mean(majorities), abs=1e-12)


def test_corrected_confidence_is_zero_at_chance_and_one_at_unanimity() -> None:
    assert value(kernels.verdict_confidence_corrected, [[3, 0, 0], [0, 3, 0]]) == pytest.approx(1.0)
    observed, chance = 2 / 3, 17 / 27
    assert value(kernels.verdict_confidence_corrected, [[2, 1, 0]]) == pytest.approx((observed - chance) / (1 - chance))
