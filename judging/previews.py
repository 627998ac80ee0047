"""What a judge would be asked, and about what that takes, before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any

from accounts.refusals import Refused
from annotation.models import Criterion, Dataset, Item, RubricVersion
from judging import judges, spending
from judging.briefs import criterion_brief, item_text
from judging.continuing import asked_about, continued
from judging.models import Judge, JudgeRun
from judging.prompts import CriterionBrief, Message, PromptVariant, render, response_schema

SAMPLE = 20
TOKENS_PER_SCORE = 12
TOKENS_PER_RATIONALE = 40


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a run comes to if nothing has to be asked twice. Tokens and cost are rough; no cost without a price.

    A run that `continues` an earlier one asks about so many `items` that are new since.
    """

    calls: int
    verdicts: int
    tokens_in: int
    tokens_out: int
    cost: Decimal | None
    items: int
    continues: JudgeRun | None


def prompts(*, judge: Judge, item: Item, rubric_version: RubricVersion) -> list[Prompt]:
    """Exactly what the judge would be sent about this item: one prompt, or one per criterion."""
    variant = judges.variant_of(judge.variant)
    return _prompts(variant, _criteria(rubric_version), item)


def forecast(*, judge: Judge, dataset: Dataset, rubric_version: RubricVersion, repeats: int = 1) -> Forecast:
    """Calls and verdicts exactly; tokens from the prompts about a few items spread over those it asks about."""
    variant, criteria = judges.variant_of(judge.variant), _criteria(rubric_version)
    after = continued(judge=judge, dataset=dataset, rubric_version=rubric_version, repeats=repeats)
    pks = list(asked_about(dataset=dataset, after=after).values_list("pk", flat=True))
    sample = Item.objects.filter(pk__in=pks[:: max(1, len(pks) // SAMPLE)][:SAMPLE]).select_related("dataset")
    asked = list(chain.from_iterable(_prompts(variant, criteria, item) for item in sample))
    per_item = len(criteria) if variant.grouping == "single" else 1
    calls, verdicts = len(pks) * per_item * repeats, len(pks) * len(criteria) * repeats
    into = calls * sum(prompt.tokens for prompt in asked) // max(1, len(asked))
    out = verdicts * (TOKENS_PER_SCORE + (TOKENS_PER_RATIONALE if variant.explanation else 0))
    return Forecast(
        calls=calls,
        verdicts=verdicts,
        tokens_in=into,
        tokens_out=out,
        cost=spending.cost(judge, into, out),
        items=len(pks),
        continues=after,
    )


def _criteria(rubric_version: RubricVersion) -> list[Criterion]:
    return list(rubric_version.criteria.order_by("position"))


def _prompts(variant: PromptVariant, criteria: Sequence[Criterion], item: Item) -> list[Prompt]:
    briefs = [criterion_brief(criterion, variant.instruction_language) for criterion in criteria]
    groups = [[brief] for brief in briefs] if variant.grouping == "single" else [briefs]
    try:
        return [_prompt(variant, group, item) for group in groups]
    except ValueError as error:
        raise Refused(str(error), code="prompt") from None


def _prompt(variant: PromptVariant, briefs: Sequence[CriterionBrief], item: Item) -> Prompt:
    messages = render(item=item_text(item), criteria=briefs, variant=variant)
    return Prompt([brief.name for brief in briefs], messages, response_schema(briefs, variant))
