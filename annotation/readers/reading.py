"""A file of any kind -> its rows, strictly: a row that cannot be read exactly is refused with its line.

Files that Panelbench wrote are read back without any change. Exports put an apostrophe before a text that begins like a
formula (DESIGN 8.11; OWASP, CSV injection). The last column of a CSV, `MARKS_COLUMN`, names the changed columns of the
row: ``'rationale`` means that the rationale has one apostrophe more than its text, ``-context`` that there is no
context, because an empty cell can also be an empty text. In any file, a blank score with a true `NOT_APPLICABLE` in its
row is N/A, and attributes and passages may be JSON in a cell.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain, islice, zip_longest
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, NamedTuple, cast

import orjson

from annotation.readers.archives import File, UnpackedStream, unpacked_files
from annotation.readers.columns import TableFacts
from annotation.readers.csv import DELIMITERS, CsvDialect, likely_delimiter, read_csv, read_csv_blocks
from annotation.readers.encoding import (
    ENCODINGS,
    PIECE,
    HeadCache,
    codec_called,
    legacy_codec,
    line_blocks,
    open_stream,
    text_lines,
    text_pieces,
)
from annotation.readers.formats import ENDINGS, FORMATS_BY_NAME, ReadableFormat, format_of_name
from annotation.readers.json import parse_document, read_json, read_json_lines, value_in_document
from annotation.readers.mapping import (
    Mapping,
    columns_of,
    note_addresses,
    unnamed_column,
    unnamed_in_mapping,
    watch_headings,
)
from annotation.readers.problems import FormatError, Problem, Problems, Progress, excerpt
from annotation.readers.rows import (
    KEY_COLUMN,
    CellCount,
    FileRow,
    RowBlock,
    as_written,
    blocks_of,
    is_blank,
    match_file_name,
)
from annotation.readers.words import Words

EVERY = 2_000  # rows


class FileProgress:
    """Opens files one after the other; reports its position to ``progress`` and passes the rows to ``facts``."""

    def __init__(self, files: Iterable[File], progress: Progress | None, facts: TableFacts | None = None) -> None:
        self._files = [(name, open_stream(raw)) for name, raw in files]
        self._sizes = [stream.seek(0, 2) for _name, stream in self._files]
        self._progress, self._facts = progress, facts
        if facts is not None:
            facts.clear()
        self._before = 0
        self._stream: BinaryIO | None = None

    def members(self, problems: Problems) -> Iterator[File]:
        """The files; a compressed file or an archive is replaced by its members."""
        for (name, stream), size in zip(self._files, self._sizes, strict=True):
            stream.seek(0)
            self._stream = stream
            yield from unpacked_files([(name, stream)], problems)
            self._stream = None
            self._before += size
            self.tell()

    def watched(self, blocks: Iterator[RowBlock]) -> Iterator[RowBlock]:
        """Yield the rows of a member unchanged, after ``facts`` counted them; reports progress after each block."""
        for block in blocks:
            if self._facts is not None:
                self._facts.see(block)
            yield block
            self.tell()

    def following(self, rows: Iterator[FileRow]) -> Iterator[FileRow]:
        """As `watched`, but row by row; reports progress at intervals."""
        rows = rows if self._facts is None else self._facts.following(rows)
        return rows if self._progress is None else self._followed(rows)

    def tell(self) -> None:
        """Report progress now."""
        if self._progress is not None:
            here = self._stream.tell() if self._stream is not None else 0
            self._progress(self._before + here, sum(self._sizes))

    def _followed(self, rows: Iterator[FileRow]) -> Iterator[FileRow]:
        for number, row in enumerate(rows):
            if not number % EVERY:
                self.tell()
            yield row


MARKS_COLUMN = "panelbench_marks"
NOT_APPLICABLE = "not_applicable"
ADDED, ABSENT = "'", "-"
_JSON = {"attributes": ("{", dict), "passages": ("[", list)}
_SPEAKING = {MARKS_COLUMN, NOT_APPLICABLE, *_JSON}


def restored_rows(rows: Iterator[FileRow]) -> Iterator[FileRow]:
    """The rows as they were before an export wrote them. A file without our columns in its first row is unchanged."""
    first = next(rows, None)
    if first is None:
        return
    everything = chain([first], rows)
    if not has_marks(first.fields):
        yield from everything
        return
    for row in everything:
        yield row.with_fields(restored_fields(row.fields))


def has_marks(columns: Iterable[str]) -> bool:
    """Whether one of the columns describes how others were written."""
    return not _SPEAKING.isdisjoint(columns)


def restored_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """One row as it was before an export wrote it."""
    if MARKS_COLUMN in fields:
        fields = _unmarked(fields)
    if NOT_APPLICABLE in fields and "score" in fields and _is_not_applicable(fields):
        fields = {**fields, "score": "N/A"}
    for name, (start, kind) in _JSON.items():
        text = fields.get(name)
        if isinstance(text, str) and text.startswith(start):
            fields = {**fields, name: _parsed_json(text, kind)}
    return fields


def _unmarked(fields: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in fields.items() if name != MARKS_COLUMN}
    for mark in str(fields[MARKS_COLUMN] or "").split():
        kind, name = mark[:1], mark[1:]
        if kind == ABSENT and kept.get(name) == "":
            kept[name] = None
        elif kind == ADDED and str(kept.get(name, "")).startswith("'"):
            kept[name] = kept[name][1:]
    return kept


def _is_not_applicable(fields: dict[str, Any]) -> bool:
    return fields["score"] in (None, "") and str(fields[NOT_APPLICABLE]).lower() in {"true", "1"}


def _parsed_json(text: str, kind: type) -> Any:
    """The value of JSON in a cell; a text that is not JSON stays unchanged."""
    try:
        value = parse_document("cell", text)
    except FormatError:
        return text
    return value if isinstance(value, kind) else text


def apply_shape(name: str, rows: Iterator[FileRow], layout: Mapping, problems: Problems) -> Iterator[FileRow]:
    """The rows that the ``shape`` makes from the records of a file, in order; a record with a fault is refused.

    Rows of one record share its line number. Values from the file name are in every row.
    """
    if columns := layout.columns_from_name(name):
        rows = _with_name(name, rows, columns)
    for step in layout.of(name).shape:
        rows = step.rows(name, rows, problems)
    return rows


def _with_name(name: str, rows: Iterator[FileRow], columns: dict[str, str]) -> Iterator[FileRow]:
    for row in rows:
        for column in columns:
            if column in row.fields:
                actual = Words("the column %(name)s, which the file's name gives too", name=excerpt(column))
                expected = Words("another name in the holes of the pattern under files under “Mapping (YAML)”")
                raise FormatError(Problem(name, row.line, column, actual, expected, "ambiguous"))
        yield row.with_fields({**row.fields, **columns})


ROWS_AT_ONCE = 250  # rows
FIRST_ROWS = 12  # rows that are shown unchanged
FIRST_LINES = 48  # and the most lines that these rows may have


class Sample(NamedTuple):
    """The head of a file, for guessing its mapping and for the preview."""

    columns: tuple[str, ...]
    rows: tuple[FileRow, ...]
    problems: Problems


def read_rows(
    name: str, raw: bytes | BinaryIO, *, layout: Mapping | None = None, problems: Problems
) -> Iterator[FileRow]:
    """Yield the rows of a file of any kind (by its name, or by ``layout.format``), in bounded memory; for a gzip or
    zip, yield the rows of all its members, one after the other.

    Never raises on bad input: a bad row is added to ``problems`` and reading continues; after a fault that makes the
    rest unreliable (wrong encoding, broken quoting, truncated JSON) reading ends.
    """
    layout = layout or Mapping()
    for inner, content in unpacked_files([(name, raw)], problems):
        yield from _read_member(inner, content, layout.of(inner), problems)


def read_blocks(name: str, raw: bytes | BinaryIO, *, layout: Mapping, problems: Problems) -> Iterator[RowBlock]:
    """The rows of `read_rows`, in blocks of rows with the same columns. Delimited files are read in blocks directly,
    unless the mapping reshapes their rows."""
    for inner, content in unpacked_files([(name, raw)], problems):
        member_layout = layout.of(inner)
        if (
            _is_delimited(inner, member_layout)
            and not member_layout.shape
            and not member_layout.columns_from_name(inner)
        ):
            yield from _read_delimited_member(inner, content, member_layout, problems)
        else:
            yield from blocks_of(_read_member(inner, content, member_layout, problems), ROWS_AT_ONCE)


def _note_layout(name: str, layout: Mapping, problems: Problems) -> None:
    """Note each setting of the layout that differs from the usual one."""
    codec = codec_called(layout.encoding) if layout.encoding else None
    if codec not in (None, "utf_8") and not ((known := _likely_format(name, layout)) and not known.is_text):
        problems.note(
            name,
            Words("its text is read as %(encoding)s, not as UTF-8.", encoding=dict(ENCODINGS).get(codec or "", codec)),
        )
    if (layout.header_row or 1) > 1 and is_tabular(name, layout):
        problems.note(
            name, Words("the header is row %(number)s; what stands above it is skipped.", number=layout.header_row)
        )


def _read_member(name: str, raw: bytes | BinaryIO, layout: Mapping, problems: Problems) -> Iterator[FileRow]:
    try:
        _note_layout(name, layout, problems)
        rows = watch_headings(name, restored_rows(_counted(name, _rows(name, raw, layout, problems))), layout, problems)
        yield from apply_shape(name, rows, layout, problems)
    except FormatError as error:
        problems.add(error.problem)


def _counted(name: str, rows: Iterator[FileRow]) -> Iterator[FileRow]:
    cells = CellCount(name)
    for row in rows:
        cells.count(row.line, len(row.fields))
        yield row


def _read_delimited_member(name: str, raw: bytes | BinaryIO, layout: Mapping, problems: Problems) -> Iterator[RowBlock]:
    heading: tuple[str, ...] = ()
    cells = CellCount(name)
    try:
        _note_layout(name, layout, problems)
        lines, dialect = _delimited(name, raw, layout, problems)
        for block in read_csv_blocks(name, lines, dialect, layout.header, problems):
            cells.count(block.lines[0] if block.lines else 0, len(block.columns), block.size)
            if not heading:
                note_addresses(name, heading := block.columns, layout, problems)
            yield RowBlock.of(list(restored_rows(block.rows()))) if has_marks(heading) else block
    except FormatError as error:
        problems.add(error.problem)


def _rows(name: str, raw: bytes | BinaryIO, layout: Mapping, problems: Problems) -> Iterator[FileRow]:
    chosen = _format(name, layout)
    if chosen.reader:
        rows: Iterator[FileRow] = chosen.function("read_file")(name, open_stream(raw), layout, problems)
        return rows
    if chosen.name == "json":
        return _json_rows(name, text_pieces(name, raw, layout.encoding), layout, problems)
    if chosen.name == "jsonl":
        return read_json_lines(name, text_lines(name, raw, layout.encoding), problems)
    lines, dialect = _delimited(name, raw, layout, problems)
    return read_csv(name, lines, dialect, layout.header, problems)


def peek(name: str, raw: bytes | BinaryIO, *, layout: Mapping | None = None, rows: int = 50) -> Sample:
    """The columns and first rows of a file; nested JSON columns appear as ``outer.inner``."""
    problems = Problems()
    head = tuple(islice(read_rows(name, raw, layout=layout, problems=problems), rows))
    return Sample(columns_of(row.fields for row in head), head, problems)


def first_lines(
    name: str, raw: bytes | BinaryIO, layout: Mapping, top: tuple[str, list[str]] | None = None
) -> list[tuple[int, list[str]]]:
    """The first rows of a table unchanged, header included, each with its number; empty if the file is no table.

    If ``top`` belongs to that file (`Problems` kept it when the file was read), the file is not opened again.
    """
    likely_format = _likely_format(name, layout)
    try:
        if likely_format and likely_format.has_sheets:
            rows: list[tuple[int, list[str]]]
            rows = likely_format.function("first_rows")(name, open_stream(raw), layout, FIRST_ROWS)
            return rows
        if not (likely_format and likely_format.is_delimited):
            return []
        is_kept = top is not None and top[0] == name and bool(top[1])
        lines = top[1] if top and is_kept else list(islice(text_lines(name, raw, layout.encoding), FIRST_LINES))
    except FormatError:
        return []
    likely = [layout.delimiter] if layout.delimiter else ["\t"] if likely_format.name == "tsv" else DELIMITERS
    return max((_first_cells(lines, delimiter, quoting=layout.quoting) for delimiter in likely), key=_common_width)


def _first_cells(lines: list[str], delimiter: str, *, quoting: bool) -> list[tuple[int, list[str]]]:
    """The first rows with their line numbers, as far as they can be read with a delimiter."""
    reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE)
    rows: list[tuple[int, list[str]]] = []
    begun = 0
    with suppress(csv.Error):
        for cells in islice(reader, FIRST_ROWS):
            rows.append((begun + 1, cells))
            begun = reader.line_num
    return rows


def _common_width(rows: list[tuple[int, list[str]]]) -> tuple[int, int]:
    """The most frequent number of cells above one in a row: how many rows have it, and the number itself."""
    widths = Counter(len(cells) for _line, cells in rows if len(cells) > 1)
    return max(((times, width) for width, times in widths.items()), default=(0, 0))


def sheet_names(name: str, raw: bytes | BinaryIO, layout: Mapping) -> list[str]:
    """The names of the sheets of a workbook; empty if the file is no workbook or can't be opened."""
    likely_format = _likely_format(name, layout)
    try:
        names: list[str] = []
        if likely_format and likely_format.has_sheets:
            names = likely_format.function("names_of_sheets")(name, open_stream(raw))
        return names
    except FormatError:
        return []


def with_cached_head(file: File, given: Mapping) -> File:
    """The file with a cache of its first piece if it is a text file, because it is read several times."""
    name, raw = file
    likely_format = _likely_format(name, given.of(name))
    is_text = likely_format is not None and likely_format.is_text
    if isinstance(raw, bytes | HeadCache) or not is_text or not raw.seekable():
        return file
    return name, cast(BinaryIO, HeadCache(raw))


def guess_layout(name: str, raw: bytes | BinaryIO, given: Mapping) -> Mapping:
    """The layout of a file as far as ``given`` does not set it: its encoding, its header row, and whether rows may lack
    their last cells."""
    layout = given.of(name)
    likely_format = _likely_format(name, layout)
    if not isinstance(raw, bytes) and not raw.seekable():
        return Mapping()
    if layout.encoding is None and likely_format and likely_format.is_text:
        try:
            layout = replace(layout, encoding=_likely_encoding(name, raw))
        except FormatError:
            return Mapping()  # the reader of the file reports what is wrong
    guessed = Mapping(encoding=layout.encoding if given.of(name).encoding is None else None)
    has_rows = likely_format is not None and (likely_format.is_delimited or likely_format.has_sheets)
    if likely_format is None or layout.header or layout.header_row or not has_rows:
        return guessed
    rows = first_lines(name, raw, layout)
    row = _header_row(rows, is_ragged=likely_format.has_sheets)
    heading = next((cells for number, cells in rows if number == (row or 1)), [])
    # Mechanical Turk adds two columns for a later review, which the rows do not have yet.
    is_batch = likely_format.name == "csv" and heading[-2:] == ["Approve", "Reject"] and "AssignmentId" in heading
    return replace(guessed, header_row=row, short_rows=is_batch, ignore=_index(rows, row or 1))


def _likely_encoding(name: str, raw: bytes | BinaryIO) -> str | None:
    """The likely encoding of a text that is plainly not UTF-8 and has no byte order mark. Raises ``FormatError``."""
    try:
        next(text_pieces(name, raw))
    except FormatError:
        return legacy_codec(open_stream(raw).read(PIECE))
    return None


def _header_row(rows: list[tuple[int, list[str]]], *, is_ragged: bool) -> int | None:
    """The number of the header row if rows of one cell each, such as a title, are above it. ``is_ragged``: blank
    cells at the end of a row are absent."""
    filled = [(number, cells, [cell for cell in cells if cell.strip()]) for number, cells in rows]
    above = next((place for place, (_number, _cells, filled_cells) in enumerate(filled) if len(filled_cells) > 1), 0)
    if not any(filled_cells for _number, _cells, filled_cells in filled[:above]) or len(filled) < above + 2:
        return None
    number, cells, names = filled[above]
    are_names = len(set(names)) == len(names) and not any(name.replace(".", "", 1).isdigit() for name in names)
    widths = {len(below) for _number, below, filled_cells in filled[above + 1 :] if filled_cells}
    is_even = max(widths, default=0) <= len(cells) if is_ragged else widths == {len(cells)}
    return number if are_names and is_even else None


def _index(rows: list[tuple[int, list[str]]], header_row: int) -> tuple[str, ...]:
    """The first column if it has no name and counts the rows from 0, as pandas writes its index."""
    heading, *below = [cells for number, cells in rows if number >= header_row and any(cells)] or [[]]
    numbers = [cells[0] if cells else "" for cells in below]
    is_index = bool(numbers) and numbers == [str(number) for number in range(len(numbers))]
    return (unnamed_column(1),) if heading[:1] == [""] and is_index else ()


def is_tabular(name: str, layout: Mapping) -> bool:
    """Whether every row of the file has the same columns."""
    return _format(name, layout).is_table


def _is_delimited(name: str, layout: Mapping) -> bool:
    likely_format = _likely_format(name, layout)
    return likely_format is not None and likely_format.is_delimited


def _likely_format(name: str, layout: Mapping) -> ReadableFormat | None:
    return FORMATS_BY_NAME[layout.format] if layout.format else format_of_name(name)


def _format(name: str, layout: Mapping) -> ReadableFormat:
    if likely_format := _likely_format(name, layout):
        return likely_format
    actual = Words("the name %(name)s", name=name.rpartition("/")[2])
    expected = Words("a name that ends in %(names)s, or format: NAME under “Mapping (YAML)”", names=", ".join(ENDINGS))
    raise FormatError(Problem(name, None, None, actual, expected, "format"))


def _kept(blocks: Iterator[list[str]], top: list[str]) -> Iterator[list[str]]:
    """Yield the blocks unchanged, and put their first lines into ``top``."""
    for block in blocks:
        top += block[: FIRST_LINES - len(top)]
        yield block


def _json_rows(name: str, pieces: Iterator[str], layout: Mapping, problems: Problems) -> Iterator[FileRow]:
    for key, row in read_json(name, pieces, layout.records, problems, layout.beside):
        is_keyed = key and not layout.records
        yield row.with_fields({KEY_COLUMN: key, **row.fields}) if is_keyed else row


def _delimited(
    name: str, raw: bytes | BinaryIO, layout: Mapping, problems: Problems
) -> tuple[Iterator[list[str]], CsvDialect]:
    """The lines of a delimited file, and how its cells are written."""
    blocks = line_blocks(name, raw, layout.encoding)
    if problems.top is None:
        problems.top = (name, [])
        blocks = _kept(blocks, problems.top[1])
    first = list(islice(blocks, 1))
    heading = next(islice(first[0], (layout.header_row or 1) - 1, None), "") if first else ""
    likely_format = _likely_format(name, layout)
    usual = "\t" if likely_format and likely_format.name == "tsv" else likely_delimiter(heading)
    # A file with our column of marks was written by Panelbench, which quotes every line break.
    vouched = layout.line_breaks or heading.rstrip().endswith(f",{MARKS_COLUMN}")
    dialect = CsvDialect(
        delimiter=layout.delimiter or usual,
        quoting=layout.quoting,
        line_breaks=vouched,
        header_row=layout.header_row,
        short_rows=layout.short_rows,
        unnamed=unnamed_in_mapping(layout),
    )
    return chain(first, blocks), dialect


_IN_MEMORY = 4 * 2**20
Group = dict[str, File]


def join_aligned_files(files: Iterable[File], layout: Mapping, problems: Problems) -> Iterator[File]:
    """The files; if the mapping has ``aligned``, files that belong together become one. It is JSON Lines: line n has
    line n of each file by column, the placeholders of their names, and the ``shared`` values. Never raises on bad
    input."""
    if not layout.aligned:
        yield from files
        return
    with ExitStack() as copies:
        for constants, group in _grouped(files, layout, problems, copies):
            with SpooledTemporaryFile(_IN_MEMORY) as joined:
                try:
                    _require_all(group, layout)
                    _join(cast(BinaryIO, joined), dict(constants), group, layout)
                except FormatError as error:
                    problems.add(error.problem)
                    continue
                yield "+".join(name for name, _raw in group.values()) + ".jsonl", cast(BinaryIO, joined)


def _grouped(
    files: Iterable[File], layout: Mapping, problems: Problems, copies: ExitStack
) -> Iterator[tuple[tuple[tuple[str, str], ...], Group]]:
    """Group the files by the placeholders of their names, each under its column. ``copies`` closes unpacked files."""
    groups: dict[tuple[tuple[str, str], ...], Group] = {}
    shared: list[dict[str, str]] = []
    for name, raw in unpacked_files(files, problems):
        parts = (_shared(name, raw, *rule, layout, problems) for rule in layout.shared.items())
        if taken := next(filter(None, parts), None):
            shared.append(taken)
            continue
        for pattern, column in layout.aligned.items():
            if (constants := match_file_name(pattern, name)) is not None:
                try:
                    groups.setdefault(tuple(constants.items()), {})[column] = (name, _rereadable(raw, copies))
                except FormatError as error:
                    problems.add(error.problem)
                break
        else:
            expected = Words(
                "a name such as %(names)s, as the mapping says under aligned", names=", ".join(layout.aligned)
            )
            problems.add(Problem(name, None, None, Words("a file of another name"), expected, "not_aligned"))
    for holes, group in groups.items():
        columns = dict(holes)
        for values_of_file in shared:
            if all(values_of_file.get(hole, value) == value for hole, value in holes):
                columns = {**values_of_file, **columns}
        yield tuple(columns.items()), group


def _shared(
    name: str, raw: bytes | BinaryIO, pattern: str, path: str, layout: Mapping, problems: Problems
) -> dict[str, str] | None:
    """The value at a path of a shared file, with the placeholders of its name; None if the pattern does not match."""
    holes = match_file_name(pattern, name)
    if holes is None:
        return None
    try:
        value = value_in_document(name, text_pieces(name, raw, layout.encoding), path)
    except FormatError as error:
        problems.add(error.problem)
        return holes
    return holes if is_blank(value) else {**holes, path: as_written(value)}


def _rereadable(raw: bytes | BinaryIO, copies: ExitStack) -> bytes | BinaryIO:
    """Content that can still be read after the next file of its archive is opened: unpacked content is copied."""
    if isinstance(raw, bytes) or (raw.seekable() and not isinstance(raw, UnpackedStream)):
        return raw
    copy = cast(BinaryIO, copies.enter_context(SpooledTemporaryFile(_IN_MEMORY)))  # noqa: SIM115
    copyfileobj(raw, copy, PIECE)
    copy.seek(0)
    return copy


def _require_all(group: Group, layout: Mapping) -> None:
    for pattern, column in layout.aligned.items():
        if column not in group:
            first = next(name for name, _raw in group.values())
            raise FormatError(
                Problem(first, None, None, Words("no file beside it for %(names)s", names=column), pattern, "no_file")
            )


def _join(joined: BinaryIO, constants: dict[str, str], group: Group, layout: Mapping) -> None:
    lines = [text_lines(name, raw, layout.of(name).encoding) for name, raw in group.values()]
    for number, texts in enumerate(zip_longest(*lines), start=1):
        if None in texts:
            raise FormatError(_shorter(group, texts, number))
        record = {column: text.removesuffix("\n").removesuffix("\r") for column, text in zip(group, texts, strict=True)}
        joined.write(orjson.dumps({**constants, **record}) + b"\n")
    joined.seek(0)


def _shorter(group: Group, texts: tuple[str | None, ...], number: int) -> Problem:
    names = [name for name, _raw in group.values()]
    short, long = names[texts.index(None)], next(name for name, text in zip(names, texts, strict=True) if text)
    actual = Words("the end of the file, where %(name)s has another line", name=long)
    return Problem(short, number, None, actual, Words("files with equally many lines"), "line_counts")
