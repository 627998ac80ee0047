"""CSV and TSV: what is read is exact, and what is doubtful is refused with its line."""

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.readers.csv import CsvDialect, read_csv, read_csv_blocks
from annotation.readers.mapping import Mapping
from annotation.readers.problems import FormatError, Problems
from annotation.readers.reading import read_blocks, read_rows
from annotation.readers.rows import FileRow


def rows(text: str | bytes, name: str = "a.csv", **layout: object) -> tuple[list[tuple[int, dict[str, str]]], Problems]:
    problems = Problems()
    raw = text.encode() if isinstance(text, str) else text
    taken = [tuple(row) for row in read_rows(name, raw, layout=Mapping(**layout), problems=problems)]
    return taken, problems


def refused(text: str | bytes, name: str = "a.csv", **layout: object) -> tuple[str, int | None]:
    """The code and line of the only problem of a file."""
    _, problems = rows(text, name, **layout)
    (problem,) = problems
    return problem.code, problem.line


def test_text_survives_byte_for_byte() -> None:
    cell = "one\r\ntwo\u200f \u0640 e\u0301 \u200d👩\u200d👧 \u2028 \x0b, “,” ''"
    taken, problems = rows('\ufeffid,text\r\n1,"' + cell + '"\r\n2, spaced \r\n')
    assert not problems
    assert taken == [(2, {"id": "1", "text": cell}), (4, {"id": "2", "text": " spaced "})]


def test_quotes_inside_quotes_are_doubled() -> None:
    assert rows('a,b\n"say ""hi""",2\n')[0] == [(2, {"a": 'say "hi"', "b": "2"})]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_the_one_of_the_header(delimiter: str) -> None:
    text = f"id{delimiter}text\n1{delimiter}hello\n"
    assert rows(text)[0] == [(2, {"id": "1", "text": "hello"})]


def test_a_tsv_is_cut_at_tabs_only() -> None:
    assert rows("id,x\ttext\n1\ta,b\n", "a.tsv")[0] == [(2, {"id,x": "1", "text": "a,b"})]


def test_blank_lines_are_no_rows_and_are_counted_as_lines() -> None:
    assert rows("a,b\n\n1,2\n\n\n3,4")[0] == [(3, {"a": "1", "b": "2"}), (6, {"a": "3", "b": "4"})]


def test_rows_of_another_width_are_refused_and_the_others_read() -> None:
    taken, problems = rows('a,b\n1\n1,2\n"x\ny",2,3\n3,4\n')
    assert [line for line, _ in taken] == [3, 6]
    assert [(problem.code, problem.line) for problem in problems] == [("too_few_cells", 2), ("too_many_cells", 4)]
    assert problems.refused == 2
    assert "expected 2 cells as in the header" in str(problems.shown[0])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", ("empty", None)),
        ("a,a\n1,2\n", ("header", 1)),
        ("a, a \n1,2\n", ("header", 1)),
        ("a,,c\n1,2,3\n", ("header", 1)),
        ('a,b\n1,2\n3,"never closed\n4,5\n', ("unclosed_quote", 3)),
        ('a,b\n1,"x" y\n', ("stray_quote", 2)),
        ("a,b\n1,2\r3,4\n", ("lone_cr", 2)),
        ("a,b\r1,2\r", ("lone_cr", 1)),
        ("a,b\n1,2\n1,\0\n", ("nul", 3)),
        ("2601,this is a whole sentence of text,0\n2602,another one follows,1\n", ("header", 1)),
    ],
)
def test_a_file_that_cannot_be_trusted_ends_with_one_problem(text: str, fault: tuple[str, int | None]) -> None:
    assert refused(text) == fault


MERGED = 'id,text,n\n1,"opened,2\n2,fine,3\n3,closed",4\n5,fine,6\n'


def test_records_merged_by_stray_quotes_are_found() -> None:
    """A lenient reader takes the file above as two rows."""
    assert refused(MERGED) == ("merged_records", 2)


def test_a_header_that_swallowed_records_is_found() -> None:
    """Two stray quotes, in the header and further down, leave as many columns as there were."""
    assert refused('id,text,"n\n1,one,2\n2,two,3"\n3,three,4\n') == ("merged_records", 1)
    assert rows('id,"text\n(in full)"\n1,one\n')[0] == [(3, {"id": "1", "text\n(in full)": "one"})]


def test_the_owner_can_vouch_for_line_breaks() -> None:
    assert len(rows(MERGED, line_breaks=True)[0]) == 2


def test_lines_of_prose_in_a_cell_are_not_taken_for_records() -> None:
    taken, problems = rows('id,text\n1,"Hello,\nworld, said he"\n2,"Hello\nworld, yes"\n')
    assert not problems
    assert [line for line, _ in taken] == [2, 4]


def test_quoting_can_be_off_and_columns_named() -> None:
    taken, problems = rows('1\t"open\tx\n2\tb"\ty\n', "a.tsv", quoting=False, header=("id", "text", "z"))
    assert not problems
    assert taken == [(1, {"id": "1", "text": '"open', "z": "x"}), (2, {"id": "2", "text": 'b"', "z": "y"})]


def test_a_name_that_says_no_format_needs_one_in_the_mapping() -> None:
    assert refused("a,b\n", "a.data") == ("format", None)
    assert rows("a,b\n1,2\n", "a.data", format="csv")[0] == [(2, {"a": "1", "b": "2"})]


@pytest.mark.parametrize(
    ("text", "encoding", "named"),
    [
        ("id,text\n1,Põhja-Eesti õllekoda\n", "cp1252", "Windows-1252"),
        ("id,text\n1,Привет, как дела у вас\n", "cp1251", "Windows-1251"),
        ("id,text\n1,Привет, как дела у вас\n", "koi8_r", "KOI8-R"),
        ("id,text\n1,Příliš žluťoučký kůň\n", "cp1250", "Windows-1250"),
        ("id,text\n1,مرحبا بالعالم\n", "cp1256", "Windows-1256"),
        ("id,text\n1,こんにちは世界、元気ですか\n", "shift_jis", "Shift JIS"),
        ("id,text\n1,안녕하세요 세계\n", "euc_kr", "EUC-KR"),
    ],
)
def test_another_encoding_is_named_and_refused(text: str, encoding: str, named: str) -> None:
    taken, problems = rows(text.encode(encoding))
    assert taken == []
    (problem,) = problems
    assert (problem.code, problem.line) == ("encoding", 2)
    assert named in problem.found


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_are_named(encoding: str) -> None:
    _, problems = rows("id,text\n1,hello\n".encode(encoding))
    (problem,) = problems
    assert problem.code == "encoding"
    assert "UTF-" in problem.found


def test_a_cut_character_is_refused_on_its_line() -> None:
    assert refused("id,text\n1,õ".encode()[:-1]) == ("encoding", 2)


fragments = st.lists(
    st.sampled_from(("a", "õ", ",", '"', '""', "\r", " ", "\n", "1,2\n", '3,"4\n', '5",6\r\n')), max_size=30
)


@settings(deadline=None, max_examples=3 * settings().max_examples)
@given(fragments.map("".join), st.integers(1, 4), st.booleans(), st.booleans(), st.sampled_from([(), ("x", "y")]))
def test_records_read_together_are_those_read_one_by_one(
    text: str, size: int, quoting: bool, line_breaks: bool, header: tuple[str, ...]
) -> None:
    lines = list(io.StringIO(text, newline="\n"))
    blocks = [lines[start : start + size] for start in range(0, len(lines), size)]
    dialect = CsvDialect(",", quoting, line_breaks)

    def taken(way: Callable[..., Iterator[Any]]) -> tuple[list[FileRow], str, list[str], list[str]]:
        rows: list[FileRow] = []
        problems, fault = Problems(), ""
        try:
            for each in way("a.csv", blocks, dialect, header, problems):
                rows += [each] if isinstance(each, FileRow) else each.rows()
        except FormatError as error:
            fault = str(error)
        return rows, fault, problems.sentences(), problems.notes

    assert taken(read_csv_blocks) == taken(read_csv)


@pytest.mark.parametrize(
    "text",
    [
        "Mary Smith,score\n1,2\n",
        "id,context,not_applicable,score,panelbench_marks\n1,'=1,true,,'context\n2,\"a\nb\",,3,\n3,,,1,-context\n",
        'a,b\n1,2\n"3\n4",5\n6\n7,8\n"9,\n',
        "a,b\nõ\0,2\n",
        "a,a\n",
        "",
    ],
)
@pytest.mark.parametrize("layout", [Mapping(), Mapping(files={"{year}.csv": Mapping()})])
def test_a_file_read_in_blocks_says_the_same(text: str, layout: Mapping) -> None:
    one_by_one, together = Problems(), Problems()
    rows = list(read_rows("1984.csv", text.encode(), layout=layout, problems=one_by_one))
    blocks = read_blocks("1984.csv", text.encode(), layout=layout, problems=together)
    assert [row for block in blocks for row in block.rows()] == rows
    assert (together.sentences(), together.notes) == (one_by_one.sentences(), one_by_one.notes)
