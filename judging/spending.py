"""What judges may spend: the providers a project may use, what a request costs at worst, what is left of the caps.

Three caps hold: a run's budget, and the total and the day of a project at a provider. All are kept the same way. A
request's worst case is reserved, in the transaction that leases its call, before it is sent; whatever comes of it
replaces the reservation by what was paid. Money is read from the attempts in one query under a lock on the caps, so two
workers never spend the same dollar. A day is a day of UTC.

A provider can bill more than it declared, and the first such bill is known only when others are in flight. So a cap has
so many requests in flight that they keep it though each costs `DEAREST` times its worst case; two may always be. What
failed with an error of the server costs nothing, and may be billed all the same: the cap is kept to that, too.

The replies of a design's pilot say what its other calls may cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, ROUND_UP, Decimal
from typing import Any

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import audit
from accounts.models import Project, User
from accounts.refusals import Refused
from judging import providers
from judging.models import Alignment, AlignmentProposal, Attempt, Call, Judge, JudgeDesign, JudgeRun, ProviderAllowance
from judging.prompts import Message
from judging.provider_declarations import price_table
from judging.refused_parts import TOKEN_LIMITS

FEWEST_PILOT_CALLS = 5
"""Replies of a pilot below which the forecast gets no interval."""
LARGEST_CAP = Decimal(100_000)
MOST_COST = Decimal(9_999)  # what the column holds
SMALLEST = Decimal("0.00000001")
DEAREST = 32
"""Times its worst case that a request may cost, and the requests in flight still keep a cap."""
MOST_IN_FLIGHT = 10_000
"""More than any run has in flight."""
UNPROVEN = 2
"""Requests that may be in flight under a cap, or of a run, before any bill of it is known."""
PER_MESSAGE = 16  # tokens of the frame that a provider puts around a message


def price(judge: Judge, *, by_batch: bool = False, run: JudgeRun | None = None) -> tuple[Decimal, Decimal] | None:
    """USD per million tokens in and out: what it was when the ``run`` was started, else what the operator declares now;
    None when it is not declared."""
    if run is not None and (kept := providers.kept_price(run.prices, judge.model, by_batch=by_batch)) is not None:
        return kept
    provider = providers.find_provider(judge.provider)
    return provider.price(judge.model, by_batch=by_batch) if provider else None


def price_list(
    judge: Judge, *, by_batch: bool = False, run: JudgeRun | None = None
) -> dict[str, tuple[Decimal, Decimal]]:
    """The prices of every model of the judge's provider: those that the ``run`` keeps before those of now."""
    provider = providers.find_provider(judge.provider)
    tables: list[Mapping[str, Any]] = []
    for name in ("prices", "batch_prices") if by_batch else ("prices",):
        tables.append(price_table(getattr(provider, name)) if provider else {})
        tables.append(run.prices.get(name, {}) if run else {})
    # Those of batches come last, and those that were kept after those of now.
    return {model: (Decimal(into), Decimal(out)) for table in tables for model, (into, out) in table.items()}


def token_limit(parameters: Mapping[str, Any]) -> int | None:
    """How many tokens a reply has at most by a judge's parameters; None when they don't say."""
    limits = [parameters[name] for name in TOKEN_LIMITS if name in parameters]
    known = [limit for limit in limits if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0]
    return max(known) if known and len(known) == len(limits) else None


def cost(
    judge: Judge, tokens_in: int, tokens_out: int, *, by_batch: bool = False, run: JudgeRun | None = None
) -> Decimal | None:
    """What so many tokens cost, in USD; None without a price."""
    paid = price(judge, by_batch=by_batch, run=run)
    return None if paid is None else cost_at(paid, tokens_in, tokens_out)


def cost_at(paid: tuple[Decimal, Decimal], tokens_in: int, tokens_out: int) -> Decimal:
    """What so many tokens cost at a price, at most what the column holds."""
    exact = (paid[0] * tokens_in + paid[1] * tokens_out) / 1_000_000
    return min(MOST_COST, exact).quantize(SMALLEST, rounding=ROUND_UP)


def worst_case(
    judge: Judge,
    *,
    messages: Sequence[Message],
    schema: Mapping[str, Any],
    parameters: Mapping[str, Any],
    by_batch: bool = False,
    run: JudgeRun | None = None,
) -> Decimal | None:
    """The most that a request can cost: no token is shorter than a byte, and no reply longer than its limit.

    None where no price is known, or where the reply has no limit and costs something.
    """
    paid, limit = price(judge, by_batch=by_batch, run=run), token_limit(parameters)
    if paid is None or (limit is None and paid[1]):
        return None
    return cost(judge, most_tokens(messages, schema), limit or 0, by_batch=by_batch, run=run)


def most_tokens(messages: Sequence[Message], schema: Mapping[str, Any]) -> int:
    """No request of these messages has more tokens: one a byte, and the frame around each message."""
    texts = sum(len(message["content"].encode("utf-8", "replace")) + PER_MESSAGE for message in messages)
    return texts + len(orjson.dumps(schema)) + PER_MESSAGE


def costs(run: JudgeRun) -> bool:
    """Whether a reply to the run is known to cost something."""
    return any(price(run.judge, by_batch=run.by_batch, run=run) or ())


# --- allowances ---------------------------------------------------------------------------------------------------


def refuse_batches(judge: Judge, by_batch: bool = True) -> None:
    """Refuse to ask ``by_batch`` a judge whose provider is not declared to have a batch API."""
    if by_batch and not has_batches(judge):
        sentence = _("“%s” is not declared to have a batch API. The operator adds “batches”: true to the provider.")
        sentence %= judge.provider
        raise Refused(sentence, code="batches")


def has_batches(judge: Judge) -> bool:
    """Whether the judge's provider is declared to have a batch API."""
    provider = providers.find_provider(judge.provider)
    return provider is not None and provider.batches


def needs_allowance(provider: str) -> bool:
    """Whether a declared provider may be used only by projects that are allowed it: it is not a simulated one."""
    declared = providers.find_provider(provider)
    return declared is not None and not declared.simulated


def allowance(project: Project, provider: str) -> ProviderAllowance | None:
    """What a project may spend at a provider; None at a simulated one. Refuses a provider that is not allowed."""
    if not needs_allowance(provider):
        return None
    provider_allowance = ProviderAllowance.objects.filter(project=project, provider=provider).first()
    if provider_allowance is None:
        raise Refused(_not_allowed(project, provider), code="provider_not_allowed")
    return provider_allowance


def _not_allowed(project: Project, provider: str) -> str:
    sentence = _(
        "This project may not use the provider “%(provider)s”. The operator can allow it with: panelbench "
        "allow_provider %(project)s %(provider)s --cap USD"
    )
    return sentence % {"provider": provider, "project": project.slug}


def allow(
    *,
    project: Project,
    provider: str,
    cap_total: Decimal | None = None,
    cap_per_day: Decimal | None = None,
    actor: User | None = None,
) -> ProviderAllowance:
    """Allow a project to use a declared provider within these caps; calling it again changes the caps."""
    if providers.find_provider(provider) is None:
        declared = ", ".join(providers.all_providers()) or _("none")
        sentence = _("The provider “%(name)s” is not declared (declared: %(declared)s).")
        raise Refused(sentence % {"name": provider, "declared": declared}, code="unknown_provider")
    for cap in (cap_total, cap_per_day):
        if cap is not None and not 0 <= cap <= LARGEST_CAP:
            raise Refused(_("A cap must be from 0 to %s USD.") % LARGEST_CAP, code="cap")
    with transaction.atomic():
        caps = {"cap_total": cap_total, "cap_per_day": cap_per_day}
        allowed, _made = ProviderAllowance.objects.update_or_create(project=project, provider=provider, defaults=caps)
        audit.record(actor=actor, project=project, verb="allow provider", subject=allowed, fields=sorted(caps))
    return allowed


def revoke(*, project: Project, provider: str, actor: User | None = None) -> bool:
    """Take a provider from a project: its runs there pause. False when it was not allowed."""
    with transaction.atomic():
        allowed = ProviderAllowance.objects.filter(project=project, provider=provider).first()
        if allowed is None:
            return False
        audit.record(actor=actor, project=project, verb="revoke provider", subject=allowed)
        allowed.delete()
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """A provider that a project may use, for people to read: its caps, and what is spent or reserved of them."""

    provider: str
    simulated: bool = False
    cap_total: Decimal | None = None
    cap_per_day: Decimal | None = None
    spent: Decimal | None = None
    spent_today: Decimal | None = None


def allowed_providers(project: Project) -> list[Allowed]:
    """Every provider that a project may use: those it is allowed, and the simulated ones."""
    rows = [
        Allowed(
            provider=provider_allowance.provider,
            cap_total=provider_allowance.cap_total,
            cap_per_day=provider_allowance.cap_per_day,
            spent=_spent_at(project.pk, provider_allowance.provider).all,
            spent_today=_spent_at(project.pk, provider_allowance.provider, _midnight()).all,
        )
        for provider_allowance in ProviderAllowance.objects.filter(project=project)
    ]
    named = {row.provider for row in rows}
    simulated = [name for name, provider in settings.PROVIDERS.items() if provider.simulated and name not in named]
    return [*rows, *(Allowed(provider=name, simulated=True) for name in simulated)]


# --- caps ---------------------------------------------------------------------------------------------------------


def refuse_cap(judge: Judge, *, budget: Decimal | None, run: JudgeRun | None = None) -> None:
    """Refuse a cap that could not be kept, which would be worse than none: the run's own, or the project's."""
    if budget is not None and not 0 <= budget <= LARGEST_CAP:
        sentence = _("A budget must be from 0 to %s USD.") % LARGEST_CAP
        raise Refused(sentence, code="budget", fields={"budget": sentence})
    if budget is not None and (sentence := _unkept(judge, run)):
        sentence = f"{sentence} {_('Or leave the budget empty.')}"
        raise Refused(sentence, code="budget", fields={"budget": sentence})
    if sentence := _unkept(judge, run):
        allowed = allowance(judge.project, judge.provider)
        if allowed and (allowed.cap_total is not None or allowed.cap_per_day is not None):
            project_cap = _("The operator has limited what this project can spend at %(provider)s.")
            raise Refused(f"{project_cap % {'provider': judge.provider}} {sentence}", code="cap")


def budget_of(run: JudgeRun) -> Decimal | None:
    """The cap of a run: its own, or that of its design or alignment; None without one."""
    whole = run.design or run.alignment
    return run.budget if run.budget is not None or whole is None else whole.budget


def _unkept(judge: Judge, run: JudgeRun | None) -> str:
    """Why no cap can be kept with this judge; empty when it can."""
    paid = price(judge, run=run)
    if paid is None:
        named = {"model": judge.model, "provider": judge.provider}
        sentence = _("No price is declared for %(model)s at %(provider)s, so a budget can't be guaranteed.") % named
        return f"{sentence} {_('Ask the operator to declare its price.')}"
    if paid[1] and token_limit(judge.parameters) is None:
        return _(
            "This judge sets no limit on the tokens of a reply, so a budget can't be guaranteed. Set "
            "“max_tokens” or “max_completion_tokens” in its parameters, for example to 400."
        )
    return ""


@dataclass(frozen=True, slots=True)
class Committed:
    """USD paid, and USD reserved for the requests whose end is not known yet, so many `in_flight`.

    `failed`: USD that so many `failures` of the provider, booked at nothing, can be billed at most.
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


@dataclass(frozen=True, slots=True)
class Cap:
    """A cap that holds for a run, what is committed of it, and what to say when it is reached."""

    amount: Decimal
    committed: Committed
    sentence: str

    @property
    def left(self) -> Decimal:
        """USD that no request has reserved or spent, nor may have been billed though it failed."""
        return self.amount - self.committed.all - self.committed.failed

    def allows(self, worst: Decimal, *, more: int = 0, reserved: Decimal = Decimal(0)) -> bool:
        """Whether a request of this worst case may be sent after so many ``more``, for which so much is ``reserved``.

        All in flight keep the cap though they cost `DEAREST` times as much; two may be, if they keep it as they are.
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


def caps(run: JudgeRun, *, now: datetime | None = None) -> list[Cap]:
    """The caps that hold for a run, locked until the end of the transaction. Refuses a provider that is not allowed.

    ``run`` is locked by the caller. Every sum is one query: a request that another worker settles meanwhile is in it
    as reserved or as paid, never twice and never not at all.
    """
    run_caps = []
    if run.budget is not None:
        sentence = _("The budget is spent, or the rest is too small for another call. Raise the budget and resume.")
        run_caps.append(Cap(run.budget, committed(Attempt.objects.filter(call__run=run)), sentence))
    if run.design_id is not None:
        run_caps += _design_caps(JudgeDesign.objects.select_for_update(no_key=True).get(pk=run.design_id))
    if run.alignment_id is not None:
        run_caps += _alignment_caps(Alignment.objects.select_for_update(no_key=True).get(pk=run.alignment_id))
    if needs_allowance(run.judge.provider):
        rows = ProviderAllowance.objects.select_for_update(no_key=True)
        allowed = rows.filter(project=run.project_id, provider=run.judge.provider).first()
        if allowed is None:
            raise Refused(_not_allowed(run.project, run.judge.provider), code="provider_not_allowed")
        run_caps += _project_caps(allowed, now or timezone.now())
    return run_caps


def _design_caps(design: JudgeDesign) -> list[Cap]:
    """The cap of all runs of a design together, its pilot's included."""
    if design.budget is None:
        return []
    sentence = _(
        "The budget of the design is spent, or the rest is too small for another call. Raise it and resume the design."
    )
    return [Cap(design.budget, committed(Attempt.objects.filter(call__run__design=design.pk)), sentence)]


def _alignment_caps(alignment: Alignment) -> list[Cap]:
    """The cap of everything that an alignment asks."""
    if alignment.budget is None:
        return []
    sentence = _(
        "The budget of the alignment is spent, or the rest is too small for another call. Raise it and resume."
    )
    return [Cap(alignment.budget, committed_of_alignment(alignment), sentence)]


def reserve_proposal(proposal: AlignmentProposal, worst: Decimal | None) -> None:
    """Reserve what a proposal can cost at most, and mark it as sent; refused where a cap is too small for it."""
    alignment = proposal.alignment
    with transaction.atomic():
        held = _alignment_caps(Alignment.objects.select_for_update(no_key=True).get(pk=alignment.pk))
        allowed = allowance(alignment.project, proposal.provider)
        if allowed is not None:
            locked = ProviderAllowance.objects.select_for_update(no_key=True).get(pk=allowed.pk)
            held += _project_caps(locked, timezone.now())
        for cap in held:
            if worst is None or cap.left < worst:
                raise Refused(cap.sentence, code="budget")
        AlignmentProposal.objects.filter(pk=proposal.pk).update(reserved=worst, sent_at=timezone.now())


def committed_of_alignment(alignment: Alignment) -> Committed:
    """What the runs and proposals of an alignment have cost, and what is reserved."""
    attempts = Attempt.objects.filter(call__run__alignment=alignment.pk)
    return committed(attempts) + _of_proposals(AlignmentProposal.objects.filter(alignment=alignment.pk))


def _of_proposals(proposals: QuerySet[AlignmentProposal]) -> Committed:
    """What proposals that were sent have cost; one without a cost counts at its worst case."""
    zero = Decimal(0)
    sums = proposals.exclude(sent_at=None).aggregate(
        paid=Coalesce(Sum("cost"), zero), reserved=Coalesce(Sum("reserved", filter=Q(cost=None)), zero)
    )
    return Committed(sums["paid"], sums["reserved"])


def share_of_design(run: JudgeRun, design: JudgeDesign) -> Decimal:
    """USD that a run of a design with a cap may come to without it: what it has spent, and its part of what is left.

    The rest of the cap is divided equally by the runs that have calls to ask, so that together they keep it.
    """
    spent = committed(Attempt.objects.filter(call__run=run)).all
    waiting = Call.objects.filter(run__design=design, run__is_pilot=False).exclude(
        state__in=[Call.State.SETTLED, Call.State.FAILED]
    )
    waiting = waiting.exclude(run__state=JudgeRun.State.CANCELLED)
    under_way = set(waiting.order_by().values_list("run", flat=True).distinct())
    rest = max(Decimal(0), sum((cap.left for cap in _design_caps(design)), Decimal(0)))
    part = rest / len(under_way) if run.pk in under_way else Decimal(0)
    return (spent + part).quantize(Decimal("0.000001"), ROUND_FLOOR)


def _project_caps(allowed: ProviderAllowance, now: datetime) -> list[Cap]:
    named = {"provider": allowed.provider}
    project_caps = []
    if allowed.cap_total is not None:
        sentence = _(
            "The project has spent its limit at %(provider)s, or the rest is too small for another call. Ask the "
            "operator to raise the limit."
        )
        spent = _spent_at(allowed.project_id, allowed.provider)
        project_caps.append(Cap(allowed.cap_total, spent, sentence % named))
    if allowed.cap_per_day is not None:
        sentence = _(
            "The project has spent its daily limit at %(provider)s, or the rest is too small for another call. "
            "Resume after midnight UTC, or ask the operator to raise the limit."
        )
        spent = _spent_at(allowed.project_id, allowed.provider, _midnight(now))
        project_caps.append(Cap(allowed.cap_per_day, spent, sentence % named))
    return project_caps


def _spent_at(project: int, provider: str, since: datetime | None = None) -> Committed:
    """What a project has spent at a provider, on calls and on proposals of versions; two queries."""
    attempts = Attempt.objects.filter(call__run__project=project, call__run__judge__provider=provider)
    proposals = AlignmentProposal.objects.filter(alignment__project=project, provider=provider)
    if since is not None:
        attempts, proposals = attempts.filter(at__gte=since), proposals.filter(sent_at__gte=since)
    return committed(attempts) + _of_proposals(proposals)


def _midnight(now: datetime | None = None) -> datetime:
    today = (now or timezone.now()).astimezone(UTC)
    return today.replace(hour=0, minute=0, second=0, microsecond=0)


def committed(attempts: QuerySet[Attempt]) -> Committed:
    """What some attempts cost, and what those that are open or have failed may cost, in one query."""
    zero = Decimal(0)
    still_open = Q(outcome__in=Attempt.OPEN)
    since_resumed = Q(call__run__bills_from=None) | Q(at__gte=F("call__run__bills_from"))
    failed = Q(doubt=Attempt.Doubt.FAILED) & since_resumed
    sums = attempts.aggregate(
        paid=Coalesce(Sum("cost", filter=~still_open), zero),
        open_cost=Coalesce(Sum("reserved", filter=still_open), zero),
        in_flight=Count("pk", filter=still_open),
        failed=Coalesce(Sum("reserved", filter=failed), zero),
        failures=Count("pk", filter=failed),
    )
    return Committed(reserved=sums.pop("open_cost"), **sums)


def most_in_flight(run: JudgeRun) -> int:
    """How many calls of a run may be in flight by the bills since it was started or resumed: two, and one more for each
    that agreed with its reservation, so that their number doubles as bills come in.

    A batch takes a day: two calls first, and as many as the caps allow once their bills agree.
    """
    agreed = Attempt.objects.filter(call__run=run, outcome=Attempt.Outcome.REPLIED, estimated=False, doubt="")
    if run.bills_from is not None:
        agreed = agreed.filter(at__gte=run.bills_from)
    if run.by_batch:
        return MOST_IN_FLIGHT if agreed.exists() else UNPROVEN
    return UNPROVEN + agreed.order_by()[:MOST_IN_FLIGHT].count()


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotForecast:
    """What the replies of a pilot say of the calls that have none yet: a total and its 95 % interval.

    ``calls``: how many replies it rests on. ``cost`` is None without a price. ``unanswered``: the judges of the design
    that no reply is from, without which there is no interval.
    """

    calls: int
    tokens: Range
    cost: Range | None
    unanswered: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Range:
    """A forecast total with the bounds of its interval; no bounds where too few replies are known."""

    value: Decimal
    low: Decimal | None = None
    high: Decimal | None = None


STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""Upper 2.5 % points of Student's t with 1, 2, ... degrees of freedom."""


def ratio_forecast(replies: Sequence[tuple[float, float]], *, expected: float, calls: int) -> Range:
    """The total over ``calls`` new calls that were ``expected`` to come to so much; ``replies``: actual and expected.

    Ratio estimator (Cochran 1977, 6.3): R = sum a / sum e, total = R * expected. The 95 % interval has the error of R
    and the spread of the new calls around it: var = (expected / sum e)^2 n s^2 + calls s^2, s^2 = sum (a - R e)^2 /
    (n - 1), Student's t with n - 1 degrees of freedom. No interval from fewer than FEWEST_PILOT_CALLS replies.
    """
    n, actual, base = len(replies), sum(a for a, _e in replies), sum(e for _a, e in replies)
    ratio = actual / base if base else 0.0
    total = ratio * expected
    if n < FEWEST_PILOT_CALLS or not base:
        return Range(_decimal(total))
    spread = sum((a - ratio * e) ** 2 for a, e in replies) / (n - 1)
    error = math.sqrt((expected / base) ** 2 * n * spread + calls * spread)
    half = STUDENT[min(n - 1, len(STUDENT)) - 1] * error
    return Range(_decimal(total), _decimal(max(0.0, total - half)), _decimal(total + half))


def _decimal(number: float) -> Decimal:
    return Decimal(f"{number:.8f}")
