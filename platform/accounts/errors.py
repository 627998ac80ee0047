"""Every API error has one shape: ``{"code": str, "detail": str, "fields": {name: [str]}}`` (DESIGN 8.18)."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, Throttled, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from accounts.access import SecondFactorNeeded
from accounts.refusals import Refused
from accounts.throttles import UnauthenticatedThrottle


def api_error(error: Exception, context: dict[str, Any]) -> Response | None:
    """Django's and DRF's exceptions in our shape; anything else stays an error 500."""
    if isinstance(error, Refused):
        fields = {name: [text] for name, text in error.fields.items()}
        return Response({"code": error.code, "detail": error.sentence, "fields": fields}, status=422 if fields else 409)
    if isinstance(error, NotAuthenticated | AuthenticationFailed):
        throttle = UnauthenticatedThrottle()
        if not throttle.allow_request(context["request"], context["view"]):
            error = Throttled(throttle.wait())
    response = exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, SecondFactorNeeded):
        response.data = {"code": "second_factor_required", "detail": str(error), "fields": {}}
        return response
    if isinstance(error, ValidationError):
        response.data = {"code": "invalid", "detail": "Some fields need another look.", "fields": _fields(error.detail)}
    else:
        detail = response.data.get("detail", "") if isinstance(response.data, dict) else ""
        response.data = {"code": getattr(detail, "code", "error"), "detail": str(detail), "fields": {}}
    return response


def _fields(detail: Any) -> dict[str, list[str]]:
    if isinstance(detail, dict):
        return {str(name): [str(text) for text in _flat(texts)] for name, texts in detail.items()}
    return {"non_field_errors": [str(text) for text in _flat(detail)]}


def _flat(texts: Any) -> list[Any]:
    if isinstance(texts, dict):
        return [f"{name}: {text}" for name, inner in texts.items() for text in _flat(inner)]
    if isinstance(texts, list):
        return [text for inner in texts for text in _flat(inner)]
    return [texts]
