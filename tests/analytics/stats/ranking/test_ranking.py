"""Ranking stability: worked by hand, scipy as the oracle, S0's printed means, what the tests must find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from analytics.stats.ranking import concordance

# Coherence means of six generators in Estonian and Finnish: S0, Table 1.
COHERENCE_ET = np.array([2.99, 2.93, 2.72, 2.56, 2.34, 2.98])
COHERENCE_FI = np.array([2.97, 2.89, 2.81, 2.64, 2.62, 2.99])


def simulated(effect: Any, n: int = 60, seed: int = 13, shared: float = 1.0) -> concordance.Scores:
    """Scores of four generators in two parallel languages; ``effect`` (4, 2) are the generators' true means."""
    rng = np.random.default_rng(seed)
    scenario, generator, language = (a.ravel() for a in np.indices((n, 4, 2)))
    score = np.asarray(effect)[generator, language] + shared * rng.normal(size=n)[scenario] + rng.normal(size=n * 8)
    return concordance.Scores(score, generator, language, scenario, tuple("abcd"), ("et", "fi"))


def test_the_published_means_give_one_inversion_not_five() -> None:
    compared = concordance.compare_rankings(COHERENCE_ET, COHERENCE_FI)
    assert compared.inversions == 1
    assert compared.tau_b == pytest.approx(13 / 15)
    assert compared.spearman == pytest.approx(1 - 6 * 2 / (6 * 35))


@pytest.mark.parametrize("seed", range(5))
def test_stacked_boards_match_scipy_with_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    boards = rng.integers(0, 4, (20, 6, 2)).astype(float)
    signs = concordance.rank_pairs(boards)
    tau, rho = (
        concordance.tau_b(signs[..., 0], signs[..., 1]),
        concordance.rank_spearman(signs[..., 0], signs[..., 1], 6),
    )
    for value, other, means in zip(tau, rho, boards, strict=True):
        assert value == pytest.approx(stats.kendalltau(*means.T).statistic, nan_ok=True)
        assert other == pytest.approx(stats.spearmanr(*means.T).statistic, nan_ok=True)


def test_tied_pairs_are_no_inversions_and_are_told() -> None:
    compared = concordance.compare_rankings(np.array([1.0, 1.0 + 1e-12, 2.0]), np.array([3.0, 1.0, 2.0]))
    assert (compared.inversions, compared.tied_pairs) == (1, 1)


def test_a_language_whose_means_are_all_equal_has_no_ranking() -> None:
    compared = concordance.compare_rankings(np.full(4, 3.0), np.arange(4.0))
    assert compared.tau_b is None
    assert "ceiling" in compared.reason


def test_generators_missing_in_one_language_are_left_out() -> None:
    compared = concordance.compare_rankings(np.array([1.0, 2.0, np.nan]), np.array([1.0, 3.0, 2.0]))
    assert (compared.tau_b, compared.n_generators) == (1.0, 2)
    assert concordance.compare_rankings(np.array([1.0, np.nan]), np.array([np.nan, 1.0])).tau_b is None


def test_the_board_is_the_mean_score_of_each_generator_and_language() -> None:
    s = simulated(np.zeros((4, 2)))
    board = concordance.board(s)
    assert board[2, 1] == pytest.approx(s.score[(s.generator == 2) & (s.language == 1)].mean())


def test_drawing_scenarios_jointly_cancels_what_a_scenario_does_everywhere() -> None:
    s = simulated(np.zeros((4, 2)), shared=5.0)
    rng = np.random.default_rng(0)
    joint, alone = (concordance.resampled_boards(s, resamples=400, rng=rng, parallel=p) for p in (True, False))
    spread = [float((b[:, 0, 0] - b[:, 1, 0]).std()) for b in (joint, alone)]
    assert spread[0] < 0.4 * spread[1]
    assert joint.mean(axis=0) == pytest.approx(concordance.board(s), abs=0.15)


def test_reversed_rankings_are_found_and_equal_ones_are_not() -> None:
    reversed_, same = [[0, 3], [1, 2], [2, 1], [3, 0]], [[0, 1], [1, 2], [2, 3], [3, 4]]
    for effect, inversions in ((reversed_, 6), (same, 0)):
        s = simulated(effect)
        rng = np.random.default_rng(1)
        compared = concordance.compare_rankings(*concordance.board(s).T)
        boards = concordance.resampled_boards(s, resamples=500, rng=rng, parallel=True)
        assert compared.inversions == inversions
        p = concordance.p_of_inversions(concordance.board(s), boards, df=29, tie=s.tie)
        assert (p < 0.05).sum() == inversions


def test_p_of_an_inversion_worked_by_hand() -> None:
    # Differences 1 and -2 with spreads .5 and .5: t = 2 and -4 at 9 df; the larger two-sided p is that of 2.
    rng = np.random.default_rng(4)
    noise = np.sort(rng.normal(size=400))
    noise = (noise - noise.mean()) / noise.std()
    boards = np.zeros((400, 2, 2))
    boards[:, 0, :] = np.array([1.0, -2.0]) + 0.5 * noise[:, None]
    means = np.array([[1.0, -2.0], [0.0, 0.0]])
    assert concordance.p_of_inversions(means, boards, df=9, tie=1e-9) == pytest.approx([2 * stats.t.sf(2, 9)])
    assert concordance.p_of_inversions(abs(means), boards, df=9, tie=1e-9) == [1]


def test_centring_keeps_a_stricter_language_from_looking_like_another_ranking() -> None:
    # Finnish is five points stricter throughout; centred, every shuffled mean lies near its generator's own level.
    s = simulated([[5, 0], [6, 1], [7, 2], [8, 3]])
    rng = np.random.default_rng(2)
    centred = concordance.permuted(s, 0, 1, resamples=500, rng=rng, centre=True)
    assert centred.mean(axis=(0, 2)) == pytest.approx(concordance.board(s).mean(axis=1) - s.score.mean(), abs=0.05)
    assert concordance.p_inversions(0, np.zeros(500)) == 1


def test_permutation_p_counts_itself_and_the_papers_doubles() -> None:
    shuffled = np.array([0.0, 1.0, 2.0, 3.0])
    assert concordance.p_inversions(3, shuffled) == pytest.approx(2 / 5)
    assert concordance.p_inversions(3, shuffled, paper_compat=True) == pytest.approx(0.5)
    assert concordance.p_inversions(0, shuffled, paper_compat=True) == 1


def test_permutations_keep_the_size_of_each_language_and_the_generators_total() -> None:
    s = simulated([[0, 1], [1, 0], [2, 2], [3, 3]])
    boards = concordance.permuted(s, 0, 1, resamples=50, rng=np.random.default_rng(3), centre=False)
    assert boards.mean(axis=2) == pytest.approx(np.tile(concordance.board(s).mean(axis=1), (50, 1)))
