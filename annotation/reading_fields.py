"""Values of JSON -> what a column holds, or a ``ValueError`` that says what was expected."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import models

from accounts.storable import holds_nul
from annotation.formats.jsontext import require_storable
from annotation.formats.problems import Unfit

Reader = Callable[[Any], Any]


def reader_of(column: models.Field[Any, Any]) -> Reader:
    """How values of a column are read and held against its bounds."""
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
        except Unfit as fault:
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
