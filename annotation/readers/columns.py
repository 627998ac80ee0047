"""What stands in the columns of some files: how much is filled, how many values there are, and a few of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from annotation.readers.fields import SPREAD, is_blank, written
from annotation.readers.mapping import Mapping
from annotation.readers.patterns import fits
from annotation.readers.rows import Block, Row, blocks_of

TOGETHER = 250  # rows
MOST_COLUMNS = 2_000
MOST_DISTINCT = 1_000
LONGEST = 1_000  # characters by which texts are told apart
EXAMPLES = 3
MOST_FREQUENT = 5
_LONGEST_EXAMPLE = 80


@dataclass(slots=True)
class ColumnFacts:
    """One column: the ``target`` its mapping gives it ("" for none), and what its cells hold in all rows.

    ``counts`` says how often each value occurs, for the first ``MOST_DISTINCT`` of them; lists and objects are not told
    apart.
    """

    name: str
    target: str = ""
    filled: int = 0
    blank: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def distinct(self) -> int:
        return len(self.counts)

    @property
    def is_many(self) -> bool:
        """Whether there are more values than were counted."""
        return self.distinct >= MOST_DISTINCT

    @property
    def examples(self) -> list[str]:
        """The first few values, cut."""
        return [value[:_LONGEST_EXAMPLE] for value in islice(self.counts, EXAMPLES)]

    @property
    def most(self) -> list[tuple[str, int]]:
        """The most frequent values, cut, with how often each occurs; none where every cell has its own."""
        repeated = [(value, count) for value, count in self.counts.most_common(MOST_FREQUENT) if count > 1]
        return [(value[:_LONGEST_EXAMPLE], count) for value, count in repeated]

    def see(self, value: Any, times: int = 1) -> None:
        """Count a cell, or as many that hold the same."""
        if is_blank(value):
            self.blank += times
            return
        self.filled += times
        shown = _shown(value)[:LONGEST]
        if shown in self.counts or self.distinct < MOST_DISTINCT:
            self.counts[shown] += times


class Facts:
    """Counts what stands in the columns of rows on their way to whoever reads them; bounded, however many there are."""

    def __init__(self) -> None:
        self._columns: dict[str, ColumnFacts] = {}

    def clear(self) -> None:
        """Forget what was seen: the files are read anew."""
        self._columns.clear()

    def following(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows, as they are."""
        while some := list(islice(rows, TOGETHER)):
            for block in blocks_of(some, TOGETHER):
                self.see(block)
            yield from some

    def see(self, block: Block) -> None:
        """Count what stands in some rows."""
        for name, values in zip(block.columns, block.values, strict=True):
            self._see(name, values)

    def columns(self, mapping: Mapping) -> list[ColumnFacts]:
        """The columns of all files in the order in which they appear, with what ``mapping`` makes of them; objects are
        opened one level deep."""
        for name, facts in self._columns.items():
            facts.target = _target(name, mapping)
        return list(self._columns.values())

    def _see(self, name: str, values: Sequence[Any]) -> None:
        if set(map(type, values)) == {str}:
            facts = self._of(name)
            for value, times in Counter(values).items():
                facts.see(value, times)
            return
        for value in values:
            parts = {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
            for column, part in parts.items():
                self._of(column).see(part)

    def _of(self, name: str) -> ColumnFacts:
        if name not in self._columns:
            if len(self._columns) >= MOST_COLUMNS:
                return ColumnFacts(name)  # counted, and not kept
            self._columns[name] = ColumnFacts(name)
        return self._columns[name]


def _target(column: str, mapping: Mapping) -> str:
    """The field that a column gives; inside an object that is spread, each gives an attribute as if by itself."""
    outer = column.partition(".")[0]
    if column not in mapping.columns and (fits(column, mapping.ignore) or outer in mapping.ignore):
        return "ignore"
    by_outer = mapping.columns.get(outer, "")
    return mapping.columns.get(column) or ("" if by_outer == SPREAD and outer != column else by_outer)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{len(value)} entries]"
    return "{…}" if isinstance(value, dict) else written(value)
