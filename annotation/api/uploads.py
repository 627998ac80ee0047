"""Resumable upload: the tus protocol 1.0.0 (core, creation, termination, checksum, expiration), https://tus.io.

A complete upload is imported by its key: ``POST imports/ {"uploads": [key, ...]}``.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.http import UnreadablePostError
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.http import http_date
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import APIException, MethodNotAllowed, UnsupportedMediaType, ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, outages
from accounts.inputs import whole_number
from accounts.refusals import Refused
from annotation.imports import uploads
from annotation.models import Upload

VERSION = "1.0.0"
READ = 2**16
DIGESTS = ("sha1", "sha256")
CHUNK_TYPE = "application/offset+octet-stream"
REFUSALS = {
    "wrong_offset": 409,
    "gone": 410,
    "too_large": 413,
    "beyond_the_end": 413,
    "no_room": 507,
    "other_machine": 421,
}
REFUSALS |= {str(outage.code): outage.status for outage in outages.FOLDER.values()}
RETRY_AFTER = {507: "60", 503: "30"}
RESUMABLE = OpenApiParameter("Tus-Resumable", str, OpenApiParameter.HEADER, required=True, enum=[VERSION])
BYTES = {"type": "integer", "format": "int64", "minimum": 0}
LENGTH = OpenApiParameter("Upload-Length", BYTES, OpenApiParameter.HEADER, required=True, description="Of the file.")
METADATA = OpenApiParameter(
    "Upload-Metadata", str, OpenApiParameter.HEADER, description="`filename`, a space, and the name in base64."
)
OFFSET = OpenApiParameter(
    "Upload-Offset", BYTES, OpenApiParameter.HEADER, required=True, description="Where the chunk begins."
)
CHECKSUM = OpenApiParameter(
    "Upload-Checksum", str, OpenApiParameter.HEADER, description="`sha256` or `sha1`, a space, the digest in base64."
)
NOT_SPOKEN = {412: OpenApiResponse(description="`Tus-Resumable` has to be 1.0.0.")}


class WrongTusVersion(APIException):
    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_detail = f"Send the header Tus-Resumable: {VERSION}."
    default_code = "tus_version"


class ChecksumMismatch(APIException):
    status_code = 460
    default_detail = "The chunk is not what its checksum says. Send it again."
    default_code = "checksum"


class ChunkParser(BaseParser):
    """Does not read the body, so that the view can read it in pieces."""

    media_type = CHUNK_TYPE

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return stream


class UploadStateSerializer(serializers.Serializer[Upload]):
    """How many bytes of a file were received; `sha256` when the file is complete."""

    key = serializers.UUIDField(read_only=True)
    name = serializers.CharField(read_only=True)
    size = serializers.IntegerField(read_only=True)
    received = serializers.IntegerField(read_only=True)
    sha256 = serializers.CharField(read_only=True, allow_blank=True)


class TusView(APIView):
    """Adds the headers that tus requires of every response, and the statuses that tus has for refusals."""

    parser_classes = (ChunkParser,)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer["Tus-Resumable"] = VERSION
        if answer.status_code == status.HTTP_412_PRECONDITION_FAILED:
            answer["Tus-Version"] = VERSION
        return answer

    def handle_exception(self, exc: Exception) -> Response:
        answer = super().handle_exception(exc)
        if isinstance(exc, Refused):
            answer.status_code = REFUSALS.get(exc.code, answer.status_code)
            if answer.status_code in RETRY_AFTER:
                answer["Retry-After"] = RETRY_AFTER[answer.status_code]
        return answer

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        offered = {
            "Tus-Version": VERSION,
            "Tus-Extension": "creation,termination,checksum,expiration",
            "Tus-Max-Size": str(settings.UPLOAD_LIMIT),
            "Tus-Checksum-Algorithm": ",".join(DIGESTS),
        }
        return Response(status=status.HTTP_204_NO_CONTENT, headers=offered)


class Uploads(TusView):
    @extend_schema(
        request=None,
        parameters=[RESUMABLE, LENGTH, METADATA],
        responses={201: UploadStateSerializer, **NOT_SPOKEN},
    )
    def post(self, request: Request, project: str) -> Response:
        """Start the upload of a file. `Location` is the address for its chunks."""
        current_project = access.require(user=request.user, slug=project)
        _require_version(request)
        begun = uploads.begin_upload(
            project=current_project, name=_name(request), size=_count(request, "Upload-Length"), actor=request.user
        )
        location = request.build_absolute_uri(reverse("api_upload", args=[project, begun.key]))
        answer = Response(UploadStateSerializer(begun).data, status=status.HTTP_201_CREATED, headers=_place(begun))
        answer["Location"] = location
        return answer


class UploadDetail(TusView):
    def find(self, request: Request) -> Upload:
        """The user's own upload in this project; 404 otherwise."""
        project = access.require(user=request.user, slug=self.kwargs["project"])
        return get_object_or_404(
            Upload.objects.visible_to(request.user).filter(project=project), key=self.kwargs["upload"]
        )

    @extend_schema(responses=UploadStateSerializer)
    def get(self, request: Request, project: str, upload: Any) -> Response:
        """How many bytes were received. HEAD returns the same in headers, as tus requires."""
        current_upload = self.find(request)
        return Response(
            UploadStateSerializer(current_upload).data, headers={**_place(current_upload), "Cache-Control": "no-store"}
        )

    def head(self, request: Request, project: str, upload: Any) -> Response:
        current_upload = self.find(request)
        _require_version(request)
        return Response(headers={**_place(current_upload), "Cache-Control": "no-store"})

    @extend_schema(
        request={CHUNK_TYPE: OpenApiTypes.BINARY},
        parameters=[RESUMABLE, OFFSET, CHECKSUM],
        responses={
            204: None,
            410: OpenApiResponse(description="It was already imported or cancelled."),
            421: OpenApiResponse(description="The beginning of the file is on another machine."),
            460: OpenApiResponse(description="The chunk is not what its checksum says."),
            503: OpenApiResponse(description="The data folder cannot be written to."),
            507: OpenApiResponse(description="The disk is full."),
            **NOT_SPOKEN,
        },
    )
    def patch(self, request: Request, project: str, upload: Any) -> Response:
        """Append a chunk of at most 128 MB. After a broken connection, HEAD tells where to continue."""
        current_upload = self.find(request)
        _require_version(request)
        if request.content_type != CHUNK_TYPE:
            raise UnsupportedMediaType(request.content_type)
        offset = _count(request, "Upload-Offset")
        if offset != current_upload.received:  # refused before the body is read, to save the client a useless transfer
            uploads.append_part(upload=current_upload, offset=offset, chunk=b"")
        for chunk in _chunks(request):
            current_upload = uploads.append_part(upload=current_upload, offset=offset, chunk=chunk)
            offset += len(chunk)
        return Response(status=status.HTTP_204_NO_CONTENT, headers=_place(current_upload))

    @extend_schema(parameters=[RESUMABLE], responses={204: None, **NOT_SPOKEN})
    def delete(self, request: Request, project: str, upload: Any) -> Response:
        """Cancel the upload and delete the bytes received."""
        current_upload = self.find(request)
        _require_version(request)
        uploads.abandon(upload=current_upload)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(exclude=True)
    def post(self, request: Request, project: str, upload: Any) -> Response:
        """For clients that cannot send PATCH or DELETE: the method is in `X-HTTP-Method-Override`."""
        meant = request.headers.get("X-HTTP-Method-Override", "")
        if meant not in ("PATCH", "DELETE", "HEAD"):
            raise MethodNotAllowed("POST")
        answered: Response = getattr(self, meant.lower())(request, project, upload)
        return answered


def _require_version(request: Request) -> None:
    if request.headers.get("Tus-Resumable") != VERSION:
        raise WrongTusVersion


def _count(request: Request, name: str) -> int:
    count = whole_number(request.headers.get(name), largest=10**18)
    if count is None:
        raise ValidationError({name: [_("Give a whole number of bytes.")]})
    return count


def _name(request: Request) -> str:
    """The file's name among the metadata: ``filename ZGlhbG9ndWVzLmNzdg==,filetype dGV4dC9jc3Y=``."""
    pairs = (pair.strip().partition(" ") for pair in request.headers.get("Upload-Metadata", "").split(","))
    metadata = {key: value for key, _space, value in pairs}
    try:
        return base64.b64decode(metadata.get("filename", ""), validate=True).decode()
    except ValueError:
        raise ValidationError({"Upload-Metadata": [_("Give the file's name in base64.")]}) from None


def _place(upload: Upload) -> dict[str, str]:
    expires = http_date(int((upload.changed_at + uploads.ABANDONED).timestamp()))
    return {"Upload-Offset": str(upload.received), "Upload-Length": str(upload.size), "Upload-Expires": expires}


def _chunks(request: Request) -> Iterator[bytes]:
    """The body in pieces. With a checksum the body is one piece; raises `ChecksumMismatch` if it differs."""
    algorithm, _space, digest = request.headers.get("Upload-Checksum", "").partition(" ")
    if not algorithm:
        yield from iter(lambda: _piece(request), b"")
        return
    if algorithm not in DIGESTS:
        raise ValidationError({"Upload-Checksum": [_("Use one of: %s.") % ", ".join(DIGESTS)]})
    chunk = _piece(request)
    if _piece(request):
        sentence = _("A chunk with a checksum can have at most %d MB.")
        raise Refused(sentence % (uploads.CHUNK // uploads.MEGABYTE), code="too_large")
    if base64.b64encode(hashlib.new(algorithm, chunk).digest()).decode() != digest.strip():
        raise ChecksumMismatch
    yield chunk


def _piece(request: Request) -> bytes:
    """The next bytes of the body: fewer than asked for, then none, when it ends or the connection breaks."""
    piece = bytearray()
    with suppress(UnreadablePostError):
        while len(piece) < uploads.CHUNK and (read := request._request.read(min(READ, uploads.CHUNK - len(piece)))):
            piece += read
    return bytes(piece)
