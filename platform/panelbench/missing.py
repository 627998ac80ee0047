"""Addresses that lead nowhere: a page for people, our error shape for programs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views import defaults


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404, in the form the caller reads."""
    if request.path.startswith("/api/"):
        return JsonResponse({"code": "not_found", "detail": _("There is nothing here."), "fields": {}}, status=404)
    return defaults.page_not_found(request, exception)
