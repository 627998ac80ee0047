"""One duty: its deadline, priority, quota and pause, more annotators, items in progress; for leads and researchers.

For leads: the closing questionnaire of a campaign.
"""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import Role, User
from annotation import allocation, duty_settings, questionnaires
from annotation.api.campaigns import HandedOutSerializer, campaign_in_project
from annotation.duty_settings import HIGHEST_PRIORITY, LARGEST_QUOTA, DutySettings
from annotation.models import Campaign, Duty
from annotation.questionnaires import ClosingResults, CriterionDifficulty, PointCounts


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


# --- the closing questionnaire ---------------------------------------------------------------------------------------
class PointCountsSerializer(serializers.Serializer[PointCounts]):
    """How many people chose each point from 1 to 5."""

    people = serializers.IntegerField()
    mean = serializers.FloatField(allow_null=True)
    counts = serializers.ListField(child=serializers.IntegerField())


class CriterionDifficultySerializer(serializers.Serializer[CriterionDifficulty]):
    """`language`: "" where languages with few people are put together; null: too few people answered."""

    criterion = serializers.CharField(source="criterion.key")
    language = serializers.CharField()
    difficulty = PointCountsSerializer(allow_null=True)
    confidence = PointCountsSerializer(allow_null=True)


class ClosingResultsSerializer(serializers.Serializer[ClosingResults]):
    """`answered` of `people` have answered; `waiting` answers are not shown yet, because their group is too small."""

    asked = serializers.BooleanField(source="is_asked")
    people = serializers.IntegerField()
    answered = serializers.IntegerField()
    waiting = serializers.IntegerField()
    criteria = CriterionDifficultySerializer(source="rows", many=True)
    comments = serializers.ListField(child=serializers.CharField())


class ClosingSwitchSerializer(serializers.Serializer[Any]):
    asked = serializers.BooleanField()


def _led(user: User, slug: str, campaign: int) -> Campaign:
    access.require(user=user, slug=slug, roles=(Role.LEAD,))
    return campaign_in_project(user, slug, campaign)


class ClosingQuestionnaire(APIView):
    @extend_schema(responses=ClosingResultsSerializer)
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """What annotators answered to the closing questionnaire, in groups of five people or more; for leads."""
        results = questionnaires.closing_results(_led(request.user, project, campaign))
        return Response(ClosingResultsSerializer(results).data)

    @extend_schema(request=ClosingSwitchSerializer, responses=ClosingResultsSerializer)
    def put(self, request: Request, project: str, campaign: int) -> Response:
        """Switch the closing questionnaire on or off; for leads."""
        current = _led(request.user, project, campaign)
        serializer = ClosingSwitchSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        questionnaires.switch_questionnaire(campaign=current, actor=request.user, **serializer.validated_data)
        return Response(ClosingResultsSerializer(questionnaires.closing_results(current)).data)
