"""A file -> its rows, strictly: what cannot be read exactly is refused with its line, and nothing is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import BinaryIO, NamedTuple

from annotation.formats import containers
from annotation.formats.bounds import CellCount
from annotation.formats.columnar import read_parquet
from annotation.formats.delimited import Dialect, likely_delimiter, read_delimited, read_delimited_blocks
from annotation.formats.encoding import line_blocks, opened, text_lines, text_pieces
from annotation.formats.headings import columns_of, headed, note_people
from annotation.formats.jsontext import read_json, read_json_lines
from annotation.formats.mapping import Mapping
from annotation.formats.marks import MARKS, meant, speaks
from annotation.formats.problems import FormatError, Problem, Problems
from annotation.formats.rows import KEY_COLUMN, Block, Row, blocks_of
from annotation.formats.shaping import shaped
from annotation.formats.sheets import read_workbook

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


def _read_member(name: str, raw: bytes | BinaryIO, layout: Mapping, problems: Problems) -> Iterator[Row]:
    try:
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
        lines, dialect = _delimited(name, raw, layout)
        for block in read_delimited_blocks(name, lines, dialect, layout.header, problems):
            cells.count(block.lines[0] if block.lines else 0, len(block.columns), block.size)
            if not heading:
                note_people(name, heading := block.columns, layout, problems)
            yield Block.of(list(meant(block.rows()))) if speaks(heading) else block
    except FormatError as error:
        problems.add(error.problem)


def _rows(name: str, raw: bytes | BinaryIO, layout: Mapping, problems: Problems) -> Iterator[Row]:
    kind = layout.format or _format(name)
    if kind == "xlsx":
        return read_workbook(name, opened(raw), layout.sheet, layout.header, problems)
    if kind == "parquet":
        return read_parquet(name, opened(raw), layout.ignore, problems)
    if kind == "json":
        return _json_rows(name, text_pieces(name, raw, layout.encoding), layout, problems)
    if kind == "jsonl":
        return read_json_lines(name, text_lines(name, raw, layout.encoding), problems)
    lines, dialect = _delimited(name, raw, layout)
    return read_delimited(name, lines, dialect, layout.header, problems)


def peek(name: str, raw: bytes | BinaryIO, *, layout: Mapping | None = None, rows: int = 50) -> Sample:
    """The columns and first rows of a file; nested JSON columns appear as ``outer.inner``."""
    problems = Problems()
    head = tuple(islice(read(name, raw, layout=layout, problems=problems), rows))
    return Sample(columns_of(row.fields for row in head), head, problems)


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


def _json_rows(name: str, pieces: Iterator[str], layout: Mapping, problems: Problems) -> Iterator[Row]:
    for line, key, fields in read_json(name, pieces, layout.records, problems):
        yield Row(line, {KEY_COLUMN: key, **fields} if key and not layout.records else fields)


def _delimited(name: str, raw: bytes | BinaryIO, layout: Mapping) -> tuple[Iterator[list[str]], Dialect]:
    """The lines of a delimited file, and how its cells are written."""
    blocks = line_blocks(name, raw, layout.encoding)
    first = list(islice(blocks, 1))
    usual = "\t" if (layout.format or _kind(name)) == "tsv" else likely_delimiter(first[0][0] if first else "")
    # Who wrote the marks has quoted every line break.
    vouched = layout.line_breaks or bool(first and first[0][0].rstrip().endswith(f",{MARKS}"))
    return chain(first, blocks), Dialect(layout.delimiter or usual, layout.quoting, vouched)
