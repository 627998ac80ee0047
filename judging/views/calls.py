"""The pages of a run's calls: the request, the reply, and the parsed verdicts."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import access
from accounts.inputs import whole_number
from judging.forms import LogForm
from judging.models import Attempt, Call, JudgeRun

PAGE = 50


def log(request: HttpRequest, run: JudgeRun) -> dict[str, Any]:
    """One page of a run's calls under the filters of the address: those after call `after`."""
    spoken = run.calls.order_by("item__language").values_list("item__language", flat=True).distinct()
    form = LogForm(request.GET or None, spoken=list(spoken))
    calls = form.narrow(run.calls.all()) if form.is_bound else run.calls.all()
    start = whole_number(request.GET.get("after")) or 0
    page = list(_with_replies(calls.filter(pk__gt=start))[: PAGE + 1])
    return {
        "log": page[:PAGE],
        "log_form": form,
        "next_after": page[PAGE - 1].pk if len(page) > PAGE else None,
        "is_first_page": not start,
    }


def _with_replies(calls: QuerySet[Call]) -> QuerySet[Call]:
    attempts = Attempt.objects.defer("request").order_by("number").prefetch_related("verdicts__criterion")
    narrow = calls.select_related("item", "criterion").defer("item__turns", "item__fields", "item__attributes")
    return narrow.order_by("pk").prefetch_related(Prefetch("attempts", attempts))


@require_safe
@login_required
def call_page(request: HttpRequest, project: str, run: int, call: int) -> HttpResponse:
    """One call: the prompt as it was sent, every attempt, the reply as it came, and the reading."""
    current_project = access.require(user=request.user, slug=project)
    runs = JudgeRun.objects.visible_to(request.user).filter(project=current_project).select_related("judge", "dataset")
    its_run = get_object_or_404(runs, pk=run)
    calls = its_run.calls.select_related("item", "criterion")
    shown = get_object_or_404(calls, pk=call)
    attempts = list(shown.attempts.order_by("number").prefetch_related("verdicts__criterion"))
    context = {
        "title": shown.item.title or shown.item.external_id,
        "simulated": its_run.judge.simulated,
        "project": current_project,
        "run": its_run,
        "call": shown,
        "attempts": attempts,
        "verdicts": [verdict for attempt in attempts for verdict in attempt.verdicts.all()],
        "before": calls.filter(pk__lt=shown.pk).order_by("-pk").first(),
        "after": calls.filter(pk__gt=shown.pk).order_by("pk").first(),
    }
    return render(request, "judging/call.html", {**context, "subtitle": _subtitle(shown)})


def _subtitle(call: Call) -> str:
    about = call.criterion.says("name", "en") if call.criterion else _("all criteria")
    return _("%(criteria)s, repeat %(repeat)d") % {"criteria": about, "repeat": call.repeat}
