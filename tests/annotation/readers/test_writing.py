"""Files that are written: exact, harmless to spreadsheets, and refused by name where a format has no room."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO, StringIO
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape

from analytics.stats.core.spreadsheets import FORMULA_STARTS
from annotation.readers.mapping import Mapping
from annotation.readers.problems import FormatError, Problems
from annotation.readers.reading import MARKS_COLUMN, read_rows, restored_fields
from annotation.writers import xlsx
from annotation.writers.formats import FORMATS, pieces
from annotation.writers.tables import Column, Table, number

parquet = pytest.importorskip("pyarrow.parquet")
STARTS = st.sampled_from(
    [*sorted(FORMULA_STARTS), "'", "''=", "", "a", "\ufeff", "\u202e", "👩‍🔬", "e\u0301", "ـ", "\r\n"]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NASTY = st.builds(lambda start, rest: start + rest, STARTS, TEXT)
SPELLING = ["_", "x", "x0041", "_x0041_", "_x005F_", "_xD83D_", "\r", "\r\n", "\n", "\t", "\x0b", "\x7f"]
OTHERS = ["\u0085", "\u2028", "\ufffe", "\uffff", " ", "]]>", "&lt;", "😀"]
SPELLED = st.lists(st.sampled_from([*SPELLING, *OTHERS])).map("".join)
CALM = settings(deadline=None)  # pyarrow is imported by the first file that needs it


def written(kind: str, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> bytes:
    return b"".join(pieces(Table("table", tuple(columns), rows), kind))


def cells(content: bytes) -> list[list[str]]:
    return list(csv.reader(StringIO(content.decode(), newline=""), strict=True))


@CALM
@given(st.lists(st.tuples(NASTY, st.none() | NASTY), max_size=5))
def test_csv_starts_no_cell_as_a_formula_and_gives_every_text_back(rows: list[tuple[str, str | None]]) -> None:
    columns = (Column("said"), Column("context", optional=True))
    header, *body = cells(written("csv", columns, rows))
    assert header == ["said", "context", MARKS_COLUMN]
    assert not any(cell[:1] in FORMULA_STARTS for row in body for cell in row[:2] if cell)
    assert [tuple(restored_fields(dict(zip(header, row, strict=True))).values()) for row in body] == rows


@CALM
@given(st.lists(NASTY, max_size=5))
def test_no_cell_of_a_workbook_is_a_formula(texts: list[str]) -> None:
    content = written("xlsx", [Column("said")], [(text,) for text in texts])
    found = [row[0] for row in openpyxl.load_workbook(BytesIO(content)).active.iter_rows(min_row=2)]  # type: ignore[union-attr]
    assert [cell.data_type for cell in found if cell.value is not None] == [
        "s" for cell in found if cell.value is not None
    ]
    assert len(found) == len(texts)


@CALM
@given(st.lists(SPELLED, min_size=1, max_size=5))
def test_a_workbook_gives_every_text_back_to_us_and_to_others(texts: list[str]) -> None:
    """Where the standard has no character: to whoever undoes its spelling, as Excel does on opening."""
    content = written("xlsx", [Column("said"), Column("n", "integer")], [(text, 1) for text in texts])
    problems = Problems()
    rows = [row.fields["said"] for row in read_rows("a.xlsx", content, layout=Mapping(), problems=problems)]
    assert (rows, problems.sentences()) == (texts, [])
    sheet = openpyxl.load_workbook(BytesIO(content)).active
    assert [unescape(row[0].value or "") for row in sheet.iter_rows(min_row=2)] == texts  # type: ignore[union-attr]


@CALM
@given(st.lists(st.tuples(NASTY, st.floats(allow_nan=False, allow_infinity=False) | st.none()), max_size=5))
def test_jsonl_and_parquet_keep_text_and_numbers(rows: list[tuple[str, float | None]]) -> None:
    columns = (Column("said"), Column("score", "number"))
    assert [tuple(json.loads(line).values()) for line in written("jsonl", columns, rows).splitlines()] == rows
    table = parquet.read_table(BytesIO(written("parquet", columns, rows)))
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


@pytest.mark.parametrize(
    ("value", "text"), [(2.0, "2"), (-0.5, "-0.5"), (None, ""), (0.1, "0.1"), (1e300, "1e+300"), (100, "100")]
)
def test_a_number_stays_a_number(value: float | None, text: str) -> None:
    assert number(value) == text


def test_a_negative_score_is_no_formula() -> None:
    assert cells(written("csv", [Column("score", "number")], [(-1.0,)]))[1] == ["-1", ""]


def test_every_kind_of_column_is_written_in_every_format() -> None:
    moment = datetime(2026, 5, 4, 12, tzinfo=UTC)
    row = ("t", "w", 1.5, 2, True, moment, [{"speaker": "a", "text": "b"}], ["p", "q"], {"k": 1})
    kinds = ("text", "word", "number", "integer", "switch", "moment", "turns", "texts", "object")
    columns = [Column(kind, kind) for kind in kinds]  # type: ignore[arg-type]
    nothing = (None,) * len(kinds)
    for kind in FORMATS:
        assert written(kind, columns, [row, nothing])
    assert cells(written("csv", columns, [row]))[1] == [
        "t", "w", "1.5", "2", "true", "2026-05-04T12:00:00Z",
        '[{"speaker":"a","text":"b"}]', '["p","q"]', '{"k":1}', "",
    ]  # fmt: skip


def test_a_text_that_no_cell_has_room_for_is_refused_by_place() -> None:
    long = "😀" * 16_384  # two units each
    with pytest.raises(FormatError) as refused:
        written("xlsx", [Column("a"), Column("rationale")], [("", "short"), ("", long)])
    assert str(refused.value) == (
        "table.xlsx, line 3, rationale: found 32,768 characters; expected at most 32,767, which is what a cell holds; "
        "take JSONL, CSV or Parquet."
    )
    assert written("xlsx", [Column("rationale")], [(long[:-1],)])


def test_rows_beyond_the_last_of_a_sheet_go_on_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "MOST_SHEET_ROWS", 4)
    book = openpyxl.load_workbook(BytesIO(written("xlsx", [Column("n", "integer")], [(n,) for n in range(7)])))
    assert [[row[0] for row in sheet.iter_rows(values_only=True)] for sheet in book] == [
        ["n", 0, 1, 2],
        ["n", 3, 4, 5],
        ["n", 6],
    ]
    assert book.sheetnames == ["table", "table 2", "table 3"]


def test_the_same_table_is_the_same_file() -> None:
    for kind in FORMATS:
        assert written(kind, [Column("a")], [("b",)]) == written(kind, [Column("a")], [("b",)])
