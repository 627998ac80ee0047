"""Read Parquet, a batch of rows at a time; needs pyarrow (the extra ``parquet``).

A few bytes can repeat a text in millions of rows, so the output is bounded by the size of the file. Rows and cells are
bounded by the counts in the file's metadata, before any row is read; bytes are counted as they are decoded. A batch has
fewer rows if a row may be long.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from importlib.util import find_spec
from io import SEEK_END
from typing import TYPE_CHECKING, Any, BinaryIO

from annotation.readers.archives import UnpackBounds, UnpackedBytes
from annotation.readers.json import require_storable
from annotation.readers.mapping import Mapping
from annotation.readers.problems import FormatError, InvalidValue, Problem, Problems, excerpt, visible
from annotation.readers.rows import FileRow, matches_any
from annotation.readers.words import Words

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.parquet import FileMetaData  # type: ignore[import-untyped]

BATCH = 1_000  # rows at most
BATCH_BYTES = 32 * 2**20  # a batch fits into this even if each row had the longest text of each column's dictionary
MOST_ROWS = 50_000_000
ROW = 10  # cells: a row takes about as long as so many of them, beside its own
FEW_CELLS = 5_000_000  # which any file may have,
CELLS_PER_BYTE = 256  # and a larger one so many more: a column of ones takes 1/20 byte a row
UNPACKED = UnpackBounds()  # of the bytes that come out
_BUFFER = 2**20
_WHOLE = Words("a Parquet file that is whole")
Convert = Callable[[Any], Any]


def parquet_is_installed() -> bool:
    """Whether this server reads and writes Parquet at all."""
    return find_spec("pyarrow") is not None


def read_file(name: str, stream: BinaryIO, layout: Mapping, problems: Problems) -> Iterator[FileRow]:
    """Yield the rows with their numbers from 1; lists, structs and maps become JSON values, timestamps ISO text.

    A column of bytes is refused unless the mapping ignores it. Raises ``FormatError``.
    """
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        actual, expected = (
            Words("a Parquet file, which needs pyarrow"),
            Words("pip install 'panelbench[parquet]' on the server, or CSV"),
        )
        raise FormatError(Problem(name, None, None, actual, expected, "no_parquet")) from None
    number, size = 0, stream.seek(0, SEEK_END)
    meter = UnpackedBytes(name, size, UNPACKED)
    try:
        file = ParquetFile(stream, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True)
        promised, plain = file.metadata.num_rows, _columns(name, file.schema_arrow, layout.ignore)
        together = _require_bounded(name, file.metadata, size, _Dictionaries(stream, plain))
        for batch in file.iter_batches(together, columns=list(plain), use_threads=False):
            for fields in _rows(batch, plain, meter):
                number += 1
                try:
                    yield FileRow(number, _taken(fields, plain))
                except InvalidValue as fault:
                    problems.refuse(fault.at(name, number))
    except FormatError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        raise FormatError(_broken(name, number, error)) from None
    if number != promised:
        actual = Words(
            "%(number)s rows where the file declares %(declared)s", number=f"{number:,}", declared=f"{promised:,}"
        )
        raise FormatError(Problem(name, None, None, actual, _WHOLE, "truncated"))


def _columns(name: str, schema: pa.Schema, ignore: tuple[str, ...]) -> dict[str, Convert | None]:
    """For each column that is read, the function that converts its values to plain ones; ``None`` if not needed."""
    columns: dict[str, Convert | None] = {}
    for field in schema:
        if field.name in columns:
            text = Words("the column name %(name)s more than once", name=excerpt(field.name))
            raise FormatError(Problem(name, None, field.name, text, Words("different names"), "header"))
        try:
            columns[field.name] = _plain(field.type)
        except InvalidValue as fault:
            if not matches_any(field.name, ignore):
                raise FormatError(fault.at(name, None, field.name)) from None
    if not columns:
        raise FormatError(Problem(name, None, None, Words("no columns"), Words("at least one"), "empty"))
    return columns


def _require_bounded(name: str, metadata: FileMetaData, size: int, dictionaries: _Dictionaries) -> int:
    """How many rows can be read in one batch. Raises ``FormatError`` when there are more than such a file can hold."""
    rows, cells = metadata.num_rows, metadata.num_rows * (metadata.num_columns + ROW)
    if rows > MOST_ROWS or cells > max(FEW_CELLS, CELLS_PER_BYTE * size):
        text = Words(
            "%(rows)s rows of %(columns)s columns in %(size)s bytes",
            rows=f"{rows:,}",
            columns=f"{metadata.num_columns:,}",
            size=f"{size:,}",
        )
        expected = Words(
            "at most %(number)s rows in one file, and no more than fit into its size", number=f"{MOST_ROWS:,}"
        )
        raise FormatError(Problem(name, None, None, text, expected, "size"))
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    UnpackedBytes(name, size, UNPACKED).count(sum(group.total_byte_size for group in groups))
    longest = max(map(dictionaries.row_bytes, groups), default=0)
    return int(min(BATCH, max(1, BATCH_BYTES // max(1, longest))))


class _Dictionaries:
    """How long the rows of a row group may become when its texts are decoded.

    A text stands in a page of its own length, or is a number that stands for a text of the chunk's dictionary; so a row
    has as much as all of the dictionary at most, for each number in it, and its part of the other pages.
    """

    def __init__(self, stream: BinaryIO, columns: Collection[str]) -> None:
        self._stream, self._columns = stream, columns

    def row_bytes(self, group: Any) -> float:
        """The most bytes of text that a row of usual length can have."""
        chunks = [group.column(number) for number in range(group.num_columns)]
        texts = [chunk for chunk in chunks if chunk.physical_type == "BYTE_ARRAY" and self._is_read(chunk)]
        return sum(self._cell_bytes(text, max(1, group.num_rows)) for text in texts)

    def _is_read(self, chunk: Any) -> bool:
        path = chunk.path_in_schema
        return any(path == column or path.startswith(f"{column}.") for column in self._columns)

    def _cell_bytes(self, chunk: Any, rows: int) -> float:
        size, values = int(chunk.total_uncompressed_size), int(chunk.num_values)
        shared = 0
        if "DELTA_BYTE_ARRAY" in chunk.encodings:  # a text goes on from the beginning of the one before
            shared = size
        elif chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
            shared = min(size, self._dictionary_bytes(chunk.dictionary_page_offset, size))
        return max(1.0, values / rows) * shared + (size - shared) / rows

    def _dictionary_bytes(self, offset: int, most: int) -> int:
        """The size of a dictionary, unpacked, as the head of its page says it; ``most`` where that is not to be read.

        A page's head is a Thrift struct, compact: the first field is its kind (2: a dictionary), the second this size.
        Source: https://parquet.apache.org/docs/file-format/data-pages/ and parquet.thrift, `PageHeader`.
        """
        self._stream.seek(offset)
        head = self._stream.read(8)
        if head[:3] != b"\x15\x04\x15":
            return most
        number = 0
        for place, byte in enumerate(head[3:]):
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return number >> 1  # zigzag
        return most


def _rows(batch: pa.RecordBatch, plain: dict[str, Convert | None], meter: UnpackedBytes) -> Iterator[dict[str, Any]]:
    decoded = [_decoded(batch.column(column)) for column in plain]
    meter.count(sum(column.nbytes for column in decoded))
    for values in zip(*(column.to_pylist() for column in decoded), strict=True):
        yield dict(zip(plain, values, strict=True))


def _decoded(column: pa.Array) -> pa.Array:
    """The column with its dictionary decoded, so that its size is the size of its values."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def _taken(fields: dict[str, Any], plain: dict[str, Convert | None]) -> dict[str, Any]:
    for column, convert in plain.items():
        if convert is not None and fields[column] is not None:
            try:
                fields[column] = convert(fields[column])
            except InvalidValue as fault:
                fault.column = fault.column or column
                raise
    require_storable(fields)
    return fields


def _plain(kind: pa.DataType) -> Convert | None:
    """The function that converts values of a type to JSON values. Raises ``InvalidValue`` if the type has none."""
    from pyarrow import types

    if hasattr(kind, "storage_type"):  # an extension type
        return _plain(kind.storage_type)
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_null(kind) or types.is_boolean(kind) or types.is_integer(kind) or _is_text(kind):
        return None
    if types.is_floating(kind):
        return _floats(kind.bit_width)
    if types.is_decimal(kind):
        return _from_decimal
    if types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind):
        return _iso
    if types.is_duration(kind):
        return _seconds
    return _plain_nested(kind)


def _plain_nested(kind: pa.DataType) -> Convert | None:
    from pyarrow import types

    if types.is_struct(kind):
        return _structs({kind.field(index).name: _plain(kind.field(index).type) for index in range(kind.num_fields)})
    if types.is_map(kind) and _is_text(kind.key_type):
        return _maps(_plain(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _lists(_plain(kind.value_type))
    expected = Words(
        "text, numbers, dates, lists or structs; or “Not stored” for the column",
        "text, numbers, dates, lists or structs; or its name under ignore in the mapping",
    )
    raise InvalidValue(Words("a column of %(kind)s", kind=kind), expected, "column_type")


def _is_text(kind: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _floats(bits: int) -> Convert:
    digits, code = {16: (range(3, 6), "e"), 32: (range(6, 10), "f")}.get(bits, ((), "d"))

    def plain(value: float) -> float:
        if not math.isfinite(value):
            raise InvalidValue(
                Words("the number %(number)s", number=value), Words("a number, or null where there is none"), "number"
            )
        # A float of few bits is read as the shortest number with the same bits: 3.7, not 3.700000047683716.
        written = (float(f"{value:.{count}g}") for count in digits)
        return next((text for text in written if struct.pack(code, text) == struct.pack(code, value)), value)

    return plain


def _from_decimal(value: Decimal) -> int | float | str:
    """The decimal as an int or float if that is exact, else its digits as text."""
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)


def _iso(value: Any) -> str:
    return str(value.isoformat())


def _seconds(value: Any) -> float:
    return float(value.total_seconds())


def _structs(members: dict[str, Convert | None]) -> Convert | None:
    converts = {key: convert for key, convert in members.items() if convert is not None}

    def plain(value: dict[str, Any]) -> dict[str, Any]:
        for key, convert in converts.items():
            if value[key] is not None:
                value[key] = convert(value[key])
        return value

    return plain if converts else None


def _lists(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda values: [None if value is None else convert(value) for value in values]


def _maps(convert: Convert | None) -> Convert:
    def plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = {key: value if convert is None or value is None else convert(value) for key, value in pairs}
        if len(members) != len(pairs):
            raise InvalidValue(Words("a key twice in one map"), Words("each key once"), "duplicate_key")
        return members

    return plain


def _broken(name: str, number: int, error: Exception) -> Problem:
    sentence = (str(error) or type(error).__name__).splitlines()[0]
    text = Words("a broken Parquet file (%(error)s)", error=visible(sentence)[:200])
    return Problem(name, number + 1 if number else None, None, text, _WHOLE, "broken_parquet")
