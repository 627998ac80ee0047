"""What every reader yields, whatever the kind of its file, and how much one file may hold.

Readers count while they read, and stop before memory grows. The operator sets the bounds (docs/operations.md);
`annotation.apps` takes them over from the settings.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, repeat
from typing import Any, NamedTuple, Self

from annotation.readers.problems import FormatError, Problem

MEGABYTE = 2**20


@dataclass(slots=True)
class Bounds:
    """``columns`` of a row, ``cells`` of a file, characters of one ``cell`` (also of one line, row or JSON record), and
    bytes that a compressed file may have when ``unpacked``."""

    columns: int = 2_000
    cells: int = 200_000_000
    cell: int = 16 * MEGABYTE
    unpacked: int = 2_048 * MEGABYTE


BOUNDS = Bounds()


def set_bounds(*, columns: int, cells: int, cell_mb: int, unpacked_mb: int) -> None:
    """Let other bounds hold in this process."""
    BOUNDS.columns, BOUNDS.cells = columns, cells
    BOUNDS.cell, BOUNDS.unpacked = cell_mb * MEGABYTE, unpacked_mb * MEGABYTE
    csv.field_size_limit(BOUNDS.cell)  # one setting for the whole process; the module's own is 128 kB


def too_many_columns_error(name: str, line: int | None, count: int) -> FormatError:
    """The refusal of a row with more columns than a file may have."""
    expected = f"at most {BOUNDS.columns:,} columns; the operator raises IMPORT_MOST_COLUMNS"
    return FormatError(Problem(name, line, None, f"{count:,} columns or more", expected, "too_many_columns"))


def too_long_error(name: str, line: int | None, what: str, code: str) -> FormatError:
    """The refusal of a cell, line, row or record that is longer than any may be."""
    text = f"{what} of more than {BOUNDS.cell / MEGABYTE:,.4g} million characters"
    expected = f"at most {BOUNDS.cell // MEGABYTE:,} MB; the operator raises IMPORT_LONGEST_CELL_MB"
    return FormatError(Problem(name, line, None, text, expected, code))


def require_sparse(name: str, line: int, text: str) -> None:
    """Refuse a long JSON record of so many lists, objects and values that it takes far more memory than its text."""
    inside = text.count("[") + text.count("{")
    if inside > BOUNDS.cell // 32 or inside + text.count(",") > BOUNDS.cell // 5:
        found = f"a record of {inside:,} lists and objects with {text.count(','):,} values or more"
        expected = (
            f"at most {BOUNDS.cell // 32:,} and {BOUNDS.cell // 5:,} in one record; "
            "the operator raises IMPORT_LONGEST_CELL_MB"
        )
        raise FormatError(Problem(name, line, None, found, expected, "record_size"))


class CellCount:
    """Counts the cells of one file as they come."""

    def __init__(self, name: str) -> None:
        self._name, self._cells = name, 0

    def count(self, line: int, columns: int, rows: int = 1) -> None:
        """Some rows of as many columns, the first of them on ``line``. Raises ``FormatError`` if too many."""
        if columns > BOUNDS.columns:
            raise too_many_columns_error(self._name, line, columns)
        self._cells += columns * rows
        if self._cells > BOUNDS.cells:
            text = f"more than {BOUNDS.cells:,} cells"
            expected = f"at most {BOUNDS.cells:,} in one file; the operator raises IMPORT_MOST_CELLS"
            raise FormatError(Problem(self._name, line, None, text, expected, "too_many_cells_in_file"))


set_bounds(columns=2_000, cells=200_000_000, cell_mb=16, unpacked_mb=2_048)

KEY_COLUMN = "(key)"
"""The column of the key that a record, or the list it is in, stands under."""


class FileRow(NamedTuple):
    """One record: the physical line it starts on, and its values by column (text from CSV, any JSON from JSON)."""

    line: int
    fields: dict[str, Any]

    @property
    def path(self) -> str:
        """Where it stands in a JSON document, such as ``[17]``, where others stand on the same line."""
        return ""

    def with_fields(self, fields: dict[str, Any]) -> FileRow:
        """Another record in the same place."""
        return located_row(self.line, fields, self.path)


class LocatedRow(FileRow):
    """A record of a JSON document that shares its line with others."""

    _path: str

    @property
    def path(self) -> str:
        return self._path


def located_row(line: int, fields: dict[str, Any], path: str) -> FileRow:
    """A record, with its path where it has one."""
    if not path:
        return FileRow(line, fields)
    row = LocatedRow(line, fields)
    row._path = path
    return row


class RowBlock(NamedTuple):
    """Some records with the same columns: the line of each, and for each column its values in all of them."""

    columns: tuple[str, ...]
    lines: Sequence[int]
    values: Sequence[Sequence[Any]]
    paths: Sequence[str] = ()  # of all records, or of none

    @classmethod
    def of(cls, rows: Sequence[FileRow]) -> Self:
        """Of rows that have the same columns."""
        values = zip(*(row.fields.values() for row in rows), strict=True)
        paths = [row.path for row in rows] if any(row.path for row in rows) else ()
        return cls(tuple(rows[0].fields), [row.line for row in rows], list(values), paths)

    @property
    def size(self) -> int:
        return len(self.lines)

    def first(self) -> dict[str, Any]:
        """The fields of the first record; of none, its columns without values."""
        return {name: values[0] if values else None for name, values in zip(self.columns, self.values, strict=True)}

    def column(self, name: str) -> Sequence[Any]:
        """The values of one column."""
        return self.values[self.columns.index(name)]

    def rows(self) -> Iterator[FileRow]:
        """The records one by one."""
        cells = zip(*self.values, strict=True) if self.values else iter([()] * self.size)
        for line, values, path in zip(self.lines, cells, self.paths or repeat(""), strict=False):
            yield located_row(line, dict(zip(self.columns, values, strict=True)), path)


def blocks_of(rows: Iterable[FileRow], most: int) -> Iterator[RowBlock]:
    """The rows in their order, at most so many together."""
    for _columns, alike in groupby(rows, key=_columns_of):
        while some := list(islice(alike, most)):
            yield RowBlock.of(some)


def _columns_of(row: FileRow) -> tuple[str, ...]:
    return tuple(row.fields)
