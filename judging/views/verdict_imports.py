"""Imports of verdicts: the page of every import, with judging's verbs behind it."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts import refusals
from accounts.models import Project
from annotation.models import Import
from annotation.views import import_page, imports
from judging import tasks
from judging.imports import verdicts
from judging.models import JudgeRun


def _find(request: HttpRequest, project: str, file_import: int) -> tuple[Project, Import]:
    current_project, found = imports.find(request, project, file_import)
    if found.kind != Import.Kind.VERDICTS:
        raise Http404("This import contains no verdicts.")
    return current_project, found


@require_safe
@login_required
def verdict_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Columns, first verdicts, problems and report; the runs it made, once it is stored."""
    current_project, found = _find(request, project, file_import)
    seen = import_page.seen(found, lambda: verdicts.preview_verdict_import(found))
    addresses = {"store_url": reverse("verdict_import_store", args=[current_project.slug, found.pk])}
    addresses["undo_url"] = reverse("verdict_import_undo", args=[current_project.slug, found.pk])
    addresses["problems_url"] = reverse("verdict_import_problems", args=[current_project.slug, found.pk])
    made = [(str(run.judge), "") for run in JudgeRun.objects.filter(file_import=found).select_related("judge")]
    context = import_page.context(request, current_project, found, seen)
    return render(request, "annotation/import.html", {**context, **addresses, "stored_links": made})


@require_safe
@login_required
def verdict_import_problems(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """What is wrong with the files, as CSV."""
    _room, found = _find(request, project, file_import)
    return import_page.problems_csv(found, import_page.seen(found, lambda: verdicts.preview_verdict_import(found)))


@require_POST
@login_required
def store_verdict_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Store what the page shows: directly, or in the background if the files are large."""
    current_project, found = _find(request, project, file_import)
    with refusals.refusals_as_messages(request):
        tasks.store(found, request.user)
    return redirect("verdict_import", current_project.slug, found.pk)


@require_POST
@login_required
def undo_verdict_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Take the verdicts back, and the judges that have no others."""
    current_project, found = _find(request, project, file_import)
    with refusals.refusals_as_messages(request):
        verdicts.undo(file_import=found, actor=request.user)
        messages.success(request, _("Undone. The files are kept: store them again or discard them."))
    return redirect("verdict_import", current_project.slug, found.pk)
