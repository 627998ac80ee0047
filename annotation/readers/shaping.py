"""One record of a file -> the rows it stands for: list cells, wide columns and nested objects made long."""

from __future__ import annotations

from collections.abc import Iterator

from annotation.readers.mapping import Mapping
from annotation.readers.problems import FormatError, Problem, Problems, excerpt
from annotation.readers.rows import Row


def shaped(name: str, rows: Iterator[Row], layout: Mapping, problems: Problems) -> Iterator[Row]:
    """The rows that the records of a file stand for, in their order; a record that cannot be shaped is refused.

    Rows made from one record share its line. What the file's name says is in each of them.
    """
    if said := layout.said_by_name(name):
        rows = _with_name(name, rows, said)
    for step in layout.of(name).shape:
        rows = step.rows(name, rows, problems)
    return rows


def _with_name(name: str, rows: Iterator[Row], said: dict[str, str]) -> Iterator[Row]:
    for row in rows:
        for column in said:
            if column in row.fields:
                found = f"the column {excerpt(column)}, which the file's name gives too"
                expected = "another name in the holes of the pattern under files in the mapping"
                raise FormatError(Problem(name, row.line, column, found, expected, "ambiguous"))
        yield Row(row.line, {**row.fields, **said})
