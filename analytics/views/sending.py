"""An export as an answer: sent as it is read, or from a file where it had to be whole first."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain

from django.http import FileResponse, StreamingHttpResponse

from analytics import exports, transfers
from analytics.exports import Export
from analytics.models import Transfer


class Primed:
    """Pieces whose first one is there already, so that what can't be written is refused before anything is sent."""

    def __init__(self, pieces: Generator[bytes]) -> None:
        self._pieces = pieces
        self._first = next(pieces, b"")

    def __iter__(self) -> Iterator[bytes]:
        return chain([self._first], self._pieces)

    def close(self) -> None:
        """Called when the answer ends, also when the reader has gone away."""
        self._pieces.close()


def streamed(export: Export) -> StreamingHttpResponse:
    """The export as a download."""
    response = StreamingHttpResponse(Primed(exports.pieces(export)), content_type=export.media_type)
    response["Content-Disposition"] = f'attachment; filename="{export.file_name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def kept(transfer: Transfer) -> FileResponse:
    """The file that a worker wrote, as a download."""
    export_type = transfers.export_of(transfer).media_type
    response = FileResponse(
        transfer.content.open("rb"), as_attachment=True, filename=transfer.name, content_type=export_type
    )
    response["X-Content-Type-Options"] = "nosniff"
    return response
