"""The file formats of tables. JSONL has one object per line, with all columns; the others have a module each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

import orjson

from annotation.writers.archives import spooled
from annotation.writers.csv import comma_separated
from annotation.writers.parquet import write_columns
from annotation.writers.tables import Table
from annotation.writers.xlsx import write_sheets

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE


def json_lines(table: Table) -> Iterator[bytes]:
    """The file in pieces."""
    names = table.names
    for batch in table.batches():
        yield b"".join([orjson.dumps(dict(zip(names, row, strict=True)), option=_OPTIONS) for row in batch])


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


def write(table: Table, kind: str, out: IO[bytes]) -> None:
    """Write the table as a file."""
    chosen = FORMATS[kind]
    if chosen.whole is not None:
        chosen.whole(table, out, file=f"{table.name}.{chosen.ending}")
        return
    out.writelines(pieces(table, kind))
