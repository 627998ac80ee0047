"""CSV files: tables that our reader gets back whole, and plain sheets for people.

CSV is that of RFC 4180 in UTF-8. Text that a spreadsheet would run as a formula gets a quote before it. In a table the
last column, the marks, tells our reader which cells were changed.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from analytics.stats.core.spreadsheets import FORMULA_STARTS, harmless
from annotation.readers import ABSENT, ADDED, MARKS_COLUMN
from annotation.writers.coded_rows import (
    AT_ONCE,
    CodedCells,
    CodedColumn,
    CodedRows,
    combined_codes,
    hashable_cell,
    objects,
)
from annotation.writers.tables import Cells, Column, Table, moment, nested, number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEW = 256
"""Values of a column that may be written together with those of its neighbours."""
MOST_PAIRS = 1 << 14
"""Combinations of values of neighbouring columns that are written together."""
WIDEST, NO_TEXT = 1_000, b"\xff"
"""Bytes of the longest line that is filled up to one width, and the byte that fills it."""


def comma_separated(table: Table) -> Iterator[bytes]:
    """The file in pieces; the last column is the marks."""
    page = StringIO()
    writer = csv.writer(page, lineterminator="\r\n")
    writer.writerow([*table.names, MARKS_COLUMN])
    if isinstance(table.rows, CodedRows) and len(table.rows):
        yield _emptied(page)
        yield from joined_lines([*_written_columns(table.columns, table.rows)], "\r\n")
        return
    for batch in table.batches():
        # The rows of a batch as cells. Converted column by column, because most columns need no change.
        marks: dict[int, list[str]] = {}
        written = [
            _cells(column, values, marks)
            for column, values in zip(table.columns, zip(*batch, strict=True), strict=True)
        ]
        texts = [" ".join(marks[place]) if place in marks else "" for place in range(len(batch))]
        writer.writerows(zip(*written, texts, strict=True))
        yield _emptied(page)
    yield _emptied(page)


def _emptied(page: StringIO) -> bytes:
    written = page.getvalue().encode()
    page.seek(0)
    page.truncate()
    return written


def _written_columns(columns: tuple[Column, ...], rows: CodedRows) -> Iterator[CodedColumn]:
    """Coded columns as their cells, then the marks."""
    marks = CodedColumn(rows.columns[0].codes, [""] * len(rows.columns[0].values))
    for column, coded in zip(columns, rows.columns, strict=True):
        marked: dict[int, list[str]] = {}
        yield CodedColumn(coded.codes, _cells(column, coded.values, marked))
        if marked:
            own = [" ".join(marked.get(place, ())) for place in range(len(coded.values))]
            codes, pairs = combined_codes(marks.codes, coded.codes, len(own))
            texts = [" ".join(filter(None, (marks.values[first], own[second]))) for first, second in pairs]
            marks = CodedColumn(codes, texts).distinct()
    yield marks.distinct()


def _cells(column: Column, values: Cells, marks: dict[int, list[str]]) -> Cells:
    if column.optional:
        for place, value in enumerate(values):
            if value is None:
                marks.setdefault(place, []).append(f"{ABSENT}{column.name}")
    if column.kind == "text":
        return _texts(column, values, marks)
    spell = _SPELLINGS.get(column.kind)
    return values if spell is None else [spell(value) for value in values]


def _texts(column: Column, values: Cells, marks: dict[int, list[str]]) -> Cells:
    risky = [place for place, value in enumerate(values) if value and value[0] in FORMULA_STARTS]
    if not risky:
        return values
    written = list(values)
    for place in risky:
        written[place] = harmless(values[place])
        marks.setdefault(place, []).append(f"{ADDED}{column.name}")
    return written


_SPELLINGS: dict[str, Callable[[Any], str]] = {
    "number": number,
    "switch": lambda value: "" if value is None else "true" if value else "false",
    "moment": moment,
    "turns": nested,
    "texts": nested,
    "object": nested,
}


# --- plain sheets ----------------------------------------------------------------------------------------------------
def csv_lines(header: Sequence[str], rows: Iterable[Sequence[object]], *, ending: str = "\n") -> Iterator[str]:
    """The header and each row as one line of CSV, made when it is asked for."""
    writer = csv.writer(_Line(), lineterminator=ending)
    yield writer.writerow(header)
    for row in rows:
        yield writer.writerow([csv_cell(value) for value in row])


def csv_cell(value: object) -> str:
    """One value as text: nothing for None, whole numbers without .0, text that looks like a formula behind a quote."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return harmless(value) if isinstance(value, str) else str(value)


# --- rows joined from the texts of coded columns ---------------------------------------------------------------------
class _Line:
    """A file for csv.writer that hands each line back."""

    def write(self, line: str) -> str:
        return line


def joined_lines(columns: Sequence[CodedColumn], ending: str) -> Iterator[bytes]:
    """The rows as lines of CSV; values are text already, or as `csv.writer` writes them. Texts of columns side by side
    that have few combinations are written once.
    """
    import numpy as np

    writer = csv.writer(_Line(), lineterminator=ending)
    groups = [(codes, cells) for codes, cells in _groups(columns)]
    last = len(groups) - 1
    texts = []
    for position, (_codes, cells) in enumerate(groups):
        # The empty cell before them writes the comma, and a lone empty cell without quotes.
        lines = [writer.writerow(("", *row)).removesuffix(ending)[0 if position else 1 :] for row in cells]
        texts.append(objects([f"{line}{ending}".encode() if position == last else line.encode() for line in lines]))
    size = len(columns[0].codes)
    if size and sum(max(map(len, each)) for each in texts) <= WIDEST:
        yield from _joined_bytes([(codes, of) for (codes, _cells), of in zip(groups, texts, strict=True)])
        return
    for start in range(0, size, AT_ONCE):
        block = np.empty((min(AT_ONCE, size - start), len(groups)), dtype=object)
        for position, (codes, _cells) in enumerate(groups):
            block[:, position] = texts[position][codes[start : start + AT_ONCE]]
        yield b"".join(block.ravel().tolist())


def _joined_bytes(groups: Sequence[tuple[NDArray[np.intp], NDArray[Any]]]) -> Iterator[bytes]:
    """`joined_lines` of short texts, which lets other threads run: texts are filled up to one width with a byte that
    UTF-8 does not have, which is then left out."""
    import numpy as np

    tables = []
    for codes, texts in groups:
        width = max(map(len, texts))
        filled = b"".join(text.ljust(width, NO_TEXT) for text in texts)
        tables.append((codes, np.frombuffer(filled, dtype=np.uint8).reshape(len(texts), width)))
    for start in range(0, len(groups[0][0]), AT_ONCE):
        block = np.concatenate([table.take(codes[start : start + AT_ONCE], axis=0) for codes, table in tables], axis=1)
        yield block[block != NO_TEXT[0]].tobytes()


def _groups(columns: Sequence[CodedColumn]) -> Iterator[tuple[NDArray[np.intp], list[CodedCells]]]:
    """Columns side by side as one: codes (M,), and for each code the cells of these columns."""
    source = codes = columns[0].codes
    cells: list[CodedCells] = [(value,) for value in columns[0].values]
    for column in columns[1:]:
        if column.codes is source:
            cells = [(*row, value) for row, value in zip(cells, column.values, strict=True)]
            continue
        own = column.distinct() if len(set(map(hashable_cell, column.values))) <= FEW else column
        if len(own.values) == 1:
            cells = [(*row, own.values[0]) for row in cells]
            continue
        together = len(cells) * len(own.values) <= MOST_PAIRS
        if not together and len(set(cells)) <= FEW:
            codes, cells = _few(codes, cells)
            together = len(cells) * len(own.values) <= MOST_PAIRS
        if together:
            codes, pairs = combined_codes(codes, own.codes, len(own.values))
            cells = [(*cells[first], own.values[second]) for first, second in pairs]
        else:
            yield codes, cells
            codes, cells = own.codes, [(value,) for value in own.values]
        source = codes
    yield codes, cells


def _few(codes: NDArray[np.intp], cells: list[CodedCells]) -> tuple[NDArray[np.intp], list[CodedCells]]:
    few = CodedColumn(codes, cells).distinct()
    return few.codes, list(few.values)
