"""CSV and TSV, strictly: a file that a lenient reader would load with fewer rows is refused."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from annotation.formats.problems import FormatError, Problem, Problems, excerpt

# The csv module's own limit of 128 kB is less than a long document; it is one setting for the whole process.
csv.field_size_limit(64 * 2**20)

DELIMITERS = (",", ";", "\t", "|")


class Dialect(NamedTuple):
    """How cells are written; ``line_breaks`` vouches that quoted cells do hold lines that look like records."""

    delimiter: str
    quoting: bool = True
    line_breaks: bool = False


class _Record(NamedTuple):
    line: int
    cells: list[str]
    physical: list[str]


def read_delimited(
    name: str, lines: Iterable[str], dialect: Dialect, header: tuple[str, ...], problems: Problems
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (first physical line, cells by column). Rows of another width are refused; raises ``FormatError``
    where nothing that follows could be trusted."""
    records = _records(name, iter(lines), dialect)
    columns = header or _header(name, next(records, None))
    for record in records:
        if len(record.cells) != len(columns):
            problems.refuse(_wrong_width(name, record, len(columns)))
        elif len(record.physical) > 1 and not dialect.line_breaks and _is_merged(record, dialect.delimiter):
            raise FormatError(_merged(name, record))
        else:
            yield record.line, dict(zip(columns, record.cells, strict=True))


def likely_delimiter(line: str) -> str:
    """The delimiter that a header line uses most, outside quotes; a comma when it has none."""
    bare = "".join(line.split('"')[::2])
    return max(DELIMITERS, key=bare.count)


def _records(name: str, lines: Iterator[str], dialect: Dialect) -> Iterator[_Record]:
    window: list[str] = []

    def fed() -> Iterator[str]:
        for line in lines:
            window.append(line)
            yield line

    reader = csv.reader(
        fed(),
        delimiter=dialect.delimiter,
        quoting=csv.QUOTE_MINIMAL if dialect.quoting else csv.QUOTE_NONE,
        strict=True,
    )
    first = 1
    while True:
        window.clear()
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise FormatError(_broken(name, first, reader.line_num, window, str(error))) from None
        if cells is None:
            return
        if cells:
            yield _Record(first, cells, list(window))
        first = reader.line_num + 1


def _broken(name: str, first: int, last: int, window: list[str], complaint: str) -> Problem:
    if "unexpected end of data" in complaint:
        found = f"a quote that is opened in {excerpt(window[0].strip())} and never closed"
        return Problem(name, first, None, found, "every quoted cell to be closed", "unclosed_quote")
    if "expected after" in complaint:
        found = f"text after a closing quote in {excerpt(window[-1].strip())}"
        expected = 'quotes inside a quoted cell to be doubled (""), or quoting: off in the mapping'
        return Problem(name, last, None, found, expected, "stray_quote")
    if "new-line character" in complaint:
        found = "a carriage return (CR) that neither ends the line nor stands in a quoted cell"
        return Problem(name, last, None, found, "lines that end with LF or CRLF", "lone_cr")
    return Problem(name, first, None, complaint, "cells of at most 64 MB", "cell_size")


def _header(name: str, record: _Record | None) -> tuple[str, ...]:
    if record is None:
        raise FormatError(Problem(name, None, None, "an empty file", "a header line with the columns", "empty"))
    columns = tuple(cell.strip() for cell in record.cells)
    if "" in columns:
        found = f"no name for column {columns.index('') + 1}"
        raise FormatError(Problem(name, record.line, None, found, "a name for each column", "header"))
    if repeated := sorted({column for column in columns if columns.count(column) > 1}):
        found = f"the column name {excerpt(repeated[0])} more than once"
        raise FormatError(Problem(name, record.line, repeated[0], found, "different names", "header"))
    if _is_a_record(columns):
        found = f"what looks like a record instead of a header: {excerpt(record.physical[0].strip())}"
        expected = "a header line, or the names of the columns as header: [...] in the mapping"
        raise FormatError(Problem(name, record.line, None, found, expected, "header"))
    return columns


def _is_a_record(columns: tuple[str, ...]) -> bool:
    """A file without a header: a number or a list stands beside running text."""
    values = any(column.replace(".", "", 1).isdigit() or column.startswith("[") for column in columns)
    return values and any(len(column.split()) > 4 for column in columns)


def _wrong_width(name: str, record: _Record, width: int) -> Problem:
    kind = "too_many_cells" if len(record.cells) > width else "too_few_cells"
    found = f"{len(record.cells)} cells in {excerpt(record.physical[0].strip())}"
    return Problem(name, record.line, None, found, f"{width} cells as in the header", kind)


def _is_merged(record: _Record, delimiter: str) -> bool:
    """Whether a quoted cell has swallowed records: every physical line has the delimiters of a whole record. Prose may
    have them by chance, so a short run of lines, or one in few columns, must also begin on each line as it began."""
    count = len(record.cells) - 1
    if count == 0 or any(line.count(delimiter) != count for line in record.physical):
        return False
    by_chance = count < 3 or len(record.physical) < 4
    return not by_chance or len({_make(line.split(delimiter, 1)[0]) for line in record.physical}) == 1


def _make(cell: str) -> frozenset[str]:
    """The kinds of characters a cell is made of: digits, letters, and each other character as itself."""
    return frozenset("9" if char.isdigit() else "a" if char.isalpha() else char for char in cell.strip().strip('"'))


def _merged(name: str, record: _Record) -> Problem:
    last = record.line + len(record.physical) - 1
    found = f"a quoted cell that runs over the lines {record.line} to {last}, each of which looks like a record"
    expected = "closed quotes; if the line breaks belong to the text, line_breaks: on in the mapping"
    return Problem(name, record.line, None, found, expected, "merged_records")
