"""Everything a project holds as files, for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import Project
from accounts.refusals import Refused
from analytics import exports
from analytics.api.numbers import WhateverIsAccepted
from analytics.exports import Export, Options
from analytics.views.exports import recorded_download

WHAT = OpenApiParameter("what", {"type": "string", "enum": list(exports.FORMATS)}, location=OpenApiParameter.PATH)


class ExportQuerySerializer(serializers.Serializer[dict[str, Any]]):
    """What of it is wanted, how, and about which campaign, dataset or rubric: by name or by number."""

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
    names = serializers.BooleanField(
        default=False, help_text="the names behind the pseudonyms: for leads, by a token that may write"
    )


class ExtentSerializer(serializers.Serializer[exports.Extent]):
    """`size` in bytes is an estimate, null where only writing would tell. `large`: better not waited for."""

    rows = serializers.IntegerField()
    size = serializers.IntegerField(allow_null=True)
    large = serializers.BooleanField()


def asked_for(project: Project, what: str, request: Request) -> Export:
    """The export that the query says, if this person may have it."""
    query = ExportQuerySerializer(data=request.query_params)
    query.is_valid(raise_exception=True)
    return wanted(project, what, query.validated_data, request)


def wanted(project: Project, what: str, parameters: dict[str, Any], request: Request) -> Export:
    """The export of these words, if this person may have it; 404 where there is none such."""
    options = Options(**{name: parameters[name] for name in Options.__slots__ if name in parameters})
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
