"""The tab Report of a campaign: a form that asks a worker for a report, and one's own that were written."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from analytics.exporting import exports
from analytics.views.exports import listed_transfers
from analytics.views.items import shown_campaign


@require_safe
@login_required
def report_tab(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """What a report holds, the form, and the files that a worker wrote for the reader."""
    current = shown_campaign(request.user, project, campaign)
    context = {
        "title": _("Report"),
        "project": current.project,
        "campaign": current,
        "formats": exports.offered_exports("report"),
        "layouts": exports.LAYOUTS,
        **listed_transfers(current.project, request.user),
    }
    return render(request, "analytics/report_tab.html", context)
