"""Intervals of two rankings' agreement: every compatible ranking tried, what is clear, and coverage where tau jumps."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from analytics.stats.ranking import concordance
from analytics.stats.ranking.concordance import Gaps


def weak_orders(n: int) -> np.ndarray:
    """(W, P) pair signs of all rankings of n generators, ties allowed."""
    ranks = np.unique([np.unique(r, return_inverse=True)[1] for r in product(range(n), repeat=n)], axis=0)
    return concordance.rank_pairs(ranks[..., None].astype(float))[..., 0]


def every_value(signs: np.ndarray, n: int) -> tuple[np.ndarray, ...]:
    """tau-b, rho and inversions of all pairs of rankings, ties allowed, that have the known signs (P, 2)."""
    rankings = weak_orders(n)
    first, second = (rankings[((known == 0) | (rankings == known)).all(axis=1)] for known in signs.T)
    s, t = (side.reshape(-1, side.shape[-1]) for side in np.broadcast_arrays(first[:, None], second[None]))
    return concordance.tau_b(s, t), concordance.rank_spearman(s, t, n), concordance.inversions(s, t)


def known(rng: np.random.Generator, n: int, share: float) -> np.ndarray:
    """(P, 2) signs of two random rankings, a share of them known."""
    signs = concordance.rank_pairs(rng.normal(size=(n, 2)))
    return np.where(rng.random(signs.shape) < share, signs, 0.0)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_no_compatible_ranking_lies_outside_and_of_two_generators_some_reach_the_bounds(n: int, share: float) -> None:
    rng = np.random.default_rng(n)
    for _ in range(8):
        signs = known(rng, n, share)
        found = concordance.allowed(signs, n)
        bounds = (found.tau_b, found.spearman, found.inversions)
        for (low, high), values in zip(bounds, every_value(signs, n), strict=True):
            if np.isnan(values).all():
                continue
            assert low <= np.nanmin(values) + 1e-9
            assert high >= np.nanmax(values) - 1e-9
            if n == 2:
                assert (low, high) == pytest.approx((np.nanmin(values), np.nanmax(values)))


def test_what_is_wholly_known_leaves_one_value_and_what_is_not_leaves_all() -> None:
    means = np.array([[1, 2], [2, 1], [3, 3], [4, 5], [5, 4], [6, 6.0]])
    point = concordance.compare_rankings(*means.T)
    exact = concordance.allowed(concordance.rank_pairs(means), 6)
    assert exact.tau_b == pytest.approx((point.tau_b, point.tau_b))
    assert exact.spearman == pytest.approx((point.spearman, point.spearman))
    assert exact.inversions == (point.inversions, point.inversions)
    nothing = concordance.allowed(np.zeros((15, 2)), 6)
    assert nothing.tau_b == nothing.spearman == pytest.approx((-1, 1))
    assert nothing.inversions == (0, 15)


def drawn_at(means: np.ndarray, rng: np.random.Generator, spread: float = 0.1) -> np.ndarray:
    return means + spread * rng.normal(size=(1000, *means.shape))


def test_only_clear_differences_have_a_sign() -> None:
    rng = np.random.default_rng(0)
    means = np.array([[0, 0], [0.1, 2], [3, 4.0]])
    signs = Gaps.of(means, drawn_at(means, rng)).clear_signs(df=99)
    assert signs.tolist() == [[0, -1], [-1, -1], [-1, -1]]


def test_what_is_clear_leaves_the_family_so_that_less_is_asked_of_the_rest() -> None:
    # The last two lie 2.5 errors apart: too little among thirty differences, enough once only they are left.
    rng = np.random.default_rng(1)
    means = np.column_stack([10.0 * np.arange(6), 10.0 * np.arange(6)])
    means[5] = means[4] + [0.35, 10]
    assert (Gaps.of(means, drawn_at(means, rng)).clear_signs(df=1000) == -1).all()
    crowded = np.zeros((6, 2))
    crowded[5, 0] = 0.35
    assert not Gaps.of(crowded, drawn_at(crowded, rng)).clear_signs(df=1000)[-1].any()


def test_intervals_say_why_there_are_none_and_what_they_rest_on() -> None:
    means = np.array([[1, 1], [2, 2], [3, 3.0]])
    boards = drawn_at(means, np.random.default_rng(2))
    assert "two scenarios" in concordance.rank_intervals(means, boards, n_scenarios=1)[0].interval_reason
    torn = boards.copy()
    torn[:100, 0, 1] = np.nan
    none = concordance.rank_intervals(means, torn, n_scenarios=50)[1]
    assert (none.low, none.undefined_share) == (None, pytest.approx(0.1))
    tau = concordance.rank_intervals(means, boards, n_scenarios=50)[0]
    assert (tau.low, tau.high) == (1, 1)
    assert "approximate: conservative" in tau.method
    alike = concordance.rank_intervals(means, np.tile(means, (50, 1, 1)), n_scenarios=50)[0]
    assert "varies in no resample" in alike.method


def sample(quality: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Means and 300 boards of n parallel scenarios."""
    scenario, generator, language = (a.ravel() for a in np.indices((n, *quality.shape)))
    score = (quality + rng.normal(size=(n, *quality.shape))).ravel()
    scores = concordance.Scores(score, generator, language, scenario, tuple("abcdef"), ("et", "fi"))
    assert (concordance.scenarios(scores) == n).all()
    return concordance.board(scores), concordance.resampled_boards(scores, resamples=300, rng=rng, parallel=True)


@pytest.mark.parametrize(
    "second", [[0, 0.1, 0.2, 0.3, 0.4, 0.5], [0, 0.02, 1, 1.02, 2, 2.02], [0, 0, 1, 1, 2, 2]],
    ids=["close", "close pairs", "tied pairs"],
)  # fmt: skip
def test_they_hold_the_truth_where_resampled_taus_do_not(second: list[float]) -> None:
    quality = np.column_stack([np.arange(6) / 2, second])
    truth = concordance.compare_rankings(*quality.T)
    rng, held, resampled_held = np.random.default_rng(3), 0, 0
    for _ in range(100):
        means, boards = sample(quality, 60, rng)
        tau, rho, inversions = concordance.rank_intervals(means, boards, n_scenarios=60)
        held += tau.low <= truth.tau_b + 1e-9 <= tau.high + 2e-9
        s, t = np.moveaxis(concordance.rank_pairs(boards), -1, 0)
        low, high = np.quantile(concordance.tau_b(s, t), [0.025, 0.975])
        resampled_held += low <= truth.tau_b + 1e-9 <= high + 2e-9
        assert (tau.low, tau.high) == pytest.approx((1 - inversions.high / 7.5, 1 - inversions.low / 7.5))
        assert rho.low >= -1 - 1e-9
    assert held >= 92
    assert resampled_held < held


def test_sets_of_ranks_worked_by_hand() -> None:
    # Means 3, 2, 2 (tied) and 0 with spreads far smaller than the gaps: 1, then 2 to 3 twice, then 4.
    rng = np.random.default_rng(3)
    means = np.array([3.0, 2.0, 2.0, 0.0])
    boards = means + 0.05 * rng.normal(size=(500, 4))
    four = concordance.clear_standings("abcd", means, boards, n_scenarios=50, tie=1e-9)
    assert [own.places() for own in four] == [(1, 1), (2, 3), (2, 3), (4, 4)]
    # Among b, c and d alone the first place is open between b and c.
    assert [own.places(frozenset("bcd")) for own in four[1:]] == [(1, 2), (1, 2), (3, 3)]
    # Nothing is clear: any rank is possible.
    unclear = means + 5 * rng.normal(size=(500, 4))
    for own in concordance.clear_standings("abcd", means, unclear, n_scenarios=50, tie=1e-9):
        assert own.places() == (1, 4)


def test_sets_of_ranks_hold_all_ranks_at_once_in_nineteen_studies_of_twenty() -> None:
    rng, held = np.random.default_rng(4), 0
    quality = np.array([0, 0.3, 0.6, 0.9, 1.2])
    for _ in range(200):
        scores = quality + rng.normal(size=(40, 5))
        drawn = scores[rng.integers(0, 40, size=(300, 40))].mean(axis=1)
        five = concordance.clear_standings("abcde", scores.mean(axis=0), drawn, n_scenarios=40, tie=1e-9)
        sets = np.array([own.places() for own in five])
        held += bool(((sets[:, 0] <= [5, 4, 3, 2, 1]) & (sets[:, 1] >= [5, 4, 3, 2, 1])).all())
    assert held / 200 >= 0.92
