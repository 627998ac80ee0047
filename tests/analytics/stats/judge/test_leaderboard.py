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
from analytics.stats.judge.calibrators import folds_by_cluster
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


# --- calibrators of all languages, and means over task types ---------------------------------------------------------
def test_a_pooled_calibrator_is_drawn_by_n_over_n_plus_20() -> None:
    """The calibrator "offset" written out: each fold has its own shift, drawn towards that of all languages."""
    rng = np.random.default_rng(3)
    y, f, rest = rng.normal(2, 1, 24), rng.normal(1.5, 1, 24), rng.normal(1.6, 1, 60)
    s = ppi.LabelledSample.of(y, f, rest)
    cluster = np.array([0, 1, 2, 500, 501, 502])  # three scenarios in both languages
    others = ppi.OtherLabels(rng.normal(3, 1, 6), rng.normal(1, 1, 6), cluster, np.ones(6, dtype=np.intp))
    found = ppi.crossfit_mean(s, rng=np.random.default_rng(8), calibrator="offset", others=others).estimate
    fold = folds_by_cluster(s.cluster, folds=5, rng=np.random.default_rng(8))
    e = np.empty(24)
    for one in range(5):
        held = fold == one
        apart = ~np.isin(cluster, np.flatnonzero(held))
        n = int((~held).sum())
        own = float((y - f)[~held].mean())
        every = float(np.r_[(y - f)[~held], (others.y - others.f)[apart]].mean())
        shift = n / (n + 20) * own + 20 / (n + 20) * every
        lam = ppi.optimal_lambda(y[~held], f[~held] + shift, rest + shift)
        e[held] = y[held] - lam * (f[held] - rest.mean())
    assert found.value == pytest.approx(e.mean())
    alone = ppi.crossfit_mean(s, rng=np.random.default_rng(8), calibrator="offset").estimate
    assert alone.low is not None and found.low is not None and alone.n_items == found.n_items == 24


def test_only_cells_of_one_language_have_a_mean_calibrated_with_all() -> None:
    frame = study(30)
    other = frame.assign(language="fi", item="fi-" + frame["item"].astype(str))
    both = pd.concat([frame, other[other["cluster"] != "s2"]], ignore_index=True)
    rows = found(both)
    assert ("pooled_mean", "atlas", None) not in found(frame) and ("pooled_mean", "atlas", None) in rows
    estimate = rows["pooled_mean", "atlas", None]
    assert "calibrator of 2 languages" in (estimate.method or "") and estimate.n_items in (29, 30)
    assert ("pooled_mean", "atlas", None) not in found(both, by=("criterion",))


def test_labels_alone_count_every_task_type_once_as_welch_does() -> None:
    a, b = np.array([3.0, 4, 4, 5, 2, 3, 4, 4, 5, 5]), np.array([1.0, 2, 2, 3, 1, 2, 4, 1, 2, 1, 1, 2])
    y, stratum = np.r_[a, b], np.repeat(["chat", "poem"], [10, 12])
    none = np.empty(0)
    s = ppi.LabelledSample.of(y, np.zeros(22), none)
    estimate = ppi.macro_mean(s, stratum, none.astype(np.str_), rng=np.random.default_rng(0))
    welch = stats.ttest_ind(a, -b, equal_var=False).confidence_interval(0.95)  # of mean(a) + mean(b)
    assert estimate.value == pytest.approx((a.mean() + b.mean()) / 2)
    assert (estimate.low, estimate.high) == pytest.approx((welch.low / 2, welch.high / 2))
    assert "labels alone" in (estimate.method or "")
    few = ppi.macro_mean(s, stratum, np.array(["code"]), rng=np.random.default_rng(0))
    assert few.value is None and few.reason == "a task type has no label"


def test_a_judge_moves_a_macro_mean_within_its_task_type_only() -> None:
    """A judge that is right up to a shift of its own in each type gives the mean of all items of each type."""
    rng = np.random.default_rng(1)
    truth = {"chat": rng.normal(3, 1, 100), "poem": rng.normal(1, 1, 400)}
    lift = {"chat": 1.0, "poem": -0.5}
    n = {"chat": 25, "poem": 25}
    y = np.concatenate([truth[name][: n[name]] for name in truth])
    f = np.concatenate([truth[name][: n[name]] + lift[name] for name in truth])
    rest = np.concatenate([truth[name][n[name] :] + lift[name] for name in truth])
    strata = np.repeat(list(truth), [25, 25]), np.repeat(list(truth), [75, 375])
    estimate = ppi.macro_mean(ppi.LabelledSample.of(y, f, rest), *strata, rng=np.random.default_rng(2))
    alone = (truth["chat"][:25].mean() + truth["poem"][:25].mean()) / 2
    best = (truth["chat"].mean() + truth["poem"].mean()) / 2
    assert estimate.value is not None and abs(estimate.value - best) < abs(alone - best) + 0.02
    assert estimate.low is not None and estimate.high is not None and estimate.low < best < estimate.high
    labels = ppi.LabelledSample.of(y, np.zeros(50), np.empty(0))
    wide = ppi.macro_mean(labels, strata[0], np.empty(0, dtype=np.str_), rng=np.random.default_rng(2))
    assert wide.low is not None and wide.high is not None
    assert estimate.high - estimate.low < 0.8 * (wide.high - wide.low)


def test_task_types_are_an_attribute_of_the_items() -> None:
    frame = study(30)
    place = frame["item"].str.rpartition("-")[2].astype(int)
    typed = frame.assign(task_type=np.where(place % 3 == 0, "poem", "chat"))
    rows = found(typed, seed=4)
    for name in NAMES:
        estimate = rows["macro_mean", name, None]
        assert estimate.value is not None and estimate.n_items == 30 and "Bonferroni" in (estimate.method or "")
    assert ("macro_mean", "atlas", None) not in found(frame)


def test_a_task_type_without_labels_leaves_no_macro_mean_however_few_labels_there_are() -> None:
    for labelled in (12, 30):
        frame = study(labelled)
        place = frame["item"].str.rpartition("-")[2].astype(int)
        typed = frame.assign(task_type=np.where(place >= 50, "code", np.where(place % 3 == 0, "poem", "chat")))
        estimate = found(typed)["macro_mean", "atlas", None]
        assert (estimate.value, estimate.reason) == (None, ppi.TYPE_WITHOUT_LABEL)
        assert (estimate.n_items, estimate.n_clusters, estimate.n_raters) == (labelled, labelled, 2)
    no_judge = typed[~((typed["task_type"] != "chat") & (typed["rater"] == "judge"))]
    alone = found(no_judge[no_judge["task_type"] != "code"])["macro_mean", "atlas", None]
    people = typed[(typed["rater"] != "judge") & (typed["generator"] == "atlas")]
    by_type = people.groupby(["task_type", "item"])["score"].mean().groupby("task_type").mean()
    assert alone.value == pytest.approx(by_type.mean()) and "labels alone" in (alone.method or "")


def test_items_without_a_task_type_are_no_type_of_their_own() -> None:
    frame = study(30)
    place = frame["item"].str.rpartition("-")[2].astype(int)
    kinds = pd.Series(np.where(place % 3 == 0, "poem", np.where(place % 3 == 1, "chat", "")), index=frame.index)
    rows = found(frame.assign(task_type=kinds))
    few = found(frame[kinds != ""].assign(task_type=kinds[kinds != ""]))
    estimate = rows["macro_mean", "atlas", None]
    assert estimate.value == pytest.approx(few["macro_mean", "atlas", None].value)
    assert (estimate.n_items, estimate.n_missing) == (20, 10)
    assert ("macro_mean", "atlas", None) not in found(frame.assign(task_type=np.where(place % 2, "poem", "")))


def test_labels_of_other_languages_are_held_out_by_scenario_and_by_nothing_else() -> None:
    """Three generators with scenarios of their own: each has the mean that it has in a file without the others."""
    frame = study(110, 140, parallel=False)  # enough labels for a calibrator that is no line
    other = frame.assign(language="fi", item="fi-" + frame["item"], cluster="fi-" + frame["cluster"])
    both = pd.concat([frame, other], ignore_index=True)
    rows = found(both)
    for name in NAMES:
        alone = found(both[both["generator"] == name])
        assert rows["pooled_mean", name, None].value == alone["pooled_mean", name, None].value, name
