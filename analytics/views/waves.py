"""The page of a campaign's waves: what was drawn into its tasks, by whom, and what of it is rated."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from analytics.views.items import shown_campaign
from analytics.waves import waves, withdrawn_waves


@require_safe
@login_required
def waves_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The waves of every task, the newest first; those that were withdrawn in a fold."""
    current = shown_campaign(request.user, project, campaign)
    found = waves(current)
    context = {
        "title": _("Waves"),
        "subtitle": _("What was given to the panels at one time, and with what probability it was drawn."),
        "project": current.project,
        "campaign": current,
        "waves": found,
        "withdrawn": withdrawn_waves(current),
        "items": sum(wave.items for wave in found),
        "assignments": sum(wave.assignments for wave in found),
        "submitted": sum(wave.submitted for wave in found),
    }
    return render(request, "analytics/waves.html", context)
