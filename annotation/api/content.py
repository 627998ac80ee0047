"""Datasets and their items, rubrics and their versions; for leads and researchers."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_serializer
from rest_framework import generics, serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.api_requests import CursorPagination
from accounts.models import User
from annotation import rubrics
from annotation.models import Dataset, Item, Rubric, RubricVersion
from annotation.readers import parse_rubric

ITEM_PARAMETERS = [
    OpenApiParameter("language", OpenApiTypes.STR, description="A language tag, exactly."),
    OpenApiParameter("generator", OpenApiTypes.STR),
    OpenApiParameter("scenario", OpenApiTypes.STR),
    OpenApiParameter("q", OpenApiTypes.STR, description="A text in the turns, the fields, the title or the id."),
]


@extend_schema_serializer(deprecate_fields=["intake"])
class DatasetSerializer(serializers.Serializer[Dataset]):
    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(read_only=True)
    version = serializers.IntegerField(read_only=True)
    licence = serializers.CharField(read_only=True)
    layout = serializers.JSONField(read_only=True)
    simulated = serializers.BooleanField(read_only=True)
    allocatable = serializers.BooleanField(read_only=True)
    derived_from = serializers.IntegerField(source="derived_from_id", read_only=True, allow_null=True)
    extends = serializers.IntegerField(source="extends_id", read_only=True, allow_null=True)
    import_id = serializers.IntegerField(source="file_import_id", read_only=True, allow_null=True)
    intake = serializers.IntegerField(source="file_import_id", read_only=True, allow_null=True)
    items = serializers.IntegerField(source="items_count", read_only=True)
    added = serializers.IntegerField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)


class DatasetTurnSerializer(serializers.Serializer[Any]):
    speaker = serializers.CharField()
    name = serializers.CharField(required=False)
    text = serializers.CharField()


class DatasetItemSerializer(serializers.Serializer[Item]):
    id = serializers.IntegerField(source="pk", read_only=True)
    external_id = serializers.CharField(read_only=True)
    ordinal = serializers.IntegerField(read_only=True)
    language = serializers.CharField(read_only=True)
    generator = serializers.CharField(read_only=True)
    scenario = serializers.CharField(read_only=True)
    title = serializers.CharField(read_only=True)
    turns = serializers.SerializerMethodField()
    fields = serializers.JSONField(read_only=True)  # type: ignore[assignment]
    attributes = serializers.JSONField(read_only=True)
    content_warning = serializers.CharField(read_only=True)
    digest = serializers.CharField(read_only=True)

    @extend_schema_field(DatasetTurnSerializer(many=True))
    def get_turns(self, item: Item) -> list[dict[str, str]]:
        return list(item.turns)


class ByOrdinal(CursorPagination):
    ordering = "ordinal"


class Datasets(generics.ListAPIView[Dataset]):
    """The project's datasets, every version."""

    serializer_class = DatasetSerializer
    queryset = Dataset.objects.none()

    def get_queryset(self) -> QuerySet[Dataset]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        datasets = Dataset.objects.visible_to(self.request.user).filter(project=project)
        return datasets.sized()


class DatasetDetail(generics.RetrieveAPIView[Dataset]):
    """One version of a dataset."""

    serializer_class = DatasetSerializer
    queryset = Dataset.objects.none()
    lookup_url_kwarg = "dataset"
    get_queryset = Datasets.get_queryset


@extend_schema(parameters=ITEM_PARAMETERS)
class DatasetItems(generics.ListAPIView[Item]):
    """The items of a dataset in their order; texts exactly as imported."""

    serializer_class = DatasetItemSerializer
    queryset = Item.objects.none()
    pagination_class = ByOrdinal

    def get_queryset(self) -> QuerySet[Item]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        mine = Dataset.objects.visible_to(self.request.user).filter(project=project)
        items = Item.objects.of(get_object_or_404(mine, pk=self.kwargs["dataset"]))
        return items.matching(self.request.query_params.dict())


# --- rubrics ---------------------------------------------------------------------------------------------------------
class RubricSerializer(serializers.Serializer[Rubric]):
    id = serializers.IntegerField(source="pk", read_only=True)
    key = serializers.CharField(read_only=True)


class RubricVersionSerializer(serializers.Serializer[RubricVersion]):
    id = serializers.IntegerField(source="pk", read_only=True)
    rubric = serializers.CharField(source="rubric.key", read_only=True)
    number = serializers.IntegerField(read_only=True)
    state = serializers.ChoiceField(choices=RubricVersion.State.choices, read_only=True)
    digest = serializers.CharField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)
    published_at = serializers.DateTimeField(read_only=True, allow_null=True)


class RubricDocumentSerializer(RubricVersionSerializer):
    document = serializers.JSONField(read_only=True)


def _versions(user: User, project: str) -> QuerySet[RubricVersion]:
    current_project = access.require(user=user, slug=project)
    return (
        RubricVersion.objects.visible_to(user).filter(rubric__project=current_project).select_related("rubric__project")
    )


class Rubrics(generics.ListAPIView[Rubric]):
    """The project's rubrics. POST a rubric document to create a draft version of the rubric with its key."""

    serializer_class = RubricSerializer
    queryset = Rubric.objects.none()

    def get_queryset(self) -> QuerySet[Rubric]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        return Rubric.objects.visible_to(self.request.user).filter(project=project, versions__isnull=False).distinct()

    @extend_schema(request=OpenApiTypes.OBJECT, responses={201: RubricDocumentSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Create a draft version. The document is the JSON form in docs/formats.md; the same document posted again
        returns the existing version."""
        current_project = access.require(user=request.user, slug=project)
        parsed = parse_rubric("document.json", json.dumps(request.data).encode())
        if parsed.document is None:
            raise ValidationError({problem.column or "document": [str(problem)] for problem in parsed.problems})
        version = rubrics.draft(project=current_project, document=parsed.document, actor=request.user)
        return Response(RubricDocumentSerializer(version).data, status=status.HTTP_201_CREATED)


class RubricVersions(generics.ListAPIView[RubricVersion]):
    """The versions of one rubric."""

    serializer_class = RubricVersionSerializer
    queryset = RubricVersion.objects.none()

    def get_queryset(self) -> QuerySet[RubricVersion]:
        versions = _versions(self.request.user, self.kwargs["project"]).filter(rubric__key=self.kwargs["rubric"])
        if not versions.exists():
            raise Http404("No such rubric.")
        return versions


class RubricVersionDetail(APIView):
    @extend_schema(responses=RubricDocumentSerializer)
    def get(self, request: Request, project: str, rubric: str, number: int) -> Response:
        """One version with its document."""
        version = get_object_or_404(_versions(request.user, project), rubric__key=rubric, number=number)
        return Response(RubricDocumentSerializer(version).data)


class RubricPublication(APIView):
    @extend_schema(request=None, responses=RubricDocumentSerializer)
    def post(self, request: Request, project: str, rubric: str, number: int) -> Response:
        """Publish a draft. A published version cannot be changed."""
        version = get_object_or_404(_versions(request.user, project), rubric__key=rubric, number=number)
        return Response(RubricDocumentSerializer(rubrics.publish(version=version, actor=request.user)).data)
