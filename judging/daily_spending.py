"""What was booked for paid requests, by day of UTC, by who started them, and by kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncDate
from django.utils.translation import gettext as _

from accounts.models import Project, User
from judging.asking import budgets
from judging.asking.budgets import SentRequests
from judging.models import Judge


def request_kinds() -> dict[str, Any]:
    """The names and titles of the requests that cost money, of every registered kind."""
    return {name: title for kind in budgets.paid_kinds() for name, title in kind.titles.items()}


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
        return str(request_kinds()[self.kind])


def daily_spending(project: Project, judge: Judge | None = None) -> list[DailySpending]:
    """What was booked for a project's requests, or for those of one judge (its runs, and tests before it was saved), by
    day, person and kind: the newest day first, the largest amount first. A request that was never sent, and a reply
    that was used again, is none.
    """
    found = [
        (requests.name, *group)
        for kind in budgets.paid_kinds()
        for requests in kind.sent(project, judge)
        for group in _by_day_and_person(requests)
    ]
    people = User.objects.in_bulk({person for _kind, _day, person, *_sums in found if person is not None})
    rows = [
        DailySpending(day=day, person=people.get(person), kind=kind, requests=count, unpriced=unpriced, cost=cost)
        for kind, day, person, count, unpriced, cost in found
    ]
    order = list(request_kinds())
    return sorted(
        rows,
        key=lambda row: (
            -row.day.toordinal(), -(row.cost or 0), row.person_name, row.person.pk if row.person else 0,
            order.index(row.kind),
        ),
    )  # fmt: skip


def _by_day_and_person(requests: SentRequests) -> Iterable[tuple[Any, ...]]:
    """Day, key of the person, requests, those without a cost, and USD."""
    grouped = requests.rows.order_by().values_list(TruncDate(requests.day, tzinfo=UTC), requests.person)
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
