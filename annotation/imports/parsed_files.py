"""A cache of parsed import files: the preview fills it, storing reads it, then it is deleted.

A kept result is one file, ``parsed/IMPORT/DIGEST`` in the media directory; no address serves it. The digest covers
everything that reading depends on: the files, the mapping, the names of the rubric's criteria, the code. If a result is
missing, damaged or has another digest, the files are read again. Results with problems are not kept, because nothing of
these files is stored. Results are deleted with their import, when it is stored, and by `sweep_parsed`.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from functools import cache
from gzip import GzipFile
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast
from uuid import uuid4

import orjson
from django.conf import settings

import annotation.readers
from accounts import languages
from annotation.imports import criterion_names, parsing, rating_rows
from annotation.imports.criterion_names import criterion_spellings
from annotation.imports.parsing import ParsedFiles, parse_files
from annotation.models import Import, RubricVersion
from annotation.readers import (
    ColumnFacts,
    ItemRow,
    Mapping,
    Problems,
    Progress,
    RatingRow,
    Report,
    Spool,
    VerdictRow,
    with_words,
    words_by_text,
)

logger = logging.getLogger(__name__)

Kind = Import.Kind
UNUSED_FOR = timedelta(days=7)  # after this time without use, a result is deleted
ITEM_PARTS = len(ItemRow.__slots__)  # the columns of a row that are kept; only reading needs those after them
CHECKSUM = 32  # bytes at the start of a kept result: the SHA-256 of all that follows


def parse_import(
    file_import: Import,
    mapping: Mapping,
    version: RubricVersion | None = None,
    progress: Progress | None = None,
    *,
    is_shown: bool = False,
    keeps: bool = False,
) -> ParsedFiles:
    """The rows of an import's files, read with ``mapping``: from the cache if they are there, else read now.

    The result is kept for a later reading if a page shows it (``is_shown``) or ``keeps`` is set. The results of a
    study's parts are kept with the study.
    """
    path = _folder(file_import.part_of_id or file_import.pk) / _digest(file_import, mapping, version)
    if (kept := _kept(path, file_import.kind)) is not None:
        if progress is not None:
            size = sum(file.size for file in file_import.files.all())
            progress(size, size)
        return kept
    with file_import.opened() as files:
        parsed = parse_files(file_import.kind, files, mapping, version, progress, is_shown=is_shown)
    if (is_shown or keeps) and not parsed.problems:
        _keep(path, parsed, is_only=file_import.part_of_id is None)
    return parsed


# --- keeping --------------------------------------------------------------------------------------------------------
def _folder(import_pk: int | None = None) -> Path:
    folder = Path(settings.MEDIA_ROOT) / "parsed"
    return folder if import_pk is None else folder / str(import_pk)


def _digest(file_import: Import, mapping: Mapping, version: RubricVersion | None) -> str:
    """The digest of all that reading the files of an import depends on."""
    files = [[file.name, file.size, file.sha256] for file in file_import.files.order_by("pk")]
    criteria = version.criteria.order_by("pk") if version and file_import.kind != Kind.DATASET else ()
    spelled = [[criterion.key, sorted(criterion_spellings(criterion))] for criterion in criteria]
    asked = [str(file_import.kind), files, mapping.as_dict(), spelled, _this_code()]
    return hashlib.sha256(orjson.dumps(asked)).hexdigest()


@cache
def _this_code() -> str:
    readers = Path(annotation.readers.__file__).parent
    return code_digest(
        readers,
        *(Path(str(module.__file__)) for module in (languages, rating_rows, criterion_names, parsing)),
        Path(__file__),
    )


def code_digest(*sources: Path) -> str:
    """A digest of some modules, of the modules in some folders, and of the version of Python."""
    digest = hashlib.sha256(sys.version.encode())
    for source in sources:
        for module in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            digest.update(b"%s %s " % (module.name.encode(), hashlib.sha256(module.read_bytes()).digest()))
    return digest.hexdigest()


def _keep(path: Path, parsed: ParsedFiles, *, is_only: bool) -> None:
    """Cache a result under its digest; with ``is_only``, replace earlier results. If this fails, the files are read
    again later."""
    half = path.with_name(f"{uuid4()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.touch(mode=0o600)
        with half.open("r+b") as file:
            file.write(bytes(CHECKSUM))
            with GzipFile(filename="", mode="wb", compresslevel=1, fileobj=file, mtime=0) as packed:
                for line in _lines(path.name, parsed):
                    packed.write(line)
                    packed.write(b"\n")
            checksum = _checksum(file)
            file.seek(0)
            file.write(checksum)
        for other in path.parent.iterdir() if is_only else ():
            if other not in (half, path) and other.suffix != ".part":
                other.unlink(missing_ok=True)
        half.replace(path)
    except (OSError, TypeError) as error:  # the disk is full, or JSON can't express a value
        logger.warning("What was read of import %s is not kept: %s", path.parent.name, error)
        with suppress(OSError):
            half.unlink(missing_ok=True)


def _lines(digest: str, parsed: ParsedFiles) -> Iterable[bytes]:
    """A result as lines of JSON: first everything except the rows, then the rows, some thousand in a line."""
    yield orjson.dumps(
        {
            "digest": digest,
            "mapping": parsed.mapping.as_dict(),
            "report": parsed.report.as_dict(),
            "notes": parsed.problems.notes,
            "words": words_by_text([*parsed.problems.notes, *parsed.report.notes]),
            "left_out": parsed.problems.left_out,
            "names": parsed.names,
            "columns": [
                [column.name, column.target, column.filled, column.blank, column.counts] for column in parsed.columns
            ],
            "first_lines": parsed.first_lines,
            "sheets": parsed.sheets,
            "rows": len(parsed.rows),
            "weight": parsed.rows.weight,
        }
    )
    yield from map(orjson.dumps, parsed.rows.batches())


def _kept(path: Path, kind: str) -> ParsedFiles | None:
    """The result that is kept under a digest; None if it does not exist or is damaged."""
    try:
        with path.open("rb") as file:
            checksum = file.read(CHECKSUM)
            if checksum != _checksum(file):
                raise ValueError("its checksum is another")
            file.seek(CHECKSUM)
            with GzipFile(fileobj=file) as packed:
                return _restored(path.name, BufferedReader(cast(Any, packed)), kind)
    except FileNotFoundError:
        return None
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        logger.warning("What was read of import %s can't be used, and is read again: %s", path.parent.name, error)
        return None


def _restored(digest: str, lines: BinaryIO, kind: str) -> ParsedFiles:
    header = orjson.loads(lines.readline())
    if header["digest"] != digest:
        raise ValueError("it answers something else")
    rows: Spool[Any] = Spool(_RESTORED[kind])
    for line in lines:
        # Rows without any weight have no long texts (`PartitionedRows`).
        rows.extend([tuple(row) for row in orjson.loads(line)], len(line) if header["weight"] else 0)
    if len(rows) != header["rows"]:
        raise ValueError(f"it holds {len(rows)} rows of {header['rows']}")
    rows.weight = header["weight"]
    problems = Problems()
    problems.notes, problems.left_out = [*with_words(header["notes"], header["words"])], header["left_out"]
    report = Report.from_dict(header["report"])
    report.notes = [*with_words(report.notes, header["words"])]
    columns = [
        ColumnFacts(name, target, filled, blank, Counter(counts))
        for name, target, filled, blank, counts in header["columns"]
    ]
    return ParsedFiles(
        mapping=Mapping.from_dict(header["mapping"]),
        rows=rows,
        report=report,
        problems=problems,
        names=header["names"],
        columns=columns,
        first_lines=[(number, cells) for number, cells in header["first_lines"]],
        sheets=header["sheets"],
    )


_RESTORED: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    Kind.DATASET: lambda row: ItemRow(*row[:ITEM_PARTS]),
    Kind.RATINGS: RatingRow._make,
    Kind.VERDICTS: VerdictRow._make,
}


def _checksum(file: BinaryIO) -> bytes:
    """The SHA-256 of all bytes after the checksum in a kept result."""
    file.seek(CHECKSUM)
    return hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type]


def forget_parsed(import_pk: int) -> None:
    """Delete the cached results of an import."""
    shutil.rmtree(_folder(import_pk), ignore_errors=True)


def sweep_parsed(*, unused_for: timedelta = UNUSED_FOR) -> None:
    """Delete the cached results of imports that are deleted or stored, and those not used for a long time."""
    folders = {path.name: path for path in _folder().iterdir()} if _folder().is_dir() else {}
    numbers = [int(name) for name in folders if name.isdecimal()]
    waiting = Import.objects.filter(pk__in=numbers).exclude(state=Import.State.STORED).values_list("pk", flat=True)
    wanted = {str(pk) for pk in waiting}
    before = time.time() - unused_for.total_seconds()
    for name, folder in folders.items():
        if name not in wanted:
            shutil.rmtree(folder, ignore_errors=True)
            continue
        for path in folder.iterdir() if folder.is_dir() else ():
            with suppress(OSError):
                if path.stat().st_mtime < before:
                    path.unlink()
