"""Libraries against our own readers, on hostile files: ``python -m bench.reader_libraries [--markdown FILE]``.

Encodings: charset-normalizer. Workbooks: openpyxl (read-only) and python-calamine. Rows on disk: sqlite3. A library
that is not installed is left out; ``uv pip install --target FOLDER python-calamine`` and ``PYTHONPATH=FOLDER`` put it
beside ours without changing the environment. Times are seconds of processor time of a process that does nothing
else; memory is the most it ever held, less what it held before.

A right answer is: of an encoding, one that gives back the text that was written, or none where the bytes are not in one
encoding; of a workbook, the values that it stores, or a refusal where a cell has none.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import marshal
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import django

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 25  # seconds of processor time that a process of a measurement may take
MEMORY = 2 * 2**30  # bytes that a process of a measurement may take
ROWS = 100_000
SPILLED = 500_000
CODECS = {
    "ar": "cp1256", "de": "cp1252", "el": "cp1253", "es": "cp1252", "et": "cp1257", "fr": "cp1252", "he": "cp1255",
    "ja": "cp932", "ko": "cp949", "lt": "cp1257", "lv": "cp1257", "pl": "cp1250", "pt": "cp1252", "ru": "cp1251",
    "th": "cp874", "tr": "cp1254", "uk": "cp1251", "zh_Hans": "gb18030", "zh_Hant": "big5",
}  # fmt: skip


def in_own_process(part: str, *arguments: str) -> dict[str, Any]:
    """What a function of this module returns in a process of its own, with its ``seconds`` and ``mb``."""
    command = [sys.executable, "-m", "bench.reader_libraries", "--part", part, *arguments]
    env = {**os.environ, "DEBUG": "on"}
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if run.returncode == -signal.SIGXCPU:
        return {"answer": f"no end in {LONGEST} s", "seconds": float(LONGEST), "mb": float("nan")}
    if run.returncode:
        last = (run.stderr.strip().splitlines() or [f"killed by signal {-run.returncode}"])[-1][:80]
        return {"answer": f"fails: {last}", "seconds": float("nan"), "mb": float("nan")}
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def _peak() -> float:
    """The most memory that this program alone has held, in MB; unlike ``ru_maxrss``, which begins with the parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


# --- encodings ------------------------------------------------------------------------------------------------------
def samples() -> list[tuple[str, bytes, str | None]]:
    """(name, bytes, the text that they are or None where they are in no one encoding)."""
    from tests.annotation.readers.test_encoding import WRITTEN

    written: list[tuple[str, bytes, str | None]] = []
    for sentence, codec, _called, _name in WRITTEN:
        text = f'n\ttext\n1\t"{sentence}"\n2\tplain\n3\tplain\n'
        written.append((f"one line in {codec}", text.encode(codec), text))
    for language, codec in CODECS.items():
        for most in (5, 200):
            lines = list(itertools.islice(_catalogue(language, codec), most))
            if len(lines) == most:
                text = "id,text\n" + "".join(f'{n},"{line}"\n' for n, line in enumerate(lines))
                written.append((f"{most} rows of {language} in {codec}", text.encode(codec), text))
    for language in ("et", "ru", "ar", "ja"):
        text = "id,text\n" + "".join(f"{n},{line}\n" for n, line in enumerate(_some(language, "utf_8", 50)))
        if text.count("\n") > 1:
            other = text.encode("utf_8") + f"51,{_some(language, CODECS[language], 1)[0]}\n".encode(CODECS[language])
            written += [
                (f"{language} in UTF-8", text.encode(), text),
                (f"{language} in UTF-8, one row not", other, None),
            ]
    written.append(("ASCII", b"id,text\n1,hello\n", "id,text\n1,hello\n"))
    written.append(("bytes of no text", bytes(random.Random(1).randbytes(4_000)), None))
    return written


def _some(language: str, codec: str, most: int) -> list[str]:
    return list(itertools.islice(_catalogue(language, codec), most))


def _catalogue(language: str, codec: str) -> Iterator[str]:
    """Sentences that the interface has in a language, as far as an encoding has their characters."""
    from babel.messages.pofile import read_po

    path = ROOT / "locale" / language / "LC_MESSAGES" / "django.po"
    if not path.exists():
        return
    with path.open("rb") as file:
        for message in read_po(file):
            words = message.string if isinstance(message.string, str) else ""
            with contextlib.suppress(UnicodeEncodeError):
                if words and not words.isascii() and words.encode(codec).decode(codec) == words:
                    yield words.replace('"', "'").replace("\n", " ")


def our_codec(raw: bytes, *, applied: bool = False) -> str | None:
    """What our readers take a file for; ``applied``: only what they act upon without being asked."""
    from annotation.readers import encoding

    with contextlib.suppress(UnicodeDecodeError):
        if encoding._wide(raw) is None and not any(raw.startswith(mark) for mark in encoding._MARKS):
            raw.decode("utf_8")
            return "utf_8"
    if legacy := encoding.legacy_codec(raw):
        return legacy
    if applied:
        return None
    lines = raw.split(b"\n")
    if any(not line.isascii() and _is_utf8(line) for line in lines):
        return None  # lines in UTF-8 beside others: refused with the line
    marked = next((codec for mark, codec in encoding._MARKS.items() if raw.startswith(mark)), None)
    page = encoding.likely_codepage(raw)
    return marked or encoding._wide(raw) or (page.codec if page else None)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def their_codec(raw: bytes) -> str | None:
    from charset_normalizer import from_bytes

    best = from_bytes(raw).best()
    return best.encoding if best else None


DETECTORS: dict[str, Callable[[bytes], str | None]] = {
    "ours": our_codec,
    "ours, applied without asking": lambda raw: our_codec(raw, applied=True),
    "charset-normalizer": their_codec,
}


def encodings(which: str) -> dict[str, Any]:
    right, wrong, none = 0, [], 0
    some = samples()
    large = max((raw for _name, raw, text in some if text), key=len)
    large = (large * (2**20 // len(large) + 1))[: 2**20]
    detect = DETECTORS[which]
    detect(b"warm")
    before, begun = _peak(), time.process_time()
    answers = [(name, raw, text, detect(raw)) for name, raw, text in some]
    seconds, begun = time.process_time() - begun, time.process_time()
    detect(large)
    whole = time.process_time() - begun
    for name, raw, text, codec in answers:
        decoded = None if codec is None else raw.decode(codec, "replace").removeprefix("\ufeff")
        if decoded == text:
            right += 1
        elif decoded is None:
            none += 1
        else:
            wrong.append(f"{name}: {codec}")
    return {
        "answer": f"{right} of {len(some)}", "wrong": wrong, "none": none,
        "seconds": seconds, "whole": whole, "mb": _peak() - before,
    }  # fmt: skip


# --- workbooks ------------------------------------------------------------------------------------------------------
def workbooks() -> list[tuple[str, bytes, Any]]:
    """(name, workbook, its rows below the header as lists of plain values, or None where it is to be refused)."""
    import datetime as dt

    from tests.annotation.readers.test_xlsx import BOMB, OUTSIDE, made, sheet, text, with_sheet

    def error(page: Any) -> None:
        page["B2"].value, page["B2"].data_type = "#REF!", "e"

    def span(page: Any) -> None:
        page["B2"].value, page["B2"].number_format = 1.5, "[h]:mm:ss"

    runs = '<is><r><t>to</t></r><r><t xml:space="preserve">kyo </t></r><rPh><t>TOKYO</t></rPh></is>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    prefix = f'<x:worksheet xmlns:x="{main}"><x:sheetData><x:row r="1"><x:c r="A1" t="str"><x:v>id</x:v></x:c></x:row>'
    prefix += '<x:row r="2"><x:c r="A2"><x:v>4</x:v></x:c></x:row></x:sheetData></x:worksheet>'
    moment = dt.datetime(2024, 3, 1, 12, 30)  # noqa: DTZ001 - a sheet knows no zones
    row = '<row r="1"><c r="A1" t="inlineStr"><is><t>id</t></is></c></row>'
    return [
        ("numbers, truth and text", made(["a", "b", "c"], [2, True, " x "], [0.1, False, "1"]),
         [[2, True, " x "], [0.1, False, "1"]]),
        ("days and hours", made(["a", "b", "c"], [dt.date(2024, 3, 1), moment, dt.time(9, 5)]),
         [["2024-03-01", "2024-03-01T12:30:00", "09:05:00"]]),
        ("hours counted past a day", made(["a", "b"], [1, 1], change=span), [[1, "36:00:00"]]),
        ("an integer of 15 digits", made(["a"], [123456789012345]), [[123456789012345]]),
        ("escaped characters", made(["a"], ["x_x000D_y"]), [["x\ry"]]),
        ("text in runs, with its pronunciation",
         sheet(f'<row>{text("A1", "a")}</row><row><c t="inlineStr">{runs}</c></row>'), [["tokyo "]]),
        ("a namespace prefix", with_sheet(prefix), [[4]]),
        ("rows with gaps", made([], ["a", "b"], [], [1, 2]), [[1, 2]]),
        ("a formula without its result", made(["a", "b"], [1, "=A2+1"]), None),
        ("an error in a cell", made(["a", "b"], [1, 2], change=error), None),
        ("merged cells", made(["a", "b"], [1, 2], change=lambda page: page.merge_cells("A3:B3")), None),
        ("half a character", made(["a"], ["x_xD83D_"]), None),
        ("two cells in one place", sheet(row + '<row r="2"><c r="A2"><v>1</v></c><c r="A2"><v>2</v></c></row>'), None),
        ("a row twice", sheet(row + '<row r="2"><c r="A2"><v>1</v></c></row><row r="2"><c r="A2"><v>2</v></c></row>'),
         None),
        ("a text that is not there", sheet(row + '<row r="2"><c r="A2" t="s"><v>99</v></c></row>'), None),
        ("a number that is none", sheet(row + '<row r="2"><c r="A2"><v>x</v></c></row>'), None),
        ("a sheet that is cut", sheet(row + '<row r="2"><c r="A2"><v>1</v></c>'), None),
        ("a file that is cut", made(["a"], [1])[:-200], None),
        ("entities", sheet(f'<row r="1">{text("A1", "&b;")}</row>', before=BOMB), None),
        ("an entity from outside", sheet(f'<row r="1">{text("A1", "&a;")}</row>', before=OUTSIDE), None),
        ("an old workbook, or a password", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, None),
    ]  # fmt: skip


def our_rows(path: str) -> Iterator[list[Any]]:
    from annotation.readers.problems import Problems
    from annotation.readers.reading import read_rows

    problems = Problems()
    with Path(path).open("rb") as file:
        for row in read_rows("a.xlsx", file, problems=problems):
            yield list(row.fields.values())
    if problems:
        raise ValueError(problems.sentences()[0])


def openpyxl_rows(path: str) -> Iterator[list[Any]]:
    from openpyxl import load_workbook

    book = load_workbook(path, read_only=True, data_only=True)
    filled = (row for row in book.active.iter_rows(values_only=True) if any(cell is not None for cell in row))
    next(filled)
    yield from ([_plain(cell) for cell in row] for row in filled)


def calamine_rows(path: str) -> Iterator[list[Any]]:
    from python_calamine import CalamineWorkbook

    page = CalamineWorkbook.from_path(path).get_sheet_by_index(0)
    filled = (row for row in page.iter_rows() if any(cell != "" for cell in row))
    next(filled)
    yield from ([_plain(cell) for cell in row] for row in filled)


def _plain(cell: Any) -> Any:
    """As our readers write moments; a float that is a whole number counts as that."""
    import datetime as dt

    if isinstance(cell, dt.timedelta):
        seconds = round(cell.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat()
    return cell


READERS = {"ours": our_rows, "openpyxl, read-only": openpyxl_rows, "python-calamine": calamine_rows}


def sheets(which: str) -> dict[str, Any]:
    """How many of the workbooks are read rightly, or refused where they are to be."""
    wrong = []
    some = workbooks()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.xlsx"
        for name, raw, expected in some:
            path.write_bytes(raw)
            try:
                found: Any = list(READERS[which](str(path)))
            except Exception:  # noqa: BLE001 (whatever a library raises is a refusal)
                found = None
            if found != expected:
                wrong.append(f"{name}: {'refused' if found is None else str(found)[:40]}")
    return {"answer": f"{len(some) - len(wrong)} of {len(some)}", "wrong": wrong, "seconds": 0.0, "mb": 0.0}


def one_sheet(which: str, path: str) -> dict[str, Any]:
    """One workbook read to its end."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with contextlib.suppress(Exception):
        list(READERS[which](str(ROOT / "nothing.xlsx")))  # the library itself is loaded
    before, begun, count, answer = _peak(), time.process_time(), 0, "taken"
    try:
        for _row in READERS[which](path):
            count += 1
    except MemoryError:
        answer = "out of memory"
    except Exception as error:  # noqa: BLE001 (whatever a library raises is a refusal)
        answer = f"refused ({type(error).__name__})"
    return {"answer": answer, "rows": count, "seconds": time.process_time() - begun, "mb": _peak() - before}


# --- rows on disk ---------------------------------------------------------------------------------------------------
def _ratings() -> Iterator[list[tuple[Any, ...]]]:
    """Ratings in batches; one in a hundred repeats an earlier key."""
    rng = random.Random(1)
    for start in range(0, SPILLED, 1_000):
        yield [
            (f"item-{number // 10 if rng.random() < 0.99 else 0}", f"rater-{number % 10}", "fluency", float(number % 5),
             True, False, "a few words on why" * (number % 3), None, "et", None, "a.csv", number + 2, "score")
            for number in range(start, start + 1_000)
        ]  # fmt: skip


def spilled(which: str) -> dict[str, Any]:
    """Write the rows, find those that share a key, read all twice."""
    before, begun = _peak(), time.process_time()
    count, repeated = {"ours": _our_spool, "sqlite3, a blob a row": _blobs, "sqlite3, columns": _columns}[which]()
    return {
        "answer": f"{count:,} rows, {repeated:,} with a key of another", "seconds": time.process_time() - begun,
        "mb": _peak() - before,
    }  # fmt: skip


def _our_spool() -> tuple[int, int]:
    from annotation.readers.spool import KEPT, KeyedRows

    repeated = 0

    def decide(alike: list[tuple[Any, ...]]) -> list[int]:
        nonlocal repeated
        repeated += len(alike)
        return [KEPT] * len(alike)

    rows: KeyedRows[Any] = KeyedRows(tuple, lambda row: row[:3])
    for batch in _ratings():
        rows.extend(batch)
    settled = rows.settle(decide)
    return sum(1 for _time in range(2) for _row in settled) // 2, repeated


def _blobs() -> tuple[int, int]:
    """What would replace our file and our hashes: rows as marshal writes them, with the hash of their key, indexed."""
    with contextlib.closing(_temporary()) as base:
        base.execute("CREATE TABLE rows (hash INTEGER, row BLOB)")
        for batch in _ratings():
            base.executemany("INSERT INTO rows VALUES (?, ?)", ((hash(row[:3]), marshal.dumps(row)) for row in batch))
        base.execute("CREATE INDEX hashes ON rows (hash)")
        alike = "SELECT count(*) FROM rows WHERE hash IN (SELECT hash FROM rows GROUP BY hash HAVING count(*) > 1)"
        (repeated,) = base.execute(alike).fetchone()
        for _time in range(2):
            count = sum(1 for (row,) in base.execute("SELECT row FROM rows ORDER BY rowid") if marshal.loads(row))
    return count, repeated


def _columns() -> tuple[int, int]:
    """Plain columns, which lose true and false, and take no lists or objects of items."""
    with contextlib.closing(_temporary()) as base:
        base.execute(f"CREATE TABLE rows ({', '.join(f'c{number}' for number in range(13))})")
        for batch in _ratings():
            base.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * 13)})", batch)
        base.execute("CREATE INDEX keys ON rows (c0, c1, c2)")
        alike = "SELECT sum(n) FROM (SELECT count(*) AS n FROM rows GROUP BY c0, c1, c2 HAVING n > 1)"
        (repeated,) = base.execute(alike).fetchone()
        for _time in range(2):
            count = sum(1 for _row in base.execute("SELECT * FROM rows ORDER BY rowid"))
    return count, repeated


def _temporary() -> sqlite3.Connection:
    """A database in a temporary file that nobody else sees."""
    base = sqlite3.connect("", isolation_level=None)
    base.execute("PRAGMA journal_mode = OFF")
    base.execute("PRAGMA synchronous = OFF")
    base.execute("BEGIN")
    return base


# --- the tables -----------------------------------------------------------------------------------------------------
def _there(names: Sequence[str]) -> list[str]:
    modules = {"charset-normalizer": "charset_normalizer", "python-calamine": "python_calamine"}
    return [name for name in names if find_spec(modules.get(name, "csv")) is not None]


def _encoding_table() -> str:
    lines = ["| encodings | right | wrong | no answer | all files, s | 1 MB, s | MB |", "|---|---|---|---|---|---|---|"]
    notes = []
    for which in _there(list(DETECTORS)):
        got = in_own_process("encodings", which)
        if "wrong" not in got:
            lines.append(f"| {which} | {got['answer']} | | | | | |")
            continue
        lines.append(
            f"| {which} | {got['answer']} | {len(got['wrong'])} | {got['none']} | {got['seconds']:.2f} "
            f"| {got['whole']:.3f} | {got['mb']:.0f} |"
        )
        notes += [f"- {which}, wrong: {'; '.join(got['wrong'])}."] if got["wrong"] else []
    return "\n".join([*lines, "", *notes])


def _sheet_tables() -> str:
    from tests import make
    from tests.annotation.readers.test_rows import bombs

    there = _there(list(READERS))
    small = {which: in_own_process("sheets", which) for which in there}
    lines = ["| workbooks | " + " | ".join(there) + " |", "|---" * (len(there) + 1) + "|"]
    lines.append("| hostile ones, right | " + " | ".join(small[which]["answer"] for which in there) + " |")
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.xlsx"
        header = ["id", "language", "question", "answer", "score", "note", "rater", "seconds"]
        body = ([f"d{n}", "et", f"Küsimus {n}?", f"Vastus {n}.", n % 5, "", f"r{n % 9}", n / 7] for n in range(ROWS))
        large.write_bytes(make.workbook({"Data": [header, *body]}))
        files = {f"{ROWS:,} rows": large, **{k: p for k, p in bombs(Path(folder)).items() if p.suffix == ".xlsx"}}
        for name, path in files.items():
            cells = [in_own_process("sheet", which, str(path)) for which in there]
            lines.append(
                f"| {name}: outcome, s, MB | "
                + " | ".join(f"{got['answer']}, {got['seconds']:.1f}, {got['mb']:.0f}" for got in cells) + " |"
            )  # fmt: skip
    notes = [f"- {which}, wrong: {'; '.join(got['wrong'])}." for which, got in small.items() if got.get("wrong")]
    return "\n".join([*lines, "", *notes])


def _spill_table() -> str:
    lines = [f"| {SPILLED:,} rows on disk | answer | s | MB |", "|---|---|---|---|"]
    for which in ("ours", "sqlite3, a blob a row", "sqlite3, columns"):
        got = in_own_process("spilled", which)
        lines.append(f"| {which} | {got['answer']} | {got['seconds']:.1f} | {got['mb']:.0f} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the tables to a file, too")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")
    os.environ.setdefault("DEBUG", "on")
    django.setup()  # what makes the files of the tests knows it
    if given.part:
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST + 5))
        part, *arguments = given.part
        parts = {"encodings": encodings, "sheets": sheets, "sheet": one_sheet, "spilled": spilled}
        with contextlib.redirect_stdout(io.StringIO()):
            result = parts[part](*arguments)
        print(json.dumps(result))
        return
    written = []
    for table in (_encoding_table, _spill_table, _sheet_tables):
        written.append(table())
        print(written[-1], flush=True)
    if given.markdown:
        given.markdown.write_text("\n\n".join(written) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
