"""Sections of pages: what each of them asks, declared in one row, and its answer as tables, notes and charts.

A page is a list of `Section`. What most of them need to build their tables is here; what one page needs is beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from analytics.answer_pages import MOST_MATRICES, AnswerPage, ShownCell
from analytics.figure_words import translated_message
from analytics.figures import SMALL, Figure, HeatCell, clear_together
from analytics.grids import (
    NOTHING,
    CellRows,
    EstimateRow,
    Grid,
    GridCell,
    Key,
    grid,
    in_order,
    rows_by,
    shared_counts,
    text_of,
)
from analytics.questions.question import NumbersQuestion
from analytics.questions.question_names import column_name, statistic_name

BAR_WIDTH, BAR_HEIGHT = 120, 36
MOST_OFTEN = 4
"""Raters that a sentence above a table names."""
FEWEST_SHARED_CELLS = 4
"""Cells of a table from which on the counts that all of them have are said once."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page: its words, its statistics, rows and columns, and `build`, which makes what is shown.

    `empty`: why there may be no table. `one_criterion`: it is about one criterion at a time. `needs_order`: labels
    without an order have none of its figures. `is_catalogue`: its page leaves it to All statistics. `terms`: words of
    the glossary that are explained below its heading. Without statistics the page's question says which.
    """

    name: str
    title: Any
    about: Any
    empty: Any = ""
    _: KW_ONLY
    build: Callable[..., Any]
    statistics: tuple[str, ...] = ()
    rows: str = "criterion"
    columns: str = ""
    one_criterion: bool = False
    needs_order: bool = False
    is_catalogue: bool = False
    terms: tuple[str, ...] = ()


@dataclass(slots=True)
class ShownSection:
    """A section as its template reads it: its tables, and the answer behind them.

    `subject`: what the page's question is about beside its filters, such as the one coefficient of Agreement.
    `answers`: sentences above the tables that say what they come to.
    """

    part: Section
    page: AnswerPage
    question: NumbersQuestion
    subject: str
    grids: list[Grid] = field(default_factory=list)
    charts: list[Any] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.part.build(self)
        if groups := {self.page.criteria[key]: name for key, name in self.page.groups.items()}:
            self.grids = [
                replace(each, rows=tuple(replace(row, group=groups.get(row.name, "")) for row in each.rows))
                if each.corner == column_name("criterion")
                else each
                for each in self.grids
            ]
        self.grids = [with_shared_counts_once(each) for each in self.grids]
        figures = [Figure.of(row) for row in self.rows]
        if self.grids and any(figure.has_interval and figure.is_small for figure in figures):
            self.notes.append(_("Intervals from fewer than %d items or clusters are approximate.") % SMALL)
            if any(figure.is_approximate for figure in figures):
                self.notes.append(_("“Approximate” beside a figure: by its method, too; see how it was computed."))
        if not self.grids:
            undefined = [row["reason"] for row in self.rows if row["value"] is None and row.get("reason")]
            self.reasons = sorted(map(translated_message, set(undefined)))[:3]

    @property
    def rows(self) -> list[EstimateRow]:
        found: list[EstimateRow] = self.page.content["estimates"]
        return found

    def of(self, asked: str) -> list[EstimateRow]:
        """The rows of one statistic that have a value."""
        return [row for row in self.rows if row["asked"] == asked and row["value"] is not None]

    @property
    def criterion(self) -> str:
        """The key of the criterion that the question is about; nothing where it names none."""
        return dict(self.question.where).get("criterion", "")

    def axis(self, column: str, rows: Sequence[EstimateRow] | None = None) -> list[str]:
        """The values of rows or columns in their order; one empty value where there is no such column."""
        return in_order(self.page.values(column), self.rows if rows is None else rows, column) if column else [""]

    def name(self, column: str, value: str) -> str:
        if column == "hundred" and value:
            return f"{value}–{int(value) + 99}"
        return self.page.name(column, value) if column else ""

    def table(
        self, rows: Sequence[EstimateRow], build: Callable[[CellRows], GridCell], *, down: Key, across: Key, **more: Any
    ) -> None:
        """Add a table (`grids.grid`), unless it would have no row; keys that are columns name its rows and columns."""
        if isinstance(down, str):
            own = {"corner": column_name(down), "row_name": lambda value: self.name(down, value)}
            more = {**own, **more}
        if isinstance(across, str):
            more = {"column_name": lambda value: self.name(across, value), **more}
        made = grid(rows, build, down=down, across=across, **more)
        if made.rows:
            self.grids.append(made)

    def cells_of(self, build: Callable[[CellRows], GridCell], *, title: str = "") -> None:
        """A table by the question's rows and columns, unless no cell has anything to show.

        Where the criterion is neither, a table for each of the first `MOST_MATRICES` criteria, under its name.
        """
        down, across = self.question.rows, self.question.columns
        together = {"": self.rows}
        if "criterion" not in self.question.dimensions:
            found = rows_by(self.rows, "criterion")
            together = {key: found[key] for key in self.axis("criterion")}
        before = len(self.grids)
        for key, rows in list(together.items())[:MOST_MATRICES]:
            name = title or (self.name("criterion", key) if key else "")
            axes = {"downs": self.axis(down, rows), "acrosses": self.axis(across, rows)}
            self.table(rows, build, down=down, across=across, title=name, **axes)
        if not any(cell.number for each in self.grids[before:] for row in each.rows for cell in row.cells):
            del self.grids[before:]
        elif (more := len(together) - MOST_MATRICES) > 0:
            self.notes.append(
                ngettext("%d more table is in the files.", "%d more tables are in the files.", more) % more
            )

    def note(self, *sentences: str) -> None:
        """Sentences below the tables, where there are any."""
        if self.grids:
            self.notes += sentences


def with_shared_counts_once(table: Grid) -> Grid:
    """The table with the counts that all of its cells share, and why all are few, said once below it."""
    cells = [cell for row in table.rows for cell in row.cells if cell.number]
    if len(cells) < FEWEST_SHARED_CELLS or not all(cell.lines for cell in cells):
        return table
    shared = shared_counts([cell.lines[-1] for cell in cells])
    few = {cell.few for cell in cells}
    if not shared:
        return table

    def shorter(cell: GridCell) -> GridCell:
        if not cell.number:
            return cell
        return replace(cell, lines=cell.lines[:-1], few=cell.few if len(few) > 1 else "", is_few=bool(cell.few))

    rows = tuple(replace(row, cells=tuple(map(shorter, row.cells))) for row in table.rows)
    texts = "; ".join(filter(None, (shared, *(few if len(few) == 1 else ()))))
    return replace(table, rows=rows, notes=(*table.notes, _("Every figure: %s.") % texts))


# --- cells -----------------------------------------------------------------------------------------------------------
def figure_cell(
    page: AnswerPage,
    row: EstimateRow,
    *lines: str,
    inked: bool = True,
    counts: str = "",
    is_difference: bool = False,
) -> GridCell:
    """A figure with its interval, further lines and counts; the reason where it is undefined."""
    figure = Figure.of(row)
    shown = ShownCell("", "", figure)
    counts = counts or shown.counts
    if not figure.is_defined:
        return GridCell(lines=(_("undefined"), figure.reason, counts), url=page.items_address(row))
    spans = figure.interval or figure.no_interval
    interval = f"{spans} {figure.mark}".strip()
    ink = HeatCell("", None, figure).bin
    return GridCell(
        number=figure.number,
        lines=tuple(line for line in (interval, *lines, counts) if line),
        few=shown.few,
        url=page.items_address(row),
        title=figure.made,
        bin=ink if inked and not shown.few else None,
        is_clear=is_difference and figure.is_clear,
    )


def number_line(label: str, row: EstimateRow | None) -> tuple[str, ...]:
    """A further line of a cell: a label with %s, its figure and its interval."""
    if row is None or row["value"] is None:
        return ()
    figure = Figure.of(row)
    return (label % f"{figure.number} {figure.interval} {figure.mark}".strip(),)


def p_in_words(p: float) -> str:
    """p 0.012, or p < 0.001."""
    return "p < 0.001" if p < 0.001 else f"p {p:.3f}"


# --- tables that several sections have -------------------------------------------------------------------------------
def plain_cells(shown: ShownSection) -> None:
    """Cells of the first statistic with the others below it."""
    first, *others = shown.question.statistics

    def build(found: CellRows) -> GridCell:
        row = found.get(first)
        if row is None:
            return NOTHING
        beside = [
            f"{statistic_name(name)}: {Figure.of(found[name]).number}"
            for name in others
            if name in found and found[name]["value"] is not None
        ]
        return figure_cell(shown.page, row, *beside)

    shown.cells_of(build)


def severities_in_words(shown: ShownSection, statistic: str) -> None:
    """Above the tables: how many differences of raters are clear, and who is lower or higher."""
    if shown.grids:
        shown.answers += severity_sentences(shown.of(statistic), shown.question.confidence)


def severity_sentences(rows: Iterable[EstimateRow], confidence: float) -> list[str]:
    """How many severities leave out 0, how many would by chance, and who is lower or higher after Holm's correction."""
    figures = [(row, figure) for row in rows if (figure := Figure.of(row)).has_interval]
    if len(figures) < FEWEST_SHARED_CELLS:
        return []
    by_chance = round(len(figures) * (1 - confidence), 6)
    counts = {"clear": sum(figure.excludes_zero for _row, figure in figures), "all": len(figures)}
    sentence = _(
        "The interval leaves out 0 in %(clear)d of %(all)d cells; without any difference it would in about %(chance)d."
    )
    if by_chance < 1:
        sentence = _(
            "The interval leaves out 0 in %(clear)d of %(all)d cells; without any difference it would in fewer than 1 "
            "on average."
        )
    found = [sentence % {**counts, "chance": round(by_chance)}]
    certain = clear_together([figure for _row, figure in figures], confidence=confidence)
    lower, higher = Counter[str](), Counter[str]()
    for (row, figure), is_certain in zip(figures, certain, strict=True):
        name = text_of(row, "annotator")
        if is_certain:
            side = higher if (figure.value or 0) > 0 else lower
            side[_("%s (judge)") % name if row.get("judge") else name] += 1
    if not lower and not higher:
        return [
            *found,
            _("No difference is clear after a correction for %d comparisons (Holm, approximate).") % len(figures),
        ]
    corrected = {"n": len(figures)}
    if lower:
        words = _("Lower also after a correction for %(n)d comparisons (Holm, approximate): %(names)s.")
        found.append(words % {**corrected, "names": _most_often(lower)})
    if higher:
        words = _("Higher also after a correction for %(n)d comparisons (Holm, approximate): %(names)s.")
        found.append(words % {**corrected, "names": _most_often(higher)})
    return found


def _most_often(counted: Counter[str]) -> str:
    """The names with the largest counts, and how many more there are: those with equal counts are named or none is."""
    most = counted.most_common()
    left = [n for _name, n in most[MOST_OFTEN:]]
    named = [f"{name} ({n})" for name, n in most[:MOST_OFTEN] if not left or n > left[0]]
    more = len(most) - len(named)
    if not named:
        return ngettext("%d rater", "%d raters", more) % more
    return ", ".join(named) + (f" + {more}" if more else "")


def cells_by_variant(
    shown: ShownSection, statistic: str, first: str, further: Sequence[tuple[str, str]], title: str = ""
) -> None:
    """Cells of one variant of a statistic with others below it."""
    place = (shown.question.rows, shown.question.columns)
    found: dict[tuple[str, ...], dict[str, EstimateRow]] = {}
    for row in shown.of(statistic):
        found.setdefault(tuple(text_of(row, name) for name in place), {})[row["variant"] or ""] = row
    before = len(shown.grids)

    def build(given: CellRows) -> GridCell:
        row = given.get(statistic)
        if row is None:
            return NOTHING
        cells: Mapping[str, EstimateRow] = found.get(tuple(text_of(row, name) for name in place), {})
        if first not in cells:
            return figure_cell(shown.page, row) if row["value"] is None else NOTHING
        lines = [line for variant, label in further for line in number_line(label, cells.get(variant))]
        return figure_cell(shown.page, cells[first], *lines, inked=False)

    shown.cells_of(build, title=title)
    if not shown.question.columns:
        shown.grids[before:] = [replace(each, columns=(statistic_name(statistic),)) for each in shown.grids[before:]]
