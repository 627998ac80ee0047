"""Parquet files, with types: scores are numbers, turns are lists of structs; needs the extra `parquet`."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from annotation.readers import FormatError, Problem
from annotation.writers.tables import Column, Table, nested

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


def write_columns(table: Table, out: IO[bytes], *, file: str) -> None:
    """Write the file, batch by batch. Raises ``FormatError`` if pyarrow is not installed."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        expected = "the extra “parquet” to be installed: pip install 'panelbench[parquet]'"
        raise FormatError(Problem(file, None, None, "no pyarrow", expected, "no_pyarrow")) from None
    schema = pa.schema([pa.field(column.name, _arrow_type(column)) for column in table.columns])
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for batch in table.batches():
            columns = zip(*batch, strict=True)
            arrays = [
                pa.array(_arrow_values(column, values), type=_arrow_type(column))
                for column, values in zip(table.columns, columns, strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _arrow_values(column: Column, values: Any) -> Any:
    # Attributes can have any keys, so they have no common type: they are written as JSON text.
    return [nested(value) or None for value in values] if column.kind == "object" else values


def _arrow_type(column: Column) -> pa.DataType:
    import pyarrow as pa

    turn = pa.struct([("speaker", pa.string()), ("name", pa.string()), ("text", pa.string())])
    types: dict[str, pa.DataType] = {
        "number": pa.float64(),
        "integer": pa.int64(),
        "switch": pa.bool_(),
        "moment": pa.timestamp("us", tz="UTC"),
        "turns": pa.list_(turn),
        "texts": pa.list_(pa.string()),
    }
    return types.get(column.kind, pa.string())
