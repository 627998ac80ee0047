"""Judges side by side; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from analytics import answers, compared_judges, tasks
from analytics.api.numbers import QuestionAnswerSerializer
from analytics.compared_judges import JudgeDisagreement
from analytics.views.comparison import MEASURE_NAMES, ComparedJudge, ComparisonPage, chosen_comparison, named_run
from annotation.models import Campaign

MANY = {"type": "array", "items": {"type": "string"}}
PARAMETERS = [
    OpenApiParameter("design", int, description="The judges of this design, and its jury."),
    OpenApiParameter("judge", MANY, description="Names of judges; all by default."),
    OpenApiParameter("run", MANY, description="Numbers of judge runs, or `each`."),
    OpenApiParameter("designs", str, description="`show`: judges that are only cells of designs, too."),
    OpenApiParameter("measure", {"type": "string", "enum": list(MEASURE_NAMES)}, description="kappa by default."),
    OpenApiParameter("against", str, description="The judge that the others are compared with."),
    OpenApiParameter("jury", MANY, description="Judges as one more rater: A,B,C."),
    OpenApiParameter("jury_rule", str, description="majority, median, mean or minimum."),
    OpenApiParameter("first", str, description="Two judges: the items on which they differ most are listed."),
    OpenApiParameter("second", str, description="The other one."),
]
NUMBER = {"allow_null": True, "default": None}


class ComparedJudgeSerializer(serializers.Serializer[ComparedJudge]):
    """A judge or jury: what it costs, its agreement with the panel on the mean of the cells, and its repeats."""

    name = serializers.CharField(source="cost.name")
    run = serializers.IntegerField(source="cost.run.pk", **NUMBER)
    levels = serializers.DictField(source="cost.levels", child=serializers.CharField())
    calls = serializers.IntegerField(source="cost.calls")
    sent = serializers.IntegerField(source="cost.sent")
    reused = serializers.IntegerField(source="cost.reused")
    paid = serializers.DecimalField(source="cost.paid", max_digits=20, decimal_places=8, allow_null=True)
    verdicts = serializers.IntegerField(source="cost.verdicts")
    unreadable = serializers.IntegerField(source="cost.unreadable")
    cost_per_item = serializers.FloatField(source="cost.per_item", **NUMBER)
    cost_per_point = serializers.FloatField(
        source="per_point", **NUMBER, help_text="USD of 1,000 items for each 0.01 of agreement."
    )
    agreement = serializers.FloatField(source="agreement.value", **NUMBER)
    repeat_sd = serializers.FloatField(**NUMBER)
    repeat_sd_unit = serializers.CharField(help_text="points, or width: a share of the width of each scale.")
    is_efficient = serializers.BooleanField(help_text="On the Pareto line of cost and agreement.")


class DisagreementSerializer(serializers.Serializer[JudgeDisagreement]):
    item = serializers.CharField(source="item.external_id")
    language = serializers.CharField(source="item.language")
    criterion = serializers.CharField(source="criterion.key")
    first_score = serializers.FloatField(source="first.score")
    second_score = serializers.FloatField(source="second.score")
    first_rationale = serializers.CharField(source="first.rationale")
    second_rationale = serializers.CharField(source="second.rationale")


class ComparisonSerializer(serializers.Serializer[dict[str, Any]]):
    """The newest answer, null until there is one; costs are those of this moment."""

    stale = serializers.BooleanField()
    answer = QuestionAnswerSerializer(allow_null=True)
    judges = ComparedJudgeSerializer(many=True)
    disagreements = DisagreementSerializer(many=True)


class JudgeComparison(APIView):
    @extend_schema(parameters=PARAMETERS, responses=ComparisonSerializer)
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """Judges on the items that all of them scored: agreement, paired differences, effects, cost."""
        current_project = access.require(user=request.user, slug=project)
        here = Campaign.objects.visible_to(request.user).filter(project=current_project)
        found = get_object_or_404(here.select_related("project", "rubric_version", "dataset"), pk=campaign)
        choice = chosen_comparison(found, request.query_params)
        snapshot, is_stale = answers.current_answer(found, choice.question)
        if is_stale:
            tasks.ask_to_compute(campaign=found, settings=choice.question)
        listed: list[JudgeDisagreement] = []
        if choice.first and choice.second:
            first, second = named_run(choice, choice.first), named_run(choice, choice.second)
            listed = compared_judges.disagreements(first, second)
        judges = ComparisonPage(choice, snapshot).judges if snapshot else []
        content = {"stale": is_stale, "answer": snapshot, "judges": judges, "disagreements": listed}
        return Response(ComparisonSerializer(content).data)
