"""Conversions of texts that occur again and again, made once each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, TypeVar

T = TypeVar("T")

MOST = 50_000


def remembered(convert: Callable[[Any], T], *, most: int = MOST) -> Callable[[Any], T]:
    """``convert``, with what it made of the last texts kept. What is no text (1, 1.0 and true are one key) or cannot be
    converted goes through it each time."""
    known: dict[str, T] = {}

    def look_up(value: Any) -> T:
        if type(value) is not str:
            return convert(value)
        try:
            return known[value]
        except KeyError:
            if len(known) >= most:
                known.clear()
            made = known[value] = convert(value)
            return made

    return look_up


def converted(convert: Callable[[Any], T], column: Sequence[Any] | None) -> Iterable[T | None]:
    """A column that may be absent, and then gives nothing as often as it is asked."""
    return repeat(None) if column is None else map(convert, column)
