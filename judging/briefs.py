"""Build the input of a prompt from database rows: the visible part of the item, and the criteria in one language."""

from __future__ import annotations

from collections.abc import Iterable

from annotation.layouts import lay_out
from annotation.models import Criterion, Item
from judging.prompts import CriterionBrief, ItemText, PointBrief, Turn


def item_text(item: Item) -> ItemText:
    """What of an item a judge may see; its generator, scenario and attributes are not part of it."""
    shown = lay_out(fields=item.fields, turns=item.turns, layout=item.dataset.layout)
    brief = (("brief", shown.brief),) if shown.brief else ()
    return ItemText(
        turns=tuple(Turn(turn["speaker"], turn["text"], turn.get("name", "")) for turn in shown.turns),
        fields=(*brief, *shown.fields),
        language=item.language,
        title=item.title,
    )


def criterion_brief(criterion: Criterion, language: str) -> CriterionBrief:
    """A criterion as the judge reads it, in ``language`` or the rubric's own."""
    return CriterionBrief(
        key=criterion.key,
        name=criterion.says("name", language) or criterion.key,
        points=_points(criterion, language),
        question=criterion.says("question", language) or "",
        definition=criterion.says("definition", language) or "",
        level=criterion.level,  # type: ignore[arg-type]
        allows_na=criterion.not_applicable,
        mark_if=_sentence(criterion.says("mark_if", language)),
        dont_mark_if=_sentence(criterion.says("dont_mark_if", language)),
        speaker=criterion.speaker,
        is_range=not criterion.points,
        step=criterion.step,
    )


def _points(criterion: Criterion, language: str) -> tuple[PointBrief, ...]:
    if not criterion.points:
        return PointBrief(criterion.minimum), PointBrief(criterion.maximum)
    return tuple(
        PointBrief(value=value, label=criterion.label(value, language), **criterion.anchor(value, language))
        for value in criterion.values
    )


def _sentence(clauses: Iterable[str] | None) -> str:
    """The clauses as one, each without the full stop it would end with alone; the last keeps its own."""
    written = [clause.strip() for clause in clauses or () if clause.strip()]
    return "; ".join([*(clause.rstrip(".。") for clause in written[:-1]), *written[-1:]])
