"""A cache of parsed import files: the preview fills it, storing reads it, then it is deleted.

A kept result is one file, ``parsed/IMPORT/DIGEST`` in the media directory, which nothing serves. The digest is that of
all that reading depends on: the files, the mapping, the names of the rubric's criteria, the code. A result that is
missing, damaged or of another digest is not used: the files are read again. Results with problems are not kept, as
nothing of such files is stored. They are deleted with their import, as soon as it is stored, and by `sweep_parsed`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from annotation.imports import rating_rows
from annotation.imports.rating_rows import CriterionNames, criterion_spellings, label_values, with_criterion_keys
from annotation.models import Import, RubricVersion
from annotation.readers import (
    ColumnFacts,
    File,
    InvalidValue,
    ItemRow,
    Mapping,
    ParsedItems,
    Problem,
    Problems,
    Progress,
    RatingRow,
    Report,
    Spool,
    TableFacts,
    VerdictRow,
    Words,
    as_answer,
    excerpt,
    first_lines,
    most_frequent,
    parse_items,
    parse_ratings,
    parse_verdicts,
    sheet_names,
    shortened_list,
    unpacked_files,
    with_words,
    words_by_text,
)

logger = logging.getLogger(__name__)

Kind = Import.Kind
UNUSED_FOR = timedelta(days=7)  # after which a result of an import that nobody stores goes
ITEM_PARTS = len(ItemRow.__slots__)  # of a row; what follows only reading needs
WORDS_OF_A_SENTENCE = 4
RATING_COLUMN = re.compile(
    r"(?i)(?:^|[_ .-])(?:annotat(?:ors?|ions?)|raters?|ratings?|reviewers?|workers?|coders?|severity)"
    r"(?:id|name|level)?(?:$|[_ .-])"
)
NUMBERED_RATER = re.compile(r"(?i)(?:annotator|rater|reviewer|worker|coder)s?[_ .-]?[0-9]{1,3}$")
OUTPUT_COLUMN = re.compile(
    r"(?i)^((?:model_?)?(?:output|response|answer|completion|reply|generation|conversation|candidate|translation|hypothesis"
    r"|summary|sentence|text)[_ .-]?)(a|b|1|2)$"
)
CHOSEN, REJECTED = "chosen", "rejected"  # the two outputs of a preference dataset
CHECKSUM = 32  # bytes at the start of a kept result: the SHA-256 of all that follows


@dataclass(slots=True, kw_only=True)
class ParsedFiles:
    """What reading an import's files gave, before rows are compared with what the database has.

    ``rows`` are `ItemRow`, `RatingRow` or `VerdictRow`; ``mapping`` is the one that gave them, with the rubric's keys
    for its criteria. The ``report`` counts what was read. ``columns``, ``first_lines`` (the first rows of the first
    table as they stand, with their numbers) and ``sheets`` are what a page shows. ``names`` are those of all
    generators, raters or judges.
    """

    mapping: Mapping
    rows: Spool[Any]
    report: Report
    problems: Problems = field(default_factory=Problems)
    names: Sequence[str] = ()
    columns: Sequence[ColumnFacts] = ()
    first_lines: Sequence[tuple[int, list[str]]] = ()
    sheets: Sequence[str] = ()


def parse_import(
    file_import: Import,
    mapping: Mapping,
    version: RubricVersion | None = None,
    progress: Progress | None = None,
    *,
    is_shown: bool = False,
    keeps: bool = False,
) -> ParsedFiles:
    """The files of an import as ``mapping`` reads them: from the cache, or else read now.

    The result is kept for a later reading if a page shows it (``is_shown``) or ``keeps`` is set. The parts of a study
    keep theirs with the study.
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


def parse_files(
    kind: str,
    files: Sequence[File],
    mapping: Mapping,
    version: RubricVersion | None = None,
    progress: Progress | None = None,
    *,
    is_shown: bool = False,
) -> ParsedFiles:
    """Files of items, ratings or verdicts as ``mapping`` reads them; answers under the rubric's keys."""
    facts = TableFacts() if is_shown else None
    if kind == Kind.DATASET:
        parsed = _parsed_items(files, mapping, progress, facts)
    else:
        parsed = _parsed_answers(kind, files, mapping, version, progress, facts)
    if facts is not None:
        parsed.columns = facts.columns(parsed.mapping)
        parsed.report.notes += _doubts(parsed.columns) if kind == Kind.DATASET else []
        _look_at_layout(parsed, files)
    return parsed


def _look_at_layout(parsed: ParsedFiles, files: Sequence[File]) -> None:
    """What a person needs to say which sheet of the first file holds the rows, and which row is the header."""
    for name, raw in unpacked_files(files, Problems()):
        layout = parsed.mapping.of(name)
        if parsed.sheets or parsed.first_lines or not (isinstance(raw, bytes) or raw.seekable()):
            return
        parsed.sheets = sheet_names(name, raw, layout)
        parsed.first_lines = first_lines(name, raw, layout, parsed.problems.top)


# --- items ----------------------------------------------------------------------------------------------------------
def _parsed_items(
    files: Sequence[File], mapping: Mapping, progress: Progress | None, facts: TableFacts | None
) -> ParsedFiles:
    parsed = parse_items(files, mapping, progress=progress, facts=facts)
    if not parsed.items and not parsed.problems:
        parsed.problems.add(
            Problem(files[0][0] if files else "", None, None, Words("no item"), Words("at least one"), "empty")
        )
    read = parsed.report
    report = Report(
        read=read.read,
        stored=read.taken,
        collapsed=read.collapsed,
        refused=parsed.problems.refused,
        flagged=read.empty,
        embedded_ratings=read.embedded_ratings,
        left_out=parsed.problems.left_out,
        notes=_item_notes(parsed),
        found={"languages": most_frequent(read.languages), "generators": most_frequent(read.generators)},
    )
    return ParsedFiles(
        mapping=mapping, rows=parsed.items, report=report, problems=parsed.problems, names=list(read.generators)
    )


def _item_notes(parsed: ParsedItems) -> list[str]:
    read = parsed.report
    notes = [*parsed.problems.notes]
    if read.derived_ids:
        notes.append(
            Words("Items without an id, which got one from their content: %(number)s.", number=f"{read.derived_ids:,}")
        )
    if read.empty:
        notes.append(
            Words(
                "Without any content, kept because the mapping allows it: %(number)s.",
                number=shortened_list(read.empty_at, read.empty),
            )
        )
    if read.embedded_ratings:
        notes.append(
            Words(
                "%(number)s ratings are inside the items: import this file as ratings too.",
                number=f"{read.embedded_ratings:,}",
            )
        )
    if read.dropped:
        notes.append(Words("Keys of turns that are not kept: %(names)s.", names=shortened_list(read.dropped)))
    return notes


def _doubts(columns: Sequence[ColumnFacts]) -> list[str]:
    """Warnings about columns of a dataset that seem to give another field than the one they are mapped to."""
    notes = []
    for column in columns:
        sentences = [value for value in column.counts if value.count(" ") >= WORDS_OF_A_SENTENCE - 1]
        if column.target == "id" and 2 * len(sentences) > column.distinct:
            notes.append(
                Words(
                    "The column %(name)s gives the id, but its values are sentences, such as %(examples)s. Choose "
                    "another column for the id, or none.",
                    name=column.name,
                    examples=excerpt(sentences[0]),
                )
            )
    kept = [column for column in columns if column.filled and column.target.partition(".")[0] in ("", "attributes")]
    if rated := [column.name for column in kept if _looks_rated(column)]:
        notes.append(
            Words(
                "Columns that look like ratings become attributes of the items: %(names)s. Import this file as "
                "ratings too, or leave these columns out.",
                names=shortened_list(rated),
            )
        )
    return [*notes, *_outputs_side_by_side([column.name for column in kept], columns)]


def _looks_rated(column: ColumnFacts) -> bool:
    """Whether a column is called as ratings are; of a numbered column, such as `annotator1`, whether it has scores."""
    name = column.name.rpartition(".")[2]
    if NUMBERED_RATER.search(name):
        return all(_is_number(value) for value in column.counts)
    return bool(RATING_COLUMN.search(name))


def _is_number(value: str) -> bool:
    try:
        return as_answer(value).score is not None
    except InvalidValue:
        return False


def _outputs_side_by_side(kept: Sequence[str], columns: Sequence[ColumnFacts]) -> list[str]:
    """A note on two columns that look like two outputs for one input, with the ways to compare or to rate them."""
    stems: dict[str, list[str]] = {}
    for name in kept:
        if match := OUTPUT_COLUMN.match(name):
            stems.setdefault(match[1], []).append(name)
    pairs = {stem: names for stem, names in stems.items() if len(names) == 2}
    lower = {name.lower(): name for name in kept}
    if not pairs and CHOSEN in lower and REJECTED in lower:
        pairs = {"": [lower[CHOSEN], lower[REJECTED]]}
    if not pairs:
        return []
    stem, (first, second) = next(iter(pairs.items()))
    key = next((column.name for column in columns if column.target == "id"), "")
    steps = [{"melt": {f"{stem}{{generator}}": "answer"}}]
    if key:
        steps.append({"compose": {key: f"{{{key}}}-{{generator}}"}})
    offer = Words(
        " To rate each of them as an item, add to the mapping: %(steps)s",
        steps=json.dumps({"shape": steps}, ensure_ascii=False),
    )
    return [
        Words(
            "The columns %(one)s and %(other)s look like two outputs for one input, and become attributes of "
            "the items. To compare them, use them as Passage A and Passage B.%(rest)s",
            "The columns %(one)s and %(other)s look like two outputs for one input, and become attributes of "
            "the items. To compare them, use them as Passage A and Passage B (passage_a and passage_b in a "
            "mapping).%(rest)s",
            one=first,
            other=second,
            rest=offer if stem and (not key or key.isidentifier()) else "",
        )
    ]


# --- ratings and verdicts -------------------------------------------------------------------------------------------
def _parsed_answers(
    kind: str,
    files: Sequence[File],
    mapping: Mapping,
    version: RubricVersion | None,
    progress: Progress | None,
    facts: TableFacts | None,
) -> ParsedFiles:
    parse = parse_ratings if kind == Kind.RATINGS else parse_verdicts
    names = CriterionNames(version)
    mapping = with_label_values(mapping, version)
    parsed = parse(files, mapping, progress=progress, facts=facts, criterion_key=names.key_of)
    mapping = with_criterion_keys(mapping, names.matches) if names.matches else mapping
    notes = [
        Words("“%(found)s” was taken as the criterion %(criterion)s.", found=name, criterion=key)
        for name, key in sorted(names.matches.items())
    ]
    counts = parsed.counts()
    if kind == Kind.RATINGS:
        _explain_words(parsed.problems, counts.scored)
    report = Report(
        read=parsed.read,
        stored=counts.scored + counts.not_applicable,
        not_applicable=counts.not_applicable,
        collapsed=parsed.collapsed,
        collapsed_blank=parsed.collapsed_blank,
        missing=counts.missing,
        refused=parsed.refused,
        left_out=parsed.problems.left_out,
        notes=[*notes, *parsed.problems.notes],
        found={
            "raters" if kind == Kind.RATINGS else "judges": most_frequent(counts.whose),
            "criteria": most_frequent(counts.criteria),
        },
    )
    return ParsedFiles(
        mapping=mapping, rows=parsed.rows, report=report, problems=parsed.problems, names=list(counts.whose)
    )


def with_label_values(mapping: Mapping, version: RubricVersion | None) -> Mapping:
    """The mapping in which the labels of the rubric's points, as people write them, stand for their values; what the
    mapping itself says of a word counts."""
    known = label_values(version)
    if not known:
        return mapping
    fields = {"score", *(field for field in mapping.columns.values() if field.startswith("score."))}
    values = dict(mapping.values)
    for target in fields & known.keys():
        written = {spelling: value for label, value in known[target].items() for spelling in _spellings(label)}
        shared = mapping.values.get("score", {})
        values[target] = {**written, **shared, **mapping.values.get(target, {})}
    return replace(mapping, values=values)


def _spellings(label: str) -> set[str]:
    return {label, label.upper(), label.capitalize(), label.title()}


def _explain_words(problems: Problems, scored: int) -> None:
    """One problem in place of many, where all answers are words: how words can become scores."""
    words = [problem for problem in problems if problem.code == "not_a_number"]
    if scored or len(words) < 2 or not any(" " in problem.found.strip("“”") for problem in words):
        return
    text = Words("answers in words, such as %(examples)s, and no score at all", examples=words[0].found)
    expected = Words(
        "scores. Texts that are to be rated are the items of a dataset; texts that explain scores are rationales; "
        "words that stand for scores get them under values: {score: {Yes: 1}} under “Mapping (YAML)”"
    )
    problems.instead("not_a_number", Problem(words[0].file, None, words[0].column, text, expected, "free_text"))


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
    return code_digest(readers, *(Path(str(module.__file__)) for module in (languages, rating_rows)), Path(__file__))


def code_digest(*sources: Path) -> str:
    """A digest of some modules, and of those in some folders; the running Python is part of it."""
    digest = hashlib.sha256(sys.version.encode())
    for source in sources:
        for module in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            digest.update(b"%s %s " % (module.name.encode(), hashlib.sha256(module.read_bytes()).digest()))
    return digest.hexdigest()


def _keep(path: Path, parsed: ParsedFiles, *, is_only: bool) -> None:
    """Cache a result under its digest; with ``is_only``, replace earlier ones. Where that fails, the files are read
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
    except (OSError, TypeError) as error:  # no room on the disk; what JSON can't hold
        logger.warning("What was read of import %s is not kept: %s", path.parent.name, error)
        with suppress(OSError):
            half.unlink(missing_ok=True)


def _lines(digest: str, parsed: ParsedFiles) -> Iterable[bytes]:
    """A result as lines of JSON: all that is not rows, then the rows, some thousand to a line."""
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
    """The result that is kept under a digest; None where there is none, or it is damaged."""
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
        # Rows without any weight hold no long texts (`PartitionedRows`).
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
    """The SHA-256 of what follows the checksum in a kept result."""
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
