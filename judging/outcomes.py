"""The outcome of one request: the settled attempt, and the verdicts in its reply or the time of the next try.

What was paid is booked by the provider's own count of tokens. Where a request may have cost something and nobody knows
how much (a reply without a count, a body that can't be read, a reply that did not come in time), it is booked at its
worst case and marked as estimated. An error status costs nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from judging import client, spending
from judging.leases import CallOutcome
from judging.models import Attempt, Judge
from judging.prompts import PromptVariant
from judging.questions import Question
from judging.replies import Reading, parse

LONGEST_PAUSE = 60.0
LONGEST_WAIT = 600.0  # seconds that a run waits when an endpoint asks for it; for longer it pauses
MOST_TOKENS = 2**31 - 1  # what the column holds; a provider that counts more miscounts


def read(
    question: Question, *, lease: UUID, judge: Judge, variant: PromptVariant, answer: client.ProviderAnswer
) -> CallOutcome:
    """A reply, whatever it says: one reading per criterion."""
    into, out = _counted(answer.tokens_in), _counted(answer.tokens_out)
    counted = into is not None and out is not None
    attempt = _settled(
        question,
        Attempt.Outcome.REPLIED,
        reply=answer.raw,
        served_model=answer.served_model[:160],
        tokens_in=into,
        tokens_out=out,
        cost=spending.cost(judge, into, out) if into is not None and out is not None else question.worst_case,
        estimated=not counted and question.worst_case is not None,
        latency=answer.latency,
    )
    readings = parse(
        answer.readable,
        criteria=question.criteria,
        variant=variant,
        finish_reason=answer.finish_reason,
        refusal=answer.refusal,
        material=question.messages[-1]["content"],
    )
    return CallOutcome(question=question, lease=lease, attempt=attempt, readings=readings, dropped=answer.dropped)


def later(question: Question, unavailable: client.ProviderUnavailable, *, lease: UUID) -> CallOutcome:
    """No reply: twice as long a pause after each try, with jitter; never shorter than the endpoint asked for."""
    pause = min(LONGEST_PAUSE, 2.0**question.call.tries) * random.uniform(0.5, 1.0)
    retry_at = timezone.now() + timedelta(seconds=max(pause, unavailable.retry_after or 0))
    maybe_paid = unavailable.maybe_paid
    attempt = _settled(
        question,
        Attempt.Outcome.UNAVAILABLE,
        reason=unavailable.reason,
        reply={"body": unavailable.body} if unavailable.body else {},
        cost=question.worst_case if maybe_paid else _nothing(question),
        estimated=maybe_paid and question.worst_case is not None,
    )
    return CallOutcome(question=question, lease=lease, attempt=attempt, retry_at=retry_at)


def refused_outcome(question: Question, no: client.ProviderRefused, *, lease: UUID) -> CallOutcome:
    """The provider will not answer this question: recorded on every criterion, not asked again.

    Where it will answer none, the call waits for the run to be resumed.
    """
    attempt = _settled(question, Attempt.Outcome.REFUSED, reason=no.reason, cost=_nothing(question))
    readings = [Reading(criterion=criterion.key, status="refused") for criterion in question.criteria]
    return CallOutcome(question=question, lease=lease, attempt=attempt, readings=[] if no.fatal else readings)


def unstorable(outcome: CallOutcome, fault: Exception) -> CallOutcome:
    """What is left of an outcome that the database refuses: what was paid for it, and why it says nothing."""
    reason = f"This could not be stored: {fault!r}"[:400]
    kept, paid = outcome.attempt, {"cost": outcome.attempt.cost, "estimated": outcome.attempt.estimated}
    attempt = Attempt(pk=kept.pk, call=outcome.call, outcome=kept.outcome, reason=reason, **paid)
    readings = [Reading(criterion=reading.criterion, status="error") for reading in outcome.readings]
    return replace(outcome, attempt=attempt, readings=readings, dropped=())


def _settled(question: Question, outcome: Attempt.Outcome, **came: Any) -> Attempt:
    return Attempt(pk=question.attempt.pk, call=question.call, outcome=outcome, **came)


def _nothing(question: Question) -> Any:
    """What an error costs: nothing, where the price is known at all."""
    return None if question.worst_case is None else 0


def outcome_in_words(reply: Mapping[str, Any]) -> str:
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
