"""The saved mappings of a project."""

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
from annotation.api.imports import read_mapping
from annotation.imports import saved_mappings
from annotation.models import SavedMapping


class SavedMappingSerializer(serializers.Serializer[SavedMapping]):
    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=120)
    kind = serializers.ChoiceField(choices=[(kind.value, kind.label) for kind in saved_mappings.KINDS])
    mapping = serializers.DictField()
    created_at = serializers.DateTimeField(read_only=True)


def _posted(request: Request) -> dict[str, Any]:
    serializer = SavedMappingSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    return {**serializer.validated_data, "mapping": read_mapping(serializer.validated_data["mapping"])}


class Mappings(generics.ListAPIView[SavedMapping]):
    """The project's mappings."""

    serializer_class = SavedMappingSerializer
    queryset = SavedMapping.objects.none()

    def get_queryset(self) -> QuerySet[SavedMapping]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        return SavedMapping.objects.visible_to(self.request.user).filter(project=project)

    @extend_schema(request=SavedMappingSerializer, responses={201: SavedMappingSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Save a mapping under a name."""
        current_project = access.require(user=request.user, slug=project)
        saved = saved_mappings.save(project=current_project, actor=request.user, **_posted(request))
        return Response(SavedMappingSerializer(saved).data, status=status.HTTP_201_CREATED)


class MappingDetail(APIView):
    def find(self, request: Request) -> SavedMapping:
        """A mapping of the project."""
        project = access.require(user=request.user, slug=self.kwargs["project"])
        mine = SavedMapping.objects.visible_to(request.user).filter(project=project).select_related("project")
        return get_object_or_404(mine, pk=self.kwargs["mapping"])

    @extend_schema(responses=SavedMappingSerializer)
    def get(self, request: Request, project: str, mapping: int) -> Response:
        """One mapping, in the form that an import accepts."""
        return Response(SavedMappingSerializer(self.find(request)).data)

    @extend_schema(request=SavedMappingSerializer, responses=SavedMappingSerializer)
    def put(self, request: Request, project: str, mapping: int) -> Response:
        """Change the name, the kind and the mapping. Imports that used it keep their own copy."""
        saved_mapping = self.find(request)
        saved = saved_mappings.revise_saved_mapping(saved=saved_mapping, actor=request.user, **_posted(request))
        return Response(SavedMappingSerializer(saved).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, mapping: int) -> Response:
        """Delete the mapping. Imports that used it keep their own copy."""
        saved_mappings.delete(saved=self.find(request), actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)
