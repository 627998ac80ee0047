"""The desk, for the browser: pages for people, and JSON for the page's own script when it asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.refusals import Refused
from accounts.storable import without_nul
from annotation.desk import service
from annotation.models import Assignment, Duty, Skip
from annotation.views import desk_page

View = Callable[..., HttpResponse]


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
            raise Http404("Nothing of yours is at this address.") from None

    return answering


def wants_json(request: HttpRequest) -> bool:
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def refusal_json(refused: Refused) -> JsonResponse:
    answer = {"code": refused.code, "detail": refused.sentence, "fields": refused.fields}
    return JsonResponse(answer, status=422 if refused.fields else 409)


def answer(request: HttpRequest, url: str, **more: Any) -> HttpResponse:
    """Where to go next, for the script or for the browser."""
    return JsonResponse({"next": url, **more}) if wants_json(request) else HttpResponseRedirect(url)


def held(request: HttpRequest, key: UUID) -> Assignment:
    """The assignment under this very key; an older key of an assignment that was taken back is lost."""
    assignment = service.on_desk(user=request.user, key=key)
    if assignment.key != key:
        raise service.LeaseLost
    return assignment


@require_safe
@login_required
@never_cache
def duties(request: HttpRequest) -> HttpResponse:
    """What this person can work on."""
    shown = [{**asdict(duty), "url": reverse("desk_duty", args=[duty.pk])} for duty in service.duties(request.user)]
    return render(request, "annotation/home.html", {"title": _("Your duties"), "duties": shown})


@require_safe
@login_required
@never_cache
@refusals_answered
def next_item(request: HttpRequest, *, duty: int) -> HttpResponse:
    """Take the item on the desk or the next one, and go there."""
    seated, annotator = service.seat(user=request.user, duty=duty)
    assignment = service.take(duty=seated, annotator=annotator)
    if assignment is not None:
        return redirect("desk_item", key=assignment.key)
    undo = desk_page.undo_url(service.last_submitted(duty=seated, annotator=annotator))
    done = next(found for found in service.duties(request.user) if found.pk == duty)
    state = "finished" if done.done >= done.total else "waiting"
    return render(request, "annotation/done.html", {"duty": done, "state": state, "can_undo": undo})


@require_safe
@login_required
@never_cache
@refusals_answered
def item(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """The scoring page."""
    assignment = service.on_desk(user=request.user, key=key, related=desk_page.NEEDED)
    if assignment.key != key or assignment.state != Assignment.State.LEASED:
        return redirect("desk_duty", duty=assignment.duty_id)
    answers, seconds = service.answers_so_far(assignment)
    return render(request, "annotation/desk.html", {"desk": desk_page.context(assignment, answers, seconds)})


@require_POST
@login_required
@refusals_answered
def submit(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Hand the item in; the same key again is answered the same way."""
    assignment = service.on_desk(user=request.user, key=key)
    answers, seconds = desk_page.read_answers(request.POST), desk_page.read_seconds(request.POST)
    try:
        service.submit(assignment=assignment, key=key, answers=answers, seconds=seconds)
    except Refused as refused:
        if wants_json(request) or not refused.fields:
            raise
        whole = service.on_desk(user=request.user, key=key, related=desk_page.NEEDED)
        shown = {"desk": desk_page.context(whole, answers, seconds), "errors": refused.fields}
        return render(request, "annotation/desk.html", shown, status=422)
    return answer(request, reverse("desk_duty", args=[assignment.duty_id]))


@require_POST
@login_required
@refusals_answered
def draft(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Autosave."""
    answers, seconds = desk_page.read_answers(request.POST), desk_page.read_seconds(request.POST)
    saved_at = service.save_draft(assignment=held(request, key), answers=answers, seconds=seconds)
    return answer(request, reverse("desk_item", args=[key]), saved_at=saved_at)


@require_POST
@login_required
@refusals_answered
def heartbeat(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Somebody is still at it."""
    expires_at = service.extend(assignment=held(request, key))
    return answer(request, reverse("desk_item", args=[key]), expires_at=expires_at)


@require_POST
@login_required
@refusals_answered
def skip(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Put the item aside and go on to the next."""
    assignment = held(request, key)
    reason = request.POST.get("reason", "")
    known = reason if reason in Skip.Reason.values else Skip.Reason.OTHER
    note = without_nul(request.POST.get("note", "")).strip()[:500]
    service.skip(assignment=assignment, reason=known, note=note)
    return answer(request, reverse("desk_duty", args=[assignment.duty_id]))


@require_POST
@login_required
@refusals_answered
def undo(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Take the last submission back on the desk."""
    assignment = service.undo(assignment=held(request, key))
    return answer(request, reverse("desk_item", args=[assignment.key]))


@require_POST
@login_required
def leave(request: HttpRequest) -> HttpResponse:
    """Stop for now: the item and its draft stay on the desk."""
    return redirect("desk")
