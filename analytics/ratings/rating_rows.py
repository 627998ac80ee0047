"""The row and the columns of every ratings table (METHODS 0)."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from annotation import exports as rated
from annotation.writers.tables import Column
from judging import exports as judged


class Row(NamedTuple):
    """One score of one rater on one criterion of one item, or the reason there is none.

    `blind`: whether the annotator's role kept verdicts and other people's ratings from them when they submitted it;
    None where nobody knows (imported, or before this was stored) and for judges. `level` and `scale` are the
    criterion's (`Criterion.scale`); `score_label` is what the rubric calls the point. `seconds` is the time that the
    annotator took for the whole item. `rationale_length` counts characters. `certainty`: how sure the annotator was of
    the item's scores, 0 to 100; None where the rubric does not ask for it, and for judges.
    """

    item: str
    cluster: str
    criterion: str
    rater: str
    rater_kind: str
    rater_identified: bool
    panel: str | None
    language: str
    generator: str | None
    score: float | None
    applicable: bool
    missing_reason: str | None
    repeat: int
    inclusion_prob: float
    weight: float
    blind: bool | None
    level: str
    scale: list[float] | dict[str, float]
    score_label: str
    scenario: str | None
    dataset: str
    dataset_version: int
    rubric_version: int
    duty: str | None
    seconds: float | None
    rationale_length: int
    certainty: int | None = None


KINDS = {
    **dict.fromkeys(("rater_identified", "applicable", "blind"), "switch"),
    **dict.fromkeys(("score", "inclusion_prob", "weight", "seconds"), "number"),
    **dict.fromkeys(("repeat", "dataset_version", "rubric_version", "rationale_length", "certainty"), "integer"),
    **dict.fromkeys(("criterion", "rater_kind", "language", "missing_reason", "level"), "word"),
    "scale": "object",
}
COLUMNS = tuple(Column(name, cast("Any", KINDS.get(name, "text"))) for name in Row._fields)
"""The columns of every ratings table; those of the items' attributes follow."""
TAKEN = frozenset(
    column.name for column in (*COLUMNS, *rated.SHARED, *rated.OWN, *judged.OWN, rated.NAME, Column("judge"))
) | {
    "row",
    "item_key",
    "raw",
    "code",
    "missing",
    "out_of_range",
    "first_repeat",
    "week",
    "hundred",
    "rated_place",
    "submitted_at",
    "levels",
    "dialogue_fault",
}
"""Names that no attribute's column may have: `attribute_score` holds the attribute `score`."""
ATTRIBUTE = "attribute_"
