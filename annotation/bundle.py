"""Write a project's rows to a bundle and read them into another database: every field, with references by number.

A member is one table of a bundle: its rows in the order of their keys, one JSON object a line. A row is referred to by
its place in its member, from 0, so that nothing of it depends on the database it came from: the same content is the
same bytes. What belongs to one instance alone (users, leases, keys) is not carried; each member says what it leaves.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
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
    """One table of a bundle: its rows, the fields that are left out, and the fields that refer to other members.

    ``sent`` changes a row on its way out; ``given`` fills in what was left, on its way in, and may refuse the row by
    raising ``ValueError`` with what was expected. ``written`` gives the names of fields that bundles call otherwise.
    ``since`` names the fields that bundles before that version do not have; read from one of those, they are what a
    new row has.
    """

    name: str
    model: type[models.Model]
    rows: Callable[[Project], models.QuerySet[Any]]
    refers: Mapping[str, str] = field(default_factory=dict)
    leaves: tuple[str, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    sent: Callable[[Row, Outgoing], None] | None = None
    given: Callable[[Row, Incoming], None] | None = None

    @property
    def carried(self) -> list[models.Field[Any, Any]]:
        """The columns that go along, by name."""
        left = {"id", *self.leaves}
        return sorted(
            (field for field in self.model._meta.concrete_fields if field.name not in left),
            key=lambda each: each.name,
        )

    @property
    def file(self) -> str:
        return f"{self.name}.jsonl"


@dataclass(slots=True)
class Outgoing:
    """What is being written: by member, the keys of the rows written so far, rising."""

    project: Project
    replies: bool = False
    pseudonyms: Mapping[str, str] = field(default_factory=dict)
    keys: dict[str, array[int]] = field(default_factory=dict)

    def number(self, member: str, key: int | None) -> int | None:
        """The place of a row in its member; None for one that stays behind."""
        if key is None:
            return None
        keys = self.keys[member]
        place = bisect_left(keys, key)
        return place if place < len(keys) and keys[place] == key else None


@dataclass(slots=True)
class Incoming:
    """What is being read: by member, the keys that its rows have here."""

    project: Project
    version: int
    actor: User | None = None
    keys: dict[str, Sequence[int]] = field(default_factory=dict)
    seed: UUID = field(default_factory=uuid4)

    def lease_key(self, assignment: int, revision: int) -> UUID:
        """The key of a submission: another one here, and the same on the assignment and on its annotation."""
        return uuid5(self.seed, f"{assignment}:{revision}")


# --- out ------------------------------------------------------------------------------------------------------------
def written(member: Member, outgoing: Outgoing) -> Iterator[bytes]:
    """The lines of a member, many at a time."""
    names = [each.name for each in member.carried]
    keys = outgoing.keys.setdefault(member.name, array("q"))
    found = member.rows(outgoing.project).order_by("pk").values_list("pk", *names)
    lines: list[bytes] = []
    for key, *values in found.iterator(BATCH):
        row = {"id": key, **dict(zip(names, values, strict=True))}
        if member.sent is not None:
            member.sent(row, outgoing)
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
def store(member: Member, lines: Iterator[bytes], count: int, incoming: Incoming) -> None:
    """Insert the rows of a member, in the caller's transaction. Raises ``FormatError`` naming the line at fault."""
    keys = _reserved(member.model, count)
    incoming.keys[member.name] = keys
    reading = _Reading(member, incoming)
    batch: list[tuple[Any, ...]] = []
    number = -1
    for number, line in enumerate(lines):
        if number >= count:
            break
        batch.append((keys[number], *reading.row(number + 1, keys[number], line)))
        if len(batch) == BATCH:
            bulk.insert(member.model, ("id", *reading.columns), batch)
            batch.clear()
    if number + 1 != count:
        text = f"{number + 1:,} rows or more" if number >= count else f"{number + 1:,} rows"
        raise FormatError(Problem(member.file, None, None, text, f"{count:,}, as the manifest says", "rows"))
    if batch:
        bulk.insert(member.model, ("id", *reading.columns), batch)


def _reserved(model: type[models.Model], count: int) -> Sequence[int]:
    """Keys that nobody else gets, rising."""
    if connection.vendor != "postgresql":
        newest = model._default_manager.aggregate(newest=Max("pk"))["newest"] or 0
        return range(newest + 1, newest + 1 + count)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
            [connection.ops.quote_name(model._meta.db_table), count],
        )
        return array("q", sorted(key for (key,) in cursor.fetchall()))


class _Reading:
    """Lines of a member -> tuples for `bulk.insert`, in the order of ``columns``."""

    def __init__(self, member: Member, incoming: Incoming) -> None:
        self.member, self.incoming = member, incoming
        self.read_as = {other: name for name, other in member.written.items()}
        self.names = {member.written.get(each.name, each.name) for each in member.carried}
        self.required = {name for name in self.names if member.since.get(name, 1) <= incoming.version}
        self.fields = [field for field in member.model._meta.concrete_fields if field.name != "id"]
        self.columns = [each.attname for each in self.fields]
        self.readers: dict[str, Reader] = {
            each.name: reader_of(each) for each in member.carried if each.name not in member.refers
        }
        self.nullable = {each.name for each in self.fields if each.null}

    def row(self, line: int, key: int, raw: bytes) -> list[Any]:
        """One row, whole and checked."""
        said = self._object(line, raw)
        values: Row = {name: self._value(line, name, said[name]) for name in said}
        values["id"] = key
        if self.member.given is not None:
            try:
                self.member.given(values, self.incoming)
            except (ValueError, KeyError, TypeError) as fault:
                raise self._fault(line, None, excerpt(raw.decode("utf-8", "replace")), str(fault), "row") from None
        return [self._stored(each, values) for each in self.fields]

    def _object(self, line: int, raw: bytes) -> Row:
        try:
            said = orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise self._fault(line, None, "no JSON", "one JSON object per line", "json") from None
        if not isinstance(said, dict) or not self.required <= said.keys() <= self.names:
            text = ", ".join(sorted(said)) if isinstance(said, dict) else "no object"
            raise self._fault(line, None, text, f"the fields {', '.join(sorted(self.names))}", "fields")
        return {self.read_as.get(str(name), str(name)): value for name, value in said.items()} if self.read_as else said

    def _value(self, line: int, name: str, said: Any) -> Any:
        if said is None and name in self.nullable:
            return None
        if (other := self.member.refers.get(name)) is not None:
            keys = self.incoming.keys[other]
            if type(said) is int and 0 <= said < len(keys):
                return keys[said]
            raise self._fault(line, name, excerpt(said), f"the number of a row of {other}.jsonl", "foreign_id")
        try:
            return self.readers[name](said)
        except ValueError as fault:
            raise self._fault(line, name, excerpt(said), str(fault), "value") from None

    def _stored(self, each: models.Field[Any, Any], values: Row) -> Any:
        """The value of a column; for a column that is not in the bundle, the default of a new row."""
        if each.name in values:
            value = values[each.name]
        elif each.name == "project":
            value = self.incoming.project.pk
        elif each.name == "created_by":
            value = self.incoming.actor.pk if self.incoming.actor else None
        else:
            value = each.get_default()
        is_json = isinstance(each, models.JSONField) and value is not None
        return orjson.dumps(value).decode() if is_json else value

    def _fault(self, line: int, name: str | None, found: str, expected: str, code: str) -> FormatError:
        column = self.member.written.get(name, name) if name else None  # as the bundle calls it
        return FormatError(Problem(self.member.file, line, column, found, expected, code))


# Values of JSON -> what a column holds, or a ``ValueError`` that says what was expected.

Reader = Callable[[Any], Any]


def reader_of(column: models.Field[Any, Any]) -> Reader:
    """How values of a column are read and checked against its bounds."""
    for kind, make in _MAKERS:
        if isinstance(column, kind):
            return make(column)
    raise NotImplementedError(f"a column of the kind {type(column).__name__} can't be carried")


def _text(column: models.Field[Any, Any]) -> Reader:
    longest, choices = column.max_length, {value for value, _label in column.flatchoices}

    def read(said: Any) -> str:
        if not isinstance(said, str) or holds_nul(said) or (longest and len(said) > longest):
            raise ValueError(f"text of at most {longest:,} characters" if longest else "text without NUL characters")
        if choices and said not in choices:
            raise ValueError(f"one of {', '.join(sorted(choices))}")
        return said

    return read


def _integer(column: models.Field[Any, Any]) -> Reader:
    lowest = 0 if isinstance(column, models.PositiveIntegerField | models.PositiveSmallIntegerField) else -(2**63)
    highest = 2**15 if isinstance(column, models.PositiveSmallIntegerField) else 2**63
    highest = 2**31 if isinstance(column, models.PositiveIntegerField) else highest

    def read(said: Any) -> int:
        if type(said) is not int or not lowest <= said < highest:
            raise ValueError(f"a whole number from {lowest} and below {highest}")
        return said

    return read


def _number(column: models.Field[Any, Any]) -> Reader:
    def read(said: Any) -> float:
        if type(said) not in (int, float) or not math.isfinite(said):
            raise ValueError("a number")
        return float(said)

    return read


def _switch(column: models.Field[Any, Any]) -> Reader:
    def read(said: Any) -> bool:
        if type(said) is not bool:
            raise ValueError("true or false")
        return said

    return read


def _moment(column: models.Field[Any, Any]) -> Reader:
    def read(said: Any) -> datetime:
        try:
            found = datetime.fromisoformat(said)
        except (TypeError, ValueError):
            found = None
        if found is None or found.tzinfo is None:
            raise ValueError("a moment such as 2026-05-04T12:00:00Z")
        return found

    return read


def _money(column: models.Field[Any, Any]) -> Reader:
    digits = getattr(column, "max_digits", None) or 0
    places = getattr(column, "decimal_places", None) or 0

    def read(said: Any) -> Decimal:
        try:
            found = Decimal(said) if isinstance(said, str) else None
        except InvalidOperation:
            found = None
        if found is None or not found.is_finite() or abs(found) >= 10 ** (digits - places):
            raise ValueError(f"a number in quotes, of at most {digits - places} digits before the point")
        return found

    return read


def _json(column: models.Field[Any, Any]) -> Reader:
    kind = type(column.get_default())

    def read(said: Any) -> Any:
        if kind in (dict, list) and not isinstance(said, kind):
            raise ValueError("an object" if kind is dict else "a list")
        try:
            require_storable(said)
        except InvalidValue as fault:
            raise ValueError(fault.expected) from None
        return said

    return read


_MAKERS: tuple[tuple[type[models.Field[Any, Any]], Callable[[models.Field[Any, Any]], Reader]], ...] = (
    (models.JSONField, _json),
    (models.CharField, _text),
    (models.TextField, _text),
    (models.BooleanField, _switch),
    (models.DateTimeField, _moment),
    (models.DecimalField, _money),
    (models.FloatField, _number),
    (models.IntegerField, _integer),
)
