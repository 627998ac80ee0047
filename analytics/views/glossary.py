"""The page of all words that pages explain where they stand."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import access
from accounts.models import SIGHTED
from analytics.glossary import TERMS


@require_safe
@login_required
def glossary_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every word with its meaning, in the order of the alphabet of the reader's language."""
    current = access.require(user=request.user, slug=project, roles=SIGHTED)
    in_order = sorted(TERMS.values(), key=lambda term: str(term.word).casefold())
    context = {"title": _("Glossary"), "project": current, "terms_in_order": in_order}
    return render(request, "analytics/glossary.html", context)
