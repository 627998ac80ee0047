"""Text in the API is text: what the schema calls a string is refused when it is a number.

REST framework writes numbers out where a field wants text, in every kind of text field and in those that model
serializers make for themselves, so the schema would promise what the API does not keep. It has no setting for that.
"""

from __future__ import annotations

from typing import Any

from rest_framework.serializers import CharField

_written_out = CharField.to_internal_value


def refuse_numbers() -> None:
    """From now on, everywhere; safe to repeat."""
    CharField.to_internal_value = _text  # type: ignore[method-assign, assignment]


def _text(field: CharField, given: Any) -> str:
    if not isinstance(given, str):
        field.fail("invalid")
    return _written_out(field, given)
