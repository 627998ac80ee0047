"""API of imports of verdicts and of whole studies (uploaded under `imports/`): preview, store, undo; known studies."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from annotation.api import imports
from annotation.api.imports import ImportPreviewSerializer, ImportSerializer, ProblemSerializer
from annotation.models import Import
from annotation.readers import StudyImport, known_studies
from judging import tasks
from judging.imports import verdicts

NOT_OF_KIND = {
    Import.Kind.VERDICTS: "This import contains no verdicts.",
    Import.Kind.STUDY: "This import is not a whole study.",
}


def _find(request: Request, project: str, file_import: int, kind: Import.Kind) -> Import:
    """The import, if it is of this kind; else 404."""
    of_project = imports.get_import(request.user, project, file_import)
    if of_project.kind != kind:
        raise Http404(NOT_OF_KIND[kind])
    return of_project


# --- verdicts ---------------------------------------------------------------------------------------------------------


class VerdictPreview(APIView):
    @extend_schema(responses={200: ImportPreviewSerializer, 202: ImportSerializer})
    def get(self, request: Request, project: str, file_import: int) -> Response:
        """What storing would come to; 202 while a worker is still reading a large file."""
        shown_import = _find(request, project, file_import, Import.Kind.VERDICTS)
        return imports.preview_response(shown_import, lambda: verdicts.preview_verdict_import(shown_import))


class VerdictStorage(APIView):
    @extend_schema(request=None, responses={200: ImportSerializer, 202: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Store it, all or nothing: one run for each judge. A large one is stored in the background (202)."""
        shown_import = _find(request, project, file_import, Import.Kind.VERDICTS)
        return imports.stored(shown_import, lambda: tasks.store_judge_import(shown_import, request.user))


class VerdictUndo(APIView):
    @extend_schema(request=None, responses={200: ImportSerializer, 202: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Delete the verdicts, and the judges that have no others. A large import is undone in the background (202)."""
        shown_import = _find(request, project, file_import, Import.Kind.VERDICTS)
        return imports.undone(shown_import, tasks.undo_or_enqueue(shown_import, request.user))


# --- whole studies ----------------------------------------------------------------------------------------------------


class StudyImportSerializer(serializers.Serializer[Any]):
    """One import of a study: how its files are read. A rubric has no mapping."""

    kind = serializers.ChoiceField(choices=Import.Kind.choices)
    name = serializers.CharField()
    dataset = serializers.CharField(help_text="What ratings and verdicts are about.")
    rubric = serializers.CharField()
    files = serializers.ListField(child=serializers.CharField(), help_text="Patterns of the names of its files.")
    columns = serializers.ListField(child=serializers.CharField(), help_text="What they must have.")
    mapping = serializers.SerializerMethodField()

    def get_mapping(self, study_import: StudyImport) -> dict[str, Any]:
        return study_import.mapping.as_dict()


class StudySerializer(serializers.Serializer[Any]):
    """A study that Panelbench knows, or the format of a tool."""

    name = serializers.CharField()
    title = serializers.CharField()
    about = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # what a field takes its value from, elsewhere
    tool = serializers.BooleanField()
    imports = StudyImportSerializer(many=True)


@extend_schema_serializer(deprecate_fields=["intake"])
class StudyPartSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=Import.Kind.choices)
    made = serializers.CharField(help_text="The dataset, rubric or campaign; of verdicts, how many runs.")
    report = serializers.DictField()
    import_id = serializers.IntegerField(allow_null=True)
    intake = serializers.IntegerField(source="import_id", allow_null=True)
    files = serializers.ListField(child=serializers.CharField())


class StudyPreviewSerializer(serializers.Serializer[Any]):
    """What storing a study would come to: its parts up to the first that would be refused, and why it would be."""

    kind = serializers.ChoiceField(choices=Import.Kind.choices)
    name = serializers.CharField()
    title = serializers.CharField()
    about = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # what a field takes its value from, elsewhere
    parts = StudyPartSerializer(many=True)
    left_alone = serializers.ListField(child=serializers.CharField(), help_text="Data files that belong to no part.")
    report = serializers.DictField(help_text="All parts together.")
    sentence = serializers.CharField(help_text="Why it would be refused; empty if it would not.")
    problems = ProblemSerializer(many=True)
    more_problems = serializers.IntegerField()


class Studies(APIView):
    @extend_schema(responses=StudySerializer(many=True))
    def get(self, request: Request, project: str) -> Response:
        """The studies and tools whose files are known, and how they are read."""
        access.require(user=request.user, slug=project)
        return Response(StudySerializer(list(known_studies().values()), many=True).data)


class StudyPreview(APIView):
    @extend_schema(responses={200: StudyPreviewSerializer, 202: ImportSerializer})
    def get(self, request: Request, project: str, file_import: int) -> Response:
        """What storing all of it would come to; 202 while a worker is still at it."""
        return imports.looked_at(_find(request, project, file_import, Import.Kind.STUDY))


class StudyStorage(APIView):
    @extend_schema(request=None, responses={202: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Store all of it or nothing, in the background (202): ask for its state."""
        shown_import = _find(request, project, file_import, Import.Kind.STUDY)
        return imports.stored(shown_import, lambda: tasks.store_judge_import(shown_import, request.user))


class StudyUndo(APIView):
    @extend_schema(request=None, responses={200: ImportSerializer, 202: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Delete everything it stored, unless something depends on it. Rubrics, once published, stay.

        A large study is undone in the background (202).
        """
        shown_import = _find(request, project, file_import, Import.Kind.STUDY)
        return imports.undone(shown_import, tasks.undo_or_enqueue(shown_import, request.user))
