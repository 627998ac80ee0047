"""Datasets and their items; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_serializer
from rest_framework import generics, serializers

from accounts import access
from accounts.api_requests import CursorPagination
from annotation.models import Dataset, Item

FILTERS = [
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


@extend_schema(parameters=FILTERS)
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
