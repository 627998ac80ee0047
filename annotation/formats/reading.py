"""A file -> its rows, strictly: what cannot be read exactly is refused with its line, and nothing is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import BinaryIO, NamedTuple

from annotation.formats import containers
from annotation.formats.columnar import read_parquet
from annotation.formats.delimited import Dialect, likely_delimiter, read_delimited
from annotation.formats.encoding import line_blocks, opened, text_lines, text_pieces
from annotation.formats.headings import columns_of, headed
from annotation.formats.jsontext import read_json, read_json_lines
from annotation.formats.mapping import Mapping
from annotation.formats.marks import MARKS, meant
from annotation.formats.problems import FormatError, Problem, Problems
from annotation.formats.rows import KEY_COLUMN, Row
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
        said = layout.of(inner)
        try:
            rows = headed(inner, meant(_rows(inner, content, said, problems)), said, problems)
            yield from shaped(inner, rows, said, problems)
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
    return _delimited_rows(name, line_blocks(name, raw, layout.encoding), kind, layout, problems)


def peek(name: str, raw: bytes | BinaryIO, *, layout: Mapping | None = None, rows: int = 50) -> Sample:
    """The columns and first rows of a file; nested JSON columns appear as ``outer.inner``."""
    problems = Problems()
    head = tuple(islice(read(name, raw, layout=layout, problems=problems), rows))
    return Sample(columns_of(row.fields for row in head), head, problems)


def is_tabular(name: str, layout: Mapping) -> bool:
    """Whether every row of the file has the same columns."""
    return (layout.format or _format(name)) in {"csv", "tsv", "xlsx", "parquet"}


def _format(name: str) -> str:
    for ending, kind in FORMATS.items():
        if name.lower().endswith(ending):
            return kind
    found = f"the name {name.rpartition('/')[2]}"
    expected = f"a name that ends in {', '.join(FORMATS)}, or format: NAME in the mapping"
    raise FormatError(Problem(name, None, None, found, expected, "format"))


def _json_rows(name: str, pieces: Iterator[str], layout: Mapping, problems: Problems) -> Iterator[Row]:
    for line, key, fields in read_json(name, pieces, layout.records, problems):
        yield Row(line, {KEY_COLUMN: key, **fields} if key and not layout.records else fields)


def _delimited_rows(
    name: str, blocks: Iterator[list[str]], kind: str, layout: Mapping, problems: Problems
) -> Iterator[Row]:
    first = list(islice(blocks, 1))
    usual = "\t" if kind == "tsv" else likely_delimiter(first[0][0] if first else "")
    # Who wrote the marks has quoted every line break.
    vouched = layout.line_breaks or bool(first and first[0][0].rstrip().endswith(f",{MARKS}"))
    dialect = Dialect(layout.delimiter or usual, layout.quoting, vouched)
    return read_delimited(name, chain(first, blocks), dialect, layout.header, problems)
