"""What a writer is given: columns of known kinds, and rows that are read as they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar

import orjson

Kind = Literal["text", "word", "number", "integer", "switch", "moment", "turns", "texts", "object"]
"""``text`` came from outside; a ``word`` is one of our own. ``turns``, ``texts`` and ``object`` are nested."""

NESTED = frozenset({"turns", "texts", "object"})
BATCH = 2_000
R = TypeVar("R")


class Column(NamedTuple):
    """One column; in an ``optional`` one nothing and an empty text are told apart."""

    name: str
    kind: Kind = "text"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are tuples in the order of the columns; None where there is nothing. They are gone through once."""

    name: str
    columns: tuple[Column, ...]
    rows: Iterable[Sequence[Any]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def batches(self) -> Iterator[list[Sequence[Any]]]:
        """The rows, so many at a time that each can be turned into columns and back."""
        source = iter(self.rows)
        while batch := list(islice(source, BATCH)):
            yield batch


def told(rows: Iterable[R], tell: Callable[[int], None]) -> Iterator[R]:
    """The rows as they are, telling every so often how many have gone by."""
    for count, row in enumerate(rows, start=1):
        yield row
        if count % BATCH == 0:
            tell(count)


def number(value: float | None) -> str:
    """A number in digits, whole ones without a point; nothing for None."""
    if value is None:
        return ""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def moment(value: datetime | None) -> str:
    """``2026-05-04T12:00:00.000001Z``."""
    return "" if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def nested(value: Any) -> str:
    """A list or an object as JSON in a cell; nothing for None."""
    return "" if value is None else orjson.dumps(value).decode()
