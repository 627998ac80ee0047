"""What judges may spend: the caps of a run, of its design or alignment, and of the project at the provider.

All caps are enforced in the same way (judging/asking/budgets.py). The worst case of a call is reserved in the
transaction that leases the call. A day is a day of UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import Job, Project, User
from accounts.refusals import Refused
from judging.asking import allowances, budgets, endpoints, prices
from judging.asking.allowances import LARGEST_CAP
from judging.asking.budgets import Cap, Committed
from judging.models import (
    Alignment,
    AlignmentProposal,
    Attempt,
    Call,
    GenerationAttempt,
    Judge,
    JudgeDesign,
    JudgeRun,
    JudgeTrial,
)


def costs(run: JudgeRun) -> bool:
    """Whether a reply to the run is known to cost something."""
    return any(prices.price(run.judge, by_batch=run.by_batch, run=run) or ())


def refuse_batches(judge: Judge, by_batch: bool = True) -> None:
    """Refuse to ask ``by_batch`` a judge whose provider is not declared to have a batch API."""
    if by_batch and not has_batches(judge):
        sentence = _("“%s” is not declared to have a batch API. The operator adds “batches”: true to the provider.")
        sentence %= judge.provider
        raise Refused(sentence, code="batches")


def has_batches(judge: Judge) -> bool:
    """Whether the judge's provider is declared to have a batch API."""
    provider = endpoints.find_provider(judge.provider)
    return provider is not None and provider.batches


def refuse_cap(judge: Judge, *, budget: Decimal | None, run: JudgeRun | None = None) -> None:
    """Refuse a budget, or a cap of the project, that can't be guaranteed for this judge: it would be misleading."""
    if budget is not None and not 0 <= budget <= LARGEST_CAP:
        sentence = _("A budget must be from 0 to %s USD.") % LARGEST_CAP
        raise Refused(sentence, code="budget", fields={"budget": sentence})
    if budget is not None and (sentence := _unkept(judge, run)):
        sentence = f"{sentence} {_('Or leave the budget empty.')}"
        raise Refused(sentence, code="budget", fields={"budget": sentence})
    if sentence := _unkept(judge, run):
        allowed = allowances.allowance(judge.project, judge.provider)
        if allowed and (allowed.cap_total is not None or allowed.cap_per_day is not None):
            project_cap = _("The operator has limited what this project can spend at %(provider)s.")
            raise Refused(f"{project_cap % {'provider': judge.provider}} {sentence}", code="cap")


def budget_of(run: JudgeRun) -> Decimal | None:
    """The budget of a run, or the budget of its design or alignment if the run has none; None if there is no budget."""
    whole = run.design or run.alignment
    return run.budget if run.budget is not None or whole is None else whole.budget


def _unkept(judge: Judge, run: JudgeRun | None) -> str:
    """Why no cap can be guaranteed for this judge; empty if it can be guaranteed."""
    paid = prices.price(judge, run=run)
    if paid is None:
        named = {"model": judge.model, "provider": judge.provider}
        sentence = _("No price is declared for %(model)s at %(provider)s, so a budget can't be guaranteed.") % named
        return f"{sentence} {_('Ask the operator to declare its price.')}"
    if paid[1] and prices.token_limit(judge.parameters) is None:
        return _(
            "This judge sets no limit on the tokens of a reply, so a budget can't be guaranteed. Set "
            "“max_tokens” or “max_completion_tokens” in its parameters, for example to 400."
        )
    return ""


def caps(run: JudgeRun, *, now: datetime | None = None) -> list[Cap]:
    """The caps that apply to a run, locked until the end of the transaction. Refuses a provider that is not allowed.

    The caller has locked ``run``. Every sum is one query: a request that another worker settles at the same time is
    counted exactly once, as reserved or as paid.
    """
    run_caps = []
    if run.budget is not None:
        sentence = _("The budget is spent, or the rest is too small for another call. Raise the budget and resume.")
        run_caps.append(Cap(run.budget, committed_to_calls(Attempt.objects.filter(call__run=run)), sentence))
    if run.design_id is not None:
        run_caps += _design_caps(JudgeDesign.objects.select_for_update(no_key=True).get(pk=run.design_id))
    if run.alignment_id is not None:
        run_caps += alignment_caps(Alignment.objects.select_for_update(no_key=True).get(pk=run.alignment_id))
    return run_caps + allowances.locked_caps(run.project, run.judge.provider, now or timezone.now())


def _design_caps(design: JudgeDesign) -> list[Cap]:
    """The cap of all runs of a design together, including its pilot; an empty list if it has no budget."""
    if design.budget is None:
        return []
    sentence = _(
        "The budget of the design is spent, or the rest is too small for another call. Raise it and resume the design."
    )
    return [Cap(design.budget, committed_to_calls(Attempt.objects.filter(call__run__design=design.pk)), sentence)]


def alignment_caps(alignment: Alignment) -> list[Cap]:
    """The cap of all runs and proposals of an alignment; an empty list if it has no budget."""
    if alignment.budget is None:
        return []
    sentence = _(
        "The budget of the alignment is spent, or the rest is too small for another call. Raise it and resume."
    )
    return [Cap(alignment.budget, committed_of_alignment(alignment), sentence)]


def committed_of_alignment(alignment: Alignment) -> Committed:
    """What the runs and proposals of an alignment have cost, and what is reserved."""
    attempts = Attempt.objects.filter(call__run__alignment=alignment.pk)
    return committed_to_calls(attempts) + committed_to_proposals(
        AlignmentProposal.objects.filter(alignment=alignment.pk)
    )


def committed_to_proposals(proposals: QuerySet[AlignmentProposal]) -> Committed:
    """What the proposals that were sent have cost; a proposal without a cost counts at its worst case.

    The provider may bill a proposal even if it failed with a server error: its worst case counts until somebody asks
    for another proposal of the alignment.
    """
    later = AlignmentProposal.objects.filter(alignment=OuterRef("alignment"), pk__gt=OuterRef("pk"))
    return budgets.committed(
        proposals.exclude(sent_at=None),
        is_open=Q(cost=None),
        may_be_billed=~Q(Exists(later)),
        in_flight=Q(cost=None, reserved__gt=0, job__state__in=Job.OPEN),
    )


def share_of_design(run: JudgeRun, design: JudgeDesign) -> Decimal:
    """USD that a run may cost without its design, which has a cap: what it has spent, and its share of what is left.

    The rest of the cap is divided equally among the runs that have calls to ask, so that together they stay within it.
    """
    spent = committed_to_calls(Attempt.objects.filter(call__run=run)).all
    waiting = Call.objects.filter(run__design=design, run__is_pilot=False).exclude(
        state__in=[Call.State.SETTLED, Call.State.FAILED]
    )
    waiting = waiting.exclude(run__state=JudgeRun.State.CANCELLED)
    under_way = set(waiting.order_by().values_list("run", flat=True).distinct())
    rest = max(Decimal(0), sum((cap.left for cap in _design_caps(design)), Decimal(0)))
    part = rest / len(under_way) if run.pk in under_way else Decimal(0)
    return (spent + part).quantize(Decimal("0.000001"), ROUND_FLOOR)


def committed_to_calls(attempts: QuerySet[Attempt]) -> Committed:
    """What these attempts have cost, and what open or failed attempts among them may cost, in one query."""
    return budgets.committed_to_attempts(attempts, resumed="call__run__bills_from")


def most_calls_in_flight(run: JudgeRun) -> int:
    """How many calls of a run may be in flight, given its bills since it was started or resumed.

    A batch can take a day: its first batch has two calls; after one bill has agreed, only the caps limit the number.
    """
    attempts = Attempt.objects.filter(call__run=run)
    if run.by_batch:
        has_agreed = budgets.agreed_attempts(attempts, since=run.bills_from).exists()
        return budgets.MOST_IN_FLIGHT if has_agreed else budgets.UNPROVEN
    return budgets.most_in_flight(attempts, since=run.bills_from)


# --- what was booked, by day and by who started it --------------------------------------------------------------------
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
