"""What a judge is asked, from rows of the database: items and criteria as a prompt takes them, the request of each call
of a run, and the same requests for a preview.

A judge sees the visible part of an item and the criteria in the language of its instructions. Each request carries its
messages, the schema of the reply, the parameters, and what it costs at worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.db.models import Exists, OuterRef

from accounts.inputs import storable
from accounts.refusals import Refused
from annotation.blinding import lay_out
from annotation.models import Criterion, Item, RubricVersion
from judging import digests, judges, spending
from judging.models import Attempt, Call, Judge, JudgeRun
from judging.prompts import (
    CriterionBrief,
    ItemText,
    Message,
    PointBrief,
    PromptVariant,
    Turn,
    render,
    repair_turn,
    response_schema,
    system_message,
    user_message,
)
from judging.replies import reply_text

# --- items and criteria as a prompt takes them ------------------------------------------------------------------------


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


# --- the requests of a run --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """One request: the call it is for, what is sent, and the attempt under which it is booked."""

    call: Call
    criteria: Sequence[CriterionBrief]
    messages: Sequence[Message]
    schema: dict[str, Any]
    parameters: dict[str, Any]
    worst_case: Decimal | None
    attempt: Attempt = field(compare=False)

    @property
    def reply_key(self) -> str:
        """The same for requests that get the same reply: everything that is sent, to whom, and which repeat it is."""
        return self.attempt.reply_key

    def request(self, *, dropped: Sequence[str] = ()) -> dict[str, Any]:
        """The request as it is stored; ``dropped`` names what the model would not take."""
        messages = [{name: storable(text) for name, text in message.items()} for message in self.messages]
        return {"messages": messages, "parameters": dict(self.parameters), "dropped": list(dropped)}


LOOK_AHEAD = 250  # calls that are held against the replies of earlier runs at a time


class CallRequestWriter:
    """Writes the questions of one run. ``looks_ahead`` to so many calls for replies that can be used again."""

    def __init__(self, run: JudgeRun) -> None:
        self.run = run
        self.looks_ahead = LOOK_AHEAD
        self.variant: PromptVariant = judges.variant_of(run.judge.variant)
        self._same_for_every_item: dict[int | None, tuple[dict[str, Any], Message]] = {}

    @cached_property
    def _criteria(self) -> dict[int, CriterionBrief]:
        language = self.variant.instruction_language
        return {
            criterion.pk: criterion_brief(criterion, language) for criterion in self.run.rubric_version.criteria.all()
        }

    @cached_property
    def can_reuse(self) -> bool:
        """Whether another run of the judge has replies that this one may use."""
        others = JudgeRun.objects.filter(judge=self.run.judge_id).exclude(pk=self.run.pk)
        replies = Attempt.objects.filter(call__run=OuterRef("pk"), outcome=Attempt.Outcome.REPLIED)
        return not self.run.pays_again and others.filter(Exists(replies.exclude(reply_key=""))).exists()

    def write(self, call: Call) -> CallRequest:
        """The request for one call. The item and its dataset are loaded with the call."""
        criteria = [self._criteria[call.criterion_id]] if call.criterion_id else list(self._criteria.values())
        if call.criterion_id not in self._same_for_every_item:
            fixed = response_schema(criteria, self.variant), system_message(criteria, self.variant)
            self._same_for_every_item[call.criterion_id] = fixed
        schema, instructions = self._same_for_every_item[call.criterion_id]
        messages = [instructions, user_message(item_text(call.item), self.variant)]
        if call.repairs is not None:
            messages = repair_turn(messages, storable(reply_text(call.repairs.reply)), self.variant)
        sent: dict[str, Any] = {
            "schema": schema,
            "parameters": self._parameters(call),
            "messages": messages,
        }
        judge = self.run.judge
        worst = spending.worst_case(judge, **sent)
        key = digests.digest({"provider": judge.provider, "model": judge.model, "repeat": call.repeat, **sent})
        attempt = Attempt(call=call, reserved=worst, reply_key=key)
        return CallRequest(call=call, criteria=criteria, worst_case=worst, attempt=attempt, **sent)

    def _parameters(self, call: Call) -> dict[str, Any]:
        """The judge's parameters; a declared seed moves on with the repeat: repeats differ and can be had again."""
        parameters = dict(self.run.judge.parameters)
        if isinstance(parameters.get("seed"), int):
            parameters["seed"] += call.repeat - 1
        return parameters


# --- the requests that would be sent ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of one call, the schema its reply has to keep, and which criteria it asks about."""

    criteria: Sequence[str]
    messages: list[Message]
    schema: dict[str, Any]

    @property
    def tokens(self) -> int:
        """About how many tokens the messages take: four bytes each."""
        return sum(len(message["content"].encode("utf-8", "replace")) for message in self.messages) // 4


def preview_prompts(*, judge: Judge, item: Item, rubric_version: RubricVersion) -> list[Prompt]:
    """Exactly what the judge would be sent about this item: one prompt, or one per criterion."""
    variant = judges.variant_of(judge.variant)
    return prompts_about(variant, _criteria(rubric_version), item)


def _criteria(rubric_version: RubricVersion) -> list[Criterion]:
    return list(rubric_version.criteria.order_by("position"))


def prompts_about(variant: PromptVariant, criteria: Sequence[Criterion], item: Item) -> list[Prompt]:
    briefs = [criterion_brief(criterion, variant.instruction_language) for criterion in criteria]
    groups = [[brief] for brief in briefs] if variant.grouping == "single" else [briefs]
    try:
        return [_prompt(variant, group, item) for group in groups]
    except ValueError as error:
        raise Refused(str(error), code="prompt") from None


def _prompt(variant: PromptVariant, briefs: Sequence[CriterionBrief], item: Item) -> Prompt:
    messages = render(item=item_text(item), criteria=briefs, variant=variant)
    return Prompt([brief.name for brief in briefs], messages, response_schema(briefs, variant))
