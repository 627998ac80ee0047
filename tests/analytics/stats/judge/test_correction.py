"""Prediction-powered means: worked by hand, the identities they reduce to, cluster effects, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.stats.judge import ppi
from analytics.stats.judge.ppi import LabelledSample

NAN = np.nan
PPI_PY = (2.017675099639888, 1.8919614334449502, 2.143388765834826)


def sample(n: int = 100, rest: int = 900, rho: float = 0.8, seed: int = 9) -> LabelledSample:
    rng = np.random.default_rng(seed)
    f, noise = rng.normal(3, 1, n + rest), rng.normal(0, 1, n + rest)
    y = 2 + rho * (f - 3) + np.sqrt(1 - rho**2) * noise
    return LabelledSample.of(y[:n], f[:n], f[n:])


def test_plain_ppi_worked_by_hand() -> None:
    # mean f_rest = 4; rectifier mean(y - f) = mean(1, -1, 1.5) = .5: theta = 4.5.
    s = LabelledSample.of(np.array([3.0, 1.0, 4.5]), np.array([2.0, 2.0, 3.0]), np.array([3.0, 5.0]))
    estimate = ppi.ppi_mean(s)
    assert estimate.value == pytest.approx(4.5)
    assert estimate.se == pytest.approx(np.sqrt(np.var([1, -1, 1.5]) / 3 + np.var([3, 5]) / 2))


def test_lambda_worked_by_hand() -> None:
    # cov(y, f) / n = 2/3, var of (1, 2, 3, 2, 2, 2) with ddof 1 = .4, n/N = 1: 2/3 / (2 * .4) = .8333.
    y, f, rest = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), np.full(3, 2.0)
    assert ppi.optimal_lambda(y, f, rest) == pytest.approx(2 / 3 / 0.8)


def test_ppi_plus_matches_the_authors_code() -> None:
    # Printed by ppi_py 0.2.3 for sample(): ppi_mean_pointestimate, ppi_mean_ci(alpha=.05).
    estimate = ppi.ppi_plus_mean(sample())
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx(PPI_PY, abs=1e-9)


def test_a_perfect_judge_and_a_useless_one() -> None:
    s = sample()
    perfect = LabelledSample.of(s.f, s.f, s.f_rest)
    assert ppi.ppi_mean(perfect).value == pytest.approx(s.f_rest.mean())
    constant = LabelledSample.of(s.y, np.ones(100), np.ones(900))
    plus = ppi.ppi_plus_mean(constant)
    assert plus.value == pytest.approx(s.y.mean())
    assert "lambda 0.0000" in plus.note


def test_nothing_unlabelled_leaves_ppi_undefined_and_ppi_plus_the_classical_mean() -> None:
    s = sample(rest=0)
    assert ppi.ppi_mean(s).value is None
    assert ppi.ppi_plus_mean(s).value == pytest.approx(s.y.mean())


def test_a_single_item_without_a_label_gives_no_interval() -> None:
    said = ppi.ppi_mean(LabelledSample.of(np.array([1.0, 2, 3]), np.array([1.0, 2, 2]), np.array([4.0])))
    assert said.value == pytest.approx(4 + 1 / 3)
    assert (said.low, said.high) == (None, None) and "one item without a label" in (said.interval_reason or "")


def test_shifting_the_judge_changes_nothing() -> None:
    s = sample()
    moved = LabelledSample.of(s.y, s.f + 7, s.f_rest + 7)
    rng = np.random.default_rng
    for estimate in (ppi.ppi_mean, ppi.ppi_plus_mean):
        assert estimate(moved).value == pytest.approx(estimate(s).value)
    assert ppi.crossfit_mean(moved, rng=rng(0)).estimate.value == pytest.approx(
        ppi.crossfit_mean(s, rng=rng(0)).estimate.value
    )


def test_crossfit_gains_from_a_good_judge_and_says_how_much() -> None:
    # With N >> n and correlation rho the gain tends to 1 / (1 - rho^2 / (1 + n/N)) = 2.4 at rho = .8, n/N = .1.
    found = ppi.crossfit_mean(sample(n=1000, rest=9000), rng=np.random.default_rng(1))
    assert found.gain == pytest.approx(2.4, rel=0.2)
    assert found.gain_low < found.gain < found.gain_high
    assert found.estimate.method == "cross-fitted t"


def test_crossfit_refuses_below_20_labels_and_marks_fewer_than_50_approximate() -> None:
    rng = np.random.default_rng(2)
    few, some = (ppi.crossfit_mean(sample(n=n), rng=rng).estimate for n in (19, 30))
    assert few.value is None
    assert "needs 20" in few.reason
    assert "approximate" in some.method


def test_crossfit_intervals_widen_when_labels_come_in_clusters() -> None:
    rng = np.random.default_rng(3)
    s = sample(n=60, rest=600)
    copies = LabelledSample(
        np.repeat(s.y, 5), np.repeat(s.f, 5), s.f_rest, np.repeat(np.arange(60), 5), np.arange(60, 660)
    )
    alone, ignoring = (
        ppi.crossfit_mean(s, rng=rng),
        ppi.crossfit_mean(LabelledSample.of(copies.y, copies.f, copies.f_rest), rng=rng),
    )
    robust = ppi.crossfit_mean(copies, rng=rng)
    assert robust.estimate.se == pytest.approx(alone.estimate.se, rel=0.2)
    assert ignoring.estimate.se < 0.75 * robust.estimate.se


def test_classical_mean_is_the_t_interval_and_with_clusters_the_one_of_cluster_means() -> None:
    y = np.array([1.0, 2.0, 4.0, 5.0])
    alone = ppi.classical_mean(y, np.arange(4))
    assert alone.se == pytest.approx(y.std(ddof=1) / 2)
    assert alone.high - alone.value == pytest.approx(3.182446 * alone.se)
    paired = ppi.classical_mean(y, np.array([0, 0, 1, 1]))
    assert paired.se == pytest.approx(np.std([1.5, 4.5], ddof=1) / np.sqrt(2))
    assert ppi.classical_mean(np.empty(0), np.empty(0, int)).value is None
    assert ppi.classical_mean(np.ones(1), np.zeros(1, int)).interval_reason


def test_stratified_with_one_stratum_is_ppi_plus() -> None:
    s = sample()
    assert ppi.stratified_mean([s]).value == pytest.approx(ppi.ppi_plus_mean(s).value)
    assert ppi.stratified_mean([s]).se == pytest.approx(ppi.ppi_plus_mean(s).se)


def test_stratified_weights_strata_by_their_items() -> None:
    low, high = (
        LabelledSample.of(np.zeros(5), np.zeros(5), np.zeros(25)),
        LabelledSample.of(np.ones(5), np.ones(5), np.ones(5)),
    )
    assert ppi.stratified_mean([low, high]).value == pytest.approx(10 / 40)


def test_active_mean_worked_by_hand() -> None:
    # Four items, f = 1; items 1 and 3 drawn with probabilities .5 and .25, labels 2 and 1:
    # (1 + (2 - 1)/.5) + 1 + (1 + 0) + 1 = 6, over 4. As a ratio the weights 2 and 4, which speak for 6 items where
    # there are 4, count 4/3 and 8/3: (1 + 4/3 (2 - 1)) + 1 + (1 + 0) + 1 = 16/3, over 4.
    y = np.array([2.0, NAN, 1.0, NAN])
    probability = np.array([0.5, 0.5, 0.25, 0.25])
    assert ppi.active_mean(y, np.ones(4), probability, np.arange(4)).value == pytest.approx(1.5)
    assert ppi.active_mean(y, np.ones(4), probability, np.arange(4), is_ratio=True).value == pytest.approx(4 / 3)


def test_active_mean_is_unbiased_under_unequal_probabilities() -> None:
    rng = np.random.default_rng(4)
    y, f = rng.normal(2, 1, 400), rng.normal(0, 1, 400)
    probability = np.where(y > 2, 0.6, 0.2)
    draws = [
        ppi.active_mean(np.where(rng.random(400) < probability, y, NAN), f, probability, np.arange(400)).value
        for _ in range(800)
    ]
    assert np.mean(draws) == pytest.approx(y.mean(), abs=4 * np.std(draws) / np.sqrt(800))


def test_paired_difference_removes_what_the_pair_shares() -> None:
    rng = np.random.default_rng(5)
    shared = rng.normal(0, 5, 200)
    first, second = shared + rng.normal(1, 0.5, 200), shared + rng.normal(0, 0.5, 200)
    hidden = np.arange(200) >= 60
    labels = [np.where(hidden, NAN, y) for y in (first, second)]
    estimate = ppi.paired_difference((labels[0], first), (labels[1], second), np.arange(200))
    assert estimate.value == pytest.approx((first - second).mean(), abs=0.05)
    assert estimate.se < 0.1


def test_labels_in_clusters_widen_the_plain_corrections_and_single_items_change_nothing() -> None:
    rng = np.random.default_rng(6)
    s = sample(n=60, rest=600)
    alone = LabelledSample(s.y, s.f, s.f_rest, rng.permutation(60), np.arange(60, 660))
    copies = LabelledSample(
        np.repeat(s.y, 5), np.repeat(s.f, 5), np.repeat(s.f_rest, 5), np.arange(300) // 5, 60 + np.arange(3000) // 5
    )
    for estimate in (ppi.ppi_mean, ppi.ppi_plus_mean):
        assert estimate(alone) == estimate(s)
        robust, one = estimate(copies), estimate(s)
        assert robust.value == pytest.approx(one.value, rel=1e-3)  # lambda counts items, not clusters
        assert robust.se == pytest.approx(one.se, rel=0.1)  # a little wider: lambda is chosen anew without each cluster
        assert (robust.method, one.method) == ("cluster jackknife t", "normal")


def test_leaving_out_clusters_is_what_a_loop_over_them_finds() -> None:
    rng = np.random.default_rng(7)
    s = sample(n=40, rest=100)
    s = LabelledSample(s.y, s.f, s.f_rest, rng.integers(0, 8, 40), rng.integers(4, 15, 100))
    found = ppi.ppi_plus_mean(s)
    loop = []
    for name in range(15):
        own, rest = s.cluster != name, s.cluster_rest != name
        left = LabelledSample.of(s.y[own], s.f[own], s.f_rest[rest])
        loop.append(ppi.ppi_plus_mean(left).value)
    squares = (np.array(loop) - found.value) ** 2
    # Eight clusters hold labels, seven others do not.
    assert found.se == pytest.approx(np.sqrt(7 / 8 * squares[:8].sum() + 6 / 7 * squares[8:].sum()))


def test_plain_corrections_hold_the_mean_in_ten_large_clusters() -> None:
    rng, held = np.random.default_rng(8), np.zeros((2, 400))
    cluster, others = np.repeat(np.arange(10), 10), 10 + np.repeat(np.arange(40), 25)
    for i in range(400):
        effect, judged = rng.normal(size=(2, 50))
        where = np.concatenate([cluster, others])
        quality = effect[where] + rng.normal(size=1100)
        f = 0.8 * quality + 0.5 * judged[where] + rng.normal(size=1100)
        s = LabelledSample(quality[:100], f[:100], f[100:], cluster, others)
        for k, estimate in enumerate((ppi.ppi_mean(s), ppi.ppi_plus_mean(s))):
            held[k, i] = estimate.low <= 0 <= estimate.high
    assert (held.mean(axis=1) > 0.92).all() and (held.mean(axis=1) < 0.98).all()
