"""What judges may spend: the caps of a run, of its design or alignment, and of the project at the provider.

All caps are enforced in the same way (judging/asking/budgets.py). The worst case of a call is reserved in the
transaction that leases the call. A day is a day of UTC.
"""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_FLOOR, Decimal

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Job
from accounts.refusals import Refused
from judging.asking import allowances, budgets, endpoints, prices
from judging.asking.allowances import LARGEST_CAP
from judging.asking.budgets import Cap, Committed
from judging.models import Alignment, AlignmentProposal, Attempt, Call, Judge, JudgeDesign, JudgeRun


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
