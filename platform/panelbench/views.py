"""The one page that belongs to no app."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from panelbench import health


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """Whether every part of this instance answers; 503 when one does not."""
    report = health.report()
    return JsonResponse(report, status=200 if report["status"] == "ok" else 503)
