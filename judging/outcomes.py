"""What one request came to: the attempt to store, and the readings of its reply or the time of the next try."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.utils import timezone

from judging import client, judges
from judging.leases import Outcome
from judging.models import Attempt, Call, Judge
from judging.prompts import CriterionBrief, Message, PromptVariant
from judging.replies import Reading, parse, storable

LONGEST_PAUSE = 60.0
MOST_TOKENS = 2**31 - 1  # what the column holds; a provider that counts more miscounts
MOST_COST = Decimal(9_999)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request: the call it is for, the lease it is sent under, and what is sent."""

    call: Call
    lease: UUID
    criteria: Sequence[CriterionBrief]
    messages: Sequence[Message]
    parameters: Mapping[str, Any]

    def attempt(self, outcome: Attempt.Outcome, *, dropped: Sequence[str] = (), **came: Any) -> Attempt:
        """The attempt to store: the request as it was sent, and what came of it."""
        messages = [{name: storable(text) for name, text in message.items()} for message in self.messages]
        request = {"messages": messages, "parameters": dict(self.parameters), "dropped": list(dropped)}
        return Attempt(call=self.call, outcome=outcome, request=request, **came)

    def outcome(self, attempt: Attempt, **then: Any) -> Outcome:
        """This question's outcome: an attempt and what follows from it."""
        return Outcome(call=self.call, lease=self.lease, attempt=attempt, **then)


def read(question: Question, *, judge: Judge, variant: PromptVariant, answer: client.Answer) -> Outcome:
    """A reply, whatever it says: one reading per criterion."""
    attempt = question.attempt(
        Attempt.Outcome.REPLIED,
        dropped=answer.dropped,
        reply=answer.raw,
        served_model=answer.served_model[:160],
        tokens_in=_counted(answer.tokens_in),
        tokens_out=_counted(answer.tokens_out),
        cost=_cost(judge, answer),
        latency=answer.latency,
    )
    readings = parse(
        answer.readable,
        criteria=question.criteria,
        variant=variant,
        finish_reason=answer.finish_reason,
        refusal=answer.refusal,
    )
    return question.outcome(attempt, readings=readings)


def later(question: Question, unavailable: client.Unavailable) -> Outcome:
    """No reply: twice as long a pause after each try, with jitter; never shorter than the endpoint asked for."""
    pause = min(LONGEST_PAUSE, 2.0**question.call.tries) * random.uniform(0.5, 1.0)
    retry_at = timezone.now() + timedelta(seconds=max(pause, unavailable.retry_after or 0))
    attempt = question.attempt(Attempt.Outcome.UNAVAILABLE, reason=unavailable.reason)
    return question.outcome(attempt, retry_at=retry_at)


def refused(question: Question, no: client.Refused) -> Outcome:
    """The provider will not answer this question: recorded on every criterion, not asked again."""
    attempt = question.attempt(Attempt.Outcome.REFUSED, reason=no.reason)
    readings = [Reading(criterion=criterion.key, status="refused") for criterion in question.criteria]
    return question.outcome(attempt, readings=readings)


def unstorable(outcome: Outcome, fault: Exception) -> Outcome:
    """What is left of an outcome that the database refuses: that it was paid for, and why it says nothing."""
    reason = f"This could not be stored: {fault!r}"[:400]
    attempt = Attempt(call=outcome.call, outcome=outcome.attempt.outcome, reason=reason)
    readings = [Reading(criterion=each.criterion, status="error") for each in outcome.readings]
    return replace(outcome, attempt=attempt, readings=readings)


def said(reply: Mapping[str, Any]) -> str:
    """A stored reply for people to read: what was said, else the refusal or reasoning, else how it ended."""
    try:
        choice = reply["choices"][0]
        texts = [choice["message"].get(part) for part in ("content", "refusal", "reasoning_content", "reasoning")]
        ended = f"({choice.get('finish_reason')})"
    except (LookupError, TypeError, AttributeError):
        return json.dumps(reply, ensure_ascii=False, indent=2) if reply else ""
    return next((text for text in texts if isinstance(text, str) and text.strip()), ended)


def _counted(tokens: int | None) -> int | None:
    return tokens if tokens is not None and tokens <= MOST_TOKENS else None


def _cost(judge: Judge, answer: client.Answer) -> Decimal | None:
    price, into, out = judges.price(judge), _counted(answer.tokens_in), _counted(answer.tokens_out)
    if price is None or into is None or out is None:
        return None
    return min(MOST_COST, (price[0] * into + price[1] * out) / 1_000_000)
