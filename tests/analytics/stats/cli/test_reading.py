"""Files into frames: four formats, one table, and the line of everything that is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analytics.stats.cli.files import BrokenRowsError, RatingsFile, rendered_rows
from analytics.stats.core.tables import TableError


def source(tmp_path: Path, name: str, text: str, encoding: str = "utf-8") -> RatingsFile:
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return RatingsFile(str(path))


def broken_lines(origin: RatingsFile) -> list[int]:
    with pytest.raises(BrokenRowsError) as broken:
        origin.frame()
    return [line for line, _ in broken.value.broken]


def test_the_same_ratings_in_three_formats(tmp_path: Path) -> None:
    rows = [{"item": "a", "rater": "NA", "score": "2"}, {"item": "b, c", "rater": "r", "score": ""}]
    comma = source(tmp_path, "t.csv", 'item,rater,score\na,NA,2\n"b, c",r,\n')
    tab = source(tmp_path, "t.tsv", "item\trater\tscore\na\tNA\t2\nb, c\tr\t\n")
    lines = source(tmp_path, "t.jsonl", "\n".join(json.dumps(row) for row in rows))
    for origin in (comma, tab, lines):
        frame, _ = origin.frame()
        assert frame.to_dict("records") == rows


def test_a_byte_order_mark_and_carriage_returns_are_no_text(tmp_path: Path) -> None:
    frame, _ = source(tmp_path, "t.csv", "\ufeffitem,rater,score\r\na,1,2\r\n").frame()
    assert frame.to_dict("records") == [{"item": "a", "rater": "1", "score": "2"}]


def test_quotes_in_a_tsv_are_text(tmp_path: Path) -> None:
    frame, _ = source(tmp_path, "t.tsv", 'item\trater\tscore\nsay "x\t1\t2\nb\t1\t3\n').frame()
    assert frame["item"].tolist() == ['say "x', "b"]


def test_lines_are_counted_across_quoted_line_breaks(tmp_path: Path) -> None:
    _, lines = source(tmp_path, "t.csv", 'item,rater,score\n"two\nlines",1,2\n\nb,1,3\n').frame()
    assert [lines(0), lines(1)] == [2, 5]


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("item,rater,score\na,1\nb,1,2\nc,1,2,3\n", [2, 4]),
        ('item,rater,score\n"a\nb",1\nc,1,2\n', [2]),
        ('item,rater,score\na,1,2\n"c,1,2\n', [3]),
    ],
)
def test_broken_rows_of_csv(tmp_path: Path, text: str, bad: list[int]) -> None:
    assert broken_lines(source(tmp_path, "t.csv", text)) == bad


def test_broken_lines_of_jsonl(tmp_path: Path) -> None:
    assert broken_lines(source(tmp_path, "t.jsonl", '{"item": 1}\n{"item"\n\n[1]\n')) == [2, 4]


def test_other_encodings_are_named_by_line(tmp_path: Path) -> None:
    assert broken_lines(source(tmp_path, "t.csv", "item,rater,score\na,1,2\nõ,1,2\n", "latin-1")) == [3]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "", "empty"),
        ("t.csv", "item,item,score\n", "same name"),
        ("t.xlsx", "x", "should end in"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        source(tmp_path, name, text).frame()


def test_names_of_columns_and_lists_of_names_are_no_formulas_in_csv() -> None:
    header, row = rendered_rows([{"statistic": "bias", "raters": ["=a", "b"], "=cmd": "＝1"}], "csv").splitlines()
    assert header.endswith(",'=cmd")
    assert row.endswith(",'＝1")
    assert '"\'=a,b"' in row
