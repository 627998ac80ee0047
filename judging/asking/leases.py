"""Rows that workers lease: taken up, marked as sent, settled by the outcome of their request; freed when a worker dies.

The calls of judge runs, and the texts and conversations of generation plans, are such rows (`models.LeasedRow`). A row
is waiting, leased, or at one of its ends. The lease says which work session sends its request; when the lease expires,
the row waits again. Leasing a row writes an attempt in the same transaction, which reserves the worst case of the
request; the attempt is marked as sent before the request is sent, and settled by its outcome. The first reply settles a
row, even if another work session has the lease then, because the reply was paid for. A later reply to a settled row is
stored and changes nothing else.

The cost is booked by the provider's own count of tokens, at the price of the model that the reply names
(judging/asking/bills.py). If a request may have cost something and the amount is unknown (the reply has no token count
or an impossible count, the body can't be read, or the reply did not arrive in time), it is booked at its worst case and
marked as estimated. An error status costs nothing. A request that is lost with its worker does not count as a failed
try of the provider: MOST_LOSSES limits such losses.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import models, transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.inputs import storable
from accounts.refusals import Refused
from annotation import bulk
from judging.asking import bills, budgets, client
from judging.asking import holders as holders_here
from judging.asking.bills import Bill
from judging.asking.budgets import Cap
from judging.asking.holders import SentRecord
from judging.asking.paid_requests import PaidRequest
from judging.models import LeasedRow, PaidAttempt

LEASE = timedelta(seconds=30)
STRAY = timedelta(hours=2)  # longer than any work session waits for a reply
MOST_HOLDERS = 2  # workers on one run, or on one generator of a plan, at the same time
FIRST_PAUSE = 1.0  # seconds at most after the first try without a reply; each further pause is twice as long
LONGEST_PAUSE = 60.0
LONGEST_WAIT = 600.0  # seconds that a run waits when an endpoint asks for it; for longer it pauses
MOST_LOSSES = 20  # workers that a row is lost with before it is given up
MOST_UNREADABLE = 3  # bodies about one row that nobody could read, and may have been paid, before it is given up
WAITING, LEASED = "waiting", "leased"
"""The states that every kind of leased row has."""
Outcome = PaidAttempt.Outcome
SETTLED = (
    *("outcome", "reply", "answer", "reason", "served_model", "tokens_in", "tokens_out"),
    *("cost", "estimated", "doubt", "latency"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedRequest(PaidRequest):
    """A request about a leased row, and the attempt under which it is booked."""

    attempt: PaidAttempt = field(compare=False)

    @property
    def row(self) -> LeasedRow:
        """The row that it is about."""
        raise NotImplementedError

    def request(self, *, dropped: Sequence[str] = ()) -> dict[str, Any]:
        """The request as it is stored; ``dropped`` names the parts that the model refused."""
        messages = [{name: storable(text) for name, text in message.items()} for message in self.messages]
        return {"messages": messages, "parameters": dict(self.parameters), "dropped": list(dropped)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOutcome:
    """The outcome of one request: the settled attempt, and the time of the next try if no reply came.

    `stops` is the reason why this model must not be asked any more.
    """

    lease: UUID
    attempt: PaidAttempt
    retry_at: datetime | None = None
    dropped: Sequence[str] = ()
    stops: str = ""

    @property
    def asked(self) -> LeasedRequest:
        """The request."""
        raise NotImplementedError

    @property
    def settles(self) -> bool:
        """Whether it is a reply that settles its row, under whatever lease that is then."""
        raise NotImplementedError

    @property
    def leaves_waiting(self) -> bool:
        """Whether its row waits for another request after it, so that it ends nothing."""
        return False


RequestT = TypeVar("RequestT", bound=LeasedRequest)
OutcomeT = TypeVar("OutcomeT", bound=RequestOutcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRequests(Generic[RequestT]):
    """The requests of leased rows, and why no more were leased: a cap is spent, or requests in flight may use up the
    rest of it.

    ``reused`` is the number of further rows that a known reply has settled, or that wait for one. ``closed``: the
    models, by provider and model, of which a request was not allowed; ``all_closed``: by a cap that holds for all.
    """

    lease: UUID
    requests: list[RequestT] = field(default_factory=list)
    reused: int = 0
    held_up: bool = False
    spent: str = ""
    closed: Collection[tuple[str, str]] = ()
    all_closed: bool = False


def affordable(
    requests: Sequence[RequestT], *, lease: UUID, caps: Sequence[Cap], windows: Mapping[tuple[str, str], int]
) -> TakenRequests[RequestT]:
    """As many of the requests, in order, as the caps allow, and the windows.

    A cap of a provider holds for its requests only. ``windows``: how many more requests to a model, by provider and
    model, the bills so far allow. When a request to a model is not allowed, no later one to this model is; and no later
    one at all, if a cap for all models does not allow it. The caps are spent if they are for every model until then.
    """
    binding = {name: [cap for cap in caps if cap.provider in ("", name)] for name in {one.provider for one in requests}}
    for request in requests:
        if request.worst_case is None and binding[request.provider]:
            raise Refused(binding[request.provider][0].sentence, code="budget")  # who asks says why before
    chosen: list[RequestT] = []
    left = dict(windows)
    closed: dict[tuple[str, str], str] = {}  # why its cap is spent, if it is
    all_closed = False
    taken = {id(cap): (0, Decimal(0)) for cap in caps}
    for request in requests:
        model, worst = (request.provider, request.model), request.worst_case or Decimal(0)
        held_by = [(cap, *taken[id(cap)]) for cap in binding[request.provider]]
        against = [cap for cap, more, reserved in held_by if not cap.allows(worst, more=more, reserved=reserved)]
        if all_closed or model in closed or left.get(model, 1) <= 0 or against:
            if model in closed or not all_closed:
                spent = (cap.is_spent(worst) for cap in binding[request.provider])
                closed[model] = closed.get(model) or next(filter(None, spent), "")
            all_closed = all_closed or any(not cap.provider for cap in against)
            continue
        for cap, more, reserved in held_by:
            taken[id(cap)] = more + 1, reserved + worst
        if model in left:
            left[model] -= 1
        chosen.append(request)
    return TakenRequests(
        lease=lease,
        requests=chosen,
        held_up=len(chosen) < len(requests),
        spent=next(iter(closed.values())) if closed and all(closed.values()) and not chosen else "",
        closed=[*closed],
        all_closed=all_closed,
    )


class LeasedRows(ABC, Generic[OutcomeT]):
    """One kind of leased rows: its tables, and what its ends are.

    `row_name` is the foreign key of an attempt to its row, `asker_name` that of a row to what asks: a judge run, a
    generator of a plan, or a simulation. `running` is the state in which that may ask, as a filter of its own table.
    `folder`, below the data directory, has the lock files of this machine's work sessions.
    """

    rows: ClassVar[type[models.Model]]
    attempts: ClassVar[type[PaidAttempt]]
    askers: ClassVar[type[models.Model]]
    row_name: ClassVar[str]
    asker_name: ClassVar[str]
    running: ClassVar[Mapping[str, Any]]
    folder: ClassVar[str]
    related: ClassVar[Sequence[str]]
    """What `is_tired` and the project of a row need."""
    columns: ClassVar[Sequence[str]]
    """The columns of an attempt that are written when its row is leased."""
    settled_columns: ClassVar[Sequence[str]] = SETTLED
    settled_state: ClassVar[str]
    may_ask: ClassVar[Q] = Q()
    """Which rows may be leased at all."""
    own_rows: ClassVar[Q] = Q()
    """Which rows of the table are of this kind."""
    counted_bodies: ClassVar[Q] = Q()
    """Of which attempts a body that nobody could read counts against its row."""

    # --- what differs ---

    @abstractmethod
    def most_tries(self, row: Any) -> int:
        """How often a row is tried that the provider does not answer."""

    @abstractmethod
    def project_of(self, row: Any) -> int:
        """The key of the project that pays."""

    @abstractmethod
    def end(self, held: QuerySet[Any], *, reason: str) -> None:
        """Rows of which no reply comes any more: move them to that end, without a lease."""

    @abstractmethod
    def store_replies(self, outcomes: Sequence[OutcomeT], *, repeated: Sequence[int]) -> None:
        """Store what the replies say, and move their rows on. ``repeated``: the rows that were asked before."""

    def announce(self, asker: int) -> None:
        """Called in the transaction that moved rows of this asker."""

    # --- taking up ---

    def due(self, asker: int, now: datetime) -> QuerySet[Any]:
        """The rows of an asker that may be leased now, in order, locked; those that others lock are left out."""
        waiting = self.rows._base_manager.filter(
            self.own_rows,
            self.may_ask,
            Q(not_before=None) | Q(not_before__lte=now),
            state=WAITING,
            **{self.asker_name: asker},
        )
        return waiting.order_by("pk").select_for_update(skip_locked=True, of=("self",))

    def lease(self, requests: Sequence[LeasedRequest], lease: UUID, now: datetime) -> None:
        """Lease the rows of these requests and write an attempt for each, not sent yet."""
        keys = [request.row.pk for request in requests]
        if not keys:
            return
        until = now + LEASE
        self._keyed(keys).update(state=LEASED, lease=lease, leased_until=until)
        numbers = self.last_numbers(keys)
        for request, pk in zip(requests, bulk.reserve_keys(self.attempts, len(keys)), strict=True):
            row: Any = request.row
            row.lease, row.leased_until, row.state = lease, until, LEASED
            attempt = request.attempt
            attempt.pk, attempt.number, attempt.at = pk, numbers.get(row.pk, 0) + 1, now
            attempt.outcome = Outcome.PENDING
        self.insert_attempts([(request, request.attempt) for request in requests])

    def last_numbers(self, keys: Sequence[int]) -> dict[int, int]:
        """The number of the last attempt of each of these rows that has one."""
        counted = self._attempts(**{f"{self.row_name}__in": keys}).order_by()
        return dict(counted.values_list(self.row_name).annotate(Max("number")))

    def insert_attempts(self, written: Sequence[tuple[LeasedRequest, PaidAttempt]]) -> None:
        """Insert attempts, with their requests as these are sent."""
        bulk.insert(self.attempts, self.columns, [self._attempt_row(*pair) for pair in written])

    def _attempt_row(self, request: LeasedRequest, attempt: PaidAttempt) -> tuple[Any, ...]:
        plain: dict[str, str | None] = {"request": bulk.json_text(request.request())}
        plain["reply"] = bulk.json_text(attempt.reply)
        plain["answer"] = None if attempt.answer is None else bulk.json_text(attempt.answer)
        plain["outcome"] = Outcome(attempt.outcome).value
        values = (plain[name] if name in plain else getattr(attempt, name) for name in self.columns)
        return tuple(bulk.json_text(value) if isinstance(value, list) else value for value in values)

    def mark_sent(self, *, lease: UUID, attempts: Sequence[int]) -> set[int]:
        """Mark these requests as sent. Returns the attempts that may be sent: their asker is running, and their rows
        are still under the lease.

        This is one statement, because every request waits for it. If a row is released, its attempt is deleted first.
        """
        running = {f"{self.row_name}__{self.asker_name}__{name}": value for name, value in self.running.items()}
        mine = self._attempts(pk__in=attempts, **{f"{self.row_name}__lease": lease}, **running)
        if mine.filter(outcome=Outcome.PENDING).update(outcome=Outcome.SENT) == len(attempts):
            return set(attempts)
        return set(mine.filter(outcome=Outcome.SENT).values_list("pk", flat=True))

    # --- settling ---

    def settle(self, *, outcomes: Sequence[OutcomeT]) -> int:
        """Store the outcomes of requests in one transaction. Returns how many rows were settled.

        An attempt is always settled, because it was paid for. A reply settles its row unless another reply has settled
        it; a failure changes its row only if that is still under the same lease. If the same outcomes are stored again,
        nothing is stored twice, so the transaction can be repeated when the connection was lost before it was
        confirmed.
        """
        with transaction.atomic():
            open_rows = self._open_rows(outcomes)
            new, late = self._unsettled(outcomes)
            self._settle_attempts(new)
            settled = [outcome for outcome in new if outcome.settles and outcome.asked.row.pk in open_rows]
            again = [
                outcome
                for outcome in new
                if not outcome.settles
                and open_rows.get(outcome.asked.row.pk) == outcome.lease
                and outcome.attempt.pk not in late  # its row was freed, and this session may have leased it again
            ]
            repeated = [
                outcome.asked.row.pk
                for outcome in settled
                if outcome.asked.attempt.number > 1 or open_rows[outcome.asked.row.pk] != outcome.lease
            ]
            # A work session, maybe this one, has leased these again: it need not send, and a release does not find
            # them.
            self._end_open([outcome.asked.row.pk for outcome in settled if outcome.attempt.pk in late])
            self.store_replies(settled, repeated=repeated)
            self.try_again(again)
            for outcome in {self._asker_of(outcome): outcome for outcome in new if outcome.stops}.values():
                asked = outcome.asked
                project = self.project_of(asked.row)
                budgets.stop_asking(project, provider=asked.provider, model=asked.model, reason=outcome.stops)
            for asker in {self._asker_of(outcome) for outcome in (*settled, *again) if not outcome.leaves_waiting}:
                self.announce(asker)
        return len(settled)

    def _asker_of(self, outcome: OutcomeT) -> int:
        return int(getattr(outcome.asked.row, f"{self.asker_name}_id"))

    def _open_rows(self, outcomes: Sequence[OutcomeT]) -> dict[int, UUID | None]:
        """The rows that no reply has settled yet, locked until the end of the transaction, and the lease each is
        under."""
        rows = self._keyed([outcome.asked.row.pk for outcome in outcomes]).select_for_update()
        return dict(rows.exclude(state=self.settled_state).order_by("pk").values_list("pk", "lease"))

    def _unsettled(self, outcomes: Sequence[OutcomeT]) -> tuple[list[OutcomeT], set[int]]:
        """The outcomes that are not stored yet, and which attempts of theirs were counted as lost: a row has no other
        open attempt than one that was not."""
        keys = [outcome.attempt.pk for outcome in outcomes]
        waited_for = self._attempts(pk__in=keys, outcome__in=[Outcome.SENT, Outcome.LOST])
        waited = dict(waited_for.values_list("pk", "outcome"))
        late = {pk for pk, outcome in waited.items() if outcome == Outcome.LOST}
        return [outcome for outcome in outcomes if outcome.attempt.pk in waited], late

    def _settle_attempts(self, outcomes: Sequence[OutcomeT]) -> None:
        rows = [self._settled_row(outcome.attempt) for outcome in outcomes]
        bulk.update(self.attempts, self.settled_columns, rows)
        for outcome in outcomes:
            if outcome.dropped:
                request = outcome.asked.request(dropped=outcome.dropped)
                self._attempts(pk=outcome.attempt.pk).update(request=request)

    def _settled_row(self, attempt: PaidAttempt) -> tuple[Any, ...]:
        plain = {"outcome": Outcome(attempt.outcome).value}
        plain["cost"] = None if attempt.cost is None else str(attempt.cost)  # type: ignore[assignment]
        values = (plain[name] if name in plain else getattr(attempt, name) for name in self.settled_columns)
        return attempt.pk, *values

    def move(self, keys: Sequence[int], *, state: str, not_before: datetime | None, tried: int = 1) -> None:
        """Move rows to a state, without a lease."""
        self._keyed(keys).update(
            state=state, lease=None, leased_until=None, not_before=not_before, tries=F("tries") + tried
        )

    def try_again(self, outcomes: Sequence[OutcomeT]) -> None:
        """Let rows without a reply wait for their next try; they end after too many tries or unreadable bodies.

        Without a time for the next try, the provider answers no requests now, and a row waits as if it had not been
        tried.
        """
        unreadable = [outcome.asked.row.pk for outcome in outcomes if outcome.attempt.reply]
        bodies = self._attempts(self.counted_bodies, **{f"{self.row_name}__in": unreadable})
        bodies = bodies.filter(outcome=Outcome.UNAVAILABLE).exclude(reply={})
        counted = dict(bodies.values_list(self.row_name).annotate(Count("pk"))) if unreadable else {}
        for outcome in outcomes:
            row = outcome.asked.row
            if outcome.retry_at is None:
                self.move([row.pk], state=WAITING, not_before=None, tried=0)
                continue
            self.move([row.pk], state=WAITING, not_before=outcome.retry_at)
            if row.tries + 1 >= self.most_tries(row) or counted.get(row.pk, 0) >= MOST_UNREADABLE:
                self.end(self._keyed([row.pk]), reason=outcome.attempt.reason)

    # --- outcomes ---

    def finished_attempt(self, asked: LeasedRequest, outcome: Outcome, bill: Bill, **came: Any) -> Any:
        """The attempt of a request as it is settled, with its bill."""
        booked = {"cost": bill.cost, "estimated": bill.estimated, "doubt": bill.doubt}
        about: dict[str, Any] = {"pk": asked.attempt.pk, self.row_name: asked.row}
        return self.attempts(outcome=outcome, **about, **booked, **came)

    def replied_attempt(self, asked: LeasedRequest, answer: client.ProviderAnswer) -> tuple[Any, Bill]:
        """The attempt of a request with a reply, readable or not, and its bill."""
        bill = bills.bill_reply(asked, answer)
        attempt = self.finished_attempt(
            asked,
            Outcome.REPLIED,
            bill,
            reply=answer.raw,
            answer=answer.stored,
            served_model=answer.served_model[:160],
            tokens_in=bill.tokens_in,
            tokens_out=bill.tokens_out,
            latency=answer.latency,
            reason=bill.stops[:400],
        )
        return attempt, bill

    def unavailable_attempt(
        self, asked: LeasedRequest, unavailable: client.ProviderUnavailable
    ) -> tuple[Any, Bill, datetime]:
        """The attempt of a request without a reply, its bill, and when to try again. The pause doubles after each try,
        with jitter, and is never shorter than the endpoint asked for."""
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**asked.row.tries) * random.uniform(0.5, 1.0)
        retry_at = timezone.now() + timedelta(seconds=max(pause, unavailable.retry_after or 0))
        bill = bills.bill_failure(asked, unavailable)
        reply = {"body": unavailable.body} if unavailable.body else {}
        attempt = self.finished_attempt(asked, Outcome.UNAVAILABLE, bill, reason=unavailable.reason, reply=reply)
        return attempt, bill, retry_at

    def refused_attempt(self, asked: LeasedRequest, no: client.ProviderRefused) -> tuple[Any, Bill]:
        """The attempt of a request that the provider refused, and its bill."""
        bill = bills.bill_failure(asked, no)
        return self.finished_attempt(asked, Outcome.REFUSED, bill, reason=no.reason), bill

    # --- leases ---

    def extend(self, *, lease: UUID, now: datetime | None = None) -> int:
        """Extend a lease while its requests are in flight. Returns the number of rows that are still under it."""
        return self._leased(lease=lease).update(leased_until=(now or timezone.now()) + LEASE)

    def holders(self, asker: models.Model, *, besides: UUID | None = None, now: datetime | None = None) -> int:
        """How many workers have leased rows of this asker; a worker with an expired lease counts as dead."""
        held = self._leased(**{self.asker_name: asker.pk}, leased_until__gt=now or timezone.now())
        return held.exclude(lease=besides).values("lease").distinct().count()

    def in_flight(self, asker: models.Model, now: datetime) -> int:
        """How many rows of this asker are leased."""
        return self._leased(**{self.asker_name: asker.pk}, leased_until__gt=now).count()

    def next_due(self, asker: models.Model) -> datetime | None:
        """When the next waiting row may be sent; None when none waits, or its asker is not running."""
        running = {f"{self.asker_name}__{name}": value for name, value in self.running.items()}
        waiting = self.rows._base_manager.filter(
            self.own_rows, self.may_ask, state=WAITING, **{self.asker_name: asker.pk}, **running
        )
        return (
            waiting.order_by(F("not_before").asc(nulls_first=True))
            .values_list(Coalesce("not_before", timezone.now()), flat=True)
            .first()
        )

    def release(
        self,
        *,
        lease: UUID,
        attempts: Collection[int] | None = None,
        unanswered: bool = False,
        sent: Collection[int] | None = None,
    ) -> int:
        """Release leased rows (only those of these open ``attempts``, if given): unsent requests are deleted, sent ones
        without a reply are lost. ``sent``: the attempts that left this machine, where that is known; none of the others
        did, although they are marked as sent.

        A lost request stays booked at its worst case, and its row is tried again. If a worker died, this does not count
        as a failed try of the provider; if a batch ended without a result (``unanswered``), it does.
        """
        held = self._leased(lease=lease)
        if attempts is not None:
            still_open = self._attempts(pk__in=attempts, outcome__in=PaidAttempt.OPEN)
            held = held.filter(pk__in=still_open.values(self.row_name))
        return self._free(held, unanswered=unanswered, sent=sent)

    def _free(self, held: QuerySet[Any], *, unanswered: bool = False, sent: Collection[int] | None = None) -> int:
        with transaction.atomic():
            leased = list(held.select_for_update(of=("self",)).select_related(*self.related).order_by("pk"))
            keys = [row.pk for row in leased]
            lost = self._end_open(keys, sent)
            counted = "tries" if unanswered else "losses"
            tired = [row.pk for row in leased if row.pk in lost and self._is_tired(row, unanswered=unanswered)]
            self._keyed(lost).update(**{counted: F(counted) + 1})
            self._keyed(keys).update(state=WAITING, lease=None, leased_until=None)
            if tired:
                self.end(self._keyed(tired), reason="No reply was received.")
            for asker in {getattr(row, f"{self.asker_name}_id") for row in leased if row.pk in tired}:
                self.announce(asker)
        return len(leased)

    def _end_open(self, keys: Collection[int], sent: Collection[int] | None = None) -> set[int]:
        """End the open requests of these rows, which the caller has locked: unsent ones are deleted, sent ones are
        lost until their reply comes (with ``sent``, only these). Returns the rows of lost ones."""
        if not keys:
            return set()
        # Locked before they are told apart, because `mark_sent` does not lock their rows.
        found = self._attempts(**{f"{self.row_name}__in": keys}, outcome__in=PaidAttempt.OPEN).select_for_update()
        still_open = list(found.order_by("pk").values_list("pk", "outcome", self.row_name))
        lost = {pk: row for pk, outcome, row in still_open if outcome == Outcome.SENT and (sent is None or pk in sent)}
        self._attempts(pk__in=[pk for pk, _outcome, _row in still_open if pk not in lost]).delete()
        self._attempts(pk__in=[*lost]).update(
            outcome=Outcome.LOST, cost=F("reserved"), estimated=True, reason="No reply was received."
        )
        return set(lost.values())

    def _is_tired(self, row: Any, *, unanswered: bool) -> bool:
        """Whether a row that is lost once more has reached its limit and is not tried again."""
        return bool(row.tries + 1 >= self.most_tries(row) if unanswered else row.losses + 1 >= MOST_LOSSES)

    def hold(self, lease: UUID) -> AbstractContextManager[SentRecord]:
        """While the block runs, other processes of this machine can see that the owner of the lease is alive; they read
        its record of what it sent when it has died."""
        return holders_here.holding(settings.DATA_DIR / self.folder, lease)

    def release_dead(self) -> int:
        """Release the leases of dead work sessions of this machine, without waiting for their end. Returns their
        number."""
        folder = settings.DATA_DIR / self.folder
        return holders_here.with_dead_leases(folder, lambda lease, sent: self.release(lease=lease, sent=sent))

    def sweep(self, *, now: datetime | None = None) -> list[int]:
        """Release the leases of dead workers. Returns the askers that have due rows and no worker."""
        self.release_dead()
        now = now or timezone.now()
        self._free(self._leased(leased_until__lt=now))
        self._end_strays(now)
        return list(self.unattended(now).order_by("pk").values_list("pk", flat=True))

    def _end_strays(self, now: datetime) -> None:
        """End requests that are open after `STRAY` though nobody has leased their row: they would stay reserved."""
        old = self._attempts(outcome__in=PaidAttempt.OPEN, at__lt=now - STRAY)
        old = old.exclude(**{f"{self.row_name}__state": LEASED})
        if keys := set(old.values_list(self.row_name, flat=True)):
            with transaction.atomic():
                rows = self._keyed(keys).filter(self.own_rows).exclude(state=LEASED).select_for_update().order_by("pk")
                self._end_open(list(rows.values_list("pk", flat=True)))

    def unattended(self, now: datetime) -> QuerySet[Any]:
        """The askers that may ask and have due rows, and no worker."""
        own = self.rows._base_manager.filter(self.own_rows, **{self.asker_name: OuterRef("pk")})
        due = own.filter(self.may_ask, Q(not_before=None) | Q(not_before__lte=now), state=WAITING)
        return self.askers._base_manager.filter(Exists(due), ~Exists(own.filter(state=LEASED)), **self.running)

    def _keyed(self, keys: Collection[int]) -> QuerySet[Any]:
        return self.rows._base_manager.filter(pk__in=keys)

    def _leased(self, **about: Any) -> QuerySet[Any]:
        return self.rows._base_manager.filter(self.own_rows, state=LEASED, **about)

    def _attempts(self, *which: Q, **about: Any) -> QuerySet[Any]:
        return self.attempts._base_manager.filter(*which, **about)
