"""Where a value stands in a record: `score`, or `annotations.safety.scores` for what is inside objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def located(fields: Mapping[str, Any], path: str) -> tuple[str, ...] | None:
    """The keys that lead to a path, or None where the record has no such place. A key may itself hold dots: the
    whole name comes first, then what is before each dot, the shortest first."""
    if path in fields:
        return (path,)
    for place, character in enumerate(path):
        inner = fields.get(path[:place]) if character == "." else None
        if isinstance(inner, dict) and (rest := located(inner, path[place + 1 :])):
            return (path[:place], *rest)
    return None


def at(fields: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The value under some keys, one inside the other; nothing where one of them is missing."""
    value: Any = fields
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def found(fields: Mapping[str, Any], path: str) -> Any:
    """The value at a path, or nothing."""
    if path in fields:
        return fields[path]
    keys = located(fields, path)
    return at(fields, keys) if keys else None


def with_value(fields: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The record with another value at a path; what it shares with other records is not touched."""
    return _put(fields, located(fields, path) or (path,), value)


def _put(fields: dict[str, Any], keys: tuple[str, ...], value: Any) -> dict[str, Any]:
    head, *rest = keys
    return {**fields, head: _put(fields[head], tuple(rest), value) if rest else value}


def without(fields: dict[str, Any], path: str) -> dict[str, Any]:
    """The record without what stands at a path; objects that become empty by it go too."""
    keys = located(fields, path)
    return fields if keys is None else _cut(fields, keys)


def _cut(fields: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    head, *rest = keys
    inner = _cut(fields[head], tuple(rest)) if rest else {}
    return {key: inner if key == head else part for key, part in fields.items() if key != head or inner}
