"""The Agreement page: a matrix of one coefficient, and sections on who and what makes raters agree."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts.refusals import Refused
from analytics import agreement, answers, computing, questions, tasks
from analytics.agreement import PARTS, AgreementPart
from analytics.questions import NumbersQuestion, QuestionChoices
from analytics.views.agreement_sections import COEFFICIENT_NAMES, TITLES, AgreementSection
from analytics.views.explore import AnswerPage, QuestionForm, criterion_names
from analytics.views.items import shown_campaign
from annotation.models import Campaign

SECTION_NOTES = {
    "matrix": gettext_lazy("Large: the coefficient, with its interval. Below: percent agreement and Gwet’s AC."),
    "annotators": gettext_lazy(
        "The coefficient without the annotator, and the change: without minus with. Above 0: the others agree better "
        "without this annotator."
    ),
    "pairs": gettext_lazy(
        "Cohen’s κ of two annotators on the items that both scored; on ordered scales with quadratic weights."
    ),
    "classes": gettext_lazy(
        "Of the items with two scores or more: all scores are the same, some are, no two are. With more raters fewer "
        "items are in the first class."
    ),
    "raters": gettext_lazy(
        "How reliable the mean score would be with 1 to 10 raters per item (Spearman-Brown formula). It is a "
        "projection, so it has no interval."
    ),
    "panels": gettext_lazy("Two panels on the items that both scored, by the panels’ means and modes of each item."),
    "criteria": gettext_lazy(
        "Spearman’s ρ of two criteria over the annotators’ means of the items. Criteria that always move together "
        "measure one thing."
    ),
    "applicability": gettext_lazy("Do annotators agree on where a criterion does not apply? N/A is never a score."),
    "rationales": gettext_lazy("Share of ratings with a rationale, and their median length. No text is shown."),
    "time": gettext_lazy("Each item counts in the time of its last rating, so that its ratings stay together."),
    "items": gettext_lazy(
        "Spread: mean distance of two annotators’ scores of the item, 0 to 1. The files contain every item."
    ),
}
EMPTY_SECTIONS = {
    "matrix": gettext_lazy("Agreement needs two annotators who score the same items."),
    "annotators": gettext_lazy("Leaving one annotator out needs three annotators who are known as persons."),
    "pairs": gettext_lazy("Pairs need two annotators, known as persons, who share items."),
    "classes": gettext_lazy("Classes need items with two scores or more."),
    "raters": gettext_lazy("The curve needs two annotators, two items and scores in order, or two labels."),
    "panels": gettext_lazy("This campaign has no two panels on the same items."),
    "criteria": gettext_lazy("Correlations need two criteria with scores in order on the same items."),
    "applicability": gettext_lazy("Nobody has answered “not applicable”."),
    "rationales": gettext_lazy("Nothing is rated yet."),
    "time": gettext_lazy("All items were rated in one period. Agreement over time needs two."),
    "items": gettext_lazy("Annotators do not differ on any item with two scores."),
}


@require_safe
@login_required
def agreement_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The form and the matrix; the other sections ask for themselves when they come into view."""
    current = shown_campaign(request.user, project, campaign)
    choices = questions.question_choices(current)
    context: dict[str, Any] = {
        "title": _("Agreement"),
        "project": current.project,
        "campaign": current,
        "coefficients": list(COEFFICIENT_NAMES.items()),
    }
    try:
        question = _question(request, choices)
        matrix = _part_context(current, question, PARTS["matrix"], choices)
    except Refused as refused:
        form = QuestionForm(NumbersQuestion(), choices)
        context |= {"refusal": refused.sentence, "form": form}
        return render(request, "analytics/agreement.html", context, status=422)
    sections = [
        {"name": name, "title": TITLES[name], "address": _address(current, question, name)}
        for name in PARTS
        if name != "matrix"
    ]
    context |= {"form": QuestionForm(question, choices), "question": question, "sections": sections, **matrix}
    return render(request, "analytics/agreement.html", context)


@require_safe
@login_required
def agreement_part(request: HttpRequest, project: str, campaign: int, part: str) -> HttpResponse:
    """One section: by itself for the page that asks for it, as a page of its own for a person."""
    if part not in PARTS:
        raise Http404("The Agreement page has no such section.")
    current = shown_campaign(request.user, project, campaign)
    choices = questions.question_choices(current)
    template = "analytics/_agreement_part.html" if "HX-Request" in request.headers else "analytics/agreement.html"
    context: dict[str, Any] = {"title": TITLES[part], "project": current.project, "campaign": current, "is_alone": True}
    try:
        question = _question(request, choices)
        context |= {"question": question, **_part_context(current, question, PARTS[part], choices)}
    except Refused as refused:
        return render(request, template, {**context, "refusal": refused.sentence}, status=422)
    return render(request, template, context)


def _question(request: HttpRequest, choices: QuestionChoices) -> NumbersQuestion:
    pairs = [(name, text) for name, texts in request.GET.lists() for text in texts]
    question = questions.parsed_question(pairs)
    agreement.coefficient_of(question)
    questions.check_question(question, choices)
    return question


def _part_context(
    campaign: Campaign, question: NumbersQuestion, part: AgreementPart, choices: QuestionChoices
) -> dict[str, Any]:
    """The answer to a section's question, or how far it is."""
    asked = agreement.part_question(part, question, choices.criteria, len(choices.raters))
    snapshot, is_stale = answers.current_answer(campaign, asked)
    failed = None
    if is_stale:
        tasks.ask_to_compute(campaign=campaign, settings=asked)
        failed = computing.failed(campaign=campaign, settings=asked)
    coefficient = agreement.coefficient_of(question)
    shown = AgreementSection(part, AnswerPage(campaign, snapshot, asked), asked, coefficient) if snapshot else None
    return {
        "part": part,
        "part_title": TITLES[part.name],
        "part_about": SECTION_NOTES[part.name],
        "part_empty": EMPTY_SECTIONS[part.name],
        "shown": shown,
        "snapshot": snapshot,
        "is_stale": is_stale,
        "failed": failed,
        "job": answers.open_job(campaign, asked) if is_stale else None,
        "addresses": _addresses(campaign, question, asked, part),
        "criteria": _criteria_choices(campaign, asked, choices) if part.one_criterion else [],
        "kept": [pair for pair in questions.pairs_of(question) if not _is_criterion(pair)],
    }


def _is_criterion(pair: tuple[str, str]) -> bool:
    return pair[0] == "where" and pair[1].startswith("criterion=")


def _criteria_choices(
    campaign: Campaign, asked: NumbersQuestion, choices: QuestionChoices
) -> list[tuple[str, str, bool]]:
    """The criteria that a section about one of them can be about: the parameter's value, its name, whether chosen."""
    names = criterion_names(campaign)
    chosen = dict(asked.where).get("criterion", "")
    return [(f"criterion={key}", names[key], key == chosen) for key in choices.criteria]


def _address(campaign: Campaign, question: NumbersQuestion, part: str) -> str:
    here = [campaign.project.slug, campaign.pk]
    address = (
        reverse("numbers_agreement", args=here)
        if part == "matrix"
        else reverse("numbers_agreement_part", args=[*here, part])
    )
    return f"{address}?{question.query}" if question.query else address


def _addresses(
    campaign: Campaign, question: NumbersQuestion, asked: NumbersQuestion, part: AgreementPart
) -> dict[str, str]:
    here, query = [campaign.project.slug, campaign.pk], f"?{asked.query}" if asked.query else ""
    kinds = {"csv": "numbers_cells_csv", "json": "numbers_cells_json", "explore": "numbers_explore"}
    found = {name: reverse(route, args=here) + query for name, route in kinds.items()}
    labels = {
        f"labels_{kind}": reverse("api_soft_labels", args=[*here, kind]) + query
        for kind in ("csv", "json")
        if part.name == "items"
    }
    alone = reverse("numbers_agreement_part", args=[*here, part.name])
    this = f"{alone}?{question.query}" if question.query else alone
    found["csv"] += f"{'&' if query else '?'}part=agreement-{part.name}"
    return {**found, **labels, "this": this, "alone": alone, "api": reverse("api_estimates", args=here) + query}
