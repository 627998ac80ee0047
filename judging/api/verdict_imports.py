"""Imports of verdicts, uploaded under `imports/`: looked at, stored and taken back here."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.api import imports
from annotation.api.imports import ImportSerializer, OutlookSerializer
from annotation.models import Import
from judging import tasks
from judging.imports import verdicts


def _find(request: Request, project: str, file_import: int) -> Import:
    found = imports.find(request.user, project, file_import)
    if found.kind != Import.Kind.VERDICTS:
        raise Http404("This import contains no verdicts.")
    return found


class VerdictPreview(APIView):
    @extend_schema(responses={200: OutlookSerializer, 202: ImportSerializer})
    def get(self, request: Request, project: str, file_import: int) -> Response:
        """What storing would come to; 202 while a worker is still reading a large file."""
        found = _find(request, project, file_import)
        return imports.seen(found, lambda: verdicts.preview_verdict_import(found))


class VerdictStorage(APIView):
    @extend_schema(request=None, responses={200: ImportSerializer, 202: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Store it, all or nothing: one run for each judge. A large one is stored in the background (202)."""
        found = _find(request, project, file_import)
        return imports.stored(found, lambda: tasks.store(found, request.user))


class VerdictUndo(APIView):
    @extend_schema(request=None, responses=ImportSerializer)
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Take the verdicts back, and the judges that have no others."""
        found = _find(request, project, file_import)
        verdicts.undo(file_import=found, actor=request.user)
        return imports.answer(found)
