"""The Planner page: the labels, items and raters that a study needs, from the campaign as its pilot (METHODS 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics import planning
from analytics.agreement import AgreementPart
from analytics.answer_pages import AnswerPage, plain_value
from analytics.figures import SMALL, Figure
from analytics.question_names import column_name
from analytics.questions import NumbersQuestion, QuestionChoices
from analytics.views import parts
from analytics.views.agreement_sections import NOTHING, AgreementSection, Grid, GridCell, GridRow
from analytics.views.calibration import nothing_about
from analytics.views.parts import PLANNER_PARTS, PartsPage, parameter_pairs
from annotation.models import Campaign

TITLES = {
    "labels": gettext_lazy("Labels for a mean"),
    "budget": gettext_lazy("What the budget pays for"),
    "items": gettext_lazy("Items for agreement"),
    "raters": gettext_lazy("Raters per item"),
    "test": gettext_lazy("Power of the alternative annotator test"),
}
NOTES = {
    "labels": gettext_lazy(
        "Labelled items with which the mean of the panel is known to the half width at 95%; below it the same with the "
        "judge’s scores of all items beside the labels (PPI++)."
    ),
    "budget": gettext_lazy("Labels in each language, by its most varied criterion and its price; at least 30 each."),
    "items": gettext_lazy("Items with which Krippendorff’s α is known to the half width at 95%."),
    "raters": gettext_lazy("The number of annotators per item that gives their mean this reliability."),
    "test": gettext_lazy("The share of 200 simulated studies, drawn from these items, in which the judge passes."),
}
EMPTY = {
    "labels": gettext_lazy("A plan needs labelled items with scores in order that vary."),
    "budget": gettext_lazy("Give a budget above. A plan needs labelled items with scores in order that vary."),
    "items": gettext_lazy("A plan for α needs items with two ratings or more."),
    "raters": gettext_lazy("A plan for raters needs items with two ratings or more, in order."),
    "test": gettext_lazy("The power needs a judge, and two annotators, known as persons."),
}
FEWEST_FOR_CORRECTION = 20
"""Labels below which PPI++ is refused (METHODS 3)."""


class PlannerSection(AgreementSection):
    """A section of the Planner page."""

    def build(self) -> None:
        _BUILDERS[self.part.name](self)


def _count(value: float) -> str:
    return f"{round(value):,}"


def _cell(row: Mapping[str, Any] | None, *lines: str) -> GridCell:
    """A number of things with what it rests on; why there is none."""
    if row is None:
        return NOTHING
    figure = Figure.of(row)
    pilot = _("pilot: %s") % figure.basis
    if row["value"] is None:
        return GridCell(lines=(_("undefined"), figure.reason, pilot))
    return GridCell(_count(row["value"]), tuple(line for line in (*lines, pilot) if line), title=figure.note)


# --- sections --------------------------------------------------------------------------------------------------------
def _plain(statistic: str, shown: AgreementSection) -> None:
    shown.cells_of(lambda found: _cell(found.get(statistic)))
    if shown.grids and statistic == "plan.items_needed":
        shown.notes.append(_("A decision about a judge needs at least %d items all the same.") % SMALL)
    if shown.grids:
        shown.notes.append(_("An estimate from the ratings so far, without an interval."))


def _labels(shown: AgreementSection) -> None:
    rows = [row for row in shown.rows if row["asked"] == "plan.labels_needed"]
    question = shown.question
    places = {(row.get(question.rows), row.get(question.columns), row["variant"]): row for row in rows}

    def build(found: dict[str, Mapping[str, Any]]) -> GridCell:
        row = found["plan.labels_needed"]
        key = row.get(question.rows), row.get(question.columns)
        with_judge = places.get((*key, "judge"))
        return _cell(places.get((*key, "humans")), _with_judge(with_judge))

    shown.cells_of(build)
    if shown.grids:
        shown.notes.append(_("An estimate from the ratings so far, without an interval. Clusters are not counted in."))


def _with_judge(row: Mapping[str, Any] | None) -> str:
    """The labels with a judge beside them; a correction takes `FEWEST_FOR_CORRECTION` at least."""
    if row is None or row["value"] is None:
        return ""
    if row["value"] < FEWEST_FOR_CORRECTION:
        return _("with the judge: %d, the fewest for a correction") % FEWEST_FOR_CORRECTION
    return _("with the judge: %s") % _count(row["value"])


def _budget(shown: AgreementSection) -> None:
    rows = [row for row in shown.rows if row["asked"] == "plan.labels_affordable"]
    there = {row["language"]: row for row in rows if row["value"] is not None}
    if not there:
        return
    cells = tuple(
        GridRow(shown.name("language", tag), (GridCell(_count(there[tag]["value"]), (str(there[tag]["note"]),)),))
        for tag in shown.axis("language", list(there.values()))
    )
    shown.grids.append(Grid(column_name("language"), (_("Labels"),), cells))
    total = sum(round(row["value"]) for row in there.values())
    shown.notes.append(ngettext("%d label in all.", "%d labels in all.", total) % total)


def _test(shown: AgreementSection) -> None:
    rows = [row for row in shown.rows if row["asked"] == "plan.alt_test_power" and row["variant"]]
    column = shown.question.columns
    sizes = sorted({row["variant"] for row in rows}, key=lambda size: int(size.split(" ")[0]))
    found = {(row["variant"], plain_value(row.get(column))): row for row in rows}
    places = shown.axis(column, rows)
    cells = tuple(GridRow(size, tuple(_power(found.get((size, place))) for place in places)) for size in sizes)
    if rows:
        names = tuple(shown.name(column, place) for place in places)
        shown.grids.append(Grid(_("Study of"), names, cells))
        shown.notes.append(_("An estimate from these items, without an interval."))


def _power(row: Mapping[str, Any] | None) -> GridCell:
    if row is None or row["value"] is None:
        return _cell(row)
    return replace(_cell(row), number=f"{100 * row['value']:.0f}%")


_BUILDERS: dict[str, Callable[[AgreementSection], None]] = {
    "labels": _labels,
    "budget": _budget,
    "items": partial(_plain, "plan.items_needed"),
    "raters": partial(_plain, "plan.raters_needed"),
    "test": _test,
}


# --- the page --------------------------------------------------------------------------------------------------------
def _section(part: AgreementPart, page: AnswerPage, asked: NumbersQuestion, about: str) -> AgreementSection:
    return PlannerSection(part, page, asked, about)


def _asked(
    campaign: Campaign, part: AgreementPart, question: NumbersQuestion, choices: QuestionChoices
) -> NumbersQuestion:
    """The question of a section; a budget is split over languages."""
    asked = parts.judge_question(campaign, part, question, choices)
    return replace(asked, columns="language") if part.name == "budget" else asked


def _pairs(fields: QueryDict) -> list[tuple[str, str]]:
    """The parameters of an address, the form's own fields as goals."""
    own = (*planning.NUMBERS, "split", "prices")
    plain = [pair for pair in parameter_pairs(fields) if pair[0] not in own]
    return plain + planning.goals_of_form({name: fields.get(name, "") for name in own})


def _offered(campaign: Campaign, question: NumbersQuestion, choices: QuestionChoices) -> dict[str, Any]:
    """The judges to choose from and the goals; or what is missing."""
    if not choices.raters:
        more = _("A plan takes ratings as its pilot: let a panel rate a few items, or import ratings.")
        return {"nothing": _("Nobody has rated these items"), "nothing_more": more}
    found = dict(question.goals)
    goals = {name: found.get(name, planning.USUAL.get(name, "")) for name in (*planning.NUMBERS, "split")}
    example = ", ".join(f"{tag} {price}" for tag, price in zip(choices.languages, ("1.5", "2"), strict=False))
    return {
        "judges": choices.judges,
        "judge": parts.chosen_judge(question, choices),
        "goals": {**goals, "prices": planning.prices_text(question.goals)},
        "goals_example": example,
        "form_note": _("The ratings of this campaign are the pilot. All figures are for items and raters like these."),
    }


PLANNER = PartsPage(
    name="planner",
    title=gettext_lazy("Planner"),
    parts=PLANNER_PARTS,
    titles=TITLES,
    notes=NOTES,
    empty=EMPTY,
    asked=_asked,
    section=_section,
    offered=_offered,
    about=nothing_about,
    pairs=_pairs,
)
