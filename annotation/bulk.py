"""Insert many rows with one statement (COPY on PostgreSQL, executemany on SQLite), and delete many rows.

Nothing of Django's model layer runs (no defaults, no `save`), so every column that has no database default is named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import orjson
from django.db import IntegrityError, connection, models

Model = type[models.Model]
TOGETHER = 2_000  # rows that are written at once
OF_A_STATEMENT = 100  # rows, on SQLite; of up to some hundred columns, as it takes 32,766 values


def insert(model: Model, fields: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert ``rows``, tuples in the order of ``fields`` (attribute names such as ``item_id``); JSON as text.

    Runs in the caller's transaction and raises its IntegrityError when a row breaks a constraint.
    """
    rows = rows if isinstance(rows, list) else list(rows)
    # A list: a lazy row that queries the database would wait for ever, because COPY uses the connection.
    names = ", ".join(_column(model, field) for field in fields)
    if connection.vendor == "postgresql":
        _copy(f"COPY {_table(model)} ({names}) FROM STDIN", rows)
    else:
        _executemany(f"INSERT INTO {_table(model)} ({names}) VALUES ", len(fields), rows)  # noqa: S608 (our own names)


def update(model: Model, fields: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write ``fields`` of rows: tuples of the primary key and their values, JSON as it is.

    One statement with one parameter on PostgreSQL, which plans every statement anew.
    """
    if not rows:
        return
    columns: list[Any] = [model._meta.get_field(field) for field in fields]
    names = [connection.ops.quote_name(column.column) for column in columns]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            kinds = ", ".join(
                f"{name} {column.db_type(connection)}" for name, column in zip(names, columns, strict=True)
            )
            keys = ["pk", *(column.column for column in columns)]
            cursor.execute(
                f"UPDATE {_table(model)} SET {', '.join(f'{name} = came.{name}' for name in names)} "  # noqa: S608 (ours)
                f"FROM jsonb_to_recordset(CAST(%s AS jsonb)) AS came(pk bigint, {kinds}) WHERE id = came.pk",
                [json_text([dict(zip(keys, row, strict=True)) for row in rows])],
            )
            return
        texts = [json_text if isinstance(column, models.JSONField) else (lambda value: value) for column in columns]
        cursor.executemany(
            f"UPDATE {_table(model)} SET {', '.join(f'{name} = %s' for name in names)} WHERE id = %s",  # noqa: S608
            [(*(text(value) for text, value in zip(texts, row[1:], strict=True)), row[0]) for row in rows],
        )


def json_text(value: Any) -> str:
    """JSON for a column; by the fast writer, unless it holds a whole number beyond 64 bits. Other types as text."""
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:
        return json.dumps(value, default=str)


def delete_by_key(model: Model, field: str, keys: Iterable[int]) -> None:
    """Delete the rows whose foreign key ``field`` is one of ``keys``, and nothing that refers to them.

    The keys are written out, some thousand in a statement. PostgreSQL has no statistics yet of rows that were stored a
    moment ago; a join may then read all of them again for every row that it deletes.
    """
    every = list(keys)
    for start in range(0, len(every), TOGETHER):
        model._base_manager.filter(**{f"{field}__in": every[start : start + TOGETHER]})._raw_delete(using="default")


def reserve_keys(model: Model, count: int) -> Sequence[int]:
    """Reserve ``count`` primary keys for the caller; on SQLite, call it in a transaction that writes."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)", [table, "id", count]
            )
            return [number for (number,) in cursor.fetchall()]
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
        (last,) = cursor.fetchone() or (0,)
        return range(last + 1, last + 1 + count)


@dataclass(slots=True)
class _Written:
    """The rows written to one table: ``field`` is from ``first`` to ``last`` in them. ``keys``: their foreign
    keys, each with the model it refers to."""

    field: str
    first: int
    last: int
    keys: dict[str, Model]


class Load:
    """Insert many rows into several tables in the caller's transaction, and check their foreign keys in one query each.

    PostgreSQL checks every foreign key of every row separately at the end of the transaction, which takes four times as
    long as writing the rows, and keeps a list of them in memory. If our role may suspend these checks (a superuser, or
    a role with ``SET ON PARAMETER session_replication_role``), one query per key and table checks the same when the
    load ends: every referenced row exists, and is locked so that it is not deleted. Otherwise PostgreSQL checks the
    keys as rows are inserted. Unique and check constraints are always checked row by row. SQLite needs none of this
    (docs/decisions/0013).
    """

    def __init__(self) -> None:
        self._written: dict[Model, _Written] = {}
        self.suspends = connection.vendor == "postgresql" and _may_suspend()

    def __enter__(self) -> Self:
        if connection.vendor == "postgresql" and not self.suspends:
            _execute("SET CONSTRAINTS ALL IMMEDIATE")
        return self

    def insert(self, model: Model, fields: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
        """As `insert`; the first of ``fields`` must be a number, because its range identifies the new rows."""
        if not rows:
            return
        if not self.suspends:
            insert(model, fields, rows)
            return
        _execute("SET LOCAL session_replication_role = replica")
        insert(model, fields, rows)
        _execute("SET LOCAL session_replication_role = DEFAULT")
        numbers = list(map(itemgetter(0), rows))
        first, last = min(numbers), max(numbers)
        written = self._written.setdefault(model, _Written(fields[0], first, last, _keys(model, fields)))
        written.first, written.last = min(first, written.first), max(last, written.last)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None or connection.vendor != "postgresql":
            return
        if not self.suspends:
            _execute("SET CONSTRAINTS ALL DEFERRED")
        for model, written in self._written.items():
            for key, parent in written.keys.items():
                _look_up(model, written, key, parent, is_ours=parent in self._written)


def _look_up(model: Model, written: _Written, key: str, parent: Model, *, is_ours: bool) -> None:
    """Raise ``IntegrityError`` unless every row of ``parent`` that the new rows refer to exists.

    The rows are locked as a foreign key locks them, except rows of the same load, which nobody else can see yet.
    Sequential scans are off, so that every row takes one index look-up: after a load that was rolled back the planner
    takes full tables for empty ones, and would compare every row with every other.
    """
    column = _column(model, key)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            f"WITH pointed AS MATERIALIZED ("  # noqa: S608 (names of our own tables)
            f"SELECT DISTINCT {column} AS pk FROM {_table(model)} "
            f"WHERE {_column(model, written.field)} BETWEEN %s AND %s AND {column} IS NOT NULL"
            f"), there AS ("
            f"SELECT 1 FROM {_table(parent)} parent WHERE parent.id = ANY (ARRAY(SELECT pk FROM pointed)) "
            f"{'' if is_ours else 'FOR KEY SHARE OF parent'}"
            f") SELECT (SELECT count(*) FROM pointed), (SELECT count(*) FROM there)",
            [written.first, written.last],
        )
        pointed, there = cursor.fetchone()
        cursor.execute("SET LOCAL enable_seqscan = DEFAULT")
    if pointed != there:
        raise IntegrityError(f"{_table(model)}.{column} refers to {pointed - there} rows that do not exist")


def _keys(model: Model, fields: Sequence[str]) -> dict[str, Model]:
    """The foreign keys among ``fields``, and the model that each refers to."""
    columns = {field: model._meta.get_field(field) for field in fields}
    return {name: column.related_model for name, column in columns.items() if isinstance(column, models.ForeignKey)}


def _may_suspend() -> bool:
    with connection.cursor() as cursor:
        if cursor.connection.info.server_version < 150_000:
            return False
        cursor.execute("SELECT has_parameter_privilege('session_replication_role', 'SET')")
        return bool(cursor.fetchone()[0])


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _table(model: Model) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _column(model: Model, field: str) -> str:
    return connection.ops.quote_name(str(model._meta.get_field(field).column))  # type: ignore[union-attr]


def _copy(statement: str, rows: list[Sequence[Any]]) -> None:
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.cursor.copy(statement) as copy:
        for start in range(0, len(rows), TOGETHER):
            copy.write(_written(rows[start : start + TOGETHER]))


def _written(rows: Sequence[Sequence[Any]]) -> str:
    """Rows in COPY's text format. Built column by column, in half the time that psycopg takes cell by cell."""
    columns = map(_texts, zip(*rows, strict=True))
    return "\n".join(map("\t".join, zip(*columns, strict=True))) + "\n"


def _texts(column: tuple[Any, ...]) -> Iterable[str]:
    if _is_one(column):
        return [_TEXTS[type(column[0])](column[0])] * len(column)
    kinds = set(map(type, column))
    if kinds == {str}:
        return column if _SPECIAL.search("".join(column)) is None else map(_escaped, column)
    if len(kinds) == 1:
        return map(_TEXTS[kinds.pop()], column)
    return [_TEXTS[type(value)](value) for value in column]


def _is_one(column: tuple[Any, ...]) -> bool:
    """Whether all rows have the same object, not only an equal one: 0.0 equals -0.0."""
    return column[0] is column[-1] and len(set(map(id, column))) == 1


def _escaped(text: str) -> str:
    for character, written in _ESCAPES:
        text = text.replace(character, written)
    return text


class _Texts(dict[type, Callable[[Any], str]]):
    """Map each type to the function that writes its values. A subclass is written as its base."""

    def __missing__(self, kind: type) -> Callable[[Any], str]:
        self[kind] = writer = next(self[base] for base in kind.__mro__ if base in self)
        return writer


_SPECIAL = re.compile(r"[\\\t\n\r]")
_ESCAPES = ("\\", r"\\"), ("\t", r"\t"), ("\n", r"\n"), ("\r", r"\r")  # in this order
_TEXTS = _Texts(
    {
        type(None): lambda _nothing: r"\N",
        str: _escaped,
        int: str,
        float: repr,
        bool: lambda value: "t" if value else "f",
        Decimal: str,
        UUID: str,
        date: lambda value: value.isoformat(),
    }
)


def _executemany(insert_into: str, width: int, rows: list[Sequence[Any]]) -> None:
    """Insert ``OF_A_STATEMENT`` rows per statement, which takes half as long as one by one; the remaining rows one by
    one."""
    marks = f"({', '.join('?' * width)})"
    last = len(rows) // OF_A_STATEMENT * OF_A_STATEMENT
    with connection.cursor() as cursor, connection.wrap_database_errors:
        # The driver's own cursor: Django's would copy every row once more to look for %s.
        executemany = cursor.connection.executemany
        executemany(insert_into + ", ".join([marks] * OF_A_STATEMENT), _values(rows[:last], OF_A_STATEMENT * width))
        executemany(insert_into + marks, _values(rows[last:], width))


def _values(rows: list[Sequence[Any]], count: int) -> Iterator[list[Any]]:
    """The values of rows in SQLite's types, in lists of ``count`` values; converted column by column."""
    for start in range(0, len(rows), TOGETHER):
        columns = zip(*rows[start : start + TOGETHER], strict=True)
        values = list(chain.from_iterable(zip(*map(_adapted, columns), strict=True)))
        yield from (values[place : place + count] for place in range(0, len(values), count))


def _adapted(column: tuple[Any, ...]) -> Sequence[Any]:
    kinds = set(map(type, column))
    if _SQLITE.keys().isdisjoint(kinds):
        return column
    if _is_one(column):
        return [_SQLITE[type(column[0])](column[0])] * len(column)
    return [_SQLITE[type(value)](value) if type(value) in _SQLITE else value for value in column]


_SQLITE: dict[type, Callable[[Any], Any]] = {
    bool: int,
    Decimal: str,
    UUID: lambda value: value.hex,
    # Bound late: the connection of the thread that writes, not of the one that imported this.
    datetime: lambda value: connection.ops.adapt_datetimefield_value(value),  # noqa: PLW0108
}
