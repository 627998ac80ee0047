"""The judge of a simulated user's turns: a judge like any other, on a rubric like any other.

It sees the conversation so far, with the turn in question as the last one, exactly as a judge run shows that item. So
its verdicts can be compared with those of native speakers on the same pages, and a run about the stored turns
(`utterances.py`) finds its replies by their keys and pays nothing. A turn is accepted if every criterion is on the good
half of its scale; else the rationales of the others are what the user model is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from django.utils.translation import gettext as _

from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import rubrics
from annotation.blinding import lay_out
from annotation.models import RubricVersion
from annotation.readers import parse_rubric
from judging import judges
from judging.generation.messages import given_fields
from judging.generation.specs import Spec
from judging.generation.user_agent import without_stop
from judging.models import Judge
from judging.prompts import (
    CriterionBrief,
    ItemText,
    Message,
    PromptVariant,
    Turn,
    check,
    response_schema,
    system_message,
    user_message,
)
from judging.replies import Reading, parse
from judging.requests import criterion_brief

_RUBRIC: Final = Path(__file__).parent / "presets" / "utterance-rubric.yaml"
VERDICT_PARAMETERS: Final = {"temperature": 0.1, "max_tokens": 400}
"""The temperature is that of study S3. Its limit of 64 tokens would cut off a verdict with four rationales."""


def utterance_rubric(*, project: Project, actor: User | None = None) -> RubricVersion:
    """Our rubric for turns of users, published in the project. It is created there if the project does not have it."""
    parsed = parse_rubric(_RUBRIC.name, _RUBRIC.read_bytes())
    if parsed.document is None:  # our own file is invalid; a test checks that this does not happen
        raise ValueError("; ".join(parsed.problems.sentences()))
    version = rubrics.draft(project=project, document=parsed.document, actor=actor)
    if version.state == RubricVersion.State.DRAFT:
        rubrics.publish(version=version, actor=actor)
    return version


def declare_utterance_judge(
    *, project: Project, provider: str, model: str, name: str = "", actor: User | None = None
) -> Judge:
    """A judge that can judge turns of users while a conversation is held."""
    return judges.declare(
        project=project,
        name=name or f"{model} for turns of users"[:120],
        provider=provider,
        model=model,
        parameters=VERDICT_PARAMETERS,
        actor=actor,
    )


def utterance_turns(spec: Spec, turns: Sequence[Mapping[str, str]], utterance: str) -> list[dict[str, str]]:
    """The turns of the item that a judge, and native speakers, see: what was said, and the turn in question."""
    said = [{"speaker": turn["speaker"], "text": turn["text"]} for turn in turns]
    return [*said, {"speaker": spec.user_role, "text": without_stop(spec, utterance)}]


@dataclass(frozen=True, slots=True)
class UtteranceVerdict:
    """What the judge says of a turn: accepted or refused, or that its reply can't be read. ``feedback`` is for the user
    model; ``scores`` by criterion, None where one does not apply."""

    state: Literal["accepted", "refused", "unread"]
    feedback: str = ""
    scores: Mapping[str, float | None] = field(default_factory=dict)


def may_judge_utterances(variant: PromptVariant) -> bool:
    """Whether one call asks about all criteria, and depends on no other item and on no reply."""
    plain = variant.grouping == "compound" and not variant.repair and not variant.examples
    return plain and variant.candidate_order == "given"


class UtteranceJudge:
    """Writes the requests of a judge about turns of users, and reads its replies. Refused if one call of the judge does
    not ask about all criteria, or its requests depend on other items or on replies."""

    def __init__(self, judge: Judge, rubric_version: RubricVersion) -> None:
        self.judge, self.variant = judge, judges.variant_of(judge.variant)
        if not may_judge_utterances(self.variant):
            sentence = _(
                "The judge of user turns asks about all criteria in one call, without repairs, examples or swaps. "
                "Choose another judge."
            )
            raise Refused(sentence, code="invalid", fields={"utterance_judge": sentence})
        criteria = rubric_version.criteria.order_by("position")
        self.criteria: list[CriterionBrief] = [
            criterion_brief(criterion, self.variant.instruction_language) for criterion in criteria
        ]
        self.schema: dict[str, Any] = response_schema(self.criteria, self.variant)
        self.parameters: dict[str, Any] = dict(judge.parameters)

    def messages(
        self,
        spec: Spec,
        drawn: Mapping[str, str | int],
        *,
        language: str,
        turns: Sequence[Mapping[str, str]],
        utterance: str,
    ) -> list[Message]:
        """The request about a turn, as a judge run writes it about the stored item."""
        shown = lay_out(fields=given_fields(spec, drawn, language), turns=utterance_turns(spec, turns, utterance))
        said = tuple(Turn(turn["speaker"], turn["text"]) for turn in shown.turns)
        item = ItemText(turns=said, fields=shown.fields, language=language)
        return [{**self._rubric}, user_message(item, self.variant)]

    @cached_property
    def _rubric(self) -> Message:
        """The system message, which is the same about every turn."""
        check(self.criteria, self.variant)
        return system_message(self.criteria, self.variant)

    def reply_key(self, messages: Sequence[Message]) -> str:
        """The key by which a later judge run finds the reply and uses it again."""
        return judges.reply_key(self.judge, schema=self.schema, parameters=self.parameters, messages=list(messages))

    def read(
        self,
        reply: str,
        *,
        messages: Sequence[Message],
        language: str,
        finish_reason: str = "",
        refusal: str | None = None,
    ) -> UtteranceVerdict:
        """The verdict of a reply. Never raises on any text."""
        readings = parse(
            reply,
            criteria=self.criteria,
            variant=self.variant,
            finish_reason=finish_reason or None,
            refusal=refusal,
            material=messages[1]["content"],
            language=language,
        )
        if any(reading.status != "ok" for reading in readings):
            return UtteranceVerdict("unread")
        failed = [
            (brief, reading)
            for brief, reading in zip(self.criteria, readings, strict=True)
            if not _is_good(brief, reading)
        ]
        told = [f"{brief.name}: {reading.rationale.strip() or _no(brief)}" for brief, reading in failed]
        scores = {reading.criterion: reading.score if reading.applicable else None for reading in readings}
        return UtteranceVerdict("refused" if failed else "accepted", " ".join(told), scores)


def _is_good(brief: CriterionBrief, reading: Reading) -> bool:
    """Whether a score is on the good half of its scale; True also if the criterion does not apply or has no
    direction."""
    if not reading.applicable or reading.score is None or brief.direction == "none":
        return True
    share = (reading.score - brief.low) / (brief.high - brief.low)
    return (1 - share if brief.direction == "lower_is_better" else share) >= 0.5


def _no(brief: CriterionBrief) -> str:
    """The feedback if the judge gave no rationale: the question or definition of the criterion."""
    return brief.question or brief.definition or "not met"
