"""Corrected results of generators beside scipy's own tests and intervals, and their simultaneous bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analytics.stats.core.estimates import Estimate
from analytics.stats.core.scales import Scale
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import leaderboard, ppi
from analytics.stats.planning import pilot

LEVELS = {"atlas": 3.1, "birch": 2.6, "cedar": 1.4}
SCALE = {"clarity": Scale(points=(0.0, 1.0, 2.0, 3.0, 4.0), level="ordinal")}
NAMES = list(LEVELS)


def study(labelled: int, items: int = 60, *, parallel: bool = True) -> pd.DataFrame:
    """Two people rate the first items of each generator, a judge all of them."""
    rng = np.random.default_rng(5)
    theme = rng.normal(0, 0.8, items)
    rows: list[dict[str, Any]] = []
    for name, level in LEVELS.items():
        for place in range(items):
            quality = level + theme[place] + rng.normal(0, 0.5)
            about = {"item": f"{name}-{place}", "cluster": f"s{place}" if parallel else f"{name}-s{place}"}
            about |= {"language": "et", "criterion": "clarity", "generator": name, "repeat": 1}
            given = {"judge": 0.8 + 0.7 * quality + rng.normal(0, 0.4)}
            if place < labelled:
                given |= {"mari": quality + rng.normal(0, 0.5), "jaan": quality + rng.normal(0, 0.5)}
            for rater, score in given.items():
                kind = "judge" if rater == "judge" else "annotator"
                rows.append({**about, "rater": rater, "rater_kind": kind, "score": float(np.clip(round(score), 0, 4))})
    return pd.DataFrame(rows)


def panel_means(frame: pd.DataFrame, name: str) -> pd.Series[float]:
    people = frame[(frame["rater_kind"] == "annotator") & (frame["generator"] == name)]
    return people.groupby("cluster")["score"].mean().sort_index()


def found(frame: pd.DataFrame, **options: Any) -> dict[tuple[str, str, str | None], Estimate]:
    table = ratings_table(frame, scales=SCALE)
    rows = leaderboard.leaderboard_report(table, judge="judge", **options)
    return {(row.estimate.statistic, str(row.cell["generator"]), row.estimate.variant): row.estimate for row in rows}


def test_panel_means_have_bonferroni_t_intervals() -> None:
    frame = study(25)
    rows = found(frame)
    for name in NAMES:
        means = panel_means(frame, name)
        low, high = stats.t.interval(1 - 0.05 / 3, len(means) - 1, means.mean(), stats.sem(means))
        estimate = rows["panel_mean", name, None]
        assert (estimate.value, estimate.low, estimate.high) == pytest.approx((means.mean(), low, high))
        assert estimate.n_items == 25 and estimate.n_raters == 2 and estimate.n_ratings == 50
        assert "simultaneous for 3 generators, Bonferroni" in (estimate.method or "")


def test_corrected_means_are_those_of_cross_fitted_ppi() -> None:
    frame = study(30)
    rows = found(frame, seed=7)
    for name in NAMES:
        own = frame[frame["generator"] == name]
        scores = own[own["rater"] == "judge"].set_index("cluster")["score"]
        y = panel_means(frame, name)
        f, rest = scores.loc[y.index].to_numpy(), scores.drop(index=y.index).to_numpy()
        alone = ppi.LabelledSample.of(y.to_numpy(), f, rest)
        by_hand = ppi.crossfit_mean(alone, rng=np.random.default_rng(7), confidence=1 - 0.05 / 3)
        estimate = rows["corrected_mean", name, None]
        # The folds depend on the order of clusters, so that only the size of the difference is known.
        assert estimate.value == pytest.approx(by_hand.estimate.value, abs=0.05)
        assert estimate.n_items == 30 and estimate.low is not None and estimate.high is not None
        assert estimate.high - estimate.low < 4.5 * stats.sem(y) * 1.3
        worth = rows["effective_labels", name, None]
        assert worth.value is not None and by_hand.gain is not None
        assert worth.value == pytest.approx(30 * by_hand.gain, rel=0.25) and worth.confidence == 0.95


def test_differences_of_fully_labelled_scenarios_are_paired_t_tests() -> None:
    frame = study(12, items=12)
    rows = found(frame)
    for first, second in (("atlas", "birch"), ("atlas", "cedar"), ("birch", "cedar")):
        test = stats.ttest_rel(panel_means(frame, first), panel_means(frame, second))
        low, high = test.confidence_interval(1 - 0.05 / 3)
        estimate = rows["corrected_difference", first, second]
        assert (estimate.low, estimate.high) == pytest.approx((max(low, -4), min(high, 4)))
        assert "paired by scenario" in (estimate.method or "") and estimate.n_clusters == 12
    undefined = rows["corrected_mean", "atlas", None]
    assert undefined.value is None and undefined.reason == leaderboard.ALL_LABELLED


def test_differences_of_scenarios_apart_are_welch_tests() -> None:
    frame = study(12, items=12, parallel=False)
    rows = found(frame, confidence=0.9)
    test = stats.ttest_ind(panel_means(frame, "atlas"), panel_means(frame, "birch"), equal_var=False)
    low, high = test.confidence_interval(1 - 0.1 / 3)
    estimate = rows["corrected_difference", "atlas", "birch"]
    assert (estimate.low, estimate.high) == pytest.approx((low, high))
    assert "Welch t of two panel means (approximate)" in (estimate.method or "")


def test_a_judge_makes_paired_differences_sharper_without_moving_them() -> None:
    """The judge shrinks scores by a third: taken as labels they would show a smaller difference."""
    frame = study(40, items=400)
    rows = found(frame)
    estimate = rows["corrected_difference", "atlas", "cedar"]
    judge = rows["judge_mean", "atlas", None].value, rows["judge_mean", "cedar", None].value
    everybody = study(400, items=400)
    truth = (panel_means(everybody, "atlas") - panel_means(everybody, "cedar")).mean()
    assert judge[0] is not None and judge[1] is not None and judge[0] - judge[1] < truth - 0.2
    assert estimate.low is not None and estimate.high is not None and estimate.low < truth < estimate.high
    paired = panel_means(frame, "atlas") - panel_means(frame, "cedar")
    assert estimate.high - estimate.low < 2 * stats.t.ppf(1 - 0.05 / 6, 39) * stats.sem(paired)


def test_two_answers_to_one_scenario_are_not_paired_at_random() -> None:
    frame = study(10, items=10)
    frame.loc[frame["item"] == "atlas-1", "cluster"] = "s0"
    estimate = found(frame)["corrected_difference", "atlas", "birch"]
    assert estimate.value is None and "which belong together?" in (estimate.reason or "")


def test_labels_without_order_have_no_leaderboard() -> None:
    table = ratings_table(study(5, items=5), scales={"clarity": Scale(points=SCALE["clarity"].points, level="nominal")})
    rows = leaderboard.leaderboard_report(table, judge="judge")
    assert {row.estimate.statistic for row in rows} == {"corrected_mean"}
    assert all(row.estimate.reason == "labels without an order have no mean" for row in rows)


def test_unequal_clusters_apart_have_the_degrees_of_freedom_of_their_effective_number() -> None:
    frame = study(40, items=40, parallel=False)
    for name in ("atlas", "birch"):  # two large scenarios and twenty small ones
        own = frame["generator"] == name
        place = frame.loc[own, "item"].str.rpartition("-")[2].astype(int)
        frame.loc[own, "cluster"] = name + place.map(lambda n: "a" if n < 10 else "b" if n < 20 else str(n))
    estimate = found(frame)["corrected_difference", "atlas", "birch"]
    assert estimate.low is not None and estimate.high is not None and estimate.se
    sizes = np.array([10, 10] + 20 * [1])
    units = sizes.sum() ** 2 / (sizes**2).sum()
    means = {name: found(frame)["panel_mean", name, None].se for name in ("atlas", "birch")}
    v = [float(se or 0) ** 2 for se in means.values()]
    df = sum(v) ** 2 / sum(one**2 / (units - 1) for one in v)
    half = stats.t.ppf(1 - 0.05 / 6, df) * np.sqrt(sum(v))
    assert (estimate.high - estimate.low) / 2 == pytest.approx(half)


def test_every_row_counts_the_ratings_that_it_is_made_of() -> None:
    frame = study(25, items=60)
    unread = frame["item"].isin([f"atlas-{place}" for place in range(5)]) & (frame["rater"] == "judge")
    rows = found(frame[~unread])

    def counts(*key: Any) -> tuple[int, int, int, int]:
        row = rows[key]
        return row.n_items, row.n_raters, row.n_ratings, row.n_missing

    assert counts("panel_mean", "atlas", None) == (25, 2, 50, 0)
    assert counts("judge_mean", "atlas", None) == (55, 1, 55, 5)
    assert counts("corrected_mean", "atlas", None) == (20, 2, 40, 5)
    assert counts("corrected_difference", "atlas", "birch") == (20, 2, 80, 5)
    assert counts("corrected_difference", "birch", "cedar") == (25, 2, 100, 0)
    apart = found(study(12, items=12, parallel=False))["corrected_difference", "atlas", "birch"]
    assert (apart.n_items, apart.n_raters, apart.n_ratings, apart.n_clusters) == (24, 2, 48, 24)


def test_constant_scores_need_no_number_of_raters() -> None:
    frame = study(10, items=10)
    frame["score"] = 2.0
    rows = pilot.pilot_report(ratings_table(frame, scales=SCALE), pilot.Goals(), statistics=["raters_needed"])
    assert {(row.estimate.value, row.estimate.reason) for row in rows} == {(None, "the scores do not vary")}
