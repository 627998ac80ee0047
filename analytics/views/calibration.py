"""The Calibration page: one judge beside the panel, in sections that are questions each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics.agreement import AgreementPart
from analytics.answer_pages import plain_value
from analytics.figures import Figure
from analytics.item_choices import NOT_OF_ONE_ITEM
from analytics.judges import thresholds
from analytics.questions.asked import QuestionChoices
from analytics.questions.question import NumbersQuestion
from analytics.questions.question_names import column_name, statistic_name
from analytics.score_views import CLASS_NAMES
from analytics.views.agreement_sections import (
    BAR_HEIGHT,
    BAR_WIDTH,
    NOTHING,
    AgreementSection,
    Grid,
    GridCell,
    GridRow,
    figure_cell,
    plain_cells,
)
from analytics.views.parts import (
    CALIBRATION_PARTS,
    Offered,
    PartsPage,
    Section,
    Words,
    chosen_judge,
    judge_question,
)
from annotation.models import Campaign

Rows = Mapping[str, Mapping[str, Any]]
TITLES = {
    "bias": gettext_lazy("Bias: judge minus panel"),
    "confusion": gettext_lazy("Confusion with the reference label"),
    "reliability": gettext_lazy("Mean score of the panel for each score of the judge"),
    "classes": gettext_lazy("Scores by class of agreement"),
    "f1": gettext_lazy("F1 of each label, beside the annotators’"),
    "correlation": gettext_lazy("Correlation with the panel"),
    "pooled": gettext_lazy("Correlation, criteria pooled"),
    "confidence": gettext_lazy("Verdict Confidence with the judge on the panel"),
    "alt-test": gettext_lazy("Alternative annotator test"),
    "power": gettext_lazy("Power of the alternative annotator test"),
    "ceiling": gettext_lazy("Human ceiling"),
    "judges": gettext_lazy("Judge against judge"),
}
NOTES = {
    "bias": gettext_lazy("Mean of judge minus the panel’s mean, or another reference, in points."),
    "confusion": gettext_lazy(
        "Of the items with this reference label (row), the share that the judge gives each score (column)."
    ),
    "reliability": gettext_lazy(
        "The mean score of the panel on the items to which the judge gives this score. "
        "The dashed line: the panel gives the same score."
    ),
    "classes": gettext_lazy("Where annotators agree less, does the judge still give the top score?"),
    "f1": gettext_lazy(
        "F1 of the judge against every annotator, averaged; below it that of the annotators against each other."
    ),
    "correlation": gettext_lazy("Spearman’s ρ with the reference; below it Kendall’s τ-b and Pearson’s r."),
    "pooled": gettext_lazy(
        "Spearman’s ρ over all items and criteria together, for each generator. "
        "What differs between criteria counts as correlation here: compare it with the section above."
    ),
    "confidence": gettext_lazy(
        "The share of the panel that gave the most frequent score, mean over items; and the same with the judge in one "
        "annotator’s place."
    ),
    "alt-test": gettext_lazy(
        "The share of annotators (ω) whom the judge could stand in for, with ε = 0.15, and ρ: how often it is at least "
        "as close to the others as an annotator is. Benjamini-Yekutieli at 0.05."
    ),
    "power": gettext_lazy("The share of 200 simulated studies, drawn from these items, in which the judge passes."),
    "ceiling": gettext_lazy(
        "How well the judge agrees with all annotators but one, minus how well that annotator agrees with the same "
        "others. The latter is the human ceiling: no judge is expected to agree with people better than people do."
    ),
    "judges": gettext_lazy("Spearman’s ρ of two judges’ scores of the same items; below it the share of equal scores."),
}
EMPTY = {
    "bias": gettext_lazy("A bias needs items with scores in order by the judge and by the panel."),
    "confusion": gettext_lazy("A confusion matrix needs items with a reference label and a score by the judge."),
    "reliability": gettext_lazy("Nothing is scored by the judge and by the panel."),
    "classes": gettext_lazy("Classes need items with two scores or more."),
    "f1": gettext_lazy("F1 needs items that an annotator and the judge scored."),
    "correlation": gettext_lazy("A correlation needs scores in order by the judge and by the panel."),
    "pooled": gettext_lazy("A correlation needs generators, and scores in order by the judge and by the panel."),
    "confidence": gettext_lazy("Verdict Confidence needs items with two scores or more and one by the judge."),
    "alt-test": gettext_lazy("The test needs two annotators, known as persons, with 30 items each."),
    "power": gettext_lazy("The power needs two annotators, known as persons, with 30 items each."),
    "ceiling": gettext_lazy("The human ceiling needs items that two annotators and the judge scored."),
    "judges": gettext_lazy("Only one judge has been run on these items."),
}


class CalibrationSection(AgreementSection):
    """A section of the Calibration page."""

    def build(self) -> None:
        _BUILDERS[self.part.name](self)


def number_line(label: str, row: Mapping[str, Any] | None) -> tuple[str, ...]:
    """A further line of a cell: a label with %s, its figure and its interval."""
    if row is None or row["value"] is None:
        return ()
    figure = Figure.of(row)
    how = _("approximate") if figure.is_approximate else ""
    return (label % f"{figure.number} {figure.interval} {how}".strip(),)


def p_in_words(p: float) -> str:
    """p 0.012, or p < 0.001."""
    return "p < 0.001" if p < 0.001 else f"p {p:.3f}"


def _by(rows: Sequence[Mapping[str, Any]], *columns: str) -> dict[tuple[str, ...], dict[str, Mapping[str, Any]]]:
    """The rows by the values of some columns, then by variant."""
    found: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(plain_value(row.get(name)) for name in columns), {})[row["variant"] or ""] = row
    return found


# --- sections --------------------------------------------------------------------------------------------------------
def _bias(shown: AgreementSection) -> None:
    campaign = shown.page.campaign
    declared = thresholds.current_thresholds(campaign.project)
    widths = {each.key: each.maximum - each.minimum for each in campaign.rubric_version.criteria.all()}
    share = declared.bias_margin if declared else None
    reach = _reach(shown.of("bias"), widths, share or 0.0)

    def build(found: dict[str, Mapping[str, Any]]) -> GridCell:
        row = found["bias"]
        cell = figure_cell(shown.page, row, inked=False)
        width = widths.get(plain_value(row.get("criterion")))
        if row["value"] is None or not width:
            return cell
        margin = share * width if share is not None else None
        outside = margin is not None and row.get("low") is not None and max(-row["low"], row["high"]) >= margin
        warning = _("The interval reaches beyond the margin of ±%.3g.") % margin if outside and margin else ""
        return replace(cell, bars=_forest(row, margin, reach * width), warning=warning)

    shown.cells_of(build)
    if shown.grids:
        text = _("The thresholds %(name)s allow a bias of %(share)s of the scale’s width: the pale band around zero.")
        no_margin = _("No thresholds are declared, so that no margin is drawn.")
        shown.notes.append(text % {"name": declared, "share": f"{100 * share:g}%"} if share is not None else no_margin)
        text = _("The line of a cell spans %s of the scale’s width to both sides of zero.")
        shown.notes.append(text % f"{100 * reach:.0f}%")


def _reach(rows: Sequence[Mapping[str, Any]], widths: Mapping[str, float], margin: float) -> float:
    """How far every difference, its interval and the margin reach from zero, as a share of the scale's width."""
    far = [margin]
    for row in rows:
        if width := widths.get(plain_value(row.get("criterion"))):
            far += [abs(row[end]) / width for end in ("low", "value", "high") if row.get(end) is not None]
    return 1.1 * max(far) or 1.0


def _forest(row: Mapping[str, Any], margin: float | None, reach: float) -> tuple[tuple[float, float, str], ...]:
    """The bars of a difference: the margin, the interval, zero and the value; `reach` points to both sides of zero."""

    def at(value: float) -> float:
        return round(BAR_WIDTH * (min(max(value, -reach), reach) + reach) / (2 * reach), 1)

    bars = []
    if margin is not None:
        bars.append((at(-margin), round(at(margin) - at(-margin), 1), "margin"))
    if row.get("low") is not None:
        bars.append((at(row["low"]), round(max(at(row["high"]) - at(row["low"]), 1.0), 1), "interval"))
    return (*bars, (at(0.0) - 0.5, 1.0, "zero"), (at(row["value"]) - 2, 4.0, "value"))


def _confusion(shown: AgreementSection) -> None:
    for (place,), cells in _by(shown.rows, shown.question.columns).items():
        pairs = {tuple(variant.split(" ~ ")): row for variant, row in cells.items() if " ~ " in variant}
        labels = list(dict.fromkeys(pair[0] for pair in pairs))
        rows = []
        for label in labels:
            total = sum(pairs[label, other]["n_items"] for other in labels if (label, other) in pairs)
            shares = tuple(
                _share_cell(shown, pairs.get((label, other)), total, settled=label, judged=other) for other in labels
            )
            rows.append(GridRow(label, shares, below=ngettext("%d item", "%d items", total) % total))
        if rows:
            title = shown.name(shown.question.columns, place)
            shown.grids.append(Grid(_("Reference"), tuple(labels), tuple(rows), title=title))
    if shown.grids:
        shown.notes.append(_("Columns: the score of the judge. The shares are shown without intervals."))


def _share_cell(shown: AgreementSection, row: Mapping[str, Any] | None, total: int, **of_cell: str) -> GridCell:
    """A share of some items, with their number; it leads to the items that have these scores."""
    if row is None or row["value"] is None:
        return NOTHING
    figure = Figure.of(row)
    if "settled" in of_cell and row.get("reference") in NOT_OF_ONE_ITEM:
        settled = of_cell.pop("settled")
        of_cell |= {"scored": settled} if row["reference"] == "each" else {}
    counts = _("%(n)d of %(total)d") % {"n": round(row["value"] * total), "total": total}
    url = f"{shown.page.items_address(row)}&{urlencode(of_cell)}" if row["value"] else ""
    return GridCell(f"{100 * row['value']:.0f}%", (counts,), url=url, bin=figure.shade if row["value"] else None)


def _reliability(shown: AgreementSection) -> None:
    key = dict(shown.question.where).get("criterion", "")
    criterion = shown.page.campaign.rubric_version.criteria.filter(key=key).first()
    found = _by(shown.of("beside.panel_given_judge"), shown.question.columns)
    scores = list(dict.fromkeys(score for cells in found.values() for score in cells))
    scores.sort(key=lambda score: float(score.split(" ")[0]))
    rows = []
    for (place,), cells in found.items():
        shown_cells = tuple(
            _with_score(figure_cell(shown.page, cells[score], inked=False), score) if score in cells else NOTHING
            for score in scores
        )
        curve = _curve(cells, criterion.minimum, criterion.maximum) if criterion else ""
        name = shown.name(shown.question.columns, place)
        rows.append(GridRow(name, shown_cells, curve=curve, is_diagonal=True))
    if rows:
        columns = tuple(_("judge: %s") % score for score in scores)
        shown.grids.append(Grid(column_name(shown.question.columns), columns, tuple(rows)))


def _with_score(cell: GridCell, score: str) -> GridCell:
    """Its items are those to which the judge gave this score; a range of scores is no filter of the list."""
    return cell if " " in score else replace(cell, url=f"{cell.url}&{urlencode({'judged': score})}")


def _curve(cells: Rows, low: float, high: float) -> str:
    """The panel's mean by the judge's score, as points of a small chart; nothing where scores are cut into ranges."""
    if any(" " in score for score in cells) or high <= low:
        return ""
    points = sorted((float(score), row["value"]) for score, row in cells.items())
    across, up = BAR_WIDTH / (high - low), (BAR_HEIGHT - 4) / (high - low)
    return " ".join(f"{across * (x - low):.1f},{BAR_HEIGHT - 2 - up * (y - low):.1f}" for x, y in points)


def _classes(shown: AgreementSection) -> None:
    column = shown.question.columns
    found = _by(shown.of("score_share"), column, "agreement_class", "judge")
    places = list(dict.fromkeys(key[0] for key in found))
    judge = next(iter(shown.question.judges), "")
    for place in places:
        scores = list(dict.fromkeys(score for key, cells in found.items() if key[0] == place for score in cells))
        rows = []
        for name, words in CLASS_NAMES.items():
            for who, title in (("", _("panel")), (judge, judge)):
                cells = found.get((place, name, who), {})
                total = max((row["n_ratings"] for row in cells.values()), default=0)
                if total:
                    parameter = "judged" if who else "scored"
                    shares = tuple(
                        _share_cell(shown, cells.get(score), total, **{parameter: score}) for score in scores
                    )
                    rows.append(GridRow(f"{words} · {title}", shares, below=_("%d scores") % total))
        if rows:
            shown.grids.append(Grid(_("Class"), tuple(scores), tuple(rows), title=shown.name(column, place)))
    if shown.grids:
        shown.notes.append(_("The shares are shown without intervals."))


def _f1(shown: AgreementSection) -> None:
    column = shown.question.columns
    own, others = (_by(shown.of(f"beside.{name}"), column) for name in ("f1", "human_f1"))
    places = list(own)
    labels = list(dict.fromkeys(label for cells in own.values() for label in cells))
    rows = tuple(
        GridRow(
            label,
            tuple(
                figure_cell(
                    shown.page,
                    own[place][label],
                    *number_line(_("annotators: %s"), others.get(place, {}).get(label)),
                )
                if label in own[place]
                else NOTHING
                for place in places
            ),
        )
        for label in labels
    )
    if rows:
        shown.grids.append(Grid(_("Label"), tuple(shown.name(column, place) for (place,) in places), rows))
        shown.notes.append(_("The annotators’ F1 is shown without an interval."))


def cells_by_variant(
    shown: AgreementSection, statistic: str, first: str, further: Sequence[tuple[str, str]], title: str = ""
) -> None:
    """Cells of one variant of a statistic with others below it."""
    found = _by(shown.of(statistic), shown.question.rows, shown.question.columns)
    before = len(shown.grids)

    def build(given: dict[str, Mapping[str, Any]]) -> GridCell:
        row = given.get(statistic)
        if row is None:
            return NOTHING
        place = tuple(plain_value(row.get(name)) for name in (shown.question.rows, shown.question.columns))
        cells = found.get(place, {})
        if first not in cells:
            return figure_cell(shown.page, row) if row["value"] is None else NOTHING
        lines = [line for variant, label in further for line in number_line(label, cells.get(variant))]
        return figure_cell(shown.page, cells[first], *lines, inked=False)

    shown.cells_of(build)
    named = shown.grids[before:]
    columns = {} if shown.question.columns else {"columns": (statistic_name(statistic),)}
    shown.grids[before:] = [replace(grid, title=title or grid.title, **columns) for grid in named]


def _confidence(shown: AgreementSection) -> None:
    further = [
        ("substituted", _("with the judge: %s")),
        ("paper_compat", _("by 100 random replacements: %s")),
    ]
    cells_by_variant(shown, "beside.verdict_confidence", "observed", further)


def _ceiling(shown: AgreementSection) -> None:
    names = {"ceiling_accuracy": _("Share of equal scores"), "ceiling_pearson": _("Pearson’s r")}
    for statistic, title in names.items():
        further = [("judge", _("judge: %s")), ("human", _("annotators: %s"))]
        cells_by_variant(shown, statistic, "difference", further, title)
    if shown.grids:
        shown.notes.append(_("Above 0, the judge is closer to the other annotators than an annotator is."))


def _alt_test(shown: AgreementSection) -> None:
    column = shown.question.columns
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in shown.of("alt_test.alt_test_rho"):
        found.setdefault((plain_value(row.get("criterion")), plain_value(row.get(column))), []).append(row)

    def build(given: dict[str, Mapping[str, Any]]) -> GridCell:
        row = given["alt_test.alt_test_omega"]
        rows = found.get((plain_value(row.get("criterion")), plain_value(row.get(column))), [])
        lines = [line for each in rows if not each["annotator"] for line in number_line("ρ %s", each)]
        for each in (each for each in rows if each["annotator"]):
            figure = Figure.of(each)
            p = f", {p_in_words(each['p'])}" if each.get("p") is not None else ""
            lines.append(f"{each['annotator']}: {figure.number}{p} ({_ALT_WORDS.get(figure.note, figure.note)})")
        cell = figure_cell(shown.page, row, *lines, inked=False)
        if row["value"] is None:
            return cell
        text = [line for line in cell.lines if not line.startswith(_("no interval: %s") % "")]
        return replace(cell, number=f"ω {100 * row['value']:.0f}%", lines=tuple(text))

    shown.cells_of(build)
    if shown.grids:
        shown.notes.append(_("ω is a decision and has no interval. At 50% or more the judge passes."))


_ALT_WORDS = {
    "beaten": gettext_lazy("can stand in"),
    "not beaten": gettext_lazy("can’t stand in"),
    "too few items: listed, not tested": gettext_lazy("too few items to test"),
}


def _power(shown: AgreementSection) -> None:
    found = _by(shown.of("alt_test.alt_test_power"), shown.question.columns)
    sizes = list(dict.fromkeys(size for cells in found.values() for size in cells))
    rows = tuple(
        GridRow(size, tuple(_power_cell(shown, cells.get(size)) for cells in found.values()))
        for size in sorted(sizes, key=lambda size: int(size.split(" ")[0]))
    )
    if rows:
        columns = tuple(shown.name(shown.question.columns, place) for (place,) in found)
        shown.grids.append(Grid(_("Study of"), columns, rows))
        shown.notes.append(_("An estimate from this study, without an interval; ε = 0.15."))


def _power_cell(shown: AgreementSection, row: Mapping[str, Any] | None) -> GridCell:
    if row is None:
        return NOTHING
    figure = Figure.of(row)
    return GridCell(f"{100 * row['value']:.0f}%", (figure.basis,), url=shown.page.items_address(row), title=figure.note)


def _judges(shown: AgreementSection) -> None:
    found: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for row in shown.rows:
        if row["raters"]:
            found.setdefault(tuple(row["raters"]), {})[row["asked"]] = row
    names = sorted({name for pair in found for name in pair})
    both = {**found, **{pair[::-1]: rows for pair, rows in found.items()}}
    rows = tuple(
        GridRow(down, tuple(_pair_of_judges(shown, both.get((down, across))) for across in names)) for down in names
    )
    if found:
        shown.grids.append(Grid(_("Judge"), tuple(names), rows))


def _pair_of_judges(shown: AgreementSection, rows: Rows | None) -> GridCell:
    if not rows or "judges.spearman" not in rows:
        return NOTHING
    lines = number_line(_("equal: %s"), rows.get("judges.accuracy"))
    return figure_cell(shown.page, rows["judges.spearman"], *lines)


_BUILDERS: dict[str, Callable[[AgreementSection], None]] = {
    "bias": _bias,
    "confusion": _confusion,
    "reliability": _reliability,
    "classes": _classes,
    "f1": _f1,
    "correlation": plain_cells,
    "pooled": plain_cells,
    "confidence": _confidence,
    "alt-test": _alt_test,
    "power": _power,
    "ceiling": _ceiling,
    "judges": _judges,
}


# --- the page --------------------------------------------------------------------------------------------------------
def _offered(campaign: Campaign, question: NumbersQuestion, choices: QuestionChoices) -> dict[str, Any]:
    """The judges to choose from; or what is missing."""
    if not choices.judges:
        more = _("Run a judge, or import verdicts of one.")
        return {"nothing": _("No judge has scored these items"), "nothing_more": more}
    if not choices.raters:
        more = _("A judge is compared with people: let a panel rate, or import ratings.")
        return {"nothing": _("Nobody has rated these items"), "nothing_more": more}
    note = _("Columns cut most sections: by language, or by an attribute of the items such as a group of tasks.")
    return {
        "judges": choices.listed_judges(question),
        "judge": chosen_judge(question, choices),
        "form_note": note,
    }


def nothing_about(question: NumbersQuestion) -> str:
    """Any question will do: a section asks for its own statistics."""
    return ""


def page_about_judges(
    *,
    name: str,
    title: Any,
    parts: Mapping[str, AgreementPart],
    words: tuple[Words, Words, Words],
    section: Section,
    offered: Offered,
) -> PartsPage:
    """A page of sections about a judge, whose questions are those of `judge_pages`. `words`: titles, notes, empty."""
    titles, notes, empty = words
    return PartsPage(
        name=name, title=title, parts=parts, titles=titles, notes=notes, empty=empty, section=section, offered=offered,
        asked=judge_question, about=nothing_about,
    )  # fmt: skip


CALIBRATION = page_about_judges(
    name="calibration",
    title=gettext_lazy("Calibration"),
    parts=CALIBRATION_PARTS,
    words=(TITLES, NOTES, EMPTY),
    section=CalibrationSection,
    offered=_offered,
)
