"""Tables of estimates: cells by row and column, from rows that were written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.template.loader import render_to_string

from analytics.grids import NOTHING, CellRows, Grid, GridCell, GridRow, grid, in_order, rows_by


def row(asked: str, value: float, **about: Any) -> Mapping[str, Any]:
    return {"asked": asked, "value": value, **about}


def built(found: CellRows) -> GridCell:
    return GridCell(" ".join(f"{name}={row['value']:g}" for name, row in found.items()))


def test_a_cell_has_all_rows_of_its_keys_and_a_gap_is_nothing() -> None:
    rows = [
        row("mae", 1, criterion="قيمة 'a'", language="et"),
        row("bias", 2, criterion="قيمة 'a'", language="et"),
        row("mae", 3, criterion="b c", language=None),
    ]
    made = grid(
        rows, built, corner="Criterion", down="criterion", across="language", column_name=lambda tag: f"<{tag}>"
    )
    assert made.columns == ("<et>", "<>")
    assert [each.name for each in made.rows] == ["قيمة 'a'", "b c"]
    assert [[cell.number for cell in each.cells] for each in made.rows] == [["mae=1 bias=2", ""], ["", "mae=3"]]
    assert made.rows[0].cells[1] is NOTHING


def test_the_order_that_is_given_holds_and_leaves_out_other_rows() -> None:
    rows = [row("mae", n, criterion=key, language="et") for n, key in enumerate("abc")]
    made = grid(rows, built, corner="", down="criterion", across="language", downs=["c", "a", "z"], below=str.upper)
    assert [(each.name, each.cells[0].number, each.below) for each in made.rows] == [
        ("c", "mae=2", "C"),
        ("a", "mae=0", "A"),
        ("z", "", "Z"),
    ]


def test_pairs_are_mirrored_and_have_nothing_on_the_diagonal() -> None:
    rows = [row("kappa", 0.5, raters=["b", "a"]), row("kappa", 0.7, raters=["a", "c"])]
    made = grid(
        rows, built, corner="", down=lambda r: r["raters"][0], across=lambda r: r["raters"][1], is_mirrored=True
    )
    assert made.columns == ("a", "b", "c")
    cells = {(each.name, name): cell for each in made.rows for name, cell in zip(made.columns, each.cells, strict=True)}
    assert cells["a", "b"] == cells["b", "a"] == GridCell("kappa=0.5")
    assert cells["b", "c"] is cells["a", "a"] is NOTHING


def test_values_are_in_their_known_order_then_numbers_then_text() -> None:
    rows = [{"point": value} for value in ("z", "10", "9", None, "known")]
    assert in_order(["known"], rows, "point") == ["known", "9", "10", "", "z"]
    assert list(rows_by(rows, "point")) == ["z", "10", "9", "", "known"]


def test_figures_of_a_long_table_stand_alone_first_and_of_very_many_rows_those_with_a_clear_difference() -> None:
    def table(n_rows: int, clear: frozenset[int] = frozenset(), *, with_words: bool = False) -> Grid:
        rows = tuple(
            GridRow(f"r {row}", (GridCell("+0.10", ("[0.02, 0.18]",), is_clear=row in clear), GridCell("0.2", ("n",))))
            for row in range(n_rows)
        )
        words = (GridCell(lines=("no clear change",)),) if with_words else ()
        columns = ("Grammar", "Fluency", *(("In words",) if with_words else ()))
        return Grid("Rater", columns, tuple(GridRow(row.name, (*row.cells, *words)) for row in rows))

    assert not table(20).is_long and table(21).is_long
    assert not table(60, with_words=True).is_long, "a column of words says nothing without its lines"
    assert len(table(50).brief) == 50
    assert [row.name for row in table(60, frozenset({3, 58})).brief] == [*(f"r {n}" for n in range(49)), "r 58"]
    assert len(table(60, frozenset({3, 58})).brief) == len(table(60).brief) == 50
    wide = tuple(GridRow(name, tuple(GridCell("0.1", ("n",)) for _column in range(101))) for name in "ab")
    assert [row.name for row in Grid("Rater", tuple(map(str, range(101))), wide).brief] == ["a"]


def brief(cells: tuple[GridCell, ...]) -> str:
    """What the page shows of a long table, figures alone."""
    rows = tuple(GridRow(f"r {place}", (cell,)) for place, cell in enumerate(cells))
    return render_to_string("analytics/_grid_brief.html", {"grid": Grid("Rater", ("Fluency",), rows)})


def test_a_clear_figure_is_marked_whether_or_not_it_is_coloured() -> None:
    page = brief((GridCell("+0.50", is_clear=True, bin=4), GridCell("0.40", bin=3)))
    assert page.count(" data-clear") == 1
    assert '<td class="num" data-bin="4" data-clear>+0.50' in page


def test_rows_that_were_chosen_for_a_marked_figure_are_said_to_be() -> None:
    page = brief((*(GridCell("+0.10") for _row in range(119)), GridCell("+0.90", is_clear=True)))
    assert "100 of 120 rows, first those with a marked figure; the others are below." in page
    assert "100 of 120 rows; the others are below." in brief(tuple(GridCell("+0.10") for _row in range(120)))


def test_a_figure_alone_shows_that_it_is_preliminary_or_has_a_warning() -> None:
    few = GridCell("0.91", few="fewer than 30 items", title="Bootstrap <b>")
    page = brief((few, GridCell("0.91", is_few=True), GridCell("0.1", warning="95% of the scores are “4”"), NOTHING))
    assert page.count('<td class="num few"') == 2 and 'title="Bootstrap &lt;b&gt;"' in page
    assert '0.1 <abbr title="95% of the scores are “4”">!</abbr>' in page
    assert "Grey: preliminary" in page and "“!”: the full table has a warning about this figure." in page
    plain = brief((GridCell("0.91"),))
    assert "Grey" not in plain and "warning" not in plain
