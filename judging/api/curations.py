"""Curated datasets with their certificates; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import User
from annotation import selections
from annotation.api.campaigns import LARGEST_ID, SEEDS
from annotation.models import CuratedItem, Curation, Dataset
from annotation.sampling.limits import limits_of
from judging.api.judges import StrictSerializer
from judging.generation import curating
from judging.generation.curating import CurationSettings
from judging.models import JudgeRun


def _names(**options: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(max_length=200), max_length=200, **options)


class CurationSettingsSerializer(StrictSerializer):
    """What is asked for; docs/curation.md says what each part does."""

    dataset = serializers.IntegerField(min_value=1, max_value=LARGEST_ID, help_text="The source.")
    run = serializers.IntegerField(
        min_value=1, max_value=LARGEST_ID, allow_null=True, default=None, help_text="Without one no verdict is used."
    )
    n = serializers.IntegerField(min_value=1, max_value=curating.MOST_ASKED, help_text="Items per language.")
    method = serializers.ChoiceField(choices=curating.METHODS, default="balanced")
    languages = _names(default=list, help_text="None: all.")
    issues = _names(allow_null=True, default=None, help_text="Null: criteria with two points.")
    overall = serializers.CharField(max_length=200, allow_null=True, allow_blank=True, default=None)
    unreadable = serializers.CharField(
        max_length=200,
        allow_null=True,
        allow_blank=True,
        default=None,
        help_text="Items flagged on this criterion are excluded. Null: the criterion about text that nobody can read.",
    )
    words = _names(default=list, help_text="Exclude only if the rationale has one of these.")
    user = serializers.CharField(
        max_length=200, allow_blank=True, default="", help_text="The attribute with the simulated user."
    )
    clean_first = serializers.BooleanField(default=True)
    balance = serializers.ListField(
        child=serializers.ChoiceField(choices=curating.FACETS), default=lambda: list(curating.FACETS)
    )
    by = _names(default=list, help_text="Columns that make the strata of a random draw.")
    by_family = serializers.BooleanField(default=False)
    seed = serializers.IntegerField(required=False, **SEEDS, help_text="Without one a random seed is drawn and kept.")


class NewCurationSerializer(CurationSettingsSerializer):
    name = serializers.CharField(max_length=120, help_text="Of the new dataset.")


class CurationSerializer(serializers.Serializer[Curation]):
    id = serializers.IntegerField(source="pk", read_only=True)
    dataset = serializers.IntegerField(source="dataset_id", read_only=True)
    source_dataset = serializers.IntegerField(source="source_id", read_only=True)
    name = serializers.CharField(source="dataset.name", read_only=True)
    rule = serializers.JSONField(read_only=True)
    seed = serializers.IntegerField(read_only=True)
    certificate = serializers.JSONField(read_only=True)
    limits = serializers.SerializerMethodField(help_text="What may not be concluded, in sentences.")
    created_at = serializers.DateTimeField(read_only=True)

    def get_limits(self, curation: Curation) -> list[str]:
        return limits_of(curation.rule, curation.certificate)


class CurationPreviewSerializer(serializers.Serializer[Any]):
    items = serializers.IntegerField(help_text="How many would be chosen.")
    rule = serializers.JSONField()
    seed = serializers.IntegerField()
    certificate = serializers.JSONField()
    limits = serializers.ListField(child=serializers.CharField())


class CuratedItemSerializer(serializers.Serializer[CuratedItem]):
    item = serializers.CharField(source="item.external_id")
    probability = serializers.FloatField(allow_null=True, help_text="Null where items were chosen for balance.")
    stratum = serializers.CharField()


def curations_in(user: User, slug: str) -> QuerySet[Curation]:
    project = access.require(user=user, slug=slug)
    return Curation.objects.visible_to(user).filter(dataset__project=project).select_related("dataset")


def _asked(user: User, slug: str, given: dict[str, Any]) -> tuple[Dataset, CurationSettings]:
    project = access.require(user=user, slug=slug)
    datasets = Dataset.objects.visible_to(user).filter(project=project).select_related("project")
    dataset = get_object_or_404(datasets, pk=given.pop("dataset"))
    run = given.pop("run")
    if run is not None:
        run = get_object_or_404(curating.source_runs(dataset, JudgeRun.objects.visible_to(user)), pk=run)
    seed = given.pop("seed", None)
    return dataset, CurationSettings(run=run, seed=selections.new_seed() if seed is None else seed, **given)


class Curations(generics.ListAPIView[Curation]):
    """The project's curated datasets, newest first; posting chooses items and stores them as a dataset."""

    serializer_class = CurationSerializer
    queryset = Curation.objects.none()

    def get_queryset(self) -> QuerySet[Curation]:
        return curations_in(self.request.user, self.kwargs["project"])

    @extend_schema(request=NewCurationSerializer, responses={201: CurationSerializer})
    def post(self, request: Request, project: str) -> Response:
        serializer = NewCurationSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        given = dict(serializer.validated_data)
        name = given.pop("name")
        dataset, asked = _asked(request.user, project, given)
        stored = curating.curate(dataset=dataset, name=name, settings=asked, actor=request.user)
        return Response(CurationSerializer(stored).data, status=status.HTTP_201_CREATED)


class CurationPreview(APIView):
    @extend_schema(request=CurationSettingsSerializer, responses=CurationPreviewSerializer)
    def post(self, request: Request, project: str) -> Response:
        """The certificate that a set would have; stores nothing."""
        serializer = CurationSettingsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        dataset, asked = _asked(request.user, project, dict(serializer.validated_data))
        drawn = curating.draw_curation(dataset=dataset, settings=asked)
        shown = {"items": len(drawn.chosen), "rule": drawn.rule, "seed": asked.seed, "certificate": drawn.certificate}
        return Response(CurationPreviewSerializer({**shown, "limits": limits_of(drawn.rule, drawn.certificate)}).data)


class CurationDetail(APIView):
    @extend_schema(responses=CurationSerializer)
    def get(self, request: Request, project: str, curation: int) -> Response:
        """One curated dataset with its certificate."""
        return Response(CurationSerializer(get_object_or_404(curations_in(request.user, project), pk=curation)).data)


class CurationItems(generics.ListAPIView[CuratedItem]):
    """The items of a curated dataset, each with its inclusion probability if it has one."""

    serializer_class = CuratedItemSerializer
    queryset = CuratedItem.objects.none()

    def get_queryset(self) -> QuerySet[CuratedItem]:
        curation = get_object_or_404(
            curations_in(self.request.user, self.kwargs["project"]), pk=self.kwargs["curation"]
        )
        return CuratedItem.objects.filter(curation=curation).select_related("item").order_by("pk")
