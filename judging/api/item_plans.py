"""Have models answer the prompts of a dataset; for leads and researchers."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from annotation.models import Dataset
from judging.api.generation import GenerationPlanDetailSerializer, PlanGeneratorSerializer, read_spec
from judging.api.judges import StrictSerializer
from judging.generation import item_plans, plans


class AnswersPlanSerializer(StrictSerializer):
    """Which models answer, how often and for how much. `spec`: without one, our own for answers to prompts."""

    name = serializers.CharField(max_length=plans.MOST_NAMED)
    generators = PlanGeneratorSerializer(many=True)
    repeats = serializers.IntegerField(min_value=1, max_value=plans.MOST_TIMES, default=1)
    seed = serializers.IntegerField(min_value=0, max_value=2**53, required=False)
    budget = serializers.DecimalField(max_digits=12, decimal_places=6, min_value=0, allow_null=True, default=None)
    spec = serializers.JSONField(required=False, help_text="A spec with a parameter that has a source, or its YAML.")


class AnswersPlans(APIView):
    @extend_schema(request=AnswersPlanSerializer, responses={201: GenerationPlanDetailSerializer})
    def post(self, request: Request, project: str, dataset: int) -> Response:
        """Plan an answer of each model to each prompt of a dataset; nothing is sent before the plan is started."""
        current_project = access.require(user=request.user, slug=project)
        visible = Dataset.objects.visible_to(request.user).filter(project=current_project).select_related("project")
        prompts = get_object_or_404(visible, pk=dataset)
        serializer = AnswersPlanSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        plan = item_plans.plan_answers(
            dataset=prompts,
            spec=read_spec(values.pop("spec")) if "spec" in values else None,
            generators=[plans.GeneratorChoice(**choice) for choice in values.pop("generators")],
            actor=request.user,
            **values,
        )
        return Response(GenerationPlanDetailSerializer(plan).data, status=201)
