"""What a cell or member holds: a list, an object, or text in which one is written."""

from __future__ import annotations

import ast
from typing import Any

from annotation.readers.fields import is_blank
from annotation.readers.jsontext import parse_document, require_storable
from annotation.readers.problems import FormatError, Unfit, excerpt


def as_parsed(text: str, column: str) -> Any:
    """The value that a text spells as JSON, or as Python writes lists and objects. Raises ``Unfit``."""
    try:
        return parse_document(column, text)
    except FormatError as error:
        expected = f"JSON, or a list as Python writes it ({error.problem.expected})"
    try:
        value = _listed(ast.literal_eval(text.strip()))
        require_storable(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        raise Unfit(excerpt(text), expected, "not_a_list", column) from None
    return value


def _listed(value: Any) -> Any:
    """What JSON could have said: tuples are lists; bytes, sets and complex numbers are nothing."""
    if isinstance(value, list | tuple):
        return [_listed(each) for each in value]
    if isinstance(value, dict):
        return {_key(key): _listed(each) for key, each in value.items()}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(value)


def _key(key: Any) -> str:
    if isinstance(key, str | int):
        return str(key)
    raise ValueError(key)


def as_list(value: Any, column: str) -> list[Any]:
    """A list, or text that spells one; a blank is an empty one. Raises ``Unfit``."""
    if isinstance(value, str) and value.strip():
        value = as_parsed(value, column)
    if is_blank(value):
        return []
    if not isinstance(value, list):
        raise Unfit(excerpt(value), f"a list in {column}", "not_a_list", column)
    return value


def as_object(value: Any, column: str) -> dict[str, Any]:
    """An object, or text that spells one; a blank is an empty one. Raises ``Unfit``."""
    if isinstance(value, str) and value.strip():
        value = as_parsed(value, column)
    if is_blank(value):
        return {}
    if not isinstance(value, dict):
        raise Unfit(excerpt(value), f"an object in {column}", "not_an_object", column)
    return value
