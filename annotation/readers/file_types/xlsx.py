"""The rows of one sheet of a workbook: values as they are stored. Hidden rows and columns are read, with a note."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from annotation.readers.csv import header_of
from annotation.readers.file_types.workbooks import Sheet, TextCollector, Workbook, local_name
from annotation.readers.json import require_storable
from annotation.readers.mapping import (
    ROWS_BELOW_HEADER,
    Mapping,
    unnamed_column,
    unnamed_columns_read,
    unnamed_in_mapping,
)
from annotation.readers.problems import FormatError, InvalidValue, Problem, Problems, excerpt, in_record
from annotation.readers.rows import (
    BOUNDS,
    FileRow,
    as_written,
    case_folded,
    is_blank,
    located_row,
    matches_any,
    too_long_error,
    too_many_columns_error,
)
from annotation.readers.words import Setting, Words

_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_INTEGER = re.compile(r"-?[0-9]{1,15}")
SHEET_COLUMN = "(sheet)"
EXACT = 10**15  # Excel keeps fifteen digits; a longer number has lost its last ones


class _Cell(NamedTuple):
    column: int
    type: str
    style: int
    text: str
    is_formula: bool
    has_value: bool


class _Line(NamedTuple):
    number: int
    cells: list[_Cell]


def read_file(name: str, stream: BinaryIO, layout: Mapping, problems: Problems) -> Iterator[FileRow]:
    """Yield the rows of the sheet that the mapping names, or of the only one with rows, with their row numbers there.

    A name with ``*``, which no sheet can have, is a pattern: the sheets with such names are read one after the other,
    each with its own header; the column `SHEET_COLUMN` has the name of the sheet. Missing cells are ``None``. A cell
    that cannot be read refuses its row. Raises ``FormatError``.
    """
    sheet, are_several = layout.sheet, is_sheet_pattern(layout.sheet)
    with closing(Workbook(name, stream)) as workbook:
        is_filled = False
        for chosen in _chosen(workbook, sheet):
            reader = _SheetReader(workbook, chosen, layout.header_row or 1)
            table = _Table(name, workbook, layout, problems, f"[{chosen.name}]" if are_several else "")
            try:
                for row in table.rows(reader.lines()):
                    yield row.with_fields({SHEET_COLUMN: chosen.name, **row.fields}) if are_several else row
            except FormatError as error:
                place = in_record(table.path, error.problem.column)
                raise FormatError(replace(error.problem, column=place)) from None
            is_filled |= bool(table.columns)
            reader.tell(problems)
        if not is_filled:
            text = (
                Words("no rows in any sheet")
                if sheet in (None, "*")
                else Words("no rows in the sheet %(name)s", name=excerpt(sheet))
            )
            raise FormatError(Problem(name, None, None, text, Words("a row with the names of the columns"), "empty"))


def is_sheet_pattern(sheet: str | None) -> bool:
    """Whether the ``sheet`` of a mapping is a pattern for several sheets."""
    return sheet is not None and "*" in sheet


def names_of_sheets(name: str, stream: BinaryIO) -> list[str]:
    """The names of the sheets of a workbook. Raises ``FormatError``."""
    with closing(Workbook(name, stream)) as workbook:
        return [sheet.name for sheet in workbook.sheets]


def first_rows(name: str, stream: BinaryIO, layout: Mapping, most: int) -> list[tuple[int, list[str]]]:
    """The first rows of a sheet unchanged, each with its number. Raises ``FormatError``."""
    rows: list[tuple[int, list[str]]] = []
    with closing(Workbook(name, stream)) as workbook:
        table = _Table(name, workbook, Mapping(), Problems())
        lines = _SheetReader(workbook, _chosen(workbook, layout.sheet)[0]).lines()
        with suppress(FormatError):  # such as merged cells, which are reported when the rows are read
            rows.extend((line.number, table.texts(line)) for line in islice(lines, most))
    return rows


def _chosen(workbook: Workbook, sheet: str | None) -> list[Sheet]:
    """The sheet that the mapping names, the sheets with rows that match its pattern, or the only sheet with rows;
    never an empty list."""
    if sheet is None:
        holding = [candidate for candidate in workbook.sheets if _SheetReader(workbook, candidate).holds_rows()]
        if len(holding) <= 1 and workbook.sheets:
            return (holding or workbook.sheets)[:1]
        text = Words("rows in the sheets %(names)s", names=_named(holding)) if holding else Words("no sheet")
        choice = Setting("sheet", 'sheet: NAME in the mapping, or sheet: "*" for all of them')
        raise FormatError(Problem(workbook.name, None, None, text, choice, "sheet"))
    if is_sheet_pattern(sheet):
        fitting = [candidate for candidate in workbook.sheets if matches_any(candidate.name, (sheet,))]
        holding = [candidate for candidate in fitting if _SheetReader(workbook, candidate).holds_rows()]
        if fitting:
            return holding or fitting[:1]
    for candidate in workbook.sheets:
        if candidate.name == sheet:
            return [candidate]
    expected = Words("one of %(names)s", names=_named(workbook.sheets))
    raise FormatError(
        Problem(workbook.name, None, None, Words("no sheet %(name)s", name=excerpt(sheet)), expected, "sheet")
    )


def _named(sheets: list[Sheet]) -> str:
    return ", ".join(excerpt(sheet.name) for sheet in sheets)


class _SheetReader:
    """Parses the XML of one sheet into its rows."""

    def __init__(self, workbook: Workbook, sheet: Sheet, header_row: int = 1) -> None:
        self._workbook, self._sheet, self._header_row = workbook, sheet, header_row
        self._lines: list[_Line] = []
        self._number = self._column = self._length = 0
        self._cells: list[_Cell] = []
        self._attributes: dict[str, str] = {}
        self._collected = TextCollector(workbook.name)
        self._is_formula = self._has_value = False
        self._hidden = self._first_hidden = 0
        self._hidden_here = False
        self._hidden_columns = 0
        self._merged = ""

    def lines(self) -> Iterator[_Line]:
        """The rows that have a cell. Merged cells, which come after all rows in the file, are an error at the end."""
        for _ in self._workbook.walk(self._sheet.part, self._start, self._end, self._collected.text):
            yield from (line for line in self._lines if line.number >= self._header_row)
            self._lines.clear()
        if self._merged:
            text = Words(
                "the merged cells %(cells)s in the sheet %(sheet)s", cells=self._merged, sheet=excerpt(self._sheet.name)
            )
            expected = Words("one value in each cell: unmerge them and fill in the value of each row")
            raise FormatError(Problem(self._workbook.name, None, None, text, expected, "merged_cells"))

    def holds_rows(self) -> bool:
        """Whether any cell has a value."""
        walk = self._workbook.walk(self._sheet.part, self._start, self._end, self._collected.text)
        with closing(walk):
            return any(self._lines for _ in walk)

    def tell(self, problems: Problems) -> None:
        """Note what a person who looks at the sheet does not see, such as hidden rows."""
        if self._hidden:
            sentence = Words(
                "%(number)s hidden rows were read too; the first is row %(first)s.",
                number=self._hidden,
                first=self._first_hidden,
            )
            problems.note(self._workbook.name, sentence)
        if self._hidden_columns:
            problems.note(
                self._workbook.name, Words("%(number)s hidden columns were read too.", number=self._hidden_columns)
            )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = local_name(tag)
        self._collected.start(tag)
        if tag == "c":
            self._attributes = attributes
            self._is_formula = self._has_value = False
        elif tag in {"v", "is"}:
            self._has_value = True
        elif tag == "f":
            self._is_formula = True
        elif tag == "row":
            self._start_row(attributes)
        elif tag == "mergeCell":
            self._merged = self._merged or self._in_rows(attributes.get("ref", ""))
        elif tag == "col" and attributes.get("hidden") in {"1", "true"}:
            self._hidden_columns += 1

    def _in_rows(self, reference: str) -> str:
        """The reference of merged cells, or "" if all of them are above the header."""
        last = _REFERENCE.fullmatch(reference.rpartition(":")[2])
        return "" if last and int(last[2]) < self._header_row else reference

    def _start_row(self, attributes: dict[str, str]) -> None:
        number = int(attributes["r"]) if attributes.get("r", "").isdecimal() else self._number + 1
        if number <= self._number:
            raise self._workbook.broken(
                Words("row %(number)s after row %(earlier)s", number=number, earlier=self._number)
            )
        self._number, self._column, self._length = number, 0, 0
        self._hidden_here = attributes.get("hidden") in {"1", "true"}

    def _end(self, tag: str) -> None:
        tag = local_name(tag)
        self._collected.end(tag)
        if tag == "c":
            self._end_cell()
        elif tag == "row" and self._cells:
            self._lines.append(_Line(self._number, self._cells))
            if self._hidden_here:
                self._hidden += 1
                self._first_hidden = self._first_hidden or self._number
            self._cells = []

    def _end_cell(self) -> None:
        attributes, text = self._attributes, self._collected.taken()
        column = self._place(attributes.get("r"))
        if column <= self._column:
            raise self._workbook.broken(Words("two cells in one place, in row %(number)s", number=self._number))
        if column > BOUNDS.columns:
            raise too_many_columns_error(self._workbook.name, self._number, column)
        self._column = column
        self._length += len(text)
        if self._length > BOUNDS.cell:
            raise too_long_error(self._workbook.name, self._number, Words("a row"), "record_size")
        if self._has_value or self._is_formula:
            style = int(style) if (style := attributes.get("s", "0")).isdecimal() else 0
            kind = attributes.get("t", "n")
            self._cells.append(_Cell(column, kind, style, text, self._is_formula, self._has_value))

    def _place(self, reference: str | None) -> int:
        if reference is None:
            return self._column + 1
        match = _REFERENCE.fullmatch(reference)
        if match is None or int(match[2]) != self._number:
            raise self._workbook.broken(
                Words("a cell called %(name)s in row %(number)s", name=excerpt(reference), number=self._number)
            )
        return column_number(match[1])


class _Table:
    """Gives cells the names of their columns."""

    def __init__(self, name: str, workbook: Workbook, layout: Mapping, problems: Problems, path: str = "") -> None:
        self.columns = dict(enumerate(layout.header, start=1))
        self.path = path  # of each row, if several sheets are read
        self._layout, self._unnamed = layout, unnamed_in_mapping(layout)
        self._name, self._workbook, self._problems = name, workbook, problems
        self._moments = workbook.moments()
        from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

        self._epoch = CALENDAR_MAC_1904 if workbook.starts_1904 else CALENDAR_WINDOWS_1900

    def rows(self, lines: Iterator[_Line]) -> Iterator[FileRow]:
        """The rows of a sheet. The first line with a value is the header, unless the mapping gives the names."""
        for line in lines:
            if not (filled := self._filled(line)):
                continue
            if not self._is_header(line.number, filled):
                yield from self._rows([line])
                break
            ahead = list(islice(lines, ROWS_BELOW_HEADER))
            self._open(line.number, ahead)
            yield from self._rows(ahead)
            break
        yield from self._rows(lines)

    def _rows(self, lines: Iterable[_Line]) -> Iterator[FileRow]:
        for line in lines:
            if filled := self._filled(line):
                try:
                    yield self._row(line.number, filled)
                except InvalidValue as fault:
                    self._problems.refuse(fault.at(self._name, line.number, path=self.path))

    def _is_header(self, number: int, filled: dict[int, Any]) -> bool:
        titles = {place: as_written(value) for place, value in filled.items() if not is_blank(value)}
        if self.columns and self._layout.header_row is None:
            is_header = {place: case_folded(title) for place, title in titles.items()} == {
                place: case_folded(name) for place, name in self.columns.items()
            }
            if is_header:
                sentence = Words("its first row has the names under header: under “Mapping (YAML)”, and is not a row.")
                self._problems.note(self._name, sentence)
            return is_header
        if not self.columns:
            names = header_of(self._name, number, [*titles.values()], ", ".join(titles.values()))
            self.columns = dict(zip(titles, names, strict=True))
        return True

    def _open(self, header: int, ahead: list[_Line]) -> None:
        """Add the columns that have no name but have values."""
        rows = [[cell.column for cell in line.cells if cell.text.strip()] for line in ahead]
        places = unnamed_columns_read(self._name, header, rows, self.columns, self._unnamed)
        self.columns |= {place: unnamed_column(place) for place in places}
        self.columns = dict(sorted(self.columns.items()))

    def texts(self, line: _Line) -> list[str]:
        """The cells of a line as text, up to its last cell; empty cells before it are included."""
        filled = self._filled(line)
        return [as_written(filled.get(place)) for place in range(1, max(filled, default=0) + 1)]

    def _filled(self, line: _Line) -> dict[int, Any]:
        """The values of a line by column; empty if all cells are blank, or if the line is refused."""
        values: dict[int, Any] = {}
        length = 0
        try:
            for cell in line.cells:
                values[cell.column] = value = self._value(cell, line.number)
                length += len(value) if isinstance(value, str) else 0
                if length > BOUNDS.cell:
                    raise too_long_error(self._name, line.number, Words("a row"), "record_size")
        except InvalidValue as fault:
            self._problems.refuse(fault.at(self._name, line.number, path=self.path))
            return {}
        filled = {column: value for column, value in values.items() if value is not None}
        return {} if all(is_blank(value) for value in filled.values()) else filled

    def _row(self, number: int, filled: dict[int, Any]) -> FileRow:
        for column, value in filled.items():
            if column not in self.columns and not is_blank(value):
                cell = f"{column_letters(column)}{number}"
                text = Words("%(value)s in %(cell)s, a column without a name", value=excerpt(value), cell=cell)
                raise InvalidValue(text, Words("a name in the header for each column"), "too_many_cells")
        fields = {title: filled.get(column) for column, title in self.columns.items()}
        require_storable(fields)
        return located_row(number, fields, self.path)

    def _value(self, cell: _Cell, number: int) -> Any:
        """The value of a cell. Raises ``InvalidValue`` naming the cell."""
        place = f"{column_letters(cell.column)}{number}"
        column = self.columns.get(cell.column, place)
        if cell.is_formula and (not cell.has_value or (not cell.text and cell.type != "str")):
            text = Words("a formula without its result in %(place)s", place=place)
            raise InvalidValue(
                text, Words("the sheet saved by a program that calculates, or values instead"), "formula", column
            )
        if cell.type == "e":
            raise InvalidValue(
                Words("the error %(error)s in %(place)s", error=cell.text, place=place),
                Words("a value, or an empty cell"),
                "cell_error",
                column,
            )
        try:
            return self._typed(cell)
        except FormatError:
            raise
        except (ValueError, OverflowError):
            text = Words("%(value)s in %(place)s, which is no number", value=excerpt(cell.text), place=place)
            if self._moment(cell):
                text = Words("%(value)s in %(place)s, which is no date", value=excerpt(cell.text), place=place)
            raise InvalidValue(text, Words("a value that Excel shows"), "cell_value", column) from None

    def _typed(self, cell: _Cell) -> Any:
        if cell.type == "s":
            return self._workbook.string(cell.text)
        if cell.type in {"str", "inlineStr", "d"}:
            return cell.text
        if not cell.text:
            return None
        if cell.type == "b":
            return {"1": True, "0": False}[cell.text] if cell.text in {"0", "1"} else bool(int(cell.text))
        moment = self._moment(cell)
        return _written_moment(_number(cell.text), moment, self._epoch) if moment else _number(cell.text)

    def _moment(self, cell: _Cell) -> str:
        return self._moments[cell.style] if cell.style < len(self._moments) else ""


def _number(text: str) -> int | float:
    if _INTEGER.fullmatch(text):
        return int(text)
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() and abs(value) < EXACT else value


def _written_moment(value: float, moment: str, epoch: datetime) -> str:
    """A date in ISO 8601, with its time if the sheet shows a time or the time is not midnight."""
    from openpyxl.utils.datetime import from_excel

    if moment == "span":
        seconds = round(value * 86_400)
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    moment_read: datetime | date | time | timedelta | None = from_excel(value, epoch)
    if isinstance(moment_read, datetime) and moment == "date" and moment_read.time() == time():
        return moment_read.date().isoformat()
    if not isinstance(moment_read, date | time):
        raise ValueError(value)
    return moment_read.isoformat()


def column_number(name: str) -> int:
    """``A`` is 1, ``AA`` 27."""
    number = 0
    for letter in name:
        number = number * 26 + ord(letter) - 64
    return number


def column_letters(number: int) -> str:
    """The letters of a column in a sheet: 27 is ``AA``."""
    name = ""
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(65 + rest) + name
    return name
