"""Counts that all cells of a table share are said once below it."""

from __future__ import annotations

import pytest

from analytics.grids import Grid, GridCell, GridRow, shared_counts
from analytics.views.sections import with_shared_counts_once


@pytest.mark.parametrize(
    ("texts", "shared"),
    [
        (["30 items, 3 raters", "30 items, 3 raters"], "30 items, 3 raters"),
        (["10 items, 29 ratings", "10 items, 28 ratings"], "10 items, 28–29 ratings"),
        (["1,200 items", "1,250 items"], "1,200–1,250 items"),
        (["3 items", "30 items"], ""),  # more than a tenth
        (["mean 0.51", "mean 0.52"], ""),  # figures are no counts
        (["10 items", "10 dialogues"], ""),
        (["−10 points", "−11 points"], ""),
        (["[50, 55]", "[52, 57]"], ""),
        (["undefined", "undefined"], "undefined"),
    ],
)
def test_counts_are_shared_where_they_differ_by_a_tenth_at_most(texts: list[str], shared: str) -> None:
    assert shared_counts(texts) == shared


def test_cells_stay_marked_as_few_where_it_is_said_below() -> None:
    cells = tuple(GridCell("0.5", ("[0.4, 0.6]", "10 items"), few="fewer than 30 items") for _number in range(4))
    table = with_shared_counts_once(Grid("Criterion", ("a", "b", "c", "d"), (GridRow("Fluency", cells),)))
    assert all(cell.lines == ("[0.4, 0.6]",) and cell.is_few and not cell.few for cell in table.rows[0].cells)
    assert table.notes == ("Every figure: 10 items; fewer than 30 items.",)
    short = Grid("Criterion", ("a", "b"), (GridRow("Fluency", cells[:2]),))
    assert with_shared_counts_once(short) == short
