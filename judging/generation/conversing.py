"""The conversations of simulations, as leased rows (judging/asking/leases.py), and a plan as what asks in a session.

The row of a conversation is leased for each of its requests: a user turn, the verdict on it, a chatbot's answer. A
reply moves the row to its next step (judging/generation/steps.py) in the transaction that books it, and the row waits
to be leased again: a conversation can be resumed at its turn, and a worker that dies loses no more than the requests in
flight. A reply that comes late moves its row only if that is still at the step that the reply is about.

The first turn is a row of its own, the opening, that the conversations with all chatbots wait for. A session asks all
models of the plan, each within its limits; the budget of the plan covers them all, and every provider has the caps of
the project. Chatbots are told their system text and the turns, and nothing of the scene or the persona.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from accounts.inputs import storable
from accounts.refusals import Refused
from annotation import bulk
from judging import judges
from judging.asking import leases, prices, sessions
from judging.asking.budgets import Cap
from judging.asking.client import ProviderAnswer
from judging.asking.leases import SETTLED, LeasedRequest, LeasedRows, RequestOutcome, TakenRequests, affordable
from judging.asking.paid_requests import PaidRequest, paid_request
from judging.generation import plans, steps, writing
from judging.generation.messages import WritingProblem
from judging.generation.specs import parse_spec
from judging.generation.steps import LONGEST_DRAFT, REFUSED_BY_JUDGE, StepProgress
from judging.generation.user_agent import answer_messages, utterance_messages, without_stop
from judging.generation.utterance_judge import UtteranceJudge
from judging.models import GenerationAttempt, GenerationPlan, PlanGenerator, Realisation
from judging.prompts import Message

Step = Realisation.Step
DUE_STEPS = (Step.UTTERANCE, Step.VERDICT, Step.ANSWER)
ROW_COLUMNS = (
    *("state", "lease", "leased_until", "not_before", "tries", "step", "turn", "draft", "refused_tries", "ended"),
    *("problems", "reason", "turns", "decision", "decision_reason", "losses"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest(LeasedRequest):
    """The request for the next step of a conversation, which is that of its row when it was leased."""

    realisation: Realisation
    attempt: GenerationAttempt

    @property
    def row(self) -> Realisation:
        return self.realisation


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome(RequestOutcome):
    """The outcome of a request: where the conversation stands after its reply, or a refusal, or the time of the next
    try."""

    step_request: StepRequest
    attempt: GenerationAttempt
    progress: StepProgress | None = None
    refusal: str = ""

    @property
    def asked(self) -> StepRequest:
        return self.step_request

    @property
    def settles(self) -> bool:
        return self.progress is not None and not self.progress.is_discarded

    @property
    def leaves_waiting(self) -> bool:
        return self.progress is not None and self.progress.state == leases.WAITING


class ConversationRows(LeasedRows[StepOutcome]):
    """Conversations and their openings, as leased rows."""

    rows: ClassVar[type[Realisation]] = Realisation
    attempts, askers = GenerationAttempt, GenerationPlan
    row_name, asker_name = "realisation", "plan"
    running = {"state": GenerationPlan.State.RUNNING}
    folder = "holders-of-conversations"
    related = ("plan__utterance_judge", "generator", "simulator")
    columns = (*writing.ATTEMPT_COLUMNS, "step", "turn", "text", "reply_key")
    settled_columns = (*SETTLED, "problems", "text")
    settled_state = Realisation.State.WRITTEN
    own_rows = ~Q(step="")
    may_ask = writing.MAY_ASK & Q(step__in=DUE_STEPS)
    counted_bodies = (
        Q(turn=F("realisation__turn"))
        & (Q(step=F("realisation__step")) | Q(step=Step.OPENING, realisation__step=Step.UTTERANCE))
        & (Q(realisation__plan__bills_from=None) | Q(at__gte=F("realisation__plan__bills_from")))
    )
    """Those about the step where it stands, since somebody started or resumed the plan, or asked again."""

    def most_tries(self, row: Realisation) -> int:
        asked = row.plan.utterance_judge if row.step == Step.VERDICT else author_of(row)
        return judges.pace(asked or row.generator).tries

    def project_of(self, row: Realisation) -> int:
        return row.plan.project_id

    def due(self, asker: int, now: datetime) -> QuerySet[Realisation]:
        """As of any row; by family, so that a small budget pays for whole conversations."""
        return super().due(asker, now).order_by("family_id", "pk")

    def end(self, held: QuerySet[Realisation], *, reason: str) -> None:
        openings = list(held.filter(is_opening=True).values_list("pk", flat=True))
        given_up: dict[str, Any] = {
            "state": Realisation.State.GIVEN_UP,
            "reason": reason[:400],
            "lease": None,
            "leased_until": None,
        }
        held.update(**given_up)
        Realisation.objects.filter(opening__in=openings, step=Step.OPENING).update(**given_up)

    def _open_rows(self, outcomes: Sequence[StepOutcome]) -> dict[int, UUID | None]:
        """Only rows that are still at the step that an outcome is about."""
        about = {_place(outcome.asked.row) for outcome in outcomes}
        rows = self._keyed([outcome.asked.row.pk for outcome in outcomes]).select_for_update()
        still_open = rows.exclude(state=self.settled_state).order_by("pk")
        return {row.pk: row.lease for row in still_open.only(*PLACE, "lease") if _place(row) in about}

    def store_replies(self, outcomes: Sequence[StepOutcome], *, repeated: Sequence[int]) -> None:
        self._move_on(outcomes)

    def try_again(self, outcomes: Sequence[StepOutcome]) -> None:
        """As of any row; what was discarded is asked for again, or the conversation ends, as its progress says."""
        discarded = [outcome for outcome in outcomes if outcome.progress]
        refused = [outcome for outcome in outcomes if outcome.refusal]
        super().try_again([outcome for outcome in outcomes if not (outcome.progress or outcome.refusal)])
        for outcome in refused:
            self.end(self._keyed([outcome.asked.row.pk]), reason=outcome.refusal)
        self._move_on(discarded)
        self._keyed([outcome.asked.row.pk for outcome in discarded]).update(discarded=F("discarded") + 1)

    def announce(self, asker: int) -> None:
        plans.announce_plan_end(GenerationPlan.objects.filter(pk=asker).values("pk"))

    def _move_on(self, outcomes: Sequence[StepOutcome]) -> None:
        """Move the rows to where their conversations stand, and the conversations on that wait for an opening."""
        came = [(outcome.asked.row, outcome.progress) for outcome in outcomes if outcome.progress]
        rows = [_row_values(row.pk, progress) for row, progress in came]
        openings = {row.pk: progress for row, progress in came if row.is_opening}
        at_rest = {pk: progress for pk, progress in openings.items() if progress.state != leases.WAITING}
        if at_rest:
            waiting = Realisation.objects.filter(opening__in=at_rest, step=Step.OPENING).select_for_update()
            for pk, opening in waiting.order_by("pk").values_list("pk", "opening"):
                rows.append(_row_values(pk, steps.after_opening(at_rest[opening or 0])))
        bulk.update(Realisation, ROW_COLUMNS, rows)


PLACE = ("step", "turn", "refused_tries")
"""With the key of a row, what its request is about."""


def _place(row: Realisation) -> tuple[Any, ...]:
    return row.pk, *(getattr(row, name) for name in PLACE)


def _row_values(pk: int, progress: StepProgress) -> tuple[Any, ...]:
    """The columns of a row; the provider did answer, so that it has not been tried yet for the next step."""
    is_aside = progress.ended == Realisation.Ended.SET_ASIDE
    return (
        *(pk, str(progress.state), None, None, None, 0, str(progress.step), progress.turn, progress.draft),
        *(progress.refused_tries, str(progress.ended), progress.stored_problems, progress.reason),
        *(list(progress.turns), Realisation.Decision.SET_ASIDE.value if is_aside else ""),
        *(progress.reason if is_aside else "", 0),
    )


CONVERSATIONS = ConversationRows()


def author_of(row: Realisation) -> PlanGenerator:
    """The model of the plan that writes the next turn; an opening's generator is the user model."""
    return row.simulator if row.step != Step.ANSWER and row.simulator else row.generator


# --- requests ---------------------------------------------------------------------------------------------------------


class StepRequestWriter:
    """Writes the requests of one plan, which has its project."""

    def __init__(self, plan: GenerationPlan) -> None:
        self.plan, self.spec = plan, parse_spec(plan.spec)
        self.generators = {generator.pk: generator for generator in plan.generators.all()}
        self.judge = None
        if plan.utterance_judge is not None and plan.utterance_rubric is not None:
            self.judge = UtteranceJudge(plan.utterance_judge, plan.utterance_rubric)
        judge_role = PlanGenerator.Role.UTTERANCE_JUDGE
        self._judge_row = next((one for one in self.generators.values() if one.role == judge_role), None)
        self._priced: dict[int, dict[str, Any]] = {
            pk: {
                "price": prices.price(generator, run=generator),
                "prices": prices.price_list(generator.provider, run=generator),
                "api": judges.endpoint(generator).api,
            }
            for pk, generator in self.generators.items()
        }
        self.paid_models = {
            (generator.provider, generator.model)
            for pk, generator in self.generators.items()
            if any(self._priced[pk]["price"] or ())
        }
        """The models of which a reply is known to cost something."""
        sampled = [*(one.parameters for one in self.generators.values()), *self.spec.simulation.sampling.values()]
        self.has_seed = any(isinstance(parameters.get("seed"), int) for parameters in sampled)

    def write(self, row: Realisation, *, asked: int = 0) -> StepRequest:
        """The request for the next step of a row, which was asked for ``asked`` times before. Its family is loaded with
        it."""
        row.plan = self.plan
        row.generator = self.generators[row.generator_id]
        row.simulator = self.generators[row.simulator_id] if row.simulator_id else None
        is_verdict, generator = row.step == Step.VERDICT, self.asked_by(row)
        about: dict[str, Any] = {"provider": generator.provider, "model": generator.model}
        attempt = GenerationAttempt(realisation=row, step=_attempt_step(row), turn=row.turn, **about)
        if is_verdict:
            messages, schema, parameters = self._verdict(row, attempt)
        else:
            messages, schema = self._messages(row), None
            parameters = plans.sampled_parameters(self.spec, attempt.step, generator.parameters)
            if isinstance(parameters.get("seed"), int):
                parameters["seed"] = self._seed(parameters["seed"], generator, row, asked)
        paid = paid_request(
            **about, messages=messages, schema=schema, parameters=parameters, **self._priced[generator.pk]
        )
        attempt.reserved = paid.worst_case
        return StepRequest(
            **{one.name: getattr(paid, one.name) for one in fields(PaidRequest)}, realisation=row, attempt=attempt
        )

    def asked_by(self, row: Realisation) -> PlanGenerator:
        """The model that the next request of a row is for."""
        if row.step == Step.VERDICT and self._judge_row:
            return self._judge_row
        is_answer = row.step == Step.ANSWER or row.simulator_id is None
        return self.generators[row.generator_id if is_answer else row.simulator_id or 0]

    def model_of(self, row: Realisation) -> sessions.ModelKey:
        """The provider and model that the next request of a row is for."""
        asked = self.asked_by(row)
        return asked.provider, asked.model

    def rows_asking(self, models: Collection[sessions.ModelKey]) -> Q:
        """The rows whose next request is for one of these models."""
        asked = {pk for pk, one in self.generators.items() if (one.provider, one.model) in models}
        of_user = Q(simulator__in=asked) | Q(simulator=None, generator__in=asked)
        rows = Q(step=Step.ANSWER, generator__in=asked) | (Q(step=Step.UTTERANCE) & of_user)
        if self._judge_row is None:
            return rows | (Q(step=Step.VERDICT) & of_user)
        return rows | Q(step=Step.VERDICT) if self._judge_row.pk in asked else rows

    def _messages(self, row: Realisation) -> Sequence[Message]:
        if row.step == Step.ANSWER:
            return answer_messages(self.spec, language=row.language, turns=row.turns)
        refused = [WritingProblem(problem["code"], problem["values"]) for problem in row.problems]
        feedback = [str(problem.values["feedback"]) for problem in refused if problem.code == REFUSED_BY_JUDGE]
        return utterance_messages(
            self.spec,
            row.family.parameters,
            language=row.language,
            turns=row.turns,
            utterance=row.draft,
            problems=[problem for problem in refused if problem.code != REFUSED_BY_JUDGE],
            feedback=" ".join(reversed(feedback)),  # the last first: of a long text its beginning is told
        )

    def _verdict(
        self, row: Realisation, attempt: GenerationAttempt
    ) -> tuple[Sequence[Message], Any, Mapping[str, Any]]:
        """As a judge run would ask about the utterance: its reply is known by the key then."""
        if self.judge is None:
            raise ValueError("a verdict without an utterance judge")
        attempt.text = without_stop(self.spec, row.draft)
        messages = self.judge.messages(
            self.spec, row.family.parameters, language=row.language, turns=row.turns, utterance=attempt.text
        )
        attempt.reply_key = self.judge.reply_key(messages)
        return messages, self.judge.schema, self.judge.parameters

    def _seed(self, seed: int, generator: PlanGenerator, row: Realisation, asked: int) -> int:
        """Where a model or the spec declares a seed, every request has its own."""
        chatbot = row.generator.name
        key: list[Any] = [seed, self.plan.seed, row.family.number, row.language, generator.name, chatbot, row.repeat]
        digest = hashlib.sha256("\x1f".join(map(str, [*key, row.step, row.turn, asked])).encode()).digest()
        return int.from_bytes(digest[:6]) % writing.SEEDS


def _attempt_step(row: Realisation) -> str:
    return Step.OPENING if row.is_opening and row.step == Step.UTTERANCE else row.step


def take_steps(
    *,
    plan: GenerationPlan,
    free: Mapping[sessions.ModelKey, int],
    lease: UUID,
    writer: StepRequestWriter,
    now: datetime | None = None,
) -> TakenRequests[StepRequest]:
    """Lease conversations that are due, up to so many ``free`` ones of each model, and reserve what their requests may
    cost.

    Leases nothing if the plan is not running or `leases.MOST_HOLDERS` other workers work on it, and never more than the
    caps allow: the budget for all requests, and those of each provider for its own. Rows whose model may not be asked
    now are passed over, whatever their number.
    """
    now = now or timezone.now()
    with transaction.atomic():
        locked = GenerationPlan.objects.select_for_update(no_key=True).get(pk=plan.pk)
        running = locked.state == GenerationPlan.State.RUNNING
        if not running or CONVERSATIONS.holders(plan, besides=lease, now=now) >= leases.MOST_HOLDERS:
            return TakenRequests(lease=lease)
        locked.project = plan.project
        taken = _affordable_steps(locked, free, lease, writer, now)
        if taken.spent and not taken.all_closed and _others_go_on(plan, writer, taken.closed):
            taken = replace(taken, spent="")
        CONVERSATIONS.lease(taken.requests, lease, now)
    return taken


def _affordable_steps(
    plan: GenerationPlan,
    free: Mapping[sessions.ModelKey, int],
    lease: UUID,
    writer: StepRequestWriter,
    now: datetime,
) -> TakenRequests[StepRequest]:
    """The requests of rows that are due which the caps of the plan, which the caller has locked, allow: it reads on
    behind the rows of models that are full or closed."""
    places = {model: count for model, count in free.items() if count > 0}
    due = CONVERSATIONS.due(plan.pk, now).select_related("family")
    taken: TakenRequests[StepRequest] = TakenRequests(lease=lease)
    requests: list[StepRequest] = []
    held: list[Cap] | None = None
    windows: dict[sessions.ModelKey, int] = {}
    while places and not taken.all_closed:
        for model in places.keys() & writer.paid_models - {*windows}:
            most = writing.most_requests_in_flight(plan, *model)
            windows[model] = most - writing.requests_in_flight(plan, *model, now)
            # One more than may be in flight, so that it shows whether more rows are due: long requests are written here
            # while the plan is locked.
            places[model] = min(places[model], max(0, windows[model]) + 1)
        limit = sum(places.values())
        left = due.filter(writer.rows_asking(places)).exclude(pk__in=[request.row.pk for request in requests])
        if not (rows := list(left[:limit])):
            break
        if held is None:  # of all providers, since caps are locked in their order
            held = writing.plan_caps(plan, sorted({one.provider for one in writer.generators.values()}), now)
        numbers = CONVERSATIONS.last_numbers([row.pk for row in rows]) if writer.has_seed else {}
        for row in rows:
            model = writer.model_of(row)
            if places.get(model, 0) > 0:
                places[model] -= 1
                requests.append(writer.write(row, asked=numbers.get(row.pk, 0)))
        if held and any(request.worst_case is None for request in requests):
            for generator in writer.generators.values():
                plans.refuse_plan_cap(plan.project, generator, plan.budget)
        taken = affordable(requests, lease=lease, caps=held, windows=windows)
        if len(rows) < limit:
            break
        places = {model: count for model, count in places.items() if count > 0 and model not in taken.closed}
    return taken


def _others_go_on(plan: GenerationPlan, writer: StepRequestWriter, closed: Collection[sessions.ModelKey]) -> bool:
    """Whether a row that asks another model than these is leased, or waits for its next try."""
    open_models = {(one.provider, one.model) for one in writer.generators.values()} - {*closed}
    rows = Realisation.everything.filter(CONVERSATIONS.may_ask, writer.rows_asking(open_models), plan=plan)
    return rows.filter(state__in=plans.OPEN_STATES).exists()


# --- a work session ---------------------------------------------------------------------------------------------------


class PlanAsker(writing.RowAsker[StepRequest, StepOutcome]):
    """A simulation, as what asks. Refused if a provider of it is not declared any more."""

    rows = CONVERSATIONS
    reads_apart = True  # the guard, and once in a worker the model that tells languages: some seconds

    def __init__(self, plan: GenerationPlan) -> None:
        self.subject, self.name = plan, f"Generation plan {plan.pk}"
        self.writer = StepRequestWriter(plan)
        models: dict[sessions.ModelKey, sessions.AskedModel] = {}
        for generator in self.writer.generators.values():
            models.setdefault((generator.provider, generator.model), writing.asked_model(generator))
        self.models = [*models.values()]

    def is_running(self) -> bool:
        return GenerationPlan.objects.filter(pk=self.subject.pk, state=GenerationPlan.State.RUNNING).exists()

    def take(self, *, free: Mapping[sessions.ModelKey, int], lease: UUID) -> TakenRequests[StepRequest]:
        return take_steps(plan=self.subject, free=free, lease=lease, writer=self.writer)

    def read(self, asked: StepRequest, answer: ProviderAnswer, lease: UUID) -> StepOutcome:
        attempt, bill = CONVERSATIONS.replied_attempt(asked, answer)
        row, spec, reply = asked.row, self.writer.spec, answer.readable
        finish_reason = "content_filter" if answer.refusal else answer.finish_reason or ""
        if row.step == Step.ANSWER:
            progress, problems = steps.after_answer(spec, row, answer=reply, finish_reason=finish_reason)
        elif row.step == Step.VERDICT and self.writer.judge is not None:
            verdict = self.writer.judge.read(
                reply,
                messages=asked.messages,
                language=row.language,
                finish_reason=answer.finish_reason or "",
                refusal=answer.refusal,
            )
            progress, problems = steps.after_verdict(spec, row, verdict)
            attempt.text = asked.attempt.text
        else:
            progress, problems = steps.after_utterance(
                spec, row, utterance=reply, finish_reason=finish_reason, has_judge=self.writer.judge is not None
            )
            attempt.text = storable(without_stop(spec, reply))[:LONGEST_DRAFT]
        attempt.problems = writing.stored_problems(problems)
        return StepOutcome(
            step_request=asked,
            lease=lease,
            attempt=attempt,
            progress=progress,
            dropped=answer.dropped,
            stops=bill.stops,
        )

    def outcome(self, asked: StepRequest, lease: UUID, attempt: GenerationAttempt, **came: Any) -> StepOutcome:
        return StepOutcome(step_request=asked, lease=lease, attempt=attempt, **came)

    def pause(self, reason: str) -> None:
        plans.pause_plan(plan=self.subject, reason=reason)

    def save_widths(self, widths: Mapping[sessions.ModelKey, int]) -> None:
        for (provider, model), width in widths.items():
            self.subject.generators.filter(provider=provider, model=model).update(width=width)


def work_on_conversations(plan_pk: int) -> bool:
    """Simulate the conversations of a plan for one session. Returns True if steps may be due for the next session."""
    found = GenerationPlan.objects.select_related("project", "utterance_judge", "utterance_rubric")
    plan = found.filter(pk=plan_pk).first()
    if plan is None or plan.state != GenerationPlan.State.RUNNING or sessions.is_stopping():
        return False
    CONVERSATIONS.release_dead()
    if CONVERSATIONS.holders(plan) >= leases.MOST_HOLDERS:
        return False
    try:
        asker = PlanAsker(plan)
    except Refused as no:
        plans.pause_plan(plan=plan, reason=no.sentence)
        return False
    return sessions.work_as(asker)


def work_on_plan(plan: GenerationPlan) -> bool:
    """Work on a plan of either kind for one session of everything that asks."""
    if plan.is_simulation:
        return work_on_conversations(plan.pk)
    worked = [writing.work_on_generator(generator.pk) for generator in plan.generators.all()]
    return any(worked)
