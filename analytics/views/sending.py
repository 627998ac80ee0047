"""An export as a download: written to a temporary file, recorded in the audit trail, and only then sent.

While the file is sent, no transaction is open and no row is read: a client that reads slowly or goes away holds neither
a database connection nor a web thread.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, closing
from tempfile import TemporaryFile

from django.http import FileResponse

from accounts.models import User
from analytics import exports, transfers
from analytics.exports import Export
from analytics.models import Transfer


def recorded(export: Export, *, actor: User) -> FileResponse:
    """The export as a download, with its entry in the audit trail. Raises `Refused` for what can't be written."""
    response = unrecorded(export)
    with ExitStack() as on_error:
        on_error.callback(response.close)
        exports.record(export, actor)
        on_error.pop_all()
    return response


def unrecorded(export: Export) -> FileResponse:
    """The export as a download for the holder of a shared link, whose use is noted with the link."""
    return download(exports.pieces(export), name=export.file_name, media_type=export.media_type)


def download(pieces: Generator[bytes], *, name: str, media_type: str) -> FileResponse:
    """These bytes as a download, all of them read before the first is sent."""
    with ExitStack() as on_error:
        file = on_error.enter_context(TemporaryFile())
        with closing(pieces):  # also where the disk is full: an export that is left halfway keeps its transaction open
            file.writelines(pieces)
        file.seek(0)
        on_error.pop_all()
    return _attachment(FileResponse(file, as_attachment=True, filename=name, content_type=media_type))


def kept(transfer: Transfer) -> FileResponse:
    """The file that a worker wrote, as a download."""
    media_type = transfers.export_of(transfer).media_type
    file = transfer.content.open("rb")
    return _attachment(FileResponse(file, as_attachment=True, filename=transfer.name, content_type=media_type))


def _attachment(response: FileResponse) -> FileResponse:
    response["X-Content-Type-Options"] = "nosniff"
    return response
