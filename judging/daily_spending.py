"""What was booked for paid requests, by day of UTC, by who started them, and by kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import Project, User
from judging.models import AlignmentProposal, Attempt, GenerationAttempt, Judge, JudgeTrial

REQUEST_KINDS = {
    "runs": gettext_lazy("Runs"),
    "imported": gettext_lazy("Imported runs"),
    "tests": gettext_lazy("Tests of judges"),
    "proposals": gettext_lazy("Proposals of versions"),
    "texts": gettext_lazy("Generated texts"),
}
"""Imported runs: their requests were sent from elsewhere, and are booked at what the file says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DailySpending:
    """The requests of one kind on a day of UTC that one person started, and USD booked for them: None where no price is
    known. `unpriced` of the requests have no cost. Nobody is known of what a command or a deleted design started.
    """

    day: date
    person: User | None
    kind: str
    requests: int
    unpriced: int
    cost: Decimal | None

    @property
    def person_name(self) -> str:
        """The name that pages and files show, "" if nobody is known."""
        if self.person is None:
            return ""
        return _("erased account %d") % self.person.pk if self.person.erased_at else str(self.person)

    @property
    def kind_name(self) -> str:
        return str(REQUEST_KINDS[self.kind])


def daily_spending(project: Project, judge: Judge | None = None) -> list[DailySpending]:
    """What was booked for a project's requests, or for those of one judge (its runs, and tests before it was saved), by
    day, person and kind: the newest day first, the largest amount first. A request that was never sent, and a reply
    that was used again, is none.
    """
    found = [
        (kind, *group)
        for kind, requests, day, person in _booked_requests(project, judge)
        for group in _by_day_and_person(requests, day=day, person=person)
    ]
    people = User.objects.in_bulk({person for _kind, _day, person, *_sums in found if person is not None})
    rows = [
        DailySpending(day=day, person=people.get(person), kind=kind, requests=count, unpriced=unpriced, cost=cost)
        for kind, day, person, count, unpriced, cost in found
    ]
    order = list(REQUEST_KINDS)
    return sorted(
        rows,
        key=lambda row: (
            -row.day.toordinal(), -(row.cost or 0), row.person_name, row.person.pk if row.person else 0,
            order.index(row.kind),
        ),
    )  # fmt: skip


def _booked_requests(project: Project, judge: Judge | None) -> Iterator[tuple[str, QuerySet[Any], str, str]]:
    """Every kind of requests that were sent, with the fields of their time and of the person who started them."""
    unsent = [Attempt.Outcome.PENDING, Attempt.Outcome.REUSED]
    attempts = Attempt.objects.filter(call__run__project=project).exclude(outcome__in=unsent)
    tests = JudgeTrial.objects.filter(project=project).exclude(sent_at=None)
    if judge is not None:
        attempts, tests = attempts.filter(call__run__judge=judge), tests.filter(digest=judge.digest)
    yield "runs", attempts.filter(call__run__file_import=None), "at", "call__run__created_by"
    yield "imported", attempts.exclude(call__run__file_import=None), "at", "call__run__created_by"
    yield "tests", tests, "sent_at", "created_by"
    if judge is None:
        proposals = AlignmentProposal.objects.filter(alignment__project=project).exclude(sent_at=None)
        texts = GenerationAttempt.objects.filter(realisation__plan__project=project).exclude(outcome__in=unsent)
        yield "proposals", proposals, "sent_at", "created_by"
        yield "texts", texts, "at", "realisation__plan__created_by"


def _by_day_and_person(requests: QuerySet[Any], *, day: str, person: str) -> Iterable[tuple[Any, ...]]:
    """Day, key of the person, requests, those without a cost, and USD."""
    grouped = requests.order_by().values_list(TruncDate(day, tzinfo=UTC), person)
    found: Iterable[tuple[Any, ...]] = grouped.annotate(
        count=Count("pk"), unpriced=Count("pk", filter=Q(cost=None)), total=Sum("cost")
    )
    return found


@dataclass(frozen=True, slots=True)
class SpendingTotal:
    """Requests, those without a cost, and USD booked, of several rows; USD is None where no price is known."""

    requests: int
    unpriced: int
    cost: Decimal | None


def spending_total(rows: Iterable[DailySpending]) -> SpendingTotal:
    """The rows added up."""
    listed = list(rows)
    costs = [row.cost for row in listed if row.cost is not None]
    sums = (sum(row.requests for row in listed), sum(row.unpriced for row in listed))
    return SpendingTotal(*sums, sum(costs, Decimal(0)) if costs else None)


def totals_by_person(rows: Iterable[DailySpending]) -> list[tuple[str, SpendingTotal]]:
    """By name, what each person's requests have come to, the largest amount first."""
    own: dict[tuple[int, str], list[DailySpending]] = {}
    for row in rows:
        own.setdefault((row.person.pk if row.person else 0, row.person_name), []).append(row)
    totals = [(name, spending_total(of_person)) for (_pk, name), of_person in own.items()]
    return sorted(totals, key=lambda total: (-(total[1].cost or 0), -total[1].requests, total[0]))


SPENDING_COLUMNS = ("day", "person", "kind", "requests", "requests_without_cost", "usd")


def spending_lines(rows: Sequence[DailySpending]) -> Iterator[tuple[Any, ...]]:
    """The rows as those of a file, under `SPENDING_COLUMNS`; USD as it is booked, with all its digits."""
    for row in rows:
        usd = None if row.cost is None else f"{row.cost:f}"
        yield row.day.isoformat(), row.person_name, row.kind, row.requests, row.unpriced, usd
