"""The Rater models page: what models of raters add to the coefficients of Agreement (docs/methods/raters.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics.agreement import chosen_criterion
from analytics.figures import Figure
from analytics.grids import NOTHING, CellRows, EstimateRow, GridCell, plain_value
from analytics.questions.asked import QuestionChoices
from analytics.questions.question import NumbersQuestion
from analytics.views.parts import PartsPage, chosen_judge
from analytics.views.sections import Section, ShownSection, figure_cell, p_in_words, severities_in_words
from annotation.models import Campaign

_SEVERITY, INFIT, SHARE, DEPENDABILITY, ACCURACY = (
    f"raters.{name}"
    for name in ("rasch_severity", "rasch_infit", "variance_share", "dependability", "annotator_accuracy")
)
SHIFT, UNIFORM, NONUNIFORM = (f"severity.severity_{name}" for name in ("shift", "uniform", "nonuniform"))
SOURCES = {
    "item": gettext_lazy("Items: what is to be measured"),
    "rater": gettext_lazy("Raters: severity"),
    "language": gettext_lazy("Languages"),
    "criterion": gettext_lazy("Criteria"),
    "item x criterion": gettext_lazy("Items on single criteria"),
    "rater x criterion": gettext_lazy("Raters on single criteria"),
    "residual": gettext_lazy("The rest: raters on single items, and chance"),
}
ERRATIC, MUTED = 1.5, 0.5


# --- sections --------------------------------------------------------------------------------------------------------
def _severity(shown: ShownSection) -> None:
    judges = {plain_value(row["annotator"]) for row in shown.rows if row["judge"]}

    def build(found: CellRows) -> GridCell:
        row = found.get(_SEVERITY)
        if row is None:
            return NOTHING
        cell = figure_cell(shown.page, row, *_infit(found.get(INFIT)), inked=False, is_difference=True)
        figure = Figure.of(row)
        if not figure.is_defined:
            return cell
        clear = _("scores lower") if (figure.value or 0) < 0 else _("scores higher")
        words = clear if figure.excludes_zero else _("no clear difference")
        return replace(cell, lines=(words, *cell.lines))

    shown.cells_of(build)
    for place, grid in enumerate(shown.grids):
        rows = (replace(row, name=_("%s (judge)") % row.name) if row.name in judges else row for row in grid.rows)
        shown.grids[place] = replace(grid, corner=_("Rater"), rows=tuple(rows))
    severities_in_words(shown, _SEVERITY)
    shown.note(_("Intervals are for each rater separately, for these raters and items like these."))


def _infit(row: EstimateRow | None) -> list[str]:
    if row is None or row["value"] is None:
        return []
    words = (
        _("erratic") if row["value"] > ERRATIC else _("more predictable than expected") if row["value"] < MUTED else ""
    )
    number = _("infit %s") % Figure.of(row).number
    return [f"{number}, {words}" if words else number]


def _variance(shown: ShownSection) -> None:
    def build(found: CellRows) -> GridCell:
        row = found.get(SHARE)
        if row is None:
            return NOTHING
        figure = Figure.of(row)
        cell = figure_cell(shown.page, row, inked=False)
        return replace(cell, bin=figure.shade if figure.value and not cell.few else None)

    shown.cells_of(build)
    order = list(map(str, SOURCES.values()))
    for place, grid in enumerate(shown.grids):
        named = [replace(row, name=str(SOURCES.get(row.name, row.name))) for row in grid.rows]
        rows = tuple(sorted(named, key=lambda row: order.index(row.name) if row.name in order else len(order)))
        shown.grids[place] = replace(grid, corner=_("Source"), rows=rows)
    shown.note(_("Shares add up to 100%. Intervals are for these raters and these languages."))


def _study(shown: ShownSection) -> None:
    shown.cells_of(lambda found: figure_cell(shown.page, found[DEPENDABILITY], inked=False))
    for place, grid in enumerate(shown.grids):
        rows = sorted((row for row in grid.rows if row.name.isdigit()), key=lambda row: int(row.name))
        named = (replace(row, name=ngettext("%d rater", "%d raters", int(row.name)) % int(row.name)) for row in rows)
        shown.grids[place] = replace(grid, corner=_("Mean of"), rows=tuple(named))
    shown.grids[:] = [grid for grid in shown.grids if grid.rows]


def _errors(shown: ShownSection) -> None:
    def build(found: CellRows) -> GridCell:
        cell = figure_cell(shown.page, found[ACCURACY], inked=False)
        without = Figure.of(found[ACCURACY]).no_interval  # not repeated in every cell: a note below the table says it
        return replace(cell, lines=tuple(line for line in cell.lines if line != without))

    shown.cells_of(build)
    shown.note(_("The model gives no intervals. Its figures are too high where annotators make the same errors."))


def _languages(shown: ShownSection) -> None:
    def build(found: CellRows) -> GridCell:
        row = found.get(SHIFT)
        if row is None:
            return _tests(found)
        figure = Figure.of(row)
        if not figure.is_defined:
            return figure_cell(shown.page, row)
        clear = _("more lenient") if (figure.value or 0) > 0 else _("more severe")
        words = clear if figure.excludes_zero else _("no clear difference")
        return figure_cell(shown.page, row, words, inked=False)

    shown.cells_of(build)
    if shown.grids:
        against = sorted({str(row["note"]).partition(";")[0].removeprefix("against ") for row in shown.of(SHIFT)})
        names = ", ".join(shown.name("language", tag) for tag in against)
        shown.notes.append(_("Each language is compared with: %s.") % names)
        shown.notes.append(_("The tests are approximate: they take items for independent."))


def _tests(found: CellRows) -> GridCell:
    """Tests over all languages together: whether there is a difference, and whether it changes along the scale."""
    words = {UNIFORM: _("a difference everywhere: %s"), NONUNIFORM: _("a difference that changes along the scale: %s")}
    rows = [(text, found[name]) for name, text in words.items() if name in found and found[name]["value"] is not None]
    return GridCell(lines=tuple(text % p_in_words(row["value"]) for text, row in rows))


# --- the page --------------------------------------------------------------------------------------------------------
def rater_question(
    campaign: Campaign, part: Section, question: NumbersQuestion, choices: QuestionChoices
) -> NumbersQuestion:
    """The question of a section, with the page's filters, raters and exclusions. Only the section `languages` is about
    a judge."""
    where = question.where
    if part.one_criterion and (chosen := chosen_criterion(question, choices.criteria)):
        where = (*(pair for pair in where if pair[0] != "criterion"), ("criterion", chosen))
    judge = chosen_judge(question, choices)
    judges = (judge,) if judge and part.name == "languages" else ()
    return replace(
        question, rows=part.rows, columns=part.columns, statistics=part.statistics, where=tuple(sorted(where)),
        judges=judges, juries=(), reference="", ties="exclude", pool=False, measures=(), goals=(),
        variants=("corrected",) if part.name == "languages" else (),
    )  # fmt: skip


def _offered(campaign: Campaign, question: NumbersQuestion, choices: QuestionChoices) -> dict[str, Any]:
    """What the page needs: the judges to choose from, or the sentences that say what is missing."""
    if not choices.raters:
        more = _("Models of raters need a panel: let it rate, or import ratings.")
        return {"nothing": _("Nobody has rated these items"), "nothing_more": more}
    note = _("The chosen judge counts in the last section; all judges stand in the first one.")
    return {
        "judges": choices.listed_judges(question),
        "judge": chosen_judge(question, choices),
        "form_note": note,
    }


RATER_MODELS = PartsPage(
    name="raters",
    title=gettext_lazy("Rater models"),
    sections=(
        Section(
            "severity",
            title=gettext_lazy("Severity of annotators and judges on one scale"),
            about=gettext_lazy(
                "Beyond agreement: who scores lower or higher than the panel, whatever items each of them had. "
                "Many-facet Rasch model, from pairs of scores on one item, in logits. 0 is the mean annotator; below "
                "0: lower scores. Infit is near 1 where the model fits, above 1.5 erratic, below 0.5 more predictable "
                "than expected."
            ),
            empty=gettext_lazy("This needs raters who scored the same items, on a scale with an order."),
            terms=("severity", "infit", "interval", "cluster"),
            build=_severity,
            statistics=(_SEVERITY, INFIT),
            rows="annotator",
            columns="criterion",
            needs_order=True,
        ),
        Section(
            "variance",
            title=gettext_lazy("Where the differences between scores come from"),
            about=gettext_lazy(
                "Beyond agreement: what to work on. A large share of raters asks for training, one of languages for a "
                "look at the translations. A large rest asks for a clearer rubric or more raters. Generalizability "
                "theory, Henderson’s method 1; annotators only."
            ),
            empty=gettext_lazy(
                "This needs two annotators or more who scored the same items, on a scale with an order."
            ),
            build=_variance,
            statistics=(SHARE,),
            rows="variant",
            columns="criterion",
            needs_order=True,
        ),
        Section(
            "study",
            title=gettext_lazy("How dependable is a mean of several raters?"),
            about=gettext_lazy(
                "Beyond agreement: how many raters an item needs. Φ is the share of the items’ variance in the mean of "
                "so many raters; .8 is often asked for. The Planner turns it into a number of raters."
            ),
            empty=gettext_lazy(
                "This needs two annotators or more who scored the same items, on a scale with an order."
            ),
            terms=("dependability",),
            build=_study,
            statistics=(DEPENDABILITY,),
            rows="variant",
            columns="criterion",
            needs_order=True,
            is_catalogue=True,
        ),
        Section(
            "errors",
            title=gettext_lazy("How often each annotator gives the right score"),
            about=gettext_lazy(
                "Beyond agreement: how often each annotator gives the score that the model takes for the right one. "
                "Dawid and Skene’s model, fitted in each language by EM. It takes the panel’s errors for independent; "
                "judges have no part in it."
            ),
            empty=gettext_lazy("This needs annotators who scored the same items."),
            build=_errors,
            statistics=(ACCURACY,),
            rows="annotator",
            columns="language",
            one_criterion=True,
            is_catalogue=True,
        ),
        Section(
            "languages",
            title=gettext_lazy("Is the judge more lenient in one language?"),
            about=gettext_lazy(
                "Beyond bias by language: a test on answers that the panel finds equally good. Differential item "
                "functioning: a cumulative logit of the judge’s score on the panel’s mean. In logits against the pivot "
                "language; above 0: the judge is more lenient."
            ),
            empty=gettext_lazy("This needs a judge and a panel that scored items in two languages or more."),
            build=_languages,
            statistics=(SHIFT, UNIFORM, NONUNIFORM),
            columns="language",
        ),
    ),
    asked=rater_question,
    offered=_offered,
)
