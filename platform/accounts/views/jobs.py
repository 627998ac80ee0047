"""Background work in a project, or for staff in all projects."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts import access, jobs, refusals
from accounts.models import (
    Job,
    JobQuerySet,
    Project,
)

MOST = 100


def _listed(request: HttpRequest, visible_jobs: JobQuerySet) -> dict[str, Any]:
    shown = jobs.list_jobs(visible_jobs.current().select_related("project", "owner")[:MOST], user=request.user)
    is_open = [listed_job for listed_job in shown if listed_job.job.is_open]
    return {"open_jobs": is_open, "stopped_jobs": [listed_job for listed_job in shown if not listed_job.job.is_open]}


def _jobs_of(request: HttpRequest, project: str) -> tuple[Project, JobQuerySet]:
    chosen_project = access.require(user=request.user, slug=project)
    return chosen_project, Job.objects.visible_to(request.user).filter(project=chosen_project)


@never_cache  # the page and its list, which reloads itself, have the same address
@require_safe
@login_required
def jobs_page(request: HttpRequest, project: str) -> HttpResponse:
    """Jobs that wait, run, or failed lately in a project. The list reloads itself while a job is open."""
    chosen_project, visible_jobs = _jobs_of(request, project)
    template = "accounts/_jobs.html" if "HX-Request" in request.headers else "accounts/jobs.html"
    context = {"title": _("Background work"), "project": chosen_project, "list_url": request.path}
    return render(request, template, {**context, **_listed(request, visible_jobs)})


@never_cache
@require_safe
@login_required
def all_jobs(request: HttpRequest) -> HttpResponse:
    """The same for all projects, for staff."""
    if not request.user.is_staff:
        raise PermissionDenied("This is for staff.")
    template = "accounts/_jobs.html" if "HX-Request" in request.headers else "accounts/jobs.html"
    context = {"title": _("Background work"), "list_url": request.path}
    return render(request, template, {**context, **_listed(request, Job.objects.all())})


@require_POST
@login_required
def cancel_any_job(request: HttpRequest, job: int) -> HttpResponse:
    """Stop a job of any project, by the operator of the instance."""
    if not request.user.is_staff:
        raise PermissionDenied("This is for staff.")
    chosen = get_object_or_404(Job, pk=job)
    with refusals.refusals_as_messages(request):
        jobs.cancel(job=chosen, actor=request.user)
        messages.success(request, _("Cancelled."))
    return redirect("all_jobs")


@require_POST
@login_required
def cancel_job(request: HttpRequest, project: str, job: int) -> HttpResponse:
    """Cancel a job: the user's own, or as a lead any of the project."""
    chosen_project, visible_jobs = _jobs_of(request, project)
    chosen = get_object_or_404(visible_jobs, pk=job)
    with refusals.refusals_as_messages(request):
        jobs.cancel(job=chosen, actor=request.user)
        messages.success(request, _("Cancelled."))
    return redirect("jobs", chosen_project.slug)
