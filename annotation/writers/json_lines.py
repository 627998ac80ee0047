"""Write a table as JSONL: one object per line, with all columns."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from annotation.writers.tables import Table

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE


def json_lines(table: Table) -> Iterator[bytes]:
    """The file in pieces."""
    names = table.names
    for batch in table.batches():
        yield b"".join([orjson.dumps(dict(zip(names, row, strict=True)), option=_OPTIONS) for row in batch])
