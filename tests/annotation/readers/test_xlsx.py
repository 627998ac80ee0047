"""Workbooks: values as they are stored, each fault with its row and cell, and no entity ever expanded."""

import datetime as dt
import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.worksheet.worksheet import Worksheet

from annotation.readers.file_types.xlsx import column_letters, column_number
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems
from annotation.readers.reading import read_rows

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def made(*lines: list[Any], change: Callable[[Worksheet], object] = lambda sheet: None) -> bytes:
    workbook = Workbook()
    for line in lines:
        workbook.active.append(line)
    change(workbook.active)
    return saved(workbook)


def saved(workbook: Workbook) -> bytes:
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


def with_sheet(xml: str) -> bytes:
    """A workbook whose sheet is written by hand."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(made(["x"]))) as plain, zipfile.ZipFile(stream, "w") as archive:
        for name in plain.namelist():
            content = plain.read(name)
            archive.writestr(name, xml if name == "xl/worksheets/sheet1.xml" else content)
    return stream.getvalue()


def sheet(rows: str, before: str = "", after: str = "") -> bytes:
    return with_sheet(f'{before}<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData>{after}</worksheet>')


def text(reference: str, value: str) -> str:
    return f'<c r="{reference}" t="inlineStr"><is><t xml:space="preserve">{value}</t></is></c>'


def rows(raw: bytes, **layout: Any) -> tuple[list[tuple[int, dict[str, Any]]], Problems]:
    problems = Problems()
    return [tuple(row) for row in read_rows("a.xlsx", raw, layout=Mapping(**layout), problems=problems)], problems


def test_values_are_what_is_stored() -> None:
    moment = dt.datetime(2024, 3, 1, 12, 30)  # noqa: DTZ001 - a sheet knows no zones
    raw = made(
        ["id", "score", "ok", "day", "at", "hour", "text"],
        ["a", 2, True, dt.date(2024, 3, 1), moment, dt.time(9, 5), " x "],
        [7, 2.5, False, None, None, None, None],
        [123456789012345, 0.1, None, None, None, None, "2024-03-01"],
        [2.9e15, 1234567890123456, None, None, None, None, "1"],
    )
    taken, problems = rows(raw)
    assert not problems
    columns = ("id", "score", "ok", "day", "at", "hour", "text")
    assert [line for line, _ in taken] == [2, 3, 4, 5]
    assert [tuple(fields[column] for column in columns) for _, fields in taken] == [
        ("a", 2, True, "2024-03-01", "2024-03-01T12:30:00", "09:05:00", " x "),
        (7, 2.5, False, None, None, None, None),
        (123456789012345, 0.1, None, None, None, None, "2024-03-01"),
        (2.9e15, 1234567890123456.0, None, None, None, None, "1"),
    ]
    assert [type(fields["id"]) for _, fields in taken] == [str, int, int, float]


def test_empty_rows_are_no_rows_and_lines_are_those_of_the_sheet() -> None:
    raw = made([], ["id", "n"], [], [1, 2], [], [3, 4], [" ", ""], [])
    assert rows(raw)[0] == [(4, {"id": 1, "n": 2}), (6, {"id": 3, "n": 4})]


def test_a_header_can_be_said() -> None:
    assert rows(made([1, "a"], [2, "b"]), header=("id", "text"))[0] == [
        (1, {"id": 1, "text": "a"}),
        (2, {"id": 2, "text": "b"}),
    ]


def test_the_only_sheet_with_rows_is_read_and_of_several_one_has_to_be_named() -> None:
    workbook = Workbook()
    workbook.create_sheet("Ratings").append(["id"])
    workbook["Ratings"].append([1])
    assert rows(saved(workbook))[0] == [(2, {"id": 1})]
    workbook.create_sheet("Notes").append(["note"])
    workbook["Notes"].sheet_state = "hidden"
    taken, problems = rows(saved(workbook))
    assert taken == []
    assert problems.sentences() == [
        (
            "a.xlsx: found rows in the sheets “Ratings”, “Notes”; "
            'expected sheet: NAME in the mapping, or sheet: "*" for all of them.'
        )
    ]
    assert rows(saved(workbook), sheet="Ratings")[0] == [(2, {"id": 1})]
    assert "one of “Sheet”, “Ratings”, “Notes”" in str(rows(saved(workbook), sheet="Rating")[1].shown[0])


def test_hidden_rows_and_columns_are_read_and_said() -> None:
    def hide(sheet: Worksheet) -> None:
        sheet.row_dimensions[3].hidden = True
        sheet.column_dimensions["B"].hidden = True

    taken, problems = rows(made(["id", "n"], [1, 2], [3, 4], change=hide))
    assert [line for line, _ in taken] == [2, 3]
    assert problems.notes == [
        "a.xlsx: 1 hidden rows were read too; the first is row 3.",
        "a.xlsx: 1 hidden columns were read too.",
    ]


def error_in_b3(sheet: Worksheet) -> None:
    sheet["B3"].value, sheet["B3"].data_type = "#REF!", "e"


@pytest.mark.parametrize(
    ("raw", "code", "said"),
    [
        (
            made(["id", "n"], [1, 2], [3, 4], change=error_in_b3),
            "cell_error",
            "a.xlsx, line 3, n: found the error #REF! in B3",
        ),
        (
            made(["id", "n"], [1, 2], [3, "=A2+1"]),
            "formula",
            "a.xlsx, line 3, n: found a formula without its result in B3",
        ),
        (
            made(["id", "n"], [1, 2], [3, 4, 5]),
            "too_many_cells",
            "a.xlsx, line 3: found “5” in C3, a column without a name",
        ),
        (made(["id", "n"], [1, 2], [3, "a_xD83D_"]), "unstorable", "a.xlsx, line 3, n: found"),
        (
            sheet(f"<row>{text('A1', 'id')}</row><row><c><v>1</v></c></row><row><c><v>x</v></c></row>"),
            "cell_value",
            "a.xlsx, line 3, id: found “x” in A3, which is no number",
        ),
    ],
)
def test_a_cell_that_cannot_be_taken_refuses_its_row(raw: bytes, code: str, said: str) -> None:
    taken, problems = rows(raw)
    assert [line for line, _ in taken] == [2]
    assert (problems.codes, problems.refused) == ({code: 1}, 1)
    assert str(problems.shown[0]).startswith(said)


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (made(), "empty"),
        (made(["id", "id"], [1, 2]), "header"),
        (made(["id", " "], [1, 2]), "header"),
        (made(["id", "n"], [1, 2], change=lambda sheet: sheet.merge_cells("A4:B4")), "merged_cells"),
        (made(["id"], [1])[:-200], "broken_workbook"),
        (b"id,n\n1,2\n", "broken_workbook"),
        (b"", "broken_workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "encrypted"),
        (sheet(f'<row r="1">{text("A1", "&b;")}</row>', before=BOMB), "broken_workbook"),
        (sheet(f'<row r="1">{text("A1", "&a;")}</row>', before=OUTSIDE), "broken_workbook"),
        (sheet('<row r="1"><c r="A1" t="s"><v>99</v></c></row>'), "broken_workbook"),
        (sheet('<row r="1"><c r="A1"><v>1</v></c><c r="A1"><v>2</v></c></row>'), "broken_workbook"),
        (sheet('<row r="2"><c r="A2"><v>1</v></c></row><row r="2"><c r="A2"><v>1</v></c></row>'), "broken_workbook"),
        (sheet('<row r="1"><c r="A1"><v>1</v></c>'), "broken_workbook"),
        (with_sheet(""), "broken_workbook"),
    ],
)
def test_a_workbook_that_cannot_be_trusted_ends_with_one_problem(raw: bytes, code: str) -> None:
    _, problems = rows(raw)
    assert problems.codes == {code: 1}


def test_runs_of_formatted_text_are_one_text_and_its_pronunciation_is_none() -> None:
    runs = '<is><r><t>to</t></r><r><rPr><b/></rPr><t xml:space="preserve">kyo </t></r><rPh><t>TOKYO</t></rPh></is>'
    raw = sheet(f'<row>{text("A1", "city")}</row><row><c t="inlineStr">{runs}</c></row>')
    assert rows(raw)[0] == [(2, {"city": "tokyo "})]


def test_a_namespace_prefix_changes_nothing() -> None:
    xml = f'<x:worksheet xmlns:x="{MAIN}"><x:sheetData><x:row r="1"><x:c r="A1" t="str"><x:v>id</x:v></x:c></x:row>'
    xml += '<x:row r="2"><x:c r="A2"><x:v>4</x:v></x:c></x:row></x:sheetData></x:worksheet>'
    assert rows(with_sheet(xml))[0] == [(2, {"id": 4})]


def test_columns_are_counted_as_excel_does() -> None:
    assert [column_letters(number) for number in (1, 26, 27, 702, 703, 16_384)] == ["A", "Z", "AA", "ZZ", "AAA", "XFD"]
    assert [column_number(column_letters(number)) for number in range(1, 800)] == list(range(1, 800))
