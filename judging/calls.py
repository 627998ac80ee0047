"""The calls of a run: leased, marked as sent, settled by the outcome of their request; freed when a worker dies.

A call is waiting, leased, settled or failed. The lease says which work session sends the call; when the lease expires,
the call waits again.

If another run of the project has a reply to the same request, the reply is reused and nothing is sent, unless the run
pays again or the call was answered before. If another run of the same design has the same request in flight, the call
waits for its reply. Leasing a call writes an attempt in the same transaction, which reserves the worst case of the
request; the attempt is marked as sent before the request is sent, and settled by its outcome. The first reply settles a
call, even if another work session has the lease then, because the reply was paid for. A later reply to a settled call
is stored and changes nothing else.

The cost is booked by the provider's own count of tokens, at the price of the model that the reply names
(judging/asking/bills.py). If a request may have cost something and the amount is unknown (the reply has no token count
or an impossible count, the body can't be read, or the reply did not arrive in time), it is booked at its worst case and
marked as estimated. An error status costs nothing. A run starts with two calls in flight, and again when it is resumed;
the first bill that is larger than declared stops the run and the other runs of the project that ask the same model.

A request that is lost with its worker does not count as a failed try of the provider: MOST_LOSSES limits such losses.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.refusals import Refused
from annotation import bulk
from judging import judges, known_replies, runs, spending
from judging.asking import bills, budgets, client
from judging.asking import holders as holders_here
from judging.asking.bills import Bill
from judging.models import Attempt, Call, JudgeRun, Verdict
from judging.probabilities import weighed
from judging.prompts import PromptVariant
from judging.replies import NoScore, Reading, Status, parse
from judging.requests import LOOK_AHEAD, NOTHING_CHANGED, CallRequest, CallRequestWriter, in_order_of_item

LEASE = timedelta(seconds=30)
MOST_HOLDERS = 2  # workers on one run at the same time
HOLDERS = "holders"  # the folder, below the data directory, with the lock files of this machine's work sessions
FIRST_PAUSE = 1.0  # seconds at most after the first try without a reply; each further pause is twice as long
LONGEST_PAUSE = 60.0
LONGEST_WAIT = 600.0  # seconds that a run waits when an endpoint asks for it; for longer it pauses
MOST_LOSSES = 20  # workers that a call is lost with before it has failed
MOST_UNREADABLE = 3  # bodies of one call that nobody could read, and may have been paid, before it has failed

ATTEMPT = (
    *("id", "call_id", "number", "outcome", "request", "reply", "answer", "reason", "served_model", "reserved", "at"),
    *("reply_key", "reused_from_id", "cost"),
)
SETTLED = (
    *("outcome", "reply", "answer", "reason", "served_model", "tokens_in", "tokens_out"),
    *("cost", "estimated", "doubt", "latency"),
)
VERDICT = (
    *("run_id", "item_id", "criterion_id", "repeat", "change", "attempt_id"),
    *("status", "score", "applicable", "fractional", "coerced", "rationale", "expected", "confidence", "reason"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenCalls:
    """The leased calls, and why no more were leased: a cap is spent, or requests in flight may use up the rest of it.

    ``reused`` is the number of further calls that are settled, or wait for the reply to another run of the design.
    """

    lease: UUID
    call_requests: list[CallRequest] = field(default_factory=list)
    reused: int = 0
    held_up: bool = False
    spent: str = ""


def take_calls(
    *,
    run: JudgeRun,
    limit: int,
    lease: UUID | None = None,
    writer: CallRequestWriter | None = None,
    now: datetime | None = None,
) -> TakenCalls:
    """Lease up to ``limit`` due calls, and reserve what they may cost; with ``lease``, add them to this lease.

    Leases nothing if the run is not running or MOST_HOLDERS other workers work on it, and never more than its caps
    allow. Refuses a provider that the project may not use (any more). If the request of the first call can't be
    written, its exception is raised.
    """
    token, now = lease or uuid4(), now or timezone.now()
    with transaction.atomic():
        locked = JudgeRun.objects.select_for_update(of=("self",), no_key=True)
        run = locked.select_related("judge", "project", "rubric_version").get(pk=run.pk)
        if run.state != JudgeRun.State.RUNNING or holders(run, besides=token, now=now) >= MOST_HOLDERS:
            return TakenCalls(lease=token)
        due = Q(not_before=None) | Q(not_before__lte=now)
        waiting = run.calls.filter(due, state=Call.State.WAITING).order_by("pk")
        rows = waiting.select_for_update(skip_locked=True, of=("self",)).select_related("item", "repairs")
        writer = writer or CallRequestWriter(run)
        if writer.can_reuse is None:
            writer.can_reuse = known_replies.may_be_known(run)
        written = _written(writer, rows[: max(limit, writer.looks_ahead) if writer.can_reuse else limit])
        reused = _reuse_replies(run, writer, written, now) if writer.can_reuse else frozenset()
        writer.looks_ahead = LOOK_AHEAD if reused else 0  # without known replies, write only requests to lease
        unanswered = [call_request for call_request in written if call_request.call.pk not in reused]
        taken = _affordable(run, token, unanswered[:limit], now)
        _lease(taken, now)
    return replace(taken, reused=len(reused))


def _reuse_replies(
    run: JudgeRun, writer: CallRequestWriter, call_requests: Sequence[CallRequest], now: datetime
) -> frozenset[int]:
    """Settle the calls to whose request the project has a reply; calls whose request another run of the design has in
    flight must wait. Returns the keys of all these calls."""
    untried = known_replies.untried(call_requests)
    known_replies.lock_design(run)
    asked = known_replies.in_flight(run, untried, now)
    sources = known_replies.replies_to(run, untried)
    unknown = [call_request for call_request in untried if call_request.call.pk not in sources]
    waiting = known_replies.let_wait(unknown, asked, now)
    numbers = _last_numbers([*sources])
    outcomes = [
        _reused_outcome(call_request, sources[pk], numbers.get(pk, 0) + 1, writer.variant, now)
        for call_request in untried
        if (pk := call_request.call.pk) in sources
    ]
    for outcome, pk in zip(outcomes, bulk.reserve_keys(Attempt, len(outcomes)), strict=True):
        outcome.attempt.pk = pk
    bulk.insert(Attempt, ATTEMPT, [_attempt_row(outcome.call_request, outcome.attempt) for outcome in outcomes])
    _settle(outcomes, repeated_calls=[outcome.call.pk for outcome in outcomes if outcome.call.repairs_id])
    if outcomes:
        runs.announce_finish(run.pk)
    return waiting.union(sources)


def _last_numbers(call_pks: Sequence[int]) -> dict[int, int]:
    return dict(Attempt.objects.filter(call__in=call_pks).order_by().values_list("call").annotate(Max("number")))


def _reused_outcome(
    call_request: CallRequest, source: Attempt, number: int, variant: PromptVariant, now: datetime
) -> CallOutcome:
    """The outcome of a call that reuses a known reply: nothing is sent, so it costs and reserves nothing."""
    answer = client.stored_answer(source.reply, source.answer)
    attempt = Attempt(
        call=call_request.call,
        number=number,
        outcome=Attempt.Outcome.REUSED,
        reply=source.reply,
        answer=source.answer,
        served_model=source.served_model,
        cost=_nothing(call_request),
        reply_key=source.reply_key,
        reused_from=source,
        at=now,
    )
    readings = _readings(call_request, answer, variant)
    repair = _is_worth_repairing(call_request, readings, answer, variant)
    return CallOutcome(call_request=call_request, lease=uuid4(), attempt=attempt, readings=readings, repair=repair)


def _written(writer: CallRequestWriter, calls: Iterable[Call]) -> list[CallRequest]:
    """Write the requests of the calls, and stop before the first request that can't be written. If this is the first
    call, its exception is raised.

    A call whose change can't be made any more fails, and the next calls follow.
    """
    call_requests: list[CallRequest] = []
    unchanged: list[Call] = []
    for call in calls:
        if call.item.dataset_id == writer.run.dataset_id:
            call.item.dataset = writer.dataset
        try:
            call_requests.append(writer.write(call))
        except Exception as fault:
            if isinstance(fault, Refused) and fault.code == NOTHING_CHANGED:
                unchanged.append(call)
                continue
            if not call_requests:
                raise
            break
    if unchanged:
        given_up = Call.objects.filter(pk__in=[call.pk for call in unchanged])
        given_up.update(state=Call.State.FAILED, tries=F("tries") + 1)
        runs.announce_finish(writer.run.pk)
    return call_requests


def _affordable(run: JudgeRun, lease: UUID, call_requests: list[CallRequest], now: datetime) -> TakenCalls:
    """As many of the requests, in order, as all caps and the bills of the run so far allow."""
    caps = spending.caps(run, now=now)
    is_paid = spending.costs(run)
    if not call_requests or not (caps or (is_paid and not run.by_batch)):
        return TakenCalls(lease=lease, call_requests=call_requests)
    if caps and any(call_request.worst_case is None for call_request in call_requests):
        spending.refuse_cap(run.judge, budget=spending.budget_of(run), run=run)
    window = len(call_requests)
    if is_paid:
        in_flight = Call.objects.filter(run=run, state=Call.State.LEASED, leased_until__gt=now).count()
        window = max(0, spending.most_in_flight(run) - in_flight)
    chosen: list[CallRequest] = []
    reserved = Decimal(0)
    for call_request in call_requests[:window]:
        worst = call_request.worst_case or Decimal(0)
        if not all(cap.allows(worst, more=len(chosen), reserved=reserved) for cap in caps):
            break
        reserved += worst
        chosen.append(call_request)
    if chosen or not call_requests:
        return TakenCalls(lease=lease, call_requests=chosen, held_up=len(chosen) < len(call_requests))
    next_one = call_requests[0].worst_case or Decimal(0)
    spent = next(filter(None, (cap.is_spent(next_one) for cap in caps)), "")
    return TakenCalls(lease=lease, held_up=True, spent=spent)


def _lease(taken: TakenCalls, now: datetime) -> None:
    """Lease the calls and write an attempt for each, not sent yet."""
    calls = [call_request.call for call_request in taken.call_requests]
    if not calls:
        return
    keys = [call.pk for call in calls]
    until = now + LEASE
    Call.objects.filter(pk__in=keys).update(state=Call.State.LEASED, lease=taken.lease, leased_until=until)
    numbers = _last_numbers(keys)
    for call_request, pk in zip(taken.call_requests, bulk.reserve_keys(Attempt, len(keys)), strict=True):
        call_request.call.lease, call_request.call.leased_until, call_request.call.state = (
            taken.lease,
            until,
            Call.State.LEASED,
        )
        attempt = call_request.attempt
        attempt.pk, attempt.number, attempt.at = pk, numbers.get(call_request.call.pk, 0) + 1, now
        attempt.outcome = Attempt.Outcome.PENDING
    bulk.insert(
        Attempt, ATTEMPT, [_attempt_row(call_request, call_request.attempt) for call_request in taken.call_requests]
    )


def _attempt_row(call_request: CallRequest, attempt: Attempt) -> tuple[Any, ...]:
    plain: dict[str, str | None] = {"request": bulk.json_text(call_request.request())}
    plain["reply"] = bulk.json_text(attempt.reply)
    plain["answer"] = None if attempt.answer is None else bulk.json_text(attempt.answer)
    plain["outcome"] = Attempt.Outcome(attempt.outcome).value
    return tuple(plain[name] if name in plain else getattr(attempt, name) for name in ATTEMPT)


def mark_sent(*, lease: UUID, attempts: Sequence[int]) -> set[int]:
    """Mark these requests as sent. Returns the attempts that may be sent: their run is running, and their calls are
    still under the lease.

    This is one statement, because every request waits for it. If a call is released, its attempt is deleted first.
    """
    pending = {"pk__in": attempts, "call__lease": lease, "call__run__state": JudgeRun.State.RUNNING}
    mine = Attempt.objects.filter(**pending)
    if mine.filter(outcome=Attempt.Outcome.PENDING).update(outcome=Attempt.Outcome.SENT) == len(attempts):
        return set(attempts)
    return set(mine.filter(outcome=Attempt.Outcome.SENT).values_list("pk", flat=True))


def extend_leases(*, lease: UUID, now: datetime | None = None) -> int:
    """Extend a lease while its calls are in flight. Returns the number of calls that are still under it."""
    held = Call.objects.filter(lease=lease, state=Call.State.LEASED)
    return held.update(leased_until=(now or timezone.now()) + LEASE)


def holders(run: JudgeRun, *, besides: UUID | None = None, now: datetime | None = None) -> int:
    """How many workers have leased calls of this run; a worker with an expired lease counts as dead."""
    held = Call.objects.filter(run=run, state=Call.State.LEASED, leased_until__gt=now or timezone.now())
    return held.exclude(lease=besides).values("lease").distinct().count()


def next_due(run: JudgeRun) -> datetime | None:
    """When the next waiting call may be sent; None when none waits, or the run is not running."""
    waiting = Call.objects.filter(run=run, state=Call.State.WAITING, run__state=JudgeRun.State.RUNNING)
    return (
        waiting.order_by(F("not_before").asc(nulls_first=True))
        .values_list(Coalesce("not_before", timezone.now()), flat=True)
        .first()
    )


def release_calls(*, lease: UUID, calls: Sequence[Call] | None = None, unanswered: bool = False) -> int:
    """Release leased calls (only ``calls``, if given): unsent requests are deleted, sent ones without a reply are lost.

    A lost request stays booked at its worst case, and its call is tried again. If a worker died, this does not count as
    a failed try of the provider; if a batch ended without a result (``unanswered``), it does.
    """
    held = Call.objects.filter(lease=lease, state=Call.State.LEASED)
    held = held if calls is None else held.filter(pk__in=[call.pk for call in calls])
    return _free(held, unanswered=unanswered)


def _free(held: QuerySet[Call], *, unanswered: bool = False) -> int:
    with transaction.atomic():
        leased = list(held.select_for_update(of=("self",)).select_related("run__judge").order_by("pk"))
        keys = [call.pk for call in leased]
        its_open = Attempt.objects.filter(call__in=keys)
        its_open.filter(outcome=Attempt.Outcome.PENDING).delete()
        lost = set(its_open.filter(outcome=Attempt.Outcome.SENT).values_list("call", flat=True))
        its_open.filter(outcome=Attempt.Outcome.SENT).update(
            outcome=Attempt.Outcome.LOST, cost=F("reserved"), estimated=True, reason="No reply was received."
        )
        counted, free = ("tries" if unanswered else "losses"), {"lease": None, "leased_until": None}
        tired = [call.pk for call in leased if call.pk in lost and _is_tired(call, unanswered=unanswered)]
        Call.objects.filter(pk__in=lost).update(**{counted: F(counted) + 1})
        again = Call.objects.filter(pk__in=[key for key in keys if key not in tired])
        again.update(state=Call.State.WAITING, **free)
        given_up = Call.objects.filter(pk__in=tired)
        given_up.exclude(repairs=None).update(state=Call.State.SETTLED, **free)  # it has had a reply
        given_up.filter(repairs=None).update(state=Call.State.FAILED, **free)
        for run_pk in {call.run_id for call in leased if call.pk in tired}:
            runs.announce_finish(run_pk)
    return len(leased)


def _is_tired(call: Call, *, unanswered: bool) -> bool:
    """Whether a call that is lost once more has reached its limit and is not tried again."""
    if unanswered:
        return call.tries + 1 >= judges.pace(call.run.judge).tries
    return call.losses + 1 >= MOST_LOSSES


# --- what one request came to -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """The outcome of one request: the settled attempt, and the readings of its reply or the time of the next try.

    Without readings and time, the provider answers no requests now, and the call waits as if it had not been tried.
    ``repair``: the reply can't be read, and the call waits to ask once more. ``stops`` is the reason why this model
    must not be asked any more.
    """

    call_request: CallRequest
    lease: UUID
    attempt: Attempt
    readings: Sequence[Reading] = ()
    retry_at: datetime | None = None
    dropped: Sequence[str] = ()
    repair: bool = False
    stops: str = ""

    @property
    def call(self) -> Call:
        """The call that the request was for."""
        return self.call_request.call


def answered_outcome(
    call_request: CallRequest, *, lease: UUID, variant: PromptVariant, answer: client.ProviderAnswer
) -> CallOutcome:
    """The outcome of a request with a reply, readable or not: it has one reading per criterion."""
    bill = bills.bill_reply(call_request, answer)
    attempt = _finished_attempt(
        call_request,
        Attempt.Outcome.REPLIED,
        bill,
        reply=answer.raw,
        answer=answer.stored,
        served_model=answer.served_model[:160],
        tokens_in=bill.tokens_in,
        tokens_out=bill.tokens_out,
        latency=answer.latency,
        reason=bill.stops[:400],
    )
    readings = _readings(call_request, answer, variant)
    return CallOutcome(
        call_request=call_request,
        lease=lease,
        attempt=attempt,
        readings=readings,
        dropped=answer.dropped,
        repair=_is_worth_repairing(call_request, readings, answer, variant),
        stops=bill.stops,
    )


def _is_worth_repairing(
    call_request: CallRequest, readings: Sequence[Reading], answer: client.ProviderAnswer, variant: PromptVariant
) -> bool:
    """Whether to show the model its reply and ask once more: the reply has text, but a criterion can't be read."""
    unread = any(reading.status == "unparsed" for reading in readings)
    return variant.repair and unread and call_request.call.repairs_id is None and bool(answer.readable.strip())


def _readings(call_request: CallRequest, answer: client.ProviderAnswer, variant: PromptVariant) -> list[Reading]:
    readings = parse(
        answer.readable,
        criteria=call_request.criteria,
        variant=variant,
        finish_reason=answer.finish_reason,
        refusal=answer.refusal,
        material=call_request.messages[1]["content"],
        language=call_request.call.item.language,
    )
    readings = weighed(readings, tokens=answer.tokens, criteria=call_request.criteria)
    if call_request.is_swapped:
        readings = [in_order_of_item(reading) for reading in readings]
    if call_request.call.repairs_id is None:
        return readings
    return [replace(reading, coerced=",".join(filter(None, (reading.coerced, "repaired")))) for reading in readings]


def unavailable_outcome(
    call_request: CallRequest, unavailable: client.ProviderUnavailable, *, lease: UUID
) -> CallOutcome:
    """The outcome of a request without a reply. The pause doubles after each try, with jitter, and is never shorter
    than the endpoint asked for."""
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**call_request.call.tries) * random.uniform(0.5, 1.0)
    retry_at = timezone.now() + timedelta(seconds=max(pause, unavailable.retry_after or 0))
    bill = bills.bill_failure(call_request, unavailable)
    attempt = _finished_attempt(
        call_request,
        Attempt.Outcome.UNAVAILABLE,
        bill,
        reason=unavailable.reason,
        reply={"body": unavailable.body} if unavailable.body else {},
    )
    return CallOutcome(call_request=call_request, lease=lease, attempt=attempt, retry_at=retry_at, stops=bill.stops)


def refused_outcome(call_request: CallRequest, no: client.ProviderRefused, *, lease: UUID) -> CallOutcome:
    """The outcome of a request that the provider refused: the refusal is recorded on every criterion, and the request
    is not sent again.

    If the provider refuses all requests, the call waits until the run is resumed.
    """
    bill = bills.bill_failure(call_request, no)
    attempt = _finished_attempt(call_request, Attempt.Outcome.REFUSED, bill, reason=no.reason)
    status: Status = "unparsed" if call_request.call.repairs_id else "refused"
    why = NoScore("not_answered", "provider", no.reason)
    readings = [Reading(criterion=criterion.key, status=status, reason=why) for criterion in call_request.criteria]
    kept = [] if no.fatal else readings
    return CallOutcome(call_request=call_request, lease=lease, attempt=attempt, readings=kept, stops=bill.stops)


def unstorable_outcome(outcome: CallOutcome, fault: Exception) -> CallOutcome:
    """The replacement of an outcome that the database refuses: only its cost, and the reason why it has no score."""
    reason = f"This could not be stored: {fault!r}"[:400]
    kept, paid = outcome.attempt, {name: getattr(outcome.attempt, name) for name in ("cost", "estimated", "doubt")}
    attempt = Attempt(pk=kept.pk, call=outcome.call, outcome=kept.outcome, reason=reason, **paid)
    why = NoScore("not_stored", "provider", repr(fault))
    readings = [Reading(criterion=reading.criterion, status="error", reason=why) for reading in outcome.readings]
    return replace(outcome, attempt=attempt, readings=readings, dropped=())


def _finished_attempt(call_request: CallRequest, outcome: Attempt.Outcome, bill: Bill, **came: Any) -> Attempt:
    booked = {"cost": bill.cost, "estimated": bill.estimated, "doubt": bill.doubt}
    return Attempt(pk=call_request.attempt.pk, call=call_request.call, outcome=outcome, **booked, **came)


def _nothing(call_request: CallRequest) -> Any:
    """The cost of a reused reply: 0 if the price is known, else unknown."""
    return None if call_request.worst_case is None else 0


# --- storing ----------------------------------------------------------------------------------------------------------


def settle_call(*, outcomes: Sequence[CallOutcome]) -> int:
    """Store the outcomes of requests in one transaction. Returns how many calls were settled.

    An attempt is always settled, because it was paid for. A reply settles its call unless another reply has settled it;
    a failure changes its call only if the call is still under the same lease. If the same outcomes are stored again,
    nothing is stored twice, so the transaction can be repeated when the connection was lost before it was confirmed.
    """
    with transaction.atomic():
        open_calls = _open_calls(outcomes)
        new = _unsettled(outcomes)
        _settle_attempts(new)
        settled = [outcome for outcome in new if outcome.readings and outcome.call.pk in open_calls]
        again = [
            outcome for outcome in new if not outcome.readings and open_calls.get(outcome.call.pk) == outcome.lease
        ]
        repeated_calls = [
            outcome.call.pk
            for outcome in settled
            if outcome.call_request.attempt.number > 1 or open_calls[outcome.call.pk] != outcome.lease
        ]
        _settle(settled, repeated_calls=repeated_calls, tried=1)
        _try_again(again)
        for outcome in {outcome.call.run_id: outcome for outcome in new if outcome.stops}.values():
            asked = outcome.call_request
            project = asked.call.run.project_id
            budgets.stop_asking(project, provider=asked.provider, model=asked.model, reason=outcome.stops)
        for run_pk in {outcome.call.run_id for outcome in (*settled, *again)}:
            runs.announce_finish(run_pk)
    return len(settled)


def _open_calls(outcomes: Sequence[CallOutcome]) -> dict[int, UUID | None]:
    """The calls that no reply has settled yet, locked until the end of the transaction, and the lease each is under."""
    rows = Call.objects.select_for_update().filter(pk__in=[outcome.call.pk for outcome in outcomes])
    return dict(rows.exclude(state=Call.State.SETTLED).order_by("pk").values_list("pk", "lease"))


def _unsettled(outcomes: Sequence[CallOutcome]) -> list[CallOutcome]:
    """The outcomes that are not stored yet, including outcomes of requests that were counted as lost."""
    waited_for = Attempt.objects.filter(
        pk__in=[outcome.attempt.pk for outcome in outcomes], outcome__in=[Attempt.Outcome.SENT, Attempt.Outcome.LOST]
    )
    keys = set(waited_for.values_list("pk", flat=True))
    return [outcome for outcome in outcomes if outcome.attempt.pk in keys]


def _settle_attempts(outcomes: Sequence[CallOutcome]) -> None:
    bulk.update(Attempt, SETTLED, [_settled_row(outcome.attempt) for outcome in outcomes])
    for outcome in outcomes:
        if outcome.dropped:
            request = outcome.call_request.request(dropped=outcome.dropped)
            Attempt.objects.filter(pk=outcome.attempt.pk).update(request=request)


def _settled_row(attempt: Attempt) -> tuple[Any, ...]:
    plain = {"outcome": Attempt.Outcome(attempt.outcome).value}
    plain["cost"] = None if attempt.cost is None else str(attempt.cost)  # type: ignore[assignment]
    return attempt.pk, *(plain[name] if name in plain else getattr(attempt, name) for name in SETTLED)


def _settle(outcomes: Sequence[CallOutcome], *, repeated_calls: Sequence[int], tried: int = 0) -> None:
    """Store the readings of the replies; their calls are settled, or wait to ask once more."""
    _insert_verdicts(outcomes, kept=_kept_verdicts(repeated_calls))
    repaired = [outcome for outcome in outcomes if outcome.repair]
    read = [outcome for outcome in outcomes if not outcome.repair]
    _move(read, state=Call.State.SETTLED, not_before=None, tried=tried)
    _move(repaired, state=Call.State.WAITING, not_before=None, tried=tried)
    for outcome in repaired:
        Call.objects.filter(pk=outcome.call.pk).update(repairs=outcome.attempt.pk)


def _insert_verdicts(outcomes: Sequence[CallOutcome], *, kept: Collection[tuple[int, str]]) -> None:
    rows = [
        _verdict_row(outcome, reading, outcome.call_request.criterion_keys[reading.criterion])
        for outcome in outcomes
        for reading in outcome.readings
        if (outcome.call.pk, reading.criterion) not in kept
    ]
    bulk.insert(Verdict, VERDICT, rows)


def _kept_verdicts(repeated_calls: Sequence[int]) -> set[tuple[int, str]]:
    """The pairs of call and criterion, of calls that are asked again, whose score stays. Verdicts without a score are
    deleted."""
    if not repeated_calls:
        return set()
    earlier = Verdict.objects.filter(attempt__call__in=repeated_calls)
    earlier.exclude(status=Verdict.Status.OK).delete()
    return set(earlier.values_list("attempt__call", "criterion__key"))


def _verdict_row(outcome: CallOutcome, reading: Reading, criterion_pk: int) -> tuple[Any, ...]:
    call, coerced = outcome.call, (reading.coerced or "")[:80]
    identity = call.run_id, call.item_id, criterion_pk, call.repeat, call.change, outcome.attempt.pk
    read = reading.status, reading.score, reading.applicable, reading.fractional, coerced, reading.rationale
    reason = bulk.json_text(reading.reason.stored) if reading.reason else None
    return *identity, *read, reading.expected, reading.confidence, reason


def _move(outcomes: Sequence[CallOutcome], *, state: str, not_before: datetime | None, tried: int = 1) -> None:
    pks = [outcome.call.pk for outcome in outcomes]
    Call.objects.filter(pk__in=pks).update(
        state=state, lease=None, leased_until=None, not_before=not_before, tries=F("tries") + tried
    )


def _try_again(outcomes: Sequence[CallOutcome]) -> None:
    """Let calls without a reply wait for their next try; they fail after too many tries or unreadable bodies."""
    unreadable = [outcome.call.pk for outcome in outcomes if outcome.attempt.reply]
    bodies = Attempt.objects.filter(call__in=unreadable, outcome=Attempt.Outcome.UNAVAILABLE).exclude(reply={})
    counted = dict(bodies.values_list("call").annotate(Count("pk"))) if unreadable else {}
    for outcome in outcomes:
        if outcome.retry_at is None:
            _move([outcome], state=Call.State.WAITING, not_before=None, tried=0)
            continue
        tired = outcome.call.tries + 1 >= judges.pace(outcome.call.run.judge).tries
        tired = tired or counted.get(outcome.call.pk, 0) >= MOST_UNREADABLE
        given_up = Call.State.SETTLED if outcome.call.repairs_id else Call.State.FAILED  # it has had a reply
        _move([outcome], state=given_up if tired else Call.State.WAITING, not_before=outcome.retry_at)


# --- leases of workers that died --------------------------------------------------------------------------------------


def hold_lease(lease: UUID) -> AbstractContextManager[None]:
    """While the block runs, other processes of this machine can see that the owner of the lease is alive."""
    return holders_here.holding(settings.DATA_DIR / HOLDERS, lease)


def release_dead() -> int:
    """Release the leases of dead work sessions of this machine, without waiting for their end. Returns their number."""
    return holders_here.with_dead_leases(settings.DATA_DIR / HOLDERS, lambda lease: release_calls(lease=lease))


def sweep_leases(*, now: datetime | None = None) -> list[int]:
    """Release the leases of dead workers. Returns the runs that have due calls and no worker."""
    release_dead()
    now = now or timezone.now()
    _free(Call.objects.filter(state=Call.State.LEASED, leased_until__lt=now))
    return list(_unattended(now).order_by("pk").values_list("pk", flat=True))


def other_runs_wait(run: JudgeRun, *, now: datetime | None = None) -> bool:
    """Whether another run has due calls and no worker."""
    return _unattended(now or timezone.now()).exclude(pk=run.pk).exists()


def _unattended(now: datetime) -> QuerySet[JudgeRun]:
    due = Call.objects.filter(Q(not_before=None) | Q(not_before__lte=now), run=OuterRef("pk"), state=Call.State.WAITING)
    busy = Call.objects.filter(run=OuterRef("pk"), state=Call.State.LEASED)
    return JudgeRun.objects.filter(Exists(due), ~Exists(busy), state=JudgeRun.State.RUNNING)
