"""Rubrics and their versions; for leads and researchers."""

from __future__ import annotations

import json

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import User
from annotation import rubrics
from annotation.models import Rubric, RubricVersion
from annotation.readers import parse_rubric


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
