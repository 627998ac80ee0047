"""CSV and TSV, strictly: a file that a lenient reader would load with fewer rows is refused."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from typing import Any, NamedTuple

from annotation.readers.mapping import ROWS_BELOW_HEADER, is_unnamed, unnamed_column, unnamed_columns_read
from annotation.readers.problems import FormatError, Problem, Problems, excerpt
from annotation.readers.rows import (
    BOUNDS,
    FileRow,
    RowBlock,
    case_folded,
    is_blank,
    too_long_error,
    too_many_columns_error,
)
from annotation.readers.words import Words

DELIMITERS = (",", ";", "\t", "|")
LINES_AT_ONCE = 500  # lines


class CsvDialect(NamedTuple):
    """How cells are written; ``line_breaks`` confirms that quoted cells may contain lines that look like records.

    ``header_row``: the line with the names. ``short_rows``: the last cells of a row may be missing. ``unnamed``: the
    names that the mapping gives to columns without a name.
    """

    delimiter: str
    quoting: bool = True
    line_breaks: bool = False
    header_row: int | None = None
    short_rows: bool = False
    unnamed: frozenset[str] = frozenset()


class _Lines:
    """The physical lines of a file, a block at a time; the lines of the current record can be read again."""

    def __init__(self, name: str, blocks: Iterable[list[str]]) -> None:
        self._name, self._blocks = name, iter(blocks)
        self._kept: list[str] = []
        self._before = 0  # how many lines come before those kept
        self.begun = 0  # how many lines come before the record being read
        self.cut = False  # whether the last line has no line end

    def blocks(self) -> Iterator[list[str]]:
        """The lines from the record being read on."""
        yield self._kept[self.begun - self._before :]
        while block := self._next():
            yield block

    def ahead(self, most: int) -> list[str]:
        """The next few lines, none at the end of the file; they can still be read."""
        if self.begun - self._before == len(self._kept):
            self._next()
        start = self.begun - self._before
        return self._kept[start : start + most]

    def skip(self, count: int) -> None:
        """Leave out lines."""
        while count > 0 and (ahead := self.ahead(count)):
            self.begun += len(ahead)
            count -= len(ahead)

    def since_begun(self, end: int) -> list[str]:
        """The lines of the record being read, up to and with line ``end``."""
        return self._kept[self.begun - self._before : end - self._before]

    def _next(self) -> list[str]:
        block = next(self._blocks, [])
        if block:
            record = self._kept[self.begun - self._before :]
            if sum(map(len, record)) > BOUNDS.cell:
                raise too_long_error(self._name, self.begun + 1, Words("a record"), "record_size")
            self._kept = record + block
            self._before = self.begun
            self.cut = not block[-1].endswith("\n")
        return block


class _Record(NamedTuple):
    line: int
    cells: list[str]
    physical: list[str]


def read_csv(
    name: str, blocks: Iterable[list[str]], dialect: CsvDialect, header: tuple[str, ...], problems: Problems
) -> Iterator[FileRow]:
    """Yield the rows of blocks of physical lines. Rows of another width are refused; raises ``FormatError`` if the rest
    of the file can't be read reliably."""
    reader = _Reader(name, _Lines(name, blocks), dialect, header, problems)
    yield from reader.rows()
    reader.end()


def read_csv_blocks(
    name: str, blocks: Iterable[list[str]], dialect: CsvDialect, header: tuple[str, ...], problems: Problems
) -> Iterator[RowBlock]:
    """The rows of `read_csv`, in blocks."""
    reader = _Reader(name, _Lines(name, blocks), dialect, header, problems)
    yield from reader.blocks()
    reader.end()


class _Reader:
    """Reads the records of one file, whose columns are known once its header is read."""

    def __init__(
        self, name: str, lines: _Lines, dialect: CsvDialect, header: tuple[str, ...], problems: Problems
    ) -> None:
        self._name, self._lines, self._dialect, self._problems = name, lines, dialect, problems
        self._all = self._columns = header
        self._closed: frozenset[int] = frozenset()  # places of columns without a name and without values
        self._is_begun = False  # whether the header is behind
        self._short = 0
        lines.skip((dialect.header_row or 1) - 1)

    def blocks(self) -> Iterator[RowBlock]:
        """Yield blocks of rows. Lines that are one faultless record each are read together, others one by one."""
        while ahead := self._lines.ahead(LINES_AT_ONCE):
            begun = self._lines.begun
            if self._is_begun and (cells := self._plain(ahead)):
                self._lines.begun += len(ahead)
                yield RowBlock(self._columns, range(begun + 1, self._lines.begun + 1), cells)
            else:
                yield from self._careful(begun + (len(ahead) if self._is_begun else 1))

    def _plain(self, lines: list[str]) -> list[tuple[str, ...]] | None:
        """The cells of some lines by column; None unless each line is a record with all its cells."""
        try:
            records = list(self._csv(lines))
        except csv.Error:
            return None
        # No record takes less than a line.
        if len(records) != len(lines) or set(map(len, records)) != {len(self._all)}:
            return None
        columns = list(zip(*records, strict=True))
        if any(not cell.isspace() and cell for place in self._closed for cell in columns[place]):
            return None
        return [column for place, column in enumerate(columns) if place not in self._closed]

    def _careful(self, until: int) -> Iterator[RowBlock]:
        rows: list[FileRow] = []
        try:
            for row in self.rows(until):
                rows.append(row)  # noqa: PERF402 (those before a fault stay)
        finally:
            if rows:
                yield RowBlock.of(rows)

    def rows(self, until: float = inf) -> Iterator[FileRow]:
        """The rows from here on, as far as the record that reaches line ``until``."""
        lines, before, width = self._lines, self._lines.begun, self._plain_width()
        reader = self._csv(chain.from_iterable(lines.blocks()))
        try:
            for cells in reader:
                begun, end = lines.begun, before + reader.line_num
                if len(cells) == width and end == begun + 1:
                    yield FileRow(end, dict(zip(self._columns, cells)))  # noqa: B905 - strict costs time; widths are equal
                elif cells:
                    if row := self._row(_Record(begun + 1, cells, lines.since_begun(end))):
                        yield row
                    width = self._plain_width()
                lines.begun = end
                if end >= until:
                    return
        except csv.Error as error:
            last = before + reader.line_num
            raise FormatError(_broken(self._name, lines.begun + 1, last, lines, str(error))) from None

    def _plain_width(self) -> int:
        """The number of cells of a record that needs no correction."""
        return len(self._columns) if self._is_begun and not self._closed else -1

    def _row(self, record: _Record) -> FileRow | None:
        """The row of a single record; None for the header and for a refused record."""
        if not self._is_begun and self._is_header(record):
            return None
        record = self._filled_up(record)
        if not _checked(self._name, record, len(self._all), self._dialect, self._problems):
            return None
        for place in sorted(self._closed):
            if not is_blank(record.cells[place]):
                self._problems.refuse(_unnamed(self._name, record, place))
                return None
        cells = [cell for place, cell in enumerate(record.cells) if place not in self._closed]
        return FileRow(record.line, dict(zip(self._columns, cells, strict=True)))

    def _is_header(self, record: _Record) -> bool:
        """Whether a record is not a row: the header, or blank cells above it."""
        names = self._columns
        if not names and all(map(is_blank, record.cells)):
            return True
        self._is_begun = True
        if names and self._dialect.header_row is None:
            if [case_folded(cell) for cell in record.cells] != [case_folded(name) for name in names]:
                return False
            self._problems.note(
                self._name,
                Words("its first line has the names under header: under “Mapping (YAML)”, and is not a row."),
            )
            return True
        self._open(names or _header(self._name, record, self._dialect), record)
        return True

    def _open(self, columns: tuple[str, ...], header: _Record) -> None:
        """Set the columns from a header; columns without a name are read only if they have values."""
        following = self._lines.ahead(len(header.physical) + ROWS_BELOW_HEADER)[len(header.physical) :]
        try:
            rows = [cells for cells in self._csv(following) if cells]
        except csv.Error:
            rows = []
        if rows and all(len(row) > len(columns) and all(map(is_blank, row[len(columns) :])) for row in rows):
            widest = max(map(len, rows))  # each row ends in a delimiter more than the header
            columns += tuple(unnamed_column(place) for place in range(len(columns) + 1, widest + 1))
        named = [place for place, column in enumerate(columns, start=1) if not is_unnamed(column)]
        filled = [[place for place, cell in enumerate(row[: len(columns)], 1) if not is_blank(cell)] for row in rows]
        places = unnamed_columns_read(self._name, header.line, filled, named, self._dialect.unnamed)
        read = {*named, *places}
        self._all = columns
        self._closed = frozenset(place for place in range(len(columns)) if place + 1 not in read)
        if self._closed:
            self._problems.note(self._name, Words("columns without a name and without values are left out."))
        self._columns = tuple(column for place, column in enumerate(columns) if place not in self._closed)

    def _filled_up(self, record: _Record) -> _Record:
        """The record, with blanks for the last cells if they may be missing."""
        lacking = range(len(record.cells), len(self._all))
        are_closed = all(place in self._closed for place in lacking)
        if not lacking or not (are_closed or self._dialect.short_rows):
            return record
        self._short += not are_closed
        return record._replace(cells=[*record.cells, *([""] * len(lacking))])

    def end(self) -> None:
        """The notes at the end of the file."""
        if not self._columns:
            expected = Words("a header line with the columns")
            raise FormatError(Problem(self._name, None, None, Words("an empty file"), expected, "empty"))
        if self._short:
            self._problems.note(
                self._name,
                Words("%(number)s rows lack their last cells, which are taken as blank.", number=f"{self._short:,}"),
            )
        if self._lines.cut:
            sentence = Words("its last line has no line end. If the file was cut there, its last value may be too.")
            self._problems.note(self._name, sentence)

    def _csv(self, lines: Iterable[str]) -> Any:
        return csv.reader(
            lines,
            delimiter=self._dialect.delimiter,
            quoting=csv.QUOTE_MINIMAL if self._dialect.quoting else csv.QUOTE_NONE,
            strict=True,
        )


def _checked(name: str, record: _Record, width: int, dialect: CsvDialect, problems: Problems) -> bool:
    """Whether a record has the right number of cells, else it is refused. Raises ``FormatError`` for merged records."""
    if len(record.cells) != width:
        problems.refuse(_wrong_width(name, record, width))
        return False
    if not dialect.line_breaks and _is_merged(record, dialect.delimiter):
        raise FormatError(_merged(name, record))
    return True


def likely_delimiter(line: str) -> str:
    """The delimiter that a header line uses most, outside quotes; a comma when it has none."""
    bare = "".join(line.split('"')[::2])
    return max(DELIMITERS, key=bare.count)


def _broken(name: str, first: int, last: int, lines: _Lines, complaint: str) -> Problem:
    window = lines.since_begun(last)
    if "unexpected end of data" in complaint:
        text = Words("a quote that is opened in %(line)s and never closed", line=excerpt(window[0].strip()))
        return Problem(name, first, None, text, Words("every quoted cell to be closed"), "unclosed_quote")
    if "expected after" in complaint:
        text = Words("text after a closing quote in %(line)s", line=excerpt(window[-1].strip()))
        expected = Words('quotes inside a quoted cell to be doubled (""), or quoting: off under “Mapping (YAML)”')
        return Problem(name, last, None, text, expected, "stray_quote")
    if "new-line character" in complaint:
        text = Words("a carriage return (CR) that neither ends the line nor stands in a quoted cell")
        return Problem(name, last, None, text, Words("lines that end with LF or CRLF"), "lone_cr")
    return too_long_error(name, first, Words("a cell"), "cell_size").problem


def _header(name: str, record: _Record, dialect: CsvDialect) -> tuple[str, ...]:
    """The columns. A name over several lines is refused if one of the lines has all delimiters of a record."""
    delimiters = len(record.cells) - 1
    whole = delimiters and any(line.count(dialect.delimiter) >= delimiters for line in record.physical[1:])
    if whole and not dialect.line_breaks:
        raise FormatError(_merged(name, record))
    return header_of(name, record.line, record.cells, record.physical[0])


def header_of(name: str, line: int, cells: Sequence[str], physical: str) -> tuple[str, ...]:
    """The columns that a header line names. Raises ``FormatError`` when two have the same name."""
    if len(cells) > BOUNDS.columns:
        raise too_many_columns_error(name, line, len(cells))
    columns = tuple(cell.strip() for cell in cells)
    columns = tuple(cell or unnamed_column(place) for place, cell in enumerate(columns, start=1))
    if repeated := sorted(column for column, count in Counter(columns).items() if count > 1):
        text = Words("the column name %(name)s more than once", name=excerpt(repeated[0]))
        raise FormatError(Problem(name, line, repeated[0], text, Words("different names"), "header"))
    if _is_a_record(columns):
        text = Words("what looks like a record instead of a header: %(line)s", line=excerpt(physical.strip()))
        expected = Words("a header line, or the names of the columns as header: [...] under “Mapping (YAML)”")
        raise FormatError(Problem(name, line, None, text, expected, "header"))
    return columns


def _is_a_record(columns: tuple[str, ...]) -> bool:
    """Whether the header seems to be a record: it has a number or a list together with running text."""
    values = any(column.replace(".", "", 1).isdigit() or column.startswith("[") for column in columns)
    return values and any(len(column.split()) > 4 for column in columns)


def _wrong_width(name: str, record: _Record, width: int) -> Problem:
    kind = "too_many_cells" if len(record.cells) > width else "too_few_cells"
    text = Words("%(number)s cells in %(line)s", number=len(record.cells), line=excerpt(record.physical[0].strip()))
    return Problem(name, record.line, None, text, Words("%(number)s cells as in the header", number=width), kind)


def _unnamed(name: str, record: _Record, place: int) -> Problem:
    text = Words(
        "%(value)s in column %(number)s, which has no name in the header",
        value=excerpt(record.cells[place]),
        number=place + 1,
    )
    expected = Words(
        "a name for it, or an empty cell; the mapping can refer to it as %(name)s", name=unnamed_column(place + 1)
    )
    return Problem(name, record.line, unnamed_column(place + 1), text, expected, "unnamed_column")


def _is_merged(record: _Record, delimiter: str) -> bool:
    """Whether a quoted cell contains whole records: every physical line has the delimiters of a record, or a later
    line has them and begins with an identifier of the same form as the first. Prose can have the delimiters by chance,
    so with few lines or few columns, all lines must also begin with the same form."""
    count = len(record.cells) - 1
    whole = [line.count(delimiter) == count for line in record.physical]
    if count == 0 or not any(whole[1:]):
        return False
    makes = [_make(line.split(delimiter, 1)[0]) for line in record.physical]
    if all(whole):
        by_chance = count < 3 or len(record.physical) < 4
        return not by_chance or len({make for make in makes if make}) <= 1  # a quote may stand where the first was
    alike = zip(whole[1:], makes[1:], strict=True)
    return count > 1 and "9" in makes[0] and any(is_whole and make == makes[0] for is_whole, make in alike)


def _make(cell: str) -> frozenset[str]:
    """The kinds of characters in a cell: digits, letters, and each other character as itself."""
    return frozenset("9" if char.isdigit() else "a" if char.isalpha() else char for char in cell.strip().strip('"'))


def _merged(name: str, record: _Record) -> Problem:
    last = record.line + len(record.physical) - 1
    text = Words(
        "a quoted cell that runs over the lines %(first)s to %(last)s, each of which looks like a record",
        first=record.line,
        last=last,
    )
    expected = Words("closed quotes; if the line breaks belong to the text, line_breaks: on under “Mapping (YAML)”")
    return Problem(name, record.line, None, text, expected, "merged_records")
