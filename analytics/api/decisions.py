"""What judges may be used for, since when, and under which thresholds; for leads and researchers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import Role
from analytics import tasks
from analytics.judges import decisions, thresholds
from analytics.judges.decisions import CampaignDecisions, DecisionChange
from analytics.judges.reasons import DECISION_STATES, CellDecision, Condition
from analytics.models import GateDecision, GateThresholds
from analytics.views.items import shown_campaign

FILTERS = ("judge", "criterion", "language", "decision")
_TEXT = {"allow_blank": True, "default": ""}


class ThresholdsSerializer(serializers.ModelSerializer):
    """One version of the thresholds. `figures_since`: since when a judge's figures could be read when it was declared;
    null where they were declared before any figure.
    """

    declared_by = serializers.CharField(source="declared_by.name", default=None, allow_null=True, read_only=True)
    audits = serializers.ListField(child=serializers.CharField(), required=False)

    class Meta:
        model = GateThresholds
        fields = ("number", "preset", *thresholds.LIMITS, "audits", "figures_since", "declared_by", "declared_at")
        read_only_fields = ("number", "figures_since", "declared_at")
        extra_kwargs = {name: {"required": False} for name in thresholds.LIMITS}


class GateFigureSerializer(serializers.Serializer[dict[str, Any]]):
    """One figure of a condition, with its interval and counts; `approximate`: its interval may cover less.

    `conservative`: it covers more than it says.
    """

    statistic = serializers.CharField()
    variant = serializers.CharField(allow_null=True)
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    method = serializers.CharField(**_TEXT)
    approximate = serializers.BooleanField(source="is_approximate")
    conservative = serializers.BooleanField(source="is_conservative")
    n_items = serializers.IntegerField()
    n_clusters = serializers.IntegerField(allow_null=True)
    n_raters = serializers.IntegerField()
    reason = serializers.CharField(**_TEXT)


class ConditionSerializer(serializers.Serializer[Condition]):
    """One condition of the gate. `state`: holds or fails, where the whole interval lies on one side of the threshold;
    not_certain, where the interval contains the threshold: neither met nor failed; not_run, where there is no figure.
    Two hold by their value: `tau_b` (its lower bound has a threshold of its own) and `alt_test`.
    """

    name = serializers.CharField()
    state = serializers.ChoiceField(choices=("holds", "fails", "not_certain", "not_run"))
    sentence = serializers.CharField()
    figures = GateFigureSerializer(many=True)


class RemedySerializer(serializers.Serializer[Any]):
    """What would change a decision: `group` is labels, people, rubric or judge."""

    group = serializers.CharField()
    sentence = serializers.CharField()
    more_items = serializers.IntegerField(allow_null=True)


class DecisionSerializer(serializers.Serializer[CellDecision]):
    """One decision with its strongest reasons and what would change it. `otherwise`: what a stale one would be.

    `state`: not_certain, where the interval of a condition of this use, of a wider use that nothing else stands
    against, or of the raters' agreement contains its threshold: narrower intervals could lead to another decision.
    """

    judge = serializers.CharField(source="row.judge")
    judge_id = serializers.IntegerField(source="row.judge_id")
    run = serializers.IntegerField(source="row.run")
    criterion = serializers.CharField(source="row.criterion")
    language = serializers.CharField(source="row.language", allow_blank=True)
    decision = serializers.ChoiceField(choices=GateDecision.Use.values, source="use.value")
    state = serializers.ChoiceField(choices=DECISION_STATES)
    otherwise = serializers.CharField(source="row.otherwise", allow_null=True, default=None)
    n_items = serializers.IntegerField(source="row.n_items")
    n_clusters = serializers.IntegerField(source="row.n_clusters")
    n_raters = serializers.IntegerField(source="row.n_raters")
    reasons = serializers.ListField(child=serializers.CharField())
    would_change_it = RemedySerializer(many=True, source="remedies")
    conditions = ConditionSerializer(many=True)


class DecisionsSerializer(serializers.Serializer[CampaignDecisions]):
    """The newest decisions, none until thresholds are declared; stale ones are being computed anew."""

    stale = serializers.BooleanField()
    thresholds = ThresholdsSerializer(allow_null=True)
    computed_at = serializers.DateTimeField(allow_null=True)
    decisions = DecisionSerializer(many=True)


class DecisionChangeSerializer(serializers.Serializer[DecisionChange]):
    """When a decision became what it is, from what, and why."""

    at = serializers.DateTimeField(source="kept.at")
    judge = serializers.CharField(source="kept.judge.name")
    criterion = serializers.CharField(source="kept.criterion")
    language = serializers.CharField(source="kept.language", allow_blank=True)
    decision = serializers.ChoiceField(choices=GateDecision.Use.values, source="kept.decision")
    former = serializers.CharField(source="kept.former", allow_blank=True)
    thresholds = serializers.IntegerField(source="kept.thresholds.number")
    why = serializers.CharField()


class Decisions(APIView):
    @extend_schema(
        parameters=[OpenApiParameter(name, {"type": "string"}) for name in FILTERS], responses=DecisionsSerializer
    )
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """What each judge may be used for in each criterion and language, with reasons and figures."""
        found = shown_campaign(request.user, project, campaign)
        current = decisions.current_decisions(found)
        if current is None:
            empty = {"stale": False, "thresholds": None, "computed_at": None, "decisions": []}
            return Response(DecisionsSerializer(empty).data)
        if current.is_stale:
            tasks.ask_to_compute(campaign=found, settings=decisions.settings_of(current.thresholds))
        wanted = {name: text for name in FILTERS if (text := request.query_params.get(name))}
        shown = [cell for cell in current.cells if all(str(cell.row[name]) == text for name, text in wanted.items())]
        snapshot = current.snapshot
        answer = {
            "stale": current.is_stale,
            "thresholds": current.thresholds,
            "computed_at": snapshot.created_at if snapshot else None,
            "decisions": shown,
        }
        return Response(DecisionsSerializer(answer).data)


class DecisionHistory(APIView):
    @extend_schema(responses=DecisionChangeSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """The changes of a campaign's decisions, newest first, each with why."""
        found = shown_campaign(request.user, project, campaign)
        return Response(DecisionChangeSerializer(decisions.decision_history(found), many=True).data)


class DeclaredThresholds(APIView):
    @extend_schema(responses=ThresholdsSerializer(many=True))
    def get(self, request: Request, project: str) -> Response:
        """Every version of the project's thresholds, the one that holds first."""
        versions = GateThresholds.objects.filter(project=access.require(user=request.user, slug=project))
        return Response(ThresholdsSerializer(versions.select_related("declared_by"), many=True).data)

    @extend_schema(request=ThresholdsSerializer, responses={201: ThresholdsSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Declare a new version, for leads: a preset, and what differs from it. The same again changes nothing."""
        current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
        asked = ThresholdsSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        given = dict(asked.validated_data)
        declared = thresholds.declare_thresholds(
            project=current_project, preset=given.pop("preset"), changes=given, actor=request.user
        )
        return Response(ThresholdsSerializer(declared).data, status=status.HTTP_201_CREATED)
