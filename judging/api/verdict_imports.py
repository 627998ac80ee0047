"""Imports of verdicts, uploaded under `intakes/`: looked at, stored and taken back here."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.api import intakes
from annotation.api.intakes import IntakeSerializer, OutlookSerializer
from annotation.models import Intake
from judging import intake_verdicts, tasks


def _find(request: Request, project: str, intake: int) -> Intake:
    found = intakes.find(request.user, project, intake)
    if found.kind != Intake.Kind.VERDICTS:
        raise Http404("This import holds no verdicts.")
    return found


class VerdictPreview(APIView):
    @extend_schema(responses={200: OutlookSerializer, 202: IntakeSerializer})
    def get(self, request: Request, project: str, intake: int) -> Response:
        """What storing would come to; 202 while a worker is still reading a large file."""
        found = _find(request, project, intake)
        return intakes.seen(found, lambda: tasks.preview(found))


class VerdictStorage(APIView):
    @extend_schema(request=None, responses={200: IntakeSerializer, 202: IntakeSerializer})
    def post(self, request: Request, project: str, intake: int) -> Response:
        """Store it, all or nothing: one run for each judge. A large one is stored in the background (202)."""
        found = _find(request, project, intake)
        return intakes.stored(found, lambda: tasks.store(found, request.user))


class VerdictUndo(APIView):
    @extend_schema(request=None, responses=IntakeSerializer)
    def post(self, request: Request, project: str, intake: int) -> Response:
        """Take the verdicts back, and the judges that have no others."""
        found = _find(request, project, intake)
        intake_verdicts.undo(intake=found, actor=request.user)
        return intakes.answer(found)
