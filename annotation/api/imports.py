"""Imports: upload, look, correct, store, take back; for leads and researchers.

Verdicts are uploaded and corrected here too; they are looked at, stored and taken back under `verdict-imports/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import orjson
from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import BaseParser, FileUploadParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.api_requests import ShallowJSONParser
from accounts.inputs import whole_number
from accounts.models import User
from accounts.refusals import Refused
from annotation import tasks
from annotation.api.import_files import ImportFileSerializer
from annotation.generator_names import CHOICES
from annotation.imports import batches, checks, lifecycle, removal, targets, uploads
from annotation.imports.previews import Preview, outlook
from annotation.imports.storage import FileRefused
from annotation.models import Import
from annotation.readers import File, FormatError, Mapping
from annotation.writers.files import FORMATS

RAW_TYPES = {
    "application/octet-stream": "file",
    **{each.media_type.partition(";")[0]: f"file.{each.ending}" for each in FORMATS.values()},
    "text/tab-separated-values": "file.tsv",
    "application/x-ndjson": "file.jsonl",
    "application/yaml": "file.yaml",
    "application/zip": "file.zip",
    "application/gzip": "file.gz",
}
"""The types of a body that is a file, and what it is called where the query does not say."""
STORED_HERE = (Import.Kind.DATASET, Import.Kind.RUBRIC, Import.Kind.RATINGS)


class RawFileParser(FileUploadParser):
    """The body is the file, of whatever type; its name is the query's `name`."""

    media_type = "*/*"

    def get_filename(self, stream: Any, media_type: Any, parser_context: Any) -> str:
        request = parser_context["request"]
        return str(request.query_params.get("name", "")) or RAW_TYPES.get(_media_type(request), "file")


class ImportSerializer(serializers.Serializer[Import]):
    id = serializers.IntegerField(source="pk", read_only=True)
    kind = serializers.ChoiceField(choices=Import.Kind.choices, read_only=True)
    state = serializers.ChoiceField(choices=Import.State.choices, read_only=True)
    files = ImportFileSerializer(many=True, read_only=True)
    target = serializers.JSONField(read_only=True)
    mapping = serializers.JSONField(read_only=True)
    report = serializers.JSONField(read_only=True)
    batch = serializers.UUIDField(read_only=True, allow_null=True, help_text="Shared by the imports of one upload.")
    done = serializers.IntegerField(read_only=True, help_text="Bytes a worker has read, while it checks or stores.")
    total = serializers.IntegerField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)


class UploadSerializer(serializers.Serializer[Import]):
    """`mapping` and `target` are JSON objects, written out as text."""

    files = serializers.ListField(child=serializers.FileField(), allow_empty=False, max_length=50)
    kind = serializers.ChoiceField(choices=Import.Kind.choices, required=False)
    mapping = serializers.CharField(required=False)
    target = serializers.CharField(required=False)


class ArrivedSerializer(serializers.Serializer[Import]):
    """The keys of whole uploads (`uploads/`), and what else a form may say."""

    uploads = serializers.ListField(child=serializers.UUIDField(), allow_empty=False, max_length=50)
    kind = serializers.ChoiceField(choices=Import.Kind.choices, required=False)
    mapping = serializers.DictField(required=False)
    target = serializers.DictField(required=False)


class TargetSerializer(serializers.Serializer[Any]):
    """A dataset's name and licence, or the dataset that it `extends`; or the campaign of ratings; or the dataset and
    rubric version they are about; or the name of a `study` that is known, and what is the same in all of its files.
    """

    name = serializers.CharField(max_length=120, required=False, allow_blank=True)
    licence = serializers.CharField(max_length=200, required=False, allow_blank=True)
    extends = serializers.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    campaign = serializers.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    dataset = serializers.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    rubric_version = serializers.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    study = serializers.CharField(max_length=80, required=False)
    constants = serializers.DictField(child=serializers.CharField(), required=False)
    generator_names = serializers.ChoiceField(
        choices=CHOICES, required=False, help_text="What to do with generators' names that annotators would see."
    )


class RevisionSerializer(serializers.Serializer[Import]):
    kind = serializers.ChoiceField(choices=Import.Kind.choices, required=False)
    mapping = serializers.DictField(required=False)
    target = TargetSerializer(required=False)


class FrequentSerializer(serializers.Serializer[Any]):
    value = serializers.CharField()
    count = serializers.IntegerField()


class ColumnSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    target = serializers.CharField()
    filled = serializers.IntegerField()
    blank = serializers.IntegerField()
    distinct = serializers.IntegerField()
    is_many = serializers.BooleanField(help_text="There are more different values than were counted.")
    examples = serializers.ListField(child=serializers.CharField())
    most = FrequentSerializer(many=True)
    off_scale = serializers.IntegerField(allow_null=True, help_text="Scores that are not on the scale of the rubric.")


class ProblemSerializer(serializers.Serializer[Any]):
    file = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    column = serializers.CharField(allow_null=True)
    found = serializers.CharField()
    expected = serializers.CharField()
    code = serializers.CharField()


class OutlookSerializer(serializers.Serializer[Any]):
    """What storing would come to: the mapping that was used, the first rows, the report, and what is wrong."""

    kind = serializers.ChoiceField(choices=Import.Kind.choices)
    mapping = serializers.DictField()
    columns = ColumnSerializer(many=True)
    rows = serializers.ListField(child=serializers.DictField())
    report = serializers.DictField()
    criteria = serializers.DictField(child=serializers.CharField(allow_blank=True))
    scales = serializers.DictField(child=serializers.CharField())
    problems = ProblemSerializer(many=True)
    more_problems = serializers.IntegerField()
    kinds_of_problems = serializers.ListField(
        child=serializers.DictField(), help_text="Counted, with the first places."
    )
    documents = serializers.ListField(child=serializers.CharField())
    first_lines = serializers.ListField(
        child=serializers.DictField(), help_text="The first rows of a table as they are: `number` and `text`."
    )
    sheets = serializers.ListField(child=serializers.CharField(), help_text="Of a workbook.")


def find(user: User, project: str, file_import: int) -> Import:
    """An import of a project, for those who may see it."""
    current_project = access.require(user=user, slug=project)
    mine = Import.objects.visible_to(user).filter(project=current_project).select_related("project", "job")
    return get_object_or_404(mine.prefetch_related("files"), pk=file_import)


def answer(file_import: Import, code: int = status.HTTP_200_OK) -> Response:
    """An import as the API shows it."""
    shown = Import.objects.select_related("job").prefetch_related("files").get(pk=file_import.pk)
    return Response(ImportSerializer(shown).data, status=code)


def refused(error: FileRefused) -> Response:
    """Every problem of a file, in the shape of errors and with its place."""
    fields = {"files": error.problems.sentences()}
    problems = [problem.as_dict() for problem in error.problems]
    told = {"code": error.code, "detail": error.sentence, "fields": fields, "problems": problems}
    return Response(told, status=status.HTTP_422_UNPROCESSABLE_ENTITY)


def seen(file_import: Import, preview: Callable[[], Preview]) -> Response:
    """What storing would come to; of a large import as the last check saw it, or 202 while one is under way."""
    if file_import.state == Import.State.CHECKING or tasks.is_large(file_import):
        return looked_at(file_import)
    return Response(outlook(preview(), targets.resolve(project=file_import.project, said=file_import.target)))


def looked_at(file_import: Import) -> Response:
    """What a worker has seen of an import; 202 while one is at it."""
    if file_import.state == Import.State.CHECKING:
        return answer(file_import, status.HTTP_202_ACCEPTED)
    if (found := checks.current(file_import)) is None:
        unread = _("The files were not checked with this mapping. Check them first.")
        raise Refused(file_import.report.get("sentence") or unread, code="not_checked")
    return Response(found)


def stored(file_import: Import, store: Callable[[], bool]) -> Response:
    """An import after it was stored (200), or while a worker does that (202); every problem, where it is refused."""
    try:
        return answer(file_import, status.HTTP_200_OK if store() else status.HTTP_202_ACCEPTED)
    except FileRefused as error:
        return refused(error)


def _here(file_import: Import) -> Import:
    if file_import.kind not in STORED_HERE:
        raise Refused(_("For verdicts use verdict-imports/, for whole studies study-imports/."), code="wrong_kind")
    return file_import


class Imports(generics.ListAPIView[Import]):
    """The project's imports."""

    serializer_class = ImportSerializer
    queryset = Import.objects.none()
    parser_classes = (MultiPartParser, RawFileParser, ShallowJSONParser)

    def get_parsers(self) -> list[BaseParser]:
        """Where the query names a file, the body is that file, JSON too."""
        is_raw = bool(self.request and ("name" in self.request.GET or _media_type(self.request) in RAW_TYPES))
        return [MultiPartParser(), RawFileParser() if is_raw else ShallowJSONParser()]

    def get_queryset(self) -> QuerySet[Import]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        mine = Import.objects.visible_to(self.request.user).filter(project=project)
        return mine.select_related("job").prefetch_related("files")

    @extend_schema(
        request={
            "multipart/form-data": UploadSerializer,
            **dict.fromkeys(RAW_TYPES, OpenApiTypes.BINARY),
            "application/json": ArrivedSerializer,
        },
        parameters=[
            OpenApiParameter("name", OpenApiTypes.STR, description="Of a raw body: the file's name."),
            OpenApiParameter("kind", OpenApiTypes.STR, enum=Import.Kind.values, description="Of a raw body."),
            OpenApiParameter(
                "mapping", OpenApiTypes.STR, description="Of a raw body: JSON that overrides the detected mapping."
            ),
            OpenApiParameter("target", OpenApiTypes.STR, description="Of a raw body: JSON."),
        ],
        responses={201: ImportSerializer},
    )
    def post(self, request: Request, project: str) -> Response:
        """Open an import of files sent as a form or as a raw body, or uploaded before. Nothing is stored yet.

        Where the kind is not said, it is guessed for each file, and each kind becomes an import of its own; they share
        a `batch`, and the answer is the first. The files of a study that is known are one import, of the kind `study`.
        Large ones are checked in the background: ask for their `preview`.
        """
        current_project = access.require(user=request.user, slug=project)
        _check_length(request)
        files, keys, fields = _sent(request)
        opened = batches.receive(
            project=current_project,
            files=files,
            keys=keys,
            kind=fields.get("kind", ""),
            mapping=read_mapping(fields.get("mapping", {})),
            target=_target(fields["target"]) if "target" in fields else None,
            actor=request.user,
        )
        for file_import in opened:
            tasks.look(file_import)
        return answer(opened[0], status.HTTP_201_CREATED)


def _sent(request: Request) -> tuple[list[File], list[UUID], dict[str, Any]]:
    """The files of a request, or the keys of those uploaded before it, and what it says about them."""
    if not _is_raw(request) and _media_type(request) == ShallowJSONParser.media_type:
        asked = ArrivedSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        return [], asked.validated_data["uploads"], dict(asked.validated_data)
    serializer = UploadSerializer(data=_said(request))
    serializer.is_valid(raise_exception=True)
    sent = serializer.validated_data["files"]
    lifecycle.check_sizes({each.name: each.size for each in sent})
    fields = {
        name: _object(serializer.validated_data, name)
        for name in ("mapping", "target")
        if name in serializer.validated_data
    }
    return [(each.name, each.file) for each in sent], [], {**serializer.validated_data, **fields}


def _check_length(request: Request) -> None:
    length = whole_number(request.META.get("CONTENT_LENGTH")) or 0
    if length > uploads.AT_ONCE + uploads.MEGABYTE:
        raise uploads.too_long(length)


def _said(request: Request) -> dict[str, Any]:
    """The form, or the raw body beside what the query says."""
    is_raw = _is_raw(request)
    source = request.query_params if is_raw else request.POST
    given = {name: source[name] for name in ("kind", "mapping", "target") if name in source}
    return {"files": [*request.FILES.values()] if is_raw else request.FILES.getlist("files"), **given}


def _is_raw(request: Request) -> bool:
    """Whether the body is a file: the query names it, or its type is that of a file."""
    kind = _media_type(request)
    return kind in RAW_TYPES or (kind != MultiPartParser.media_type and "name" in request.query_params)


def _media_type(request: HttpRequest | Request) -> str:
    return (request.content_type or "").partition(";")[0].strip().lower()


def _object(said: dict[str, Any], name: str) -> dict[str, Any]:
    try:
        parsed = orjson.loads(said.get(name) or "{}")
    except orjson.JSONDecodeError as error:
        raise ValidationError({name: [f"This is not JSON: {error}"]}) from None
    if not isinstance(parsed, dict):
        raise ValidationError({name: ["This has to be a JSON object."]})
    return parsed


def read_mapping(said: dict[str, Any]) -> Mapping:
    try:
        return Mapping.from_dict(said)
    except FormatError as error:
        raise ValidationError({"mapping": [str(error.problem)]}) from None


def _target(said: dict[str, Any]) -> dict[str, Any]:
    asked = TargetSerializer(data=said)
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)


class ImportDetail(APIView):
    @extend_schema(responses=ImportSerializer)
    def get(self, request: Request, project: str, file_import: int) -> Response:
        """State and report of an import."""
        return answer(find(request.user, project, file_import))

    @extend_schema(request=RevisionSerializer, responses=ImportSerializer)
    def patch(self, request: Request, project: str, file_import: int) -> Response:
        """Correct what is not stored yet: what the files hold, their mapping, laid over the guess, where rows go."""
        found = find(request.user, project, file_import)
        asked = RevisionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = dict(asked.validated_data)
        if "mapping" in said:
            said["mapping"] = read_mapping(said["mapping"])
        lifecycle.revise(file_import=found, actor=request.user, **said)
        tasks.look(found)
        return answer(found)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, file_import: int) -> Response:
        """Delete an import that stored nothing, with its files."""
        removal.discard(file_import=find(request.user, project, file_import), actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ImportPreview(APIView):
    @extend_schema(responses={200: OutlookSerializer, 202: ImportSerializer})
    def get(self, request: Request, project: str, file_import: int) -> Response:
        """What storing would come to; 202 while a worker is still reading a large file."""
        found = _here(find(request.user, project, file_import))
        return seen(found, lambda: lifecycle.preview(found))


class ImportCheck(APIView):
    @extend_schema(request=None, responses={200: ImportSerializer, 202: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Let a worker look at a large import again (202); a small one is looked at when its preview is asked for."""
        found = find(request.user, project, file_import)
        return answer(found, status.HTTP_202_ACCEPTED if tasks.look(found) else status.HTTP_200_OK)


class ImportStorage(APIView):
    @extend_schema(request=None, responses={200: ImportSerializer, 202: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Store it, all or nothing. A large one is stored in the background (202): ask for its state."""
        found = _here(find(request.user, project, file_import))
        return stored(found, lambda: tasks.store(found, request.user))


class AlsoSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=Import.Kind.choices)


class ImportAlso(APIView):
    @extend_schema(request=AlsoSerializer, responses={201: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Open one more import of the same files, for what else they hold. Nothing is uploaded again."""
        found = find(request.user, project, file_import)
        asked = AlsoSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        opened = batches.also(file_import=found, kind=asked.validated_data["kind"], actor=request.user)
        tasks.look(opened)
        return answer(opened, status.HTTP_201_CREATED)


class ImportApart(APIView):
    @extend_schema(request=None, responses={201: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Import the files of a study kind by kind after all, instead of this import; the answer is the first."""
        opened = batches.apart(file_import=find(request.user, project, file_import), actor=request.user)
        for each in opened:
            tasks.look(each)
        return answer(opened[0], status.HTTP_201_CREATED)


class ImportUndo(APIView):
    @extend_schema(request=None, responses=ImportSerializer)
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Take back what was stored, while nothing depends on it; the files stay."""
        found = _here(find(request.user, project, file_import))
        removal.undo(file_import=found, actor=request.user)
        return answer(found)
