"""What every reader yields, whatever the kind of its file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple, Self

KEY_COLUMN = "(key)"
"""The column of the key that a record, or the list it is in, stands under."""


class Row(NamedTuple):
    """One record: the physical line it starts on, and its values by column (text from CSV, any JSON from JSON)."""

    line: int
    fields: dict[str, Any]


class Block(NamedTuple):
    """Some records with the same columns: the line of each, and for each column its values in all of them."""

    columns: tuple[str, ...]
    lines: Sequence[int]
    values: Sequence[Sequence[Any]]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Self:
        """Of rows that have the same columns."""
        values = zip(*(row.fields.values() for row in rows), strict=True)
        return cls(tuple(rows[0].fields), [row.line for row in rows], list(values))

    @property
    def size(self) -> int:
        return len(self.lines)

    def first(self) -> dict[str, Any]:
        """The fields of the first record; of none, its columns without values."""
        return {name: values[0] if values else None for name, values in zip(self.columns, self.values, strict=True)}

    def column(self, name: str) -> Sequence[Any]:
        """The values of one column."""
        return self.values[self.columns.index(name)]

    def rows(self) -> Iterator[Row]:
        """The records one by one."""
        cells = zip(*self.values, strict=True) if self.values else iter([()] * self.size)
        for line, values in zip(self.lines, cells, strict=True):
            yield Row(line, dict(zip(self.columns, values, strict=True)))


def blocks_of(rows: Iterable[Row], most: int) -> Iterator[Block]:
    """The rows in their order, at most so many together."""
    for _columns, alike in groupby(rows, key=_columns_of):
        while some := list(islice(alike, most)):
            yield Block.of(some)


def _columns_of(row: Row) -> tuple[str, ...]:
    return tuple(row.fields)
