"""The table of file formats: every format has what it promises, and documentation."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

from annotation.readers.formats import ENDINGS, FORMATS_BY_NAME, READABLE, format_of_name

ROOT = Path(__file__).resolve().parent.parent.parent.parent


def test_each_reader_has_the_functions_of_its_format() -> None:
    for readable in READABLE:
        if readable.reader:
            assert list(signature(readable.function("read_file")).parameters) == [
                "name",
                "stream",
                "layout",
                "problems",
            ]
        if readable.has_sheets:
            assert list(signature(readable.function("names_of_sheets")).parameters) == ["name", "stream"]
            assert list(signature(readable.function("first_rows")).parameters) == ["name", "stream", "layout", "most"]
    modules = {path.stem for path in (ROOT / "annotation/readers/file_types").glob("*.py")} - {"__init__", "workbooks"}
    assert modules == {readable.reader for readable in READABLE if readable.reader}


def test_names_and_endings_are_unique_and_documented() -> None:
    assert len(FORMATS_BY_NAME) == len(READABLE)
    assert len(ENDINGS) == sum(len(readable.endings) for readable in READABLE)
    assert {readable.name for readable in READABLE} <= {path.stem for path in (ROOT / "docs/formats").glob("*.md")}
    assert format_of_name("بيانات “A”.XLSX") is FORMATS_BY_NAME["xlsx"]
    assert format_of_name("e\u0301.txt") is None
