"""Tables: columns of known kinds, and rows that are read lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar

import orjson

from annotation.writers.coded_rows import CodedRows

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
    """A table. ``rows``: tuples in the order of ``columns``, None for a missing value; iterable only once, unless they
    are `CodedRows`."""

    name: str
    columns: tuple[Column, ...]
    rows: Iterable[Cells]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def settled(self) -> Table:
        """The same table with rows that can be read again."""
        return self if isinstance(self.rows, CodedRows) else replace(self, rows=list(self.rows))

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
