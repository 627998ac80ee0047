"""A file -> its rows, strictly: what cannot be read exactly is refused with its line, and nothing is replaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple

from annotation.formats.delimited import Dialect, likely_delimiter, read_delimited
from annotation.formats.encoding import text_lines, whole_text
from annotation.formats.jsontext import read_json, read_json_lines
from annotation.formats.mapping import Mapping
from annotation.formats.problems import FormatError, Problem, Problems
from annotation.formats.rows import KEY_COLUMN, Row
from annotation.formats.shaping import shaped

File = tuple[str, bytes | BinaryIO]

FORMATS = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
}


class Sample(NamedTuple):
    """The head of a file: what ``mapping.guess`` needs and a preview shows."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    problems: Problems


def read(name: str, raw: bytes | BinaryIO, *, layout: Mapping | None = None, problems: Problems) -> Iterator[Row]:
    """Yield the rows of a JSON, JSONL, CSV or TSV file (told by its name, or by ``layout.format``).

    Never raises on bad input: a bad row is refused into ``problems`` and reading goes on; after a fault that makes the
    rest unreliable (wrong encoding, broken quoting, truncated JSON) the rows end.
    """
    layout = layout or Mapping()
    try:
        yield from shaped(name, _rows(name, raw, layout, problems), layout, problems)
    except FormatError as error:
        problems.add(error.problem)


def _rows(name: str, raw: bytes | BinaryIO, layout: Mapping, problems: Problems) -> Iterator[Row]:
    kind = layout.format or _format(name)
    if kind == "json":
        yield from _json_rows(name, whole_text(name, raw), layout, problems)
    elif kind == "jsonl":
        yield from (Row(*row) for row in read_json_lines(name, text_lines(name, raw), problems))
    else:
        yield from _delimited_rows(name, text_lines(name, raw), kind, layout, problems)


def peek(name: str, raw: bytes | BinaryIO, *, layout: Mapping | None = None, rows: int = 50) -> Sample:
    """The columns and first rows of a file; nested JSON columns appear as ``outer.inner``."""
    problems = Problems()
    head = tuple(islice(read(name, raw, layout=layout, problems=problems), rows))
    return Sample(columns_of(row.fields for row in head), head, problems)


def columns_of(rows: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The columns of some rows in the order in which they appear, objects opened one level deep."""
    columns: dict[str, None] = {}
    for fields in rows:
        for name, value in fields.items():
            inner = [f"{name}.{key}" for key in value] if isinstance(value, dict) else [name]
            columns.update(dict.fromkeys(inner))
    return tuple(columns)


def is_tabular(name: str, layout: Mapping) -> bool:
    """Whether every row of the file has the same columns."""
    return (layout.format or _format(name)) in {"csv", "tsv"}


def _format(name: str) -> str:
    for ending, kind in FORMATS.items():
        if name.lower().endswith(ending):
            return kind
    found = f"the name {name.rpartition('/')[2]}"
    expected = f"a name that ends in {', '.join(FORMATS)}, or format: NAME in the mapping"
    raise FormatError(Problem(name, None, None, found, expected, "format"))


def _json_rows(name: str, text: str, layout: Mapping, problems: Problems) -> Iterator[Row]:
    for line, key, fields in read_json(name, text, layout.records, problems):
        yield Row(line, {KEY_COLUMN: key, **fields} if key and not layout.records else fields)


def _delimited_rows(name: str, lines: Iterator[str], kind: str, layout: Mapping, problems: Problems) -> Iterator[Row]:
    first = list(islice(lines, 1))
    usual = "\t" if kind == "tsv" else likely_delimiter("".join(first))
    dialect = Dialect(layout.delimiter or usual, layout.quoting, layout.line_breaks)
    rows = read_delimited(name, chain(first, lines), dialect, layout.header, problems)
    yield from (Row(*row) for row in rows)
