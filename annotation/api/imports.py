"""Imports: upload, look, correct, store, take back; saved mappings. For leads and researchers.

Verdicts are uploaded and corrected here too. Their preview, storing and undo are under `verdict-imports/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import orjson
from django.db.models import QuerySet
from django.http import FileResponse, HttpRequest
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

from accounts import access, audit
from accounts.api_requests import ShallowJSONParser
from accounts.inputs import whole_number, without_nul
from accounts.models import User
from accounts.refusals import Refused
from annotation import tasks
from annotation.blinding import CHOICES
from annotation.imports import import_jobs, lifecycle, opening, previews, saved_mappings, targets, undoing, uploads
from annotation.imports.check_reports import PreviewReport, preview_report
from annotation.imports.previews import Preview
from annotation.imports.storage import FileRefused
from annotation.models import Import, ImportFile, SavedMapping
from annotation.readers import File, FormatError, Mapping
from annotation.writers.formats import FORMATS

RAW_TYPES = {
    "application/octet-stream": "file",
    **{file_format.media_type.partition(";")[0]: f"file.{file_format.ending}" for file_format in FORMATS.values()},
    "text/tab-separated-values": "file.tsv",
    "application/x-ndjson": "file.jsonl",
    "application/yaml": "file.yaml",
    "application/zip": "file.zip",
    "application/gzip": "file.gz",
}
"""By media type of a request body that is a file: the file's name if the query does not give one."""
AS_IT_CAME = "application/octet-stream"
STORED_HERE = (Import.Kind.DATASET, Import.Kind.RUBRIC, Import.Kind.RATINGS)


class RawFileParser(FileUploadParser):
    """The request body is the file, whatever its media type. The query parameter `name` is its name."""

    media_type = "*/*"

    def get_filename(self, stream: Any, media_type: Any, parser_context: Any) -> str:
        request = parser_context["request"]
        return str(request.query_params.get("name", "")) or RAW_TYPES.get(_media_type(request), "file")


class ImportFileSerializer(serializers.Serializer[ImportFile]):
    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(read_only=True)
    size = serializers.IntegerField(read_only=True)
    sha256 = serializers.CharField(read_only=True)


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
    """A form with files. `mapping` and `target` are JSON objects as text."""

    files = serializers.ListField(child=serializers.FileField(), allow_empty=False, max_length=50)
    kind = serializers.ChoiceField(choices=Import.Kind.choices, required=False)
    mapping = serializers.CharField(required=False)
    target = serializers.CharField(required=False)


class ArrivedSerializer(serializers.Serializer[Import]):
    """The keys of complete uploads (`uploads/`), and the other fields of `UploadSerializer`."""

    uploads = serializers.ListField(child=serializers.UUIDField(), allow_empty=False, max_length=50)
    kind = serializers.ChoiceField(choices=Import.Kind.choices, required=False)
    mapping = serializers.DictField(required=False)
    target = serializers.DictField(required=False)


class TargetSerializer(serializers.Serializer[Any]):
    """Where the rows are stored. For items: `name` and `licence` of a dataset, or the dataset that it `extends`. For
    ratings: the `campaign`. For ratings and verdicts: the `dataset` and `rubric_version`. For a known study: its name
    (`study`) and values that are the same in all of its files (`constants`).
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


class ImportPreviewSerializer(serializers.Serializer[Any]):
    """What storing would do: the mapping that was used, the first rows, the report and the problems."""

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
        child=serializers.DictField(), help_text="Problems by kind: their number and the first places."
    )
    documents = serializers.ListField(child=serializers.CharField())
    first_lines = serializers.ListField(
        child=serializers.DictField(), help_text="The first rows of a table as they are: `number` and `text`."
    )
    sheets = serializers.ListField(child=serializers.CharField(), help_text="Of a workbook.")


def get_import(user: User, project: str, file_import: int) -> Import:
    """An import of a project, for those who may see it."""
    current_project = access.require(user=user, slug=project)
    mine = Import.objects.visible_to(user).filter(project=current_project).select_related("project", "job")
    return get_object_or_404(mine.prefetch_related("files"), pk=file_import)


def answer(file_import: Import, code: int = status.HTTP_200_OK) -> Response:
    """An import as the API shows it."""
    shown = Import.objects.select_related("job").prefetch_related("files").get(pk=file_import.pk)
    return Response(ImportSerializer(shown).data, status=code)


def refused(error: FileRefused) -> Response:
    """An error response (422) with every problem of the files and its place."""
    fields = {"files": error.problems.sentences()}
    problems = [problem.as_dict() for problem in error.problems]
    body = {"code": error.code, "detail": error.sentence, "fields": fields, "problems": problems}
    return Response(body, status=status.HTTP_422_UNPROCESSABLE_ENTITY)


def preview_response(file_import: Import, preview: Callable[[], Preview]) -> Response:
    """What storing would do. For a large import: the result of the last check, or 202 while a check is running."""
    if file_import.state == Import.State.CHECKING or file_import.is_large():
        return looked_at(file_import)
    target = targets.resolve(project=file_import.project, target_fields=file_import.target)
    return _checked(preview_report(preview(), target))


def _checked(result: PreviewReport) -> Response:
    """The result of a check, without what only pages read."""
    return Response({name: value for name, value in result.items() if name != "words"})


def _record_reading(file_import: Import, request: Request) -> None:
    """Record that somebody reads what was imported: there may be ratings in it."""
    audit.record_once_a_day(
        actor=request.user, project=file_import.project, verb=audit.READ_IMPORT, subject=file_import
    )


def looked_at(file_import: Import) -> Response:
    """The result of the check in the background; 202 while the check is running."""
    if file_import.state == Import.State.CHECKING:
        return answer(file_import, status.HTTP_202_ACCEPTED)
    if (result := import_jobs.current_check(file_import)) is None:
        unread = _("The files were not checked with this mapping. Check them first.")
        raise Refused(file_import.report.get("sentence") or unread, code="not_checked")
    return _checked(result)


def stored(file_import: Import, store: Callable[[], bool]) -> Response:
    """The import: 200 when it is stored, 202 while a worker stores it, 422 with every problem if it is refused."""
    try:
        return answer(file_import, status.HTTP_200_OK if store() else status.HTTP_202_ACCEPTED)
    except FileRefused as error:
        return refused(error)


def undone(file_import: Import, is_done: bool) -> Response:
    """The import: 200 when it is undone, 202 while a worker undoes it."""
    return answer(file_import, status.HTTP_200_OK if is_done else status.HTTP_202_ACCEPTED)


def _require_stored_here(file_import: Import) -> Import:
    """Refuse the kinds that the apps above this one store: verdicts and studies."""
    if file_import.kind not in STORED_HERE:
        raise Refused(_("For verdicts use verdict-imports/, for whole studies study-imports/."), code="wrong_kind")
    return file_import


class Imports(generics.ListAPIView[Import]):
    """The project's imports."""

    serializer_class = ImportSerializer
    queryset = Import.objects.none()
    parser_classes = (MultiPartParser, RawFileParser, ShallowJSONParser)

    def get_parsers(self) -> list[BaseParser]:
        """If the query gives the name of a file, the body is that file, even when its type is JSON."""
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

        Without `kind`, the kind of every file is detected. Every kind becomes a separate import: they share a `batch`,
        and the response is the first of them. The files of a known study become one import of the kind `study`.
        Large imports are checked in the background: ask for their `preview`.
        """
        current_project = access.require(user=request.user, slug=project)
        _check_length(request)
        files, keys, fields = _sent(request)
        opened = opening.open_imports(
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
    """The files of a request, the keys of files uploaded before it, and the other fields (kind, mapping, target)."""
    if not _is_raw(request) and _media_type(request) == ShallowJSONParser.media_type:
        arrived = ArrivedSerializer(data=request.data)
        arrived.is_valid(raise_exception=True)
        return [], arrived.validated_data["uploads"], dict(arrived.validated_data)
    serializer = UploadSerializer(data=_form_data(request))
    serializer.is_valid(raise_exception=True)
    sent = serializer.validated_data["files"]
    opening.check_sizes({file.name: file.size for file in sent})
    fields = {
        name: _object(serializer.validated_data, name)
        for name in ("mapping", "target")
        if name in serializer.validated_data
    }
    return [(file.name, file.file) for file in sent], [], {**serializer.validated_data, **fields}


def _check_length(request: Request) -> None:
    length = whole_number(request.META.get("CONTENT_LENGTH")) or 0
    if length > uploads.AT_ONCE + uploads.MEGABYTE:
        raise uploads.too_long(length, without_nul(request.query_params.get("name", ""))[:200])


def _form_data(request: Request) -> dict[str, Any]:
    """The fields of the form, or of a raw body (`files`) and its query parameters."""
    is_raw = _is_raw(request)
    source = request.query_params if is_raw else request.POST
    parameters = {name: source[name] for name in ("kind", "mapping", "target") if name in source}
    return {"files": [*request.FILES.values()] if is_raw else request.FILES.getlist("files"), **parameters}


def _is_raw(request: Request) -> bool:
    """Whether the body is a file: the query names it, or its type is that of a file."""
    kind = _media_type(request)
    return kind in RAW_TYPES or (kind != MultiPartParser.media_type and "name" in request.query_params)


def _media_type(request: HttpRequest | Request) -> str:
    return (request.content_type or "").partition(";")[0].strip().lower()


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    try:
        parsed = orjson.loads(fields.get(name) or "{}")
    except orjson.JSONDecodeError as error:
        raise ValidationError({name: [f"This is not JSON: {error}"]}) from None
    if not isinstance(parsed, dict):
        raise ValidationError({name: ["This has to be a JSON object."]})
    return parsed


def read_mapping(fields: dict[str, Any]) -> Mapping:
    try:
        return Mapping.from_dict(fields)
    except FormatError as error:
        raise ValidationError({"mapping": [str(error.problem)]}) from None


def _target(fields: dict[str, Any]) -> dict[str, Any]:
    serializer = TargetSerializer(data=fields)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


class ImportDetail(APIView):
    @extend_schema(responses=ImportSerializer)
    def get(self, request: Request, project: str, file_import: int) -> Response:
        """State and report of an import."""
        return answer(get_import(request.user, project, file_import))

    @extend_schema(request=RevisionSerializer, responses=ImportSerializer)
    def patch(self, request: Request, project: str, file_import: int) -> Response:
        """Change an import that is not stored yet: its kind, its mapping (laid over the detected one), its target."""
        current_import = get_import(request.user, project, file_import)
        serializer = RevisionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        changes = dict(serializer.validated_data)
        if "mapping" in changes:
            changes["mapping"] = read_mapping(changes["mapping"])
        lifecycle.revise(file_import=current_import, actor=request.user, **changes)
        tasks.look(current_import)
        return answer(current_import)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, file_import: int) -> Response:
        """Delete an import that stored nothing, with its files."""
        undoing.discard(file_import=get_import(request.user, project, file_import), actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ImportPreview(APIView):
    @extend_schema(responses={200: ImportPreviewSerializer, 202: ImportSerializer})
    def get(self, request: Request, project: str, file_import: int) -> Response:
        """What storing would do; 202 while a worker is still reading a large file."""
        current_import = _require_stored_here(get_import(request.user, project, file_import))
        if current_import.state == Import.State.STORED:
            _record_reading(current_import, request)
        return preview_response(current_import, lambda: previews.preview_import(current_import))


class ImportCheck(APIView):
    @extend_schema(request=None, responses={200: ImportSerializer, 202: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Check a large import again in the background (202). A small one is checked when its preview is requested."""
        current_import = get_import(request.user, project, file_import)
        return answer(current_import, status.HTTP_202_ACCEPTED if tasks.look(current_import) else status.HTTP_200_OK)


class ImportStorage(APIView):
    @extend_schema(request=None, responses={200: ImportSerializer, 202: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Store the import completely or not at all. A large one is stored in the background (202): poll its state."""
        current_import = _require_stored_here(get_import(request.user, project, file_import))
        return stored(current_import, lambda: tasks.store_here_or_later(current_import, request.user))


class AlsoSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=Import.Kind.choices)


class ImportAlso(APIView):
    @extend_schema(request=AlsoSerializer, responses={201: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Open another import of the same files, for their other contents. Nothing is uploaded again."""
        current_import = get_import(request.user, project, file_import)
        serializer = AlsoSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        opened = opening.import_as_kind(
            file_import=current_import, kind=serializer.validated_data["kind"], actor=request.user
        )
        tasks.look(opened)
        return answer(opened, status.HTTP_201_CREATED)


class ImportApart(APIView):
    @extend_schema(request=None, responses={201: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Replace the import of a study by separate imports, one per kind. The response is the first of them."""
        opened = opening.split_study(file_import=get_import(request.user, project, file_import), actor=request.user)
        for opened_import in opened:
            tasks.look(opened_import)
        return answer(opened[0], status.HTTP_201_CREATED)


class ImportUndo(APIView):
    @extend_schema(request=None, responses={200: ImportSerializer, 202: ImportSerializer})
    def post(self, request: Request, project: str, file_import: int) -> Response:
        """Delete what was stored, unless something depends on it. The files are kept.

        A large import is undone in the background (202): poll its state. It is `stored` again when that fails.
        """
        current_import = _require_stored_here(get_import(request.user, project, file_import))
        return undone(current_import, tasks.undo_here_or_later(current_import, request.user))


class ImportFileContent(APIView):
    @extend_schema(responses={(200, AS_IT_CAME): OpenApiTypes.BINARY})
    def get(self, request: Request, project: str, file_import: int, file: int) -> FileResponse:
        """One of the files, unchanged."""
        current_project = access.require(user=request.user, slug=project)
        mine = Import.objects.visible_to(request.user).filter(project=current_project)
        files = ImportFile.objects.filter(file_import__in=mine, file_import=file_import).select_related("file_import")
        kept = get_object_or_404(files, pk=file)
        _record_reading(kept.file_import, request)
        return FileResponse(kept.content.open("rb"), as_attachment=True, filename=kept.name, content_type=AS_IT_CAME)


# --- saved mappings ---------------------------------------------------------------------------------------------------
class SavedMappingSerializer(serializers.Serializer[SavedMapping]):
    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=120)
    kind = serializers.ChoiceField(choices=[(kind.value, kind.label) for kind in saved_mappings.MAPPED_KINDS])
    mapping = serializers.DictField()
    created_at = serializers.DateTimeField(read_only=True)


def _posted_mapping(request: Request) -> dict[str, Any]:
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
        saved = saved_mappings.store_mapping(project=current_project, actor=request.user, **_posted_mapping(request))
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
        saved = saved_mappings.revise_saved_mapping(saved=saved_mapping, actor=request.user, **_posted_mapping(request))
        return Response(SavedMappingSerializer(saved).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, mapping: int) -> Response:
        """Delete the mapping. Imports that used it keep their own copy."""
        saved_mappings.remove_mapping(saved=self.find(request), actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)
