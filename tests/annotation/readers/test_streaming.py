"""However a file is cut into pieces, and however large it is: the same rows and problems, in little memory."""

import json
import tracemalloc
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO, cast

import pytest

from annotation.readers import encoding
from annotation.readers import rows as rows_module
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problem, Problems
from annotation.readers.reading import read_rows
from annotation.readers.rows import FileRow

FILES = {
    "good.json": '\ufeff[\n {"a": "õ\\ud83d\\ude00", "n": -1e+10},\r\n\n {"a":\n [1, {"b": true}], "n": 12345678}\n]\n',
    "lists.json": '{"skipped": [[1, 2], {"x": null}], "rows": [{"a": 1}, {"a": 2.25}], "n": 31}',
    "unfit.json": '[{"a": 1, "a": 2}, {"a": NaN},\n{"a": 123456789012345678901.5}, {"a": 1e999}, 12, {"a": "\\u0000"}]',
    "cut.json": '[{"a": 1}, {"a": "cut',
    "broken.json": '[{"a": 1},\n {"a": tru, "b": 2}]',
    "more.json": '[{"a": 1}]\n [2]',
    "number.json": "[1234567890",
    "good.jsonl": '{"a": "x\u2028y"}\r\n\n{"a": [1, 2]}\n{"a": 3',
    "good.csv": 'a,b\n1,"two\r\nlines ""õ"""\n\n2,\r\n3,"x\ny\nz"\n4,5',
    "broken.csv": 'a,b\n1,2\n3,"x" y\n4,5\n',
    "open.csv": 'a,b\n1,2\n3,"x\ny\nz\n4,5\n',
    "merged.csv": 'id,text,n\n1,"opened,2\n2,fine,3\n3,closed",4\n5,fine,6\n',
    "nul.tsv": "a\tb\n1\t2\n3\t\0\n",
}


def outcome(name: str, raw: bytes) -> tuple[list[FileRow], list[Problem], list[str]]:
    problems = Problems()
    layout = Mapping(records="rows" if name == "lists.json" else None)
    return list(read_rows(name, raw, layout=layout, problems=problems)), list(problems), problems.notes


@pytest.mark.parametrize("name", FILES)
def test_pieces_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = FILES[name].encode()
    whole = outcome(name, raw)
    assert whole[0] or whole[1]
    for piece in range(1, len(raw)):
        monkeypatch.setattr(encoding, "PIECE", piece)
        rows, *said = outcome(name, raw)
        assert said == list(whole[1:]), piece
        # What stands before a fault in the same piece is not given out; how much that is, the pieces decide.
        assert rows[: len(whole[0])] == whole[0] if whole[1] else rows == whole[0], piece


def test_a_record_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "PIECE", 100)
    monkeypatch.setattr(rows_module.BOUNDS, "cell", 1_000)
    records = [{"a": "x"}, {"a": "x" * 5_000}]
    rows, problems, _ = outcome("a.json", json.dumps(records).encode())
    assert (len(rows), [problem.code for problem in problems]) == (1, ["record_size"])
    rows, problems, _ = outcome("a.jsonl", b"\n".join(json.dumps(each).encode() for each in records))
    assert (len(rows), [(problem.code, problem.line) for problem in problems]) == (1, [("long_line", 2)])


class Endless:
    """A stream that makes up its content as it goes, so that only what the reader keeps is measured."""

    def __init__(self, start: bytes, piece: bytes, end: bytes, pieces: int) -> None:
        self._parts: Iterator[bytes] = iter([start, *([piece] * pieces), end])
        self._rest = b""

    def seekable(self) -> bool:
        return False

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and (part := next(self._parts, b"")):
            self._rest += part
        content, self._rest = self._rest[:size], self._rest[size:]
        return content


MEGABYTES = 8
RECORD = json.dumps({"id": 1, "text": "õ " * 500, "list": [{"x": 1}] * 10}).encode()
PER_PIECE = 2**20 // len(RECORD)


@pytest.mark.parametrize(
    ("name", "start", "piece", "end"),
    [
        ("a.json", b"[{}", (b"," + RECORD) * PER_PIECE, b"]"),
        ("a.jsonl", b"", (RECORD + b"\n") * PER_PIECE, b""),
        ("a.csv", b"id,text\n", b'1,"some\n%s"\n' % (b"x" * 500) * (2**20 // 510), b""),
    ],
)
def test_memory_does_not_grow_with_the_file(name: str, start: bytes, piece: bytes, end: bytes) -> None:
    problems = Problems()
    stream = cast(BinaryIO, Endless(start, piece, end, MEGABYTES))
    tracemalloc.start()
    rows = sum(1 for _ in read_rows(name, stream, problems=problems))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not problems
    assert rows >= MEGABYTES * PER_PIECE
    assert peak < 16 * 2**20


def test_a_stream_is_read_from_its_start() -> None:
    stream = BytesIO(b"a,b\n1,2\n")
    stream.seek(5)
    assert len(list(read_rows("a.csv", stream, problems=Problems()))) == 1
