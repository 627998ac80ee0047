"""The pages around a duty's items: guidelines, training with feedback, the exam, a pause, closing questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts import languages
from accounts.inputs import without_nul
from accounts.refusals import Refused
from annotation import allocation, questionnaires
from annotation.desk import leasing, pairs, presentation, service
from annotation.desk.views import pages_and_forms, refusals_as_responses
from annotation.models import Annotator, Assignment, Criterion, Duty, Guideline, MismatchReview, ReferenceScore
from annotation.qualification import controls, exams, gate, guidelines, matching, standings
from annotation.qualification.matching import MatchedShare, ReferenceComparison
from annotation.qualification.references import rule_of


@require_safe
@login_required
@never_cache
@refusals_as_responses
def before_work_view(request: HttpRequest, *, duty: int) -> HttpResponse:
    """The steps that the user must do before the duty gives them items; after them, the user's standing."""
    own_duty, annotator = leasing.duty_and_annotator(user=request.user, duty=duty)
    leasing.require_open(own_duty.campaign)
    stage = gate.stage_of(duty=own_duty, annotator=annotator)
    if stage.name == "guidelines":
        return redirect("desk_guidelines", duty=duty)
    rule = stage.rule
    context: dict[str, Any] = {"title": own_duty.name, "duty": own_duty, "stage": stage}
    if rule is not None:
        context["training"] = exams.training_progress(duty=own_duty, annotator=annotator) if rule.training else None
        context |= _exam_context(own_duty, annotator)
        compared = controls.revealed_comparisons(duty=own_duty, annotator=annotator)
        context["mismatches"] = _by_item(own_duty, [one for one in compared if not one.agrees])
    return render(request, "annotation/before_work.html", context)


def _exam_context(duty: Duty, annotator: Annotator) -> dict[str, Any]:
    rule = rule_of(duty.campaign_id)
    if rule is None or not rule.exam_items:
        return {}
    standing = exams.exam_standing(duty=duty, annotator=annotator, rule=rule)
    result = exams.exam_result(standing.last) if standing.last else []
    return {"exam": standing, "rule": rule, "needed": round(rule.threshold * 100), "result": _shown(duty, result)}


def _shown(duty: Duty, result: Sequence[MatchedShare]) -> list[dict[str, Any]]:
    tag = presentation.text_language([share.criterion for share in result], duty.panel.language)
    return [
        {
            "name": share.criterion.says("name", tag) or share.criterion.key,
            "lang": share.criterion.tag_of("name", tag),
            "language": languages.endonym(share.language),
            "matched": share.matched,
            "compared": share.compared,
            "percent": share.percent,
        }
        for share in result
    ]


def _by_item(duty: Duty, compared: Sequence[ReferenceComparison]) -> list[dict[str, Any]]:
    """The comparisons of each item below its text, numbered in the order in which the items came: titles may repeat."""
    together: dict[int, list[ReferenceComparison]] = {}
    for one in compared:
        together.setdefault(one.assignment.pk, []).append(one)
    layout = duty.campaign.dataset.layout if together else {}
    found = []
    for number, comparisons in enumerate(together.values(), 1):
        assignment, criteria = comparisons[0].assignment, [one.criterion for one in comparisons]
        swapped = pairs.swapped_for(assignment, criteria)
        shown = presentation.show_item(assignment.item, criteria, layout, swapped)
        found.append({"number": number, "item": shown, "comparisons": _compared(duty, comparisons)})
    return found


def _compared(duty: Duty, compared: Sequence[ReferenceComparison]) -> list[dict[str, Any]]:
    """Answers with their references, in words: for a training item, or for controls that were shown."""
    tag = presentation.text_language([one.criterion for one in compared], duty.panel.language)
    return [
        {
            "key": one.assignment.key,
            "criterion": one.criterion,
            "name": one.criterion.says("name", tag) or one.criterion.key,
            "lang": one.criterion.tag_of("name", tag),
            "matched": one.matched,
            "given": _chosen(one, one.given.score) or _point(one.criterion, one.given.score, tag, one.given.status),
            "rationale": one.given.rationale,
            "reference": _chosen(one, one.reference.score) or _point(one.criterion, one.reference.score, tag),
            "accepted": _range(one.criterion, one.reference, tag),
            "explanation": one.reference.explanation,
            "review": one.review,
            "can_contest": one.review is None or one.review.state == MismatchReview.State.CONTESTED,
        }
        for one in compared
    ]


def _chosen(one: ReferenceComparison, score: float | None) -> str:
    """A choice between two candidates, with their names on the page of the item; "" for any other score."""
    swapped = pairs.swapped_for(one.assignment, [one.criterion])
    return "" if score is None or swapped is None else presentation.chosen_label(one.criterion, score, swapped)


def _point(criterion: Criterion, score: float | None, language: str, status: str = "") -> str:
    if score is None:
        return _("stopped by a critical mark") if status == "stopped" else _("not applicable")
    label = criterion.label(score, language)
    return f"{score:g} · {label}" if label else f"{score:g}"


def _range(criterion: Criterion, reference: ReferenceScore, language: str) -> str:
    if reference.lowest is None or reference.highest is None or reference.lowest == reference.highest:
        return ""
    return _("%(first)s to %(last)s") % {"first": f"{reference.lowest:g}", "last": f"{reference.highest:g}"}


@pages_and_forms
@login_required
@never_cache
@refusals_as_responses
def guidelines_view(request: HttpRequest, *, duty: int) -> HttpResponse:
    """GET: the guidelines in the user's language. POST: confirm this version, and go on with the duty."""
    own_duty, annotator = leasing.duty_and_annotator(user=request.user, duty=duty)
    shown = guidelines.guideline_for(duty=own_duty, user=request.user)
    if shown is None:
        raise Http404("This duty has no guidelines.")
    if request.method == "POST":
        if request.POST.get("version") == str(shown.pk):
            guidelines.acknowledge(guideline=shown, annotator=annotator)
            return redirect("desk_before", duty=duty)
        messages.warning(request, _("There is a newer version of the guidelines. Read it first."))
    context = {
        "title": _("Guidelines"),
        "duty": own_duty,
        "is_acknowledged": guidelines.is_acknowledged(guideline=shown, annotator=annotator),
        **guideline_parts(shown, allocation.criteria_of(own_duty.pk, own_duty.campaign.rubric_version_id)),
    }
    return render(request, "annotation/desk_guidelines.html", context)


def guideline_parts(guideline: Guideline, criteria: Sequence[Criterion]) -> dict[str, Any]:
    """What a page shows of a version: safe HTML, and the worked examples with their criteria in words."""
    by_key = {criterion.key: criterion for criterion in criteria}
    tag = guideline.language
    examples = []
    for example in guideline.examples:
        criterion = by_key.get(example.get("criterion") or "")
        score = example.get("score")
        examples.append(
            {
                "text": safe_html(example.get("text") or ""),
                "explanation": safe_html(example.get("explanation") or ""),
                "criterion": (criterion.says("name", tag) or criterion.key) if criterion else "",
                "score": _point(criterion, score, tag) if criterion and score is not None else "",
            }
        )
    return {
        "guideline": guideline,
        "direction": languages.direction(tag),
        "text": safe_html(guideline.text),
        "examples": examples,
    }


def safe_html(text: str) -> str:
    """Markdown as safe HTML: `guidelines.rendered` escapes every written tag."""
    return mark_safe(guidelines.rendered(text))  # noqa: S308


@pages_and_forms
@login_required
@never_cache
@refusals_as_responses
def training_view(request: HttpRequest, *, duty: int) -> HttpResponse:
    """POST: the next item of the training; ``again`` begins another round. GET: how far the user is."""
    own_duty, annotator = leasing.duty_and_annotator(user=request.user, duty=duty)
    stage = gate.stage_of(duty=own_duty, annotator=annotator)
    if request.method == "POST" and stage.name not in ("guidelines", "paused") and stage.rule and stage.rule.training:
        taken = leasing.take_training_item(duty=own_duty, annotator=annotator, again="again" in request.POST)
        if taken is not None:
            return redirect("desk_item", key=taken.key)
    return redirect("desk_before", duty=duty)


@pages_and_forms
@login_required
@never_cache
@refusals_as_responses
def exam_view(request: HttpRequest, *, duty: int) -> HttpResponse:
    """POST: begin the exam, or go on with it. GET: its page."""
    own_duty, annotator = leasing.duty_and_annotator(user=request.user, duty=duty)
    leasing.require_open(own_duty.campaign)
    if request.method == "POST" and gate.stage_of(duty=own_duty, annotator=annotator).name == "exam":
        exams.start_exam(duty=own_duty, annotator=annotator)
        taken = leasing.take(duty=own_duty, annotator=annotator)
        if taken is not None:
            return redirect("desk_item", key=taken.key)
    return redirect("desk_before", duty=duty)


@require_safe
@login_required
@never_cache
@refusals_as_responses
def feedback_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """The user's scores of a training item beside the reference scores, with their explanations."""
    assignment = service.on_desk(user=request.user, key=key, related=("item", "duty"))
    if assignment.duty.purpose != Duty.Purpose.TRAINING or assignment.state != Assignment.State.SUBMITTED:
        raise Http404("There is no feedback at this address.")
    own_duty, annotator = leasing.duty_and_annotator(user=request.user, duty=assignment.duty.visible_pk)
    rule = rule_of(own_duty.campaign_id)
    compared = matching.compare([assignment], campaign=own_duty.campaign_id, rule=rule) if rule else []
    shown = _compared(own_duty, compared)
    criteria = [one.criterion for one in compared]
    swapped = pairs.swapped_for(assignment, criteria)
    context = {
        "title": _("Feedback"),
        "duty": own_duty,
        "assignment": assignment,
        "item": presentation.show_item(assignment.item, criteria, own_duty.campaign.dataset.layout, swapped),
        "comparisons": shown,
        "matched": sum(one["matched"] for one in shown),
        "progress": exams.training_progress(duty=own_duty, annotator=annotator),
    }
    return render(request, "annotation/feedback.html", context)


@require_POST
@login_required
@refusals_as_responses
def contest_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Contest one score of a control that the user was shown."""
    assignment = service.on_desk(user=request.user, key=key, related=("item", "duty"))
    criteria = {criterion.key: criterion for criterion in service.criteria_on_desk(assignment)}
    criterion = criteria.get(request.POST.get("criterion", ""))
    if criterion is None:
        raise Refused(_("This score can't be contested."), code="not_contestable")
    standings.contest(
        assignment=assignment,
        criterion=criterion,
        objection=without_nul(request.POST.get("objection", "")),
        actor=request.user,
    )
    messages.success(request, _("The project lead will decide about this score."))
    return redirect("desk_before", duty=assignment.duty.visible_pk)


@pages_and_forms
@login_required
@never_cache
@refusals_as_responses
def closing_view(request: HttpRequest, *, duty: int) -> HttpResponse:
    """GET: the closing questions of the duty's campaign. POST: send the answers, once."""
    own_duty, annotator = leasing.duty_and_annotator(user=request.user, duty=duty)
    criteria = questionnaires.criteria_scored(campaign=own_duty.campaign, annotator=annotator)
    if not own_duty.campaign.asks_at_close or not criteria:
        raise Http404("This campaign asks no closing questions.")
    if request.method == "POST":
        answers = {criterion.key: _closing_points(request.POST, criterion.key) for criterion in criteria}
        comment = without_nul(request.POST.get("comment", ""))
        try:
            questionnaires.store_closing_answer(
                duty=own_duty, annotator=annotator, user=request.user, answers=answers, comment=comment
            )
            messages.success(request, _("Your answers were sent. Thank you!"))
            return redirect("desk")
        except Refused as refused:
            if refused.code != "empty":
                raise
            messages.warning(request, refused.sentence)
    tag = presentation.text_language(criteria, own_duty.panel.language)
    context = {
        "title": _("Closing questions"),
        "duty": own_duty,
        "lang": tag,
        "criteria": [(criterion.key, criterion.says("name", tag) or criterion.key) for criterion in criteria],
        "points": questionnaires.SCALE,
        "is_due": questionnaires.is_due(request.user, own_duty.campaign),
        "is_answered": questionnaires.has_answered(campaign=own_duty.campaign, annotator=annotator),
    }
    return render(request, "annotation/closing.html", context)


def _closing_points(form: QueryDict, key: str) -> dict[str, int | None]:
    given = {name: form.get(f"{name}-{key}", "") for name in ("difficulty", "confidence")}
    return {name: int(point) if point in ("1", "2", "3", "4", "5") else None for name, point in given.items()}
