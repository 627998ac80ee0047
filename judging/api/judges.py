"""Judges and what they would be sent; for leads and researchers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.inputs import storable
from accounts.models import Project, User
from annotation.api.campaigns import LARGEST_ID
from annotation.models import Item, RubricVersion
from judging import judges, requests
from judging.asking import endpoints
from judging.models import Judge
from judging.study_presets import STUDY_PRESETS


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    def to_internal_value(self, sent: Any) -> Any:
        unknown = sorted({*sent} - {*self.fields}) if isinstance(sent, Mapping) else []
        if unknown:
            known = ", ".join(name for name, field in self.fields.items() if not field.read_only)
            sentence = _("There is no such field. Available: %s.") % known
            raise serializers.ValidationError({storable(name)[:100]: [sentence] for name in unknown[:20]})
        return super().to_internal_value(sent)


class OwnTextSerializer(StrictSerializer):
    """What a judge reads in the place of a rubric's definition (`point` null) or of the anchor of a point."""

    criterion = serializers.CharField(max_length=judges.MOST_OWN_TEXT)
    point = serializers.FloatField(allow_null=True)
    text = serializers.CharField(max_length=judges.MOST_OWN_TEXT)


class VariantSerializer(StrictSerializer):
    """The factors of a prompt; docs/judges.md says what each changes."""

    grouping = serializers.ChoiceField(choices=judges.FACTORS["grouping"], required=False)
    anchor_detail = serializers.ChoiceField(choices=judges.FACTORS["anchor_detail"], required=False)
    explanation = serializers.BooleanField(required=False)
    instruction_language = serializers.ChoiceField(choices=judges.FACTORS["instruction_language"], required=False)
    repair = serializers.BooleanField(
        required=False, help_text="Show the model a reply that can't be read, and ask once more."
    )
    task = serializers.ChoiceField(choices=judges.FACTORS["task"], required=False, help_text="What opens the prompt.")
    role_text = serializers.CharField(
        max_length=judges.TEXTS["role_text"], required=False, allow_blank=True, help_text="The text of the task “own”."
    )
    persona = serializers.CharField(max_length=judges.TEXTS["persona"], required=False, allow_blank=True)
    rubric_text = serializers.ChoiceField(
        choices=judges.FACTORS["rubric_text"], required=False, help_text="general: without definitions and anchors."
    )
    reference_answer = serializers.ChoiceField(
        choices=judges.FACTORS["reference_answer"],
        required=False,
        help_text="Whether an item's field `reference` is shown; layout: where the dataset's layout shows it.",
    )
    criteria_order = serializers.ChoiceField(choices=judges.FACTORS["criteria_order"], required=False)
    points_order = serializers.ChoiceField(choices=judges.FACTORS["points_order"], required=False)
    candidate_order = serializers.ChoiceField(
        choices=judges.FACTORS["candidate_order"],
        required=False,
        help_text="Of two candidates: swapped shows the second one first; both does so in every second repeat.",
    )
    examples = serializers.JSONField(
        required=False,
        help_text='Where to draw them: {"selection": id, "per_class": 1 or 2, "seed": 1}. Answers list what was drawn: '
        "criterion, item (digest of its content), language and score.",
    )
    instructions = serializers.CharField(
        max_length=judges.TEXTS["instructions"], required=False, allow_blank=True, help_text="They follow the criteria."
    )
    own_texts = OwnTextSerializer(many=True, required=False, help_text="What it reads in the place of rubric texts.")


def _pace(name: str, help_text: str) -> serializers.IntegerField:
    _default, least, most = judges.PACES[name]
    return serializers.IntegerField(
        min_value=least, max_value=most, required=False, allow_null=True, help_text=help_text
    )


class DeclaredJudgeSerializer(StrictSerializer):
    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=120)
    provider = serializers.CharField(max_length=80)
    model = serializers.CharField(max_length=160)
    parameters = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False)
    variant = VariantSerializer(required=False)
    timeout = _pace("timeout", "Seconds that one reply may take; the provider's default, or 90, by default.")
    tries = _pace("tries", "How often a call is tried; the provider's default, or 8, by default.")
    concurrency = _pace("concurrency", "Calls of a run in flight at most; the provider's default, or 64, by default.")
    refused = serializers.SerializerMethodField(
        help_text="What its model has refused by name: json_schema, json_object, tool_call, or a parameter."
    )
    simulated = serializers.BooleanField(read_only=True)
    digest = serializers.CharField(read_only=True)
    version_of = serializers.IntegerField(
        source="parent_id",
        read_only=True,
        allow_null=True,
        help_text="The judge that an alignment or a design made this one of.",
    )
    created_at = serializers.DateTimeField(read_only=True)

    def get_refused(self, judge: Judge) -> list[str]:
        return self._refused.get((judge.provider, judge.model), [])

    @cached_property
    def _refused(self) -> dict[tuple[str, str], list[str]]:
        return endpoints.refused_by_models()


class PresetSerializer(serializers.Serializer[Any]):
    key = serializers.CharField()
    title = serializers.CharField()
    variant = VariantSerializer()
    parameters = serializers.DictField(child=serializers.JSONField())
    repeats = serializers.IntegerField()


class ChosenStudySerializer(StrictSerializer):
    study = serializers.ChoiceField(choices=list(STUDY_PRESETS))
    provider = serializers.CharField(max_length=80)
    model = serializers.CharField(max_length=160)
    name = serializers.CharField(max_length=120, required=False)


class StudyJudgeSerializer(serializers.Serializer[judges.StudyJudge]):
    judge = DeclaredJudgeSerializer()
    rubric_version = serializers.IntegerField(source="rubric_version.pk")
    repeats = serializers.IntegerField()


class MessageSerializer(serializers.Serializer[Any]):
    role = serializers.CharField()
    content = serializers.CharField()


class PromptSerializer(serializers.Serializer[requests.Prompt]):
    criteria = serializers.ListField(child=serializers.CharField())
    messages = MessageSerializer(many=True)
    schema = serializers.DictField(child=serializers.JSONField())
    tokens = serializers.IntegerField()


class ChosenItemSerializer(serializers.Serializer[Any]):
    item = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)
    rubric_version = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)


def judge_in_project(user: User, slug: str) -> tuple[Project, QuerySet[Judge]]:
    """The project, and the judges in it."""
    project = access.require(user=user, slug=slug)
    return project, Judge.objects.visible_to(user).filter(project=project)


class Judges(generics.ListCreateAPIView[Judge]):
    """The project's judges; posting declares one. The same configuration again is the judge there is."""

    serializer_class = DeclaredJudgeSerializer
    queryset = Judge.objects.none()

    def get_queryset(self) -> QuerySet[Judge]:
        return judge_in_project(self.request.user, self.kwargs["project"])[1]

    def perform_create(self, serializer: Any) -> None:
        project, _found = judge_in_project(self.request.user, self.kwargs["project"])
        serializer.instance = judges.declare(project=project, actor=self.request.user, **serializer.validated_data)


class JudgeStudies(APIView):
    """Judges as the five studies had them."""

    @extend_schema(responses=PresetSerializer(many=True))
    def get(self, request: Request, project: str) -> Response:
        """The ready configurations: prompt, parameters and repeats of each study."""
        access.require(user=request.user, slug=project)
        shown = [{"key": key, **asdict(preset)} for key, preset in STUDY_PRESETS.items()]
        return Response(PresetSerializer(shown, many=True).data)

    @extend_schema(request=ChosenStudySerializer, responses={201: StudyJudgeSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Declare a judge as a study had it, and publish that study's rubric unless it is there."""
        current_project, _found = judge_in_project(request.user, project)
        serializer = ChosenStudySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        made = judges.declare_as_study(project=current_project, actor=request.user, **serializer.validated_data)
        return Response(StudyJudgeSerializer(made).data, status=201)


class JudgeDetail(APIView):
    @extend_schema(responses=DeclaredJudgeSerializer)
    def get(self, request: Request, project: str, judge: int) -> Response:
        """One judge."""
        return Response(
            DeclaredJudgeSerializer(get_object_or_404(judge_in_project(request.user, project)[1], pk=judge)).data
        )


class JudgePreview(APIView):
    @extend_schema(
        parameters=[
            OpenApiParameter("item", int, required=True),
            OpenApiParameter("rubric_version", int, required=True),
        ],
        responses=PromptSerializer(many=True),
    )
    def get(self, request: Request, project: str, judge: int) -> Response:
        """The exact messages this judge would send about one item, by one published rubric version."""
        current_project, judges_of_project = judge_in_project(request.user, project)
        shown = get_object_or_404(judges_of_project, pk=judge)
        chosen = ChosenItemSerializer(data=request.query_params)
        chosen.is_valid(raise_exception=True)
        items = Item.objects.visible_to(request.user).filter(dataset__project=current_project).select_related("dataset")
        versions = RubricVersion.objects.visible_to(request.user).published().filter(rubric__project=current_project)
        prompts = requests.preview_prompts(
            judge=shown,
            item=get_object_or_404(items, pk=chosen.validated_data["item"]),
            rubric_version=get_object_or_404(versions, pk=chosen.validated_data["rubric_version"]),
        )
        return Response(PromptSerializer(prompts, many=True).data)
