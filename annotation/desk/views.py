"""The pages of the desk. Requests from the page's own script, which accept JSON, get JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import wraps
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Literal
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from uuid_utils.compat import uuid7

from accounts import languages
from accounts.inputs import without_nul
from accounts.models import Project
from accounts.refusals import Refused
from annotation import pay, questionnaires
from annotation.collection import texts
from annotation.desk import ended_studies, leasing, notes, pairs, presentation, service, threads
from annotation.desk.answers import Answer, posted_spans
from annotation.models import Assignment, Campaign, ControlPause, Duty, PromptCollection, Skip
from annotation.qualification import exams, gate
from annotation.qualification.gate import NotQualified
from annotation.whole_item import WHOLE_ITEM_COLUMNS, WholeItemAnswers, item_answers

View = Callable[..., HttpResponse]
OfferedItem = Literal["next", "expired", "freed"]
pages_and_forms = require_http_methods(["GET", "HEAD", "POST"])
NOT_APPLICABLE = "na"
SCORED = 50  # scored items on a page
KEPT_SHOWN = timedelta(days=30)
"""How long the page of duties mentions what was entered in duties that were removed."""
NEEDED = ("annotator", "item", "duty__campaign__dataset", "duty__campaign__rubric_version__rubric")


def refusals_as_responses(view: View) -> View:
    """Turn a refusal into a response: JSON for the script; for a plain form, a message and a redirect to the desk."""

    @wraps(view)
    def responding(request: HttpRequest, **named: Any) -> HttpResponse:
        try:
            return view(request, **named)
        except service.SubmittedAlready as refused:
            return submitted_already(request, refused)
        except service.DutyRemoved as removed:
            return duty_removed(request, removed)
        except Refused as refused:
            if wants_json(request):
                return refusal_json(refused)
            messages.warning(request, refused.sentence)
            return redirect("desk")
        except (Assignment.DoesNotExist, Duty.DoesNotExist):
            ended = ended_studies.ended_study(request.user, key=named.get("key"), duty=named.get("duty"))
            return study_ended(request, ended, named.get("key")) if ended else not_theirs(request)

    return responding


def wants_json(request: HttpRequest) -> bool:
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def refusal_json(refused: Refused) -> JsonResponse:
    answer = {"code": refused.code, "detail": refused.sentence, "fields": refused.fields}
    return JsonResponse(answer, status=422 if refused.fields else 409)


def submitted_already(request: HttpRequest, refused: service.SubmittedAlready) -> HttpResponse:
    """Both answers beside each other: what is stored, and what was sent now."""
    stored = refused.stored
    assignment = Assignment.objects.select_related("item", "duty__campaign").get(pk=stored.assignment_id)
    criteria = service.criteria_on_desk(assignment)
    language = presentation.text_language(criteria, assignment.item.language)
    rows = presentation.answers_beside(
        criteria, language, service.answers_of(stored), refused.sent, pairs.swapped_for(assignment, criteria)
    )
    shown = {"title": _("You submitted this item already"), "rows": rows, "change": change_url(assignment)}
    if wants_json(request):
        return JsonResponse({"code": refused.code, "detail": refused.sentence, "fields": {}, **shown}, status=409)
    context = {**shown, "detail": refused.sentence}
    return render(request, "annotation/submitted_already.html", context, status=409)


def change_url(assignment: Assignment) -> str | None:
    """Where the stored scores can be changed; None where they can't."""
    is_fixed = service.is_training_or_exam(assignment.duty) or not is_open(assignment.duty)
    if is_fixed or assignment.state == Assignment.State.OPEN:
        return None
    is_submitted = assignment.state == Assignment.State.SUBMITTED
    return reverse("desk_revise" if is_submitted else "desk_item", args=[assignment.key])


def duty_removed(request: HttpRequest, removed: service.DutyRemoved) -> HttpResponse:
    """Say that the duty was removed; keep what the page sends, and show what is kept."""
    if request.method == "POST":
        service.keep_entered(kept=removed.kept, answers=read_answers(request.POST))
    title = _("This task was removed")
    if wants_json(request):
        answer = {"code": removed.code, "detail": removed.sentence, "fields": {}, "title": title}
        return JsonResponse(answer, status=409)
    kept = service.kept_drafts(request.user).get(pk=removed.kept.pk)
    answers = service.answers_kept(kept)
    criteria = [one for one in kept.campaign.rubric_version.criteria.order_by("position") if one.key in answers]
    language = presentation.text_language(criteria, kept.item.language)
    rows = presentation.answers_beside(criteria, language, answers, answers, None)
    context = {"title": title, "detail": removed.sentence, "rows": rows, "item": kept.item}
    return render(request, "annotation/kept_draft.html", context, status=HTTPStatus.GONE)


def study_ended(request: HttpRequest, project: Project, key: UUID | None = None) -> HttpResponse:
    """Say that a lead has deleted the project; keep what the page of an item sends."""
    if request.method == "POST" and key is not None:
        ended_studies.keep_sent(user=request.user, key=key, **read_entered(request.POST))
    title = _("This study has ended")
    detail = _(
        "The lead has deleted the project “%(project)s”. What you entered is kept for some weeks, in case the lead "
        "restores it."
    ) % {"project": project}
    refused = Refused(detail, code="study_ended")
    if wants_json(request):
        answer = {"code": refused.code, "detail": detail, "fields": {}, "title": title}
        return JsonResponse(answer, status=409)
    context = {"title": title, "detail": detail}
    return render(request, "annotation/not_theirs.html", context, status=HTTPStatus.GONE)


def not_theirs(request: HttpRequest) -> HttpResponse:
    """404 with what may have happened: it is not said whether there is such an item or duty of somebody else."""
    title = _("This is not among your tasks")
    detail = _(
        "The project lead removed the task, or you are no longer on its panel or in its project. What you submitted "
        "before is kept."
    )
    if wants_json(request):
        return JsonResponse({"code": "not_found", "detail": f"{title}. {detail}", "fields": {}}, status=404)
    return render(request, "annotation/not_theirs.html", {"title": title, "detail": detail}, status=404)


def next_address(request: HttpRequest, url: str, **more: Any) -> HttpResponse:
    """The next address: as JSON for the script, as a redirect for a plain form."""
    return JsonResponse({"next": url, **more}) if wants_json(request) else HttpResponseRedirect(url)


def next_item_response(request: HttpRequest, duty: int) -> HttpResponse:
    """Lead to the duty's next item, which only a POST takes: 307 makes the browser repeat its POST there; the script
    sends its own."""
    response = next_address(request, reverse("desk_duty", args=[duty]))
    if response.status_code == HTTPStatus.FOUND:
        response.status_code = HTTPStatus.TEMPORARY_REDIRECT
    return response


def assignment_with_key(request: HttpRequest, key: UUID) -> Assignment:
    """The user's assignment that has exactly this key. Raises ``LeaseLost`` for a key from before an undo."""
    assignment = service.on_desk(user=request.user, key=key)
    if assignment.key != key:
        raise leasing.LeaseLost
    return assignment


@require_safe
@login_required
@never_cache
def duties_view(request: HttpRequest) -> HttpResponse:
    """The user's duties, and the closing questions that they may answer."""
    listed = leasing.duties(request.user)
    due = questionnaires.questionnaires_due(request.user, listed)
    context = {"title": _("Your tasks"), "duties": listed, "closing": due, "prompts": _prompt_collections(request)}
    context["writing"] = texts.writing_duties(request.user)
    context["ended"] = ended_studies.ended_studies(request.user)
    kept = service.kept_drafts(request.user).filter(kept_at__gt=timezone.now() - KEPT_SHOWN).exclude(answers={})
    return render(request, "annotation/home.html", {**context, "kept": kept})


def _prompt_collections(request: HttpRequest) -> QuerySet[PromptCollection]:
    """The open collections for which the user writes or reviews prompts."""
    listed = PromptCollection.objects.worked_on_by(request.user).filter(state=PromptCollection.State.OPEN)
    return listed.select_related("project")


@require_safe
@login_required
@never_cache
def work_view(request: HttpRequest) -> HttpResponse:
    """What the user has submitted, in how many hours, and what it is paid; nothing of anybody else."""
    return render(request, "annotation/work.html", {"title": _("Your work"), "rows": pay.own_work(request.user)})


@pages_and_forms
@login_required
@never_cache
@refusals_as_responses
def next_item(request: HttpRequest, *, duty: int) -> HttpResponse:
    """GET: redirect to the leased item, or offer the next one. POST: lease it, and redirect to it; the script gets its
    address, or that of the page that says why there is none."""
    own_duty, annotator = leasing.duty_and_annotator(user=request.user, duty=duty)
    if request.method == "POST":
        try:
            taken, is_free = leasing.take(duty=own_duty, annotator=annotator), False
        except NotQualified:
            return next_address(request, reverse("desk_before", args=[duty]), opened_by="view")
        if wants_json(request):
            address = reverse("desk_item", args=[taken.key]) if taken else reverse("desk_duty", args=[duty])
            return JsonResponse({"next": address} if taken else {"next": address, "opened_by": "get"})
    elif gate.stage_of(duty=own_duty, annotator=annotator).name != "open":
        return redirect("desk_before", duty=duty)
    else:
        offer = leasing.offer(duty=own_duty, annotator=annotator)
        taken, is_free = offer.held, offer.is_free
    if taken is not None:
        return redirect("desk_item", key=taken.key)
    if is_free:
        return offer_page(request, reverse("desk_duty", args=[duty]), own_duty, offer="next")
    undo = undo_url(service.last_submitted(duty=own_duty, annotator=annotator))
    listed = leasing.duties(request.user)
    done = next(mine for mine in listed if mine.pk == duty)
    due = questionnaires.questionnaires_due(request.user, listed)
    closing = next((one.pk for one in due if one.campaign_id == own_duty.campaign_id), None)
    context = {"duty": done, "state": "waiting" if done.left else "finished", "can_undo": undo, "closing": closing}
    return render(request, "annotation/done.html", context)


@pages_and_forms
@login_required
@never_cache
@refusals_as_responses
def item(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """GET: the scoring page, or the offer to continue after the lease has ended. POST: lease the item again."""
    if request.method == "POST":
        return redirect_to_item(service.take_again(user=request.user, key=key))
    try:
        assignment = service.on_desk(user=request.user, key=key, related=NEEDED)
    except leasing.LeaseLost:
        held = service.offer_again(user=request.user, key=key).held
        return redirect_to_item(held) if held else offer_page(request, request.path, offer="freed")
    if assignment.key != key or assignment.state != Assignment.State.LEASED:
        return redirect("desk_duty", duty=assignment.duty.visible_pk)
    if not service.is_leased(assignment):
        return offer_page(request, request.path, assignment.duty, offer="expired")
    answers, seconds, about_item = service.answers_so_far(assignment)
    context = desk_context(assignment, answers, seconds=seconds, about_item=about_item)
    return render(request, "annotation/desk.html", {"desk": context})


def redirect_to_item(assignment: Assignment) -> HttpResponse:
    """Redirect to the item if it is leased, else to its duty."""
    if assignment.state == Assignment.State.LEASED:
        return redirect("desk_item", key=assignment.key)
    return redirect("desk_duty", duty=assignment.duty.visible_pk)


def offer_page(request: HttpRequest, url: str, duty: Duty | None = None, *, offer: OfferedItem) -> HttpResponse:
    """The page with the form that leases an item; a script submits the form, without scripts its button does.

    ``offer``: the duty's ``next`` item; the user's own item with an ``expired`` lease; or an item whose lease they
    lost and that is free again (``freed``).
    """
    return render(request, "annotation/take.html", {"url": url, "duty": duty, "offer": offer})


@require_POST
@login_required
@refusals_as_responses
def submit_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Submit the item. The same key again gets the same response."""
    assignment = service.on_desk(user=request.user, key=key)
    keep_posted_note(request, assignment)
    entered = read_entered(request.POST)
    try:
        service.submit(assignment=assignment, key=key, **entered)
    except Refused as refused:
        if wants_json(request) or not refused.fields:
            raise
        whole = service.on_desk(user=request.user, key=key, related=NEEDED)
        shown = {"desk": desk_context(whole, **entered, errors=refused.fields), "errors": refused.fields}
        return render(request, "annotation/desk.html", shown, status=422)
    return after_submission(request, assignment)


def after_submission(request: HttpRequest, assignment: Assignment) -> HttpResponse:
    """Lead to the next item; after one of the training to its feedback, after the last one of an exam to the result."""
    duty = assignment.duty
    if duty.purpose == Duty.Purpose.TRAINING:
        return next_address(request, reverse("desk_feedback", args=[assignment.key]), opened_by="view")
    if duty.purpose == Duty.Purpose.EXAM and not exams.is_under_way(assignment):
        return next_address(request, reverse("desk_before", args=[duty.visible_pk]), opened_by="view")
    return next_item_response(request, duty.visible_pk)


@require_POST
@login_required
@refusals_as_responses
def draft_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Save a draft (autosave)."""
    entered, assignment = read_entered(request.POST), assignment_with_key(request, key)
    saved_at = service.save_draft(assignment=assignment, **entered)
    keep_posted_note(request, assignment)
    return next_address(request, reverse("desk_item", args=[key]), saved_at=saved_at)


@require_POST
@login_required
@refusals_as_responses
def heartbeat(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Renew the lease while the page is in use."""
    expires_at = service.extend(assignment=assignment_with_key(request, key))
    return next_address(request, reverse("desk_item", args=[key]), expires_at=expires_at)


@require_POST
@login_required
@refusals_as_responses
def skip_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Skip the item and lead to the next one."""
    assignment = assignment_with_key(request, key)
    reason = request.POST.get("reason", "")
    known = reason if reason in Skip.Reason.values else Skip.Reason.OTHER
    note = without_nul(request.POST.get("note", "")).strip()[:500]
    service.skip(assignment=assignment, reason=known, note=note)
    return next_item_response(request, assignment.duty.visible_pk)


@require_POST
@login_required
@refusals_as_responses
def ask_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Ask the lead about the item, and lead back to it."""
    assignment = assignment_with_key(request, key)
    is_leased = assignment.state == Assignment.State.LEASED
    address = reverse("desk_item" if is_leased else "desk_revise", args=[key])
    try:
        threads.ask_about_item(
            assignment=assignment, user=request.user, text=without_nul(request.POST.get("question", ""))
        )
        messages.success(
            request, _("Your question was sent. The answer appears here and under “Questions and answers”.")
        )
    except Refused as refused:
        if wants_json(request):
            raise
        messages.warning(request, refused.sentence)
    return next_address(request, address)


@require_safe
@login_required
@never_cache
@refusals_as_responses
def thread_view(request: HttpRequest, *, duty: int) -> HttpResponse:
    """The user's questions in a duty, and the answers for everybody."""
    own_duty, annotator = leasing.duty_and_annotator(user=request.user, duty=duty)
    entries = threads.thread_of(duty=own_duty, annotator=annotator)
    context = {"title": _("Questions and answers"), "duty": own_duty, "entries": entries}
    return render(request, "annotation/asked.html", context)


@require_POST
@login_required
@refusals_as_responses
def undo_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """Undo the last submission."""
    assignment = service.undo_submission(assignment=assignment_with_key(request, key))
    return next_address(request, reverse("desk_item", args=[assignment.key]))


@require_safe
@login_required
@never_cache
@refusals_as_responses
def scored_view(request: HttpRequest, *, duty: int) -> HttpResponse:
    """The items that the user has scored in a duty, newest first, each with its address to look at or to change."""
    own_duty, annotator = leasing.duty_and_annotator(user=request.user, duty=duty)
    page = Paginator(service.submitted_annotations(duty=own_duty, annotator=annotator), SCORED).get_page(
        request.GET.get("page")
    )
    context = {"title": _("Your scored items"), "duty": own_duty, "page": page, "is_open": is_open(own_duty)}
    context["is_paused"] = own_duty.campaign.state == Campaign.State.PAUSED
    context["is_numbered"] = service.has_repeats(own_duty)
    newest = page.paginator.count + 1 - page.start_index()
    context["rows"] = [(newest - place, annotation) for place, annotation in enumerate(page.object_list)]
    context["was_paused"] = ControlPause.objects.filter(duty=own_duty, annotator=annotator).exists()
    return render(request, "annotation/scored.html", context)


def is_open(duty: Duty) -> bool:
    return duty.campaign.state == Campaign.State.OPEN


@pages_and_forms
@login_required
@never_cache
@refusals_as_responses
def revise_view(request: HttpRequest, *, key: UUID) -> HttpResponse:
    """GET: the scoring page of a submitted item, with the user's scores. POST: replace them."""
    if request.method == "POST":
        return _revised(request, key)
    assignment = service.own_submission(user=request.user, key=key, related=NEEDED)
    leasing.require_open(assignment.duty.campaign)
    stored = service.current_submission(assignment)
    entered: dict[str, Any] = {"seconds": stored.seconds or 0.0, "about_item": item_answers(stored)}
    context = desk_context(assignment, service.answers_of(stored), **entered, revising=True)
    return render(request, "annotation/desk.html", {"desk": context})


def _revised(request: HttpRequest, key: UUID) -> HttpResponse:
    assignment = service.own_submission(user=request.user, key=key)
    keep_posted_note(request, assignment)
    entered = read_entered(request.POST)
    try:
        service.revise_scores(assignment=assignment, shown=key, key=own_key(request.POST), **entered)
    except Refused as refused:
        if wants_json(request) or not refused.fields:
            raise
        whole = service.own_submission(user=request.user, key=key, related=NEEDED)
        shown = {
            "desk": desk_context(whole, **entered, errors=refused.fields, revising=True),
            "errors": refused.fields,
        }
        return render(request, "annotation/desk.html", shown, status=422)
    return next_address(request, reverse("desk_scored", args=[assignment.duty.visible_pk]), opened_by="get")


def keep_posted_note(request: HttpRequest, assignment: Assignment) -> None:
    """Keep the private note of the form, whatever becomes of its scores."""
    if "note" in request.POST:
        notes.keep_note(user=request.user, assignment=assignment, text=without_nul(request.POST["note"]))


def own_key(form: QueryDict) -> UUID:
    """The key that the page of a revision came with."""
    try:
        return UUID(form.get("key", ""))
    except ValueError:
        raise leasing.LeaseLost from None


@require_POST
@login_required
def leave(request: HttpRequest) -> HttpResponse:
    """Leave the scoring page; the lease and the draft are kept."""
    return redirect("desk")


# --- the page and its form: docs/interface.md says what the template expects ------------------------------------------
def read_entered(form: QueryDict) -> dict[str, Any]:
    """What a form says of an item: the answers by criterion, the seconds, and the answers about the item."""
    return {
        "answers": read_answers(form),
        "seconds": read_seconds(form),
        "about_item": {name: _whole_number(form.get(name, "")) for name in WHOLE_ITEM_COLUMNS},
    }


def read_answers(form: QueryDict) -> dict[str, Answer]:
    """The fields ``score-<criterion>``, ``rationale-<criterion>`` and ``evidence-<criterion>`` (one for each span)
    of a form, as answers by criterion."""
    keys = [name.partition("-")[2] for name in form if name.startswith(("score-", "rationale-", "evidence-"))]
    return {key: _answer(form, key) for key in keys}


def _answer(form: QueryDict, key: str) -> Answer:
    scores, rationale = form.getlist(f"score-{key}"), without_nul(form.get(f"rationale-{key}", ""))
    spans = posted_spans(key, form.getlist(f"evidence-{key}"))
    if NOT_APPLICABLE in scores:
        return Answer(status="na", rationale=rationale, evidence=spans)
    written = next(filter(None, scores), None)
    return Answer(score=None if written is None else _number(written), rationale=rationale, evidence=spans)


def _number(text: str) -> float:
    """The typed score; NaN, which is on no scale, if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def read_seconds(form: QueryDict) -> float:
    return _number(form.get("seconds", "0"))


def _whole_number(text: str) -> int | None:
    """The typed number; -1, which is in no question's limits, for what is no whole number."""
    written = text.strip()
    return int(written) if written.isascii() and written.isdecimal() and len(written) < 9 else -1 if written else None


def desk_context(
    assignment: Assignment,
    answers: Mapping[str, Answer],
    *,
    seconds: float,
    about_item: WholeItemAnswers,
    errors: Mapping[str, str] = MappingProxyType({}),
    revising: bool = False,
) -> dict[str, Any]:
    """The complete context of the scoring page. The ``NEEDED`` relations of the assignment must be loaded.

    ``revising``: of a submitted item, whose page has a key of its own and neither draft, lease, skip nor undo.
    """
    duty, campaign, item = assignment.duty, assignment.duty.campaign, assignment.item
    criteria = service.criteria_on_desk(assignment)
    language = presentation.text_language(criteria, item.language)
    swapped = pairs.swapped_for(assignment, criteria)
    return {
        "campaign": {"name": campaign.name, "url": None},
        "duty": {"name": duty.name},
        "before_work": duty.purpose if service.is_training_or_exam(duty) else "",
        "revising": revising,
        "asked_again": ", ".join(one.says("name", language) or one.key for one in service.asked_again(assignment)),
        "note": notes.private_note(assignment),
        "thread": threads.thread_at(assignment),
        "ask": None if duty.purpose == Duty.Purpose.EXAM else reverse("desk_ask", args=[assignment.key]),
        "assignment": {"key": str(uuid7() if revising else assignment.key), "seconds": round(seconds)},
        "item": presentation.show_item(item, criteria, campaign.dataset.layout, swapped),
        "rubric": {
            "name": campaign.rubric_version.name(language),
            "tag": campaign.rubric_version.name_tag(language),
            "version": f"v{campaign.rubric_version.number}",
        },
        "criteria": presentation.show_criteria(criteria, language, answers, swapped),
        "whole_item_questions": presentation.show_whole_item_questions(
            service.asked_of_item(assignment), about_item, errors
        ),
        "versions": [
            presentation.show_version(at, rated, language, given, swapped)
            for at, rated, given in service.earlier_versions(assignment)
        ],
        "text_language": language,
        "text_direction": languages.direction(language),
        "progress": leasing.desk_progress(duty=duty, annotator=assignment.annotator),
        "urls": urls(assignment, revising),
        "kept_as": str(assignment.key),
        "can_undo": None if revising else undo_url(service.last_submitted(duty=duty, annotator=assignment.annotator)),
    }


def urls(assignment: Assignment, revising: bool) -> dict[str, str]:
    if revising:
        scored = reverse("desk_scored", args=[assignment.duty.visible_pk])
        return {"submit": reverse("desk_revise", args=[assignment.key]), "leave": reverse("desk_leave"), "back": scored}
    skip = () if service.is_training_or_exam(assignment.duty) else ("skip",)
    actions = ("submit", "draft", "heartbeat", *skip)
    return {name: reverse(f"desk_{name}", args=[assignment.key]) for name in actions} | {"leave": reverse("desk_leave")}


def undo_url(last: Assignment | None) -> str | None:
    return reverse("desk_undo", args=[last.key]) if last else None
