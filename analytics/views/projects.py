"""A project's first page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts import access
from analytics import overview, page_cache


@require_safe
@login_required
@page_cache.cached_page
def project_page(request: HttpRequest, project: str) -> HttpResponse:
    """What there is, how far each campaign and judge run is, and what to do next."""
    current_project = access.require(user=request.user, slug=project)
    held = overview.holdings(project=current_project, user=request.user)
    steps = overview.steps(held)
    context = {
        "title": current_project.name,
        "subtitle": current_project.description,
        "project": current_project,
        "held": held,
        "steps": steps,
        "next_step": next((step for step in steps if not step.is_done), None),
        "campaigns": overview.campaigns(project=current_project, user=request.user),
        "runs": overview.judge_runs(project=current_project, user=request.user),
    }
    return render(request, "analytics/project.html", context)
