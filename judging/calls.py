"""The calls of a run, as leased rows (judging/asking/leases.py): waiting, leased, settled or failed.

If another run of the project has a reply to the same request, the reply is reused and nothing is sent, unless the run
pays again or the call was answered before. If another run of the same design has the same request in flight, the call
waits for its reply. A run starts with two calls in flight, and again when it is resumed; the first bill that is larger
than declared stops the run and the other runs of the project that ask the same model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from accounts.refusals import Refused
from annotation import bulk
from judging import judges, known_replies, runs, spending
from judging.asking import client, leases
from judging.asking.leases import LeasedRows, RequestOutcome, TakenRequests, affordable
from judging.models import Attempt, Call, ErrorTag, GenerationAttempt, JudgeRun, Verdict
from judging.probabilities import weighed
from judging.prompts import PromptVariant
from judging.replies import NoScore, Reading, Status, parse
from judging.requests import LOOK_AHEAD, NOTHING_CHANGED, CallRequest, CallRequestWriter, in_order_of_item

ATTEMPT = (
    *("id", "call_id", "number", "outcome", "request", "reply", "answer", "reason", "served_model", "reserved", "at"),
    *("reply_key", "reused_from_id", "cost"),
)
VERDICT = (
    *("run_id", "item_id", "criterion_id", "repeat", "change", "attempt_id"),
    *("status", "score", "applicable", "fractional", "coerced", "rationale", "expected", "confidence", "reason"),
)


def take_calls(
    *,
    run: JudgeRun,
    limit: int,
    lease: UUID | None = None,
    writer: CallRequestWriter | None = None,
    now: datetime | None = None,
) -> TakenRequests[CallRequest]:
    """Lease up to ``limit`` due calls, and reserve what they may cost; with ``lease``, add them to this lease.

    Leases nothing if the run is not running or `leases.MOST_HOLDERS` other workers work on it, and never more than its
    caps allow. Refuses a provider that the project may not use (any more). If the request of the first call can't be
    written, its exception is raised.
    """
    token, now = lease or uuid4(), now or timezone.now()
    with transaction.atomic():
        locked = JudgeRun.objects.select_for_update(of=("self",), no_key=True)
        run = locked.select_related("judge", "project", "rubric_version").get(pk=run.pk)
        if run.state != JudgeRun.State.RUNNING or CALLS.holders(run, besides=token, now=now) >= leases.MOST_HOLDERS:
            return TakenRequests(lease=token)
        rows = CALLS.due(run.pk, now).select_related("item", "repairs")
        writer = writer or CallRequestWriter(run)
        if writer.can_reuse is None:
            writer.can_reuse = known_replies.may_be_known(run)
        written = _written(writer, rows[: max(limit, writer.looks_ahead) if writer.can_reuse else limit])
        reused = _reuse_replies(run, writer, written, now) if writer.can_reuse else frozenset()
        writer.looks_ahead = LOOK_AHEAD if reused else 0  # without known replies, write only requests to lease
        unanswered = [call_request for call_request in written if call_request.call.pk not in reused]
        taken = _affordable(run, token, unanswered[:limit], now)
        CALLS.lease(taken.requests, token, now)
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
    numbers = CALLS.last_numbers([*sources])
    outcomes = [
        _reused_outcome(call_request, sources[pk], numbers.get(pk, 0) + 1, writer.variant, now)
        for call_request in untried
        if (pk := call_request.call.pk) in sources
    ]
    for outcome, pk in zip(outcomes, bulk.reserve_keys(Attempt, len(outcomes)), strict=True):
        outcome.attempt.pk = pk
    CALLS.insert_attempts([(outcome.call_request, outcome.attempt) for outcome in outcomes])
    _settle(outcomes, repeated_calls=[outcome.call.pk for outcome in outcomes if outcome.call.repairs_id])
    if outcomes:
        runs.announce_finish(run.pk)
    return waiting.union(sources)


def _reused_outcome(
    call_request: CallRequest, source: Attempt | GenerationAttempt, number: int, variant: PromptVariant, now: datetime
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
        cost=None if call_request.worst_case is None else 0,  # unknown where no price is
        reply_key=source.reply_key,
        reused_from=source if isinstance(source, Attempt) else None,
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


def _affordable(
    run: JudgeRun, lease: UUID, call_requests: list[CallRequest], now: datetime
) -> TakenRequests[CallRequest]:
    """As many of the requests, in order, as all caps and the bills of the run so far allow."""
    caps = spending.caps(run, now=now)
    is_paid = spending.costs(run)
    if not call_requests or not (caps or (is_paid and not run.by_batch)):
        return TakenRequests(lease=lease, requests=call_requests)
    if caps and any(call_request.worst_case is None for call_request in call_requests):
        spending.refuse_cap(run.judge, budget=spending.budget_of(run), run=run)
    windows = {}
    if is_paid:
        model = run.judge.provider, run.judge.model
        windows[model] = spending.most_calls_in_flight(run) - CALLS.in_flight(run, now)
    return affordable(call_requests, lease=lease, caps=caps, windows=windows)


# --- what one request came to -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome(RequestOutcome):
    """The outcome of one request: the settled attempt, and the readings of its reply or the time of the next try.

    Without readings and time, the provider answers no requests now, and the call waits as if it had not been tried.
    ``repair``: the reply can't be read, and the call waits to ask once more.
    """

    call_request: CallRequest
    attempt: Attempt
    readings: Sequence[Reading] = ()
    repair: bool = False

    @property
    def call(self) -> Call:
        """The call that the request was for."""
        return self.call_request.call

    @property
    def asked(self) -> CallRequest:
        return self.call_request

    @property
    def settles(self) -> bool:
        return bool(self.readings)


def answered_outcome(
    call_request: CallRequest, *, lease: UUID, variant: PromptVariant, answer: client.ProviderAnswer
) -> CallOutcome:
    """The outcome of a request with a reply, readable or not: it has one reading per criterion."""
    attempt, bill = CALLS.replied_attempt(call_request, answer)
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


def unread_outcome(
    call_request: CallRequest, *, lease: UUID, answer: client.ProviderAnswer, fault: Exception
) -> CallOutcome:
    """The outcome of a request whose reply our own code failed to read: its bill, and an error for every criterion."""
    attempt, bill = CALLS.replied_attempt(call_request, answer)
    why = NoScore("not_stored", "provider", repr(fault))
    return CallOutcome(
        call_request=call_request,
        lease=lease,
        attempt=attempt,
        readings=[Reading(criterion=one.key, status="error", reason=why) for one in call_request.criteria],
        dropped=answer.dropped,
        stops=bill.stops,
    )


def unavailable_outcome(
    call_request: CallRequest, unavailable: client.ProviderUnavailable, *, lease: UUID
) -> CallOutcome:
    """The outcome of a request without a reply."""
    attempt, bill, retry_at = CALLS.unavailable_attempt(call_request, unavailable)
    return CallOutcome(call_request=call_request, lease=lease, attempt=attempt, retry_at=retry_at, stops=bill.stops)


def refused_outcome(call_request: CallRequest, no: client.ProviderRefused, *, lease: UUID) -> CallOutcome:
    """The outcome of a request that the provider refused: the refusal is recorded on every criterion, and the request
    is not sent again.

    If the provider refuses all requests, the call waits until the run is resumed.
    """
    attempt, bill = CALLS.refused_attempt(call_request, no)
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


# --- storing ----------------------------------------------------------------------------------------------------------


def _settle(outcomes: Sequence[CallOutcome], *, repeated_calls: Sequence[int], tried: int = 0) -> None:
    """Store the readings of the replies; their calls are settled, or wait to ask once more."""
    _insert_verdicts(outcomes, kept=_kept_verdicts(repeated_calls))
    repaired = [outcome for outcome in outcomes if outcome.repair]
    read = [outcome for outcome in outcomes if not outcome.repair]
    for moved, state in ((read, Call.State.SETTLED), (repaired, Call.State.WAITING)):
        CALLS.move([outcome.call.pk for outcome in moved], state=state, not_before=None, tried=tried)
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
    deleted with their tags."""
    if not repeated_calls:
        return set()
    earlier = Verdict.objects.filter(attempt__call__in=repeated_calls)
    replaced = earlier.exclude(status=Verdict.Status.OK)
    locked = [verdict.pk for verdict in replaced.select_for_update(of=("self",)).only("pk")]  # nobody tags them now
    ErrorTag.objects.filter(verdict__in=locked).delete()
    Verdict.objects.filter(pk__in=locked).delete()
    return set(earlier.values_list("attempt__call", "criterion__key"))


def _verdict_row(outcome: CallOutcome, reading: Reading, criterion_pk: int) -> tuple[Any, ...]:
    call, coerced = outcome.call, (reading.coerced or "")[:80]
    identity = call.run_id, call.item_id, criterion_pk, call.repeat, call.change, outcome.attempt.pk
    read = reading.status, reading.score, reading.applicable, reading.fractional, coerced, reading.rationale
    reason = bulk.json_text(reading.reason.stored) if reading.reason else None
    return *identity, *read, reading.expected, reading.confidence, reason


class CallRows(LeasedRows[CallOutcome]):
    """Calls, as leased rows."""

    rows, attempts, askers = Call, Attempt, JudgeRun
    row_name, asker_name = "call", "run"
    running = {"state": JudgeRun.State.RUNNING}
    folder = "holders"
    related = ("run__judge",)
    columns = ATTEMPT
    settled_state = Call.State.SETTLED

    def most_tries(self, row: Call) -> int:
        return judges.pace(row.run.judge).tries

    def project_of(self, row: Call) -> int:
        return row.run.project_id

    def end(self, held: QuerySet[Call], *, reason: str) -> None:
        free: dict[str, Any] = {"lease": None, "leased_until": None}
        held.exclude(repairs=None).update(state=Call.State.SETTLED, **free)  # it has had a reply
        held.filter(repairs=None).update(state=Call.State.FAILED, **free)

    def store_replies(self, outcomes: Sequence[CallOutcome], *, repeated: Sequence[int]) -> None:
        _settle(outcomes, repeated_calls=repeated, tried=1)

    def announce(self, asker: int) -> None:
        runs.announce_finish(asker)


CALLS = CallRows()
