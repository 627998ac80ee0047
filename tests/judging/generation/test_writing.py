"""Plans are written by the simulated provider: nothing lost, nothing paid twice, every broken reply found again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as configured
from django.db import connection
from django.utils import timezone

from accounts.refusals import Refused
from judging import tasks
from judging.asking import leases, sharing
from judging.calls import CALLS
from judging.generation import decisions, plan_forecasts, plans, storing, writing
from judging.generation.plans import GeneratorChoice, PlanPhase
from judging.generation.specs import preset
from judging.models import Attempt, GenerationAttempt, GenerationPlan, PlanGenerator, Realisation
from panelbench.celery import app
from tests.cast import Cast
from tests.conftest import database_url
from tests.judging.test_runs import declared, started
from tests.provider_server import RunningProvider
from tests.workers import kill, wait_for_workers, working

pytestmark = pytest.mark.django_db(transaction=True)
LANGUAGES = ["et", "en", "es", "ja"]
MODELS = ("sim-steady", "sim-flawed", "sim-chatty")
BREAKS = {"no_greeting": 0.06, "wrong_count": 0.06, "unreadable": 0.06, "empty_turn": 0.06}


def planned(cast: Cast, *, models: tuple[str, ...] = MODELS, **options: Any) -> GenerationPlan:
    about: dict[str, Any] = {
        "project": cast.kassa,
        "name": "Klienditugi “1”",
        "spec": preset("support-dialogues"),
        "languages": LANGUAGES,
        "families": 5,
        "generators": [GeneratorChoice(provider="simulated", model=model) for model in models],
        "seed": 11,
        "actor": cast.boris,
    }
    return plans.create_plan(**{**about, **options})


def begun(cast: Cast, **options: Any) -> GenerationPlan:
    plan = planned(cast, **options)
    assert plans.start_plan(plan=plan, actor=cast.boris)
    return plan


def written(plan: GenerationPlan, sessions: int = 40) -> plans.PlanProgress:
    """Session after session of every generator, until the plan is at rest."""
    for _session in range(sessions):
        more = [writing.work_on_generator(generator.pk) for generator in plan.generators.all()]
        plan.refresh_from_db()
        if not any(more) and (plan.state != "running" or plans.has_finished(plan)):
            break
    return plans.plan_progress(plan)


def priced(provider: str = "simulated") -> None:
    """USD for a million tokens: 2 in, 8 out."""
    prices = tuple((model, Decimal(2), Decimal(8)) for model in MODELS)
    object.__setattr__(configured.PROVIDERS[provider], "prices", prices)


def sent() -> int:
    """The requests that were sent, by the attempts."""
    return GenerationAttempt.objects.exclude(outcome="pending").count()


@pytest.mark.both_databases
def test_four_languages_of_five_families_by_three_generators(cast: Cast, provider: RunningProvider) -> None:
    """The first study's design, small: whatever breaks a rule is found, told back and asked again; stored by a verb."""
    provider.control(written_breaks=BREAKS)
    plan = begun(cast, spec=replace(preset("support-dialogues"), retries=9))
    progress = written(plan)
    counts = provider.control()
    assert (progress.phase, progress.planned, progress.done) == (PlanPhase.FINISHED, 60, 60)
    assert counts["answered"] == counts["requests"] == progress.attempts == sent()
    planted = sum(counts["written_breaks"].values())
    assert planted == progress.discarded > 0, "every planted break was found, and nothing else"
    for code, times in counts["written_breaks"].items():
        assert progress.problems[code] >= times
    assert progress.attempts == progress.written + progress.discarded
    for row in Realisation.objects.filter(plan=plan, state="written").select_related("family"):
        assert len(row.turns) == row.family.parameters["messages"]
        assert row.attempts.latest("number").problems == []
    retold = GenerationAttempt.objects.filter(number=2, outcome="replied").first()
    assert retold is not None
    assert "A reply to this request could not be used" in retold.request["messages"][-1]["content"]

    assert progress.whole == 5, "no text runs out of nine tries"
    dataset = storing.store_dataset(plan=plan, name="Kõned “A”", actor=cast.boris)
    items = dataset.items.all()
    assert (items.count(), dataset.simulated) == (60, True)
    assert items.values("scenario").distinct().count() == 5
    by_family: dict[str, dict[str, Any]] = {}
    for item in items:
        assert item.attributes["family_is_whole"] is True
        own = {name: value for name, value in item.attributes.items() if name != "repeat"}
        assert by_family.setdefault(item.scenario, own) == own, "parameters are the same in every language"
    assert Realisation.objects.filter(plan=plan, item__dataset=dataset).count() == 60
    with pytest.raises(Refused) as refused:
        storing.store_dataset(plan=plan, name="Kõned “A”")
    assert refused.value.code == "name_taken"


def test_a_text_whose_replies_all_break_a_rule_ends_with_its_reasons(cast: Cast, provider: RunningProvider) -> None:
    provider.control(written_breaks={"no_greeting": 1.0})
    plan = begun(cast, models=("sim-steady",), languages=["en"], families=4)
    progress = written(plan)
    retries = preset("support-dialogues").retries
    assert (progress.written, progress.given_up, progress.phase) == (0, 4, PlanPhase.FINISHED)
    assert provider.control()["requests"] == progress.attempts == progress.discarded == 4 * (1 + retries)
    assert {row.reason for row in Realisation.objects.all()} == {"no_greeting"}
    assert progress.problems["no_greeting"] == progress.attempts
    with pytest.raises(Refused):
        storing.store_dataset(plan=plan, name="Nothing")
    provider.control(written_breaks={})
    assert plans.ask_again(plan=plan, actor=cast.boris) == 4
    assert written(plan).written == 4
    with pytest.raises(Refused):
        plans.ask_again(plan=plan)


@pytest.mark.both_databases
def test_a_budget_is_kept_and_may_be_raised(cast: Cast, provider: RunningProvider) -> None:
    priced()
    plan = planned(cast, budget=Decimal("0.1"))
    forecast = plan_forecasts.forecast_plan(plan)
    assert forecast.texts == 60
    assert forecast.cost is not None
    assert forecast.worst is not None
    assert 0 < forecast.cost < forecast.worst
    assert plans.start_plan(plan=plan)
    progress = written(plan)
    assert plan.state == "paused", progress
    assert "budget" in plan.reason
    assert 0 < progress.written < 60
    assert progress.cost is not None
    assert progress.cost <= Decimal("0.1")
    assert provider.control()["requests"] == sent()
    plans.set_plan_budget(plan=plan, budget=Decimal(50), actor=cast.boris)
    assert plans.resume_plan(plan=plan, actor=cast.boris)
    progress = written(plan)
    assert (progress.written, progress.reserved) == (60, None)
    assert provider.control()["requests"] == sent() == 60, "what was written before is not paid again"
    measured = plan_forecasts.forecast_plan(plan)
    assert (measured.is_measured, measured.texts, measured.cost) == (True, 0, Decimal(0))


def test_few_requests_are_in_flight_until_bills_agree(cast: Cast, provider: RunningProvider) -> None:
    priced()
    provider.control(latency=600)
    plan = begun(cast, models=("sim-steady",))
    with at_work(plan):
        wait_for_workers(lambda: provider.control()["in_flight"] == 2)
        assert GenerationAttempt.objects.count() == 2
        provider.control(latency=0)
        wait_for_workers(lambda: sent() > 8)
        plans.cancel_plan(plan=plan)


def test_a_storm_of_429_loses_nothing(cast: Cast, provider: RunningProvider) -> None:
    provider.control(next=["rate_limit"] * 25)
    progress = written(begun(cast))
    counts = provider.control()
    assert progress.written == 60
    assert counts["requests"] == sent() == 85
    assert GenerationAttempt.objects.filter(outcome="unavailable").count() == 25


def test_examples_first_then_the_whole(cast: Cast, provider: RunningProvider) -> None:
    plan = planned(cast, models=("sim-steady",))
    assert plans.start_examples(plan=plan, actor=cast.boris)
    progress = written(plan)
    assert (progress.phase, progress.written, progress.waiting) == (PlanPhase.EXAMPLES, 12, 8)
    assert [family.number for family in progress.families if family.is_whole] == [1, 2, 3]
    assert plan_forecasts.forecast_plan(plan).is_measured
    assert plans.start_plan(plan=plan, actor=cast.boris)
    progress = written(plan)
    assert (progress.phase, progress.written) == (PlanPhase.FINISHED, 20)
    assert provider.control()["requests"] == 20


def test_a_pause_stores_what_is_in_flight(cast: Cast, provider: RunningProvider) -> None:
    provider.control(latency=0.5)
    plan = begun(cast, models=("sim-steady",), families=40)
    with at_work(plan):
        wait_for_workers(lambda: provider.control()["answered"] > 16)
        plans.pause_plan(plan=plan, actor=cast.boris)
    progress = plans.plan_progress(plan)
    assert (progress.in_flight, progress.phase) == (0, PlanPhase.PAUSED)
    assert 16 < progress.written < 160
    assert provider.control()["answered"] == sent() == progress.written


def test_a_refused_request_ends_its_text_and_a_refused_key_pauses_the_plan(
    cast: Cast, provider: RunningProvider
) -> None:
    plan = begun(cast, models=("sim-steady",), languages=["en"], families=3)
    provider.control(next=["forbidden"])
    progress = written(plan)
    assert (progress.written, progress.given_up, plan.state) == (2, 1, "running")
    other = begun(cast, models=("sim-steady", "sim-flawed"), name="Second")
    provider.control(next=["unauthorized"])
    written(other)
    assert other.state == "paused"
    assert "401" in other.reason
    assert other.reason.startswith("sim-")


HERE = """
import os, signal, sys
import django
django.setup()
from judging.asking.leases import LeasedRows
from judging.generation import writing

settle, times = LeasedRows.settle, 0

def dies(rows, **about):
    global times
    times += 1
    if {before} and times == {times}:
        os.kill(os.getpid(), signal.SIGKILL)
    count = settle(rows, **about)
    left = writing.Realisation.objects.filter(state__in=["waiting", "leased"]).exists()
    if not {before} and not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return count

LeasedRows.settle = dies
writing.work_on_generator({generator})
"""


def kill_a_worker(provider: RunningProvider, plan: GenerationPlan, *, before_store: bool, times: int) -> None:
    """Write the texts of the plan's generator in a process that dies: before it stores outcomes so many ``times``, or
    when the last row is stored."""
    code = HERE.format(before=before_store, times=times, generator=plan.generators.get().pk)
    entry = [{"name": "simulated", "base_url": provider.base_url, "simulated": True}]
    environ = {**os.environ, "DATABASE_URL": database_url(), "PANELBENCH_PROVIDERS": json.dumps(entry)}
    assert subprocess.run([sys.executable, "-c", code], env=environ, check=False).returncode == -9


@pytest.mark.both_databases
@pytest.mark.parametrize("moment", ["between reply and store", "between the last row and the end"])
def test_killed_at_each_write(cast: Cast, provider: RunningProvider, moment: str) -> None:
    provider.control(latency=0.05)
    plan = begun(cast, models=("sim-steady",), languages=["et"], families=40)
    kill_a_worker(provider, plan, before_store=moment == "between reply and store", times=2)
    lost = GenerationAttempt.objects.filter(outcome="sent").count()
    progress = written(plan)
    assert (progress.written, progress.phase, progress.lost) == (40, PlanPhase.FINISHED, lost)
    assert (lost > 0) == (moment == "between reply and store")
    assert provider.control()["requests"] == sent() == 40 + lost, "no reply that was stored is paid again"


@pytest.mark.skipif(not configured.REDIS_URL, reason="needs Redis")
def test_two_workers_one_killed(cast: Cast, provider: RunningProvider) -> None:
    provider.control(latency=0.05, next=["none"] * 30 + ["slow"] * 500, slowness=600)
    app.control.purge()
    plan = begun(cast, families=10)
    with working(queues="judging", name="doomed") as doomed, working(queues="judging", name="survivor"):
        tasks.enqueue_plan(plan)
        lost, replied = (GenerationAttempt.objects.filter(outcome=outcome) for outcome in ("lost", "replied"))
        holding = Realisation.objects.filter(state="leased").values("lease").distinct()
        wait_for_workers(lambda: replied.count() == 30 and holding.count() >= 2)
        kill(doomed)
        wait_for_workers(lost.exists, seconds=leases.LEASE.total_seconds())
        provider.control(slowness=0)
        wait_for_workers(lambda: plans.has_finished(plan))
    progress = plans.plan_progress(plan)
    assert (progress.written, progress.given_up) == (120, 0)
    assert provider.control()["requests"] == sent()
    assert replied.count() == 120


def test_runs_and_plans_share_the_workers(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, models=("sim-steady",))
    generator = plan.generators.get()
    assert not sharing.other_work_waits(writing.TEXTS, generator)
    run = started(cast, declared(cast), items=2)
    assert sharing.other_work_waits(writing.TEXTS, generator)
    assert sharing.other_work_waits(CALLS, run)
    plans.pause_plan(plan=plan)
    assert not sharing.other_work_waits(CALLS, run)
    assert Attempt.objects.count() == GenerationAttempt.objects.count() == 0


def test_a_text_set_aside_makes_its_family_incomplete(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, models=("sim-steady",), families=2)
    written(plan)
    first = Realisation.objects.filter(plan=plan, family__number=1).first()
    assert first is not None
    decisions.decide_realisation(realisation=first, decision="set_aside", reason="wrong names", actor=cast.boris)
    assert decisions.decide_family(family=first.family, decision="keep") == 4
    assert len(storing.written_texts(plan)[1]) == 2
    assert plans.plan_progress(plan).whole == 2
    decisions.decide_realisation(realisation=first, decision="set_aside", reason="wrong names", actor=cast.boris)
    progress = plans.plan_progress(plan)
    assert (progress.whole, progress.families[0].is_whole, progress.families[0].is_incomplete) == (1, False, True)
    page = cast.client("boris").get(f"/p/kassa/generation/{plan.pk}/").content.decode()
    assert "incomplete: a text is missing or set aside" in page and "Everything is written" in page
    whole = storing.store_dataset(plan=plan, name="Whole")
    page = cast.client("boris").get(f"/p/kassa/generation/{plan.pk}/").content.decode()
    assert "Everything is written" not in page, "it is stored"
    assert set(whole.items.values_list("scenario", flat=True)) == {"family-0002"}
    everything = storing.store_dataset(plan=plan, name="All", only="all")
    assert everything.items.count() == 7
    assert everything.items.filter(attributes__family_is_whole=False).count() == 3
    decisions.redact_decisions(cast.boris)
    first.refresh_from_db()
    assert (first.decision, first.decision_reason) == ("set_aside", "")
    waiting = planned(cast, name="Other").realisations.earliest("pk")
    with pytest.raises(Refused):
        decisions.decide_realisation(realisation=waiting, decision="keep")


@pytest.mark.parametrize("key", ["single-answers", "pairs", "stories"])
def test_other_kinds_of_texts(cast: Cast, provider: RunningProvider, key: str) -> None:
    plan = begun(cast, models=("sim-steady",), spec=preset(key), languages=["en", "ar"], families=2)
    assert written(plan).written == 4
    dataset = storing.store_dataset(plan=plan, name=key)
    names = {field.name for field in preset(key).fields}
    assert all(set(item.fields) == names for item in dataset.items.all())


def test_a_declared_seed_differs_from_text_to_text(cast: Cast, provider: RunningProvider) -> None:
    seeded = GeneratorChoice(provider="simulated", model="sim-steady", parameters={"seed": 3})
    plan = begun(cast, generators=[seeded], families=2)
    written(plan)
    requests = GenerationAttempt.objects.values_list("request", flat=True)
    assert len({request["parameters"]["seed"] for request in requests}) == 8


@contextmanager
def at_work(plan: GenerationPlan) -> Iterator[None]:
    """A worker at the plan's first generator in a thread of its own, joined in the end."""
    generator = PlanGenerator.objects.filter(plan=plan).earliest("position")

    def session() -> None:
        writing.work_on_generator(generator.pk)
        connection.close()

    worker = threading.Thread(target=session)
    worker.start()
    try:
        yield
    finally:
        worker.join()


def test_a_lease_that_ran_out_is_taken_up_again(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, models=("sim-steady",), languages=["en"], families=3)
    generator = PlanGenerator.objects.select_related("plan__project").get(plan=plan)
    writer = writing.TextRequestWriter(generator)
    taken = writing.take_texts(generator=generator, limit=3, lease=uuid4(), writer=writer)
    assert len(taken.requests) == 3
    assert writing.TEXTS.sweep(now=timezone.now() + leases.LEASE * 2) == [generator.pk]
    assert GenerationAttempt.objects.count() == 0, "unsent requests are deleted"
    assert written(plan).written == 3
