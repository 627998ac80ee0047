"""Which parts of an item annotators and judges see, and in what order. Pure.

A dataset's layout: ``{"fields": ["question", "answer"], "brief": "context", "turns": false}``; every key is optional.
``fields``: the fields shown, in order (default: all, in `USUAL_ORDER`). ``brief``: the field shown collapsed above the
text. ``turns``: false hides the dialogue. Generator, scenario and attributes are never shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

USUAL_ORDER = (
    "context",
    "question",
    "source",
    "document",
    "passages",
    "passage_a",
    "passage_b",
    "answer",
    "reference",
)


@dataclass(frozen=True, slots=True)
class VisibleParts:
    """The visible parts of an item: the collapsed brief, (name, text) of every field, and the turns."""

    brief: str
    fields: tuple[tuple[str, str], ...]
    turns: tuple[Mapping[str, str], ...]


def lay_out(
    *, fields: Mapping[str, Any], turns: Sequence[Mapping[str, str]], layout: Mapping[str, Any] | None = None
) -> VisibleParts:
    """The parts of an item that its dataset's layout shows."""
    layout = layout or {}
    brief = layout.get("brief", "")
    names = layout.get("fields") or sorted(fields, key=_place)
    return VisibleParts(
        brief=_text(fields.get(brief, "")),
        fields=tuple((name, _text(fields[name])) for name in names if name in fields and name != brief),
        turns=tuple(turns) if layout.get("turns", True) else (),
    )


def _place(name: str) -> tuple[int, str]:
    return (USUAL_ORDER.index(name) if name in USUAL_ORDER else len(USUAL_ORDER), name)


def _text(value: Any) -> str:
    """The text of a field; a list of texts becomes paragraphs."""
    return "\n\n".join(map(str, value)) if isinstance(value, list) else str(value)
