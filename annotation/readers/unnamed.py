"""Columns that a header gives no name: what they are called here, and which of them are read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from annotation.readers.mapping import Mapping
from annotation.readers.problems import FormatError, Problem

LOOKED_AT = 200  # rows
_NAME = re.compile(r"\(column ([0-9]+)\)")


def called(number: int) -> str:
    """What the column at a place, from 1, is called where the header gives it no name."""
    return f"(column {number})"


def is_unnamed(column: str) -> bool:
    return _NAME.fullmatch(column) is not None


def mentioned(mapping: Mapping) -> frozenset[str]:
    """The columns without a name that a mapping says something about."""
    said = (*mapping.columns, *mapping.ignore, *mapping.unmapped)
    return frozenset(column for column in said if is_unnamed(column))


def opened(
    name: str, line: int, rows: Collection[Iterable[int]], named: Collection[int], said: Iterable[str]
) -> list[int]:
    """The places, from 1, of the columns without a name that are read: those that the mapping speaks of.

    ``rows`` are the first ones, each as the places that it fills. Raises ``FormatError`` where more than half of them
    fill another column: its name, or the row that is the header, has to be said.
    """
    wanted = {int(found[1]) for column in said if (found := _NAME.fullmatch(column))}.difference(named)
    counts = Counter(place for row in rows for place in row)
    filled = [place for place, count in sorted(counts.items()) if 2 * count > len(rows)]
    if new := [place for place in filled if place not in wanted and place not in named]:
        column = called(new[0])
        expected = f"a name for each column; or what {column} gives, or header_row: NUMBER, in the mapping"
        raise FormatError(Problem(name, line, column, f"no name for column {new[0]}", expected, "header"))
    return sorted(wanted)
