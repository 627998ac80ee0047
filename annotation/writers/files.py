"""The file formats of tables, and writing a table in one of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from tempfile import TemporaryFile
from typing import IO, BinaryIO, NamedTuple

from annotation.writers.columnar import write_columns
from annotation.writers.sheets import write_sheets
from annotation.writers.tables import Table, comma_separated, json_lines

PIECE = 256 * 1024


class FileFormat(NamedTuple):
    """A file format. It has one of two functions: ``pieces`` creates the file while it is sent; ``whole`` writes the
    complete file before the first byte is sent."""

    ending: str
    media_type: str
    pieces: Callable[[Table], Iterator[bytes]] | None = None
    whole: Callable[..., None] | None = None


FORMATS = {
    "jsonl": FileFormat("jsonl", "application/jsonl; charset=utf-8", pieces=json_lines),
    "csv": FileFormat("csv", "text/csv; charset=utf-8", pieces=comma_separated),
    "xlsx": FileFormat("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", whole=write_sheets),
    "parquet": FileFormat("parquet", "application/vnd.apache.parquet", whole=write_columns),
}


def pieces(table: Table, kind: str) -> Iterator[bytes]:
    """The table as a file, piece by piece; memory does not grow with the table."""
    chosen = FORMATS[kind]
    if chosen.pieces is not None:
        yield from chosen.pieces(table)
        return
    yield from spooled(lambda out: write(table, kind, out))


def spooled(write: Callable[[BinaryIO], None]) -> Generator[bytes]:
    """Write a complete temporary file, then yield it in pieces."""
    with TemporaryFile() as spool:
        write(spool)
        spool.seek(0)
        yield from iter(lambda: spool.read(PIECE), b"")


def write(table: Table, kind: str, out: IO[bytes]) -> None:
    """Write the table as a file."""
    chosen = FORMATS[kind]
    if chosen.whole is not None:
        chosen.whole(table, out, file=f"{table.name}.{chosen.ending}")
        return
    out.writelines(pieces(table, kind))
