"""The file formats that are read: their names in a mapping (`format: NAME`), their endings, and what they are like.

A new format is a line here and a module in `annotation.readers.file_types`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableFormat:
    """A format. ``reader``: its module in `file_types`; without one it is text that `reading` reads.

    ``is_text``: text in an encoding, which may be guessed.
    ``is_table``: every row has the same columns. ``is_delimited``: cells of a line are separated by one character.
    ``is_read_from_end``: the reader needs to seek in the stream, and a small file may unpack to a large one.
    """

    name: str
    endings: tuple[str, ...]
    reader: str = ""
    is_text: bool = False
    is_table: bool = False
    is_delimited: bool = False
    is_read_from_end: bool = False
    has_sheets: bool = False

    def function(self, name: str) -> Callable[..., Any]:
        """A function of the format's reader, whose module is loaded on first use."""
        found: Callable[..., Any] = getattr(import_module(f"annotation.readers.file_types.{self.reader}"), name)
        return found


READABLE = (
    ReadableFormat(name="json", endings=(".json",), is_text=True),
    ReadableFormat(name="jsonl", endings=(".jsonl", ".ndjson"), is_text=True),
    ReadableFormat(name="csv", endings=(".csv",), is_text=True, is_table=True, is_delimited=True),
    ReadableFormat(name="tsv", endings=(".tsv", ".tab"), is_text=True, is_table=True, is_delimited=True),
    ReadableFormat(
        name="xlsx", endings=(".xlsx",), reader="xlsx", is_table=True, is_read_from_end=True, has_sheets=True
    ),
    ReadableFormat(name="parquet", endings=(".parquet",), reader="parquet", is_table=True, is_read_from_end=True),
)
FORMATS_BY_NAME = {readable.name: readable for readable in READABLE}
ENDINGS = {ending: readable for readable in READABLE for ending in readable.endings}
READ_FROM_END = tuple(ending for ending, readable in ENDINGS.items() if readable.is_read_from_end)


def format_of_name(file: str) -> ReadableFormat | None:
    """The format that belongs to the ending of a file's name."""
    return next((readable for ending, readable in ENDINGS.items() if file.lower().endswith(ending)), None)
