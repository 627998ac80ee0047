"""Many rows at once, at the database's own speed: COPY on PostgreSQL, executemany on SQLite.

Nothing of Django's model layer runs (no defaults, no `save`), so every column that has no database default is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection, models


def insert(model: type[models.Model], fields: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert ``rows``, tuples in the order of ``fields`` (attribute names such as ``item_id``); JSON as text.

    Runs in the caller's transaction and raises its IntegrityError when a row breaks a constraint.
    """
    rows = list(rows)  # a row that asks the database something would wait for ever while COPY holds the connection
    columns = [str(model._meta.get_field(field).column) for field in fields]  # type: ignore[union-attr]
    names = ", ".join(connection.ops.quote_name(column) for column in columns)
    table = connection.ops.quote_name(model._meta.db_table)
    if connection.vendor == "postgresql":
        _copy(f"COPY {table} ({names}) FROM STDIN", rows)
    else:
        marks = ", ".join(["?"] * len(columns))
        _executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)  # noqa: S608 (names of our own tables)


def _copy(statement: str, rows: Iterable[Sequence[Any]]) -> None:
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _executemany(statement: str, rows: Iterable[Sequence[Any]]) -> None:
    with connection.cursor() as cursor, connection.wrap_database_errors:
        # The driver's own cursor: Django's would copy every row once more to look for %s.
        cursor.connection.executemany(statement, (_plain(row) for row in rows))


def _plain(row: Sequence[Any]) -> Sequence[Any]:
    if _SQLITE.keys().isdisjoint(map(type, row)):
        return row
    return tuple(_SQLITE[type(value)](value) if type(value) in _SQLITE else value for value in row)


_SQLITE: dict[type, Callable[[Any], Any]] = {
    bool: int,
    Decimal: str,
    UUID: lambda value: value.hex,
    # Bound late: the connection of the thread that writes, not of the one that imported this.
    datetime: lambda value: connection.ops.adapt_datetimefield_value(value),  # noqa: PLW0108
}
