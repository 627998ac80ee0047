"""What is accepted from outside: text that the database can keep, and whole numbers of addresses, headers and forms.

The one module that decides about NUL and halves of surrogate pairs. PostgreSQL stores neither, in text or in JSON, and
no UTF-8 file holds a half pair. A backslash, ``u`` and four zeros are six characters like any other: values are looked
at, never the JSON that spells them.
"""

from __future__ import annotations

from typing import Any

import orjson

NUL = "\x00"
LARGEST_FLOAT = 1e300


def holds_nul(value: Any) -> bool:
    """Whether a text, or any text inside a JSON value, has a NUL character."""
    if isinstance(value, str):
        return NUL in value
    if isinstance(value, dict):
        return any(holds_nul(part) for pair in value.items() for part in pair)
    return isinstance(value, list | tuple) and any(map(holds_nul, value))


def is_storable(value: Any) -> bool:
    """Whether a JSON column keeps the value: whole Unicode characters, no NUL, whole numbers within 64 bits."""
    try:
        return not (b"\\u0000" in orjson.dumps(value) and holds_nul(value))
    except TypeError:
        return False


def without_nul(text: str) -> str:
    """A line that was typed: nobody types a NUL, so it is left out."""
    return text.replace(NUL, "")


def storable(text: str) -> str:
    """The text with U+FFFD in place of every NUL and every half of a surrogate pair."""
    return text.replace(NUL, "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def storable_value(value: Any) -> Any:
    """A JSON value with every text in it `storable`, and no number that JSON lacks."""
    if isinstance(value, dict):
        return {storable(key): storable_value(member) for key, member in value.items()}
    if isinstance(value, list):
        return [storable_value(member) for member in value]
    if isinstance(value, float) and not -LARGEST_FLOAT < value < LARGEST_FLOAT:
        return str(value)
    return storable(value) if isinstance(value, str) else value


LARGEST_KEY = 2**63 - 1  # of a primary key in either database


def whole_number(text: str | None, *, largest: int = LARGEST_KEY) -> int | None:
    """The number that ``text`` writes in the digits 0 to 9, from 0 to ``largest``; None for anything else."""
    if not text or len(text) > len(str(largest)) or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return number if number <= largest else None
