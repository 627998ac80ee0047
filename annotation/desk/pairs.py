"""Pairwise items: two candidates, ``passage_a`` and ``passage_b``, and a criterion that asks which of them is better.

A criterion is a *preference* if neither end of its scale is the best and the scale is 1 to 2, with or without 1.5: 1
means ``passage_a``, 2 ``passage_b``, 1.5 a tie. Where a duty has one, each annotator sees the candidates in an order
that is drawn for their assignment and stored with the annotation. Scores keep the dataset's own terms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from annotation.blinding import CANDIDATES, lay_out
from annotation.models import Assignment, Criterion

FIRST, TIE, SECOND = 1.0, 1.5, 2.0


def is_preference(criterion: Criterion) -> bool:
    """Whether the criterion asks which of two candidates is better."""
    if criterion.direction != Criterion.Direction.NONE or criterion.level == Criterion.Level.NOMINAL:
        return False
    return {FIRST, SECOND} <= set(preference_scores(criterion)) <= {FIRST, TIE, SECOND}


def preference_scores(criterion: Criterion) -> tuple[float, ...]:
    """The scores of a preference: its points, or of a range from 1 to 2 its ends and, if it is on the scale, 1.5."""
    if criterion.points:
        return criterion.values
    tie = (TIE,) if criterion.is_on_scale(TIE) else ()
    return (criterion.minimum, *tie, criterion.maximum)


def is_pair(fields: Mapping[str, Any], layout: Mapping[str, Any] | None) -> bool:
    """Whether an item shows two candidates."""
    shown = {name for name, text in lay_out(fields=fields, turns=(), layout=layout).fields if text.strip()}
    return set(CANDIDATES) <= shown


def swapped_for(assignment: Assignment, criteria: Sequence[Criterion]) -> bool | None:
    """Whether this assignment shows ``passage_b`` first; None if there is no preference to give, or no pair.

    Drawn from the duty's seed: of an item's annotators, one half sees each order (give or take one).
    """
    if not any(is_preference(criterion) for criterion in criteria):
        return None
    columns = ("item__fields", "duty__campaign__dataset__layout", "duty__seed", "slot")
    fields, layout, seed, slot = Assignment.objects.values_list(*columns).get(pk=assignment.pk)
    if not is_pair(fields, layout):
        return None
    drawn = hashlib.sha256(f"{seed}:{assignment.item_id}".encode()).digest()[0]
    return bool((drawn + slot) % 2)
