"""The sections of the Agreement page as its templates read them: tables of cells from the answer to each question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics import agreement
from analytics.agreement import AgreementPart
from analytics.answer_pages import (
    MOST_MATRICES,
    AnswerPage,
    ShownCell,
    in_order,
    plain_value,
)
from analytics.figure_words import FIGURE_SENTENCES
from analytics.figures import MINUS, SMALL, Figure, HeatCell
from analytics.questions.question import NumbersQuestion
from analytics.questions.question_names import column_name, statistic_name
from analytics.score_views import CLASS_NAMES
from annotation.models import Item

MOST_IN_MATRIX = 12
"""Criteria up to which their correlations are a matrix; more of them are a list of the strongest."""
MOST_LISTED = 60
TITLES = {
    "matrix": gettext_lazy("Agreement"),
    "annotators": gettext_lazy("Each annotator left out"),
    "pairs": gettext_lazy("Pairs of annotators"),
    "classes": gettext_lazy("Classes of agreement"),
    "raters": gettext_lazy("Reliability by raters per item"),
    "panels": gettext_lazy("Panel against panel"),
    "criteria": gettext_lazy("Correlation between criteria"),
    "applicability": gettext_lazy("Agreement on “not applicable”"),
    "rationales": gettext_lazy("Rationales, annotators and judges"),
    "time": gettext_lazy("Agreement over time"),
    "items": gettext_lazy("Items on which annotators differ most"),
}
BAR_WIDTH, BAR_HEIGHT = 120, 36


# --- what the templates read -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell of a table: its number, lines below it, and why it is muted; `bin` inks it by its size, 1 to 7; `links`:
    texts below the number, each with its items' address."""

    number: str = ""
    lines: tuple[str, ...] = ()
    few: str = ""
    warning: str = ""
    url: str = ""
    title: str = ""
    bin: int | None = None
    bars: tuple[tuple[float, float, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GridRow:
    """One row; `curve`: points of a small chart, as SVG writes them; `is_diagonal`: beside the line of equal scores."""

    name: str
    cells: tuple[GridCell, ...]
    url: str = ""
    below: str = ""
    curve: str = ""
    basis: str = ""
    is_diagonal: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of cells; `notes` are sentences below it. `is_small`: many cells without lines.

    `title`: what the whole table is about, where a section has several. `hidden`: what a pair's list of items asks for.
    """

    corner: str
    columns: tuple[str, ...]
    rows: tuple[GridRow, ...]
    notes: tuple[str, ...] = ()
    is_small: bool = False
    title: str = ""
    hidden: tuple[tuple[str, str], ...] = ()

    @property
    def groups(self) -> list[tuple[str, list[GridRow]]]:
        """The rows by the group of their criterion, in the order of their first rows; all under "" without groups."""
        found: dict[str, list[GridRow]] = {}
        for row in self.rows:
            found.setdefault(row.group, []).append(row)
        return list(found.items())

    @property
    def methods(self) -> list[tuple[str, str, str, str]]:
        """Row, column, number and method of every cell that names its method."""
        return [
            (row.name, column, cell.number, cell.title)
            for row in self.rows
            for column, cell in zip(self.columns, row.cells, strict=True)
            if cell.title
        ]


NOTHING = GridCell()


@dataclass(slots=True)
class AgreementSection:
    """A section as its template reads it: its tables, and the answer behind them."""

    part: AgreementPart
    page: AnswerPage
    question: NumbersQuestion
    coefficient: str
    grids: list[Grid] = field(default_factory=list)
    charts: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.build()
        if groups := {self.page.criteria[key]: name for key, name in self.page.groups.items()}:
            self.grids = [replace(grid, rows=_in_groups(grid, groups)) for grid in self.grids]
        figures = [Figure.of(row) for row in self.rows]
        if self.grids and any(figure.has_interval and figure.is_small for figure in figures):
            self.notes.append(_("Intervals from fewer than %d items or clusters are approximate.") % SMALL)
        if not self.grids:
            undefined = [row["reason"] for row in self.rows if row["value"] is None and row.get("reason")]
            self.reasons = sorted(map(FIGURE_SENTENCES.translated, set(undefined)))[:3]

    def build(self) -> None:
        """Fill the tables, charts and notes of the part; another page's sections override it."""
        _BUILDERS[self.part.name](self)

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = self.page.content["estimates"]
        return found

    def of(self, asked: str) -> list[Mapping[str, Any]]:
        """The rows of one statistic that have a value."""
        return [row for row in self.rows if row["asked"] == asked and row["value"] is not None]

    def by_criterion(self) -> dict[str, list[Mapping[str, Any]]]:
        """The rows of each criterion in the rubric's order; all under "" where criteria are rows or columns."""
        if "criterion" in self.question.dimensions:
            return {"": self.rows}
        found: dict[str, list[Mapping[str, Any]]] = {key: [] for key in self.axis("criterion")}
        for row in self.rows:
            found[plain_value(row.get("criterion"))].append(row)
        return found

    def axis(self, column: str, rows: Sequence[Mapping[str, Any]] | None = None) -> list[str]:
        """The values of rows or columns in their order; one empty value where there is no such column."""
        return in_order(self.page.values(column), self.rows if rows is None else rows, column) if column else [""]

    def name(self, column: str, value: str) -> str:
        if column == "hundred" and value:
            return f"{value}–{int(value) + 99}"
        return self.page.name(column, value) if column else ""

    def cells_of(self, build: Callable[[dict[str, Mapping[str, Any]]], GridCell]) -> None:
        """A table by the question's rows and columns, unless no cell has anything to show.

        Where the criterion is neither, a table for each of the first `MOST_MATRICES` criteria, under its name.
        """
        together = self.by_criterion()
        grids = [self._grid(key, rows, build) for key, rows in list(together.items())[:MOST_MATRICES]]
        if any(cell.number for grid in grids for row in grid.rows for cell in row.cells):
            self.grids += grids
            if more := len(together) - len(grids):
                self.notes.append(
                    ngettext("%d more table is in the files.", "%d more tables are in the files.", more) % more
                )

    def _grid(
        self,
        criterion: str,
        rows: Sequence[Mapping[str, Any]],
        build: Callable[[dict[str, Mapping[str, Any]]], GridCell],
    ) -> Grid:
        question = self.question
        found: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
        for row in rows:
            cell = plain_value(row.get(question.rows)), plain_value(row.get(question.columns))
            found.setdefault(cell, {})[row["asked"]] = row
        columns = self.axis(question.columns, rows)
        shown = tuple(
            GridRow(
                self.name(question.rows, down),
                tuple(build(found[down, across]) if (down, across) in found else NOTHING for across in columns),
            )
            for down in self.axis(question.rows, rows)
        )
        names = tuple(self.name(question.columns, column) for column in columns)
        title = self.name("criterion", criterion) if criterion else ""
        return Grid(column_name(question.rows), names, shown, title=title)


def _in_groups(grid: Grid, groups: Mapping[str, str]) -> tuple[GridRow, ...]:
    """The rows of a table by criterion with the group of each; other tables as they are."""
    if grid.corner != column_name("criterion"):
        return grid.rows
    return tuple(replace(row, group=groups.get(row.name, "")) for row in grid.rows)


def figure_cell(
    page: AnswerPage, row: Mapping[str, Any], *lines: str, inked: bool = True, counts: str = ""
) -> GridCell:
    """A figure with its interval, further lines and counts; the reason where it is undefined."""
    figure = Figure.of(row)
    shown = ShownCell("", "", figure)
    counts = counts or shown.counts
    if not figure.is_defined:
        return GridCell(lines=(_("undefined"), figure.reason, counts), url=page.items_address(row))
    spans = figure.interval or figure.no_interval
    interval = f"{spans} {_('approximate')}" if figure.is_approximate else spans
    ink = HeatCell("", None, figure).bin
    return GridCell(
        number=figure.number,
        lines=tuple(line for line in (interval, *lines, counts) if line),
        few=shown.few,
        url=page.items_address(row),
        title=figure.made,
        bin=ink if inked and not shown.few else None,
    )


def _means_cell(page: AnswerPage, row: Mapping[str, Any], *, of_panels: bool = False) -> GridCell:
    """A figure over means (or modes of panels) of items: its counts are items, raters and clusters, not ratings."""
    figure, n = Figure.of(row), row["n_items"]
    items = ngettext("%d item", "%d items", n) if of_panels else ngettext("mean of %d item", "means of %d items", n)
    parts = [items % n, ngettext("%d rater", "%d raters", figure.n_raters) % figure.n_raters]
    if (clusters := figure.n_clusters) is not None:
        parts.append(ngettext("%d cluster", "%d clusters", clusters) % clusters)
    return figure_cell(page, row, counts=", ".join(parts), inked=not of_panels)


def _signed(value: float) -> str:
    text = f"{value:+.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", MINUS)


# --- sections --------------------------------------------------------------------------------------------------------
def _matrix(shown: AgreementSection) -> None:
    coefficient = shown.coefficient

    def build(found: dict[str, Mapping[str, Any]]) -> GridCell:
        row = found.get(coefficient)
        if row is None:
            return NOTHING
        percent, ac, commonest = (found.get(name) for name in agreement.BESIDE)
        beside = [
            label % Figure.of(other).number
            for label, other in ((_("%s equal"), percent), (_("AC %s"), ac))
            if other and other["value"] is not None and other["asked"] != coefficient
        ]
        cell = figure_cell(shown.page, row, " · ".join(beside))
        shares = (row["value"], percent and percent["value"], commonest and commonest["value"])
        if coefficient != "percent_agreement" and agreement.is_dominated(*shares):
            share = Figure.of(commonest or {}).number
            warning = _("%(share)s of the scores are “%(score)s”: read percent and AC")
            return replace(cell, warning=warning % {"share": share, "score": (commonest or {}).get("variant")})
        return cell

    shown.cells_of(build)


def plain_cells(shown: AgreementSection) -> None:
    """Cells of the first statistic with the others below it."""
    first, *others = shown.question.statistics

    def build(found: dict[str, Mapping[str, Any]]) -> GridCell:
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


def _annotators(shown: AgreementSection) -> None:
    without_name, change_name = shown.question.statistics
    changes = {row["annotator"]: row for row in shown.of(change_name)}
    rows = []
    values = [row for row in shown.of(without_name) if row["annotator"] in changes]
    for row in sorted(values, key=lambda row: -changes[row["annotator"]]["value"]):
        change = Figure.of(changes[row["annotator"]])
        clear = change.excludes_zero and not change.is_small
        better, worse = _("The others agree better without"), _("The others agree less without")
        few_clusters = (change.n_clusters or change.n_items) < change.n_items
        too_few = _("too few clusters to say") if few_clusters else _("too few items to say")
        unclear = too_few if change.excludes_zero else _("no clear change")
        words = (better if (change.value or 0) > 0 else worse) if clear else unclear
        few, url = ShownCell("", "", change).few, shown.page.items_address(row)
        cells = (
            GridCell(Figure.of(row).number, (Figure.of(row).basis,), url=url),
            GridCell(change.number, (change.interval or change.no_interval,), few, url=url, title=change.made),
            GridCell(lines=(words,)),
        )
        rows.append(GridRow(row["annotator"], cells))
    if rows:
        first = values[0]
        with_all = first["value"] - changes[first["annotator"]]["value"]
        columns = (statistic_name(without_name), _("Change"), _("In words"))
        note = _("With all annotators: %s.") % _signed(with_all).lstrip("+")
        shown.grids.append(Grid(_("Annotator"), columns, tuple(rows), (note,)))
        if shown.coefficient not in without_name:
            shown.notes.append(_("Annotators are left out of Krippendorff’s α, Fleiss’ κ, Gwet’s AC and percent only."))


def _pairs(shown: AgreementSection) -> None:
    pairs = {tuple(row["raters"]): row for row in shown.rows if row["asked"] == "pairs.cohen_kappa" and row["raters"]}
    shares = {tuple(row["raters"]): row for row in shown.of("pairs.percent_agreement") if row["raters"]}
    means = {row["annotator"]: row for row in shown.of("pairs.cohen_kappa") if row["annotator"]}
    shares_of = {row["annotator"]: row for row in shown.of("pairs.percent_agreement") if row["annotator"]}
    names = sorted(means, key=lambda name: -means[name]["value"])
    if not names:
        return
    _mean_pairs(shown, names, means, shares_of, pairs)
    if not pairs:
        shown.notes.append(
            _("Pairs of more than %d annotators are left out. The means are over all of them.") % agreement.LARGE_PANEL
        )
        shown.notes.append(_("To list the pairs, add pairs=all to the address of this page."))
        return
    shown.notes.append(_("The means with the others and the shares of equal scores are shown without intervals."))
    in_name_order, small = sorted(names), len(names) > agreement.LARGE_PANEL
    both = {**pairs, **{pair[::-1]: row for pair, row in pairs.items()}}
    equal = {**shares, **{pair[::-1]: row for pair, row in shares.items()}}
    cells = {pair: _pair_cell(shown.page, row, equal.get(pair), small=small) for pair, row in both.items()}
    rows = tuple(
        GridRow(down, tuple(cells.get((down, across), NOTHING) for across in in_name_order)) for down in in_name_order
    )
    counts = [row["n_items"] for row in pairs.values()]
    low, high = min(counts), max(counts)
    shared_by = _("%(n)d common items in every pair.") if low == high else _("%(low)d to %(n)d common items in a pair.")
    note = _("Not inked: fewer than %d common items or clusters.") % SMALL
    notes = (shared_by % {"low": low, "n": high}, *(() if small else (note,)))
    if not small and 2 * len(pairs) < len(list(combinations(names, 2))):
        rows = tuple(GridRow(" ~ ".join(pair), (cells[pair],)) for pair in sorted(pairs))
        shown.grids.append(Grid(_("Two annotators"), (_("Cohen’s κ"),), rows, notes))
        return
    asked = parse_qsl(shown.page.items_address(next(iter(pairs.values()))).partition("?")[2])
    hidden = tuple(pair for pair in asked if pair[0] != "rater")
    shown.grids.append(Grid(_("Annotator"), tuple(in_name_order), rows, notes, is_small=small, hidden=hidden))


def _mean_pairs(
    shown: AgreementSection,
    names: Sequence[str],
    means: Mapping[str, Mapping[str, Any]],
    shares: Mapping[str, Mapping[str, Any]],
    pairs: Mapping[tuple[str, ...], Mapping[str, Any]],
) -> None:
    """Of every annotator the mean κ and percent with the others."""
    rows = []
    for name in names:
        row, share = means[name], shares.get(name)
        figure = Figure.of(row)
        others = ngettext("%d other annotator", "%d other annotators", row["n_raters"] - 1) % (row["n_raters"] - 1)
        items = ngettext("%d item", "%d items", row["n_items"]) % row["n_items"]
        cells = (
            GridCell(figure.number, (f"{others}, {items}",), url=shown.page.items_address(row)),
            *([GridCell(Figure.of(share).number)] if share else []),
        )
        rows.append(GridRow(name, cells))
    columns = (_("Mean κ with the others"), *([_("Mean percent agreement")] if shares else []))
    if len(names) > 2 or not pairs:
        shown.grids.append(Grid(_("Annotator"), columns, tuple(rows)))


def _pair_cell(page: AnswerPage, row: Mapping[str, Any], share: Mapping[str, Any] | None, *, small: bool) -> GridCell:
    figure = Figure.of(row)
    ink = HeatCell("", None, figure).bin
    if small:
        number = f"{row['value']:.2f}".replace("-", MINUS).replace("0.", ".") if figure.is_defined else "–"
        return GridCell(number, bin=ink)
    url, equal = page.items_address(row), [_("%s equal") % Figure.of(share).number] if share else []
    line = " · ".join([*equal, ngettext("%d item", "%d items", figure.n_items) % figure.n_items])
    if not figure.is_defined:
        return GridCell("–", (line,), url=url, title=figure.reason)
    spans = (figure.interval,) if figure.interval else ()
    return GridCell(figure.number, (*spans, line), url=url, title=figure.made, bin=None if figure.is_small else ink)


def _classes(shown: AgreementSection) -> None:
    found: dict[tuple[str, str], dict[str, Figure]] = {}
    urls: dict[tuple[str, str], dict[str, str]] = {}
    for row in shown.of("class_share"):
        cell = plain_value(row.get("criterion")), plain_value(row.get("language"))
        found.setdefault(cell, {})[row["agreement_class"]] = Figure.of(row)
        urls.setdefault(cell, {})[row["agreement_class"]] = shown.page.items_address(row)
    columns, rows = shown.axis("language"), []
    for down in shown.axis("criterion"):
        cells = tuple(_class_cell(found.get((down, across), {}), urls.get((down, across), {})) for across in columns)
        rows.append(GridRow(shown.name("criterion", down), cells))
    if found:
        names = tuple(shown.name("language", column) for column in columns)
        note = _("The bar shows, from its start: %s.") % ", ".join(map(str, CLASS_NAMES.values()))
        shown.notes.append(_("The shares are shown without intervals."))
        shown.grids.append(Grid(column_name("criterion"), names, tuple(rows), (note,)))


def _class_cell(figures: Mapping[str, Figure], urls: Mapping[str, str]) -> GridCell:
    if not figures:
        return GridCell(lines=(_("no item has two scores"),))
    start, bars = 0.0, []
    for name, figure in figures.items():
        width = round(BAR_WIDTH * (figure.value or 0.0), 1)
        bars.append((round(start, 1), width, name))
        start += width
    first = next(iter(figures.values()))
    names = ((name, f"{CLASS_NAMES[name]} {figure.number}", figure.value) for name, figure in figures.items())
    links = tuple((text, urls[name] if share else "") for name, text, share in names)
    full, cell = figures.get("full", first).number, ShownCell("", "", first)
    return GridCell(full, (cell.counts,), cell.few, url=urls.get("full", ""), bars=tuple(bars), links=links)


def _raters(shown: AgreementSection) -> None:
    curves: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in shown.of("panel_reliability"):
        curves.setdefault(plain_value(row["criterion"]), {})[int(row["variant"])] = row
    if not curves:
        return
    most = max(max(curve) for curve in curves.values())
    rows = []
    for key in [key for key in shown.axis("criterion") if key in curves]:
        curve = curves[key]
        cells = []
        for raters in range(1, most + 1):
            figure = Figure.of(curve[raters])
            ink = None if figure.is_small else HeatCell("", None, figure).bin
            cells.append(GridCell(figure.number, bin=ink))
        step = BAR_WIDTH / max(most - 1, 1)
        points = " ".join(
            f"{step * (raters - 1):.1f},{BAR_HEIGHT - 2 - (BAR_HEIGHT - 4) * max(row['value'], 0.0):.1f}"
            for raters, row in sorted(curve.items())
        )
        enough = next((raters for raters, row in sorted(curve.items()) if row["value"] >= agreement.ENOUGH), None)
        words = (
            ngettext("%d rater reaches .80", "%d raters reach .80", enough) % enough
            if enough
            else _("more than %d raters for .80") % most
        )
        first = ShownCell("", "", Figure.of(curve[1]))
        basis = " · ".join(text for text in (first.counts, first.few) if text)
        about = {"below": words, "curve": points, "basis": basis, "url": shown.page.items_address(curve[1])}
        rows.append(GridRow(shown.name("criterion", key), tuple(cells), **about))
    columns = tuple(ngettext("%d rater", "%d raters", n) % n for n in range(1, most + 1))
    shown.grids.append(Grid(column_name("criterion"), columns, tuple(rows)))
    reasons = {
        FIGURE_SENTENCES.translated(row["reason"]) for row in shown.rows if row["value"] is None and row.get("reason")
    }
    shown.notes += [_("Other criteria have no curve: %s.") % reason for reason in sorted(reasons)]


def _panels(shown: AgreementSection) -> None:
    found: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for row in shown.rows:
        found.setdefault((plain_value(row["criterion"]), row["variant"] or ""), {})[row["asked"]] = row
    if not any(row["value"] is not None for row in shown.rows):
        return
    names, rows = shown.question.statistics, []
    for (criterion, pair), figures in sorted(found.items(), key=lambda each: (each[0][1], each[0][0])):
        cells = tuple(
            _means_cell(shown.page, figures[name], of_panels=True) if name in figures else NOTHING for name in names
        )
        first, _sign, second = pair.partition(" ~ ")
        below = _("%(second)s compared with %(first)s") % {"first": first, "second": second}
        rows.append(GridRow(shown.name("criterion", criterion), cells, below=below))
    columns = tuple(statistic_name(name) for name in names)
    shown.grids.append(Grid(column_name("criterion"), columns, tuple(rows)))
    shown.notes.append(
        _("The difference is the mean of the panel named first less that of the other, in points of the scale.")
    )


def _criteria(shown: AgreementSection) -> None:
    pairs = {tuple(str(row["variant"]).split(" ~ ")): row for row in shown.of("criteria_spearman")}
    keys = [key for key in shown.page.criteria if any(key in pair for pair in pairs)]
    if not pairs:
        return
    name = shown.page.criteria
    if len(keys) <= MOST_IN_MATRIX:
        both = {**pairs, **{pair[::-1]: row for pair, row in pairs.items()}}
        rows = tuple(
            GridRow(name[down], tuple(
                _means_cell(shown.page, both[down, across]) if (down, across) in both else NOTHING for across in keys
            ))
            for down in keys
        )  # fmt: skip
        shown.grids.append(Grid(column_name("criterion"), tuple(name[key] for key in keys), rows))
        return
    strongest = sorted(pairs.items(), key=lambda each: -abs(each[1]["value"]))[:MOST_LISTED]
    listed = tuple(
        GridRow(f"{name.get(pair[0], pair[0])} ~ {name.get(pair[-1], pair[-1])}", (_means_cell(shown.page, row),))
        for pair, row in strongest
    )
    note = _("The %(shown)d strongest of %(all)d pairs. The files contain all of them.")
    note %= {"shown": len(listed), "all": len(pairs)}
    shown.grids.append(Grid(_("Two criteria"), (statistic_name("criteria_spearman"),), listed, (note,)))


def _rationales(shown: AgreementSection) -> None:
    lengths = {(row["criterion"], row["judge"]): row for row in shown.of("rationale_length")}
    shares = {(row["criterion"], row["judge"]): row for row in shown.of("rationale_share")}
    if not shares:
        return
    judges = [None, *sorted({judge for _criterion, judge in shares if judge})]
    rows = []
    for key in shown.axis("criterion"):
        cells = []
        for judge in judges:
            share, length = shares.get((key, judge)), lengths.get((key, judge))
            words = ngettext("median %d character", "median %d characters", int(length["value"])) if length else ""
            lines = (words % round(length["value"]),) if length else ()
            cells.append(figure_cell(shown.page, share, *lines, inked=False) if share else NOTHING)
        rows.append(GridRow(shown.name("criterion", key), tuple(cells)))
    columns = tuple(judge or _("Annotators") for judge in judges)
    shown.grids.append(Grid(column_name("criterion"), columns, tuple(rows)))
    if not lengths:
        shown.notes.append(_("Nobody has written a rationale."))


def _time(shown: AgreementSection) -> None:
    column = shown.question.columns
    rated = [row for row in shown.rows if plain_value(row.get(column))]
    if len({plain_value(row.get(column)) for row in rated}) < 2:
        return
    plain_cells(shown)
    if column == "week":
        weeks = {plain_value(row.get(column)) for row in rated}
        for week, number in sorted(agreement.published_versions(shown.page.campaign).items()):
            if week in weeks:
                text = _("Version %(number)d of the rubric was published in the week %(week)s.")
                shown.notes.append(text % {"number": number, "week": week})
        own = shown.page.campaign.rubric_version.number
        shown.notes.append(_("All ratings of this campaign are on version %d of its rubric.") % own)


def _items(shown: AgreementSection) -> None:
    spreads = shown.of("label_spread")
    campaign = shown.page.campaign
    names = {row["item"] for row in spreads}
    items = {item.external_id: item for item in Item.objects.of(campaign.dataset).filter(external_id__in=names)}
    shares: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in shown.of("label_share"):
        shares.setdefault((row["criterion"], row["item"]), []).append(row)
    rows = []
    for row in spreads:
        item, key = items[row["item"]], row["criterion"]
        given = shares.get((key, row["item"]), [])
        tallest = max((share["value"] for share in given), default=1.0)
        width = BAR_WIDTH / max(len(given), 1)
        bars = tuple(
            (round(place * width, 1), round(BAR_HEIGHT * share["value"] / tallest, 1), f"{width * 0.8:.1f}")
            for place, share in enumerate(given)
        )
        text = ", ".join(f"{share['variant']}: {Figure.of(share).number}" for share in given if share["value"])
        address = reverse("numbers_item", args=[campaign.project.slug, campaign.pk, item.pk])
        raters = ngettext("%d rater", "%d raters", row["n_raters"]) % row["n_raters"]
        cells = (
            GridCell(f"{row['value']:.2f}", (raters,)),
            GridCell(lines=(text or _("A continuous scale has no points."),), bars=bars),
            GridCell(lines=(shown.name("criterion", key), shown.name("language", item.language))),
        )
        rows.append(GridRow(item.external_id, cells, url=f"{address}?{urlencode({'criterion': key})}"))
    if rows:
        columns = (_("Spread"), _("Soft label"), _("Criterion and language"))
        shown.grids.append(Grid(column_name("item"), columns, tuple(rows)))


_BUILDERS: dict[str, Callable[[AgreementSection], None]] = {
    "matrix": _matrix,
    "annotators": _annotators,
    "pairs": _pairs,
    "classes": _classes,
    "raters": _raters,
    "panels": _panels,
    "criteria": _criteria,
    "applicability": plain_cells,
    "rationales": _rationales,
    "time": _time,
    "items": _items,
}
