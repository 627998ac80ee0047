"""A newer version of a campaign's rubric: what differs, and going on with it; for leads."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, jobs
from accounts.models import Role, User
from annotation import rubric_changes
from annotation.api.campaigns import LARGEST_ID, LEAD, campaign_in_project
from annotation.carried_ratings import ChangedCriterion, RatedScore, RatingDecision
from annotation.models import Campaign, RubricChange, RubricVersion
from annotation.rubrics import PartChange


class PartChangeSerializer(serializers.Serializer[PartChange]):
    part = serializers.CharField()
    point = serializers.FloatField(allow_null=True)
    language = serializers.CharField(help_text="Empty for a part that has no language.")
    before = serializers.CharField()
    after = serializers.CharField()


class RatedScoreSerializer(serializers.Serializer[RatedScore]):
    score = serializers.FloatField()
    ratings = serializers.IntegerField()


class ChangedCriterionSerializer(serializers.Serializer[ChangedCriterion]):
    """A criterion of either version. `decisions` that are possible; none where there is nothing to decide."""

    criterion = serializers.CharField(source="difference.key")
    kind = serializers.CharField(source="difference.kind", help_text="same, changed, added or removed")
    scale_differs = serializers.BooleanField(source="difference.scale_differs")
    parts = PartChangeSerializer(source="difference.parts", many=True)
    ratings = serializers.IntegerField(source="rated.ratings")
    items = serializers.IntegerField(source="rated.items")
    annotators = serializers.IntegerField(source="rated.annotators")
    not_applicable = serializers.IntegerField(source="rated.not_applicable")
    imported = serializers.IntegerField(source="rated.imported", help_text="Nobody can rate these again.")
    scores = RatedScoreSerializer(source="rated.scores", many=True)
    decisions = serializers.ListField(child=serializers.CharField())


class RatingDecisionSerializer(serializers.Serializer[Any]):
    """`keep`, `requeue` or `map`; `scores` of a map: by old score the new one, null for what is rated again."""

    decision = serializers.CharField(max_length=10, help_text="keep, requeue or map")
    scores = serializers.DictField(child=serializers.FloatField(allow_null=True), required=False)


class RubricChangeSerializer(serializers.Serializer[RubricChange]):
    """Counts of ratings: `kept`, `mapped`, `requeued`, `removed`, `left` (imported); `assignments` rated again.

    A large campaign is changed, or changed back, by a worker: `job` is its newest one. `finished_at` is null until the
    change is carried out.
    """

    id = serializers.IntegerField(source="pk", read_only=True)
    from_version = serializers.IntegerField(
        source="from_version_id", min_value=1, max_value=LARGEST_ID, help_text="The version that you have seen."
    )
    version = serializers.IntegerField(source="to_version_id", min_value=1, max_value=LARGEST_ID)
    decisions = serializers.DictField(child=RatingDecisionSerializer(), required=False)
    qualify_again = serializers.BooleanField(
        required=False, help_text="Training and exam count only from the change on. Default: false."
    )
    counts = serializers.DictField(child=serializers.IntegerField(), read_only=True)
    at = serializers.DateTimeField(read_only=True)
    finished_at = serializers.DateTimeField(read_only=True, allow_null=True)
    undone_at = serializers.DateTimeField(read_only=True, allow_null=True)
    job = serializers.IntegerField(source="job_id", read_only=True, allow_null=True)


def _led(user: User, slug: str, campaign: int) -> Campaign:
    access.require(user=user, slug=slug, roles=(Role.LEAD,))
    return campaign_in_project(user, slug, campaign)


def _version(user: User, campaign: Campaign, pk: int) -> RubricVersion:
    own = RubricVersion.objects.visible_to(user).filter(rubric=campaign.rubric_version.rubric_id)
    return get_object_or_404(own.select_related("rubric"), pk=pk)


def _decisions(given: dict[str, Any]) -> dict[str, RatingDecision]:
    return {
        key: RatingDecision(one["decision"], {_score(old): new for old, new in one.get("scores", {}).items()})
        for key, one in given.items()
    }


def _score(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise serializers.ValidationError({"decisions": [f"“{text}” is no score."]}) from None


class RubricChanges(APIView):
    roles = LEAD

    @extend_schema(
        parameters=[OpenApiParameter("version", int, required=True)],
        responses=ChangedCriterionSerializer(many=True),
    )
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """What differs between the campaign's version of the rubric and another one, with the ratings it touches."""
        current = _led(request.user, project, campaign)
        wanted = request.query_params.get("version", "")
        version = _version(request.user, current, int(wanted[:18]) if wanted.isdecimal() else 0)
        return Response(ChangedCriterionSerializer(rubric_changes.touched_criteria(current, version), many=True).data)

    @extend_schema(request=RubricChangeSerializer, responses={201: RubricChangeSerializer})
    def post(self, request: Request, project: str, campaign: int) -> Response:
        """Go on with a newer version of the rubric, with a decision on the ratings of each criterion that differs."""
        current = _led(request.user, project, campaign)
        serializer = RubricChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        chosen = serializer.validated_data
        change = rubric_changes.change_version(
            campaign=current,
            version=_version(request.user, current, chosen["to_version_id"]),
            decisions=_decisions(chosen.get("decisions", {})),
            from_version=chosen["from_version_id"],
            qualify_again=chosen.get("qualify_again", False),
            is_large=rubric_changes.is_large(current),
            actor=request.user,
        )
        if change.job:
            jobs.enqueue(change)
        return Response(RubricChangeSerializer(change).data, status=status.HTTP_201_CREATED)


class RubricChangeUndo(APIView):
    roles = LEAD

    @extend_schema(request=None, responses=RubricChangeSerializer)
    def post(self, request: Request, project: str, campaign: int, change: int) -> Response:
        """Go back to the former version, as long as nothing was rated under the new one."""
        current = _led(request.user, project, campaign)
        undone = get_object_or_404(current.rubric_changes.select_related("campaign__project"), pk=change)
        is_large = rubric_changes.is_large(current)
        rubric_changes.undo_change(change=undone, is_large=is_large, actor=request.user)
        if is_large:
            jobs.enqueue(undone)
        undone.refresh_from_db()
        return Response(RubricChangeSerializer(undone).data)
