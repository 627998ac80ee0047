"""Imports of verdicts, uploaded under `intakes/`: looked at, stored and taken back here."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import reception
from annotation.api import intakes
from annotation.api.intakes import IntakeSerializer, PreviewSerializer
from annotation.intake import FileRefused
from annotation.models import Intake
from annotation.tasks import enqueue, is_large
from judging import intake_verdicts, tasks


def _find(request: Request, project: str, intake: int) -> Intake:
    found = intakes.find(request.user, project, intake)
    if found.kind != Intake.Kind.VERDICTS:
        raise Http404("This import holds no verdicts.")
    return found


class VerdictPreview(APIView):
    @extend_schema(responses=PreviewSerializer)
    def get(self, request: Request, project: str, intake: int) -> Response:
        """What storing would come to."""
        found = _find(request, project, intake)
        with reception.opened(found) as files:
            seen = intake_verdicts.preview(
                project=found.project, files=files, mapping=reception.mapping_of(found), said=found.target
            )
        return Response(PreviewSerializer(seen).data)


class VerdictStorage(APIView):
    @extend_schema(request=None, responses={200: IntakeSerializer, 202: IntakeSerializer})
    def post(self, request: Request, project: str, intake: int) -> Response:
        """Store it, all or nothing: one run for each judge. A large one is stored in the background (202)."""
        found = _find(request, project, intake)
        if is_large(found):
            reception.start(intake=found, actor=request.user)
            enqueue(tasks.store_verdicts, found, request.user)
            return intakes.answer(found, status.HTTP_202_ACCEPTED)
        try:
            return intakes.answer(intake_verdicts.carry_out(intake=found, actor=request.user))
        except FileRefused as error:
            return intakes.refused(error)


class VerdictUndo(APIView):
    @extend_schema(request=None, responses=IntakeSerializer)
    def post(self, request: Request, project: str, intake: int) -> Response:
        """Take the verdicts back, and the judges that have no others."""
        found = _find(request, project, intake)
        intake_verdicts.undo(intake=found, actor=request.user)
        return intakes.answer(found)
