"""Parquet: nested values as JSON, moments as text, and nothing that JSON has no word for."""

import datetime as dt
import io
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.readers.archives import UnpackBounds
from annotation.readers.file_types import parquet
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems
from annotation.readers.reading import read_rows


def made(columns: dict[str, Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream, **options)
    return stream.getvalue()


def rows(raw: bytes, **layout: Any) -> tuple[list[tuple[int, dict[str, Any]]], Problems]:
    problems = Problems()
    return [tuple(row) for row in read_rows("a.parquet", raw, layout=Mapping(**layout), problems=problems)], problems


NOON = dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)
VALUES = [
    (pa.array([2**53, None]), [2**53, None]),
    (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
    (pa.array([3.7, 0.1, -1e-7, 16777216], pa.float32()), [3.7, 0.1, -1e-7, 16777216]),
    (pa.array([3.7, 0.1]), [3.7, 0.1]),
    (pa.array([Decimal("4.50"), Decimal("7.00")]), [4.5, 7]),
    (pa.array([Decimal("0.12345678901234567890")]), ["0.12345678901234567890"]),
    (pa.array([NOON], pa.timestamp("us", "UTC")), ["2024-03-01T12:00:00+00:00"]),
    (pa.array([1], pa.timestamp("ns")), ["1970-01-01T00:00:00.000000001"]),
    (pa.array([dt.date(2024, 3, 1)]), ["2024-03-01"]),
    (pa.array([dt.time(9, 5)]), ["09:05:00"]),
    (pa.array([dt.timedelta(minutes=2)]), [120.0]),
    (pa.array(["x", "y", "x", None]).dictionary_encode(), ["x", "y", "x", None]),
    (pa.array(["x"], pa.large_string()), ["x"]),
    (pa.array([True, None]), [True, None]),
    (pa.array([None, None]), [None, None]),
    (pa.array([[1, None], [], None]), [[1, None], [], None]),
    (pa.array([[{"a": [NOON], "b": None}], None]), [[{"a": ["2024-03-01T12:00:00+00:00"], "b": None}], None]),
    (pa.array([[("k", 1.5)], []], pa.map_(pa.string(), pa.float64())), [{"k": 1.5}, {}]),
]


@pytest.mark.parametrize(("column", "plain"), VALUES, ids=[str(column.type) for column, _ in VALUES])
def test_values_become_json(column: pa.Array, plain: list[Any]) -> None:
    taken, problems = rows(made({"x": column}))
    assert problems.sentences() == []
    assert taken == [(number, {"x": value}) for number, value in enumerate(plain, start=1)]


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (pa.array([1.0, float("nan"), 3.0]), "number"),
        (pa.array([1.0, float("-inf"), 3.0], pa.float32()), "number"),
        (pa.array([[1.0], [float("nan")], [3.0]]), "number"),
        (pa.array(["a", "b\0", "c"]), "nul"),
        (pa.array([[("a", 1)], [("b", 1), ("b", 2)], []], pa.map_(pa.string(), pa.int64())), "duplicate_key"),
        (pa.array([Decimal(1), Decimal(10**30), Decimal(2)], pa.decimal128(38, 0)), "unstorable"),
    ],
)
def test_a_row_that_cannot_be_taken_is_refused_and_the_next_one_read(column: pa.Array, code: str) -> None:
    taken, problems = rows(made({"id": [1, 2, 3], "x": column}))
    assert [line for line, _ in taken] == [1, 3]
    assert [(problem.line, problem.column, problem.code) for problem in problems] == [(2, "x", code)]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"x"]),
        pa.array([b"xx"], pa.binary(2)),
        pa.array([{"bytes": b"x", "path": "p"}]),
        pa.array([[b"x"]]),
        pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64())),
    ],
)
def test_a_column_of_bytes_is_refused_by_its_name_unless_it_is_ignored(column: pa.Array) -> None:
    raw = made({"id": [1], "image": column})
    taken, problems = rows(raw)
    assert taken == []
    assert [(problem.column, problem.code) for problem in problems] == [("image", "column_type")]
    assert rows(raw, ignore=("image",))[0] == [(1, {"id": 1})]


def test_a_broken_file_is_a_problem() -> None:
    raw = made({"id": list(range(5000)), "x": ["text"] * 5000})
    for part in (b"", b"PAR1", raw[:-1], raw[: len(raw) // 2], raw[100:], b"PAR1" + b"\0" * 100 + b"PAR1"):
        taken, problems = rows(part)
        assert taken == []
        assert problems.codes == {"broken_parquet": 1}


def test_a_page_that_fails_its_checksum_is_a_problem() -> None:
    raw = made({"x": ["some text", "more text"]}, write_page_checksum=True, compression="none", use_dictionary=False)
    taken, problems = rows(raw.replace(b"some text", b"sane text"))
    assert taken == []
    assert problems.codes == {"broken_parquet": 1}


def test_more_rows_than_can_be_taken_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MOST_ROWS", 2)
    assert rows(made({"id": [1, 2, 3]}))[1].codes == {"size": 1}


def test_few_bytes_that_say_a_lot_are_refused() -> None:
    often = pa.array(["so"]).take(pa.array([0] * 3_000_000))
    raw = made({"x": often}, compression="zstd")
    assert len(raw) < 100_000
    taken, problems = rows(raw)
    assert (taken, problems.codes) == ([], {"size": 1})
    (problem,) = problems
    assert "3,000,000 rows of 1 columns" in problem.found


@pytest.mark.parametrize("as_dictionary", [True, False])
def test_a_long_text_repeated_in_a_small_file_ends_the_reading(
    as_dictionary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "UNPACKED", UnpackBounds(floor=2**22))
    column = pa.array(["x" * 2**18]).dictionary_encode().take(pa.array([0] * 64))
    raw = made({"x": column if as_dictionary else column.dictionary_decode()}, compression="zstd")
    assert len(raw) < 2_000
    monkeypatch.setattr(parquet, "BATCH_BYTES", 2**22)
    taken, problems = rows(raw)
    assert len(taken) < 64
    assert problems.codes == {"size": 1}


def test_rows_of_long_texts_are_read_a_few_at_a_time() -> None:
    raw = made({"id": list(range(100)), "x": ["ab" * 2**17] * 50 + ["c"] * 50})
    taken, problems = rows(raw)
    assert not problems
    assert [fields["id"] for _line, fields in taken] == list(range(100))


def test_a_long_text_that_stands_in_many_rows_takes_little_memory(tmp_path: Path) -> None:
    often = pa.DictionaryArray.from_arrays(pa.array([0] * 400, pa.int32()), pa.array(["a" * 2**20]))
    (tmp_path / "a.parquet").write_bytes(made({"x": often}, compression="zstd", store_schema=False))
    assert (tmp_path / "a.parquet").stat().st_size < 2_000
    program = (
        "import pathlib, sys; from annotation.readers.problems import Problems;"
        "from annotation.readers.reading import read_rows; problems = Problems();"
        "taken = sum(1 for _row in read_rows('a.parquet', open(sys.argv[1], 'rb'), problems=problems));"
        "most = pathlib.Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0];"
        "print(taken, *problems.codes, int(most) // 1024)"
    )
    ran = [sys.executable, "-c", program, str(tmp_path / "a.parquet")]
    taken, code, megabytes = subprocess.run(ran, check=True, capture_output=True, text=True).stdout.split()
    assert int(taken) < 256
    assert code == "size"
    assert int(megabytes) <= 300


def test_texts_of_a_small_dictionary_are_read_together() -> None:
    # 40 MB in one row group whose dictionary is small: the rows are not read a few at a time.
    raw = made({"x": [f"{number} " * 90 for number in range(70_000)], "y": ["one", "two"] * 35_000})
    file = pq.ParquetFile(io.BytesIO(raw))
    dictionaries = parquet._Dictionaries(io.BytesIO(raw), ["x", "y"])
    assert parquet._require_bounded("a.parquet", file.metadata, len(raw), dictionaries) >= 16
    assert (
        parquet._require_bounded("a.parquet", file.metadata, len(raw), parquet._Dictionaries(io.BytesIO(raw), ["y"]))
        == 1_000
    )
