"""A file -> its rows, strictly: what cannot be read exactly is refused with its line, and nothing is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from annotation.formats.mapping import Mapping
from annotation.formats.problems import Problems


class Row(NamedTuple):
    """One record: the physical line it starts on, and its values by column (text from CSV, any JSON from JSON)."""

    line: int
    fields: dict[str, Any]


class Sample(NamedTuple):
    """The head of a file: what ``mapping.guess`` needs and a preview shows."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    problems: Problems


def read(name: str, raw: bytes | BinaryIO, *, layout: Mapping | None = None, problems: Problems) -> Iterator[Row]:
    """Yield the rows of a JSON, JSONL, CSV or TSV file (told by its name, or by ``layout.format``).

    Never raises on bad input: a bad row is refused into ``problems`` and reading goes on; after a fault that makes the
    rest unreliable (wrong encoding, broken quoting, truncated JSON) the rows end.
    """
    raise NotImplementedError


def peek(name: str, raw: bytes | BinaryIO, *, layout: Mapping | None = None, rows: int = 50) -> Sample:
    """The columns and first rows of a file; nested JSON columns appear as ``outer.inner``."""
    raise NotImplementedError
