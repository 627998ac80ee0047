"""The files of an import, kept byte for byte as they came."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts import access
from annotation.models import Intake, IntakeFile

AS_IT_CAME = "application/octet-stream"


class IntakeFileSerializer(serializers.Serializer[IntakeFile]):
    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(read_only=True)
    size = serializers.IntegerField(read_only=True)
    sha256 = serializers.CharField(read_only=True)


class IntakeFileContent(APIView):
    @extend_schema(responses={(200, AS_IT_CAME): OpenApiTypes.BINARY})
    def get(self, request: Request, project: str, intake: int, file: int) -> StreamingHttpResponse:
        """One of the files, byte for byte as it came."""
        room = access.require(user=request.user, slug=project)
        mine = Intake.objects.visible_to(request.user).filter(project=room)
        kept = get_object_or_404(IntakeFile.objects.filter(intake__in=mine, intake=intake), pk=file)
        named = {"Content-Length": str(kept.size), "Content-Disposition": content_disposition_header(True, kept.name)}
        return StreamingHttpResponse(_pieces(kept), content_type=AS_IT_CAME, headers=named)


def _pieces(kept: IntakeFile) -> Iterator[bytes]:
    with kept.content.open("rb") as file:
        yield from file.chunks()
