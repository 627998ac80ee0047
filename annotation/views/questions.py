"""The questions of annotators about items, and what they answered to the closing questionnaire; for leads."""

from __future__ import annotations

import csv

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import slugify
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, audit
from accounts.inputs import without_nul
from accounts.models import Role
from accounts.refusals import Refused
from annotation import questionnaires
from annotation.desk import threads
from annotation.models import Campaign

MOST_QUESTIONS = 300


def _led(request: HttpRequest, project: str, campaign: int) -> Campaign:
    current = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    return get_object_or_404(Campaign.objects.visible_to(request.user).filter(project=current), pk=campaign)


@require_safe
@login_required
def questions_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The questions of a campaign's annotators: those without an answer first."""
    current = _led(request, project, campaign)
    found = list(threads.questions_in(current)[: MOST_QUESTIONS + 1])
    context = {
        "title": _("Questions of annotators"),
        "project": current.project,
        "campaign": current,
        "unanswered": [one for one in found[:MOST_QUESTIONS] if one.answered_at is None],
        "answered": [one for one in found[:MOST_QUESTIONS] if one.answered_at],
        "most": MOST_QUESTIONS if len(found) > MOST_QUESTIONS else None,
    }
    return render(request, "annotation/questions.html", context)


@require_POST
@login_required
def answer_question(request: HttpRequest, project: str, campaign: int, question: int) -> HttpResponse:
    """Answer a question, or change its answer."""
    current = _led(request, project, campaign)
    asked = get_object_or_404(threads.questions_in(current), pk=question)
    text, broadcast = without_nul(request.POST.get("answer", "")), "broadcast" in request.POST
    seen = request.POST.get("seen")
    try:
        threads.answer_item_question(question=asked, text=text, broadcast=broadcast, seen=seen, actor=request.user)
        messages.success(request, _("Annotators see your answer now."))
    except Refused as refused:
        messages.error(request, refused.sentence)
    return redirect("annotator_questions", project=project, campaign=campaign)


@require_http_methods(["GET", "POST"])
@login_required
def questionnaire_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """GET: what annotators answered, in groups. POST: switch the questionnaire on or off (`asked`)."""
    current = _led(request, project, campaign)
    if request.method == "POST":
        asked = request.POST.get("asked") == "yes"
        questionnaires.switch_questionnaire(campaign=current, asked=asked, actor=request.user)
        return redirect("questionnaire", project=project, campaign=campaign)
    results = questionnaires.closing_results(current)
    language = get_language() or "en"
    context = {
        "title": _("Closing questionnaire"),
        "project": current.project,
        "campaign": current,
        "results": results,
        "rows": [(questionnaires.name_of_criterion(row.criterion, language), row) for row in results.rows],
        "fewest": questionnaires.FEWEST_PEOPLE,
    }
    return render(request, "annotation/questionnaire.html", context)


@require_safe
@login_required
def questionnaire_csv(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The same as CSV, without the comments: a row for each criterion and language."""
    current = _led(request, project, campaign)
    audit.record(actor=request.user, project=current.project, verb="export questionnaire", subject=current)
    name = f"{slugify(current.name) or f'campaign-{current.pk}'}-questionnaire.csv"
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    writer = csv.writer(response, lineterminator="\n")
    writer.writerow(questionnaires.SHEET)
    writer.writerows(questionnaires.closing_rows(questionnaires.closing_results(current)))
    return response
