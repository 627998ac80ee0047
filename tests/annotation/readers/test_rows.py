"""Bounds of what one file may hold: counted while reading, refused in a sentence, and in little memory."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from annotation.readers import encoding
from annotation.readers import rows as rows_module
from annotation.readers.guessing import guess_kind, propose_mapping
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problem, Problems
from annotation.readers.reading import read_rows
from tests import make

ROOT = Path(__file__).parents[3]
SHARED = '<Relationship Id="s" Type="x/sharedStrings" Target="sharedStrings.xml"/></Relationships>'
SHEET = "xl/worksheets/sheet1.xml"
STRINGS = "xl/sharedStrings.xml"
HEAD = '<worksheet><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>id</t></is></c></row>'


def refused(name: str, raw: bytes) -> Problem:
    problems = Problems()
    for _row in read_rows(name, raw, problems=problems):
        pass
    (problem,) = problems
    return problem


def doctored(part: str, content: str) -> bytes:
    """A workbook with another part in place of one of its own, or beside them."""
    stream = io.BytesIO()
    plain = io.BytesIO(make.workbook({"Data": [["id"], ["d1"]]}))
    with zipfile.ZipFile(plain) as book, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as changed:
        for entry in book.namelist():
            changed.writestr(entry, content if entry == part else book.read(entry))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "raw", "code", "setting"),
    [
        ("a.csv", ",".join(f"c{n}" for n in range(2_001)).encode() + b"\n", "too_many_columns", "IMPORT_MOST_COLUMNS"),
        ("a.jsonl", b"{%s}\n" % b",".join(b'"c%d":1' % n for n in range(2_001)), "too_many_columns", "MOST_COLUMNS"),
        ("a.xlsx", doctored(SHEET, f'{HEAD}<row r="2"><c r="BXY2"><v>1</v></c></row>'), "too_many_columns", "COLUMNS"),
        ("a.csv", b"a,b\n" + b"1,2\n" * 600, "too_many_cells_in_file", "IMPORT_MOST_CELLS"),
        ("a.xlsx", make.workbook({"Data": [["a", "b"], *([[1, 2]] * 600)]}), "too_many_cells_in_file", "MOST_CELLS"),
        ("a.csv", b'a,b\n1,"' + b"x" * 200_000 + b'"\n', "long_line", "IMPORT_LONGEST_CELL_MB"),
        ("a.csv", b'a,b\n1,"' + b"x\n" * 200_000 + b'"\n', "cell_size", "IMPORT_LONGEST_CELL_MB"),
        ("a.csv", b"a,b,c\n" + b",".join([b'"%s"' % (b"x\n" * 40_000)] * 3) + b"\n", "record_size", "LONGEST_CELL"),
        ("a.xlsx", make.workbook({"Data": [list("abcdef"), ["x" * 30_000] * 6]}), "record_size", "LONGEST_CELL"),
    ],
)
def test_the_sentence_names_the_bound_and_who_raises_it(
    monkeypatch: pytest.MonkeyPatch, name: str, raw: bytes, code: str, setting: str
) -> None:
    monkeypatch.setattr(rows_module.BOUNDS, "cells", 5_000 if "COLUMNS" in setting else 1_000)
    monkeypatch.setattr(rows_module.BOUNDS, "cell", 100_000)
    monkeypatch.setattr(encoding, "PIECE", 10_000)
    before = csv.field_size_limit(100_000)
    try:
        problem = refused(name, raw)
    finally:
        csv.field_size_limit(before)
    assert problem.code == code
    assert setting in problem.expected and "operator" in problem.expected


def test_many_columns_are_guessed_without_comparing_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module.BOUNDS, "columns", 20_000)
    columns = ["id", "language", "answer", *(f"column_{n}" for n in range(10_000))]
    raw = (",".join(columns) + "\n" + ",".join(["1", "et", "Tere", *("x" * 10_000)]) + "\n").encode()

    assert guess_kind([("a.csv", raw)]) == "dataset"
    proposed = propose_mapping("dataset", [("a.csv", raw)], Mapping())

    assert proposed.columns == {"id": "id", "language": "language", "answer": "answer"}


def bombs(folder: Path) -> dict[str, Path]:
    """Small files that unfold to very much, each in another way; written piece by piece."""
    made: dict[str, Path] = {}
    plain = zipfile.ZipFile(io.BytesIO(make.workbook({"Data": [["id"], ["d1"]]})))

    def packed(name: str, part: str, start: str, piece: bytes, pieces: int, *, book: bool = True) -> None:
        made[name] = folder / f"{name}.{'xlsx' if book else 'zip'}"
        with zipfile.ZipFile(made[name], "w", zipfile.ZIP_DEFLATED, compresslevel=1) as changed:
            for entry in plain.namelist() if book else ():
                if entry != part:
                    content = plain.read(entry).decode()
                    content = content.replace("</Relationships>", SHARED)
                    changed.writestr(entry, content.replace('t="inlineStr"><is><t>id</t></is>', 't="s"><v>0</v>'))
            with changed.open(part, "w", force_zip64=True) as stream:
                stream.write(start.encode())
                for _piece in range(pieces):
                    stream.write(piece)

    packed("texts", STRINGS, "<sst>", b"<si/>" * 200_000, 240)
    packed("long_text", STRINGS, "<sst><si><t>", b"x" * 2**20, 240)
    packed("attribute", SHEET, f'{HEAD}<row r="2"><c r="A2" s="', b"1" * 2**20, 240)
    packed("deep", SHEET, HEAD, b"<a>" * 300_000, 240)
    packed("styles", "xl/styles.xml", "<styleSheet><cellXfs>", b"<xf/>" * 200_000, 60)
    packed("relations", "xl/_rels/workbook.xml.rels", "<Relationships>", b"<Relationship/>" * 70_000, 60)
    packed("line", "a.csv", "id,text\n", "🙂".encode() * 2**18, 240, book=False)
    packed("json_lines", "a.jsonl", '{"a": [', b'{"":0},' * 150_000, 15, book=False)
    packed("record", "a.json", '[{"a": [', b"[]," * 350_000, 240, book=False)
    made["directory"] = folder / "directory.zip"
    with zipfile.ZipFile(made["directory"], "w") as archive:
        for number in range(60_000):
            archive.writestr(f"{number}.csv", b"")
    return made


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_bomb_is_refused_within_300_megabytes(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from annotation.readers.file_types import workbooks\n"
        "workbooks._MOST_STRINGS = 4_000_000\n"  # of ten million: what each takes is bounded below
        "from annotation.readers.problems import Problems\n"
        "from annotation.readers.reading import read_rows\n"
        "problems = Problems()\n"
        "with open(sys.argv[1], 'rb') as file:\n"
        "    rows = sum(1 for row in read_rows(sys.argv[1], file, problems=problems))\n"
        "with open('/proc/self/status') as status:\n"  # unlike ru_maxrss, of this program alone
        "    peak = next(line.split()[1] for line in status if line.startswith('VmHWM'))\n"
        "print(int(peak) // 1024, *problems.codes)\n"
    )
    for name, path in bombs(tmp_path).items():
        command = [sys.executable, "-c", program, str(path)]
        run = subprocess.run(
            command, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
        )
        assert run.returncode == 0, (name, run.stderr[-2_000:])
        megabytes, *codes = run.stdout.split()
        print(f"{name}: {path.stat().st_size / 2**20:.1f} MB, refused as {codes} in {megabytes} MB of memory")
        assert codes, name
        assert int(megabytes) <= (160 if name == "texts" else 300), (name, megabytes)
