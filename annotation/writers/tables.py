"""Tables, columns of known kinds and rows that are read lazily; tables as CSV, JSONL, XLSX and Parquet files.

CSV is that of RFC 4180 (commas, CRLF) in UTF-8. Text that a spreadsheet would run as a formula gets a quote before it;
the last column, the marks, tells our reader which cells were changed. JSONL has one object per line, with all columns.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import StringIO
from itertools import chain, islice
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, TypeVar
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import orjson

from annotation.readers import ABSENT, ADDED, FORMULA_STARTS, MARKS_COLUMN, FormatError, Problem

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    from numpy.typing import NDArray

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


# --- CSV -------------------------------------------------------------------------------------------------------------
def comma_separated(table: Table) -> Iterator[bytes]:
    """The file in pieces; the last column is the marks."""
    page = StringIO()
    writer = csv.writer(page, lineterminator="\r\n")
    writer.writerow([*table.names, MARKS_COLUMN])
    if isinstance(table.rows, CodedRows) and len(table.rows):
        yield _emptied(page)
        yield from joined_lines([*_written_columns(table.columns, table.rows)], "\r\n")
        return
    for batch in table.batches():
        writer.writerows(_lines(table.columns, batch))
        yield _emptied(page)
    yield _emptied(page)


def _emptied(page: StringIO) -> bytes:
    written = page.getvalue().encode()
    page.seek(0)
    page.truncate()
    return written


def _lines(columns: tuple[Column, ...], batch: list[Cells]) -> Iterator[tuple[Any, ...]]:
    """The rows of a batch as cells. Converted column by column, because most columns need no change."""
    marks: dict[int, list[str]] = {}
    written = [_cells(column, values, marks) for column, values in zip(columns, zip(*batch, strict=True), strict=True)]
    texts = [" ".join(marks[place]) if place in marks else "" for place in range(len(batch))]
    return zip(*written, texts, strict=True)


def _written_columns(columns: tuple[Column, ...], rows: CodedRows) -> Iterator[CodedColumn]:
    """Coded columns as their cells, then the marks."""
    marks = CodedColumn(rows.columns[0].codes, [""] * len(rows.columns[0].values))
    for column, coded in zip(columns, rows.columns, strict=True):
        marked: dict[int, list[str]] = {}
        yield CodedColumn(coded.codes, _cells(column, coded.values, marked))
        if marked:
            own = [" ".join(marked.get(place, ())) for place in range(len(coded.values))]
            codes, pairs = combined_codes(marks.codes, coded.codes, len(own))
            texts = [" ".join(filter(None, (marks.values[first], own[second]))) for first, second in pairs]
            marks = CodedColumn(codes, texts).distinct()
    yield marks.distinct()


def _cells(column: Column, values: Cells, marks: dict[int, list[str]]) -> Cells:
    if column.optional:
        for place, value in enumerate(values):
            if value is None:
                marks.setdefault(place, []).append(f"{ABSENT}{column.name}")
    if column.kind == "text":
        return _texts(column, values, marks)
    spell = _SPELLINGS.get(column.kind)
    return values if spell is None else [spell(value) for value in values]


def _texts(column: Column, values: Cells, marks: dict[int, list[str]]) -> Cells:
    risky = [place for place, value in enumerate(values) if value and value[0] in FORMULA_STARTS]
    if not risky:
        return values
    harmless = list(values)
    for place in risky:
        harmless[place] = f"'{values[place]}"
        marks.setdefault(place, []).append(f"{ADDED}{column.name}")
    return harmless


_SPELLINGS: dict[str, Callable[[Any], str]] = {
    "number": number,
    "switch": lambda value: "" if value is None else "true" if value else "false",
    "moment": moment,
    "turns": nested,
    "texts": nested,
    "object": nested,
}


# --- JSONL -----------------------------------------------------------------------------------------------------------
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE


def json_lines(table: Table) -> Iterator[bytes]:
    """The file in pieces."""
    names = table.names
    for batch in table.batches():
        yield b"".join([orjson.dumps(dict(zip(names, row, strict=True)), option=_OPTIONS) for row in batch])


# --- XLSX: text cells have the type text, so that no cell can become a formula ------------
# Characters that XML does not allow, and carriage returns, which it changes, are written as spreadsheets do: _x000D_.
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


def dateless(name: str) -> ZipInfo:
    """A zip member with a fixed date, so that the same content always gives the same archive."""
    member = ZipInfo(name)
    member.compress_type = ZIP_DEFLATED
    return member


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


# --- Parquet, with types: scores are numbers, turns are lists of structs; needs the extra `parquet` ------------
def write_columns(table: Table, out: IO[bytes], *, file: str) -> None:
    """Write the file, batch by batch. Raises ``FormatError`` if pyarrow is not installed."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        expected = "the extra “parquet” to be installed: pip install 'panelbench[parquet]'"
        raise FormatError(Problem(file, None, None, "no pyarrow", expected, "no_pyarrow")) from None
    schema = pa.schema([pa.field(column.name, _arrow_type(column)) for column in table.columns])
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for batch in table.batches():
            columns = zip(*batch, strict=True)
            arrays = [
                pa.array(_arrow_values(column, values), type=_arrow_type(column))
                for column, values in zip(table.columns, columns, strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _arrow_values(column: Column, values: Any) -> Any:
    # Attributes can have any keys, so they have no common type: they are written as JSON text.
    return [nested(value) or None for value in values] if column.kind == "object" else values


def _arrow_type(column: Column) -> pa.DataType:
    import pyarrow as pa

    turn = pa.struct([("speaker", pa.string()), ("name", pa.string()), ("text", pa.string())])
    types: dict[str, pa.DataType] = {
        "number": pa.float64(),
        "integer": pa.int64(),
        "switch": pa.bool_(),
        "moment": pa.timestamp("us", tz="UTC"),
        "turns": pa.list_(turn),
        "texts": pa.list_(pa.string()),
    }
    return types.get(column.kind, pa.string())


# --- the file formats ------------
PIECE = 256 * 1024


class FileFormat(NamedTuple):
    """A file format. It has one of two functions: ``pieces`` creates the file while it is sent; ``whole`` writes the
    complete file before the first byte is sent."""

    ending: str
    media_type: str
    pieces: Callable[[Table], Iterator[bytes]] | None = None
    whole: Callable[..., None] | None = None


FORMATS = {
    "jsonl": FileFormat("jsonl", "application/jsonl; charset=utf-8", pieces=json_lines),
    "csv": FileFormat("csv", "text/csv; charset=utf-8", pieces=comma_separated),
    "xlsx": FileFormat("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", whole=write_sheets),
    "parquet": FileFormat("parquet", "application/vnd.apache.parquet", whole=write_columns),
}


def pieces(table: Table, kind: str) -> Iterator[bytes]:
    """The table as a file, piece by piece; memory does not grow with the table."""
    chosen = FORMATS[kind]
    if chosen.pieces is not None:
        yield from chosen.pieces(table)
        return
    yield from spooled(lambda out: write(table, kind, out))


def spooled(write: Callable[[BinaryIO], None]) -> Generator[bytes]:
    """Write a complete temporary file, then yield it in pieces."""
    with TemporaryFile() as spool:
        write(spool)
        spool.seek(0)
        yield from iter(lambda: spool.read(PIECE), b"")


def write(table: Table, kind: str, out: IO[bytes]) -> None:
    """Write the table as a file."""
    chosen = FORMATS[kind]
    if chosen.whole is not None:
        chosen.whole(table, out, file=f"{table.name}.{chosen.ending}")
        return
    out.writelines(pieces(table, kind))


# --- rows as coded columns: each distinct value once, and for each row the place of its value ------------------------
# A ratings table of a million rows has some thousand distinct values. As coded columns it takes a tenth of the memory
# of tuples, becomes a DataFrame without a loop over its rows, and its CSV is joined from texts that are written once.
AT_ONCE = 20_000  # rows
FEW = 256
"""Values of a column that may be written together with those of its neighbours."""
MOST_PAIRS = 1 << 14
"""Combinations of values of neighbouring columns that are written together."""
WIDEST, NO_TEXT = 1_000, b"\xff"
"""Bytes of the longest line that is filled up to one width, and the byte that fills it."""
CodedCells = tuple[Any, ...]


class CodedColumn(NamedTuple):
    """`codes` (M,): the place of each row's value in `values`, in which a value may stand more than once."""

    codes: NDArray[np.intp]
    values: Sequence[Any]

    def distinct(self) -> CodedColumn:
        """The same column with each value once, in the order in which they first stand in `values`."""
        import numpy as np

        kinds = set(map(type, self.values)) - {type(None)}
        is_plain = len(kinds) == 1 and not kinds & {list, dict}  # else 1 and True, or 1 and 1.0, are one key
        keys = self.values if is_plain else [(type(value), _key(value)) for value in self.values]
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        if len(places) == len(self.values):
            return self
        moved = list(map(places.__getitem__, keys))
        first = dict(zip(reversed(moved), reversed(self.values), strict=True))
        return CodedColumn(np.array(moved, dtype=np.intp)[self.codes], [first[place] for place in range(len(places))])


def _key(value: Any) -> Any:
    return repr(value) if isinstance(value, (list, dict)) else value


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """The values as objects, whatever they are: a list stays one value."""
    import numpy as np

    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


class CodedRows:
    """Rows that are stored as coded columns. Iterating yields tuples; it can be done again."""

    def __init__(self, columns: Sequence[CodedColumn]) -> None:
        self.columns = tuple(columns)

    def __len__(self) -> int:
        return len(self.columns[0].codes)

    def __iter__(self) -> Iterator[CodedCells]:
        found = [objects(column.values) for column in self.columns]
        for start in range(0, len(self), AT_ONCE):
            here = slice(start, start + AT_ONCE)
            parts = [values[column.codes[here]].tolist() for values, column in zip(found, self.columns, strict=True)]
            yield from zip(*parts, strict=True)

    def values(self, place: int) -> set[Any]:
        """The values that occur in a column."""
        import numpy as np

        column = self.columns[place]
        occurs = np.bincount(column.codes, minlength=len(column.values)) > 0
        return {value for value, is_there in zip(column.values, occurs.tolist(), strict=True) if is_there}

    def where(self, let_through: Mapping[int, Callable[[Any], bool]]) -> CodedRows:
        """The rows whose values in these columns are let through."""
        import numpy as np

        keep = np.ones(len(self), dtype=bool)
        for place, test in let_through.items():
            column = self.columns[place]
            keep &= np.array([test(value) for value in column.values], dtype=bool)[column.codes]
        return self.kept(keep)

    def kept(self, keep: NDArray[np.bool_]) -> CodedRows:
        """The rows (M,) that are True; columns that share their codes still do."""
        codes = {id(column.codes): column.codes for column in self.columns}
        parts = {key: each[keep] for key, each in codes.items()}
        return CodedRows([CodedColumn(parts[id(column.codes)], column.values) for column in self.columns])


class _Line:
    """A file for csv.writer that hands each line back."""

    def write(self, line: str) -> str:
        return line


def joined_lines(columns: Sequence[CodedColumn], ending: str) -> Iterator[bytes]:
    """The rows as lines of CSV; values are text already, or as `csv.writer` writes them. Texts of columns side by side
    that have few combinations are written once.
    """
    import numpy as np

    writer = csv.writer(_Line(), lineterminator=ending)
    groups = [(codes, cells) for codes, cells in _groups(columns)]
    last = len(groups) - 1
    texts = []
    for number, (_codes, cells) in enumerate(groups):
        # The empty cell before them writes the comma, and a lone empty cell without quotes.
        lines = [writer.writerow(("", *row)).removesuffix(ending)[0 if number else 1 :] for row in cells]
        texts.append(objects([f"{line}{ending}".encode() if number == last else line.encode() for line in lines]))
    size = len(columns[0].codes)
    if size and sum(max(map(len, each)) for each in texts) <= WIDEST:
        yield from _joined_bytes([(codes, of) for (codes, _cells), of in zip(groups, texts, strict=True)])
        return
    for start in range(0, size, AT_ONCE):
        block = np.empty((min(AT_ONCE, size - start), len(groups)), dtype=object)
        for number, (codes, _cells) in enumerate(groups):
            block[:, number] = texts[number][codes[start : start + AT_ONCE]]
        yield b"".join(block.ravel().tolist())


def _joined_bytes(groups: Sequence[tuple[NDArray[np.intp], NDArray[Any]]]) -> Iterator[bytes]:
    """`joined_lines` of short texts, which lets other threads run: texts are filled up to one width with a byte that
    UTF-8 does not have, which is then left out."""
    import numpy as np

    tables = []
    for codes, texts in groups:
        width = max(map(len, texts))
        filled = b"".join(text.ljust(width, NO_TEXT) for text in texts)
        tables.append((codes, np.frombuffer(filled, dtype=np.uint8).reshape(len(texts), width)))
    for start in range(0, len(groups[0][0]), AT_ONCE):
        block = np.concatenate([table.take(codes[start : start + AT_ONCE], axis=0) for codes, table in tables], axis=1)
        yield block[block != NO_TEXT[0]].tobytes()


def _groups(columns: Sequence[CodedColumn]) -> Iterator[tuple[NDArray[np.intp], list[CodedCells]]]:
    """Columns side by side as one: codes (M,), and for each code the cells of these columns."""
    source = codes = columns[0].codes
    cells: list[CodedCells] = [(value,) for value in columns[0].values]
    for column in columns[1:]:
        if column.codes is source:
            cells = [(*row, value) for row, value in zip(cells, column.values, strict=True)]
            continue
        own = column.distinct() if len(set(map(_key, column.values))) <= FEW else column
        if len(own.values) == 1:
            cells = [(*row, own.values[0]) for row in cells]
            continue
        together = len(cells) * len(own.values) <= MOST_PAIRS
        if not together and len(set(cells)) <= FEW:
            codes, cells = _few(codes, cells)
            together = len(cells) * len(own.values) <= MOST_PAIRS
        if together:
            codes, pairs = combined_codes(codes, own.codes, len(own.values))
            cells = [(*cells[first], own.values[second]) for first, second in pairs]
        else:
            yield codes, cells
            codes, cells = own.codes, [(value,) for value in own.values]
        source = codes
    yield codes, cells


def _few(codes: NDArray[np.intp], cells: list[CodedCells]) -> tuple[NDArray[np.intp], list[CodedCells]]:
    few = CodedColumn(codes, cells).distinct()
    return few.codes, list(few.values)


def combined_codes(
    first: NDArray[np.intp], second: NDArray[np.intp], size: int
) -> tuple[NDArray[np.intp], list[tuple[int, int]]]:
    """One code (M,) for two, and by code the pair that it stands for; `second` is below `size`."""
    import numpy as np

    pair = first * size + second
    most = int(pair.max()) + 1 if len(pair) else 0
    if most > 1 << 24:  # too many to mark
        occurring, codes = np.unique(pair, return_inverse=True)
    else:
        is_there = np.zeros(most, dtype=bool)
        is_there[pair] = True
        occurring = np.flatnonzero(is_there)
        places = np.zeros(most, dtype=np.intp)
        places[occurring] = np.arange(len(occurring))
        codes = places[pair]
    return codes, [divmod(number, size) for number in occurring.tolist()]
