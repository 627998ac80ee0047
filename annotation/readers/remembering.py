"""Conversions of texts that occur again and again, made once each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MOST = 50_000


class _Known(dict[str, T]):
    """What texts are converted to; made when it is first asked for."""

    def __init__(self, convert: Callable[[str], T], most: int) -> None:
        super().__init__()
        self._convert, self._most = convert, most

    def __missing__(self, text: str) -> T:
        made = self._convert(text)
        if len(self) >= self._most:
            self.clear()
        self[text] = made
        return made


class Remembered(Generic[T]):
    """A conversion that keeps what it made of the last texts. What is no text (1, 1.0 and true are one key) or cannot
    be converted goes through it each time."""

    def __init__(self, convert: Callable[[Any], T], most: int) -> None:
        self._convert, self._known = convert, _Known(convert, most)

    def __call__(self, value: Any) -> T:
        return self._known[value] if type(value) is str else self._convert(value)

    def each(self, column: Sequence[Any]) -> Iterable[T]:
        """What the values of a column become, one by one; in a loop in C where all of them are texts."""
        return map(self._known.__getitem__ if set(map(type, column)) == {str} else self, column)


def remembered(convert: Callable[[Any], T], *, most: int = MOST) -> Remembered[T]:
    """``convert``, which remembers."""
    return Remembered(convert, most)


def converted(convert: Remembered[T], column: Sequence[Any] | None) -> Iterable[T | None]:
    """A column that may be absent, and then gives nothing as often as it is asked."""
    return repeat(None) if column is None else convert.each(column)
