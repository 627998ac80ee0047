"""What a run asks: the messages, schema and parameters of each of its calls, and what such a request costs at worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from accounts.inputs import storable
from judging import judges, spending
from judging.briefs import criterion_brief, item_text
from judging.models import Attempt, Call, JudgeRun
from judging.prompts import CriterionBrief, Message, PromptVariant, render, response_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request: the call it is for, what is sent, and the attempt under which it is booked."""

    call: Call
    criteria: Sequence[CriterionBrief]
    messages: Sequence[Message]
    schema: dict[str, Any]
    parameters: dict[str, Any]
    worst_case: Decimal | None
    attempt: Attempt = field(compare=False)

    def request(self, *, dropped: Sequence[str] = ()) -> dict[str, Any]:
        """The request as it is stored; ``dropped`` names what the model would not take."""
        messages = [{name: storable(text) for name, text in message.items()} for message in self.messages]
        return {"messages": messages, "parameters": dict(self.parameters), "dropped": list(dropped)}


class QuestionWriter:
    """Writes the questions of one run."""

    def __init__(self, run: JudgeRun) -> None:
        self.run = run
        self.variant: PromptVariant = judges.variant_of(run.judge.variant)
        self._schemas: dict[int | None, dict[str, Any]] = {}

    @cached_property
    def _criteria(self) -> dict[int, CriterionBrief]:
        language = self.variant.instruction_language
        return {
            criterion.pk: criterion_brief(criterion, language) for criterion in self.run.rubric_version.criteria.all()
        }

    def write(self, call: Call) -> Question:
        """The question of one call, its item and the item's dataset at hand."""
        criteria = [self._criteria[call.criterion_id]] if call.criterion_id else list(self._criteria.values())
        if call.criterion_id not in self._schemas:
            self._schemas[call.criterion_id] = response_schema(criteria, self.variant)
        messages = render(item=item_text(call.item), criteria=criteria, variant=self.variant)
        sent: dict[str, Any] = {
            "schema": self._schemas[call.criterion_id],
            "parameters": self._parameters(call),
            "messages": messages,
        }
        worst = spending.worst_case(self.run.judge, **sent)
        return Question(
            call=call, criteria=criteria, worst_case=worst, attempt=Attempt(call=call, reserved=worst), **sent
        )

    def _parameters(self, call: Call) -> dict[str, Any]:
        """The judge's parameters; a declared seed moves on with the repeat: repeats differ and can be had again."""
        parameters = dict(self.run.judge.parameters)
        if isinstance(parameters.get("seed"), int):
            parameters["seed"] += call.repeat - 1
        return parameters
