"""Text comes out of every kind of file byte for byte."""

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems
from annotation.readers.reading import read_rows

TEXTS = {
    "crlf": "one\r\ntwo\nthree\rfour",
    "separators": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "bidi": "\u200fשלום\u202a abc\u202c \u2067x\u2069",
    "joiners": "क्\u200dष \u200c 👩\u200d👧\u200d👦",
    "marks": "e\u0301 é n\u0303 \u0ba8\u0bc0",
    "tatweel": "مـــرحبا",
    "emoji": "🏳️‍🌈 👍🏽 🇪🇪",
    "quotes": '"she said ""no""", \'x\', ;|\t',
    "spaces": "  \u00a0kept\u3000 ",
    "mark": "\ufeffbegins with a byte order mark",
    "escape": "\\n \\u0041 _x000D_ x005F_",
}


def as_delimited(delimiter: str) -> Callable[[list[str]], bytes]:
    def written(texts: list[str]) -> bytes:
        stream = io.StringIO(newline="")
        csv.writer(stream, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([["n", "text"], *enumerate(texts)])
        return stream.getvalue().encode()

    return written


def as_json(texts: list[str]) -> bytes:
    return json.dumps([{"text": text} for text in texts], ensure_ascii=False, indent=0).encode()


def as_lines(texts: list[str]) -> bytes:
    return b"\n".join(json.dumps({"text": text}, ensure_ascii=False).encode() for text in texts)


def as_parquet(texts: list[str]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"text": texts}), stream)
    return stream.getvalue()


def as_workbook(texts: list[str]) -> bytes:
    """As Excel writes it: what XML has no place for, and what looks like such an escape, is escaped."""
    workbook = Workbook()
    for text in ["text", *texts]:
        escaped = text.replace("_x", "_x005F_x")
        for character in "\r\x0b\x0c\0":
            escaped = escaped.replace(character, f"_x{ord(character):04X}_")
        workbook.active.append([escaped])
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


def in_zip(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"folder/{name}", content)
    return stream.getvalue()


KINDS = {
    "a.csv": as_delimited(","),
    "a.tsv": as_delimited("\t"),
    "a.json": as_json,
    "a.jsonl": as_lines,
    "a.parquet": as_parquet,
    "a.xlsx": as_workbook,
}


@pytest.mark.parametrize("name", KINDS)
def test_text_survives(name: str) -> None:
    content = KINDS[name](list(TEXTS.values()))
    packed = {name: content, f"{name}.gz": gzip.compress(content), "a.zip": in_zip(name, content)}
    for file, raw in packed.items():
        problems = Problems()
        rows = list(read_rows(file, raw, layout=Mapping(line_breaks=True), problems=problems))
        assert problems.sentences() == []
        taken = dict(zip(TEXTS, (row.fields["text"] for row in rows), strict=True))
        assert taken == TEXTS, file


@pytest.mark.parametrize("name", KINDS)
def test_a_nul_is_refused_by_name(name: str) -> None:
    raw = KINDS[name](["fine", "a\0b"])
    problems = Problems()
    assert len(list(read_rows(name, raw, problems=problems))) <= 1
    assert problems.codes == {"nul": 1}
    assert problems.shown[0].line in {2, 3, 5}
    assert problems.shown[0].column in {"text", "byte 7"}
