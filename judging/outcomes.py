"""What one request came to: the attempt to store, and the readings of its reply or the time of the next try."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from judging import client
from judging.leases import Outcome
from judging.models import Attempt, Call, JudgeRun
from judging.prompts import CriterionBrief, Message, PromptVariant
from judging.replies import Reading, parse, storable

LONGEST_PAUSE = 60.0


def read(
    run: JudgeRun,
    call: Call,
    lease: UUID,
    messages: Sequence[Message],
    criteria: Sequence[CriterionBrief],
    variant: PromptVariant,
    answer: client.Answer,
) -> Outcome:
    """A reply, whatever it says: one reading per criterion."""
    readings = parse(
        answer.readable,
        criteria=criteria,
        variant=variant,
        finish_reason=answer.finish_reason,
        refusal=answer.refusal,
    )
    attempt = Attempt(
        call=call,
        outcome=Attempt.Outcome.REPLIED,
        request={"messages": _fit(messages), "dropped": list(answer.dropped)},
        reply=answer.raw,
        served_model=answer.served_model[:160],
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        cost=_cost(run, answer),
        latency=answer.latency,
    )
    return Outcome(call=call, lease=lease, attempt=attempt, readings=readings)


def later(call: Call, lease: UUID, messages: Sequence[Message], unavailable: client.Unavailable) -> Outcome:
    """No reply: twice as long a pause after each try, with jitter; never shorter than the endpoint asked for."""
    pause = min(LONGEST_PAUSE, 2.0**call.tries) * random.uniform(0.5, 1.0)  # noqa: S311 (spreads retries, no secret)
    retry_at = timezone.now() + timedelta(seconds=max(pause, unavailable.retry_after or 0))
    attempt = Attempt(
        call=call, outcome=Attempt.Outcome.UNAVAILABLE, request={"messages": _fit(messages)}, reason=unavailable.reason
    )
    return Outcome(call=call, lease=lease, attempt=attempt, retry_at=retry_at)


def refused(
    call: Call, lease: UUID, messages: Sequence[Message], criteria: Sequence[CriterionBrief], no: client.Refused
) -> Outcome:
    """The provider will not answer this question: recorded on every criterion, not asked again."""
    attempt = Attempt(
        call=call, outcome=Attempt.Outcome.REFUSED, request={"messages": _fit(messages)}, reason=no.reason
    )
    readings = [Reading(criterion=criterion.key, status="refused") for criterion in criteria]
    return Outcome(call=call, lease=lease, attempt=attempt, readings=readings)


def _fit(messages: Sequence[Message]) -> list[Message]:
    return [{name: storable(text) for name, text in message.items()} for message in messages]


def _cost(run: JudgeRun, answer: client.Answer) -> Decimal | None:
    price = settings.PROVIDERS[run.judge.provider].price(run.judge.model)
    if price is None or answer.tokens_in is None or answer.tokens_out is None:
        return None
    return (price[0] * answer.tokens_in + price[1] * answer.tokens_out) / 1_000_000
