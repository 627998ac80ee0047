"""What stands in the columns of some files: how much is filled, how many values there are, and a few of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from annotation.formats.aligning import aligned
from annotation.formats.fields import SPREAD, is_blank, written
from annotation.formats.guessing import opened
from annotation.formats.mapping import Mapping
from annotation.formats.patterns import fits
from annotation.formats.problems import Problems
from annotation.formats.reading import File, read

ROWS_LOOKED_AT = 20_000
MOST_DISTINCT = 1_000
EXAMPLES = 3
MOST_FREQUENT = 5
_LONGEST_EXAMPLE = 80


@dataclass(slots=True)
class ColumnFacts:
    """One column: the ``target`` its mapping gives it ("" for none), and what its cells hold in the rows looked at.

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

    def see(self, value: Any) -> None:
        """Count one cell."""
        if is_blank(value):
            self.blank += 1
            return
        self.filled += 1
        shown = _shown(value)
        if shown in self.counts or self.distinct < MOST_DISTINCT:
            self.counts[shown] += 1


def column_facts(files: Iterable[File], mapping: Mapping) -> list[ColumnFacts]:
    """The columns of all files in the order in which they appear; objects are opened one level deep."""
    columns: dict[str, ColumnFacts] = {}
    for name, raw in aligned(files, mapping, Problems()):
        for row in islice(read(name, raw, layout=mapping, problems=Problems()), ROWS_LOOKED_AT):
            for column, value in opened(row.fields).items():
                if column not in columns:
                    columns[column] = ColumnFacts(column, _target(column, mapping))
                columns[column].see(value)
    return list(columns.values())


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
