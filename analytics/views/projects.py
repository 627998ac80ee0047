"""Pages of all of a project: the first one, with what it has and what to do next, and the staged workflow.

The workflow asks: may a judge that agrees with the panel in one language be used in the others?
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import access, languages
from accounts.models import Role
from analytics import overview, page_cache, tasks, workflow
from analytics.questions.asked import question_choices
from analytics.questions.question import NumbersQuestion
from analytics.views.items import shown_campaign
from analytics.workflow import CampaignWorkflow, WorkflowStep
from annotation.models import Campaign


@require_safe
@login_required
@page_cache.cached_page
def project_page(request: HttpRequest, project: str) -> HttpResponse:
    """What needs somebody, what runs, what is decided, what there is, what it took, and what to do next."""
    current_project = access.require(user=request.user, slug=project)
    held = overview.holdings(project=current_project, user=request.user)
    listed = list(overview.campaigns(project=current_project, user=request.user))
    to_do = overview.steps(current_project, request.user, held, listed)
    uses = overview.latest_uses(current_project)
    context = {
        "title": current_project.name,
        "subtitle": current_project.description,
        "project": current_project,
        "held": held,
        "steps": to_do,
        "next_step": next((step for step in to_do if not step.is_done), None),
        "campaigns": listed,
        "runs": overview.judge_runs(project=current_project, user=request.user),
        "attention": overview.needs_attention(current_project, request.user, uses),
        "running": overview.running_now(current_project),
        "decided": overview.decided_uses(uses),
        "effort": overview.effort_of(current_project),
    }
    return render(request, "analytics/project.html", context)


@require_safe
@login_required
@page_cache.cached_page
def workflow_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The checklist of one judge. The page asks for itself while figures are computed."""
    current = shown_campaign(request.user, project, campaign)
    asked = {name: request.GET.get(name, "") for name in ("judge", "language")}
    choices = question_choices(current)
    found = workflow.campaign_workflow(current, **asked, choices=choices)
    for settings in found.stale:
        tasks.ask_to_compute(campaign=current, settings=settings)
    is_lead = access.holds(user=request.user, project=current.project, roles=(Role.LEAD,))
    context = {
        "title": _("Workflow"),
        "subtitle": _("Four steps before a judge is used across languages. They count in this order."),
        "project": current.project,
        "campaign": current,
        "workflow": found,
        "steps": [
            (number, step, *start_of(current, found, step, is_lead)) for number, step in enumerate(found.steps, 1)
        ],
        "next_start": start_of(current, found, found.next_step, is_lead) if found.next_step else ("", ""),
        "judges": choices.listed_judges(NumbersQuestion()),
        "languages": [(tag, languages.name_for(tag, request.LANGUAGE_CODE)) for tag in choices.languages],
        "thresholds_address": reverse("thresholds", args=[current.project.slug]) if is_lead else "",
    }
    return render(request, "analytics/workflow.html", context)


def start_of(campaign: Campaign, found: CampaignWorkflow, step: WorkflowStep, is_lead: bool) -> tuple[str, str]:
    """The text and the address of a step's button; two empty texts if there is nothing to do."""
    slug, here = campaign.project.slug, [campaign.project.slug, campaign.pk]
    about = f"?{urlencode({'judge': found.judge})}" if found.judge else ""
    version = campaign.rubric_version
    starts: dict[str, tuple[Any, str]] = {
        "thresholds": (_("Declare thresholds"), reverse("thresholds", args=[slug]) if is_lead else ""),
        "items": (_("Add items"), reverse("datasets", args=[slug])),
        "label": (_("Plan more labels"), reverse("numbers_planner", args=here)),
        "rubric": (_("Work on the rubric"), reverse("rubric_version", args=[slug, version.rubric.key, version.number])),
        "run": (_("Run a judge"), reverse("judges", args=[slug])),
        "decisions": (_("What would change it"), reverse("judge_decisions", args=here) + about),
        "calibrate": (_("Correct its means"), reverse("numbers_results", args=here) + about),
    }
    name, address = starts.get(step.action, ("", ""))
    return (str(name), address) if address else ("", "")
