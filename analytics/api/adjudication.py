"""Adjudication by API: the queue, one item without names, what is decided, and the decisions of meetings."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics import disagreements
from analytics.api.items import ByNumber, ItemAdjudicationSerializer
from analytics.disagreements import QueuedItem
from analytics.views.items import shown_campaign
from annotation import adjudication
from annotation.adjudication import CriterionDecision, SeenRating
from annotation.desk.api import SpanSerializer
from annotation.models import Adjudication, Campaign, Item, MeetingDecision

CHOICES = [
    OpenApiParameter("order", {"type": "string", "enum": list(disagreements.ORDERS)}),
    OpenApiParameter(
        "criterion", str, description="A key of the rubric; without it all, unless the campaign is large."
    ),
    OpenApiParameter("language", str, description="A language tag, exactly."),
    OpenApiParameter("judge", str, description="For the order `judge`: whose distance counts; by default the first."),
    OpenApiParameter("state", {"type": "string", "enum": list(disagreements.STATES)}),
    OpenApiParameter("seed", int, description="Draws the order of items with the same value."),
]


class QueuedItemSerializer(serializers.Serializer[QueuedItem]):
    """One item of the queue. `value`: the largest over the criteria that wait, which `criteria` names."""

    id = serializers.IntegerField(source="pk")
    item = serializers.CharField(source="external_id")
    language = serializers.CharField()
    n_ratings = serializers.IntegerField()
    value = serializers.FloatField()
    criteria = serializers.ListField(source="worst", child=serializers.CharField())
    state = serializers.ChoiceField(choices=disagreements.STATES[:-1])


class SeenRatingSerializer(serializers.Serializer[SeenRating]):
    """One rating. `rater` stands for somebody on this item only."""

    rater = serializers.CharField(source="code")
    status = serializers.CharField()
    score = serializers.FloatField(allow_null=True)
    rationale = serializers.CharField()
    evidence = SpanSerializer(many=True)


class DisputedCriterionSerializer(serializers.Serializer[dict[str, Any]]):
    """One criterion of an item. `seen` is the digest of its ratings, which a decision on it sends back."""

    criterion = serializers.CharField()
    disputed = serializers.BooleanField()
    seen = serializers.CharField()
    ratings = SeenRatingSerializer(many=True)
    adjudications = ItemAdjudicationSerializer(many=True)


class AdjudicationDecisionSerializer(serializers.Serializer[Any]):
    """A decision on one criterion: `score` null is N/A. `cause` may be empty where the raters agree."""

    criterion = serializers.CharField()
    score = serializers.FloatField(allow_null=True)
    cause = serializers.ChoiceField(choices=Adjudication.Cause.choices, allow_blank=True, default="")
    cause_note = serializers.CharField(allow_blank=True, default="", max_length=adjudication.LONGEST_NOTE)
    rationale = serializers.CharField(max_length=adjudication.LONGEST_RATIONALE)
    seen = serializers.CharField(max_length=64)


class ItemDecisionsSerializer(serializers.Serializer[Any]):
    """Decisions on criteria of one item. The same `key` again stores nothing."""

    decisions = AdjudicationDecisionSerializer(many=True, allow_empty=False)
    order = serializers.ChoiceField(choices=disagreements.ORDERS, default="range")
    key = serializers.UUIDField(required=False)


class MeetingDecisionSerializer(serializers.ModelSerializer):
    """A decision of a calibration meeting. `item` is the item's external id."""

    criterion = serializers.CharField(source="criterion.key", default=None, allow_null=True, read_only=True)
    item = serializers.CharField(source="item.external_id", default=None, allow_null=True, read_only=True)

    class Meta:
        model = MeetingDecision
        fields = ("id", "held_on", "criterion", "item", "decision", "guideline_change", "recorded_at")
        read_only_fields = fields


class NewMeetingDecisionSerializer(serializers.Serializer[Any]):
    """What a meeting decided, on a criterion (its key) and an item (its external id) or in general."""

    held_on = serializers.DateField()
    decision = serializers.CharField()
    guideline_change = serializers.CharField(allow_blank=True, default="")
    criterion = serializers.CharField(allow_blank=True, default="")
    item = serializers.CharField(allow_blank=True, default="")


class AdjudicationQueue(generics.GenericAPIView[Any]):
    serializer_class = QueuedItemSerializer
    queryset = Item.objects.none()
    pagination_class = ByNumber

    @extend_schema(parameters=CHOICES, responses=QueuedItemSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """The items on which raters differ, those that differ most first; without those that you have rated."""
        current = shown_campaign(request.user, project, campaign)
        choice = disagreements.chosen_queue(disagreements.queue_options(current), request.query_params)
        page = self.paginate_queryset(disagreements.queue(current, choice, request.user).items)
        return self.get_paginated_response(QueuedItemSerializer(page, many=True).data)


class ItemAdjudications(APIView):
    @extend_schema(responses=DisputedCriterionSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int, item: int) -> Response:
        """The rated criteria of an item with their ratings, names hidden, and what was decided; no verdicts."""
        current = shown_campaign(request.user, project, campaign)
        return Response(_criteria(current, _item(request, current, item)))

    @extend_schema(request=ItemDecisionsSerializer, responses={201: DisputedCriterionSerializer(many=True)})
    def post(self, request: Request, project: str, campaign: int, item: int) -> Response:
        """Decide criteria of an item. The ratings stay as they are; the newest decision counts."""
        current = shown_campaign(request.user, project, campaign)
        stored = _item(request, current, item)
        asked = ItemDecisionsSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        criteria = {criterion.key: criterion for criterion in current.rubric_version.criteria.all()}
        given = asked.validated_data["decisions"]
        if unknown := [each["criterion"] for each in given if each["criterion"] not in criteria]:
            raise ValidationError({"decisions": [_("This rubric has no criterion “%s”.") % unknown[0]]})
        adjudication.adjudicate(
            campaign=current,
            item=stored,
            decisions=[CriterionDecision(**{**each, "criterion": criteria[each["criterion"]]}) for each in given],
            order=asked.validated_data["order"],
            key=asked.validated_data.get("key") or uuid4(),
            actor=request.user,
        )
        return Response(_criteria(current, stored), status=status.HTTP_201_CREATED)


def _item(request: Request, campaign: Campaign, item: int) -> Item:
    return get_object_or_404(Item.objects.visible_to(request.user).of(campaign.dataset), pk=item)


def _criteria(campaign: Campaign, item: Item) -> Any:
    """The rated criteria of an item, in the order of the rubric."""
    seen = adjudication.seen_ratings(campaign, [item.pk], with_evidence=True)
    decided = list(adjudication.adjudications_of(campaign, item))
    rows = [
        {
            "criterion": criterion.key,
            "disputed": adjudication.is_disputed(given),
            "seen": adjudication.digest_of(one.stored for one in given),
            "ratings": given,
            "adjudications": [one for one in decided if one.adjudication.criterion_id == criterion.pk],
        }
        for criterion in campaign.rubric_version.criteria.all()
        if (given := seen.get((item.pk, criterion.pk)))
    ]
    return DisputedCriterionSerializer(rows, many=True).data


class MeetingDecisions(APIView):
    @extend_schema(responses=MeetingDecisionSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """The decisions of a campaign's calibration meetings, the newest meeting first."""
        current = shown_campaign(request.user, project, campaign)
        return Response(MeetingDecisionSerializer(adjudication.meeting_decisions(current), many=True).data)

    @extend_schema(request=NewMeetingDecisionSerializer, responses={201: MeetingDecisionSerializer})
    def post(self, request: Request, project: str, campaign: int) -> Response:
        """Record a decision. It is not changed later: record another one."""
        current = shown_campaign(request.user, project, campaign)
        asked = NewMeetingDecisionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        given = dict(asked.validated_data)
        about = adjudication.subject_of_decision(current, criterion=given.pop("criterion"), item=given.pop("item"))
        stored = adjudication.record_decision(campaign=current, **given, **about, actor=request.user)
        return Response(MeetingDecisionSerializer(stored).data, status=status.HTTP_201_CREATED)
