"""Error responses of the API: one format for all errors, and its description in the schema."""

from __future__ import annotations

from typing import Any, Literal

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.utils.translation import gettext as _
from drf_spectacular.openapi import AutoSchema as PlainSchema
from rest_framework import serializers
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, Throttled, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from accounts.access import SecondFactorNeeded
from accounts.api_requests import UnauthenticatedThrottle
from accounts.refusals import Refused


# --- errors ----------------------------------------------------------------------------------------------------------
def api_error(error: Exception, context: dict[str, Any]) -> Response | None:
    """Convert Django's and DRF's exceptions into our format; None (a server error, 500) for others."""
    if isinstance(error, Refused):
        fields = {name: [text] for name, text in error.fields.items()}
        body = {"code": error.code, "detail": error.sentence, "fields": fields, **error.more}
        return Response(body, status=422 if fields else 409)
    if isinstance(error, RequestDataTooBig):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE / 2**20
        sentence = _("This request is larger than %(most)s MB. Send less, or import a file.") % {"most": most}
        return Response({"code": "too_large", "detail": sentence, "fields": {}}, status=413)
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
        response.data = {"code": "invalid", "detail": "Some fields need a correction.", "fields": _fields(error.detail)}
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


# --- the schema ------------------------------------------------------------------------------------------------------
Direction = Literal["request", "response"]
REASONS = {
    "400": "Some fields need a correction.",
    "401": "No token or session, or it is no longer valid.",
    "403": "Your role, or the token's scope, does not allow that.",
    "404": "It does not exist, or you cannot see it.",
    "409": "Not possible in the present state; `detail` says why.",
    "413": "Too large.",
    "415": "This type of request body is not supported.",
    "422": "Understood and refused; `fields` says which inputs are wrong and why.",
    "429": "Too many requests; `Retry-After` says when to come back.",
}


class ErrorSerializer(serializers.Serializer[dict[str, Any]]):
    """The format of every error."""

    code = serializers.CharField()
    detail = serializers.CharField()
    fields = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))  # type: ignore[assignment]


class AutoSchema(PlainSchema):
    """drf-spectacular's schema with our errors for every operation. Addresses under `intakes/` are deprecated."""

    def is_deprecated(self) -> bool:
        return "/intakes/" in self.path or bool(super().is_deprecated())

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        error = self.resolve_serializer(ErrorSerializer, "response").ref
        for status, reason in REASONS.items():
            bodies.setdefault(status, {"content": {"application/json": {"schema": error}}, "description": reason})
        return bodies
