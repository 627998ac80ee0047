"""One duty: its deadline, priority, quota and pause, more annotators, items in progress; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from annotation import allocation, duty_settings
from annotation.api.campaigns import HandedOutSerializer, campaign_in_project
from annotation.duty_settings import HIGHEST_PRIORITY, LARGEST_QUOTA, DutySettings
from annotation.models import Duty


class DutySettingsSerializer(serializers.Serializer[Duty]):
    priority = serializers.IntegerField(default=0, min_value=-HIGHEST_PRIORITY, max_value=HIGHEST_PRIORITY)
    due_at = serializers.DateTimeField(default=None, allow_null=True)
    quota = serializers.IntegerField(default=None, allow_null=True, min_value=1, max_value=LARGEST_QUOTA)
    paused = serializers.BooleanField(default=False)


class MoreAnnotatorsSerializer(serializers.Serializer[Any]):
    overlap = serializers.IntegerField(min_value=1, max_value=allocation.MOST_OVERLAP, help_text="The number now.")
    more = serializers.IntegerField(min_value=1, max_value=allocation.MOST_OVERLAP)


class ReturnSerializer(serializers.Serializer[Any]):
    annotators = serializers.ListField(
        child=serializers.CharField(max_length=80), max_length=1000, help_text="Pseudonyms."
    )


class ReturnedSerializer(serializers.Serializer[Any]):
    items = serializers.IntegerField()


def _duty(user: User, slug: str, campaign: int, pk: int) -> Duty:
    found = Duty.objects.filter(campaign=campaign_in_project(user, slug, campaign))
    return get_object_or_404(found.select_related("campaign__project"), pk=pk)


class DutyDetail(APIView):
    @extend_schema(responses=DutySettingsSerializer)
    def get(self, request: Request, project: str, campaign: int, duty: int) -> Response:
        """The settings of one duty."""
        return Response(DutySettingsSerializer(_duty(request.user, project, campaign, duty)).data)

    @extend_schema(request=DutySettingsSerializer, responses=DutySettingsSerializer)
    def put(self, request: Request, project: str, campaign: int, duty: int) -> Response:
        """Set priority, deadline, quota and pause; what is left out has its default."""
        changed = _duty(request.user, project, campaign, duty)
        serializer = DutySettingsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        settings = DutySettings(**serializer.validated_data)
        duty_settings.change_duty(duty=changed, settings=settings, actor=request.user)
        return Response(DutySettingsSerializer(changed).data)


class DutyAnnotators(APIView):
    @extend_schema(request=MoreAnnotatorsSerializer, responses=HandedOutSerializer)
    def post(self, request: Request, project: str, campaign: int, duty: int) -> Response:
        """Let more annotators score each item."""
        grown = _duty(request.user, project, campaign, duty)
        serializer = MoreAnnotatorsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        created = duty_settings.add_annotators(duty=grown, actor=request.user, **serializer.validated_data)
        return Response(HandedOutSerializer({"assignments": created}).data)


class DutyReturn(APIView):
    @extend_schema(request=ReturnSerializer, responses=ReturnedSerializer)
    def post(self, request: Request, project: str, campaign: int, duty: int) -> Response:
        """Return the items that these annotators have in progress to the queue."""
        shown = _duty(request.user, project, campaign, duty)
        serializer = ReturnSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        named = set(serializer.validated_data["annotators"])
        keys = [pk for pk, pseudonym, _count in duty_settings.people_with_items(shown) if pseudonym in named]
        returned = duty_settings.return_items(duty=shown, annotators=keys, actor=request.user)
        return Response(ReturnedSerializer({"items": returned}).data)
