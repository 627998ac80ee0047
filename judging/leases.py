"""Leases on calls: taken by compare-and-set, settled once by their holder, given back when a worker dies.

A call is waiting, leased, settled or failed; the lease says who may settle it, and when it runs out the call waits
again. A reply that comes after its lease was lost is stored as an attempt, for it was paid for, and settles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotation.models import Criterion
from judging.models import Attempt, Call, JudgeRun, Verdict
from judging.replies import Reading

LEASE = timedelta(seconds=40)
MAX_TRIES = 8


def take(
    *, run: JudgeRun, limit: int, seconds: float | None = None, now: datetime | None = None
) -> tuple[UUID, list[Call]]:
    """Take up to ``limit`` waiting calls whose time has come, so that nobody else sends them."""
    token, now = uuid4(), now or timezone.now()
    until = now + (LEASE if seconds is None else timedelta(seconds=seconds))
    due = Q(not_before=None) | Q(not_before__lte=now)
    with transaction.atomic():
        waiting = Call.objects.filter(due, run=run, state=Call.State.WAITING, run__state=JudgeRun.State.RUNNING)
        chosen = list(
            waiting.order_by("pk")
            .select_for_update(skip_locked=True, of=("self",))
            .values_list("pk", flat=True)[:limit]
        )
        Call.objects.filter(pk__in=chosen, state=Call.State.WAITING).update(
            state=Call.State.LEASED, lease=token, leased_until=until
        )
    leased = Call.objects.filter(lease=token).select_related("item__dataset", "criterion").order_by("pk")
    return token, list(leased)


def extend(*, lease: UUID, now: datetime | None = None) -> int:
    """Keep a lease alive while its calls are in flight; returns how many it still holds."""
    held = Call.objects.filter(lease=lease, state=Call.State.LEASED)
    return held.update(leased_until=(now or timezone.now()) + LEASE)


def next_due(run: JudgeRun) -> datetime | None:
    """When the next waiting call may be sent; None when none waits."""
    waiting = Call.objects.filter(run=run, state=Call.State.WAITING)
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

    An attempt is always stored: it was paid for. Verdicts are stored by the holder of the lease only, so that a call
    that was taken up again by somebody else is still settled once.
    """
    with transaction.atomic():
        held = _held(outcomes)
        _number(outcomes)
        Attempt.objects.bulk_create([outcome.attempt for outcome in outcomes])
        settled = [outcome for outcome in outcomes if outcome.readings and outcome.call.pk in held]
        again = [outcome for outcome in outcomes if not outcome.readings and outcome.call.pk in held]
        Verdict.objects.bulk_create([verdict for outcome in settled for verdict in _verdicts(outcome)])
        _move(settled, state=Call.State.SETTLED, not_before=None)
        _try_again(again)
    return len(settled)


def _held(outcomes: Sequence[Outcome]) -> set[int]:
    """The calls still under the lease they were sent under, locked until the end of the transaction."""
    mine = {outcome.call.pk: outcome.lease for outcome in outcomes}
    rows = Call.objects.select_for_update().filter(pk__in=mine, state=Call.State.LEASED).order_by("pk")
    return {pk for pk, token in rows.values_list("pk", "lease") if mine[pk] == token}


def _number(outcomes: Sequence[Outcome]) -> None:
    """Number each attempt after those its call has already."""
    rows = Attempt.objects.filter(call__in=[outcome.call for outcome in outcomes]).values("call")
    before = {row["call"]: row["last"] for row in rows.annotate(last=Max("number"))}
    for outcome in outcomes:
        before[outcome.call.pk] = outcome.attempt.number = before.get(outcome.call.pk, 0) + 1


def _verdicts(outcome: Outcome) -> Iterator[Verdict]:
    criteria = {criterion.key: criterion for criterion in _asked(outcome.call)}
    for reading in outcome.readings:
        yield Verdict(
            run_id=outcome.call.run_id,
            item_id=outcome.call.item_id,
            criterion=criteria[reading.criterion],
            repeat=outcome.call.repeat,
            status=reading.status,
            score=reading.score,
            applicable=reading.applicable,
            fractional=reading.fractional,
            coerced=(reading.coerced or "")[:80],
            rationale=reading.rationale,
            attempt=outcome.attempt,
        )


def _asked(call: Call) -> list[Criterion]:
    return [call.criterion] if call.criterion else list(call.run.rubric_version.criteria.all())


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
