"""The desk, for the browser: pages for people, and JSON for the page's own script when it asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import wraps
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import languages
from accounts.inputs import without_nul
from accounts.refusals import Refused
from annotation.desk import leasing, presentation, service
from annotation.desk.service import Answer
from annotation.models import Assignment, Duty, Skip

View = Callable[..., HttpResponse]
pages_and_forms = require_http_methods(["GET", "HEAD", "POST"])
NOT_APPLICABLE = "na"
NEEDED = ("annotator", "item", "duty__campaign__dataset", "duty__campaign__rubric_version__rubric")


def refusals_answered(view: View) -> View:
    """A refusal becomes an answer: JSON for the script, a message on the way to the desk for a plain form."""

    @wraps(view)
    def answering(request: HttpRequest, **named: Any) -> HttpResponse:
        try:
            return view(request, **named)
        except Refused as refused:
            if wants_json(request):
                return refusal_json(refused)
            messages.warning(request, refused.sentence)
            return redirect("desk")
        except (Assignment.DoesNotExist, Duty.DoesNotExist):
            raise Http404("You have no item at this address.") from None

    return answering


def wants_json(request: HttpRequest) -> bool:
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def refusal_json(refused: Refused) -> JsonResponse:
    answer = {"code": refused.code, "detail": refused.sentence, "fields": refused.fields}
    return JsonResponse(answer, status=422 if refused.fields else 409)


def go_on(request: HttpRequest, url: str, **more: Any) -> HttpResponse:
    """Where to go next, for the script or for the browser."""
    return JsonResponse({"next": url, **more}) if wants_json(request) else HttpResponseRedirect(url)


def go_on_to_next_item(request: HttpRequest, duty: int) -> HttpResponse:
    """To the duty's next item, which a POST takes: the browser repeats its POST there, the script sends one."""
    onward = go_on(request, reverse("desk_duty", args=[duty]))
    if onward.status_code == HTTPStatus.FOUND:
        onward.status_code = HTTPStatus.TEMPORARY_REDIRECT
    return onward


def held(request: HttpRequest, key: UUID) -> Assignment:
    """The assignment under this very key; an older key of an assignment that was taken back is lost."""
    assignment = service.on_desk(user=request.user, key=key)
    if assignment.key != key:
        raise leasing.LeaseLost
    return assignment


@require_safe
@login_required
@never_cache
def duties_view(request: HttpRequest) -> HttpResponse:
    """What this person can work on."""
    shown = [{**asdict(duty), "url": reverse("desk_duty", args=[duty.pk])} for duty in leasing.duties(request.user)]
    return render(request, "annotation/home.html", {"title": _("Your duties"), "duties": shown})


@pages_and_forms
@login_required
@never_cache
@refusals_answered
def next_item(request: HttpRequest, *, duty: int) -> HttpResponse:
    """GET: lead to the item on the desk, or offer the next one. POST: take it, and go there."""
    seated, annotator = leasing.seat_of(user=request.user, duty=duty)
    if request.method == "POST":
        taken, is_free = leasing.take(duty=seated, annotator=annotator), False
    else:
        offer = leasing.offer(duty=seated, annotator=annotator)
        taken, is_free = offer.held, offer.is_free
    if taken is not None:
        return redirect("desk_item", key=taken.key)
    if is_free:
        return offered_item(request, reverse("desk_duty", args=[duty]), duty=seated.name, campaign=seated.campaign.name)
    undo = undo_url(service.last_submitted(duty=seated, annotator=annotator))
    done = next(mine for mine in leasing.duties(request.user) if mine.pk == duty)
    state = "finished" if done.done >= done.total else "waiting"
    return render(request, "annotation/done.html", {"duty": done, "state": state, "can_undo": undo})


@pages_and_forms
@login_required
@never_cache
@refusals_answered
def item(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """GET: the scoring page, or the offer to take an item that nobody holds any more. POST: take it again."""
    if request.method == "POST":
        return at_desk(service.take_again(user=request.user, key=key))
    try:
        assignment = service.on_desk(user=request.user, key=key, related=NEEDED)
    except leasing.LeaseLost:
        held = service.offered_again(user=request.user, key=key).held
        return at_desk(held) if held else offered_item(request, request.path)
    if assignment.key != key or assignment.state != Assignment.State.LEASED:
        return redirect("desk_duty", duty=assignment.duty_id)
    if not service.is_leased(assignment):
        duty = assignment.duty
        return offered_item(request, request.path, duty=duty.name, campaign=duty.campaign.name, is_own=True)
    answers, seconds = service.answers_so_far(assignment)
    return render(request, "annotation/desk.html", {"desk": desk_context(assignment, answers, seconds)})


def at_desk(assignment: Assignment) -> HttpResponse:
    """To the item while it is on the desk, else to its duty."""
    if assignment.state == Assignment.State.LEASED:
        return redirect("desk_item", key=assignment.key)
    return redirect("desk_duty", duty=assignment.duty_id)


def offered_item(request: HttpRequest, url: str, **named: Any) -> HttpResponse:
    """The page that takes an item by POST: at once where scripts run, else by its button."""
    return render(request, "annotation/take.html", {"url": url, **named})


@require_POST
@login_required
@refusals_answered
def submit_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Hand the item in; the same key again is answered the same way."""
    assignment = service.on_desk(user=request.user, key=key)
    answers, seconds = read_answers(request.POST), read_seconds(request.POST)
    try:
        service.submit(assignment=assignment, key=key, answers=answers, seconds=seconds)
    except Refused as refused:
        if wants_json(request) or not refused.fields:
            raise
        whole = service.on_desk(user=request.user, key=key, related=NEEDED)
        shown = {"desk": desk_context(whole, answers, seconds), "errors": refused.fields}
        return render(request, "annotation/desk.html", shown, status=422)
    return go_on_to_next_item(request, assignment.duty_id)


@require_POST
@login_required
@refusals_answered
def draft_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Autosave."""
    answers, seconds = read_answers(request.POST), read_seconds(request.POST)
    saved_at = service.save_draft(assignment=held(request, key), answers=answers, seconds=seconds)
    return go_on(request, reverse("desk_item", args=[key]), saved_at=saved_at)


@require_POST
@login_required
@refusals_answered
def heartbeat(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Somebody is still at it."""
    expires_at = service.extend(assignment=held(request, key))
    return go_on(request, reverse("desk_item", args=[key]), expires_at=expires_at)


@require_POST
@login_required
@refusals_answered
def skip_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Put the item aside and go on to the next."""
    assignment = held(request, key)
    reason = request.POST.get("reason", "")
    known = reason if reason in Skip.Reason.values else Skip.Reason.OTHER
    note = without_nul(request.POST.get("note", "")).strip()[:500]
    service.skip(assignment=assignment, reason=known, note=note)
    return go_on_to_next_item(request, assignment.duty_id)


@require_POST
@login_required
@refusals_answered
def undo_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Take the last submission back on the desk."""
    assignment = service.undo(assignment=held(request, key))
    return go_on(request, reverse("desk_item", args=[assignment.key]))


@require_POST
@login_required
def leave(request: HttpRequest) -> HttpResponse:
    """Stop for now: the item and its draft stay on the desk."""
    return redirect("desk")


# --- the page and its form: docs/interface.md says what the template expects ------------------------------------------
def read_answers(form: QueryDict) -> dict[str, Answer]:
    """``score-<criterion>`` and ``rationale-<criterion>`` of a form, as answers by criterion."""
    keys = [name.partition("-")[2] for name in form if name.startswith(("score-", "rationale-"))]
    return {key: _answer(form.getlist(f"score-{key}"), form.get(f"rationale-{key}", "")) for key in keys}


def _answer(scores: list[str], rationale: str) -> Answer:
    rationale = without_nul(rationale)
    if NOT_APPLICABLE in scores:
        return Answer(status="na", rationale=rationale)
    written = next(filter(None, scores), None)
    return Answer(score=None if written is None else _number(written), rationale=rationale)


def _number(text: str) -> float:
    """What was typed as a score; what is no number lies on no scale."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def read_seconds(form: QueryDict) -> float:
    return _number(form.get("seconds", "0"))


def desk_context(assignment: Assignment, answers: Mapping[str, Answer], seconds: float) -> dict[str, Any]:
    """Everything the desk shows of one assignment, whose ``NEEDED`` relations are loaded, and nothing more."""
    duty, campaign, item = assignment.duty, assignment.duty.campaign, assignment.item
    criteria = service.criteria_on_desk(duty)
    language = presentation.text_language(criteria, item.language)
    return {
        "campaign": {"name": campaign.name, "url": None},
        "duty": {"name": duty.name},
        "assignment": {"key": str(assignment.key), "expires_at": assignment.leased_until, "seconds": round(seconds)},
        "item": presentation.show_item(item, criteria, campaign.dataset.layout),
        "rubric": {"name": campaign.rubric_version.name(language), "version": f"v{campaign.rubric_version.number}"},
        "criteria": presentation.show_criteria(criteria, language, answers),
        "text_language": language,
        "text_direction": languages.direction(language),
        "progress": leasing.desk_progress(duty=duty, annotator=assignment.annotator),
        "urls": urls(assignment),
        "can_undo": undo_url(service.last_submitted(duty=duty, annotator=assignment.annotator)),
    }


def urls(assignment: Assignment) -> dict[str, str]:
    actions = ("submit", "draft", "skip", "heartbeat")
    return {name: reverse(f"desk_{name}", args=[assignment.key]) for name in actions} | {"leave": reverse("desk_leave")}


def undo_url(last: Assignment | None) -> str | None:
    return reverse("desk_undo", args=[last.key]) if last else None
