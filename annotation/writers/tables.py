"""Tables for the writers, columns of known kinds and rows that are read lazily; tables as CSV and as JSONL.

CSV is that of RFC 4180 (commas, CRLF) in UTF-8. Text that a spreadsheet would run as a formula gets a quote before it;
the last column, the marks, tells our reader which cells were changed. JSONL has one object per line, with all columns.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar

import orjson

from annotation.readers import ABSENT, ADDED, FORMULA_STARTS, MARKS_COLUMN

Kind = Literal["text", "word", "number", "integer", "switch", "moment", "turns", "texts", "object"]
"""``text`` is external text; a ``word`` comes from a fixed list of our own. ``turns``, ``texts`` and ``object`` are
nested values."""

NESTED = frozenset({"turns", "texts", "object"})
BATCH = 2_000
R = TypeVar("R")
Cells = Sequence[Any]


class Column(NamedTuple):
    """One column. An ``optional`` column distinguishes a missing value from an empty text."""

    name: str
    kind: Kind = "text"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table. ``rows``: tuples in the order of ``columns``, None for a missing value; iterable only once."""

    name: str
    columns: tuple[Column, ...]
    rows: Iterable[Cells]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def batches(self) -> Iterator[list[Cells]]:
        """The rows in batches of at most ``BATCH``."""
        source = iter(self.rows)
        while batch := list(islice(source, BATCH)):
            yield batch


def with_progress(rows: Iterable[R], report: Callable[[int], None]) -> Iterator[R]:
    """Yield the rows unchanged, and call ``report`` with their number so far every ``BATCH`` rows."""
    for count, row in enumerate(rows, start=1):
        yield row
        if count % BATCH == 0:
            report(count)


def number(value: float | None) -> str:
    """A number as text, whole numbers without a decimal point; "" for None."""
    if value is None:
        return ""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def moment(value: datetime | None) -> str:
    """``2026-05-04T12:00:00.000001Z``."""
    return "" if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def nested(value: Any) -> str:
    """A list or an object as JSON text; "" for None."""
    return "" if value is None else orjson.dumps(value).decode()


# --- CSV -------------------------------------------------------------------------------------------------------------
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


# --- JSONL -----------------------------------------------------------------------------------------------------------
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE


def json_lines(table: Table) -> Iterator[bytes]:
    """The file in pieces."""
    names = table.names
    for batch in table.batches():
        yield b"".join([orjson.dumps(dict(zip(names, row, strict=True)), option=_OPTIONS) for row in batch])
