"""Which parts of an item desk and judge see, and in what order. Pure.

A dataset's layout: ``{"fields": ["question", "answer"], "brief": "context", "turns": false}``, each key optional.
``fields`` names what is shown, in order (without it everything is, in the usual order); ``brief`` is folded away above
the text; ``turns`` false leaves the dialogue out. Generator, scenario and attributes have no place in any layout.
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
class Shown:
    """What is seen of an item: the folded brief, (name, text) of each named field, and the turns."""

    brief: str
    fields: tuple[tuple[str, str], ...]
    turns: tuple[Mapping[str, str], ...]


def lay_out(
    *, fields: Mapping[str, Any], turns: Sequence[Mapping[str, str]], layout: Mapping[str, Any] | None = None
) -> Shown:
    """The parts of an item that its dataset's layout shows."""
    layout = layout or {}
    brief = layout.get("brief", "")
    names = layout.get("fields") or sorted(fields, key=_place)
    return Shown(
        brief=_text(fields.get(brief, "")),
        fields=tuple((name, _text(fields[name])) for name in names if name in fields and name != brief),
        turns=tuple(turns) if layout.get("turns", True) else (),
    )


def _place(name: str) -> tuple[int, str]:
    return (USUAL_ORDER.index(name) if name in USUAL_ORDER else len(USUAL_ORDER), name)


def _text(value: Any) -> str:
    """A field's text; of a list, its texts as paragraphs."""
    return "\n\n".join(map(str, value)) if isinstance(value, list) else str(value)
