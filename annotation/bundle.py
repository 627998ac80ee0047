"""Write a project's rows to a bundle, and read them into another database.

A member is one table of a bundle: its rows in the order of their primary keys, one JSON object per line. References to
a row give its position in its member, counted from 0, and no primary key: the same content gives the same bytes.
Data that belongs to one instance (users, leases, keys) is left out; every member lists the fields it leaves out.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID, uuid4, uuid5

import orjson
from django.db import connection, models
from django.db.models import Max

from accounts.inputs import holds_nul
from accounts.models import Project, User
from annotation import bulk
from annotation.readers import FormatError, InvalidValue, Problem, excerpt, require_storable
from annotation.writers.tables import BATCH

Row = dict[str, Any]
_DUMPED = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One table of a bundle.

    ``refers``: by field, the member that it refers to. ``leaves``: the fields left out. ``written``: by field, its name
    in the bundle if that differs. ``first``: the version of bundles that has this member first. ``since``: by field,
    the version of bundles that has it first; for an older bundle the field gets its default. ``until``: by name of a
    field that is no longer one, the last version of bundles that has it; ``on_read`` gets its value as it was written.
    ``on_write`` changes a row before it is written. ``on_read`` fills in fields that were left out; it refuses the row
    by raising ``ValueError`` with the expected content.
    """

    name: str
    model: type[models.Model]
    rows: Callable[[Project], models.QuerySet[Any]]
    refers: Mapping[str, str] = field(default_factory=dict)
    leaves: tuple[str, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    until: Mapping[str, int] = field(default_factory=dict)
    first: int = 1
    on_write: Callable[[Row, Outgoing], None] | None = None
    on_read: Callable[[Row, Incoming], None] | None = None

    @property
    def columns(self) -> list[models.Field[Any, Any]]:
        """The columns that the bundle has, sorted by name."""
        left = {"id", *self.leaves}
        return sorted(
            (field for field in self.model._meta.concrete_fields if field.name not in left),
            key=lambda column: column.name,
        )

    @property
    def file(self) -> str:
        return f"{self.name}.jsonl"


@dataclass(slots=True)
class Outgoing:
    """The bundle being written; ``keys``: by member, the primary keys of the rows written so far, ascending."""

    project: Project
    replies: bool = False
    pseudonyms: Mapping[str, str] = field(default_factory=dict)
    keys: dict[str, array[int]] = field(default_factory=dict)

    def number(self, member: str, key: int | None) -> int | None:
        """The position of a row in its member, from 0; None if the member does not have it."""
        if key is None:
            return None
        keys = self.keys[member]
        place = bisect_left(keys, key)
        return place if place < len(keys) and keys[place] == key else None


@dataclass(slots=True)
class Incoming:
    """The bundle being read; ``keys``: by member, the primary keys that its rows get in this database; ``sets``: by
    duty, how many sets of criteria it has; ``criteria``: by version of a rubric, their keys; ``versions``: by campaign.
    ``further``: rows of one model that fields of an older bundle stand for, stored after the member that has them.
    """

    project: Project
    version: int
    actor: User | None = None
    keys: dict[str, Sequence[int]] = field(default_factory=dict)
    sets: dict[int, int] = field(default_factory=dict)
    criteria: dict[int, set[str]] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)
    further: list[models.Model] = field(default_factory=list)
    seed: UUID = field(default_factory=uuid4)

    def lease_key(self, assignment: int, revision: int) -> UUID:
        """A new key for a submission, the same for the assignment and its annotation."""
        return uuid5(self.seed, f"{assignment}:{revision}")


# --- out ------------------------------------------------------------------------------------------------------------
def written(member: Member, outgoing: Outgoing) -> Iterator[bytes]:
    """The lines of a member, in blocks of ``BATCH`` lines."""
    names = [column.name for column in member.columns]
    keys = outgoing.keys.setdefault(member.name, array("q"))
    rows = member.rows(outgoing.project).order_by("pk").values_list("pk", *names)
    lines: list[bytes] = []
    for key, *values in rows.iterator(BATCH):
        row = {"id": key, **dict(zip(names, values, strict=True))}
        if member.on_write is not None:
            member.on_write(row, outgoing)
        del row["id"]
        for name, other in member.refers.items():
            row[name] = outgoing.number(other, row[name])
        for name, other in member.written.items():
            row[other] = row.pop(name)
        keys.append(key)
        lines.append(orjson.dumps(row, default=str, option=_DUMPED))
        if len(lines) == BATCH:
            yield b"".join(lines)
            lines.clear()
    yield b"".join(lines)


# --- in -------------------------------------------------------------------------------------------------------------
def store_member(member: Member, lines: Iterator[bytes], count: int, incoming: Incoming) -> None:
    """Insert the rows of a member in the caller's transaction. Raises ``FormatError`` with the line of the problem."""
    keys = _reserved(member.model, count)
    incoming.keys[member.name] = keys
    reader = _RowReader(member, incoming)
    batch: list[tuple[Any, ...]] = []
    number = -1
    for number, line in enumerate(lines):
        if number >= count:
            break
        batch.append((keys[number], *reader.row(number + 1, keys[number], line)))
        if len(batch) == BATCH:
            bulk.insert(member.model, ("id", *reader.columns), batch)
            batch.clear()
    if number + 1 != count:
        text = f"{number + 1:,} rows or more" if number >= count else f"{number + 1:,} rows"
        raise FormatError(Problem(member.file, None, None, text, f"{count:,}, as the manifest says", "rows"))
    if batch:
        bulk.insert(member.model, ("id", *reader.columns), batch)
    if incoming.further:
        type(incoming.further[0])._default_manager.bulk_create(incoming.further, batch_size=BATCH)
        incoming.further.clear()


def _reserved(model: type[models.Model], count: int) -> Sequence[int]:
    """``count`` primary keys reserved for the caller, ascending."""
    if connection.vendor != "postgresql":
        newest = model._base_manager.aggregate(newest=Max("pk"))["newest"] or 0
        return range(newest + 1, newest + 1 + count)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
            [connection.ops.quote_name(model._meta.db_table), count],
        )
        return array("q", sorted(key for (key,) in cursor.fetchall()))


class _RowReader:
    """Converts the lines of a member into tuples for `bulk.insert`, in the order of ``columns``."""

    def __init__(self, member: Member, incoming: Incoming) -> None:
        self.member, self.incoming = member, incoming
        self.read_as = {other: name for name, other in member.written.items()}
        self.names = {member.written.get(column.name, column.name) for column in member.columns}
        self.former = {name for name, last in member.until.items() if last >= incoming.version}
        self.required = {name for name in self.names if member.since.get(name, 1) <= incoming.version} | self.former
        self.fields = [field for field in member.model._meta.concrete_fields if field.name != "id"]
        self.columns = [column.attname for column in self.fields]
        self.readers: dict[str, Reader] = {
            column.name: reader_of(column) for column in member.columns if column.name not in member.refers
        }
        self.nullable = {column.name for column in self.fields if column.null}

    def row(self, line: int, key: int, raw: bytes) -> list[Any]:
        """One complete, validated row."""
        parsed = self._object(line, raw)
        values: Row = {name: self._value(line, name, parsed[name]) for name in parsed}
        values["id"] = key
        if self.member.on_read is not None:
            try:
                self.member.on_read(values, self.incoming)
            except (ValueError, KeyError, TypeError) as fault:
                raise self._fault(line, None, excerpt(raw.decode("utf-8", "replace")), str(fault), "row") from None
        return [self._stored(column, values) for column in self.fields]

    def _object(self, line: int, raw: bytes) -> Row:
        try:
            parsed = orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise self._fault(line, None, "no JSON", "one JSON object per line", "json") from None
        if not isinstance(parsed, dict) or not self.required <= parsed.keys() <= self.names | self.former:
            text = ", ".join(sorted(parsed)) if isinstance(parsed, dict) else "no object"
            raise self._fault(line, None, text, f"the fields {', '.join(sorted(self.names))}", "fields")
        if not self.read_as:
            return parsed
        return {self.read_as.get(str(name), str(name)): value for name, value in parsed.items()}

    def _value(self, line: int, name: str, value: Any) -> Any:
        if name in self.former or (value is None and name in self.nullable):
            return value
        if (other := self.member.refers.get(name)) is not None:
            keys = self.incoming.keys.get(other, ())
            if type(value) is int and 0 <= value < len(keys):
                return keys[value]
            raise self._fault(line, name, excerpt(value), f"the number of a row of {other}.jsonl", "foreign_id")
        try:
            return self.readers[name](value)
        except ValueError as fault:
            raise self._fault(line, name, excerpt(value), str(fault), "value") from None

    def _stored(self, column: models.Field[Any, Any], values: Row) -> Any:
        """The value of a column; for a column that is not in the bundle, the default of a new row."""
        if column.name in values:
            value = values[column.name]
        elif column.name == "project":
            value = self.incoming.project.pk
        elif column.name == "created_by":
            value = self.incoming.actor.pk if self.incoming.actor else None
        else:
            value = column.get_default()
        is_json = isinstance(column, models.JSONField) and value is not None
        return orjson.dumps(value).decode() if is_json else value

    def _fault(self, line: int, name: str | None, text: str, expected: str, code: str) -> FormatError:
        column = self.member.written.get(name, name) if name else None  # its name in the bundle
        return FormatError(Problem(self.member.file, line, column, text, expected, code))


# Functions that convert a JSON value to a column's value, or raise ``ValueError`` with the expected content.

Reader = Callable[[Any], Any]


def reader_of(column: models.Field[Any, Any]) -> Reader:
    """The function that reads a column's values and checks its bounds."""
    for kind, make in _MAKERS:
        if isinstance(column, kind):
            return make(column)
    raise NotImplementedError(f"a column of the kind {type(column).__name__} can't be part of a bundle")


def _text(column: models.Field[Any, Any]) -> Reader:
    longest, choices = column.max_length, {value for value, _label in column.flatchoices}

    def read(value: Any) -> str:
        if not isinstance(value, str) or holds_nul(value) or (longest and len(value) > longest):
            raise ValueError(f"text of at most {longest:,} characters" if longest else "text without NUL characters")
        if choices and value not in choices:
            raise ValueError(f"one of {', '.join(sorted(choices))}")
        return value

    return read


def _integer(column: models.Field[Any, Any]) -> Reader:
    lowest = 0 if isinstance(column, models.PositiveIntegerField | models.PositiveSmallIntegerField) else -(2**63)
    highest = 2**15 if isinstance(column, models.PositiveSmallIntegerField) else 2**63
    highest = 2**31 if isinstance(column, models.PositiveIntegerField) else highest

    def read(value: Any) -> int:
        if type(value) is not int or not lowest <= value < highest:
            raise ValueError(f"a whole number from {lowest} and below {highest}")
        return value

    return read


def _number(column: models.Field[Any, Any]) -> Reader:
    def read(value: Any) -> float:
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ValueError("a number")
        return float(value)

    return read


def _switch(column: models.Field[Any, Any]) -> Reader:
    def read(value: Any) -> bool:
        if type(value) is not bool:
            raise ValueError("true or false")
        return value

    return read


def _day(column: models.Field[Any, Any]) -> Reader:
    def read(value: Any) -> date:
        try:
            return date.fromisoformat(value)
        except (TypeError, ValueError):
            raise ValueError("a date such as 2026-05-04") from None

    return read


def _moment(column: models.Field[Any, Any]) -> Reader:
    def read(value: Any) -> datetime:
        try:
            moment = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            moment = None
        if moment is None or moment.tzinfo is None:
            raise ValueError("a moment such as 2026-05-04T12:00:00Z")
        return moment

    return read


def _money(column: models.Field[Any, Any]) -> Reader:
    digits = getattr(column, "max_digits", None) or 0
    places = getattr(column, "decimal_places", None) or 0

    def read(value: Any) -> Decimal:
        try:
            amount = Decimal(value) if isinstance(value, str) else None
        except InvalidOperation:
            amount = None
        if amount is None or not amount.is_finite() or abs(amount) >= 10 ** (digits - places):
            raise ValueError(f"a number in quotes, of at most {digits - places} digits before the point")
        return amount

    return read


def _json(column: models.Field[Any, Any]) -> Reader:
    kind = type(column.get_default())

    def read(value: Any) -> Any:
        if kind in (dict, list) and not isinstance(value, kind):
            raise ValueError("an object" if kind is dict else "a list")
        try:
            require_storable(value)
        except InvalidValue as fault:
            raise ValueError(fault.expected) from None
        return value

    return read


_MAKERS: tuple[tuple[type[models.Field[Any, Any]], Callable[[models.Field[Any, Any]], Reader]], ...] = (
    (models.JSONField, _json),
    (models.CharField, _text),
    (models.TextField, _text),
    (models.BooleanField, _switch),
    (models.DateTimeField, _moment),
    (models.DateField, _day),  # after the moments, which are dates to Django
    (models.DecimalField, _money),
    (models.FloatField, _number),
    (models.IntegerField, _integer),
)
