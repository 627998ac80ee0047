"""Exports of a project as files, for leads and researchers: sent directly, or written by a worker. A worker also loads
bundles."""

from __future__ import annotations

from typing import Any

from django.http import FileResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, jobs
from accounts.models import Project, Role
from accounts.refusals import Refused
from analytics.api.numbers import WhateverIsAccepted
from analytics.exporting import exports, transfers
from analytics.exporting.exports import Export, Options
from analytics.models import Transfer
from analytics.views.exports import kept_file, recorded_download
from annotation.imports import uploads

WHAT = OpenApiParameter("what", {"type": "string", "enum": list(exports.FORMATS)}, location=OpenApiParameter.PATH)


class ExportQuerySerializer(serializers.Serializer[dict[str, Any]]):
    """The options of an export, and its campaign, dataset or rubric, by name or number."""

    format = serializers.ChoiceField(
        choices=sorted({kind for kinds in exports.FORMATS.values() for kind in kinds}),
        required=False,
        help_text="the default format of the export",
    )
    campaign = serializers.CharField(
        required=False, help_text="needed only if there are several; the same for the next two"
    )
    dataset = serializers.CharField(required=False)
    rubric = serializers.CharField(required=False)
    renumbered = serializers.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, help_text="other pseudonyms, the same for the same seed"
    )
    rationales = serializers.BooleanField(default=True, help_text="free text, in which people may say who they are")
    replies = serializers.BooleanField(default=False, help_text="the judges' raw replies too")
    revisions = serializers.BooleanField(default=False, help_text="superseded ratings too")
    every_run = serializers.BooleanField(default=False, help_text="all runs of a judge, not only the newest")
    split_seed = serializers.IntegerField(
        default=1, min_value=0, max_value=2**31 - 1, help_text="of a training set: which scenarios are for testing"
    )
    test_share = serializers.FloatField(default=0.2, help_text="of a training set: the share of its scenarios")
    question = serializers.CharField(
        required=False, help_text="of a report: the query string of the question whose settings hold for all tables"
    )
    layout = serializers.ChoiceField(
        choices=exports.LAYOUTS, required=False, help_text="of a report: the study as which its tables are laid out"
    )
    without_attributes = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="keys of attributes of the items that are left out"
    )
    names = serializers.BooleanField(
        default=False, help_text="the names behind the pseudonyms: for leads, by a token that may write"
    )


class ExtentSerializer(serializers.Serializer[exports.Extent]):
    """`size` in bytes is an estimate; null if it can't be estimated. `large`: have a worker write the export instead of
    waiting."""

    rows = serializers.IntegerField()
    size = serializers.IntegerField(allow_null=True)
    large = serializers.BooleanField()


def asked_for(project: Project, what: str, request: Request) -> Export:
    """The export that the query asks for. Refused if this person may not have it."""
    query = ExportQuerySerializer(data=request.query_params)
    query.is_valid(raise_exception=True)
    return wanted(project, what, query.validated_data, request)


def wanted(project: Project, what: str, parameters: dict[str, Any], request: Request) -> Export:
    """The export with this name and these parameters. Refused if this person may not have it; 404 if it does not
    exist."""
    given = {name: parameters[name] for name in Options.__slots__ if name in parameters}
    options = Options(**{**given, "without_attributes": tuple(given.get("without_attributes", ()))})
    try:
        export = exports.named_export(project=project, what=what, parameters=parameters, options=options)
    except Refused as refused:
        if refused.code in {"no_subject", "unknown_export"}:
            raise NotFound(refused.sentence) from None
        raise
    exports.permit(export, user=request.user, token=request.auth)
    return export


class Exports(APIView):
    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        parameters=[WHAT, ExportQuerySerializer],
        responses=dict.fromkeys(((200, each) for each in exports.MEDIA_TYPES), OpenApiTypes.BINARY),
    )
    def get(self, request: Request, project: str, what: str) -> FileResponse:
        """Items, ratings, verdicts, a rubric, a campaign or the whole project as a file. Raters have pseudonyms."""
        current_project = access.require(user=request.user, slug=project)
        export = asked_for(current_project, what, request)
        return recorded_download(export, actor=request.user)


class ExportSize(APIView):
    content_negotiation_class = WhateverIsAccepted  # the query's `format` is the export's

    @extend_schema(parameters=[WHAT, ExportQuerySerializer], responses=ExtentSerializer)
    def get(self, request: Request, project: str, what: str) -> Response:
        """How large an export will be."""
        export = asked_for(access.require(user=request.user, slug=project), what, request)
        rows, size = exports.export_extent(export)
        return Response({"rows": rows, "size": size, "large": exports.is_large_export(export)})


# --- transfers: large exports that a worker writes, and bundles that it loads ----------------------------------------
class TransferSerializer(serializers.Serializer[Transfer]):
    """`done` of `total` rows; `sentence` gives the result, or why it failed. A file that was written is kept until
    `expires_at`."""

    key = serializers.UUIDField(read_only=True)
    kind = serializers.ChoiceField(choices=Transfer.Kind.choices, read_only=True)
    state = serializers.ChoiceField(source="stage", choices=Transfer.State.choices, read_only=True)
    name = serializers.CharField(read_only=True)
    size = serializers.IntegerField(read_only=True, allow_null=True)
    done = serializers.IntegerField(read_only=True)
    total = serializers.IntegerField(read_only=True)
    sentence = serializers.CharField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)
    expires_at = serializers.DateTimeField(read_only=True)


class PrepareSerializer(ExportQuerySerializer):
    """An export that a worker is to write."""

    what = serializers.ChoiceField(choices=list(exports.FORMATS))


class BundleSerializer(serializers.Serializer[Any]):
    """A bundle that came in as an upload."""

    upload = serializers.UUIDField(help_text="the key of an upload that is whole")


def find_transfer(request: Request, project: str, transfer: Any) -> Transfer:
    """The user's own transfer in this project; 404 for other people's."""
    current_project = access.require(user=request.user, slug=project)
    mine = Transfer.objects.visible_to(request.user).filter(project=current_project).select_related("project", "job")
    return get_object_or_404(mine, key=transfer)


class Transfers(generics.ListAPIView):
    serializer_class = TransferSerializer
    queryset = Transfer.objects.none()

    def get_queryset(self) -> Any:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        return Transfer.objects.visible_to(self.request.user).filter(project=project).select_related("job")

    @extend_schema(request=PrepareSerializer, responses={202: TransferSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Have a worker write an export to a file; ask for it until its state is `done`, then fetch its content."""
        current_project = access.require(user=request.user, slug=project)
        serializer = PrepareSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        export = wanted(current_project, serializer.validated_data["what"], serializer.validated_data, request)
        begun = transfers.prepare(export=export, actor=request.user)
        jobs.enqueue(begun)
        return Response(TransferSerializer(begun).data, status=status.HTTP_202_ACCEPTED)


class TransferDetail(APIView):
    @extend_schema(responses=TransferSerializer)
    def get(self, request: Request, project: str, transfer: Any) -> Response:
        """The progress and the result of a transfer."""
        return Response(TransferSerializer(find_transfer(request, project, transfer)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, transfer: Any) -> Response:
        """Delete a transfer and its file."""
        transfers.remove(transfer=find_transfer(request, project, transfer))
        return Response(status=status.HTTP_204_NO_CONTENT)


class TransferContent(APIView):
    content_negotiation_class = WhateverIsAccepted

    @extend_schema(responses=dict.fromkeys(((200, each) for each in exports.MEDIA_TYPES), OpenApiTypes.BINARY))
    def get(self, request: Request, project: str, transfer: Any) -> FileResponse:
        """The file that was written."""
        found = find_transfer(request, project, transfer)
        if not transfers.has_file(found):
            raise NotFound("There is no file yet, or it was deleted. Check its state.")
        exports.permit(transfers.export_of(found), user=request.user, token=request.auth)
        return kept_file(found)


class Bundles(APIView):
    roles = (Role.LEAD,)

    @extend_schema(request=BundleSerializer, responses={202: TransferSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Have a worker load a bundle into this empty project, all of it or nothing; watch it under `transfers/`."""
        current_project = access.require(user=request.user, slug=project, roles=self.roles)
        serializer = BundleSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        (upload,) = uploads.whole(
            project=current_project, keys=[serializer.validated_data["upload"]], actor=request.user
        )
        begun = transfers.take_over(upload=upload, actor=request.user)
        jobs.enqueue(begun)
        return Response(TransferSerializer(begun).data, status=status.HTTP_202_ACCEPTED)
