"""Digests of judges: the same digest means the same judge. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from judging.prompts import (
    CriterionBrief,
    ItemText,
    PointBrief,
    PromptVariant,
    Turn,
    render,
    repair_turn,
    response_schema,
)

# Two criteria and an item that together touch every sentence of the templates.
_SPECIMEN_CRITERIA: Final = (
    CriterionBrief(
        key="specimen",
        name="Specimen",
        points=(PointBrief(0, "low", "text", "reason"), PointBrief(1)),
        question="question",
        definition="definition",
        allows_na=True,
        mark_if="mark",
        dont_mark_if="not",
        speaker="speaker",
    ),
    CriterionBrief(key="range", name="Range", points=(PointBrief(0), PointBrief(1)), level="interval"),
)
_SPECIMEN_ITEM: Final = ItemText(turns=(Turn("a", "b", "c"),), fields=(("d", "e"),), language="en", title="f")


def canonical(value: Any) -> bytes:
    """The one spelling of a JSON value: sorted keys, no spaces, UTF-8. Raises on NaN, which has no JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def digest(value: Any) -> str:
    """SHA-256 of the canonical spelling, in hexadecimal (64 characters)."""
    return hashlib.sha256(canonical(value)).hexdigest()


def template_digest(variant: PromptVariant) -> str:
    """Changes whenever a variant's own wording or shape changes, whatever the rubric and the item say."""
    criteria = _SPECIMEN_CRITERIA if variant.grouping == "compound" else _SPECIMEN_CRITERIA[:1]
    about: Any = {"item": _SPECIMEN_ITEM, "variant": variant}
    about |= {"examples": [(_SPECIMEN_ITEM, 1.0)]} if variant.examples else {}
    shown = [render(criteria=[criterion], **about) for criterion in _SPECIMEN_CRITERIA]
    together = render(criteria=criteria, **about)
    shape = [shown, together, response_schema(criteria, variant)]
    return digest([*shape, repair_turn([], "", variant)] if variant.repair else shape)


def judge_digest(*, endpoint: str, model: str, variant: PromptVariant, parameters: Mapping[str, Any]) -> str:
    """The identity of a judge: everything that can change a verdict except the item and the rubric."""
    return digest(
        {
            "endpoint": endpoint,
            "model": model,
            "variant": variant.factors,
            "template": template_digest(variant),
            "parameters": dict(parameters),
        }
    )
