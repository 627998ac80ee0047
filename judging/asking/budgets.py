"""Caps on what may be spent, and how many requests may be in flight under one.

A request's worst case is reserved before it is sent; whatever comes of it replaces the reservation by what was paid.
Money is read from the rows of the requests in one query under a lock on the caps, so two workers never spend the same
dollar.

A provider can bill more than it declared, and when the first such bill arrives, other requests are in flight already.
So the number of requests in flight is limited: the cap must be kept even if each costs `DEAREST` times its worst case
(two requests are always allowed). A request that failed with a server error costs nothing, but may still be billed: its
worst case counts against the cap, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import Project
from accounts.refusals import Refused
from judging.models import Judge, PaidAttempt, PaidRow

DEAREST = 32
"""A cap must be kept even if every request in flight costs this many times its worst case."""
MOST_IN_FLIGHT = 10_000
"""A number that is larger than the number of calls in flight of any run."""
UNPROVEN = 2
"""Requests that may be in flight under a cap, or of a run, before any bill of it is known."""


@dataclass(frozen=True, slots=True)
class Committed:
    """USD paid, and USD reserved for requests that have not ended; `in_flight` is the number of these requests.

    `failed` is the USD that the provider may still bill for its `failures`: requests that failed with a server error
    and were booked at a cost of 0.
    """

    paid: Decimal
    reserved: Decimal
    in_flight: int = 0
    failed: Decimal = Decimal(0)
    failures: int = 0

    @property
    def all(self) -> Decimal:
        """Paid and reserved together."""
        return self.paid + self.reserved

    def __add__(self, other: Committed) -> Committed:
        return Committed(
            self.paid + other.paid,
            self.reserved + other.reserved,
            self.in_flight + other.in_flight,
            self.failed + other.failed,
            self.failures + other.failures,
        )


def committed(rows: QuerySet[Any], *, is_open: Q, may_be_billed: Q, in_flight: Q | None = None) -> Committed:
    """What rows of paid requests have cost, and what open or failed ones may cost, in one query.

    ``is_open``: its worst case counts; ``in_flight``: of these, the ones that may still end, where these are not all;
    ``may_be_billed``: which of those that failed with a server error count at their worst case.
    """
    zero = Decimal(0)
    failed = Q(doubt=PaidRow.Doubt.FAILED) & may_be_billed
    sums = rows.aggregate(
        paid=Coalesce(Sum("cost", filter=~is_open), zero),
        open_cost=Coalesce(Sum("reserved", filter=is_open), zero),
        in_flight=Count("pk", filter=in_flight or is_open),
        failed=Coalesce(Sum("reserved", filter=failed), zero),
        failures=Count("pk", filter=failed),
    )
    return Committed(reserved=sums.pop("open_cost"), **sums)


def committed_to_attempts(attempts: QuerySet[Any], *, resumed: str) -> Committed:
    """The same of attempts; ``resumed`` is the way to when what asks was resumed last: failures before do not count."""
    since_resumed = Q(**{resumed: None}) | Q(at__gte=F(resumed))
    return committed(attempts, is_open=Q(outcome__in=PaidAttempt.OPEN), may_be_billed=since_resumed)


def agreed_attempts(attempts: QuerySet[Any], *, since: datetime | None) -> QuerySet[Any]:
    """The attempts whose bills agreed with their reservations."""
    agreed = attempts.filter(outcome=PaidAttempt.Outcome.REPLIED, estimated=False, doubt="").order_by()
    return agreed if since is None else agreed.filter(at__gte=since)


def most_in_flight(attempts: QuerySet[Any], *, since: datetime | None) -> int:
    """How many requests may be in flight of what has these attempts, given its bills since it was started or resumed:
    two, and one more for each bill that agreed, so that the number doubles as bills arrive."""
    return UNPROVEN + agreed_attempts(attempts, since=since)[:MOST_IN_FLIGHT].count()


@dataclass(frozen=True, slots=True)
class Cap:
    """A cap that holds for a run or a plan, what is committed of it, and what to say when it is reached; ``provider``
    if it holds for the requests to that alone."""

    amount: Decimal
    committed: Committed
    sentence: str
    provider: str = ""

    @property
    def left(self) -> Decimal:
        """USD of the cap that are not spent, not reserved, and not needed for failed requests that may be billed."""
        return self.amount - self.committed.all - self.committed.failed

    def allows(self, worst: Decimal, *, more: int = 0, reserved: Decimal = Decimal(0)) -> bool:
        """Whether a request with the worst case ``worst`` may be sent, after ``more`` further requests that have
        ``reserved`` USD together.

        The requests in flight must keep the cap even if they cost `DEAREST` times as much. Up to two requests need to
        keep it only with their worst cases.
        """
        if self.left < reserved + worst:
            return False
        unbilled = self.amount - self.committed.paid - self.committed.failed
        is_unproven = self.committed.in_flight + more < UNPROVEN
        return is_unproven or DEAREST * (self.committed.reserved + reserved + worst) <= unbilled

    def is_spent(self, worst: Decimal) -> str:
        """Why a request of this worst case could not be sent even if all in flight cost nothing; empty if it could."""
        if self.amount - self.committed.paid < worst:
            return self.sentence
        if self.amount - self.committed.paid - self.committed.failed >= worst:
            return ""
        sentence = ngettext(
            "The provider failed %(count)d request. If it bills that, the next call could exceed a limit.",
            "The provider failed %(count)d requests. If it bills these, the next call could exceed a limit.",
            self.committed.failures,
        )
        remedy = _("Look at its bill, then resume.")
        return f"{sentence % {'count': self.committed.failures}} {remedy}"


def refuse_beyond(caps: Sequence[Cap], worst: Decimal | None) -> None:
    """Refuse a single request that a cap does not allow: it is spent, or others in flight may use it up."""
    for cap in caps:
        if worst is None:
            raise Refused(cap.sentence, code="budget")
        if not cap.allows(worst):
            raise Refused(cap.is_spent(worst) or others_first(), code="budget")


def others_first() -> str:
    """The sentence for a request that must wait until the requests in flight are answered."""
    return _("Other requests have to be answered first. Try again in a minute.")


# --- kinds of paid requests -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SentRequests:
    """Rows of requests that were sent, with the fields of their time and of the person who started them; ``name`` is
    one of the kind's ``titles``."""

    name: str
    rows: QuerySet[Any]
    day: str
    person: str


class PaidKind(Protocol):
    """A kind of paid requests, such as the calls of judge runs. ``titles``: the names under which pages, files and the
    API list its requests, with their titles."""

    titles: Mapping[str, Any]

    def spent(self, project: int, provider: str, since: datetime | None) -> Committed:
        """What a project (its key) has spent at a provider on these since a time, or in all."""

    def stop(self, project: int, *, provider: str, model: str, reason: str) -> None:
        """Stop sending requests to this model, because of a bill; runs in the transaction that stores the bill."""

    def sent(self, project: Project, judge: Judge | None) -> Iterable[SentRequests]:
        """The requests of a project that were sent, or those for one judge: its runs, and tests before it was saved."""


_kinds: dict[str, Callable[[], PaidKind]] = {}


def register(name: str, kind: Callable[[], PaidKind]) -> None:
    """Count a kind of paid requests against the caps of projects; called from `ready` of an app's configuration.

    ``kind`` is called when it is needed, so that its module is imported late.
    """
    _kinds[name] = kind


def paid_kinds() -> list[PaidKind]:
    """All registered kinds, in their order."""
    return [kind() for kind in _kinds.values()]


def spent_at(project: int, provider: str, since: datetime | None = None) -> Committed:
    """What a project has spent at a provider on requests of every kind; a query for each kind."""
    nothing = Committed(Decimal(0), Decimal(0))
    return sum((kind.spent(project, provider, since) for kind in paid_kinds()), nothing)


def stop_asking(project: int, *, provider: str, model: str, reason: str) -> None:
    """Stop all requests of the project to a model with unexpected bills, until somebody resumes them."""
    for kind in paid_kinds():
        kind.stop(project, provider=provider, model=model, reason=reason)
