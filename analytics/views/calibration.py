"""The Calibration page: one judge compared with the panel. Each section asks a question of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics.figures import Figure
from analytics.grids import NOTHING, CellRows, EstimateRow, GridCell, plain_value, rows_by
from analytics.item_choices import NOT_OF_ONE_ITEM
from analytics.judges import thresholds
from analytics.questions.asked import QuestionChoices
from analytics.questions.question import NumbersQuestion
from analytics.questions.question_names import column_name
from analytics.score_views import CLASS_NAMES
from analytics.views.parts import PartsPage, chosen_judge
from analytics.views.sections import (
    BAR_HEIGHT,
    BAR_WIDTH,
    Section,
    ShownSection,
    cells_by_variant,
    figure_cell,
    number_line,
    p_in_words,
    plain_cells,
)
from annotation.models import Campaign


# --- sections --------------------------------------------------------------------------------------------------------
def _bias(shown: ShownSection) -> None:
    campaign = shown.page.campaign
    declared = thresholds.current_thresholds(campaign.project)
    widths = {each.key: each.maximum - each.minimum for each in campaign.rubric_version.criteria.all()}
    share = declared.bias_margin if declared else None
    reach = _reach(shown.of("bias"), widths, share or 0.0)

    def build(found: CellRows) -> GridCell:
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
    text = _("The thresholds %(name)s allow a bias of %(share)s of the scale’s width: the pale band around zero.")
    no_margin = _("No thresholds are declared, so that no margin is drawn.")
    shown.note(
        text % {"name": declared, "share": f"{100 * share:g}%"} if share is not None else no_margin,
        _("The line of a cell spans %s of the scale’s width to both sides of zero.") % f"{100 * reach:.0f}%",
    )


def _reach(rows: Sequence[EstimateRow], widths: Mapping[str, float], margin: float) -> float:
    """How far every difference, its interval and the margin reach from zero, as a share of the scale's width."""
    far = [margin]
    for row in rows:
        if width := widths.get(plain_value(row.get("criterion"))):
            far += [abs(row[end]) / width for end in ("low", "value", "high") if row.get(end) is not None]
    return 1.1 * max(far) or 1.0


def _forest(row: EstimateRow, margin: float | None, reach: float) -> tuple[tuple[float, float, str], ...]:
    """The bars of a difference: the margin, the interval, zero and the value; `reach` points to both sides of zero."""

    def at(value: float) -> float:
        return round(BAR_WIDTH * (min(max(value, -reach), reach) + reach) / (2 * reach), 1)

    bars = []
    if margin is not None:
        bars.append((at(-margin), round(at(margin) - at(-margin), 1), "margin"))
    if row.get("low") is not None:
        bars.append((at(row["low"]), round(max(at(row["high"]) - at(row["low"]), 1.0), 1), "interval"))
    return (*bars, (at(0.0) - 0.5, 1.0, "zero"), (at(row["value"]) - 2, 4.0, "value"))


def _confusion(shown: ShownSection) -> None:
    column = shown.question.columns
    for place, rows in rows_by(shown.rows, column).items():
        pairs = [row for row in rows if " ~ " in (row["variant"] or "")]
        by_label = rows_by(pairs, _label)
        labels = list(by_label)
        totals = {
            label: sum(row["n_items"] for row in own if _score(row) in by_label) for label, own in by_label.items()
        }

        def build(found: CellRows, totals: Mapping[str, int] = totals) -> GridCell:
            row = next(iter(found.values()))
            return _share_cell(shown, row, totals[_label(row)], settled=_label(row), judged=_score(row))

        shown.table(
            pairs, build, down=_label, across=_score, corner=_("Reference"), downs=labels, acrosses=labels,
            below=lambda label, totals=totals: ngettext("%d item", "%d items", totals[label]) % totals[label],
            title=shown.name(column, place),
        )  # fmt: skip
    shown.note(_("Columns: the score of the judge. The shares are shown without intervals."))


def _label(row: EstimateRow) -> str:
    """The reference label of a cell of the confusion matrix, `label ~ score`."""
    return str(row["variant"]).split(" ~ ")[0]


def _score(row: EstimateRow) -> str:
    """The judge's score of a cell of the confusion matrix, `label ~ score`."""
    return str(row["variant"]).split(" ~ ")[1]


def _share_cell(shown: ShownSection, row: EstimateRow, total: int, **of_cell: str) -> GridCell:
    """A share of some items, with their number; it leads to the items that have these scores."""
    if row["value"] is None:
        return NOTHING
    figure = Figure.of(row)
    if "settled" in of_cell and row.get("reference") in NOT_OF_ONE_ITEM:
        settled = of_cell.pop("settled")
        of_cell |= {"scored": settled} if row["reference"] == "each" else {}
    counts = _("%(n)d of %(total)d") % {"n": round(row["value"] * total), "total": total}
    url = f"{shown.page.items_address(row)}&{urlencode(of_cell)}" if row["value"] else ""
    return GridCell(f"{100 * row['value']:.0f}%", (counts,), url=url, bin=figure.shade if row["value"] else None)


def _reliability(shown: ShownSection) -> None:
    column = shown.question.columns
    criterion = shown.page.campaign.rubric_version.criteria.filter(key=shown.criterion).first()
    rows = shown.of("beside.panel_given_judge")

    def build(found: CellRows) -> GridCell:
        """A cell links to the items with this judge's score. A range gets no such filter, because the list can't filter
        by ranges."""
        row = next(iter(found.values()))
        cell, score = figure_cell(shown.page, row, inked=False), row["variant"] or ""
        return cell if " " in score else replace(cell, url=f"{cell.url}&{urlencode({'judged': score})}")

    scores = sorted(rows_by(rows, "variant"), key=lambda score: float(score.split(" ")[0]))
    shown.table(
        rows, build, down=column, across="variant", acrosses=scores, column_name=lambda score: _("judge: %s") % score
    )
    curves = [
        _curve(own, criterion.minimum, criterion.maximum) if criterion else "" for own in rows_by(rows, column).values()
    ]
    shown.grids[:] = [
        replace(
            each,
            corner=column_name(column),
            rows=tuple(
                replace(row, curve=curve, is_diagonal=True) for row, curve in zip(each.rows, curves, strict=True)
            ),
        )
        for each in shown.grids
    ]


def _curve(rows: Sequence[EstimateRow], low: float, high: float) -> str:
    """The panel's mean by the judge's score, as points of a small chart; empty if scores are grouped into ranges."""
    if any(" " in (row["variant"] or "") for row in rows) or high <= low:
        return ""
    points = sorted((float(row["variant"]), row["value"]) for row in rows)
    across, up = BAR_WIDTH / (high - low), (BAR_HEIGHT - 4) / (high - low)
    return " ".join(f"{across * (x - low):.1f},{BAR_HEIGHT - 2 - up * (y - low):.1f}" for x, y in points)


def _classes(shown: ShownSection) -> None:
    column, judge = shown.question.columns, next(iter(shown.question.judges), "")
    names = {
        f"{name} {who}": f"{words} · {title}"
        for name, words in CLASS_NAMES.items()
        for who, title in (("", _("panel")), (judge, judge))
    }
    for place, rows in rows_by(shown.of("score_share"), column).items():
        totals = {key: max(row["n_ratings"] for row in own) for key, own in rows_by(rows, _class_and_judge).items()}

        def build(found: CellRows, totals: Mapping[str, int] = totals) -> GridCell:
            row = next(iter(found.values()))
            parameter = {"judged" if row["judge"] else "scored": row["variant"] or ""}
            return _share_cell(shown, row, totals[_class_and_judge(row)], **parameter)

        shown.table(
            rows, build, down=_class_and_judge, across="variant", corner=_("Class"), row_name=names.__getitem__,
            downs=[key for key in names if totals.get(key)], column_name=str, title=shown.name(column, place),
            below=lambda key, totals=totals: _("%d scores") % totals[key],
        )  # fmt: skip
    shown.note(_("The shares are shown without intervals."))


def _class_and_judge(row: EstimateRow) -> str:
    return f"{row['agreement_class']} {row['judge'] or ''}"


def _f1(shown: ShownSection) -> None:
    column = shown.question.columns

    def build(found: CellRows) -> GridCell:
        if (row := found.get("beside.f1")) is None:
            return NOTHING
        return figure_cell(shown.page, row, *number_line(_("annotators: %s"), found.get("beside.human_f1")))

    own = shown.of("beside.f1")
    shown.table(
        [*own, *shown.of("beside.human_f1")], build, down="variant", across=column, corner=_("Label"), row_name=str,
        downs=list(rows_by(own, "variant")), acrosses=list(rows_by(own, column)),
    )  # fmt: skip
    shown.note(_("The annotators’ F1 is shown without an interval."))


def _confidence(shown: ShownSection) -> None:
    further = [
        ("substituted", _("with the judge: %s")),
        ("paper_compat", _("by 100 random replacements: %s")),
    ]
    cells_by_variant(shown, "beside.verdict_confidence", "observed", further)


def _ceiling(shown: ShownSection) -> None:
    names = {"ceiling_accuracy": _("Share of equal scores"), "ceiling_pearson": _("Pearson’s r")}
    for statistic, title in names.items():
        further = [("judge", _("judge: %s")), ("human", _("annotators: %s"))]
        cells_by_variant(shown, statistic, "difference", further, title)
    shown.note(_("Above 0, the judge is closer to the other annotators than an annotator is."))


def _alt_test(shown: ShownSection) -> None:
    def place(row: EstimateRow) -> str:
        return f"{plain_value(row.get('criterion'))} ~ {plain_value(row.get(shown.question.columns))}"

    found = rows_by(shown.of("alt_test.alt_test_rho"), place)

    def build(given: CellRows) -> GridCell:
        row = given["alt_test.alt_test_omega"]
        rows = found.get(place(row), [])
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
    shown.note(_("ω is a decision and has no interval. At 50% or more the judge passes."))


_ALT_WORDS = {
    "beaten": gettext_lazy("can stand in"),
    "not beaten": gettext_lazy("can’t stand in"),
    "too few items: listed, not tested": gettext_lazy("too few items to test"),
}


def _power(shown: ShownSection) -> None:
    rows = shown.of("alt_test.alt_test_power")

    def build(found: CellRows) -> GridCell:
        row = next(iter(found.values()))
        figure, url = Figure.of(row), shown.page.items_address(row)
        return GridCell(f"{100 * row['value']:.0f}%", (figure.basis,), url=url, title=figure.note)

    sizes = sorted(rows_by(rows, "variant"), key=lambda size: int(size.split(" ")[0]))
    shown.table(
        rows, build, down="variant", across=shown.question.columns, corner=_("Study of"), row_name=str, downs=sizes
    )
    shown.note(_("An estimate from this study, without an interval; ε = 0.15."))


def _judges(shown: ShownSection) -> None:
    def build(found: CellRows) -> GridCell:
        if "judges.spearman" not in found:
            return NOTHING
        lines = number_line(_("equal: %s"), found.get("judges.accuracy"))
        return figure_cell(shown.page, found["judges.spearman"], *lines)

    shown.table(
        [row for row in shown.rows if row["raters"]],
        build,
        down=lambda row: row["raters"][0],
        across=lambda row: row["raters"][1],
        corner=_("Judge"),
        is_mirrored=True,
    )


# --- the page ---
def _offered(campaign: Campaign, question: NumbersQuestion, choices: QuestionChoices) -> dict[str, Any]:
    """What the page needs: the judges to choose from, or the sentences that say what is missing."""
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


CALIBRATION = PartsPage(
    name="calibration",
    title=gettext_lazy("Calibration"),
    sections=(
        Section(
            "bias",
            title=gettext_lazy("Bias: judge minus panel"),
            about=gettext_lazy("Mean of judge minus the panel’s mean, or another reference, in points."),
            empty=gettext_lazy("A bias needs items with scores in order by the judge and by the panel."),
            terms=("calibration", "bias", "reference", "interval", "approximate"),
            build=_bias,
            statistics=("bias",),
            columns="language",
            needs_order=True,
        ),
        Section(
            "confusion",
            title=gettext_lazy("Confusion with the reference label"),
            about=gettext_lazy(
                "Of the items with this reference label (row), the share that the judge gives each score (column)."
            ),
            empty=gettext_lazy("A confusion matrix needs items with a reference label and a score by the judge."),
            build=_confusion,
            statistics=("beside.confusion",),
            columns="language",
            one_criterion=True,
        ),
        Section(
            "reliability",
            title=gettext_lazy("Mean score of the panel for each score of the judge"),
            about=gettext_lazy(
                "The mean score of the panel on the items to which the judge gives this score. "
                "The dashed line: the panel gives the same score."
            ),
            empty=gettext_lazy("Nothing is scored by the judge and by the panel."),
            build=_reliability,
            statistics=("beside.panel_given_judge",),
            columns="language",
            one_criterion=True,
            needs_order=True,
        ),
        Section(
            "classes",
            title=gettext_lazy("Scores by class of agreement"),
            about=gettext_lazy("Where annotators agree less, does the judge still give the top score?"),
            empty=gettext_lazy("Classes need items with two scores or more."),
            build=_classes,
            statistics=("score_share",),
            columns="language",
            one_criterion=True,
            is_catalogue=True,
        ),
        Section(
            "f1",
            title=gettext_lazy("F1 of each label, beside the annotators’"),
            about=gettext_lazy(
                "F1 of the judge against every annotator, averaged; below it that of the annotators against each other."
            ),
            empty=gettext_lazy("F1 needs items that an annotator and the judge scored."),
            build=_f1,
            statistics=("beside.f1", "beside.human_f1"),
            columns="language",
            one_criterion=True,
            is_catalogue=True,
        ),
        Section(
            "correlation",
            title=gettext_lazy("Correlation with the panel"),
            about=gettext_lazy("Spearman’s ρ with the reference; below it Kendall’s τ-b and Pearson’s r."),
            empty=gettext_lazy("A correlation needs scores in order by the judge and by the panel."),
            build=plain_cells,
            statistics=("spearman", "kendall_tau_b", "pearson"),
            columns="language",
            needs_order=True,
        ),
        Section(
            "pooled",
            title=gettext_lazy("Correlation, criteria pooled"),
            about=gettext_lazy(
                "Spearman’s ρ over all items and criteria together, for each generator. "
                "What differs between criteria counts as correlation here: compare it with the section above."
            ),
            empty=gettext_lazy("A correlation needs generators, and scores in order by the judge and by the panel."),
            build=plain_cells,
            statistics=("spearman",),
            rows="generator",
            columns="language",
            needs_order=True,
            is_catalogue=True,
        ),
        Section(
            "confidence",
            title=gettext_lazy("Verdict Confidence with the judge on the panel"),
            about=gettext_lazy(
                "The share of the panel that gave the most frequent score, mean over items; and the same with the "
                "judge in one annotator’s place."
            ),
            empty=gettext_lazy("Verdict Confidence needs items with two scores or more and one by the judge."),
            build=_confidence,
            statistics=("beside.verdict_confidence",),
            columns="language",
            is_catalogue=True,
        ),
        Section(
            "alt-test",
            title=gettext_lazy("Alternative annotator test"),
            about=gettext_lazy(
                "The share of annotators (ω) whom the judge could stand in for, with ε = 0.15, and ρ: how often it is "
                "at least as close to the others as an annotator is. Benjamini-Yekutieli at 0.05."
            ),
            empty=gettext_lazy("The test needs two annotators, known as persons, with 30 items each."),
            terms=("omega",),
            build=_alt_test,
            statistics=("alt_test.alt_test_omega", "alt_test.alt_test_rho"),
            columns="language",
        ),
        Section(
            "power",
            title=gettext_lazy("Power of the alternative annotator test"),
            about=gettext_lazy(
                "The share of 200 simulated studies, drawn from these items, in which the judge passes."
            ),
            empty=gettext_lazy("The power needs two annotators, known as persons, with 30 items each."),
            build=_power,
            statistics=("alt_test.alt_test_power",),
            columns="language",
            one_criterion=True,
            is_catalogue=True,
        ),
        Section(
            "ceiling",
            title=gettext_lazy("Human ceiling"),
            about=gettext_lazy(
                "How well the judge agrees with all annotators but one, minus how well that annotator agrees with the "
                "same others. The latter is the human ceiling: above 0, the judge agrees with people better than one "
                "of them does."
            ),
            empty=gettext_lazy("The human ceiling needs items that two annotators and the judge scored."),
            terms=("ceiling",),
            build=_ceiling,
            statistics=("ceiling_accuracy", "ceiling_pearson"),
            columns="language",
        ),
        Section(
            "judges",
            title=gettext_lazy("Judge against judge"),
            about=gettext_lazy(
                "Spearman’s ρ of two judges’ scores of the same items; below it the share of equal scores."
            ),
            empty=gettext_lazy("Only one judge has been run on these items."),
            build=_judges,
            statistics=("judges.spearman", "judges.accuracy"),
            one_criterion=True,
            is_catalogue=True,
        ),
    ),
    offered=_offered,
    has_reference=True,
)
