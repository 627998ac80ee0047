"""A project's first page: what it has, how far it is, and what to do next."""

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
    """What needs somebody, what runs, what is decided, what there is, what it took, and what to do next."""
    current_project = access.require(user=request.user, slug=project)
    held = overview.holdings(project=current_project, user=request.user)
    to_do, uses = overview.steps(held), overview.latest_uses(current_project)
    context = {
        "title": current_project.name,
        "subtitle": current_project.description,
        "project": current_project,
        "held": held,
        "steps": to_do,
        "next_step": next((step for step in to_do if not step.is_done), None),
        "campaigns": overview.campaigns(project=current_project, user=request.user),
        "runs": overview.judge_runs(project=current_project, user=request.user),
        "attention": overview.needs_attention(current_project, request.user, uses),
        "running": overview.running_now(current_project),
        "decided": overview.decided_uses(uses),
        "effort": overview.effort_of(current_project),
    }
    return render(request, "analytics/project.html", context)
