"""Simulated conversations: every turn once, nothing lost or paid twice, chatbots blind to the scene."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings as configured
from django.utils import timezone

from accounts import webhooks
from accounts.models import Delivery
from accounts.refusals import Refused
from judging import tasks
from judging.asking import leases
from judging.asking.client import ProviderAnswer, stored_answer
from judging.generation import conversing, plan_forecasts, plans, storing
from judging.generation.conversing import CONVERSATIONS, PlanAsker, StepOutcome, StepRequest
from judging.generation.plans import GeneratorChoice, PlanPhase
from judging.generation.specs import Spec, preset
from judging.generation.steps import StepProgress
from judging.generation.utterance_judge import declare_utterance_judge, utterance_rubric
from judging.models import GenerationAttempt, GenerationPlan, ProviderAllowance, Realisation
from panelbench.celery import app
from tests.cast import Cast
from tests.conftest import database_url
from tests.provider_server import RunningProvider
from tests.workers import kill, wait_for_workers, working

pytestmark = pytest.mark.django_db(transaction=True)
CHATBOTS = ("sim-steady", "sim-chatty")
USER = "sim-flawed"


def short_spec(**options: Any) -> Spec:
    spec = preset("simulated-users")
    return replace(spec, conversation=replace(spec.simulation, **{"user_turns": 3, **options}))


def planned(cast: Cast, *, judged: bool = True, models: tuple[str, ...] = CHATBOTS, **options: Any) -> GenerationPlan:
    about: dict[str, Any] = {
        "project": cast.kassa,
        "name": "Vestlused “1”",
        "spec": short_spec(),
        "languages": ["en"],
        "families": 4,
        "generators": [GeneratorChoice(provider="simulated", model=model) for model in models],
        "user_models": [GeneratorChoice(provider="simulated", model=USER)],
        "seed": 11,
        "actor": cast.boris,
    }
    if judged:
        judge = declare_utterance_judge(project=cast.kassa, provider="simulated", model="sim-steady")
        about |= {"utterance_judge": judge, "utterance_rubric": utterance_rubric(project=cast.kassa)}
    return plans.create_plan(**{**about, **options})


def begun(cast: Cast, **options: Any) -> GenerationPlan:
    plan = planned(cast, **options)
    assert plans.start_plan(plan=plan, actor=cast.boris)
    return plan


def simulated(plan: GenerationPlan, sessions: int = 40) -> plans.PlanProgress:
    """Session after session, until the plan is at rest."""
    for _session in range(sessions):
        more = conversing.work_on_conversations(plan.pk)
        plan.refresh_from_db()
        if not more and (plan.state != "running" or plans.has_finished(plan)):
            break
    return plans.plan_progress(plan)


def sent(plan: GenerationPlan) -> int:
    """The requests that were sent, by the attempts."""
    return GenerationAttempt.objects.filter(realisation__plan=plan).exclude(outcome="pending").count()


def priced(settings: Any, *providers: str) -> None:
    """USD for a million tokens: 2 in, 8 out."""
    prices = tuple((model, Decimal(2), Decimal(8)) for model in (*CHATBOTS, USER))
    for provider in providers or ("simulated",):
        object.__setattr__(settings.PROVIDERS[provider], "prices", prices)


def digest_of(attempt: GenerationAttempt) -> str:
    """What the provider counts this request under, if it was sent as it is stored."""
    body = {"model": attempt.model, "messages": attempt.request["messages"], **attempt.request["parameters"]}
    return hashlib.sha256(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


@pytest.mark.both_databases
def test_conversations_are_written_turn_by_turn(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, languages=["en", "et"])
    progress = simulated(plan)
    assert (progress.phase, progress.planned, progress.done) == (PlanPhase.FINISHED, 16, 16)
    assert provider.control()["requests"] == progress.attempts == sent(plan)
    attempts = GenerationAttempt.objects.filter(realisation__plan=plan)
    assert set(attempts.values_list("outcome", flat=True)) == {"replied"}
    assert set(attempts.values_list("step", flat=True)) == {"opening", "utterance", "verdict", "answer"}
    for row in plan.realisations.filter(state="written").select_related("opening", "generator"):
        speakers = [turn["speaker"] for turn in row.turns]
        roles = [short_spec().user_role, short_spec().chatbot_role]
        assert speakers == [roles[place % 2] for place in range(len(speakers))]
        assert row.opening is not None
        assert row.turns[0] == row.opening.turns[0], "the first turn is the opening's"
        assert row.ended
        written = row.attempts.filter(step="answer", problems=[]).order_by("number")
        answers = [turn["text"] for turn in row.turns[1::2]]
        assert len(answers) == written.count() == len(set(written.values_list("turn", flat=True)))
    openings = Realisation.everything.filter(plan=plan, is_opening=True)
    assert openings.count() == 8, "one for each family and language, whatever chatbots there are"
    shared = {row.opening_id: row.turns[0]["text"] for row in plan.realisations.filter(state="written")}
    for row in plan.realisations.filter(state="written"):
        assert shared[row.opening_id] == row.turns[0]["text"]


def test_a_turn_is_judged_before_the_chatbot_sees_it(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast)
    simulated(plan)
    refused = GenerationAttempt.objects.filter(step="verdict").exclude(problems=[])
    for verdict in refused.select_related("realisation"):
        assert verdict.problems[0]["code"] == "refused_by_judge"
        again = verdict.realisation.attempts.filter(number=verdict.number + 1).first()
        if again is not None:
            assert again.step in ("opening", "utterance")
            assert verdict.text[:40] in again.request["messages"][-1]["content"], "the refused try is told back"
    verdicts = GenerationAttempt.objects.filter(step="verdict")
    assert verdicts.exclude(reply_key="").count() == verdicts.count() > 0
    for row in plan.realisations.filter(state="written"):
        judged = set(
            verdicts.filter(realisation__in=[row.pk, row.opening_id], problems=[]).values_list("text", flat=True)
        )
        assert {turn["text"] for turn in row.turns[::2]} <= judged


def test_chatbots_are_blind_to_the_scene(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast)
    simulated(plan)
    received = provider.control()["prompts"]
    answers = GenerationAttempt.objects.filter(step="answer").select_related("realisation__family")
    assert answers.count() > 8
    for attempt in answers:
        assert received[digest_of(attempt)] > 0, "the provider received exactly what is stored"
        told = json.dumps(attempt.request, ensure_ascii=False)
        drawn = attempt.realisation.family.parameters
        for parameter in short_spec().parameters:
            level = parameter.level(drawn[parameter.name])
            words = [str(level.value), *level.texts.values()]
            assert not any(len(word) > 12 and word in told for word in words), parameter.name
        assert "# The scene" not in told
        assert {message["role"] for message in attempt.request["messages"]} == {"system", "user", "assistant"} - (
            {"assistant"} if attempt.turn == 0 else set()
        )
    utterances = GenerationAttempt.objects.filter(step__in=["opening", "utterance"])
    assert all("# The scene" in attempt.request["messages"][-1]["content"] for attempt in utterances)


def taken(plan: GenerationPlan, limit: int = 100) -> tuple[PlanAsker, UUID, list[StepRequest]]:
    """Rows that are leased, and whose requests are marked as sent."""
    loaded = GenerationPlan.objects.select_related("project", "utterance_judge", "utterance_rubric").get(pk=plan.pk)
    asker, lease = PlanAsker(loaded), uuid4()
    requests = list(asker.take(free=places(asker, limit), lease=lease).requests)
    CONVERSATIONS.mark_sent(lease=lease, attempts=[request.attempt.pk for request in requests])
    return asker, lease, requests


def places(asker: PlanAsker, limit: int) -> dict[tuple[str, str], int]:
    """So many free places for each model."""
    return {(one.endpoint.name, one.model): limit for one in asker.models}


def replied(asked: StepRequest, lease: UUID, progress: StepProgress) -> StepOutcome:
    attempt = GenerationAttempt(pk=asked.attempt.pk, realisation=asked.row, outcome="replied")
    return StepOutcome(step_request=asked, lease=lease, attempt=attempt, progress=progress)


@pytest.mark.both_databases
def test_a_late_reply_moves_only_a_row_that_is_still_at_its_step(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1, models=("sim-steady",))
    _asker, mine, [first] = taken(plan)
    CONVERSATIONS.sweep(now=timezone.now() + leases.LEASE * 2)
    _asker, theirs, [second] = taken(plan)
    said = StepProgress(step="verdict", turn=0, turns=[], draft="Said.")
    assert CONVERSATIONS.settle(outcomes=[replied(first, mine, said)]) == 1
    row = Realisation.everything.get(pk=first.row.pk)
    assert (row.state, row.step, row.draft, row.lease) == ("waiting", "verdict", "Said.", None)
    other = replace(said, draft="Another.")
    assert CONVERSATIONS.settle(outcomes=[replied(second, theirs, other)]) == 0, "it came too late"
    row.refresh_from_db()
    assert row.draft == "Said."
    assert set(row.attempts.values_list("outcome", flat=True)) == {"replied"}, "both are kept, and paid"


@pytest.mark.both_databases
def test_an_opening_that_is_given_up_ends_its_conversations(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1)
    _asker, lease, [opening] = taken(plan)
    refusal = StepOutcome(
        step_request=opening,
        lease=lease,
        attempt=GenerationAttempt(pk=opening.attempt.pk, realisation=opening.row, outcome="refused", reason="No."),
        refusal="No.",
    )
    CONVERSATIONS.settle(outcomes=[refusal])
    assert set(plan.realisations.values_list("state", "reason")) == {("given_up", "No.")}
    assert plans.has_finished(plan)
    assert plans.ask_again(plan=plan) == 2
    assert Realisation.everything.get(is_opening=True).state == "waiting"
    assert simulated(plan).done == 2


@pytest.mark.both_databases
def test_the_end_of_a_simulation_is_announced_once(cast: Cast, provider: RunningProvider, settings: Any) -> None:
    settings.DEBUG = True
    webhooks.add(project=cast.kassa, address="http://127.0.0.1:9/", events=["plan.finished"], actor=cast.aino)
    plan = begun(cast, families=1)
    assert simulated(plan).written == 2
    about = {"project": "kassa", "plan": plan.pk, "phase": "finished", "texts": 2, "written": 2, "given_up": 0}
    assert [delivery.payload["data"] for delivery in Delivery.objects.all()] == [about]
    unopened = begun(cast, families=1, models=("sim-steady",), judged=False, name="Second")
    for _try in range(10):
        asker, lease, [opening] = taken(unopened)
        CONVERSATIONS.settle(outcomes=[asker.read(opening, said("<think>What may she write?</think>Well."), lease)])
        if plans.has_finished(unopened):
            break
        assert Delivery.objects.count() == 1
    about = {**about, "plan": unopened.pk, "texts": 1, "written": 0, "given_up": 1}
    assert Delivery.objects.latest("pk").payload["data"] == about
    assert Delivery.objects.count() == 2


def test_every_try_refused_ends_the_conversation_and_says_so(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1, models=("sim-steady",), judged=False)
    asker, lease, [opening] = taken(plan)
    problems = asker.writer.spec.simulation.first_tries
    for number in range(problems):
        outcome = asker.read(opening, said("<think>What may she write?</think>Well."), lease)
        CONVERSATIONS.settle(outcomes=[outcome])
        row = Realisation.everything.get(is_opening=True)
        assert row.discarded == number + 1
        if number < problems - 1:
            assert (row.state, row.refused_tries) == ("waiting", number + 1)
            asker, lease, [opening] = taken(plan)
    assert (row.state, row.ended) == ("given_up", "too_many_refusals")
    conversation = plan.realisations.get()
    assert (conversation.state, conversation.ended) == ("given_up", "too_many_refusals")
    assert conversation.reason == row.reason != ""


def said(text: str, *, tokens: int = 500) -> ProviderAnswer:
    """A reply with this text; so many tokens are billed for the request."""
    reply = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 5},
        "model": "sim-flawed",
    }
    return stored_answer(reply, None)


HERE = """
import os, signal
import django
django.setup()
from judging.asking.leases import LeasedRows
from judging.generation import conversing

settle, times = LeasedRows.settle, 0

def dies(rows, **about):
    global times
    times += 1
    if {before} and times == {times}:
        os.kill(os.getpid(), signal.SIGKILL)
    count = settle(rows, **about)
    left = conversing.Realisation.everything.filter(state__in=["waiting", "leased"]).exists()
    if not {before} and (times == {times} if {times} else not left):
        os.kill(os.getpid(), signal.SIGKILL)
    return count

LeasedRows.settle = dies
while conversing.work_on_conversations({plan}):
    pass
"""


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("moment", "times"),
    [
        ("between reply and store", 1),
        ("between reply and store", 4),
        ("between store and the next request", 4),
        ("between the last row and the end", 0),
    ],
)
def test_a_worker_is_killed_at_each_write(cast: Cast, provider: RunningProvider, moment: str, times: int) -> None:
    provider.control(latency=0.05)
    plan = begun(cast, families=3)
    code = HERE.format(before=moment == "between reply and store", times=times, plan=plan.pk)
    entry = [{"name": "simulated", "base_url": provider.base_url, "simulated": True}]
    environ = {**os.environ, "DATABASE_URL": database_url(), "PANELBENCH_PROVIDERS": json.dumps(entry)}
    assert subprocess.run([sys.executable, "-c", code], env=environ, check=False).returncode == -9
    before = {row.pk: row.turns for row in Realisation.everything.filter(plan=plan)}
    progress = simulated(plan)
    assert (progress.done, progress.phase) == (6, PlanPhase.FINISHED)
    for row in Realisation.everything.filter(plan=plan):
        assert row.turns[: len(before[row.pk])] == before[row.pk], "it went on at its turn"
        used = row.attempts.filter(outcome="replied", problems=[])
        for step in ("opening", "utterance", "answer"):
            of_step = used.filter(step=step)
            if step == "answer":
                assert of_step.count() == of_step.values("turn").distinct().count(), "no turn is answered twice"
    replies = GenerationAttempt.objects.filter(realisation__plan=plan, outcome="replied").count()
    assert provider.control()["requests"] == replies + progress.lost, "no reply that was stored is paid again"


def test_a_budget_is_kept_and_may_be_raised(cast: Cast, provider: RunningProvider, settings: Any) -> None:
    priced(settings)
    plan = planned(cast, budget=Decimal("0.03"))
    forecast = plan_forecasts.forecast_plan(plan)
    assert [part.texts for part in forecast.generators] == [4, 4, 0, 0]
    assert forecast.texts == 8
    assert forecast.cost is not None
    assert forecast.worst is not None
    assert 0 < forecast.cost < forecast.worst
    assert plans.start_plan(plan=plan)
    progress = simulated(plan)
    assert plan.state == "paused", progress
    assert "budget" in plan.reason
    assert progress.done < 8
    assert progress.cost is not None
    assert progress.cost <= Decimal("0.03")
    assert provider.control()["requests"] == sent(plan)
    spent = sent(plan)
    plans.set_plan_budget(plan=plan, budget=Decimal(50), actor=cast.boris)
    assert plans.resume_plan(plan=plan, actor=cast.boris)
    progress = simulated(plan)
    assert (progress.done, progress.reserved) == (8, None)
    assert provider.control()["requests"] == sent(plan) > spent, "what was said before is not paid again"
    assert plan_forecasts.forecast_plan(plan).requests == 0


def test_the_judge_and_the_user_model_have_the_caps_of_their_own_providers(
    cast: Cast, provider: RunningProvider, settings: Any
) -> None:
    priced(settings)
    paid = settings.PROVIDERS["simulated"]
    dear = replace(paid, name="paid", simulated=False)
    settings.PROVIDERS = {**settings.PROVIDERS, "paid": dear}
    with pytest.raises(Refused) as refused:
        planned(cast, user_models=[GeneratorChoice(provider="paid", model=USER)])
    assert refused.value.code == "provider_not_allowed"
    allowed = ProviderAllowance.objects.create(project=cast.kassa, provider="paid", cap_total=Decimal("0.02"))
    plan = begun(cast, user_models=[GeneratorChoice(provider="paid", model=USER)])
    simulated(plan)
    assert plan.state == "paused"
    assert "paid" in plan.reason
    own = GenerationAttempt.objects.filter(provider="paid")
    assert 0 < sum(attempt.cost or 0 for attempt in own) <= Decimal("0.02")
    assert set(own.values_list("step", flat=True)) <= {"opening", "utterance"}
    allowed.cap_total = Decimal(5)
    allowed.save()
    assert plans.resume_plan(plan=plan)
    assert simulated(plan).done == 8


def test_a_bill_that_does_not_agree_pauses_every_plan_that_asks_the_model(
    cast: Cast, provider: RunningProvider, settings: Any
) -> None:
    priced(settings)
    plan, other = (
        begun(cast),
        begun(cast, name="Second", user_models=[GeneratorChoice(provider="simulated", model="sim-steady")]),
    )
    asker, lease, requests = taken(plan)
    assert len(requests) == 2, "few requests are in flight until bills agree"
    outcome = asker.read(requests[0], said("I lost my keys again this morning.", tokens=10**6), lease)
    CONVERSATIONS.settle(outcomes=[outcome])
    for one in (plan, other):
        one.refresh_from_db()
    assert (plan.state, other.state) == ("paused", "running"), "the other plan asks other models"
    assert "bills more than was declared" in plan.reason
    paid = GenerationAttempt.objects.get(pk=requests[0].attempt.pk)
    assert paid.doubt == "too_many"
    assert paid.cost is not None
    assert paid.cost >= 2


def test_a_refused_key_names_the_model_and_pauses_the_plan(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast)
    provider.control(next=["unauthorized"])
    simulated(plan)
    assert plan.state == "paused"
    assert plan.reason.startswith("sim-")
    assert "401" in plan.reason
    assert plans.resume_plan(plan=plan)
    assert simulated(plan).done == 8


def test_a_storm_of_429_loses_nothing(cast: Cast, provider: RunningProvider) -> None:
    provider.control(next=["rate_limit"] * 20, retry_after="0")
    plan = begun(cast)
    progress = simulated(plan)
    assert progress.done == 8
    assert provider.control()["requests"] == sent(plan)
    assert GenerationAttempt.objects.filter(outcome="unavailable").count() == 20


def test_examples_are_the_first_families(cast: Cast, provider: RunningProvider) -> None:
    plan = planned(cast, families=5)
    assert plans.start_examples(plan=plan)
    progress = simulated(plan)
    assert (progress.phase, progress.done, progress.waiting) == (PlanPhase.EXAMPLES, 6, 4)
    assert not Realisation.everything.filter(family__number__gt=3).exclude(state="waiting").exists()
    forecast = plan_forecasts.forecast_plan(plan)
    assert forecast.is_measured
    assert plans.start_plan(plan=plan)
    assert simulated(plan).done == 10


@pytest.mark.skipif(not configured.REDIS_URL, reason="needs Redis")
def test_the_next_worker_goes_on_where_a_killed_one_was(cast: Cast, provider: RunningProvider) -> None:
    provider.control(latency=0.1)
    app.control.purge()
    plan = begun(cast, families=12)
    answered = GenerationAttempt.objects.filter(outcome="replied", step="answer")
    with working(queues="judging", name="doomed") as doomed:
        tasks.enqueue_plan(plan)
        wait_for_workers(lambda: answered.count() >= 4)
        kill(doomed)
        with working(queues="judging", name="survivor"):
            wait_for_workers(lambda: plans.has_finished(plan))
    progress = plans.plan_progress(plan)
    assert progress.done == 24
    replies = GenerationAttempt.objects.filter(realisation__plan=plan, outcome="replied").count()
    assert provider.control()["requests"] <= replies + progress.lost
    kept = GenerationAttempt.objects.filter(step="answer", problems=[], outcome="replied")
    for row in plan.realisations.filter(state="written"):
        assert len(row.turns) // 2 == kept.filter(realisation=row).values("turn").distinct().count()


def test_conversations_become_items_with_their_simulator(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=2)
    progress = simulated(plan)
    dataset = storing.store_dataset(plan=plan, name="Vestlused", only="all", actor=cast.boris)
    set_aside = plan.realisations.filter(decision="set_aside").count()
    assert dataset.items.count() == progress.written - set_aside > 0
    for item in dataset.items.all():
        assert item.attributes["simulator"] == USER
        assert item.attributes["ended"] in ("stopped", "user_turns", "too_many_refusals")
        assert {"persona", "scene"} <= item.attributes.keys()
        assert item.generator in CHATBOTS


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"user_models": []}, "user_models"),
        ({"spec": preset("stories")}, "user_models"),
        ({"utterance_rubric": None}, "utterance_judge"),
        ({"user_models": [GeneratorChoice(provider="simulated", model=USER)] * 2}, "user_models"),
        ({"user_models": [GeneratorChoice(provider="gone", model=USER)]}, "user_models"),
    ],
)
def test_a_plan_that_can_not_be_simulated_is_refused(
    cast: Cast, provider: RunningProvider, wrong: dict[str, Any], field: str
) -> None:
    with pytest.raises(Refused) as refused:
        planned(cast, **wrong)
    assert field in refused.value.fields
