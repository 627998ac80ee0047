"""How much one file of an import may hold. Readers count while they read, and stop before memory grows.

The operator sets the bounds (docs/operations.md); `annotation.apps` takes them over from the settings.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

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


def too_many_columns(name: str, line: int | None, count: int) -> FormatError:
    """The refusal of a row with more columns than a file may have."""
    expected = f"at most {BOUNDS.columns:,} columns; the operator raises IMPORT_MOST_COLUMNS"
    return FormatError(Problem(name, line, None, f"{count:,} columns or more", expected, "too_many_columns"))


def too_long(name: str, line: int | None, what: str, code: str) -> FormatError:
    """The refusal of a cell, line, row or record that is longer than any may be."""
    found = f"{what} of more than {BOUNDS.cell / MEGABYTE:,.4g} million characters"
    expected = f"at most {BOUNDS.cell // MEGABYTE:,} MB; the operator raises IMPORT_LONGEST_CELL_MB"
    return FormatError(Problem(name, line, None, found, expected, code))


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
            raise too_many_columns(self._name, line, columns)
        self._cells += columns * rows
        if self._cells > BOUNDS.cells:
            found = f"more than {BOUNDS.cells:,} cells"
            expected = f"at most {BOUNDS.cells:,} in one file; the operator raises IMPORT_MOST_CELLS"
            raise FormatError(Problem(self._name, line, None, found, expected, "too_many_cells_in_file"))


set_bounds(columns=2_000, cells=200_000_000, cell_mb=16, unpacked_mb=2_048)
