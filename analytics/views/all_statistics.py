"""The page All statistics: a link to everything that is computed about a campaign, by the page it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from analytics.study.choice import chosen_in_bar
from analytics.views.agreement import AGREEMENT
from analytics.views.calibration import CALIBRATION
from analytics.views.generators import GENERATORS
from analytics.views.items import shown_campaign
from analytics.views.parts import PartsPage
from analytics.views.planner import PLANNER
from analytics.views.rater_models import RATER_MODELS
from analytics.views.workload import ANNOTATORS

PARTS_PAGES: Sequence[PartsPage] = (AGREEMENT, ANNOTATORS, RATER_MODELS, CALIBRATION, GENERATORS, PLANNER)


@require_safe
@login_required
def all_statistics(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Links alone: nothing is computed here."""
    current = shown_campaign(request.user, project, campaign)
    here = [current.project.slug, current.pk]
    chosen = urlencode(chosen_in_bar(request.GET))
    kept = f"?{chosen}" if chosen else ""
    context = {
        "title": _("All statistics"),
        "subtitle": _("Everything that is computed about this campaign, each with its files and its methods."),
        "project": current.project,
        "campaign": current,
        "groups": [
            (
                page.title,
                reverse(f"numbers_{page.name}", args=here) + kept,
                [
                    (section.title, reverse(f"numbers_{page.name}_part", args=[*here, section.name]) + kept)
                    for section in page.sections
                ],
            )
            for page in PARTS_PAGES
        ],
    }
    return render(request, "analytics/all_statistics.html", context)
