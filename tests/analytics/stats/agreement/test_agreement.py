"""The report over a table: which rows there are, the edge rulings of METHODS 1, and that a cell stands for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.stats.agreement.rater_agreement import agreement_report, measure
from analytics.stats.core.estimates import CellEstimate, Estimate
from analytics.stats.core.scales import Scale, scale_of
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table

Figures = dict[tuple[str, str | None, tuple[str, ...] | None], Estimate]

CHANCE_CORRECTED = ("cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "conger_kappa", "icc")


def table_of(
    matrix: Any, *, scale: Scale | None = None, criterion: str = "c", language: str | None = None, **columns: Any
) -> RatingsTable:
    rows = [
        {"item": f"i{i}", "rater": f"r{r}", "criterion": criterion, "language": language, "score": score, **columns}
        for i, row in enumerate(matrix)
        for r, score in enumerate(row)
        if score is not None
    ]
    frame = pd.DataFrame(rows, columns=["item", "rater", "criterion", "language", "score", *columns], dtype=object)
    return ratings_table(frame, scales={"*": scale} if scale else None)


def by_name(estimates: list[CellEstimate]) -> Figures:
    return {(row.estimate.statistic, row.estimate.variant, row.raters): row.estimate for row in estimates}


def figures(matrix: Any, scale: Scale | None = None, **options: Any) -> Figures:
    return by_name(agreement_report(table_of(matrix, scale=scale), bootstrap=0, **options))


ONE_TO_THREE = scale_of([1, 2, 3])


def test_every_figure_of_a_small_panel_is_there() -> None:
    found = figures([[1, 2, 1], [2, 2, 2], [3, 3, 1], [1, 1, 1]], ONE_TO_THREE)
    assert ("cohen_kappa", "quadratic", ("r0", "r2")) in found
    for statistic, variants in {
        "percent_agreement": [None],
        "percent_agreement_pooled": [None],
        "percent_agreement_exact": [None],
        "percent_agreement_adjacent": [None],
        "cohen_kappa": ["unweighted", "linear", "quadratic"],
        "fleiss_kappa": ["unequal", "complete", "paper_compat"],
        "krippendorff_alpha": [None],
        "gwet_ac": ["identity", "linear", "quadratic", "ordinal"],
        "brennan_prediger": ["identity", "linear", "quadratic", "ordinal"],
        "conger_kappa": ["identity", "linear", "quadratic", "ordinal"],
        "icc": ["1,1", "1,k", "2,1", "2,k", "3,1", "3,k"],
        "verdict_confidence": ["observed", "chance", "corrected"],
    }.items():
        for variant in variants:
            assert found[statistic, variant, None].is_defined


def test_one_category_only() -> None:
    undeclared = figures([[1, 1], [1, 1], [1, 1]])
    declared = figures([[1, 1], [1, 1], [1, 1]], ONE_TO_THREE)
    for found in (undeclared, declared):
        assert all(e.value is None and e.reason for (name, *_), e in found.items() if name in CHANCE_CORRECTED)
        assert found["percent_agreement", None, None].value == 1.0
    for statistic in ("gwet_ac", "brennan_prediger"):
        assert declared[statistic, "identity", None].value == 1.0
        assert undeclared[statistic, "identity", None].value is None


def test_one_category_in_one_cell_of_a_file_with_two() -> None:
    rows = [("a", "1", "x", 1), ("a", "2", "x", 1), ("b", "1", "y", 1), ("b", "2", "y", 2)]
    table = ratings_table(pd.DataFrame(rows, columns=["item", "rater", "generator", "score"]))
    found = agreement_report(table, by=("generator",), statistics=["gwet_ac"], bootstrap=0)
    assert [e.estimate.value for e in found if e.cell["generator"] == "x"] == [None] * 4


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([[1], [2], [3]], "only one rater"),
        ([[1, None], [None, 2]], "no item has two ratings"),
        ([["", ""], ["", ""]], "nothing is rated"),
    ],
)
def test_nothing_to_compare(matrix: Any, reason: str) -> None:
    found = figures(matrix, ONE_TO_THREE)
    assert {e.reason for (name, *_), e in found.items() if name == "krippendorff_alpha"} == {reason}
    assert all(e.value is None and e.reason for e in found.values())


def test_all_missing_is_counted() -> None:
    assert figures([["", ""], ["", ""]], ONE_TO_THREE)["percent_agreement", None, None].n_missing == 4


def test_one_item() -> None:
    unanimous, split = figures([[2, 2]], ONE_TO_THREE), figures([[1, 2]], ONE_TO_THREE)
    assert unanimous["krippendorff_alpha", None, None].value is None
    assert split["krippendorff_alpha", None, None].value == pytest.approx(0.0)
    ac1 = split["gwet_ac", "identity", None]
    assert ac1.is_defined
    assert ac1.se is None
    assert ac1.interval_reason
    assert split["icc", "2,1", None].value is None


def test_an_empty_table_has_no_cells() -> None:
    assert agreement_report(table_of([])) == []


def test_a_scale_of_one_point_is_no_scale() -> None:
    found = figures([[1, 1], [1, 1]], scale_of([1]))
    assert found["gwet_ac", "identity", None].reason == "the scale has a single point"
    assert found["verdict_confidence", "corrected", None].value is None


def test_slots_are_no_persons() -> None:
    found = figures([[1, 2], [2, 2], [3, 1]], ONE_TO_THREE, positional=True)
    assert "anonymous" in found["cohen_kappa", "unweighted", None].reason
    assert "anonymous" in found["conger_kappa", "identity", None].reason
    assert found["icc", "1,1", None].note is None
    assert "anonymous" in found["icc", "2,1", None].note
    assert found["fleiss_kappa", "unequal", None].is_defined


def test_words_get_no_order() -> None:
    found = figures([["No", "Yes"], ["No", "No"], ["Yes", "Yes"]])
    assert found["krippendorff_alpha", None, None].level == "nominal"
    assert not any(name in ("icc", "percent_agreement_adjacent") for name, *_ in found)
    assert ("gwet_ac", "linear", None) not in found


@pytest.mark.parametrize("shift", [-2, 0, 40])
def test_where_a_scale_starts_does_not_matter(shift: float) -> None:
    matrix = [[0, 1, 0], [1, 1, 2], [2, 2, 2], [0, 0, 1]]
    moved = [[score + shift for score in row] for row in matrix]
    here, there = figures(matrix), figures(moved)
    assert {key: e.value for key, e in there.items()} == pytest.approx({key: e.value for key, e in here.items()})


def test_a_point_nobody_used_counts_for_chance() -> None:
    matrix = [[1, 1], [2, 2], [1, 2]]
    short, long = figures(matrix, scale_of([1, 2])), figures(matrix, ONE_TO_THREE)
    assert short["krippendorff_alpha", None, None].value == long["krippendorff_alpha", None, None].value
    assert short["brennan_prediger", "identity", None].value == pytest.approx(1 / 3)
    assert long["brennan_prediger", "identity", None].value == pytest.approx(1 / 2)


def test_complete_fleiss_states_its_items() -> None:
    found = figures([[1, 2, 1], [2, 2, None], [3, 3, 3]], ONE_TO_THREE)
    assert found["fleiss_kappa", "complete", None].n_items == 2
    assert found["fleiss_kappa", "unequal", None].n_items == 3


def test_judges_stay_out_unless_named() -> None:
    rows = [("a", "h", "1", "annotator"), ("a", "g", "1", "annotator"), ("a", "j", "2", "judge"), ("b", "h", "2", ""),
            ("b", "g", "2", ""), ("b", "j", "1", "judge")]  # fmt: skip
    table = ratings_table(pd.DataFrame(rows, columns=["item", "rater", "score", "rater_kind"]))
    alone = by_name(agreement_report(table, statistics=["percent_agreement"], bootstrap=0))
    named = by_name(agreement_report(table, statistics=["percent_agreement"], raters=["h", "j"], bootstrap=0))
    assert alone["percent_agreement", None, None].value == 1.0
    assert named["percent_agreement", None, None].value == 0.0


def test_agreement_on_not_applicable_stands_apart() -> None:
    found = figures([["N/A", "N/A"], ["N/A", 1], [1, 1], [2, 2]], ONE_TO_THREE)
    assert found["applicability_agreement", None, None].value == pytest.approx(3 / 4)
    assert found["percent_agreement", None, None].value == 1.0
    assert found["percent_agreement", None, None].n_items == 2
    assert not any(name.startswith("applicability") for name, *_ in figures([[1, 1], [2, 1]]))


def test_leaving_out_the_one_who_disagrees() -> None:
    matrix = [[1, 1, 3], [2, 2, 1], [3, 3, 2], [1, 1, 2]]
    rows = agreement_report(table_of(matrix), statistics=["percent_agreement"], bootstrap=0, leave_one_out=True)
    without = {row.annotator: row.estimate.value for row in rows if row.annotator}
    assert without == {"r0": 0.0, "r1": 0.0, "r2": 1.0}


def test_pairs_that_share_nothing_and_their_mean() -> None:
    found = figures([[1, 1, None], [2, 2, None], [1, None, 1], [2, None, 1]], statistics=["cohen_kappa"])
    assert found["cohen_kappa", "unweighted", ("r0", "r1")].value == 1.0
    assert found["cohen_kappa", "unweighted", ("r1", "r2")].reason == "the two raters share no item"
    mean = found["cohen_kappa", "unweighted", None]
    assert mean.value == pytest.approx(0.5)
    assert "2 of 3 pairs" in mean.note


def test_continuous_scores_have_alpha_and_icc_but_no_categories() -> None:
    rng = np.random.default_rng(0)
    found = figures((rng.normal(size=(600, 1)) + rng.normal(size=(600, 3))).tolist(), statistics=None)
    assert found["krippendorff_alpha", None, None].value == pytest.approx(found["icc", "1,1", None].value, abs=0.01)
    for key in (("gwet_ac", "linear", None), ("fleiss_kappa", "unequal", None), ("cohen_kappa", "unweighted", None)):
        assert "on categories need a scale" in found[key].reason


def test_a_cell_does_not_depend_on_its_neighbours_or_on_what_else_is_asked() -> None:
    rng = np.random.default_rng(0)
    rows = [
        (f"{language}{i}", f"r{r}", language, int(rng.integers(1, 4)))
        for language in ("et", "fi")
        for i in range(30)
        for r in range(3)
    ]
    frame = pd.DataFrame(rows, columns=["item", "rater", "language", "score"])
    both = agreement_report(ratings_table(frame), by=("language",), bootstrap=200)
    one = agreement_report(
        ratings_table(frame[frame["language"] == "fi"]),
        by=("language",),
        bootstrap=200,
        statistics=["krippendorff_alpha"],
    )
    (alone,) = one
    (among,) = [row for row in both if row.cell["language"] == "fi" and row.estimate.statistic == "krippendorff_alpha"]
    assert alone == among


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_bootstrap_intervals_hold_the_value_and_name_themselves(interval: str) -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 4, 80)
    matrix = np.where(rng.random((80, 3)) < 0.7, truth[:, None], rng.integers(1, 4, (80, 3))).tolist()
    found = by_name(
        agreement_report(
            table_of(matrix), bootstrap=500, interval=interval, statistics=["krippendorff_alpha", "gwet_ac"]
        )
    )
    for estimate in found.values():
        assert estimate.low < estimate.value < estimate.high
        assert (estimate.method or "").startswith("bootstrap")
        assert estimate.seed == 0


def test_measure_takes_an_array() -> None:
    found = measure([[1, 2], [2, 2], [3, 3]], "gwet_ac", scale=ONE_TO_THREE, variant="linear", bootstrap=0)
    assert (found.statistic, found.variant) == ("gwet_ac", "linear")
    with pytest.raises(ValueError, match="rng"):
        measure([[1, 2]], "gwet_ac", scale=ONE_TO_THREE)
    with pytest.raises(ValueError, match="nominal scale"):
        measure([["a", "b"]], "icc", scale=scale_of(["a", "b"]), bootstrap=0)


def test_verdict_confidence_names_its_band() -> None:
    found = figures([[1, 2, 1], [2, 2, 2], [3, 3, 1]], ONE_TO_THREE)
    assert found["verdict_confidence", "observed", None].note == "band 0.75 to 0.85"


def test_what_was_asked_for_by_name_is_shown_even_where_it_means_nothing() -> None:
    found = figures([["No", "Yes"], ["No", "No"]], statistics=["icc", "percent_agreement_adjacent"])
    assert {e.reason for e in found.values()} == {"a nominal scale has no order and no distances"}
    assert {name for name, *_ in found} == {"icc", "percent_agreement_adjacent"}


def test_the_table_may_say_that_raters_are_unknown() -> None:
    table = table_of([[1, 2], [2, 2], [3, 1]], rater_identified="false")
    found = by_name(agreement_report(table, bootstrap=0))
    assert "anonymous" in (found["cohen_kappa", "unweighted", None].reason or "")


def test_a_scale_nobody_used_at_all() -> None:
    found = figures([["", ""], ["", ""]])
    assert {estimate.reason for estimate in found.values()} == {"nothing is rated"}


def test_clusters_reach_every_kind_of_interval() -> None:
    rng = np.random.default_rng(1)
    truth = np.repeat(rng.integers(1, 4, 40), 5)
    noise = rng.integers(1, 4, (200, 3))
    matrix = np.where(rng.random((200, 3)) < 0.6, truth[:, None], noise)
    rows = [(f"i{i}", f"r{r}", f"c{i // 5}", int(matrix[i, r])) for i in range(200) for r in range(3)]
    table = ratings_table(pd.DataFrame(rows, columns=["item", "rater", "cluster", "score"]))
    alone = ratings_table(pd.DataFrame(rows, columns=["item", "rater", "cluster", "score"]).drop(columns="cluster"))
    wanted = ["krippendorff_alpha", "gwet_ac", "cohen_kappa", "conger_kappa", "percent_agreement"]
    for resamples in (0, 300):
        clustered = by_name(agreement_report(table, statistics=wanted, bootstrap=resamples))
        single = by_name(agreement_report(alone, statistics=wanted, bootstrap=resamples))
        assert {key: e.value for key, e in clustered.items()} == {key: e.value for key, e in single.items()}
        assert all(e.low is not None and e.high is not None for e in clustered.values())
        assert any(e.low != single[key].low for key, e in clustered.items())


def test_the_default_interval_is_what_covers() -> None:
    rng = np.random.default_rng(4)
    matrix = rng.integers(1, 4, (60, 3)).tolist()
    wanted = ["krippendorff_alpha", "gwet_ac"]
    by_method = {
        method: by_name(agreement_report(table_of(matrix), bootstrap=300, interval=method, statistics=wanted))
        for method in ("default", "percentile", "bca")
    }
    assert {e.method for e in by_method["default"].values()} == {"jackknife t of Fisher's z"}
    assert {e.method for e in by_method["percentile"].values()} == {"bootstrap percentile"}


def test_ten_large_clusters_widen_the_interval_and_clusters_of_one_item_change_nothing() -> None:
    rng = np.random.default_rng(5)
    scale, dialogue = scale_of(range(4)), np.repeat(np.arange(10), 10)
    quality = (rng.normal(size=10)[dialogue] + rng.normal(size=100))[:, None]
    mood = 0.6 * rng.normal(size=(10, 3))[dialogue]
    scores = np.clip(np.round(1.5 + quality + mood + 0.5 * rng.normal(size=(100, 3))), 0, 3)
    for statistic in ("krippendorff_alpha", "gwet_ac", "cohen_kappa", "conger_kappa", "icc", "percent_agreement"):
        alone, one, ten = (
            measure(scores, statistic, scale=scale, clusters=clusters, rng=rng)
            for clusters in (None, rng.permutation(100), dialogue)
        )
        assert (one.low, one.high) == pytest.approx((alone.low, alone.high), abs=1e-9)
        assert ten.value == alone.value
        assert ten.high - ten.low > 1.3 * (alone.high - alone.low), statistic


def test_a_few_scores_off_the_commonest_point_are_said_to_leave_kappas_approximate() -> None:
    scores = np.zeros((100, 3))
    scores[:12, 0] = scores[:9, 1:] = 1
    flag = scale_of([0, 1], "nominal")
    for statistic in ("krippendorff_alpha", "fleiss_kappa", "cohen_kappa", "conger_kappa"):
        found = measure(scores, statistic, scale=flag, rng=np.random.default_rng(0))
        assert "approximate: 12 items off the commonest point" in found.method
    assert "approximate" not in measure(scores, "percent_agreement", scale=flag, rng=np.random.default_rng(0)).method


SCORES = st.sampled_from(
    [["1", "2", "3"], ["0.5", "2"], ["No", "Yes"], ["4"], ["1", "", "N/A"], ["0", "50", "100", ""]]
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    pool=SCORES,
    shape=st.tuples(st.integers(0, 7), st.integers(1, 4)),
    resamples=st.sampled_from([0, 20]),
    clustered=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_whatever_the_table_a_figure_is_finite_or_says_why(
    pool: list[str], shape: tuple[int, int], resamples: int, clustered: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        (f"i{i}", f"r{r}", str(rng.choice(pool)), f"c{i // 2 if clustered else i}")
        for i in range(shape[0])
        for r in range(shape[1])
        if rng.random() < 0.8
    ]
    table = ratings_table(pd.DataFrame(rows, columns=["item", "rater", "score", "cluster"], dtype=object))
    for row in agreement_report(table, bootstrap=resamples, leave_one_out=True):
        found = row.estimate
        assert (found.value is None) == (found.reason is not None)
        numbers = [number for number in (found.value, found.low, found.high, found.se) if number is not None]
        assert np.isfinite(numbers).all()
        assert found.value is None or (found.low is None) == (found.interval_reason is not None)
