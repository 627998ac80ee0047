"""The ratings table: what is accepted, what is refused and where, and how cells are coded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from analytics.stats.core.scales import Level, Scale, scale_of
from analytics.stats.core.tables import Cell, TableError, cells, coded, coded_from_matrix
from analytics.stats.core.validation import ratings_table


def frame(*rows: Any, columns: Any = ("item", "rater", "score")) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(columns), dtype=object)


def problems(table: Any, **options: Any) -> list[tuple[int | None, str]]:
    with pytest.raises(TableError) as refused:
        ratings_table(table, **options)
    return [(problem.row, problem.message) for problem in refused.value.problems]


def only_cell(table: Any) -> Cell:
    (cell,) = cells(table, by=())
    return cell


@pytest.mark.parametrize(
    ("scores", "level", "points"),
    [
        (["2.0", "1", "3"], "ordinal", (1.0, 2.0, 3.0)),
        (["-1", "0", "1"], "ordinal", (-1.0, 0.0, 1.0)),
        (["0.5", "1", "3"], "interval", (0.5, 1.0, 3.0)),
        (["No", "Yes", "Unsure"], "nominal", ("No", "Unsure", "Yes")),
        ([True, False, True], "nominal", ("False", "True")),
        ([2, 1, 3], "ordinal", (1.0, 2.0, 3.0)),
    ],
)
def test_default_scales(scores: list[Any], level: Level, points: tuple[Any, ...]) -> None:
    table = ratings_table(frame(*(("a", str(n), score) for n, score in enumerate(scores))))
    assert table.scales[""] == Scale(points, level, declared=False)


def test_categories_come_from_the_whole_file_not_from_one_cell() -> None:
    columns = ("item", "rater", "score", "language")
    table = ratings_table(frame(("a", "1", 1, "et"), ("b", "1", 4, "fi"), columns=columns))
    assert [cell.scale.points for cell in cells(table, by=("language",))] == [(1.0, 2.0, 3.0, 4.0)] * 2


def test_missing_and_not_applicable_are_neither_scores_nor_each_other() -> None:
    table = ratings_table(frame(("a", "1", ""), ("a", "2", "N/A"), ("a", "3", "2"), ("a", "4", None)))
    assert table.frame["missing"].tolist() == [True, False, False, True]
    assert table.frame["applicable"].tolist() == [True, False, True, True]
    assert coded(only_cell(table)).n_missing == 2


def test_the_applicable_column_speaks_too() -> None:
    columns = ("item", "rater", "score", "applicable")
    table = ratings_table(frame(("a", "1", "", "false"), ("a", "2", "1", "true"), columns=columns))
    assert table.frame["applicable"].tolist() == [False, True]
    assert problems(frame(("a", "1", "", "perhaps"), columns=columns))[0][0] == 0


def test_a_stray_word_among_numbers_is_refused_not_taken_for_a_label() -> None:
    (problem,) = problems(frame(("a", "1", "3"), ("a", "2", "good"), ("b", "1", "2")))
    assert problem[0] == 1
    assert "'good' is not a number" in problem[1]
    table = ratings_table(frame(("a", "1", "3"), ("a", "2", "good"), ("b", "1", "2")), level="nominal")
    assert table.scales[""].points == ("2", "3", "good")


def test_every_bad_row_is_named() -> None:
    table = frame(("a", "1", "3"), ("", "2", "3"), ("b", "", "9"), ("c", "1", "x"))
    found = problems(table, scales={"*": scale_of([1, 2, 3])})
    assert [row for row, _ in found] == [1, 2, 2, 3]
    assert "not on the scale 1, 2, 3" in found[2][1]


def test_missing_columns_are_named() -> None:
    assert problems(frame(("a",), columns=("item",))) == [
        (None, "the column 'rater' is missing"),
        (None, "the column 'score' is missing"),
    ]


def test_a_rating_given_twice() -> None:
    same = ratings_table(frame(("a", "1", "3"), ("a", "1", "3.0"), ("b", "1", "2")))
    assert len(same.frame) == 2
    assert "same score: 1;" in same.notes[0]
    assert problems(frame(("a", "1", "3"), ("a", "1", "2")))[0] == (
        1,
        "rater '1' already rated item 'a' with another score",
    )


def test_repeats_of_a_rater_are_no_contradiction_and_the_first_counts() -> None:
    columns = ("item", "rater", "score", "repeat")
    table = ratings_table(frame(("a", "1", "3", "2"), ("a", "1", "2", "1"), ("a", "2", "3", ""), columns=columns))
    assert coded(only_cell(table)).values().tolist() == [[2.0, 3.0]]


def test_one_item_name_in_two_languages_is_two_items_and_one_cluster() -> None:
    columns = ("item", "rater", "score", "language")
    table = ratings_table(frame(("a", "1", "1", "et"), ("a", "1", "2", "fi"), ("b", "1", "2", "et"), columns=columns))
    cell = coded(only_cell(table))
    assert cell.n_items == 3
    assert cell.cluster.tolist() == [0, 0, 1]


def test_judges_beyond_the_scale_are_counted_and_their_fractions_kept() -> None:
    columns = ("item", "rater", "score", "rater_kind")
    rows = [("a", "h", "1", "human"), ("b", "h", "3", ""), ("a", "j", "-1", "judge"), ("b", "j", "1.33", "judge")]
    table = ratings_table(frame(*rows, columns=columns), scales={"*": scale_of([1, 2, 3])})
    as_given = table.frame.sort_values("row")
    assert as_given["out_of_range"].tolist() == [False, False, True, False]
    assert as_given["code"].tolist() == [0, 2, -1, 0]
    assert as_given["score"].tolist()[3] == 1.33
    assert table.annotators().frame["rater"].unique().tolist() == ["h"]
    assert len(table.notes) == 2


def test_a_judges_fraction_counts_for_the_nearest_point_half_up() -> None:
    columns = ("item", "rater", "score", "rater_kind")
    rows = [(str(score), "j", str(score), "judge") for score in (0.49, 0.5, 1.5, 2.999)]
    table = ratings_table(frame(*rows, columns=columns), scales={"*": scale_of([0, 1, 3])})
    assert table.frame["code"].tolist() == [0, 1, 1, 2]


def test_a_judge_may_be_named_without_a_column() -> None:
    table = ratings_table(frame(("a", "h", "1"), ("a", "j", "2.5")), judges=["j"], scales={"*": scale_of([1, 2])})
    assert table.frame["out_of_range"].tolist() == [False, True]


def test_a_judges_fractions_make_no_points_where_people_give_whole_numbers() -> None:
    table = ratings_table(frame(("a", "h", "1"), ("b", "h", "3"), ("a", "j", "1.5"), ("b", "j", "2")), judges=["j"])
    assert table.scales[""] == Scale((1.0, 2.0, 3.0), "ordinal", declared=False)


def test_an_interval_scale_is_its_ends() -> None:
    scales = {"*": scale_of([0, 100], "interval")}
    table = ratings_table(frame(("a", "1", "37"), ("a", "2", "62.5")), scales=scales)
    assert table.scales[""].points == (0.0, 37.0, 62.5, 100.0)
    assert problems(frame(("a", "1", "101")), scales=scales)[0][0] == 0


def test_ordered_words_may_be_a_scale() -> None:
    scales = {"*": scale_of(["low", "mid", "high"], "ordinal")}
    table = ratings_table(frame(("a", "1", "high"), ("a", "2", "low")), scales=scales)
    assert table.frame["code"].tolist() == [2, 0]
    assert problems(frame(("a", "1", "highest")), scales=scales)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [("rater_kind", "robot", "is not one of"), ("inclusion_prob", "0", "(0, 1]"), ("repeat", "1.5", "whole number")],
)
def test_bad_side_columns(column: str, value: str, message: str) -> None:
    found = problems(frame(("a", "1", "2", value), columns=("item", "rater", "score", column)))
    assert found[0][0] == 0
    assert message in found[0][1]


def test_one_item_in_two_clusters_is_refused() -> None:
    columns = ("item", "rater", "score", "cluster")
    assert problems(frame(("a", "1", "2", "x"), ("a", "2", "2", "y"), columns=columns))[0][0] == 1


def test_pooling_merges_undeclared_scales_and_keeps_items_apart() -> None:
    columns = ("item", "rater", "score", "criterion")
    table = ratings_table(frame(("a", "1", "1", "x"), ("a", "1", "3", "y"), ("b", "1", "2", "y"), columns=columns))
    (cell,) = cells(table, by=("criterion",), pool=True)
    assert cell.scale.points == (1.0, 2.0, 3.0)
    assert coded(cell).values().ravel().tolist() == [1.0, 3.0, 2.0]


def test_criteria_are_never_pooled_unasked() -> None:
    columns = ("item", "rater", "score", "criterion")
    table = ratings_table(frame(("a", "1", "1", "x"), ("a", "1", "3", "y"), columns=columns))
    assert [cell.key for cell in cells(table, by=())] == [{"criterion": "x"}, {"criterion": "y"}]


def test_a_rater_left_out_takes_items_of_their_own_along() -> None:
    cell = coded_from_matrix([[1, 2], [np.nan, 1]], scale=scale_of([1, 2]))
    assert cell.without_rater(1).values().tolist() == [[1.0]]


def test_an_array_of_text_scores() -> None:
    cell = coded_from_matrix([["No", "Yes"], [None, "No"]], scale=scale_of(["No", "Yes"]))
    assert cell.counts().tolist() == [[1, 1], [1, 0]]
    with pytest.raises(ValueError, match="Perhaps"):
        coded_from_matrix([["Perhaps"]], scale=scale_of(["No", "Yes"]))


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
def test_cells_of_a_column_with_gaps(nothing: Any) -> None:
    columns = ("item", "rater", "score", "task")
    table = ratings_table(frame(("a", "1", "1", "poem"), ("b", "1", "2", nothing), columns=columns))
    assert [cell.key["task"] for cell in cells(table, by=("task",))] == ["poem", None]
