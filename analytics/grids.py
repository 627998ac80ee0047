"""Tables of estimates as pages of sections show them: cells by row and column, made of an answer's rows in one pass.

An answer has a row for each statistic of each cell. `grid` puts the rows of one cell together, in the order of rows
and columns that it is given or finds, and leaves to its caller what a cell shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EstimateRow = Mapping[str, Any]
"""One estimate of an answer, by the names of its columns."""
CellRows = Mapping[str, EstimateRow]
"""The rows of one cell, by statistic as it was asked for, or by variant."""
Key = str | Callable[[EstimateRow], str]
"""A column, whose value counts as text; or what to take of a row instead."""


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell: its number, lines below it, and why it is muted (`is_few`: said
    elsewhere); `bin` inks it by its size, 1 to 7; `links`: texts
    below the number, each with its items' address; `bars`: of a small chart, from where, how long, and what kind.
    `is_clear`: a difference whose interval leaves out 0.
    """

    number: str = ""
    lines: tuple[str, ...] = ()
    few: str = ""
    is_few: bool = False
    warning: str = ""
    url: str = ""
    title: str = ""
    bin: int | None = None
    bars: tuple[tuple[float, float, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    is_clear: bool = False


NOTHING = GridCell()
MOST_WHOLE, MOST_ALONE = 40, 100
"""Figures of a table up to which they stand with their intervals, and up to which all of them stand alone."""


@dataclass(frozen=True, slots=True)
class GridRow:
    """One row; `curve`: points of a small chart, as SVG writes them; `is_diagonal`: beside the line of equal scores."""

    name: str
    cells: tuple[GridCell, ...]
    url: str = ""
    below: str = ""
    curve: str = ""
    basis: str = ""
    is_diagonal: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of cells; `notes` are sentences below it. `is_small`: many cells without lines.

    `title`: what the whole table is about, where a section has several. `hidden`: what a pair's list of items asks for.
    """

    corner: str
    columns: tuple[str, ...]
    rows: tuple[GridRow, ...]
    notes: tuple[str, ...] = ()
    is_small: bool = False
    title: str = ""
    hidden: tuple[tuple[str, str], ...] = ()

    @property
    def is_long(self) -> bool:
        """Whether it has so many figures that they stand alone first, and with intervals and counts in a fold."""
        cells = [cell for row in self.rows for cell in row.cells if cell.number and cell.lines]
        is_full = all(any(row.cells[place].number for row in self.rows) for place in range(len(self.columns)))
        has_more = any(cell.bars or cell.links for cell in cells) or any(row.curve for row in self.rows)
        return len(cells) > MOST_WHOLE and is_full and not has_more and not self.is_small

    @property
    def brief(self) -> tuple[GridRow, ...]:
        """The rows whose figures stand alone; of very many first those with a clear difference, then the first."""
        most = max(1, MOST_ALONE // max(len(self.columns), 1))
        is_plain = [not any(cell.is_clear for cell in row.cells) for row in self.rows]
        chosen = sorted(range(len(self.rows)), key=is_plain.__getitem__)[:most]
        return tuple(self.rows[place] for place in sorted(chosen))

    @property
    def n_clear(self) -> int:
        return sum(cell.is_clear for row in self.rows for cell in row.cells)

    @property
    def has_few(self) -> bool:
        return any(cell.few or cell.is_few for row in self.rows for cell in row.cells)

    @property
    def has_warning(self) -> bool:
        return any(cell.warning for row in self.rows for cell in row.cells)

    @property
    def groups(self) -> list[tuple[str, list[GridRow]]]:
        """The rows by the group of their criterion, in the order of their first rows; all under "" without groups."""
        found: dict[str, list[GridRow]] = {}
        for row in self.rows:
            found.setdefault(row.group, []).append(row)
        return list(found.items())

    @property
    def methods(self) -> list[tuple[str, str, str, str]]:
        """Row, column, number and method of every cell that names its method."""
        return [
            (row.name, column, cell.number, cell.title)
            for row in self.rows
            for column, cell in zip(self.columns, row.cells, strict=True)
            if cell.title
        ]


def grid(
    rows: Iterable[EstimateRow],
    build: Callable[[CellRows], GridCell],
    *,
    corner: str,
    down: Key,
    across: Key,
    downs: Sequence[str] | None = None,
    acrosses: Sequence[str] | None = None,
    row_name: Callable[[str], str] = str,
    column_name: Callable[[str], str] = str,
    below: Callable[[str], str] | None = None,
    within: Key = "asked",
    is_mirrored: bool = False,
    title: str = "",
    notes: tuple[str, ...] = (),
) -> Grid:
    """The table of some rows: `build` makes a cell of the rows that have its two keys, by `within`.

    `downs`, `acrosses`: the rows and columns in their order; otherwise as they first occur. `is_mirrored`: a cell is
    also that of the keys turned round, and rows and columns are all keys that occur, sorted. `below`: what
    stands below a row's name.
    """
    cells: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in rows:
        place = text_of(row, down), text_of(row, across)
        for turned in (place, place[::-1]) if is_mirrored else (place,):
            cells.setdefault(turned, {})[text_of(row, within)] = row
    if downs is None:
        downs = sorted({key for key, _across in cells}) if is_mirrored else list(dict.fromkeys(key for key, _ in cells))
    if acrosses is None:
        acrosses = downs if is_mirrored else list(dict.fromkeys(key for _down, key in cells))
    return Grid(
        corner,
        tuple(map(column_name, acrosses)),
        tuple(
            GridRow(
                row_name(key),
                tuple(build(cells[key, other]) if (key, other) in cells else NOTHING for other in acrosses),
                below=below(key) if below else "",
            )
            for key in downs
        ),
        notes,
        title=title,
    )


def rows_by(rows: Iterable[EstimateRow], key: Key) -> dict[str, list[EstimateRow]]:
    """The rows by a key, in the order in which its values first occur."""
    found: dict[str, list[EstimateRow]] = {}
    for row in rows:
        found.setdefault(text_of(row, key), []).append(row)
    return found


def text_of(row: EstimateRow, key: Key) -> str:
    """A row's value of a key, as text; nothing for no column."""
    return key(row) if callable(key) else plain_value(row.get(key))


def plain_value(value: Any) -> str:
    """A value of a column as text: nothing for None, several with ~ between them."""
    return " ~ ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)


def in_order(known: Sequence[str], rows: Iterable[EstimateRow], name: str) -> list[str]:
    """The values of a column that occur: in their known order, then numbers by size, then text."""
    place = {value: number for number, value in enumerate(known)}
    return sorted(
        {plain_value(row.get(name)) for row in rows}, key=lambda value: (place.get(value, len(place)), *_size(value))
    )


def _size(value: str) -> tuple[float, str]:
    try:
        return float(value), ""
    except ValueError:
        return float("inf"), value


def shared_counts(texts: Sequence[str]) -> str:
    """One text for all of these, if they differ at most in whole numbers by a tenth: "3 raters, 28–29 ratings"."""
    if any(_SIGN_OR_INTERVAL.search(text) for text in texts):  # figures, no counts
        return texts[0] if len(set(texts)) == 1 else ""
    pieces = [_NUMBER.split(text) for text in texts]
    if len({tuple(each[::2]) for each in pieces}) > 1 or len(pieces[0]) == 1:
        return texts[0] if len(set(texts)) == 1 else ""
    merged = list(pieces[0])
    for place in range(1, len(merged), 2):
        found = {each[place] for each in pieces}
        if len(found) > 1:
            counts = sorted(int(each.replace(",", "")) for each in found)
            if counts[-1] > 1.1 * counts[0]:
                return ""
            merged[place] = f"{counts[0]:,}–{counts[-1]:,}"
    return "".join(merged)


_SIGN_OR_INTERVAL = re.compile(r"[−+±\[%]")
_NUMBER = re.compile(r"((?<![\d.])\d{1,3}(?:,\d{3})+(?![\d.])|(?<![\d.])\d+(?![\d.]))")
