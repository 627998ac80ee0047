"""Mean certainty and its rank correlation with agreement: by hand, and against SciPy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analytics.stats.core.scales import scale_of
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge.certainty import certainty_report

SCALES = {"flu": scale_of([0, 1, 2, 3], "ordinal"), "topic": scale_of([0, 1, 2, 3], "nominal")}
BY = ("criterion",)


def rated(rows: list[tuple[str, str, str, str, float, float | None]]) -> RatingsTable:
    names = ["item", "cluster", "rater", "criterion", "score", "certainty"]
    return ratings_table(pd.DataFrame(rows, columns=names), scales=SCALES)


def hand_rated(criterion: str) -> RatingsTable:
    """Five items; “Õie” is the surer the nearer she is, “هالة” always half sure and once not asked."""
    own = zip((0.0, 1.0, 2.0, 3.0, 1.0), (90, 80, 70, 20, 10), strict=True)
    others = zip((0.0, 1.0, 2.0, 1.0, 3.0), (50, 50, 50, 50, None), strict=True)
    rows = [(f"i{n}", f"i{n}", "Õie", criterion, score, sure) for n, (score, sure) in enumerate(own)]
    return rated(rows + [(f"i{n}", f"i{n}", "هالة", criterion, score, sure) for n, (score, sure) in enumerate(others)])


def test_by_hand() -> None:
    """Certainties 90, 80, 70, 20, 10 have ranks 5 to 1; distances 0, 0, 0, 2, 2 make nearness ranks 4, 4, 4, 1.5, 1.5.

    Around their mean of 3: sum xy = 7.5, sum xx = 10, sum yy = 7.5, so that rho = 7.5 / sqrt 75. Means of items: 70,
    65, 60, 35, and 10, where only one was asked.
    """
    mean, *of_raters = certainty_report(hand_rated("flu"), by=BY, bootstrap=0)
    assert mean.estimate.statistic == "mean_certainty" and mean.annotator is None
    assert mean.estimate.value == pytest.approx((70 + 65 + 60 + 35 + 10) / 5)
    assert (mean.estimate.n_items, mean.estimate.n_raters, mean.estimate.n_ratings) == (5, 2, 9)
    assert mean.estimate.n_missing == 1 and 0 <= mean.estimate.low < mean.estimate.high <= 100  # type: ignore[operator]
    found = {row.annotator: row.estimate for row in of_raters}
    assert found["Õie"].value == pytest.approx(7.5 / 75**0.5)
    assert (found["Õie"].n_items, found["Õie"].n_ratings, found["Õie"].level) == (5, 5, "ordinal")
    assert found["هالة"].value is None and found["هالة"].reason == "one side does not vary"
    assert found["هالة"].n_items == 4


def test_nominal_scores_are_near_where_they_are_equal() -> None:
    rows = certainty_report(hand_rated("topic"), by=BY, statistics=["certainty_rho"], bootstrap=0)
    assert {row.estimate.statistic for row in rows} == {"certainty_rho"}
    assert rows[0].estimate.value == pytest.approx(7.5 / 75**0.5)  # equal or not has the same ranks here


def test_against_scipy_with_any_number_of_others() -> None:
    rng = np.random.default_rng(5)
    rows = [
        (f"i{item:02}", f"c{item // 3}", f"r{rater}", "flu", float(rng.integers(0, 4)), float(rng.integers(0, 101)))
        for item in range(60)
        for rater in range(4)
        if rng.random() < 0.8
    ]
    table = rated([*rows])
    found = {row.annotator: row.estimate for row in certainty_report(table, by=BY, statistics=["certainty_rho"])}
    wide = table.frame.pivot(index="item", columns="rater", values="score")
    sure = table.frame.pivot(index="item", columns="rater", values="certainty")
    for name in wide:
        near = -wide.drop(columns=name).sub(wide[name], axis=0).abs().mean(axis=1)
        both = pd.DataFrame({"sure": sure[name], "near": near}).dropna()
        assert found[name].value == pytest.approx(stats.spearmanr(both["sure"], both["near"]).statistic)
        assert found[name].n_items == len(both) and found[name].n_clusters == len(
            {int(item[1:]) // 3 for item in both.index}
        )
        assert found[name].low < found[name].value < found[name].high  # type: ignore[operator]
    renamed = RatingsTable(table.frame.assign(rater=table.frame["rater"].str.replace("r", "z")), table.scales)
    again = {row.annotator: row.estimate.value for row in certainty_report(renamed, by=BY, bootstrap=0)}
    assert [again[name.replace("r", "z")] for name in found] == [row.value for row in found.values()]


def test_annotations_count_once_where_criteria_are_pooled() -> None:
    both = pd.concat([hand_rated("flu").frame, hand_rated("flu").frame.assign(criterion="sense")])
    scales = {"flu": SCALES["flu"], "sense": SCALES["flu"]}
    table = ratings_table(both[["item", "cluster", "rater", "criterion", "score", "certainty"]], scales=scales)
    mean, own, _other = certainty_report(table, by=(), pool=True, bootstrap=0)
    assert (mean.estimate.n_ratings, mean.estimate.value) == (9, pytest.approx(48.0))
    assert own.estimate.value == pytest.approx(7.5 / 75**0.5)


def test_without_a_certainty_there_are_no_rows() -> None:
    table = hand_rated("flu")
    assert certainty_report(RatingsTable(table.frame.assign(certainty=None), table.scales), by=BY) == []
    assert certainty_report(RatingsTable(table.frame.drop(columns="certainty"), table.scales), by=BY) == []


def test_of_two_annotations_of_an_item_the_certainties_are_averaged() -> None:
    """“Õie” rated each item in two duties, 90 and 50 sure: pooled, she is 70 sure of it; the other once, 20."""
    rows = [("i1", "i1", "Õie", "flu", 1.0, 90.0), ("i1", "i1", "Õie", "tone", 2.0, 50.0),
            ("i1", "i1", "هالة", "flu", 1.0, 20.0), ("i1", "i1", "هالة", "tone", 0.0, 20.0),
            ("i2", "i2", "Õie", "flu", 3.0, 40.0), ("i2", "i2", "Õie", "tone", 3.0, 40.0),
            ("i2", "i2", "هالة", "flu", 3.0, None), ("i2", "i2", "هالة", "tone", 3.0, None)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["item", "cluster", "rater", "criterion", "score", "certainty"])
    table = ratings_table(frame, scales={"*": scale_of([0, 1, 2, 3], "ordinal")})
    mean, *of_raters = certainty_report(table, by=(), pool=True, bootstrap=0)
    assert mean.estimate.value == pytest.approx(((70 + 20) / 2 + 40) / 2)
    assert (mean.estimate.n_ratings, mean.estimate.n_missing) == (3, 1)
    of = {row.annotator: row.estimate for row in of_raters}
    assert of["Õie"].n_items == 2 and of["Õie"].value == pytest.approx(-1), "70 and 40 sure, distances 1 and 0"
    apart = certainty_report(table, by=BY, statistics=["mean_certainty"])
    assert [row.estimate.value for row in apart] == [pytest.approx(v) for v in ((55 + 40) / 2, (35 + 40) / 2)]
