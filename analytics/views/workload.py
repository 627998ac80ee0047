"""The panel's work, for leads: progress, pace, forecast, flags and pay; and each annotator beside the others."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts import access, audit, refusals
from accounts.models import Role, User
from analytics import agreement, answer_pages, open_work, page_cache, tasks, workload
from analytics.grids import NOTHING, CellRows, GridCell
from analytics.questions.asked import QuestionChoices, question_of
from analytics.questions.question import NumbersQuestion
from analytics.views.agreement import part_question
from analytics.views.exports import download
from analytics.views.items import shown_campaign
from analytics.views.parts import PartsPage
from analytics.views.sections import Section, ShownSection, figure_cell, plain_cells, severities_in_words
from analytics.workload import position_preferences
from annotation import pay
from annotation.models import Campaign, Duty, PayRate
from annotation.writers.csv import csv_lines


def led_campaign(user: User, project: str, campaign: int) -> Campaign:
    """The campaign, to leads of its project."""
    access.require(user=user, slug=project, roles=(Role.LEAD,))
    return shown_campaign(user, project, campaign)


@require_safe
@login_required
@page_cache.cached_page
def workload_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Progress, pace, forecast, flags and pay of every duty and annotator of a campaign."""
    current = led_campaign(request.user, project, campaign)
    work, positions = workload.workload(current), position_preferences(current)
    question = question_of(workload.severity_question(current))
    snapshot, is_stale = answer_pages.current_answer(current, question)
    if is_stale and any(duty.submitted for duty in work.duties):
        tasks.ask_to_compute(campaign=current, settings=question)
    severity = workload.severity_flags(snapshot.content["estimates"] if snapshot else [])
    for duty in work.duties:
        for one in duty.annotators:
            one.flags += severity.get(one.work.pseudonym, [])
    names = {person.pk: open_work.person_name(person, with_name=True) for person in workload.people_of(current)}
    still_open = workload.open_items(current)
    for duty in work.duties:
        for one in duty.annotators:
            one.name = names.get(one.work.annotator, "")
            one.open_items = still_open.get(duty.duty.pk, {}).get(one.work.annotator, 0)
        known = {one.work.annotator for one in duty.annotators}
        duty.waiting.extend(
            (names.get(pk, ""), n) for pk, n in still_open.get(duty.duty.pk, {}).items() if pk not in known
        )
    context = {
        "title": _("The panel’s work"),
        "project": current.project,
        "campaign": current,
        "work": work,
        "positions": [(row.duty, found) for row in work.duties if (found := positions.get(row.duty.pk))],
        "units": PayRate.Unit.choices,
        "is_stale": is_stale and snapshot is None,
        "days": workload.DAYS,
    }
    return render(request, "analytics/workload.html", context)


@require_POST
@login_required
def set_rate_view(request: HttpRequest, project: str, campaign: int, duty: int) -> HttpResponse:
    """Set what a duty is paid."""
    current = led_campaign(request.user, project, campaign)
    paid = get_object_or_404(Duty.objects.filter(campaign=current), pk=duty)
    with refusals.refusals_as_messages(request):
        amount = _decimal(request.POST.get("amount", ""))
        pay.set_pay_rate(duty=paid, unit=request.POST.get("unit", ""), amount=amount, actor=request.user)
        messages.success(request, _("The pay of “%s” is set.") % paid)
    return redirect("workload", project, current.pk)


def _decimal(text: str) -> Decimal | None:
    """The amount, with a point or a comma; None for anything else."""
    try:
        return Decimal(text.strip().replace(",", "."))
    except InvalidOperation:
        return None


@require_safe
@login_required
def pay_sheet(request: HttpRequest, project: str, campaign: int) -> HttpResponseBase:
    """The pay sheet as CSV: a row for each duty and annotator, by pseudonym."""
    current = led_campaign(request.user, project, campaign)
    audit.record(
        actor=request.user, project=current.project, verb="export pay-sheet", subject=current, fields=["format=csv"]
    )
    lines = (line.encode() for line in csv_lines(pay.SHEET, pay.pay_rows(current)))
    name = f"{slugify(current.name) or f'campaign-{current.pk}'}-pay-sheet.csv"
    return download(lines, name=name, media_type="text/csv; charset=utf-8")


# --- each annotator beside the others: sections that are questions ---------------------------------------------------
_EMPTY = gettext_lazy("This needs two annotators who score the same items.")


def _severities(shown: ShownSection) -> None:
    def build(found: CellRows) -> GridCell:
        row = found.get("annotators.severity")
        return figure_cell(shown.page, row, inked=False, is_difference=True) if row else NOTHING

    shown.cells_of(build)
    severities_in_words(shown, "annotators.severity")


def _asked(campaign: Campaign, part: Section, question: NumbersQuestion, choices: QuestionChoices) -> NumbersQuestion:
    return replace(part_question(part, question, choices.criteria, len(choices.raters)), pool=False)


def _offered(campaign: Campaign, question: NumbersQuestion, choices: QuestionChoices) -> dict[str, Any]:
    return {"workload_address": reverse("workload", args=[campaign.project.slug, campaign.pk])}


ANNOTATORS = PartsPage(
    name="annotators",
    title=gettext_lazy("Annotators"),
    sections=(
        Section(
            "severity",
            title=gettext_lazy("Severity: who gives lower or higher scores?"),
            about=gettext_lazy(
                "The annotator’s score less the mean of the others, over the items that both scored, in points. Below "
                "0: lower scores than the others."
            ),
            empty=_EMPTY,
            terms=("severity", "interval", "cluster"),
            build=_severities,
            statistics=("annotators.severity",),
            rows="annotator",
            columns="criterion",
        ),
        Section(
            "others",
            title=gettext_lazy("Agreement with the others"),
            about=gettext_lazy(
                "Cohen’s κ with each other annotator on their common items, averaged; on ordered scales with quadratic "
                "weights. Below it the share of equal scores."
            ),
            empty=_EMPTY,
            terms=("kappa",),
            build=plain_cells,
            statistics=("annotators.cohen_kappa", "annotators.accuracy"),
            rows="annotator",
            columns="criterion",
        ),
        Section(
            "weeks",
            title=gettext_lazy("Agreement with the others over time"),
            about=gettext_lazy("Each item counts in the week of its last rating, so that its ratings stay together."),
            empty=_EMPTY,
            build=plain_cells,
            statistics=("annotators.cohen_kappa", "annotators.accuracy"),
            rows="annotator",
            columns="week",
            one_criterion=True,
        ),
        Section(
            "scores",
            title=gettext_lazy("The most frequent score of each annotator"),
            about=gettext_lazy(
                "The share of the scores on the point that the annotator gives most, and the same share of the others "
                "on these items. A large difference may mean that one score is given to everything."
            ),
            empty=_EMPTY,
            build=plain_cells,
            statistics=("annotators.same_score", "annotators.same_score_of_others"),
            rows="annotator",
            columns="criterion",
        ),
    ),
    asked=_asked,
    offered=_offered,
    about=agreement.coefficient_of,
)
