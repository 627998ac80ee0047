"""Large exports that a worker writes, and bundles that it loads: asked for, watched, fetched and removed."""

from __future__ import annotations

from typing import Any

from django.http import FileResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, jobs
from accounts.models import Role
from analytics import exports, transfers
from analytics.api.exports import ExportQuerySerializer, wanted
from analytics.api.numbers import WhateverIsAccepted
from analytics.models import Transfer
from analytics.views.exports import kept_file
from annotation.imports import uploads


class TransferSerializer(serializers.Serializer[Transfer]):
    """`done` of `total` rows; `sentence` says what came of it. A file that was written is kept until `expires_at`."""

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
    """One's own transfer, in its project."""
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
        """How far it is, and what came of it."""
        return Response(TransferSerializer(find_transfer(request, project, transfer)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, transfer: Any) -> Response:
        """Forget it, and delete its file."""
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
