"""A file -> its rows, strictly: what cannot be read exactly is refused with its line, and nothing is replaced."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import BinaryIO, NamedTuple

from annotation.readers import containers
from annotation.readers.bounds import CellCount
from annotation.readers.codepages import CHOICES, codec_called, legacy
from annotation.readers.columnar import read_parquet
from annotation.readers.delimited import DELIMITERS, Dialect, likely_delimiter, read_delimited, read_delimited_blocks
from annotation.readers.encoding import PIECE, line_blocks, opened, text_lines, text_pieces
from annotation.readers.headings import columns_of, headed, note_addresses
from annotation.readers.jsontext import read_json, read_json_lines
from annotation.readers.mapping import Mapping
from annotation.readers.marks import MARKS, meant, speaks
from annotation.readers.problems import FormatError, Problem, Problems
from annotation.readers.rows import KEY_COLUMN, Block, Row, blocks_of
from annotation.readers.shaping import shaped
from annotation.readers.sheets import first_rows, read_workbook, sheets_of
from annotation.readers.unnamed import called, mentioned

FORMATS = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".xlsx": "xlsx",
    ".parquet": "parquet",
}
TOGETHER = 250  # rows
FIRST_ROWS = 12  # that are shown as they stand,
FIRST_LINES = 48  # and the lines that they may take

File = containers.File


class Sample(NamedTuple):
    """The head of a file: what ``mapping.guess`` needs and a preview shows."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    problems: Problems


def read(name: str, raw: bytes | BinaryIO, *, layout: Mapping | None = None, problems: Problems) -> Iterator[Row]:
    """Yield the rows of a file of any kind (told by its name, or by ``layout.format``), in bounded memory; of a gzip or
    zip those of all its members, one after the other.

    Never raises on bad input: a bad row is refused into ``problems`` and reading goes on; after a fault that makes the
    rest unreliable (wrong encoding, broken quoting, truncated JSON) the rows end.
    """
    layout = layout or Mapping()
    for inner, content in containers.members([(name, raw)], problems):
        yield from _read_member(inner, content, layout.of(inner), problems)


def read_blocks(name: str, raw: bytes | BinaryIO, *, layout: Mapping, problems: Problems) -> Iterator[Block]:
    """The rows of ``read``, those with the same columns together. Delimited files are read so from the start, unless
    the mapping makes other rows of theirs."""
    for inner, content in containers.members([(name, raw)], problems):
        said = layout.of(inner)
        if _is_delimited(inner, said) and not said.shape and not said.said_by_name(inner):
            yield from _read_delimited_member(inner, content, said, problems)
        else:
            yield from blocks_of(_read_member(inner, content, said, problems), TOGETHER)


def _note_layout(name: str, layout: Mapping, problems: Problems) -> None:
    """Note what is read in another way than the usual one."""
    codec = codec_called(layout.encoding) if layout.encoding else None
    if codec not in (None, "utf_8") and (layout.format or _kind(name)) not in {"xlsx", "parquet"}:
        problems.note(name, f"its text is read as {dict(CHOICES).get(codec or '', codec)}, not as UTF-8.")
    if (layout.header_row or 1) > 1 and is_tabular(name, layout):
        problems.note(name, f"the header is row {layout.header_row}; what stands above it is skipped.")


def _read_member(name: str, raw: bytes | BinaryIO, layout: Mapping, problems: Problems) -> Iterator[Row]:
    try:
        _note_layout(name, layout, problems)
        rows = headed(name, meant(_counted(name, _rows(name, raw, layout, problems))), layout, problems)
        yield from shaped(name, rows, layout, problems)
    except FormatError as error:
        problems.add(error.problem)


def _counted(name: str, rows: Iterator[Row]) -> Iterator[Row]:
    cells = CellCount(name)
    for row in rows:
        cells.count(row.line, len(row.fields))
        yield row


def _read_delimited_member(name: str, raw: bytes | BinaryIO, layout: Mapping, problems: Problems) -> Iterator[Block]:
    heading: tuple[str, ...] = ()
    cells = CellCount(name)
    try:
        _note_layout(name, layout, problems)
        lines, dialect = _delimited(name, raw, layout, problems)
        for block in read_delimited_blocks(name, lines, dialect, layout.header, problems):
            cells.count(block.lines[0] if block.lines else 0, len(block.columns), block.size)
            if not heading:
                note_addresses(name, heading := block.columns, layout, problems)
            yield Block.of(list(meant(block.rows()))) if speaks(heading) else block
    except FormatError as error:
        problems.add(error.problem)


def _rows(name: str, raw: bytes | BinaryIO, layout: Mapping, problems: Problems) -> Iterator[Row]:
    kind = layout.format or _format(name)
    if kind == "xlsx":
        return read_workbook(name, opened(raw), layout, problems)
    if kind == "parquet":
        return read_parquet(name, opened(raw), layout.ignore, problems)
    if kind == "json":
        return _json_rows(name, text_pieces(name, raw, layout.encoding), layout, problems)
    if kind == "jsonl":
        return read_json_lines(name, text_lines(name, raw, layout.encoding), problems)
    lines, dialect = _delimited(name, raw, layout, problems)
    return read_delimited(name, lines, dialect, layout.header, problems)


def peek(name: str, raw: bytes | BinaryIO, *, layout: Mapping | None = None, rows: int = 50) -> Sample:
    """The columns and first rows of a file; nested JSON columns appear as ``outer.inner``."""
    problems = Problems()
    head = tuple(islice(read(name, raw, layout=layout, problems=problems), rows))
    return Sample(columns_of(row.fields for row in head), head, problems)


def first_lines(
    name: str, raw: bytes | BinaryIO, layout: Mapping, top: tuple[str, list[str]] | None = None
) -> list[tuple[int, list[str]]]:
    """The first rows of a table as they stand, header or not, each with its number; none of what is no table.

    Where ``top`` is of that file (what `Problems` kept when it was read), the file is not opened again.
    """
    kind = layout.format or _kind(name)
    try:
        if kind == "xlsx":
            return first_rows(name, opened(raw), layout.sheet, FIRST_ROWS)
        if kind not in {"csv", "tsv"}:
            return []
        is_kept = top is not None and top[0] == name and bool(top[1])
        lines = top[1] if top and is_kept else list(islice(text_lines(name, raw, layout.encoding), FIRST_LINES))
    except FormatError:
        return []
    usual = "\t" if kind == "tsv" else _common_delimiter(lines)
    reader = csv.reader(
        lines,
        delimiter=layout.delimiter or usual,
        quoting=csv.QUOTE_MINIMAL if layout.quoting else csv.QUOTE_NONE,
    )
    rows: list[tuple[int, list[str]]] = []
    begun = 0
    with suppress(csv.Error):
        for cells in islice(reader, FIRST_ROWS):
            rows.append((begun + 1, cells))
            begun = reader.line_num
    return rows


def _common_delimiter(lines: list[str]) -> str:
    """The delimiter that most lines have, equally often."""

    def alike(delimiter: str) -> tuple[int, int]:
        counts = Counter(count for line in lines if (count := line.count(delimiter)))
        often, times = max(((times, count) for count, times in counts.items()), default=(0, 0))
        return often, times

    return max(DELIMITERS, key=alike)


def sheet_names(name: str, raw: bytes | BinaryIO, layout: Mapping) -> list[str]:
    """What the sheets of a workbook are called; none of another file, nor of one that can't be opened."""
    try:
        return sheets_of(name, opened(raw)) if (layout.format or _kind(name)) == "xlsx" else []
    except FormatError:
        return []


def guess_layout(name: str, raw: bytes | BinaryIO, said: Mapping) -> Mapping:
    """How a file seems to be laid out, as far as nothing is ``said`` of it: its encoding, which row its header is, and
    whether rows may lack their last cells."""
    layout = said.of(name)
    kind = layout.format or _kind(name)
    if not isinstance(raw, bytes) and not raw.seekable():
        return Mapping()
    if layout.encoding is None and kind in {"csv", "tsv", "jsonl", "json"}:
        try:
            layout = replace(layout, encoding=legacy(opened(raw).read(PIECE)))
        except FormatError:
            return Mapping()  # whoever reads it says what is wrong
    guessed = Mapping(encoding=layout.encoding if said.of(name).encoding is None else None)
    if layout.header or layout.header_row or kind not in {"csv", "tsv", "xlsx"}:
        return guessed
    rows = first_lines(name, raw, layout)
    row = _header_row(rows, is_ragged=kind == "xlsx")
    heading = next((cells for number, cells in rows if number == (row or 1)), [])
    # Mechanical Turk names the columns of a review that is yet to come.
    is_batch = kind == "csv" and heading[-2:] == ["Approve", "Reject"] and "AssignmentId" in heading
    return replace(guessed, header_row=row, short_rows=is_batch, ignore=_index(rows, row or 1))


def _header_row(rows: list[tuple[int, list[str]]], *, is_ragged: bool) -> int | None:
    """The row of the names, where rows of one cell each, such as a title, stand above it. ``is_ragged``: the blank
    cells at the end of a row are not told."""
    filled = [(number, cells, [cell for cell in cells if cell.strip()]) for number, cells in rows]
    above = next((place for place, (_number, _cells, said) in enumerate(filled) if len(said) > 1), 0)
    if not any(said for _number, _cells, said in filled[:above]) or len(filled) < above + 2:
        return None
    number, cells, names = filled[above]
    are_names = len(set(names)) == len(names) and not any(name.replace(".", "", 1).isdigit() for name in names)
    widths = {len(below) for _number, below, said in filled[above + 1 :] if said}
    is_even = max(widths, default=0) <= len(cells) if is_ragged else widths == {len(cells)}
    return number if are_names and is_even else None


def _index(rows: list[tuple[int, list[str]]], header_row: int) -> tuple[str, ...]:
    """The first column where it has no name and counts the rows from 0, as pandas writes its index."""
    heading, *below = [cells for number, cells in rows if number >= header_row and any(cells)] or [[]]
    numbers = [cells[0] if cells else "" for cells in below]
    is_index = bool(numbers) and numbers == [str(number) for number in range(len(numbers))]
    return (called(1),) if heading[:1] == [""] and is_index else ()


def is_tabular(name: str, layout: Mapping) -> bool:
    """Whether every row of the file has the same columns."""
    return (layout.format or _format(name)) in {"csv", "tsv", "xlsx", "parquet"}


def _is_delimited(name: str, layout: Mapping) -> bool:
    return (layout.format or _kind(name)) in {"csv", "tsv"}


def _kind(name: str) -> str | None:
    return next((kind for ending, kind in FORMATS.items() if name.lower().endswith(ending)), None)


def _format(name: str) -> str:
    if kind := _kind(name):
        return kind
    found = f"the name {name.rpartition('/')[2]}"
    expected = f"a name that ends in {', '.join(FORMATS)}, or format: NAME in the mapping"
    raise FormatError(Problem(name, None, None, found, expected, "format"))


def _kept(blocks: Iterator[list[str]], top: list[str]) -> Iterator[list[str]]:
    """The blocks as they are; their first lines are put into ``top``."""
    for block in blocks:
        top += block[: FIRST_LINES - len(top)]
        yield block


def _json_rows(name: str, pieces: Iterator[str], layout: Mapping, problems: Problems) -> Iterator[Row]:
    for line, key, fields in read_json(name, pieces, layout.records, problems):
        yield Row(line, {KEY_COLUMN: key, **fields} if key and not layout.records else fields)


def _delimited(
    name: str, raw: bytes | BinaryIO, layout: Mapping, problems: Problems
) -> tuple[Iterator[list[str]], Dialect]:
    """The lines of a delimited file, and how its cells are written."""
    blocks = line_blocks(name, raw, layout.encoding)
    if problems.top is None:
        problems.top = (name, [])
        blocks = _kept(blocks, problems.top[1])
    first = list(islice(blocks, 1))
    heading = next(islice(first[0], (layout.header_row or 1) - 1, None), "") if first else ""
    usual = "\t" if (layout.format or _kind(name)) == "tsv" else likely_delimiter(heading)
    # Who wrote the marks has quoted every line break.
    vouched = layout.line_breaks or heading.rstrip().endswith(f",{MARKS}")
    dialect = Dialect(
        delimiter=layout.delimiter or usual,
        quoting=layout.quoting,
        line_breaks=vouched,
        header_row=layout.header_row,
        short_rows=layout.short_rows,
        unnamed=mentioned(layout),
    )
    return chain(first, blocks), dialect
