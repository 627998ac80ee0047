"""Files as no program would write them: rows of whole files with cells that Hypothesis thinks up, written anew.

How many records there are is known, because we write them ourselves: with csv, json, gzip, openpyxl and pyarrow.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from openpyxl.utils.exceptions import IllegalCharacterError

from annotation.readers.problems import Problems
from annotation.readers.reading import read_rows
from bench.mutations import Original, as_parquet, as_workbook

MOST_ROWS = 24
MOST_EDITS = 5
NASTY = (
    *("", " ", "N/A", "-1", "1e5", "2.9E+15", "NaN", "inf", "1,5", "١٢", "0x10", "=1+1", "'", '"', '""', "a,b", "--"),
    *("a;b\tc|d", "line\nbreak", "cr\r\nlf", "\r", "\0", "\ufeff", "\u200f\u202e", "a\u0308", "\U0001f600", "\ud800"),
    *("\\u0000", "[1, 2]", '{"a": 1}', "None", "null", "true", "x" * 300, "\u2028", "\x1b", "\x85", "𝟏", "１"),
)
CELLS = st.one_of(
    st.sampled_from(NASTY), st.text(max_size=12), st.integers(-(2**70), 2**70).map(str), st.floats().map(str)
)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Imagined:
    """A file of so many records, made like ``whole``."""

    whole: Original
    raw: bytes
    records: int


def thought_up(wholes: Sequence[Original], count: int, number: int) -> list[Imagined]:
    """So many files, the same for the same number."""
    found: list[Imagined] = []

    @seed(number)
    @settings(
        max_examples=2 * count, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=HealthCheck
    )
    @given(imagined(wholes))
    def think(file: Imagined | None) -> None:
        if file is not None and len(found) < count:
            found.append(file)

    think()
    return found


def imagined(wholes: Sequence[Original]) -> st.SearchStrategy[Imagined | None]:
    """Files like some of ``wholes`` with a few edits; None where their kind of file cannot hold what was imagined."""
    plain = [whole for whole in wholes if whole.kind.partition(".")[0] in _WRITERS]
    kept = {whole.name: _rows(whole) for whole in plain}

    @st.composite
    def file(draw: st.DrawFn) -> Imagined | None:
        whole = draw(st.sampled_from(plain))
        rows = [dict(row) for row in kept[whole.name]]
        for _ in range(draw(st.integers(0, MOST_EDITS))):
            draw(st.sampled_from(_EDITS))(draw, rows)
        return _written(whole, rows)

    return file()


def _rows(whole: Original) -> list[Row]:
    return [row.fields for row in read_rows(whole.name, whole.raw, layout=whole.layout, problems=Problems())][
        :MOST_ROWS
    ]


def _cell(draw: st.DrawFn, rows: list[Row]) -> None:
    row = draw(st.sampled_from(rows))
    row[draw(st.sampled_from(list(row)))] = draw(CELLS)


def _blank(draw: st.DrawFn, rows: list[Row]) -> None:
    row = draw(st.sampled_from(rows))
    row[draw(st.sampled_from(list(row)))] = ""


def _borrowed(draw: st.DrawFn, rows: list[Row]) -> None:
    one, other = draw(st.sampled_from(rows)), draw(st.sampled_from(rows))
    column = draw(st.sampled_from(list(one)))
    one[column] = other.get(column, "")


def _doubled(draw: st.DrawFn, rows: list[Row]) -> None:
    rows.insert(draw(st.integers(0, len(rows))), dict(draw(st.sampled_from(rows))))


def _gone(draw: st.DrawFn, rows: list[Row]) -> None:
    if len(rows) > 1:
        rows.pop(draw(st.integers(0, len(rows) - 1)))


def _moved(draw: st.DrawFn, rows: list[Row]) -> None:
    rows.insert(draw(st.integers(0, len(rows) - 1)), rows.pop())


def _without(draw: st.DrawFn, rows: list[Row]) -> None:
    column = draw(st.sampled_from(list(rows[0])))
    if all(len(row) > 1 for row in rows):
        for row in rows:
            row.pop(column, None)


_EDITS: tuple[Callable[[st.DrawFn, list[Row]], None], ...] = (
    *(_cell, _cell, _cell, _blank, _borrowed, _doubled, _gone, _moved, _without),
)


# --- written anew ---------------------------------------------------------------------------------------------------
def _written(whole: Original, rows: list[Row]) -> Imagined | None:
    kind, _dot, packed = whole.kind.partition(".")
    try:
        raw = _WRITERS[kind](rows, whole)
    except (IllegalCharacterError, UnicodeEncodeError):
        return None
    return Imagined(whole, gzip.compress(raw, mtime=0) if packed else raw, len(rows)) if raw else None


def _delimited(rows: list[Row], whole: Original) -> bytes:
    tab, layout = "tsv" in whole.kind, whole.layout
    stream = io.StringIO(newline="")
    if not layout.quoting:
        # Nothing can be quoted: what would need it becomes a space, as whoever writes such a file has to see to.
        rows = [{name: " ".join(_said(value).split()) for name, value in row.items()} for row in rows]
    quoting: Any = csv.QUOTE_MINIMAL if layout.quoting else csv.QUOTE_NONE
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(
        stream, delimiter="\t" if tab else ",", quoting=quoting, quotechar='"' if layout.quoting else None
    )
    writer.writerows([] if layout.header else [columns])
    writer.writerows([_said(row.get(name, "")) for name in columns] for row in rows)
    return stream.getvalue().encode("utf-8", "surrogatepass")


def _said(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _lines(rows: list[Row], whole: Original) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "surrogatepass")


_WRITERS: dict[str, Callable[[list[Row], Original], bytes]] = {
    "csv": _delimited,
    "tsv": _delimited,
    "jsonl": _lines,
    "xlsx": lambda rows, _whole: as_workbook(rows),
    "parquet": lambda rows, _whole: as_parquet(rows),
}
