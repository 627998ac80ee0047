"""JSON that a request brings, as deep as anything of ours is and no deeper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

DEEPEST = 64  # objects and lists inside one another


class ShallowJSONParser(JSONParser):
    """DRF's parser, which ends with an error of the server where the text nests deeper than Python's stack."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The parsed body. Raises ``ParseError`` for what is no JSON or nests too deep."""
        sentence = _("This JSON nests more than %(most)d objects or lists inside one another.") % {"most": DEEPEST}
        try:
            parsed: dict[str, Any] = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError(sentence) from None
        if is_deeper(parsed, DEEPEST):
            raise ParseError(sentence)
        return parsed


def is_deeper(value: Any, most: int) -> bool:
    """Whether a parsed value nests more than ``most`` objects or lists."""
    level = [value]
    for _depth in range(most + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
