"""The texts of a plan, as leased rows (judging/asking/leases.py), and its generators, each as what asks in a session.

A reply is read by `translations.read_text` and never edited. One that breaks the rules is discarded with its problems,
which its attempt keeps; the text is asked for again, and the problems are told, up to the limit of the spec. Then it
ends without a text, with the reasons. A request that the provider refuses ends it at once.

All generators of a plan ask under its budget, whose row is locked while requests are chosen. A generator starts with
two requests in flight, and again when the plan is resumed; the first bill that is larger than declared pauses every
plan of the project that asks the same model.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.inputs import storable_value
from accounts.models import Project
from accounts.refusals import Refused
from annotation import bulk
from judging import judges
from judging.asking import allowances, budgets, leases, prices, sessions
from judging.asking.budgets import Cap, Committed, SentRequests
from judging.asking.client import ProviderAnswer, ProviderRefused, ProviderUnavailable
from judging.asking.leases import (
    SETTLED,
    LeasedRequest,
    LeasedRows,
    OutcomeT,
    RequestOutcome,
    RequestT,
    TakenRequests,
    affordable,
)
from judging.asking.paid_requests import PaidRequest, paid_request
from judging.generation import plans
from judging.generation.messages import WritingProblem
from judging.generation.sources import source_of
from judging.generation.specs import Spec, parse_spec
from judging.generation.translations import SourceText, read_text, text_messages, text_schema
from judging.generation.turn_rules import Written
from judging.models import GenerationAttempt, GenerationPlan, Judge, PlanGenerator, Realisation

SEEDS = 2**31  # of a request, where its generator declares one
ATTEMPT_COLUMNS = (
    *("id", "realisation_id", "number", "outcome", "request", "reply", "answer", "reason", "served_model"),
    *("reserved", "at", "cost", "problems", "provider", "model"),
)
MAY_ASK = Q(plan__only_examples=False) | Q(family__number__lte=plans.EXAMPLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest(LeasedRequest):
    """The request for one text, with what its reply is read by."""

    realisation: Realisation
    attempt: GenerationAttempt
    spec: Spec
    drawn: Mapping[str, str | int]
    source: SourceText | None

    @property
    def row(self) -> Realisation:
        return self.realisation


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOutcome(RequestOutcome):
    """The outcome of a request: the text, or the problems of a reply that is discarded, or a refusal, or the time of
    the next try."""

    text_request: TextRequest
    attempt: GenerationAttempt
    written: Written | None = None
    problems: Sequence[WritingProblem] = ()
    refusal: str = ""

    @property
    def asked(self) -> TextRequest:
        return self.text_request

    @property
    def settles(self) -> bool:
        return self.written is not None


class TextRows(LeasedRows[TextOutcome]):
    """The texts of plans, as leased rows."""

    rows: ClassVar[type[Realisation]] = Realisation
    attempts, askers = GenerationAttempt, PlanGenerator
    row_name, asker_name = "realisation", "generator"
    running = {"plan__state": GenerationPlan.State.RUNNING}
    folder = "holders-of-texts"
    related = ("plan", "generator")
    columns = ATTEMPT_COLUMNS
    settled_columns = (*SETTLED, "problems")
    settled_state = Realisation.State.WRITTEN
    own_rows = Q(step="")
    may_ask = MAY_ASK

    def most_tries(self, row: Realisation) -> int:
        return judges.pace(row.generator).tries

    def project_of(self, row: Realisation) -> int:
        return row.plan.project_id

    def end(self, held: QuerySet[Realisation], *, reason: str) -> None:
        held.update(state=Realisation.State.GIVEN_UP, reason=reason[:400], lease=None, leased_until=None)

    def store_replies(self, outcomes: Sequence[TextOutcome], *, repeated: Sequence[int]) -> None:
        self.move([outcome.asked.row.pk for outcome in outcomes], state=self.settled_state, not_before=None)
        rows: list[tuple[Any, ...]] = [
            (outcome.asked.row.pk, list(written.turns), dict(written.fields), [], "")
            for outcome in outcomes
            if (written := outcome.written) is not None
        ]
        bulk.update(Realisation, ("turns", "fields", "problems", "reason"), rows)

    def try_again(self, outcomes: Sequence[TextOutcome]) -> None:
        """As of any row; a text whose reply was discarded is asked for again, up to the limit of its spec."""
        discarded = [outcome for outcome in outcomes if outcome.problems]
        refused = [outcome for outcome in outcomes if outcome.refusal]
        super().try_again([outcome for outcome in outcomes if not (outcome.problems or outcome.refusal)])
        for outcome in refused:
            self.end(Realisation.objects.filter(pk=outcome.asked.row.pk), reason=outcome.refusal)
        if not discarded:
            return
        keys = [outcome.asked.row.pk for outcome in discarded]
        self.move(keys, state=leases.WAITING, not_before=None, tried=0)  # the provider did answer
        Realisation.objects.filter(pk__in=keys).update(discarded=F("discarded") + 1)
        problems = [(outcome.asked.row.pk, stored_problems(outcome.problems)) for outcome in discarded]
        bulk.update(Realisation, ("problems",), problems)
        for outcome in discarded:
            row = outcome.asked.row
            if row.discarded >= outcome.asked.spec.retries:
                codes = ", ".join(dict.fromkeys(problem.code for problem in outcome.problems))
                self.end(Realisation.objects.filter(pk=row.pk), reason=codes)

    def announce(self, asker: int) -> None:
        plans.announce_plan_end(PlanGenerator.objects.filter(pk=asker).values("plan"))


TEXTS = TextRows()


def stored_problems(problems: Sequence[WritingProblem]) -> list[dict[str, Any]]:
    """Problems as JSON that a database keeps: they quote what a model wrote."""
    return [storable_value(problem.stored) for problem in problems]


# --- requests ---------------------------------------------------------------------------------------------------------


class TextRequestWriter:
    """Writes the requests of one generator; `plan` is that of the generator, with its project."""

    def __init__(self, generator: PlanGenerator) -> None:
        self.generator, self.plan = generator, generator.plan
        self.spec = parse_spec(self.plan.spec)
        self._priced: dict[str, Any] = {
            "price": prices.price(generator, run=generator),
            "prices": prices.price_list(generator.provider, run=generator),
            "api": judges.endpoint(generator).api,
        }

    @property
    def is_paid(self) -> bool:
        """Whether a reply is known to cost something."""
        return any(self._priced["price"] or ())

    def write(self, realisation: Realisation, *, asked: int = 0) -> TextRequest:
        """The request for one text, which was ``asked`` for so often before. Its family is loaded with it, and the item
        that is translated."""
        realisation.plan, realisation.generator = self.plan, self.generator
        drawn, source = realisation.family.parameters, source_of(realisation.family)
        problems = [WritingProblem(problem["code"], problem["values"]) for problem in realisation.problems]
        paid = paid_request(
            provider=self.generator.provider,
            model=self.generator.model,
            messages=text_messages(self.spec, drawn, source, language=realisation.language, problems=problems),
            schema=text_schema(self.spec, source),
            parameters=self._parameters(realisation, asked),
            **self._priced,
        )
        return TextRequest(
            **{each.name: getattr(paid, each.name) for each in fields(PaidRequest)},
            realisation=realisation,
            attempt=GenerationAttempt(
                realisation=realisation, reserved=paid.worst_case, provider=paid.provider, model=paid.model
            ),
            spec=self.spec,
            drawn=drawn,
            source=source,
        )

    @property
    def has_seed(self) -> bool:
        """Whether the generator declares a seed."""
        return isinstance(self.generator.parameters.get("seed"), int)

    def _parameters(self, realisation: Realisation, asked: int) -> dict[str, Any]:
        """The generator's parameters. Where they declare a seed, every text and every new try has its own."""
        parameters = dict(self.generator.parameters)
        if self.has_seed:
            key: list[Any] = [parameters["seed"], self.plan.seed, realisation.family.number, realisation.language]
            key += [self.generator.name, realisation.repeat, asked]
            digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
            parameters["seed"] = int.from_bytes(digest[:6]) % SEEDS
        return parameters


def take_texts(
    *, generator: PlanGenerator, limit: int, lease: UUID, writer: TextRequestWriter, now: datetime | None = None
) -> TakenRequests[TextRequest]:
    """Lease up to ``limit`` texts that are due, and reserve what their requests may cost.

    Leases nothing if the plan is not running or `leases.MOST_HOLDERS` other workers ask this generator, and never more
    than the caps allow.
    """
    now = now or timezone.now()
    with transaction.atomic():
        plan = GenerationPlan.objects.select_for_update(no_key=True).get(pk=generator.plan_id)
        running = plan.state == GenerationPlan.State.RUNNING
        if not running or TEXTS.holders(generator, besides=lease, now=now) >= leases.MOST_HOLDERS:
            return TakenRequests(lease=lease)
        rows = list(TEXTS.due(generator.pk, now).select_related("family__source")[:limit])
        numbers = TEXTS.last_numbers([row.pk for row in rows]) if writer.has_seed else {}
        requests = [writer.write(row, asked=numbers.get(row.pk, 0)) for row in rows]
        held = plan_caps(plan, [generator.provider], now)
        if held and any(request.worst_case is None for request in requests):
            plans.refuse_plan_cap(plan.project, generator, plan.budget)
        windows = {}
        if writer.is_paid:
            model = generator.provider, generator.model
            windows[model] = most_requests_in_flight(plan, *model) - requests_in_flight(plan, *model, now)
        taken = affordable(requests, lease=lease, caps=held, windows=windows)
        TEXTS.lease(taken.requests, lease, now)
    return taken


# --- money ------------------------------------------------------------------------------------------------------------


def plan_caps(plan: GenerationPlan, providers: Sequence[str], now: datetime) -> list[Cap]:
    """The caps that apply to requests of a plan, which the caller has locked, to these providers: its budget, and those
    of the project at each. Refuses a provider that is not allowed."""
    caps = []
    if plan.budget is not None:
        sentence = _("The budget is spent, or the rest is too small for another request. Raise the budget and resume.")
        attempts = GenerationAttempt.objects.filter(realisation__plan=plan)
        caps.append(Cap(plan.budget, texts_committed(attempts), sentence))
    return caps + [cap for provider in providers for cap in allowances.locked_caps(plan.project, provider, now)]


def texts_committed(attempts: QuerySet[GenerationAttempt]) -> Committed:
    """What these attempts have cost, and what open or failed attempts among them may cost, in one query."""
    return budgets.committed_to_attempts(attempts, resumed="realisation__plan__bills_from")


def most_requests_in_flight(plan: GenerationPlan, provider: str, model: str) -> int:
    """How many requests of a plan to a model may be in flight, given its bills since the plan was started or
    resumed."""
    attempts = GenerationAttempt.objects.filter(realisation__plan=plan, provider=provider, model=model)
    return budgets.most_in_flight(attempts, since=plan.bills_from)


def requests_in_flight(plan: GenerationPlan, provider: str, model: str, now: datetime) -> int:
    """How many requests of a plan to a model belong to leased rows."""
    leased = {"realisation__state": Realisation.State.LEASED, "realisation__leased_until__gt": now}
    attempts = GenerationAttempt.objects.filter(realisation__plan=plan, outcome__in=GenerationAttempt.OPEN, **leased)
    return attempts.filter(provider=provider, model=model).count()


class PaidTexts:
    """The texts and conversations of generation plans, as a kind of paid requests."""

    titles: ClassVar = {"texts": gettext_lazy("Generated texts")}

    def spent(self, project: int, provider: str, since: datetime | None) -> Committed:
        """What the texts of a project's plans at a provider have cost, and what is reserved."""
        attempts = GenerationAttempt.objects.filter(realisation__plan__project=project, provider=provider)
        return texts_committed(attempts if since is None else attempts.filter(at__gte=since))

    def stop(self, project: int, *, provider: str, model: str, reason: str) -> None:
        """Pause all plans of a project that ask this model."""
        alike = PlanGenerator.objects.filter(plan__project=project, provider=provider, model=model)
        running = GenerationPlan.objects.filter(state=GenerationPlan.State.RUNNING, pk__in=alike.values("plan"))
        for plan in running.select_related("project").order_by("pk"):
            plans.pause_plan(plan=plan, reason=reason)

    def sent(self, project: Project, judge: Judge | None) -> Iterator[SentRequests]:
        """The attempts of plans; none is for one judge alone."""
        if judge is None:
            attempts = GenerationAttempt.objects.filter(realisation__plan__project=project)
            asked = attempts.exclude(outcome__in=GenerationAttempt.UNSENT)
            yield SentRequests("texts", asked, "at", "realisation__plan__created_by")


# --- a work session ---------------------------------------------------------------------------------------------------


def asked_model(generator: PlanGenerator) -> sessions.AskedModel:
    """A model of a plan as a work session asks it. Refused if its provider is not declared any more."""
    return sessions.AskedModel(judges.endpoint(generator), generator.model, judges.pace(generator), generator.width)


class RowAsker(sessions.Asker[RequestT, OutcomeT]):
    """What asks for rows of plans: a request without a usable reply ends or delays a text or a conversation alike."""

    @abstractmethod
    def outcome(self, asked: RequestT, lease: UUID, attempt: GenerationAttempt, **came: Any) -> OutcomeT:
        """The outcome of a request: its attempt, and what came of it."""

    def unread(self, asked: RequestT, answer: ProviderAnswer, lease: UUID, fault: Exception) -> OutcomeT:
        attempt, bill = self.rows.replied_attempt(asked, answer)
        attempt.problems, attempt.reason = [], f"This could not be read: {fault!r}"[:400]
        came = {"refusal": attempt.reason, "dropped": answer.dropped, "stops": bill.stops}
        return self.outcome(asked, lease, attempt, **came)

    def unavailable(self, asked: RequestT, unavailable: ProviderUnavailable, lease: UUID) -> OutcomeT:
        attempt, bill, retry_at = self.rows.unavailable_attempt(asked, unavailable)
        return self.outcome(asked, lease, attempt, retry_at=retry_at, stops=bill.stops)

    def refused(self, asked: RequestT, no: ProviderRefused, lease: UUID) -> OutcomeT:
        attempt, bill = self.rows.refused_attempt(asked, no)
        return self.outcome(asked, lease, attempt, refusal="" if no.fatal else no.reason, stops=bill.stops)

    def unstorable(self, outcome: OutcomeT, fault: Exception) -> OutcomeT:
        reason, kept = f"This could not be stored: {fault!r}"[:400], outcome.attempt
        asked: Any = outcome.asked
        paid = {name: getattr(kept, name) for name in ("outcome", "cost", "estimated", "doubt")}
        attempt = GenerationAttempt(pk=kept.pk, realisation=asked.row, reason=reason, **paid)
        return self.outcome(asked, outcome.lease, attempt, refusal=reason, stops=outcome.stops)


class GeneratorAsker(RowAsker[TextRequest, TextOutcome]):
    """A generator of a plan, as what asks. Refused if its provider is not declared any more."""

    rows = TEXTS

    def __init__(self, generator: PlanGenerator) -> None:
        self.subject, self.name = generator, f"Generation plan {generator.plan_id}, {generator.name}"
        self.writer = TextRequestWriter(generator)
        self.models = [asked_model(generator)]

    def is_running(self) -> bool:
        plan = GenerationPlan.objects.filter(pk=self.subject.plan_id, state=GenerationPlan.State.RUNNING)
        return plan.exists()

    def take(self, *, free: Mapping[sessions.ModelKey, int], lease: UUID) -> TakenRequests[TextRequest]:
        return take_texts(generator=self.subject, limit=sum(free.values()), lease=lease, writer=self.writer)

    def read(self, asked: TextRequest, answer: ProviderAnswer, lease: UUID) -> TextOutcome:
        attempt, bill = TEXTS.replied_attempt(asked, answer)
        came = read_text(
            asked.spec,
            asked.drawn,
            asked.source,
            language=asked.realisation.language,
            reply=answer.readable,
            finish_reason="content_filter" if answer.refusal else answer.finish_reason or "",
        )
        problems = () if isinstance(came, Written) else tuple(came)
        attempt.problems = stored_problems(problems)
        return TextOutcome(
            text_request=asked,
            lease=lease,
            attempt=attempt,
            written=came if isinstance(came, Written) else None,
            problems=problems,
            dropped=answer.dropped,
            stops=bill.stops,
        )

    def outcome(self, asked: TextRequest, lease: UUID, attempt: GenerationAttempt, **came: Any) -> TextOutcome:
        return TextOutcome(text_request=asked, lease=lease, attempt=attempt, **came)

    def pause(self, reason: str) -> None:
        plan = self.subject.plan
        several = plan.generators.count() > 1
        plans.pause_plan(plan=plan, reason=f"{self.subject.name}: {reason}" if several else reason)

    def save_widths(self, widths: Mapping[sessions.ModelKey, int]) -> None:
        [width] = widths.values()
        PlanGenerator.objects.filter(pk=self.subject.pk).update(width=width)


def work_on_generator(generator_pk: int) -> bool:
    """Write texts by a generator for one session. Returns True if texts may be due for the next session."""
    generator = PlanGenerator.objects.select_related("plan__project").filter(pk=generator_pk).first()
    if generator is None or generator.plan.state != GenerationPlan.State.RUNNING or sessions.is_stopping():
        return False
    TEXTS.release_dead()
    if TEXTS.holders(generator) >= leases.MOST_HOLDERS:
        return False
    try:
        asker = GeneratorAsker(generator)
    except Refused as no:
        plans.pause_plan(plan=generator.plan, reason=no.sentence)
        return False
    return sessions.work_as(asker)
