"""Write a table as CSV (RFC 4180: commas, CRLF) in UTF-8. Text that a spreadsheet would run as a formula gets a quote
before it; the last column, the marks, tells our reader which cells were changed."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from typing import Any

from annotation.readers import ABSENT, ADDED, FORMULA_STARTS, MARKS_COLUMN
from annotation.writers.tables import Column, Table, moment, nested, number

Cells = Sequence[Any]


def comma_separated(table: Table) -> Iterator[bytes]:
    """The file in pieces; the last column is the marks."""
    page = StringIO()
    writer = csv.writer(page, lineterminator="\r\n")
    writer.writerow([*table.names, MARKS_COLUMN])
    for batch in table.batches():
        writer.writerows(_lines(table.columns, batch))
        yield _emptied(page)
    yield _emptied(page)


def _emptied(page: StringIO) -> bytes:
    written = page.getvalue().encode()
    page.seek(0)
    page.truncate()
    return written


def _lines(columns: tuple[Column, ...], batch: list[Cells]) -> Iterator[tuple[Any, ...]]:
    """The rows of a batch as cells. Converted column by column, because most columns need no change."""
    marks: dict[int, list[str]] = {}
    written = [_cells(column, values, marks) for column, values in zip(columns, zip(*batch, strict=True), strict=True)]
    texts = [" ".join(marks[place]) if place in marks else "" for place in range(len(batch))]
    return zip(*written, texts, strict=True)


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
    harmless = list(values)
    for place in risky:
        harmless[place] = f"'{values[place]}"
        marks.setdefault(place, []).append(f"{ADDED}{column.name}")
    return harmless


_SPELLINGS: dict[str, Callable[[Any], str]] = {
    "number": number,
    "switch": lambda value: "" if value is None else "true" if value else "false",
    "moment": moment,
    "turns": nested,
    "texts": nested,
    "object": nested,
}
