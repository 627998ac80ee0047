"""The staged workflow of a campaign, for leads and researchers."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics import tasks, workflow
from analytics.api.numbers import NUMBER
from analytics.views.items import shown_campaign
from analytics.workflow import CampaignWorkflow, StepFigure, StepState, WorkflowStep

_STATES = [state.value for state in StepState]


class StepFigureSerializer(serializers.Serializer[StepFigure]):
    """One figure of a step: on a criterion or a measure of texts, in one language or between two. `decision`: of the
    gate, in place of a value.
    """

    criterion = serializers.CharField()
    languages = serializers.ListField(child=serializers.CharField(), source="tags")
    state = serializers.ChoiceField(choices=_STATES, source="state.value")
    decision = serializers.CharField(allow_blank=True)
    statistic = serializers.CharField(source="figure.statistic", default="")
    value = serializers.FloatField(source="figure.value", **NUMBER)
    low = serializers.FloatField(source="figure.low", **NUMBER)
    high = serializers.FloatField(source="figure.high", **NUMBER)
    approximate = serializers.BooleanField(source="figure.is_approximate", default=False)
    conservative = serializers.BooleanField(source="figure.is_conservative", default=False)
    n_items = serializers.IntegerField(source="figure.n_items", **NUMBER)
    n_clusters = serializers.IntegerField(source="figure.n_clusters", **NUMBER)
    n_raters = serializers.IntegerField(source="figure.n_raters", **NUMBER)
    words = serializers.CharField(allow_blank=True)


class WorkflowStepSerializer(serializers.Serializer[WorkflowStep]):
    """One step. `action`: what has to be done where it did not pass: thresholds, items, label, run, decisions or
    calibrate.
    """

    name = serializers.ChoiceField(choices=workflow.STEPS)
    title = serializers.CharField()
    state = serializers.ChoiceField(choices=_STATES, source="state.value")
    sentence = serializers.CharField()
    threshold = serializers.CharField(allow_blank=True)
    action = serializers.CharField(allow_blank=True)
    figures = StepFigureSerializer(many=True)


class WorkflowSerializer(serializers.Serializer[CampaignWorkflow]):
    """The four steps for one judge, and the state of all of them; `stale`: figures are being computed anew."""

    state = serializers.ChoiceField(choices=_STATES, source="state.value")
    stale = serializers.SerializerMethodField()
    judge = serializers.CharField(allow_blank=True)
    language = serializers.CharField(allow_blank=True)
    thresholds = serializers.IntegerField(source="thresholds.number", **NUMBER)
    steps = WorkflowStepSerializer(many=True)

    def get_stale(self, found: CampaignWorkflow) -> bool:
        return bool(found.stale)


class Workflow(APIView):
    @extend_schema(
        parameters=[OpenApiParameter(name, {"type": "string"}) for name in ("judge", "language")],
        responses=WorkflowSerializer,
    )
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """Whether a judge may be used across languages: four steps, each passed, failed, insufficient or not run."""
        current = shown_campaign(request.user, project, campaign)
        asked = {name: request.query_params.get(name, "") for name in ("judge", "language")}
        found = workflow.campaign_workflow(current, **asked)
        for settings in found.stale:
            tasks.ask_to_compute(campaign=current, settings=settings)
        return Response(WorkflowSerializer(found).data)
