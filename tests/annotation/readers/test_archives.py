"""Gzip and zip: what is in them is read, and a doubtful one is refused."""

import gzip
import io
import json
import tarfile
import zipfile
from typing import BinaryIO

import pytest

from annotation.readers.archives import File, UnpackBounds, UnpackedBytes, UnpackedStream, unpacked_files
from annotation.readers.mapping import Mapping
from annotation.readers.problems import FormatError, Problems
from annotation.readers.ratings import parse_ratings
from annotation.readers.reading import join_aligned_files, read_rows

TABLE = b"id,text\n1,a\n2,b\n"


def zipped(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files:
            # A fixed time, so that every worker of a test run packs the same bytes.
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content, method)
    return stream.getvalue()


def rows(name: str, raw: bytes) -> tuple[list[int], Problems]:
    problems = Problems()
    return [row.line for row in read_rows(name, raw, problems=problems)], problems


def code_of(name: str, raw: bytes) -> str:
    """The code of the only problem of a file, which gives no rows."""
    taken, problems = rows(name, raw)
    assert taken == []
    (problem,) = problems
    return problem.code


def test_a_gzip_is_read_whole_however_many_members_it_has() -> None:
    assert rows("a.csv.gz", gzip.compress(TABLE, mtime=0) + gzip.compress(b"3,c\n", mtime=0))[0] == [2, 3, 4]


def test_the_files_of_a_zip_are_read_one_after_the_other_and_named_after_it() -> None:
    archive = zipped(("one/r.csv", b"item,rater,criterion,score\nx,A,f,1\n"), ("two.jsonl", b'{"item": "x"}\n'))
    mapping = Mapping(columns={name: name for name in ("item", "rater", "criterion", "score")})
    parsed = parse_ratings([("s.zip", archive)], mapping)
    assert [row.file for row in parsed.rows] == ["s.zip/one/r.csv"]
    assert [problem.file for problem in parsed.problems] == ["s.zip/two.jsonl"]


def taped(kind: str, *files: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=f"w:{kind}") as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def test_aligned_files_of_an_archive_are_read_line_by_line() -> None:
    sides = (("en.src.txt", b"one\ntwo\n"), ("en.hyp.txt", "üks\nkaks\n".encode()))
    archives: list[list[File]] = [
        [("s.zip", zipped(*sides))],
        [("s.tar", taped("", *sides))],
        [("s.tar.gz", taped("gz", *sides))],
        [(f"{name}.gz", gzip.compress(content, mtime=0)) for name, content in sides],
        [("s.zip", zipped(sides[0])), sides[1]],
    ]
    layout = Mapping(aligned={"*{language}.src.txt": "source", "*{language}.hyp.txt": "answer"})
    for files in archives:
        problems = Problems()
        joined = [json.loads(line) for _name, raw in join_aligned_files(files, layout, problems) for line in raw]
        assert problems.sentences() == [], files[0][0]
        assert [(row["source"], row["answer"]) for row in joined] == [("one", "üks"), ("two", "kaks")]


def test_what_is_no_data_is_left_out_and_said() -> None:
    archive = zipped(("a.csv", TABLE), ("__MACOSX/._a.csv", b"\0"), (".DS_Store", b"\0"), ("x/README.txt", b"Read me."))
    taken, problems = rows("s.zip", archive)
    assert taken == [2, 3]
    assert not problems
    (note,) = problems.notes
    assert note == "s.zip: 3 of its files are not data and were left out: __MACOSX/._a.csv, .DS_Store, x/README.txt."


@pytest.mark.parametrize(
    ("name", "raw", "code"),
    [
        ("a.csv.gz", gzip.compress(TABLE, mtime=0)[:-6], "truncated"),
        ("a.csv.gz", gzip.compress(TABLE, mtime=0)[:-8] + b"\0" * 8, "broken_archive"),
        ("a.csv.gz", TABLE, "broken_archive"),
        ("a.csv.gz", b"", "empty"),
        ("a.zip", zipped(("a.csv", TABLE))[:-30], "broken_archive"),
        ("a.zip", TABLE, "broken_archive"),
        ("a.zip", zipped(), "empty"),
        ("a.zip", zipped(("README", b"x")), "empty"),
        ("a.zip", zipped(("b.zip", zipped(("a.csv", TABLE)))), "nested_archive"),
        ("a.zip", zipped(("a.csv.gz", gzip.compress(TABLE, mtime=0))), "nested_archive"),
        ("a.zip.gz", gzip.compress(zipped(("a.csv", TABLE)), mtime=0), "nested_archive"),
        ("a.zip", zipped(("scan.png", b"x")), "format"),
        ("a.tar.gz", gzip.compress(TABLE, mtime=0), "truncated"),
        ("a.tar.bz2", TABLE, "archive"),
        ("a.csv.bz2", TABLE, "archive"),
        ("a.csv.xz", TABLE, "archive"),
        ("a.csv", gzip.compress(TABLE, mtime=0), "format"),
        ("a.json", zipped(("a.csv", TABLE)), "format"),
    ],
)
def test_a_doubtful_archive_is_refused(name: str, raw: bytes, code: str) -> None:
    assert code_of(name, raw) == code


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_two_members_of_one_name_are_refused() -> None:
    assert code_of("a.zip", zipped(("a.csv", TABLE), ("a.csv", TABLE))) == "duplicate_name"


def test_a_member_with_a_password_is_refused() -> None:
    raw = bytearray(zipped(("a.csv", TABLE)))
    raw[6] |= 1  # the flag in the member's own header, and in the directory
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    assert code_of("a.zip", bytes(raw)) == "encrypted"


def test_a_broken_member_is_refused_and_the_others_are_read() -> None:
    raw = zipped(("a.csv", TABLE), ("b.csv", TABLE), method=zipfile.ZIP_STORED)
    taken, problems = rows("a.zip", raw.replace(b"1,a", b"1,x", 1))
    assert [(problem.file, problem.code) for problem in problems] == [("a.zip/a.csv", "broken_archive")]
    assert taken == [2, 3]


def test_a_name_that_would_deceive_a_reader_is_spelled_out() -> None:
    _, problems = rows("a.zip", zipped(("../\u202egnp.exe\x1b[2J", b"x")))
    assert [problem.file for problem in problems] == ["a.zip/../\\u202egnp.exe\\x1b[2J"]


def drained(raw: bytes, name: str, bounds: UnpackBounds) -> Problems:
    problems = Problems()
    for _, content in unpacked_files([(name, raw)], problems, bounds):
        assert not isinstance(content, bytes)
        exhaust(content, problems)
    return problems


def exhaust(content: BinaryIO, problems: Problems) -> None:
    try:
        while content.read(1000):
            pass
    except FormatError as error:
        problems.add(error.problem)


@pytest.mark.parametrize(
    ("bounds", "refused"),
    [
        (UnpackBounds(total=10_000), 1),
        (UnpackBounds(floor=10_000, ratio=10), 1),
        (UnpackBounds(floor=10_000, ratio=2_000), 0),
        (UnpackBounds(floor=100_000, ratio=10), 0),
    ],
)
def test_a_bomb_is_refused_before_it_is_unpacked(bounds: UnpackBounds, refused: int) -> None:
    content = b"0" * 100_000
    for name, raw in (("a.csv.gz", gzip.compress(content, mtime=0)), ("a.zip", zipped(("a.csv", content)))):
        problems = drained(raw, name, bounds)
        assert list(problems.codes) == ["size"] * refused
    halves = zipped(("a.csv", content[:50_000]), ("b.parquet", content[:50_000]))
    assert list(drained(halves, "a.zip", bounds).codes) == ["size"] * refused


def test_a_bomb_is_refused_before_it_is_unpacked_where_it_is_read_at_once() -> None:
    class Counted(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1) -> bytes:
            content = super().read(size)
            Counted.taken += len(content)
            return content

    stream = Counted(b"0" * 8 * 2**20)
    meter = UnpackedBytes("a.gz", 1, UnpackBounds(total=2**20))
    with pytest.raises(FormatError):
        UnpackedStream("a.gz", stream, meter).read()
    assert Counted.taken <= 2 * 2**20


def test_a_zip_of_very_many_files_is_refused() -> None:
    raw = zipped(*((f"{number}.csv", b"") for number in range(6)))
    assert drained(raw, "a.zip", UnpackBounds(members=5)).codes == {"size": 1}
