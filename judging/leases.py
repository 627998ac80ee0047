"""Leases on calls: taken by compare-and-set, settled once by their holder, given back when a worker dies.

A call is waiting, leased, settled or failed; the lease says who sends it, and when it runs out the call waits again.
The first reply settles a call, whoever holds it by then: a reply in hand was paid for. One that comes to a settled call
is stored as an attempt and changes nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotation import bulk
from judging import runs
from judging.models import Attempt, Call, JudgeRun, Verdict
from judging.replies import Reading

LEASE = timedelta(seconds=40)
MAX_TRIES = 8
MOST_HOLDERS = 2  # workers at a run at once

ATTEMPT = (
    *("call_id", "number", "outcome", "request", "reply", "reason", "served_model"),
    *("tokens_in", "tokens_out", "cost", "latency", "at"),
)
VERDICT = (
    *("run_id", "item_id", "criterion_id", "repeat", "attempt_id"),
    *("status", "score", "applicable", "fractional", "coerced", "rationale"),
)


def take(
    *, run: JudgeRun, limit: int, lease: UUID | None = None, now: datetime | None = None
) -> tuple[UUID, list[Call]]:
    """Take up to ``limit`` waiting calls whose time has come, so that nobody else sends them; more under one ``lease``.

    Nothing is taken from a run that is not running, nor more than its budget allows.
    """
    token, now = lease or uuid4(), now or timezone.now()
    due = Q(not_before=None) | Q(not_before__lte=now)
    waiting = Call.objects.filter(due, run=run, state=Call.State.WAITING, run__state=JudgeRun.State.RUNNING)
    with transaction.atomic():
        allowed = runs.affordable(run)
        most = limit if allowed is None else min(limit, allowed)
        rows = waiting.order_by("pk").select_for_update(skip_locked=True, of=("self",))
        chosen = list(rows.values_list("pk", flat=True)[:most])
        Call.objects.filter(pk__in=chosen).update(state=Call.State.LEASED, lease=token, leased_until=now + LEASE)
    leased = Call.objects.filter(pk__in=chosen, lease=token).select_related("item__dataset").order_by("pk")
    return token, list(leased)


def extend(*, lease: UUID, now: datetime | None = None) -> int:
    """Keep a lease alive while its calls are in flight; returns how many it still holds."""
    held = Call.objects.filter(lease=lease, state=Call.State.LEASED)
    return held.update(leased_until=(now or timezone.now()) + LEASE)


def holders(run: JudgeRun) -> int:
    """How many workers hold calls of this run."""
    return Call.objects.filter(run=run, state=Call.State.LEASED).values("lease").distinct().count()


def next_due(run: JudgeRun) -> datetime | None:
    """When the next waiting call may be sent; None when none waits, or the run is not running."""
    waiting = Call.objects.filter(run=run, state=Call.State.WAITING, run__state=JudgeRun.State.RUNNING)
    return (
        waiting.order_by(F("not_before").asc(nulls_first=True))
        .values_list(Coalesce("not_before", timezone.now()), flat=True)
        .first()
    )


def release(*, lease: UUID) -> int:
    """Give back what was leased and not sent."""
    held = Call.objects.filter(lease=lease, state=Call.State.LEASED)
    return held.update(state=Call.State.WAITING, lease=None, leased_until=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one request came to: the attempt to store, and either the readings of its reply or when to try again."""

    call: Call
    lease: UUID
    attempt: Attempt
    readings: Sequence[Reading] = ()
    retry_at: datetime | None = None


def settle(*, outcomes: Sequence[Outcome]) -> int:
    """Store requests with what came of them, all in one transaction; returns how many calls that settled.

    An attempt is always stored: it was paid for. A reply settles its call unless another has; a failure moves its call
    only while it is held under the same lease. Settling the same outcomes again stores nothing twice, so a transaction
    whose end was lost with the connection may be run again.
    """
    with transaction.atomic():
        open_calls = _open_calls(outcomes)
        new = _numbered(outcomes)
        _insert_attempts(new)
        settled = [each for each in new if each.readings and each.call.pk in open_calls]
        again = [each for each in new if not each.readings and open_calls.get(each.call.pk) == each.lease]
        _insert_verdicts(settled)
        _move(settled, state=Call.State.SETTLED, not_before=None)
        _try_again(again)
        for run_pk in {each.call.run_id for each in (*settled, *again)}:
            runs.announce_finish(run_pk)
    return len(settled)


def _open_calls(outcomes: Sequence[Outcome]) -> dict[int, UUID | None]:
    """The calls that no reply has settled yet, locked until the end of the transaction, and the lease each is under."""
    rows = Call.objects.select_for_update().filter(pk__in=[outcome.call.pk for outcome in outcomes])
    return dict(rows.exclude(state=Call.State.SETTLED).order_by("pk").values_list("pk", "lease"))


def _numbered(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes not stored yet, each attempt numbered after those its call has already."""
    rows = list(Attempt.objects.filter(call__in=[each.call for each in outcomes]).values_list("call", "number", "at"))
    stored = {(call, at) for call, _number, at in rows}
    new = [each for each in outcomes if (each.call.pk, each.attempt.at) not in stored]
    last = Counter(call for call, _number, _at in rows)
    for outcome in new:
        last[outcome.call.pk] += 1
        outcome.attempt.number = last[outcome.call.pk]
    return new


def _insert_attempts(outcomes: Sequence[Outcome]) -> None:
    """Insert the attempts at the database's own speed, and learn their primary keys."""
    bulk.insert(Attempt, ATTEMPT, [_attempt_row(outcome.attempt) for outcome in outcomes])
    rows = Attempt.objects.filter(call__in=[outcome.call for outcome in outcomes]).values_list("call", "number", "pk")
    keys = {(call, number): pk for call, number, pk in rows}
    for outcome in outcomes:
        outcome.attempt.pk = keys[outcome.call.pk, outcome.attempt.number]


def _attempt_row(attempt: Attempt) -> tuple[Any, ...]:
    plain = {"request": json.dumps(attempt.request), "reply": json.dumps(attempt.reply)}
    return tuple(plain.get(field, getattr(attempt, field)) for field in ATTEMPT)


def _insert_verdicts(outcomes: Sequence[Outcome]) -> None:
    versions = JudgeRun.objects.filter(pk__in={outcome.call.run_id for outcome in outcomes})
    pairs = versions.values_list("pk", "rubric_version__criteria__key", "rubric_version__criteria")
    criteria = {(run, key): pk for run, key, pk in pairs}
    rows = [
        _verdict_row(outcome, reading, criteria[outcome.call.run_id, reading.criterion])
        for outcome in outcomes
        for reading in outcome.readings
    ]
    bulk.insert(Verdict, VERDICT, rows)


def _verdict_row(outcome: Outcome, reading: Reading, criterion_pk: int) -> tuple[Any, ...]:
    call, coerced = outcome.call, (reading.coerced or "")[:80]
    asked = call.run_id, call.item_id, criterion_pk, call.repeat, outcome.attempt.pk
    return *asked, reading.status, reading.score, reading.applicable, reading.fractional, coerced, reading.rationale


def _move(outcomes: Sequence[Outcome], *, state: str, not_before: datetime | None) -> None:
    pks = [outcome.call.pk for outcome in outcomes]
    Call.objects.filter(pk__in=pks).update(
        state=state, lease=None, leased_until=None, not_before=not_before, tries=F("tries") + 1
    )


def _try_again(outcomes: Sequence[Outcome]) -> None:
    """Calls without a reply wait until their time, or have failed when they were tried too often."""
    for outcome in outcomes:
        tired = outcome.call.tries + 1 >= MAX_TRIES
        _move([outcome], state=Call.State.FAILED if tired else Call.State.WAITING, not_before=outcome.retry_at)


def sweep(*, now: datetime | None = None) -> list[int]:
    """Give back the leases of workers that died; returns the runs that have due calls and nobody at work on them."""
    now = now or timezone.now()
    Call.objects.filter(state=Call.State.LEASED, leased_until__lt=now).update(
        state=Call.State.WAITING, lease=None, leased_until=None
    )
    due = Call.objects.filter(Q(not_before=None) | Q(not_before__lte=now), run=OuterRef("pk"), state=Call.State.WAITING)
    busy = Call.objects.filter(run=OuterRef("pk"), state=Call.State.LEASED)
    idle = JudgeRun.objects.filter(Exists(due), ~Exists(busy), state=JudgeRun.State.RUNNING)
    return list(idle.order_by("pk").values_list("pk", flat=True))
