"""Scales of many points: closed forms on long lists of scores equal the direct formulas on tables."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.stats.agreement import coefficient_estimates, coefficients, continuous_scales
from analytics.stats.agreement.coefficient_estimates import patterns_of
from analytics.stats.core.scales import Level, Scale, disagreement
from analytics.stats.core.tables import Coded, coded_from_matrix

pytestmark = pytest.mark.slow

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")


@st.composite
def panels(draw: st.DrawFn) -> Coded:
    """Two to five raters on up to 25 items and 9 uneven points, with missing scores and some clusters."""
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    points = np.unique(np.round(rng.uniform(0, 10, draw(st.integers(3, 9))), 2))
    n, r = draw(st.integers(3, 25)), draw(st.integers(2, 5))
    scores = rng.choice(points, (n, r))
    same = rng.random(n) < 0.4
    scores[same] = scores[same, :1]
    scores[rng.random((n, r)) < draw(st.sampled_from([0, 0.2, 0.5]))] = np.nan
    scores[0, :2] = points[:2]
    level = draw(st.sampled_from(LEVELS))
    clusters = rng.integers(0, 6, n) if draw(st.booleans()) else None
    return coded_from_matrix(scores, scale=Scale(tuple(map(float, points)), level), clusters=clusters)


@given(panels())
@settings(max_examples=150, deadline=None)
def test_every_count_based_figure_equals_its_kernel(cell: Coded) -> None:
    patterns, scores = patterns_of(cell), continuous_scales.LongScores(cell)
    for figure in coefficient_estimates.figures_for(cell):
        expected = coefficient_estimates.reason_undefined(cell, patterns, figure)
        assert coefficient_estimates._reason(cell, figure, scores.n, scores.points_used) == expected
        if expected is None:
            kept = patterns.where(patterns.n == figure.complete) if figure.complete else patterns
            direct = figure.kernel(kept.counts, kept.weights)[0]
            value, _ = continuous_scales.coefficient(scores, figure.statistic, figure.variant)
            assert value == pytest.approx(direct, abs=1e-9, nan_ok=True), (figure.statistic, figure.variant)


@given(panels())
@settings(max_examples=60, deadline=None)
def test_the_gradient_is_the_change_when_an_item_weighs_a_little_more(cell: Coded) -> None:
    patterns, scores = patterns_of(cell), continuous_scales.LongScores(cell)
    counts = cell.counts().astype(np.float64)
    for figure in coefficient_estimates.figures_for(cell):
        if coefficient_estimates.reason_undefined(cell, patterns, figure) is not None:
            continue
        kept = (counts.sum(axis=1) == figure.complete) if figure.complete else np.ones(len(counts), dtype=bool)
        value, gradient = continuous_scales.coefficient(scores, figure.statistic, figure.variant)
        if np.isnan(value):
            continue
        step = 1e-6
        heavier = np.ones((len(counts), len(counts))) + step * np.eye(len(counts))
        lighter = 2 - heavier
        change = figure.kernel(counts[kept], heavier[:, kept]) - figure.kernel(counts[kept], lighter[:, kept])
        slope = np.where(kept, change / (2 * step), 0)
        assert gradient == pytest.approx(slope, abs=2e-5 * max(1, abs(slope).max())), (figure.statistic, figure.variant)


@given(panels())
@settings(max_examples=100, deadline=None)
def test_kappas_of_named_raters_equal_their_kernels(cell: Coded) -> None:
    codes, scores = cell.matrix().astype(np.intp), continuous_scales.LongScores(cell)
    ones = np.ones((1, len(codes)))
    for weighting in ("identity", "linear", "quadratic", "ordinal"):
        w, distance = disagreement(cell.scale, weighting), continuous_scales.Distance.of(cell.scale, weighting)
        for a, b in combinations(range(len(cell.raters)), 2):
            value, gradient = continuous_scales.cohen_kappa_of_many_points(codes[:, a], codes[:, b], distance)
            direct = coefficients.cohen_kappa_kernel(codes[:, a], codes[:, b], ones, w)[0]
            assert value == pytest.approx(direct, abs=1e-9, nan_ok=True)
            if not np.isnan(value) and ((codes[:, a] >= 0) & (codes[:, b] >= 0)).sum() > 1:
                se = coefficients.cohen_kappa_se(codes[:, a], codes[:, b], ones[0], w)
                assert (gradient**2).sum() == pytest.approx(se**2, rel=1e-6, abs=1e-7)
        value, gradient = continuous_scales.conger_kappa_of_many_points(scores, distance)
        direct = coefficients.conger_kappa_kernel(codes, ones, w)[0]
        assert value == pytest.approx(direct, abs=1e-9, nan_ok=True)
        if not np.isnan(value):
            step = 1e-6 * np.eye(len(codes))
            change = coefficients.conger_kappa_kernel(codes, 1 + step, w) - coefficients.conger_kappa_kernel(
                codes, 1 - step, w
            )
            assert gradient == pytest.approx(change / 2e-6, abs=1e-5 * max(1, abs(change / 2e-6).max()))
