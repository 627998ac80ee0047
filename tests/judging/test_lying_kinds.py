"""Every kind of paid request at once, under one cap of the project, asks a provider that lies about money.

Judge runs, texts, translations, conversations and a test of a judge, each in its own thread.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from bench import lying_provider
from bench.lying_provider import CAP, DEARER, LIMIT, MODEL, PRICES, UNDECLARED, own_count
from judging import judges, providers, runs, trials, work_sessions
from judging.asking import allowances, budgets
from judging.generation import conversing, plans, writing
from judging.generation.plans import GeneratorChoice
from judging.generation.specs import preset
from judging.models import GenerationPlan, JudgeRun, JudgeTrial, ProviderTest
from panelbench import environment
from tests import make
from tests.cast import Cast
from tests.judging.generation.test_conversations import short_spec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

WITHIN_TWO_CALLS = 2
LIES_THAT_STOP = {
    "x32": "bills more than was declared",
    "error_200_x32": "for a request that it did not answer",
    "refused_form_x32": "for a request that it did not answer",
    "dearer_model": "which costs more than",
    "undeclared_model": "no price is declared for it",
}
Work = Callable[[], object]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with lying_provider.lying_provider() as at:
        yield at


def provider_with(address: str, settings: Any, lie: str, cast: Cast, cap: Decimal = CAP) -> str:
    """A provider that is not simulated, which the project may use under one cap; returns its name."""
    entry = lying_provider.declaration(address, lie) | {"simulated": False}
    settings.PROVIDERS = environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps([entry])})
    allowances.allow(project=cast.kassa, provider=entry["name"], cap_total=cap)
    return str(entry["name"])


def plan_of(cast: Cast, name: str, provider: str, spec: Any, **more: Any) -> GenerationPlan:
    choice = GeneratorChoice(provider=provider, model=MODEL, parameters={"max_tokens": LIMIT})
    about: dict[str, Any] = {
        "project": cast.kassa,
        "name": name,
        "spec": spec,
        "languages": ["en", "et"],
        "families": 6,
        "generators": [choice],
        "seed": 5,
        "actor": cast.boris,
        **more,
    }
    if "user_models" in about:
        about["user_models"] = [choice]
    plan = plans.create_plan(**about)
    assert plans.start_plan(plan=plan, actor=cast.boris)
    return plan


def judge_run(cast: Cast, provider: str, number: int) -> JudgeRun:
    named: dict[str, Any] = {"name": f"Kohtunik “{number}”", "provider": provider, "model": MODEL}
    parameters = {"max_tokens": LIMIT, "seed": number}
    judge = judges.declare(project=cast.kassa, **named, parameters=parameters, concurrency=64, tries=2)
    dataset = make.dataset(cast.kassa, 30, name=f"Tekstid {number}")
    return runs.start_judge_run(judge=judge, dataset=dataset, rubric_version=make.rubric(cast.kassa, key=f"r{number}"))


def texts(plan: GenerationPlan) -> Work:
    return lambda: [writing.work_on_generator(generator.pk) for generator in plan.generators.all()]


def every_kind(cast: Cast, provider: str) -> dict[str, Work]:
    """What works on each kind for one session."""
    begun = [judge_run(cast, provider, number) for number in (1, 2, 3)]
    written = plan_of(cast, "Kirjutatud", provider, preset("support-dialogues"))
    source = make.dataset(cast.kassa, 8, name="Algtekstid")
    of_source = {"source": source, "source_language": "et", "languages": ["en", "ja"]}
    translated = plan_of(cast, "Tõlgitud", provider, preset("translations"), **of_source)
    talked = plan_of(cast, "محادثات", provider, short_spec(), user_models=True)
    of_test: dict[str, Any] = {"provider": provider, "model": MODEL, "parameters": {"max_tokens": LIMIT}}
    series = trials.begin_trials(project=cast.kassa, **of_test, variant={}, actor=cast.boris)
    return {
        **{f"run {run.pk}": (lambda run=run: work_sessions.work_on_run(run.pk)) for run in begun},
        "texts": texts(written),
        "translations": texts(translated),
        "conversations": lambda: conversing.work_on_conversations(talked.pk),
        "test": lambda: trials.carry_out_trials(series),
    }


def at_once(kinds: Sequence[tuple[str, Work]]) -> None:
    """A session of each, in threads; a work session needs three connections, and a process has eight."""
    faults: list[str] = []

    def work(name: str, session: Work) -> None:
        try:
            session()
        except Exception as error:  # noqa: BLE001 - the test fails with it
            faults.append(f"{name}: {error!r}")
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=kind) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def asked_by_all(cast: Cast, address: str, settings: Any, lie: str, *kinds: str) -> tuple[int, int, Decimal, Decimal]:
    """What was asked, how many replies bill too much, what is due by the provider's own count, and what is booked."""
    provider, before = provider_with(address, settings, lie, cast), own_count(address, lie)
    works = [kind for kind in every_kind(cast, provider).items() if not kinds or kind[0] in kinds]
    for _round in range(2):
        for pair in batched(works, 2):
            at_once(pair)
    after, booked = own_count(address, lie), budgets.spent_at(cast.kassa.pk, provider)
    assert (booked.in_flight, after["elsewhere"]) == (0, before["elsewhere"])
    return (*(after[name] - before[name] for name in ("asked", "lies", "due")), booked.paid)


def batched(works: Sequence[tuple[str, Work]], count: int) -> Iterator[Sequence[tuple[str, Work]]]:
    for at in range(0, len(works), count):
        yield works[at : at + count]


def stopped_reasons() -> set[str]:
    rows = [*JudgeRun.objects.values_list("state", "reason"), *GenerationPlan.objects.values_list("state", "reason")]
    assert {state for state, _reason in rows} == {"paused"}
    return {reason for _state, reason in rows}


@pytest.mark.parametrize(("lie", "reason"), LIES_THAT_STOP.items())
def test_the_first_bill_that_lies_stops_every_kind(
    cast: Cast, address: str, settings: Any, lie: str, reason: str
) -> None:
    asked, lies, due, booked = asked_by_all(cast, address, settings, lie)
    assert asked <= WITHIN_TWO_CALLS
    assert lies <= WITHIN_TWO_CALLS
    assert booked >= due.quantize(Decimal("1e-8")) > 0
    assert all(reason in stopped for stopped in stopped_reasons())
    assert reason in JudgeTrial.objects.get().reason


def test_a_provider_that_was_honest_first_stops_every_kind_too(cast: Cast, address: str, settings: Any) -> None:
    asked, lies, due, booked = asked_by_all(cast, address, settings, "x32_later")
    assert asked > lying_provider.HONEST_FIRST - WITHIN_TWO_CALLS
    assert lies <= WITHIN_TWO_CALLS or due <= CAP
    assert booked == due.quantize(Decimal("1e-8"))
    assert all("bills more than was declared" in reason for reason in stopped_reasons())


@pytest.mark.parametrize("kind", ["texts", "translations", "conversations", "test"])
def test_each_kind_alone_is_stopped_within_two_calls(cast: Cast, address: str, settings: Any, kind: str) -> None:
    asked, _lies, due, booked = asked_by_all(cast, address, settings, "x32", kind)
    assert 0 < asked <= WITHIN_TWO_CALLS
    assert booked == due.quantize(Decimal("1e-8"))
    assert all("bills more than was declared" in reason for reason in stopped_reasons())


@pytest.mark.parametrize(("lie", "price"), [("dearer_model", DEARER), ("undeclared_model", None), ("snapshot", MODEL)])
def test_the_test_of_an_endpoint_costs_what_the_served_model_does(
    cast: Cast, address: str, settings: Any, lie: str, price: str | None
) -> None:
    name = provider_with(address, settings, lie, cast)
    test = providers.begin_test(name=name, model=MODEL)
    providers.carry_out_test(test.pk)
    result = ProviderTest.objects.get(pk=test.pk).result
    if price is None:
        assert (result["served_model"], result["cost"]) == (UNDECLARED, None)
    else:
        into, out = PRICES[price]
        exact = (Decimal(into) * result["tokens_in"] + Decimal(out) * result["tokens_out"]) / 1_000_000
        assert Decimal(result["cost"]) == exact
