"""What every operation of the API may also answer: one shape of error, said once for all of them."""

from __future__ import annotations

from typing import Any, Literal

from drf_spectacular.openapi import AutoSchema as PlainSchema
from rest_framework import serializers

Direction = Literal["request", "response"]
REASONS = {
    "400": "Some fields need another look.",
    "401": "No token or session, or one that is not good any more.",
    "403": "Your role, or the token's scope, does not allow that.",
    "404": "There is no such thing, or none that you may see.",
    "409": "Not as things stand; `detail` says why.",
    "413": "Too large.",
    "415": "Not a kind of body that is read here.",
    "422": "Understood and refused; `fields` says which inputs are wrong and why.",
    "429": "Too many requests; `Retry-After` says when to come back.",
}


class ErrorSerializer(serializers.Serializer[dict[str, Any]]):
    """What every error looks like."""

    code = serializers.CharField()
    detail = serializers.CharField()
    fields = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))  # type: ignore[assignment]


class AutoSchema(PlainSchema):
    """drf-spectacular's schema with our errors on every operation; addresses kept for older programs are deprecated."""

    def is_deprecated(self) -> bool:
        return "/intakes/" in self.path or bool(super().is_deprecated())

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        error = self.resolve_serializer(ErrorSerializer, "response").ref
        for status, reason in REASONS.items():
            bodies.setdefault(status, {"content": {"application/json": {"schema": error}}, "description": reason})
        return bodies
