"""Each refusal with its file, line and column, what was found and what was expected; and no file that others would
load with fewer rows is taken."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from annotation.readers.items import parse_items
from annotation.readers.mapping import Mapping
from annotation.readers.problems import SHOWN_AT_MOST, Problems
from annotation.readers.ratings import parse_ratings
from annotation.readers.reading import read_rows

ITEMS = Mapping(columns={"id": "id", "language": "language", "answer": "answer"})
LONG = Mapping(columns={"i": "item", "r": "rater", "c": "criterion", "s": "score"})
HEAD = b"id,language,answer\n"
WHOLE = HEAD + b"x,et,a\ny,et,b\n"


def workbook(*rows: Sequence[Any]) -> bytes:
    made, stream = Workbook(), io.BytesIO()
    for row in rows:
        made.active.append(row)
    made.save(stream)
    return stream.getvalue()


def parquet() -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"id": ["x"], "language": ["et"], "answer": ["a"]}), stream)
    return stream.getvalue()


def archive() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr("a.csv", WHOLE)
    return stream.getvalue()


COLUMNS = ["id", "language", "answer"]
SHEET = workbook(COLUMNS, ["x", "et", "a"])
RECORD = b'{"id": "x", "language": "et", "answer": "a"}'
# What is wrong: the file's name and content; line, column; what is found, what is expected, each in part.
REFUSED: dict[str, tuple[str, bytes, int | None, str | None, str, str]] = {
    "a quote never closed": ("a.csv", HEAD + b'x,et,"a\ny,et,b\n', 2, None, "never closed", "to be closed"),
    "a quote inside quotes": ("a.csv", HEAD + b'x,et,"a"b"\n', 2, None, "after a closing quote", 'doubled ("")'),
    "records merged": ("a.csv", HEAD + b'x,et,"a\ny,et,b"\nz,et,c\n', 2, None, "lines 2 to 3", "line_breaks: on"),
    "a cell too few": ("a.csv", HEAD + b"x,et\n", 2, None, "2 cells", "3 cells as in the header"),
    "a cell too many": ("a.csv", HEAD + b"x,et,a,b\n", 2, None, "4 cells", "3 cells as in the header"),
    "a column twice": ("a.csv", b"id,id,answer\nx,et,a\n", 1, "id", "more than once", "different names"),
    "a cut CSV": ("a.csv", HEAD + b"x,et,a\ny,e", 3, None, "2 cells in “y,e”", "3 cells"),
    "a cut TSV": ("a.tsv", b"id\tlanguage\tanswer\nx\tet\ta\ny", 3, None, "1 cell", "3 cells"),
    "a cut JSON": ("a.json", b"[\n" + RECORD + b',\n{"id": "y', 3, "character 10", "end of the file", "the rest of it"),
    "a cut JSONL": ("a.jsonl", RECORD + b'\n{"id": "y', 2, "character 8", "end of the line", "one whole JSON object"),
    "a cut gzip": ("a.csv.gz", gzip.compress(WHOLE * 99)[:-12], None, None, "continues", "the rest of it"),
    "a cut zip": ("a.zip", archive()[:-30], None, None, "broken compressed file", "unpacks without an error"),
    "a cut workbook": ("a.xlsx", SHEET[:-40], None, None, "one that was cut", "without repairing it"),
    "a cut Parquet": ("a.parquet", parquet()[:-9], None, None, "broken Parquet file", "that is whole"),
    "Windows-1252": ("a.csv", HEAD + "x,et,Jää – “jah”\n".encode("cp1252"), 2, "byte 7", "Jää – “jah”", "cp1252"),
    "Windows-1251": ("a.csv", HEAD + "x,ru,Привет мир\n".encode("cp1251"), 2, "byte 6", "Привет", "encoding: cp1251"),
    "UTF-16": ("a.csv", WHOLE.decode().encode("utf-16-le"), 1, None, "UTF-16LE", "encoding: utf-16-le"),
    "a zip called CSV": ("a.csv", archive(), None, None, "a zip archive", "the ending .zip"),
    "an unknown kind": ("a.doc", b"x", None, None, "the name a.doc", "format: NAME in the mapping"),
    "nothing": ("a.csv", b"", None, None, "an empty file", "a header line"),
    "an id twice": ("a.csv", HEAD + b"x,et,a\nx,et,b\n", 3, "id", "another item in a.csv, line 2", "an id of its own"),
    "a rounded id": ("a.csv", HEAD + b"2.9E+15,et,a\n", 2, "id", "“2.9E+15”", "a spreadsheet has rounded it"),
    "a longer one": ("a.csv", HEAD + b"1.23457E+15,et,a\n", 2, "id", "“1.23457E+15”", "a spreadsheet has rounded it"),
    "a month of an id": ("a.csv", HEAD + b"Mar-01,et,a\n", 2, "id", "“Mar-01”", "changed it to a date"),
    "a day of an id": ("a.csv", HEAD + b"1-Mar,et,a\n", 2, "id", "“1-Mar”", "changed it to a date"),
    "a number for an id": ("a.xlsx", workbook(COLUMNS, [0.5, "et", "a"]), 2, "id", "“0.5”", "as text"),
    "a NUL in text": ("a.csv", HEAD + b"x,et,a\0b\n", 2, "byte 7", "a NUL character (U+0000)", "without NUL"),
    "a NUL spelt out": ("a.json", b'[{"id": "x\\u0000"}]', 1, "[0].id", "a NUL character (U+0000)", "without NUL"),
    "half a pair": ("a.jsonl", b'{"id": "a\\ud83d"}', 1, "id", "half a surrogate pair (U+D83D)", "whole"),
    "half a pair inside": ("a.jsonl", b'{"x": ["\\\\", "\\udc00"]}', 1, "x", "half a surrogate pair (U+DC00)", "whole"),
    "a key twice": ("a.json", b'[{"id": "x", "id": "y"}]', 1, "[0].id", "the key “id” twice", "each key once"),
    "no language": ("a.csv", HEAD + b"x,,a\n", 2, "language", "nothing", "a language tag such as et"),
    "no such language": ("a.csv", HEAD + b"x,estonian!,a\n", 2, "language", "“estonian!”", "a language tag"),
    "no content": ("a.csv", HEAD + b"x,et,\n", 2, None, "an item without content", "allow_empty: on"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", REFUSED)
def test_a_refused_file_says_where_and_why(wrong: str) -> None:
    name, content, line, column, found, expected = REFUSED[wrong]
    parsed = parse_items([(name, content)], ITEMS)
    problem = next(iter(parsed.problems))
    assert (problem.file, problem.line, problem.column) == (name, line, column)
    assert found in problem.found
    assert expected in problem.expected
    assert str(problem) == f"{problem.place}: found {problem.found}; expected {problem.expected}."


RATINGS = {
    "a contradiction": (b"x,A,f,1\nx,A,f,2\n", 3, "s", "2 where line 2 has 1", "one answer by one rater"),
    "a word": (b"x,A,f,Yes\n", 2, "s", "“Yes”", "values: {score: {Yes: 1}}"),
    "a decimal comma": (b'x,A,f,"2,5"\n', 2, "s", "“2,5”", "a number for score"),
    "a rounded rater": (b"x,7.2E+4,f,1\n", 2, "r", "“7.2E+4”", "the whole rater"),
    "no rater": (b"x,,f,1\n", 2, "r", "nothing", "the rater"),
    "no criterion": (b"x,A,,1\n", 2, "c", "nothing", "the criterion"),
}


@pytest.mark.parametrize("wrong", RATINGS)
def test_a_refused_rating_says_where_and_why(wrong: str) -> None:
    content, line, column, found, expected = RATINGS[wrong]
    (problem,) = parse_ratings([("r.csv", b"i,r,c,s\n" + content)], LONG).problems
    assert (problem.file, problem.line, problem.column) == ("r.csv", line, column)
    assert found in problem.found
    assert expected in problem.expected


def test_a_date_may_be_what_an_answer_or_a_criterion_is_called() -> None:
    mapping = Mapping(columns=LONG.columns, values={"item": {"Mar-01": "3-1"}})
    parsed = parse_ratings([("r.csv", b"i,r,c,s\nMar-01,A,Mar-01,1\n")], mapping)
    assert [(row.item, row.criterion) for row in parsed.rows] == [("3-1", "Mar-01")]


def test_every_bad_row_counts_and_the_first_are_shown() -> None:
    rows = b"".join(b"%d,et,\n" % number for number in range(SHOWN_AT_MOST + 50))
    problems = parse_items([("a.csv", HEAD + rows)], ITEMS).problems
    assert (problems.refused, len(problems.shown), problems.more) == (SHOWN_AT_MOST + 50, SHOWN_AT_MOST, 50)
    assert [problem.line for problem in problems] == list(range(2, SHOWN_AT_MOST + 2))
    assert problems.sentences()[-1] == "... and 50 more."


def by_csv(text: str) -> int:
    """The rows that Python's own reader finds."""
    return sum(1 for row in csv.reader(io.StringIO(text, newline="")) if row) - 1


def by_pandas(text: str) -> int:
    """The rows that pandas loads when it is told to skip what it can't read."""
    return len(pd.read_csv(io.StringIO(text, newline=""), dtype=str, engine="python", on_bad_lines="skip"))


word = st.text("ab ;'", min_size=1, max_size=5).filter(str.strip)
damage = st.lists(st.tuples(st.floats(0, 0.999), st.sampled_from(['"', ",", "", "\n", '""'])), min_size=1, max_size=3)


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(cells=st.lists(st.tuples(word, word), min_size=2, max_size=6), quoted=st.booleans(), edits=damage)
def test_what_others_would_load_with_fewer_rows_is_refused(
    cells: list[tuple[str, str]], quoted: bool, edits: list[tuple[float, str]]
) -> None:
    """A character put in or (where it is empty) taken out, up to three times."""
    stream = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    table = [["n", "text", "more"], *([str(number), *row] for number, row in enumerate(cells))]
    csv.writer(stream, quoting=quoting, lineterminator="\n").writerows(table)
    whole = stream.getvalue()
    first, text = whole.index("\n") + 1, whole
    for place, put in edits:
        at = first + int(place * (len(text) - first))
        text = text[:at] + put + text[at + (not put) :]
    problems = Problems()
    taken = len(list(read_rows("a.csv", text.encode(), problems=problems)))
    for load in (by_csv, by_pandas):
        try:
            loaded = load(text)
        except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error):
            continue  # loads nothing at all
        assert problems or taken >= max(loaded, len(cells)), text
