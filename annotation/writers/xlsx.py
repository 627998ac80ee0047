"""Workbooks (XLSX). Text cells have the type text, so that no cell can become a formula.

Characters that XML does not allow, and carriage returns, which it changes, are written as spreadsheets do: _x000D_.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZIP_DEFLATED, ZipFile

from annotation.readers import FormatError, Problem
from annotation.writers.archives import dateless
from annotation.writers.tables import NESTED, Column, Table, moment, nested

MOST_SHEET_ROWS = 1_048_576
LONGEST_CELL = 32_767
LONGEST_SHEET_NAME = 31

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_MIME = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_CONTENT_TYPES = (
    f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_MIME}.sheet.main+xml"/>{{kinds}}</Types>'
)
_ROOT = (
    f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
    f'Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
)
_WORKBOOK = f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{{sheets}}</sheets></workbook>'
_LINKS = f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{{links}}</Relationships>'
_CONTROL = "\x00-\x08\x0b-\x1f\ufffe\uffff"
# Also an underscore before such a character: together with its spelling it would read as another spelling.
_UNSAYABLE = re.compile(f"[{_CONTROL}]|_(?=x[0-9A-Fa-f]{{4}}[_{_CONTROL}])")


def write_sheets(table: Table, out: IO[bytes], *, file: str) -> None:
    """Write the workbook; rows beyond the limit of a sheet continue on the next sheet. Raises ``FormatError`` for a
    text longer than a cell can hold: it is not cut."""
    with ZipFile(out, "w", ZIP_DEFLATED, compresslevel=4) as archive:
        sheets = _write_sheets(archive, table, file)
        names = [_sheet_name(table.name, number) for number in range(1, sheets + 1)]
        for name, text in _package_parts(names):
            archive.writestr(dateless(name), text)


def _write_sheets(archive: ZipFile, table: Table, file: str) -> int:
    """Write the sheets; returns their number."""
    lines = _sheet_rows(table, file)
    sheets, following = 0, next(lines, None)
    while following is not None or sheets == 0:
        sheets += 1
        with archive.open(dateless(f"xl/worksheets/sheet{sheets}.xml"), "w", force_zip64=True) as sheet:
            sheet.write(f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetData>{_sheet_header(table)}'.encode())
            following = _fill_sheet(sheet, following, lines)
            sheet.write(b"</sheetData></worksheet>")
    return sheets


def _fill_sheet(sheet: IO[bytes], first: str | None, lines: Iterator[str]) -> str | None:
    """Write rows until the sheet is full; returns the first row that did not fit, or None."""
    page: list[str] = []
    for number, line in enumerate(chain([first] if first is not None else [], lines), start=2):
        if number > MOST_SHEET_ROWS:
            sheet.write("".join(page).encode())
            return line
        page.append(line)
        if len(page) == 500:
            sheet.write("".join(page).encode())
            page.clear()
    sheet.write("".join(page).encode())
    return None


def _sheet_header(table: Table) -> str:
    return f"<row>{''.join(_text_cell(name) for name in table.names)}</row>"


def _sheet_rows(table: Table, file: str) -> Iterator[str]:
    line = 1
    for batch in table.batches():
        columns = zip(*batch, strict=True)
        cells = [
            _sheet_cells(column, values, file, line) for column, values in zip(table.columns, columns, strict=True)
        ]
        for row in zip(*cells, strict=True):
            yield f"<row>{''.join(row)}</row>"
        line += len(batch)


def _sheet_cells(column: Column, values: Sequence[Any], file: str, line: int) -> list[str]:
    if column.kind in {"number", "integer"}:
        return ["<c/>" if value is None else f"<c><v>{value!r}</v></c>" for value in values]
    if column.kind == "switch":
        return ["<c/>" if value is None else f'<c t="b"><v>{int(value)}</v></c>' for value in values]
    spell: Callable[[Any], str] = {"moment": moment}.get(column.kind, nested if column.kind in NESTED else str)
    texts = [None if value is None else spell(value) for value in values]
    _check_lengths(column, texts, file, line)
    return ["<c/>" if text is None else _text_cell(text) for text in texts]


def _check_lengths(column: Column, texts: Iterable[str | None], file: str, line: int) -> None:
    for place, text in enumerate(texts, start=line + 1):
        # The limit counts UTF-16 units; a character outside the basic plane takes two.
        if text and len(text) > LONGEST_CELL // 2 and (length := len(text.encode("utf-16-le")) // 2) > LONGEST_CELL:
            length_text = f"{length:,} characters"
            expected = f"at most {LONGEST_CELL:,}, which is what a cell holds; take JSONL, CSV or Parquet"
            raise FormatError(Problem(file, place, column.name, length_text, expected, "cell_size"))


def _text_cell(text: str) -> str:
    """A text cell. An empty text is written too, because it differs from a missing value."""
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(_UNSAYABLE.sub(_escape, text))}</t></is></c>'


def _escape(match: re.Match[str]) -> str:
    return f"_x{ord(match[0]):04X}_"


def _sheet_name(name: str, number: int) -> str:
    suffix = "" if number == 1 else f" {number}"
    return re.sub(r"[\[\]:*?/\\']", " ", name)[: LONGEST_SHEET_NAME - len(suffix)] + suffix


def _package_parts(names: list[str]) -> Iterator[tuple[str, str]]:
    """The other files of the XLSX package: name and content."""
    numbers = range(1, len(names) + 1)
    sheets = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="rId{number}"/>' for number, name in enumerate(names, 1)
    )
    links = "".join(
        f'<Relationship Id="rId{number}" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        for number in numbers
    )
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="{_MIME}.worksheet+xml"/>'
        for number in numbers
    )
    yield "[Content_Types].xml", _CONTENT_TYPES.format(kinds=kinds)
    yield "_rels/.rels", _ROOT
    yield "xl/workbook.xml", _WORKBOOK.format(sheets=sheets)
    yield "xl/_rels/workbook.xml.rels", _LINKS.format(links=links)
