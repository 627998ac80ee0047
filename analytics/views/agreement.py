"""The Agreement page: a matrix of one coefficient, and sections on who and what makes annotators agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics import agreement
from analytics.answer_pages import AnswerPage, ShownCell
from analytics.figure_words import translated_message
from analytics.figures import MINUS, SMALL, Figure, HeatCell
from analytics.grids import NOTHING, CellRows, EstimateRow, Grid, GridCell, GridRow, plain_value
from analytics.questions.asked import QuestionChoices
from analytics.questions.question import NumbersQuestion
from analytics.questions.question_names import column_name, statistic_name
from analytics.score_views import CLASS_NAMES
from analytics.stats.declared.register import COEFFICIENTS, STATISTICS
from analytics.views.parts import PartsPage
from analytics.views.sections import BAR_HEIGHT, BAR_WIDTH, Section, ShownSection, figure_cell, plain_cells
from annotation.models import Campaign, Item

MOST_IN_MATRIX = 12
"""Criteria up to which their correlations are a matrix; more of them are a list of the strongest."""
MOST_LISTED = 60


def _means_cell(page: AnswerPage, row: EstimateRow, *, of_panels: bool = False) -> GridCell:
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
def _matrix(shown: ShownSection) -> None:
    coefficient = shown.subject

    def build(found: CellRows) -> GridCell:
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


def _annotators(shown: ShownSection) -> None:
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
        if shown.subject not in without_name:
            shown.notes.append(_("Annotators are left out of Krippendorff’s α, Fleiss’ κ, Gwet’s AC and percent only."))


def _pairs(shown: ShownSection) -> None:
    """Every pair, the one that agrees least first; on several criteria in one table, by their lowest one."""
    if len(criteria := shown.axis("criterion", shown.of("pairs.cohen_kappa"))) > 1:
        _pairs_by_criterion(shown, criteria)
        return
    pairs = {tuple(row["raters"]): row for row in shown.rows if row["asked"] == "pairs.cohen_kappa" and row["raters"]}
    shares = {tuple(row["raters"]): row for row in shown.of("pairs.percent_agreement") if row["raters"]}
    means = {row["annotator"]: row for row in shown.of("pairs.cohen_kappa") if row["annotator"]}
    shares_of = {row["annotator"]: row for row in shown.of("pairs.percent_agreement") if row["annotator"]}
    names = sorted(means, key=lambda name: -means[name]["value"])
    if not names:
        return
    if not pairs:
        _mean_pairs(shown, names, means, shares_of, pairs)
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
        lowest = sorted(pairs, key=lambda pair: (_or_highest(pairs[pair]["value"]), pair))
        rows = tuple(GridRow(" ~ ".join(pair), (cells[pair],)) for pair in lowest)
        shown.grids.append(Grid(_("Two annotators"), (_("Cohen’s κ"),), rows, notes))
        _mean_pairs(shown, names, means, shares_of, pairs)
        return
    asked = parse_qsl(shown.page.items_address(next(iter(pairs.values()))).partition("?")[2])
    hidden = tuple(pair for pair in asked if pair[0] != "rater")
    shown.grids.append(Grid(_("Annotator"), tuple(in_name_order), rows, notes, is_small=small, hidden=hidden))
    _mean_pairs(shown, names, means, shares_of, pairs)


def _or_highest(value: float | None) -> float:
    """For sorting: what is not known comes last."""
    return 2.0 if value is None else value


def _pairs_by_criterion(shown: ShownSection, criteria: Sequence[str]) -> None:
    """Pairs by criteria, then the means of every annotator with the others."""
    kappas, equal = shown.of("pairs.cohen_kappa"), shown.of("pairs.percent_agreement")
    shares = {(tuple(row["raters"]), row["criterion"]): row for row in equal if row["raters"]}
    pairs: dict[tuple[str, ...], dict[str, EstimateRow]] = {}
    means: dict[str, dict[str, EstimateRow]] = {}
    for row in (row for row in shown.rows if row["asked"] == "pairs.cohen_kappa"):
        if row["raters"]:
            pairs.setdefault(tuple(row["raters"]), {})[row["criterion"]] = row
        elif row["annotator"]:
            means.setdefault(row["annotator"], {})[row["criterion"]] = row
    columns = tuple(shown.name("criterion", key) for key in criteria)

    def lowest(rows: Mapping[str, EstimateRow]) -> float:
        return min(_or_highest(row["value"]) for row in rows.values())

    def pair_row(pair: tuple[str, ...]) -> GridRow:
        own = pairs[pair]
        cells = (
            _pair_cell(shown.page, own[key], shares.get((pair, key)), small=False) if key in own else NOTHING
            for key in criteria
        )
        return GridRow(" ~ ".join(pair), tuple(cells))

    def mean_cell(row: EstimateRow | None) -> GridCell:
        if row is None:
            return NOTHING
        figure = Figure.of(row)
        items = ngettext("%d item", "%d items", figure.n_items) % figure.n_items
        return GridCell(figure.number, (items,), url=shown.page.items_address(row))

    if pairs:
        order = sorted(pairs, key=lambda pair: (lowest(pairs[pair]), pair))
        is_any_small = any(Figure.of(row).is_small for own in pairs.values() for row in own.values())
        notes = (
            _("The pair with the lowest κ on a criterion stands first."),
            *([_("Not inked: fewer than %d common items or clusters.") % SMALL] if is_any_small else []),
        )
        shown.grids.append(Grid(_("Two annotators"), columns, tuple(map(pair_row, order)), notes))
    if kappas and means:
        names = sorted(means, key=lambda name: (lowest(means[name]), name))
        rows = tuple(GridRow(name, tuple(mean_cell(means[name].get(key)) for key in criteria)) for name in names)
        shown.grids.append(Grid(_("Annotator"), columns, rows, title=_("Mean κ with the others")))
    shown.notes.append(_("The means with the others and the shares of equal scores are shown without intervals."))


def _mean_pairs(
    shown: ShownSection,
    names: Sequence[str],
    means: Mapping[str, EstimateRow],
    shares: Mapping[str, EstimateRow],
    pairs: Mapping[tuple[str, ...], EstimateRow],
) -> None:
    """For every annotator, the mean κ and percent agreement with the others."""
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


def _pair_cell(page: AnswerPage, row: EstimateRow, share: EstimateRow | None, *, small: bool) -> GridCell:
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


def _classes(shown: ShownSection) -> None:
    rows = shown.of("class_share")
    if not rows:
        return
    shown.table(
        rows, lambda found: _class_cell(shown.page, found), down="criterion", across="language",
        within="agreement_class", downs=shown.axis("criterion"), acrosses=shown.axis("language"),
        notes=(_("The bar shows, from its start: %s.") % ", ".join(map(str, CLASS_NAMES.values())),),
    )  # fmt: skip
    shown.notes.append(_("The shares are shown without intervals."))
    without = GridCell(lines=(_("no item has two scores"),))
    shown.grids[:] = [
        replace(
            each,
            rows=tuple(
                replace(row, cells=tuple(without if cell is NOTHING else cell for cell in row.cells))
                for row in each.rows
            ),
        )
        for each in shown.grids
    ]


def _class_cell(page: AnswerPage, found: CellRows) -> GridCell:
    """A bar of the classes' shares, and each share, which leads to its items."""
    start, bars, links = 0.0, [], []
    for name, row in found.items():
        figure = Figure.of(row)
        width = round(BAR_WIDTH * (figure.value or 0.0), 1)
        bars.append((round(start, 1), width, name))
        start += width
        links.append((f"{CLASS_NAMES[name]} {figure.number}", page.items_address(row) if figure.value else ""))
    first = ShownCell("", "", Figure.of(next(iter(found.values()))))
    full = found.get("full")
    number = Figure.of(full or next(iter(found.values()))).number
    url = page.items_address(full) if full else ""
    return GridCell(number, (first.counts,), first.few, url=url, bars=tuple(bars), links=tuple(links))


def _raters(shown: ShownSection) -> None:
    curves: dict[str, dict[int, EstimateRow]] = {}
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
    reasons = {translated_message(row["reason"]) for row in shown.rows if row["value"] is None and row.get("reason")}
    shown.notes += [_("Other criteria have no curve: %s.") % reason for reason in sorted(reasons)]


def _panels(shown: ShownSection) -> None:
    if not any(row["value"] is not None for row in shown.rows):
        return

    def cell(found: CellRows) -> GridCell:
        return _means_cell(shown.page, next(iter(found.values())), of_panels=True)

    def below(place: str) -> str:
        first, _sign, second = place.partition("\0")[0].partition(" ~ ")
        return _("%(second)s compared with %(first)s") % {"first": first, "second": second}

    places = {_of_panels(row): plain_value(row["criterion"]) for row in shown.rows}
    shown.table(
        shown.rows, cell, down=_of_panels, across="asked", corner=column_name("criterion"), below=below,
        downs=sorted(places), acrosses=shown.question.statistics, column_name=statistic_name,
        row_name=lambda place: shown.name("criterion", places[place]),
    )  # fmt: skip
    shown.notes.append(
        _("The difference is the mean of the panel named first less that of the other, in points of the scale.")
    )


def _of_panels(row: EstimateRow) -> str:
    """A row of the table of panels: the pair of panels, then the criterion."""
    return f"{row['variant'] or ''}\0{plain_value(row['criterion'])}"


def _criteria(shown: ShownSection) -> None:
    pairs = {tuple(str(row["variant"]).split(" ~ ")): row for row in shown.of("criteria_spearman")}
    keys = [key for key in shown.page.criteria if any(key in pair for pair in pairs)]
    if not pairs:
        return
    name = shown.page.criteria
    if len(keys) <= MOST_IN_MATRIX:
        shown.table(
            list(pairs.values()), lambda found: _means_cell(shown.page, found["criteria_spearman"]),
            down=lambda row: str(row["variant"]).split(" ~ ")[0],
            across=lambda row: str(row["variant"]).split(" ~ ")[-1],
            corner=column_name("criterion"), downs=keys, is_mirrored=True, row_name=name.__getitem__,
            column_name=name.__getitem__,
        )  # fmt: skip
        return
    strongest = sorted(pairs.items(), key=lambda each: -abs(each[1]["value"]))[:MOST_LISTED]
    listed = tuple(
        GridRow(f"{name.get(pair[0], pair[0])} ~ {name.get(pair[-1], pair[-1])}", (_means_cell(shown.page, row),))
        for pair, row in strongest
    )
    note = _("The %(shown)d strongest of %(all)d pairs. The files contain all of them.")
    note %= {"shown": len(listed), "all": len(pairs)}
    shown.grids.append(Grid(_("Two criteria"), (statistic_name("criteria_spearman"),), listed, (note,)))


def _rationales(shown: ShownSection) -> None:
    shares, lengths = shown.of("rationale_share"), shown.of("rationale_length")
    if not shares:
        return

    def build(found: CellRows) -> GridCell:
        share, length = found.get("rationale_share"), found.get("rationale_length")
        words = ngettext("median %d character", "median %d characters", int(length["value"])) if length else ""
        lines = (words % round(length["value"]),) if length else ()
        return figure_cell(shown.page, share, *lines, inked=False) if share else NOTHING

    shown.table(
        [*shares, *lengths], build, down="criterion", across="judge", downs=shown.axis("criterion"),
        acrosses=["", *sorted({row["judge"] for row in shares if row["judge"]})],
        column_name=lambda judge: judge or _("Annotators"),
    )  # fmt: skip
    if not lengths:
        shown.notes.append(_("Nobody has written a rationale."))


def _time(shown: ShownSection) -> None:
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


def _items(shown: ShownSection) -> None:
    spreads = shown.of("label_spread")
    campaign = shown.page.campaign
    names = {row["item"] for row in spreads}
    items = {item.external_id: item for item in Item.objects.of(campaign.dataset).filter(external_id__in=names)}
    shares: dict[tuple[Any, ...], list[EstimateRow]] = {}
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


# --- the page --------------------------------------------------------------------------------------------------------
def part_question(
    part: Section, question: NumbersQuestion, criteria: Sequence[str], n_raters: int = 0
) -> NumbersQuestion:
    """The question of a section, from that of the page: the same filters, raters, panels, exclusions and intervals.

    A section about one criterion takes the first of `criteria` where the question does not name one. Pairs of more than
    `LARGE_PANEL` annotators come without their percent agreement.
    """
    coefficient = agreement.coefficient_of(question)
    is_of_many = part.name == "pairs" and (len(question.raters) or n_raters) > agreement.LARGE_PANEL
    rows, columns, statistics = part.rows, part.columns, part.statistics
    if part.name == "matrix":
        rows, columns, statistics = question.rows, question.columns, (coefficient, *agreement.BESIDE)
    elif part.name == "annotators":
        left_out = f"left_out.{coefficient}"
        left_out = left_out if left_out in STATISTICS else "left_out.krippendorff_alpha"
        statistics = (left_out, f"{left_out}_change")
    elif is_of_many:
        statistics = statistics[:1]
    elif part.name == "time":
        statistics = (coefficient, "percent_agreement")
        columns = "hundred" if "hundred" in question.dimensions else columns
    where = question.where
    if (part.one_criterion or is_of_many) and criteria and (chosen := agreement.chosen_criterion(question, criteria)):
        where = (*((name, value) for name, value in where if name != "criterion"), ("criterion", chosen))
    return replace(
        question,
        rows=rows,
        columns=columns,
        statistics=tuple(dict.fromkeys(statistics)),
        where=tuple(sorted(where)),
        pool=question.pool and part.name == "matrix",
        judges=(),
        runs=(),
        reference="",
        ties="exclude",
    )


def _asked(campaign: Campaign, part: Section, question: NumbersQuestion, choices: QuestionChoices) -> NumbersQuestion:
    return part_question(part, question, choices.criteria, len(choices.raters))


def _offered(campaign: Campaign, question: NumbersQuestion, choices: QuestionChoices) -> dict[str, Any]:
    return {"coefficients": [(name, statistic_name(name)) for name in COEFFICIENTS]}


AGREEMENT = PartsPage(
    name="agreement",
    title=gettext_lazy("Agreement"),
    sections=(
        Section(
            "matrix",
            title=gettext_lazy("Agreement"),
            about=gettext_lazy("Large: the coefficient, with its interval. Below: percent agreement and Gwet’s AC."),
            empty=gettext_lazy("Agreement needs two annotators who score the same items."),
            terms=("alpha", "ac", "cluster", "preliminary", "approximate", "conservative"),
            build=_matrix,
        ),
        Section(
            "annotators",
            title=gettext_lazy("Each annotator left out"),
            about=gettext_lazy(
                "The coefficient without the annotator, and the change: without minus with. Above 0: the others agree "
                "better without this annotator."
            ),
            empty=gettext_lazy("Leaving one annotator out needs three annotators who are known as persons."),
            build=_annotators,
            one_criterion=True,
        ),
        Section(
            "pairs",
            title=gettext_lazy("Pairs of annotators"),
            about=gettext_lazy(
                "Cohen’s κ of two annotators on the items that both scored; on ordered scales with quadratic weights."
            ),
            empty=gettext_lazy("Pairs need two annotators, known as persons, who share items."),
            terms=("kappa",),
            build=_pairs,
            statistics=("pairs.cohen_kappa", "pairs.percent_agreement"),
        ),
        Section(
            "classes",
            title=gettext_lazy("Classes of agreement"),
            about=gettext_lazy(
                "Of the items with two scores or more: all scores are the same, some are, no two are. With more raters "
                "fewer items are in the first class."
            ),
            empty=gettext_lazy("Classes need items with two scores or more."),
            build=_classes,
            statistics=("class_share",),
            columns="language",
            is_catalogue=True,
        ),
        Section(
            "raters",
            title=gettext_lazy("Reliability by raters per item"),
            about=gettext_lazy(
                "How reliable the mean score would be with 1 to 10 raters per item (Spearman-Brown formula). It is a "
                "projection, so it has no interval."
            ),
            empty=gettext_lazy("The curve needs two annotators, two items and scores in order, or two labels."),
            terms=("reliability",),
            build=_raters,
            statistics=("panel_reliability",),
        ),
        Section(
            "panels",
            title=gettext_lazy("Panel against panel"),
            about=gettext_lazy(
                "Two panels on the items that both scored, by the panels’ means and modes of each item."
            ),
            empty=gettext_lazy("This campaign has no two panels on the same items."),
            build=_panels,
            statistics=("panel_difference", "panel_spearman", "panel_same_mode"),
        ),
        Section(
            "criteria",
            title=gettext_lazy("Correlation between criteria"),
            about=gettext_lazy(
                "Spearman’s ρ of two criteria over the annotators’ means of the items. Criteria that always move "
                "together measure one thing."
            ),
            empty=gettext_lazy("Correlations need two criteria with scores in order on the same items."),
            build=_criteria,
            statistics=("criteria_spearman",),
            needs_order=True,
            is_catalogue=True,
        ),
        Section(
            "applicability",
            title=gettext_lazy("Agreement on “not applicable”"),
            about=gettext_lazy("Do annotators agree on where a criterion does not apply? N/A is never a score."),
            empty=gettext_lazy("Nobody has answered “not applicable”."),
            build=plain_cells,
            statistics=("applicability_agreement", "applicability_ac"),
            columns="language",
            is_catalogue=True,
        ),
        Section(
            "rationales",
            title=gettext_lazy("Rationales, annotators and judges"),
            about=gettext_lazy("Share of ratings with a rationale, and their median length. No text is shown."),
            empty=gettext_lazy("Nothing is rated yet."),
            build=_rationales,
            statistics=("rationale_share", "rationale_length"),
            is_catalogue=True,
        ),
        Section(
            "time",
            title=gettext_lazy("Agreement over time"),
            about=gettext_lazy("Each item counts in the time of its last rating, so that its ratings stay together."),
            empty=gettext_lazy("All items were rated in one period. Agreement over time needs two."),
            build=_time,
            columns="week",
        ),
        Section(
            "items",
            title=gettext_lazy("Items on which annotators differ most"),
            about=gettext_lazy(
                "Spread: mean distance of two annotators’ scores of the item, 0 to 1. The files contain every item."
            ),
            empty=gettext_lazy("Annotators do not differ on any item with two scores."),
            build=_items,
            statistics=("label_spread", "label_share"),
        ),
    ),
    asked=_asked,
    offered=_offered,
    about=agreement.coefficient_of,
)
