"""The files of an import, unchanged."""

from __future__ import annotations

from django.http import FileResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts import access
from annotation.models import Import, ImportFile

AS_IT_CAME = "application/octet-stream"


class ImportFileSerializer(serializers.Serializer[ImportFile]):
    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(read_only=True)
    size = serializers.IntegerField(read_only=True)
    sha256 = serializers.CharField(read_only=True)


class ImportFileContent(APIView):
    @extend_schema(responses={(200, AS_IT_CAME): OpenApiTypes.BINARY})
    def get(self, request: Request, project: str, file_import: int, file: int) -> FileResponse:
        """One of the files, unchanged."""
        current_project = access.require(user=request.user, slug=project)
        mine = Import.objects.visible_to(request.user).filter(project=current_project)
        kept = get_object_or_404(ImportFile.objects.filter(file_import__in=mine, file_import=file_import), pk=file)
        return FileResponse(kept.content.open("rb"), as_attachment=True, filename=kept.name, content_type=AS_IT_CAME)
