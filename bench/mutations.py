"""What can happen to a file's bytes between one computer and the next, and how many records others would find in it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from openpyxl.utils.exceptions import IllegalCharacterError

from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems
from annotation.readers.reading import read_rows

ENCODINGS = ("cp1252", "utf-16", "utf-16-le", "utf-32", "cp1251", "shift_jis", "gb18030")
LONGEST_SLICE = 2_000
TOGETHER = 12  # records: the rows about one story, or of all raters, stay whole


@dataclass(frozen=True, slots=True)
class Original:
    """A whole file, the layout in which all of it is read, and how many records it has."""

    name: str
    raw: bytes
    layout: Mapping
    records: int

    @property
    def kind(self) -> str:
        """``csv``, ``csv.gz``, ``zip`` ..."""
        parts = self.name.lower().split(".")
        return ".".join(parts[-2:]) if parts[-1] == "gz" else parts[-1]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One thing that can happen. ``only_adds``: every byte of the original is still there, so its records should be."""

    name: str
    happen: Callable[[Random, bytes, bytes], bytes]
    only_adds: bool = False


def _cut(random: Random, raw: bytes, other: bytes) -> bytes:
    return raw[: random.randrange(len(raw))]


def _flipped(random: Random, raw: bytes, other: bytes) -> bytes:
    content = bytearray(raw)
    for _ in range(random.choice((1, 1, 2, 8))):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    return bytes(content)


def _inserting(*pieces: bytes) -> Callable[[Random, bytes, bytes], bytes]:
    def inserted(random: Random, raw: bytes, other: bytes) -> bytes:
        for _ in range(random.choice((1, 1, 2, 3))):
            at = _place(random, raw)
            raw = raw[:at] + random.choice(pieces) + raw[at:]
        return raw

    return inserted


def _place(random: Random, raw: bytes) -> int:
    """Anywhere, or, every other time, where damage does most: beside a delimiter, quote, bracket or line end."""
    at = random.randrange(len(raw) + 1)
    if random.random() < 0.5:
        places = [found for mark in (b",", b"\t", b'"', b"\n", b"{", b"[") if (found := raw.find(mark, at)) >= 0]
        at = min(places, default=at) + random.randrange(2)
    return at


def _duplicated(random: Random, raw: bytes, other: bytes) -> bytes:
    start, end = _slice(random, raw)
    return raw[:end] + raw[start:end] + raw[end:]


def _removed(random: Random, raw: bytes, other: bytes) -> bytes:
    start, end = _slice(random, raw)
    return raw[:start] + raw[end:]


def _slice(random: Random, raw: bytes) -> tuple[int, int]:
    """Some bytes, or some whole lines."""
    start = random.randrange(len(raw))
    end = min(len(raw), start + random.randrange(1, LONGEST_SLICE))
    if random.random() < 0.5:
        return raw.rfind(b"\n", 0, start) + 1, (raw.find(b"\n", end) + 1) or len(raw)
    return start, end


def _re_encoded(random: Random, raw: bytes, other: bytes) -> bytes:
    try:
        return raw.decode().encode(random.choice(ENCODINGS), errors="replace")
    except UnicodeDecodeError:
        return raw.decode("latin-1").encode()


def _spliced(random: Random, raw: bytes, other: bytes) -> bytes:
    return raw[: random.randrange(len(raw))] + other[random.randrange(len(other)) :]


def _swapped(random: Random, raw: bytes, other: bytes) -> bytes:
    start, end = _slice(random, raw)
    at = random.randrange(len(raw))
    return (raw[:start] + raw[end:])[:at] + raw[start:end] + (raw[:start] + raw[end:])[at:]


MUTATIONS = (
    Mutation("cut", _cut),
    Mutation("bits flipped", _flipped),
    Mutation("quotes put in", _inserting(b'"', b'""', b"'", b'"\n'), only_adds=True),
    Mutation("delimiters put in", _inserting(b",", b"\t", b";", b"|", b":"), only_adds=True),
    Mutation("line ends put in", _inserting(b"\n", b"\r", b"\r\n", b"\xe2\x80\xa8", b"\xc2\x85"), only_adds=True),
    Mutation("NULs put in", _inserting(b"\0", b"\0\0\0\0", b"\\u0000"), only_adds=True),
    Mutation("byte order marks put in", _inserting(b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"), only_adds=True),
    Mutation("bytes put in", _inserting(b"\xff", b"\x80", b"\xc3", b"\x1b", b"\x7f", b"\xed\xa0\x80"), only_adds=True),
    Mutation("brackets put in", _inserting(b"{", b"}", b"[", b"]", b"\\", b"NaN", b"1e999"), only_adds=True),
    Mutation("a slice doubled", _duplicated, only_adds=True),
    Mutation("a slice removed", _removed),
    Mutation("a slice moved", _swapped),
    Mutation("encoding changed", _re_encoded),
    Mutation("two files spliced", _spliced),
)


# --- how many records others would find -----------------------------------------------------------------------------
def found_by_others(name: str, raw: bytes, layout: Mapping) -> int | None:
    """How many records lenient readers load from a file, or None where they load none: Python's csv without strictness
    and with doubtful characters replaced, json, gzip, zipfile, openpyxl, pyarrow."""
    ending = name.lower().rpartition(".")[2]
    try:
        if ending == "gz":
            return found_by_others(name[:-3], gzip.decompress(raw), layout)
        if ending == "zip":
            return _in_zip(raw, layout)
        return {"xlsx": _in_workbook, "parquet": _in_parquet}.get(ending, _in_text)(name, raw, layout)
    except Exception:  # noqa: BLE001 - whatever another reader does with a broken file, it then finds nothing
        return None


def _in_zip(raw: bytes, layout: Mapping) -> int:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        found = [found_by_others(name, archive.read(name), layout) for name in archive.namelist()]
    return sum(each or 0 for each in found)


def _in_text(name: str, raw: bytes, layout: Mapping) -> int | None:
    text = raw.decode("utf-8-sig", errors="replace")
    ending = name.lower().rpartition(".")[2]
    if ending == "json":
        return _in_json(json.loads(text), layout)
    if ending == "jsonl":
        return sum(isinstance(_parsed(line), dict) for line in text.split("\n"))
    first = text.lstrip("\r\n").partition("\n")[0]
    delimiter = "\t" if ending == "tsv" else max(",;\t|", key=first.count)
    quoting = csv.QUOTE_MINIMAL if layout.quoting else csv.QUOTE_NONE
    records = csv.reader(io.StringIO(text.replace("\0", ""), newline=""), delimiter=delimiter, quoting=quoting)
    return sum(bool(record) for record in records) - (not layout.header)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _in_json(document: Any, layout: Mapping) -> int | None:
    if isinstance(document, list):
        return len(document)
    if layout.records:
        return len(document[layout.records])
    return sum(len(part) for part in document.values()) if all(isinstance(p, list) for p in document.values()) else None


def _in_workbook(name: str, raw: bytes, layout: Mapping) -> int:
    from openpyxl import load_workbook

    sheet = load_workbook(io.BytesIO(raw), read_only=True, data_only=True).worksheets[0]
    filled = [row for row in sheet.iter_rows(values_only=True) if any(value not in {None, ""} for value in row)]
    return len(filled) - 1


def _in_parquet(name: str, raw: bytes, layout: Mapping) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_table(io.BytesIO(raw)).num_rows)


# --- originals ------------------------------------------------------------------------------------------------------
LAYOUTS = (
    Mapping(),
    Mapping(quoting=False),
    Mapping(quoting=False, header=tuple(f"c{number}" for number in range(1, 6))),
    Mapping(records="instances"),
)


def original(name: str, raw: bytes, most: int | None = None, layouts: Sequence[Mapping] = LAYOUTS) -> Original | None:
    """A file of which every row is read in one of the layouts, shortened to about ``most`` bytes; None for another."""
    for layout in layouts:
        problems = Problems()
        records = sum(1 for _ in read_rows(name, raw, layout=layout, problems=problems))
        if records and not problems:
            if most is None or len(raw) <= most:
                return Original(name, raw, layout, records)
            return original(name, _shortened(name, raw, layout, most), None, layouts)
    return None


def _shortened(name: str, raw: bytes, layout: Mapping, most: int) -> bytes:
    """The first records of a file of text, byte for byte where they are lines."""
    share = most / len(raw)
    if name.lower().endswith(".json"):
        document = json.loads(raw)
        parts = document.items() if isinstance(document, dict) else [("", document)]
        short = {key: part[: int(len(part) * share) + 1] if isinstance(part, list) else part for key, part in parts}
        return json.dumps(short.get("", short), ensure_ascii=False, indent=1).encode()
    starts = [row.line for row in read_rows(name, raw, layout=layout, problems=Problems())]
    count = max(TOGETHER, int(len(starts) * share) // TOGETHER * TOGETHER)
    if count >= len(starts):
        return raw
    keep = starts[count] - 1
    return b"".join(raw.splitlines(keepends=True)[:keep]) if b"\r" not in raw else _lines(raw, keep)


def _lines(raw: bytes, keep: int) -> bytes:
    return b"\n".join(raw.split(b"\n")[:keep]) + b"\n"


def forms(plain: Original) -> list[Original]:
    """The same rows in every kind of file: as they are, compressed, as a workbook and as Parquet."""
    name, stem = plain.name, plain.name.rpartition(".")[0]
    rows = [row.fields for row in read_rows(name, plain.raw, layout=plain.layout, problems=Problems())]
    lines = b"".join(json.dumps(fields, ensure_ascii=False).encode() + b"\n" for fields in rows)
    files = {
        name: plain.raw,
        f"{name}.gz": gzip.compress(plain.raw, mtime=0),
        f"{stem}.zip": _zipped(name, plain.raw),
        f"{stem}.jsonl": lines,
        f"{stem}.xlsx": as_workbook(rows[:300]),
        f"{stem}.parquet": as_parquet(rows),
    }
    wanted = {each: raw for each, raw in files.items() if raw}
    made = [original(each, raw) for each, raw in wanted.items()]
    return [each for each in made if each is not None]


def _zipped(name: str, raw: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(f"study/{name}"), raw, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def as_workbook(rows: list[dict[str, Any]]) -> bytes:
    """An Excel file of these rows; none where it can't hold their characters."""
    from openpyxl import Workbook
    from openpyxl.utils.exceptions import IllegalCharacterError

    workbook = Workbook(write_only=True)
    sheet = workbook.create_sheet()
    sheet.append(list(rows[0]))
    try:
        for fields in rows:
            sheet.append([value if isinstance(value, int | float) else _cell(value) for value in fields.values()])
    except IllegalCharacterError:
        return b""
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:32_000].lstrip("=")


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    """A Parquet file of these rows; none where their values are of no one type."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    try:
        pq.write_table(pa.Table.from_pylist(rows), stream)
    except pa.ArrowException:
        return b""
    return stream.getvalue()


# --- files as no program would write them -----------------------------------------------------------------------------


MOST_ROWS = 24
MOST_EDITS = 5
NASTY = (
    *("", " ", "N/A", "-1", "1e5", "2.9E+15", "NaN", "inf", "1,5", "١٢", "0x10", "=1+1", "'", '"', '""', "a,b", "--"),
    *("a;b\tc|d", "line\nbreak", "cr\r\nlf", "\r", "\0", "\ufeff", "\u200f\u202e", "a\u0308", "\U0001f600", "\ud800"),
    *("\\u0000", "[1, 2]", '{"a": 1}', "None", "null", "true", "x" * 300, "\u2028", "\x1b", "\x85", "𝟏", "１"),
)
CELLS = st.one_of(
    st.sampled_from(NASTY), st.text(max_size=12), st.integers(-(2**70), 2**70).map(str), st.floats().map(str)
)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Imagined:
    """A file of so many records, made like ``whole``."""

    whole: Original
    raw: bytes
    records: int


def thought_up(wholes: Sequence[Original], count: int, number: int) -> list[Imagined]:
    """So many files, the same for the same number."""
    found: list[Imagined] = []

    @seed(number)
    @settings(
        max_examples=2 * count, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=HealthCheck
    )
    @given(imagined(wholes))
    def think(file: Imagined | None) -> None:
        if file is not None and len(found) < count:
            found.append(file)

    think()
    return found


def imagined(wholes: Sequence[Original]) -> st.SearchStrategy[Imagined | None]:
    """Files like some of ``wholes`` with a few edits; None where their kind of file cannot hold what was imagined."""
    plain = [whole for whole in wholes if whole.kind.partition(".")[0] in _WRITERS]
    kept = {whole.name: _rows(whole) for whole in plain}

    @st.composite
    def file(draw: st.DrawFn) -> Imagined | None:
        whole = draw(st.sampled_from(plain))
        rows = [dict(row) for row in kept[whole.name]]
        for _ in range(draw(st.integers(0, MOST_EDITS))):
            draw(st.sampled_from(_EDITS))(draw, rows)
        return _written(whole, rows)

    return file()


def _rows(whole: Original) -> list[Row]:
    return [row.fields for row in read_rows(whole.name, whole.raw, layout=whole.layout, problems=Problems())][
        :MOST_ROWS
    ]


def _imagined_cell(draw: st.DrawFn, rows: list[Row]) -> None:
    row = draw(st.sampled_from(rows))
    row[draw(st.sampled_from(list(row)))] = draw(CELLS)


def _blank(draw: st.DrawFn, rows: list[Row]) -> None:
    row = draw(st.sampled_from(rows))
    row[draw(st.sampled_from(list(row)))] = ""


def _borrowed(draw: st.DrawFn, rows: list[Row]) -> None:
    one, other = draw(st.sampled_from(rows)), draw(st.sampled_from(rows))
    column = draw(st.sampled_from(list(one)))
    one[column] = other.get(column, "")


def _doubled(draw: st.DrawFn, rows: list[Row]) -> None:
    rows.insert(draw(st.integers(0, len(rows))), dict(draw(st.sampled_from(rows))))


def _gone(draw: st.DrawFn, rows: list[Row]) -> None:
    if len(rows) > 1:
        rows.pop(draw(st.integers(0, len(rows) - 1)))


def _moved(draw: st.DrawFn, rows: list[Row]) -> None:
    rows.insert(draw(st.integers(0, len(rows) - 1)), rows.pop())


def _without(draw: st.DrawFn, rows: list[Row]) -> None:
    column = draw(st.sampled_from(list(rows[0])))
    if all(len(row) > 1 for row in rows):
        for row in rows:
            row.pop(column, None)


_EDITS: tuple[Callable[[st.DrawFn, list[Row]], None], ...] = (
    *(_imagined_cell, _imagined_cell, _imagined_cell, _blank, _borrowed, _doubled, _gone, _moved, _without),
)


# --- written anew ---------------------------------------------------------------------------------------------------
def _written(whole: Original, rows: list[Row]) -> Imagined | None:
    kind, _dot, packed = whole.kind.partition(".")
    try:
        raw = _WRITERS[kind](rows, whole)
    except (IllegalCharacterError, UnicodeEncodeError):
        return None
    return Imagined(whole, gzip.compress(raw, mtime=0) if packed else raw, len(rows)) if raw else None


def _delimited(rows: list[Row], whole: Original) -> bytes:
    tab, layout = "tsv" in whole.kind, whole.layout
    stream = io.StringIO(newline="")
    if not layout.quoting:
        # Nothing can be quoted: what would need it becomes a space, as whoever writes such a file has to see to.
        rows = [{name: " ".join(_text_of(value).split()) for name, value in row.items()} for row in rows]
    quoting: Any = csv.QUOTE_MINIMAL if layout.quoting else csv.QUOTE_NONE
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(
        stream, delimiter="\t" if tab else ",", quoting=quoting, quotechar='"' if layout.quoting else None
    )
    writer.writerows([] if layout.header else [columns])
    writer.writerows([_text_of(row.get(name, "")) for name in columns] for row in rows)
    return stream.getvalue().encode("utf-8", "surrogatepass")


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _imagined_lines(rows: list[Row], whole: Original) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "surrogatepass")


_WRITERS: dict[str, Callable[[list[Row], Original], bytes]] = {
    "csv": _delimited,
    "tsv": _delimited,
    "jsonl": _imagined_lines,
    "xlsx": lambda rows, _whole: as_workbook(rows),
    "parquet": lambda rows, _whole: as_parquet(rows),
}
