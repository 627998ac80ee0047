"""Planning: worked by hand, and what the formulas promise checked by simulation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analytics.stats.core.estimates import Estimate
from analytics.stats.core.scales import Scale
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import ppi
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


def ratings(humans: np.ndarray, generator: np.ndarray, cluster: np.ndarray) -> RatingsTable:
    """(N, J) scores of the criterion c on the scale 0 to 4."""
    rows = [
        (f"i{item}", f"s{cluster[item]}", "c", f"h{rater}", "annotator", score, generator[item])
        for item, given in enumerate(humans)
        for rater, score in enumerate(given)
    ]
    columns = ["item", "cluster", "criterion", "rater", "rater_kind", "score", "generator"]
    return ratings_table(pd.DataFrame(rows, columns=columns), scales={"c": Scale((0, 1, 2, 3, 4), "ordinal")})


def planned(table: RatingsTable, statistic: str) -> Estimate:
    (row,) = pilot.pilot_report(table, pilot.Goals(half_width=0.25, difference=0.5), statistics=[statistic])
    return row.estimate


def test_where_nobody_agrees_there_is_no_plan() -> None:
    """Scores by chance have means that vary little: 60 items, 5 raters. Agreeing raters give a number."""
    rng = np.random.default_rng(4)
    one = np.zeros(60)
    chance = planned(ratings(rng.integers(0, 5, (60, 5)).astype(float), one, np.arange(60)), "labels_needed")
    assert chance.value is None
    assert str(chance.reason).startswith("the raters agree too little to plan on their scores: alpha ")
    truth = rng.integers(0, 5, 60).astype(float)
    agreeing = planned(ratings(truth[:, None].repeat(5, axis=1), one, np.arange(60)), "labels_needed")
    sd, n = float(truth.std(ddof=1)), int(agreeing.value or 0)
    assert pilot.half_width_of_mean(sd, n, n) <= 0.25 < pilot.half_width_of_mean(sd, n - 1, n - 1)
    assert n >= pilot.labels_for_mean(sd, 0.25)


def test_items_of_one_cluster_count_together_worked_by_hand() -> None:
    """Two clusters of two labels: residuals 1, 1 and -1, -1, sums 2 and -2. s^2 = 2 / 1 * (4 + 4) / 4 = 4; of labels
    0, 2 in each cluster the sums are 0. With a cluster for each it is the variance 4 / 3."""
    labels = np.array([2.0, 2.0, 0.0, 0.0])
    assert pilot.sd_by_clusters(labels, np.array([0, 0, 1, 1])) == pytest.approx(2.0)
    assert pilot.sd_by_clusters(labels, np.array([0, 1, 0, 1])) == 0.0
    assert pilot.sd_by_clusters(labels, np.arange(4)) == pytest.approx((4 / 3) ** 0.5)
    assert pilot.half_width_of_mean(2.0, 4, 2) == pytest.approx(12.7062, rel=1e-5)  # t at .975 with one degree


def test_with_a_judge_the_error_of_its_own_mean_counts_worked_by_hand() -> None:
    """y = 2 f, labels 2, 2, 0, 0 of eight items, scores of the rest 1, 1, 0, 0. b = cov / var = .5 / (2 / 7) = 1.75, so
    lambda = 1.75 * 4 / 8. S_yy = 4 / 3, S_yf = 2 / 3, S_ff = 1 / 3, S_rest = 2 / 7."""
    y, f, rest = np.array([2.0, 2, 0, 0]), np.array([1.0, 1, 0, 0]), np.array([1.0, 1, 0, 0])
    mean = pilot.JudgedMean.of(y, f, rest, np.arange(4), np.arange(4, 8))
    assert mean is not None and mean.half_width(9) is None
    square = (4 / 3 - 2 * 0.875 * 2 / 3 + 0.875**2 / 3) / 4 + 0.875**2 * 2 / 7 / 4
    assert mean.half_width(4) == pytest.approx(pilot.half_width_of_mean(1, 1, 4) * square**0.5)
    own = pilot.half_width_of_mean((4 / 3) ** 0.5, 8, 8)
    assert mean.half_width(8) == pytest.approx(own), "where all items are labelled, a judge adds nothing"
    assert (mean.labels_for(own * 0.99), mean.labels_for(own * 1.001)) == (None, 8)
    assert pilot.JudgedMean.of(y, f, rest, np.zeros(4), np.arange(4, 8)) is None, "one cluster tells nothing"
    alone = pilot.JudgedMean.of(y, f, rest[:0], np.arange(4), np.arange(0))
    assert alone is not None
    assert alone.half_width(4) == pytest.approx(pilot.half_width_of_mean((4 / 3) ** 0.5, 4, 4))


@pytest.mark.parametrize(("per_cluster", "labelled", "is_split"), [(1, 40, False), (4, 160, False), (4, 150, True)])
def test_the_width_with_a_judge_is_the_one_that_ppi_prints(per_cluster: int, labelled: int, is_split: bool) -> None:
    """Items that stand alone, whole clusters, and clusters of which some items are labelled: within 15 %."""
    rng = np.random.default_rng(8)
    cluster = np.repeat(np.arange(120), per_cluster)
    size = len(cluster)
    quality = 2 + rng.normal(0, 0.8, 120)[cluster] + rng.normal(0, 0.8, size)
    y, f = np.clip(np.rint(quality), 0, 4), np.clip(np.rint(quality + rng.normal(0, 0.7, size)), 0, 4)
    has = rng.permutation(size) < labelled if is_split else np.arange(size) < labelled
    parts = y[has], f[has], f[~has], cluster[has], cluster[~has]
    mean, printed = pilot.JudgedMean.of(*parts), ppi.ppi_plus_mean(ppi.LabelledSample.of(*parts))
    assert mean is not None and printed.low is not None and printed.high is not None
    assert mean.half_width(labelled) == pytest.approx((printed.high - printed.low) / 2, rel=0.15)
    labels_alone = ppi.classical_mean(y, cluster)
    assert labels_alone.low is not None and labels_alone.high is not None
    assert mean.half_width(size) == pytest.approx((labels_alone.high - labels_alone.low) / 2, rel=0.3)
    needed = mean.labels_for(0.2)
    assert needed is None or (mean.half_width(needed) or 9) <= 0.2 < (mean.half_width(needed - 1) or 0)


def test_labels_of_one_cluster_plan_nothing() -> None:
    truth = np.random.default_rng(4).integers(0, 5, 30).astype(float)
    found = planned(ratings(truth[:, None].repeat(2, axis=1), np.zeros(30), np.zeros(30, dtype=int)), "labels_needed")
    assert found.value is None and str(found.reason).startswith("all labels are of one cluster")


def test_a_budget_is_not_split_by_scores_that_are_given_by_chance() -> None:
    """In et the raters agree, elsewhere they score at random: no labels to plan there, and et has the whole budget.

    The languages without a plan come in one order, whatever the seed of the process's hashes.
    """
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 5, 60).astype(float)
    by_chance = {language: rng.integers(0, 5, (60, 5)).astype(float) for language in ("fi", "lv", "ar", "ja", "de")}
    by_language = {"et": truth[:, None].repeat(5, axis=1), **by_chance}
    rows = [
        (f"{language}{item}", "c", f"h{rater}", "annotator", score, language)
        for language, humans in by_language.items()
        for item, given in enumerate(humans)
        for rater, score in enumerate(given)
    ]
    frame = pd.DataFrame(rows, columns=["item", "criterion", "rater", "rater_kind", "score", "language"])
    table = ratings_table(frame, scales={"c": Scale((0, 1, 2, 3, 4), "ordinal")})
    split = pilot.pilot_report(table, pilot.Goals(budget=200), statistics=["labels_affordable"])
    found = {row.language: row.estimate for row in split}
    assert [*found] == ["ar", "de", "fi", "ja", "lv", "et"]
    sd = float(truth.std(ddof=1))
    assert found["et"].value == pilot.allocate_labels(200, {"et": sd}, {"et": 1.0})["et"] and found["fi"].value is None
    assert str(found["fi"].reason).startswith("the raters agree too little to plan on their scores")


def test_an_interval_that_is_the_whole_scale_stops_nothing_whatever_the_goal() -> None:
    rows = [(f"i{item}", "c", "h", "annotator", float(item % 2), item) for item in range(3)]
    columns = ["item", "criterion", "rater", "rater_kind", "score", pilot.PLACE]
    table = ratings_table(pd.DataFrame(rows, columns=columns), scales={"c": Scale((0, 1), "ordinal")})
    (row,) = pilot.pilot_report(table, pilot.Goals(half_width=0.5), by=("criterion",), statistics=["sequence_mean"])
    assert (row.estimate.low, row.estimate.high, row.estimate.note) == (0, 1, pilot.TOO_EARLY)


def test_a_small_pilot_whose_agreement_is_not_certain_has_a_plan() -> None:
    """Six items of two raters: the value of alpha is low, its interval is not."""
    scores = np.array([[0.0, 3], [4, 1], [1, 2], [2, 3], [3, 1], [0, 0]])
    labels = planned(ratings(scores, np.zeros(6), np.arange(6)), "labels_needed")
    assert labels.value is not None


def test_items_for_a_difference_worked_by_hand() -> None:
    """40 scenarios of two generators, b half a point above a or equal to it: the differences' sd is .2532."""
    truth = np.repeat(np.arange(40) % 4, 2).astype(float)
    above = np.where(np.arange(80) % 2, (np.arange(80) // 2) % 2, 0)
    generator = np.array(["a", "b"] * 40)
    paired = planned(
        ratings((truth + above)[:, None].repeat(2, axis=1), generator, np.arange(80) // 2), "items_for_difference"
    )
    sd = float(np.std(np.arange(40) % 2, ddof=1))
    assert (paired.variant, paired.n_items, paired.value) == ("paired", 40, np.ceil((2.8016 * sd / 0.5) ** 2))
    apart = planned(
        ratings((truth + above)[:, None].repeat(2, axis=1), generator, np.arange(80)), "items_for_difference"
    )
    within = np.sqrt((np.var(truth[::2], ddof=1) + np.var((truth + above)[1::2], ddof=1)) / 2)
    assert (apart.variant, apart.value) == ("independent", np.ceil(2 * (2.8016 * within / 0.5) ** 2))
    alone = pilot.pilot_report(
        ratings(truth[:, None], np.zeros(80), np.arange(80)), pilot.Goals(), statistics=["items_for_difference"]
    )
    assert alone == []


def test_the_promised_share_of_studies_shows_the_difference() -> None:
    """Simulation: two generators 1/2 apart, sd 1 within; n items of each from the formula."""
    rng = np.random.default_rng(6)
    n = int(np.ceil(2 * (2.8016 / 0.5) ** 2))
    a, b = rng.normal(0, 1, (2000, n)), rng.normal(0.5, 1, (2000, n))
    z = (b.mean(axis=1) - a.mean(axis=1)) / np.sqrt((a.var(axis=1, ddof=1) + b.var(axis=1, ddof=1)) / n)
    assert np.mean(np.abs(z) > 1.96) == pytest.approx(0.8, abs=0.03)


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
