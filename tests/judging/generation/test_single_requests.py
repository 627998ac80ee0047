"""Single requests for texts: who has leased them, what is reserved and booked, what becomes of odd replies; storing."""

from __future__ import annotations

import json
import threading
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from accounts import jobs
from accounts.models import Job
from accounts.refusals import Refused
from annotation.models import DatasetCheckup
from judging import tasks
from judging.asking import leases
from judging.asking.client import ProviderAnswer, ProviderUnavailable
from judging.generation import decisions, plans, storing, turn_rules
from judging.generation.plans import GeneratorChoice
from judging.generation.specs import preset
from judging.generation.turn_rules import Written, read_written
from judging.generation.writing import TEXTS, GeneratorAsker, TextRequest, work_on_generator
from judging.models import GenerationAttempt, GenerationPlan, PlanGenerator, Realisation
from tests.cast import Cast
from tests.judging.generation.test_plans import GIVEN_IN_ESTONIAN
from tests.judging.generation.test_writing import begun, priced, written
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)
ANSWER = "You could take the early train, because it stops at every station and is never full."


def begun_answers(cast: Cast, **options: Any) -> GenerationPlan:
    about: dict[str, Any] = {"models": ("sim-steady",), "spec": preset("single-answers"), "languages": ["en"]}
    return begun(cast, **{**about, **options})


def taken(plan: GenerationPlan, limit: int = 1, position: int = 0) -> tuple[GeneratorAsker, UUID, list[TextRequest]]:
    """Texts that a generator has leased and not sent yet."""
    generators = PlanGenerator.objects.select_related("plan__project")
    asker, lease = GeneratorAsker(generators.get(plan=plan, position=position)), uuid4()
    return asker, lease, list(asker.take(free={("simulated", asker.subject.model): limit}, lease=lease).requests)


def sent(plan: GenerationPlan) -> tuple[GeneratorAsker, UUID, TextRequest]:
    """A text whose request is out."""
    asker, lease, [asked] = taken(plan)
    assert TEXTS.mark_sent(lease=lease, attempts=[asked.attempt.pk]) == {asked.attempt.pk}
    return asker, lease, asked


def replied(**members: str) -> ProviderAnswer:
    """A reply that keeps to the rules of the preset, or has these members."""
    text = json.dumps(members or {"answer": ANSWER})
    return ProviderAnswer(
        text=text,
        finish_reason="stop",
        refusal=None,
        reasoning="",
        tokens_in=400,
        tokens_out=40,
        served_model="sim-steady",
        raw={"reply": text.replace("\\u0000", "")},
    )


# --- leases -----------------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
@pytest.mark.parametrize("is_sent", [False, True])
def test_a_reply_under_a_lost_lease_ends_the_request_of_the_next_session(
    cast: Cast, provider: RunningProvider, is_sent: bool
) -> None:
    priced()
    plan = begun_answers(cast, families=1, budget=Decimal(1))
    first, mine, asked = sent(plan)
    TEXTS.sweep(now=timezone.now() + leases.LEASE * 2)
    second, theirs, [again] = taken(plan)
    if is_sent:
        assert TEXTS.mark_sent(lease=theirs, attempts=[again.attempt.pk])
    assert TEXTS.settle(outcomes=[first.read(asked, replied(), mine)]) == 1
    assert TEXTS.mark_sent(lease=theirs, attempts=[again.attempt.pk]) == set()
    assert TEXTS.release(lease=theirs) == 0
    assert not GenerationAttempt.objects.filter(outcome__in=["pending", "sent"]).exists(), "nothing stays reserved"
    progress = plans.plan_progress(plan)
    assert (progress.written, progress.reserved, progress.lost) == (1, None, int(is_sent))
    if is_sent:
        assert TEXTS.settle(outcomes=[second.read(again, replied(), theirs)]) == 0
        assert GenerationAttempt.objects.filter(outcome="replied", estimated=False).count() == 2, "both are booked"


@pytest.mark.both_databases
def test_requests_that_nobody_waits_for_any_more_are_ended_by_the_sweep(cast: Cast, provider: RunningProvider) -> None:
    priced()
    plan = begun_answers(cast, families=2)
    _asker, _lease, out = sent(plan)
    _asker, _lease, [unsent] = taken(plan)
    Realisation.objects.update(state="written", lease=None, leased_until=None)
    TEXTS.sweep()
    assert GenerationAttempt.objects.filter(outcome__in=["pending", "sent"]).count() == 2, "their replies may come"
    TEXTS.sweep(now=timezone.now() + leases.STRAY + timedelta(minutes=1))
    lost = GenerationAttempt.objects.get()
    assert (lost.pk, lost.outcome, lost.cost, lost.estimated) == (out.attempt.pk, "lost", lost.reserved, True)
    assert unsent.attempt.pk != out.attempt.pk


def test_discarded_replies_use_up_no_try_of_the_provider(cast: Cast, provider: RunningProvider) -> None:
    plan = begun_answers(cast, families=1)
    row = plan.realisations.get()
    tries = TEXTS.most_tries(row)
    for _reply in range(preset("single-answers").retries):
        asker, lease, asked = sent(plan)
        TEXTS.settle(outcomes=[asker.read(asked, replied(answer=" "), lease)])
    row.refresh_from_db()
    assert (row.state, row.tries, row.discarded) == ("waiting", 0, preset("single-answers").retries)
    for number in range(1, tries + 1):
        Realisation.objects.update(not_before=None)
        asker, lease, asked = sent(plan)
        TEXTS.settle(outcomes=[asker.unavailable(asked, ProviderUnavailable("503"), lease)])
        row.refresh_from_db()
        assert (row.state == "given_up") == (number == tries)


# --- replies ----------------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
@pytest.mark.parametrize("odd", ["\x00", "\ud83d"])
def test_what_no_database_holds_is_replaced_in_a_stored_problem(
    cast: Cast, provider: RunningProvider, odd: str
) -> None:
    plan = begun(cast, models=("sim-steady",), languages=["en"], families=1)
    asker, lease, asked = sent(plan)
    turns = json.dumps({"turns": [{"speaker": f"agent{odd}", "text": f"Hello [Na{odd}me], how are you?"}]})
    answer = replied()
    object.__setattr__(answer, "text", turns)
    outcome = asker.read(asked, answer, lease)
    assert {"unknown_role", "stand_in"} <= {problem.code for problem in outcome.problems}
    TEXTS.settle(outcomes=[outcome])
    for problems in (GenerationAttempt.objects.get().problems, plan.realisations.get().problems):
        roles = [problem["values"]["role"] for problem in problems if problem["code"] == "unknown_role"]
        assert roles == ["agent\ufffd"]


@pytest.mark.both_databases
def test_a_reply_that_our_code_fails_on_is_booked_once_and_pauses_the_plan(
    cast: Cast, provider: RunningProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced()
    plan = begun_answers(cast, families=3)
    monkeypatch.setattr(turn_rules, "LONGEST_REPLY", None)
    for _session in range(3):
        work_on_generator(plan.generators.get().pk)
    plan.refresh_from_db()
    assert plan.state == "paused"
    assert "error in Panelbench" in plan.reason
    attempts = GenerationAttempt.objects.all()
    assert {attempt.outcome for attempt in attempts} == {"replied"}
    assert all(attempt.cost and not attempt.estimated and "could not be read" in attempt.reason for attempt in attempts)
    assert provider.control()["requests"] == attempts.count()
    assert plan.realisations.filter(state="given_up").count() == attempts.count(), "none is asked and paid again"
    monkeypatch.undo()
    assert plans.ask_again(plan=plan)
    assert plans.resume_plan(plan=plan)
    assert written(plan).written == 3


def test_a_given_field_without_a_text_of_the_language_is_empty() -> None:
    """A plan from before such languages were refused."""
    drawn = {parameter.name: parameter.levels[0].value for parameter in GIVEN_IN_ESTONIAN.parameters}
    reply = json.dumps({"answer": ANSWER})
    read = read_written(GIVEN_IN_ESTONIAN, drawn, language="en", reply=reply, finish_reason="stop")
    assert read == Written((), {"question": "", "answer": ANSWER})


# --- money and seeds --------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_nothing_is_sent_under_a_cap_if_nothing_can_be_reserved(cast: Cast, provider: RunningProvider) -> None:
    """A plan from before such parameters were refused."""
    priced()
    plan = begun_answers(cast, budget=Decimal(1))
    plan.generators.update(parameters={"max_tokens": 4_000, "max_completion_tokens": None})
    with pytest.raises(Refused, match="max_completion_tokens"):
        taken(plan)
    work_on_generator(plan.generators.get().pk)
    plan.refresh_from_db()
    assert (plan.state, GenerationAttempt.objects.count()) == ("paused", 0)
    with pytest.raises(Refused, match="max_completion_tokens"):
        plans.resume_plan(plan=plan)


@pytest.mark.both_databases
def test_two_generators_of_one_model_share_the_first_two_requests(cast: Cast, provider: RunningProvider) -> None:
    priced()
    same = [GeneratorChoice(provider="simulated", model="sim-steady", name=f"Looja “{n}”") for n in range(2)]
    plan = begun_answers(cast, generators=[*same, GeneratorChoice(provider="simulated", model="sim-flawed")])
    assert len(taken(plan, 5)[2]) == 2
    assert taken(plan, 5, position=1)[2] == [], "no bill of this model is known"
    assert len(taken(plan, 5, position=2)[2]) == 2, "another model"
    asked = GenerationAttempt.objects.order_by("pk")[:2]
    GenerationAttempt.objects.filter(pk__in=[attempt.pk for attempt in asked]).update(outcome="replied")
    Realisation.objects.filter(generator__position=0, state="leased").update(
        state="written", lease=None, leased_until=None
    )
    assert len(taken(plan, 5, position=1)[2]) == 4, "the bills of the one count for the other"


def test_a_text_that_is_asked_for_again_has_another_seed(cast: Cast, provider: RunningProvider) -> None:
    provider.control(written_breaks={"unreadable": 1.0})
    seeded = GeneratorChoice(provider="simulated", model="sim-steady", parameters={"seed": 3})
    plan = begun(cast, generators=[seeded], families=1, languages=["en"])
    written(plan)
    assert plans.ask_again(plan=plan) == 1
    written(plan)
    seeds = [request["parameters"]["seed"] for request in GenerationAttempt.objects.values_list("request", flat=True)]
    assert len(set(seeds)) == len(seeds) == 2 * (1 + plan.spec.get("retries", 3))


# --- storing ----------------------------------------------------------------------------------------------------------


def test_what_is_set_aside_while_it_is_stored_breaks_no_family(cast: Cast, provider: RunningProvider) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer")
    plan = begun_answers(cast, families=2, languages=["en", "et"])
    written(plan)
    before: list[int] = []

    def set_aside() -> None:
        first = Realisation.objects.filter(plan=plan).earliest("pk")
        decisions.decide_realisation(realisation=first, decision="set_aside", actor=cast.boris)
        connection.close()

    def meanwhile(execute: Any, sql: str, *about: Any) -> Any:
        result = execute(sql, *about)
        if "judging_realisation" in sql and not before:
            before.append(1)
            other = threading.Thread(target=set_aside)
            other.start()
            other.join()
        return result

    with connection.execute_wrapper(meanwhile):
        dataset = storing.store_dataset(plan=plan, name="Kõik “terved”")
    assert before
    families = Counter(dataset.items.values_list("scenario", flat=True))
    assert families == {"family-0001": 2, "family-0002": 2}, "as it was when it was read"
    assert all(item.attributes["family_is_whole"] for item in dataset.items.all())
    assert set(storing.store_dataset(plan=plan, name="Later").items.values_list("scenario", flat=True)) == {
        "family-0002"
    }


@pytest.mark.both_databases
def test_a_worker_stores_many_texts_once_and_a_command_at_once(
    cast: Cast, provider: RunningProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = begun_answers(cast, families=3, languages=["en", "et"], repeats=2)
    written(plan)
    monkeypatch.setattr(storing, "MOST_IN_REQUEST", 11)
    monkeypatch.setattr(storing, "CHUNK", 5)
    client = cast.client("boris")
    address, page = (reverse(name, args=["kassa", plan.pk]) for name in ("api_generation_store", "generation_plan"))
    asked = {"name": "Paljud “12” – كثير", "only": "all"}
    answer = client.post(address, asked, content_type="application/json")
    plan.refresh_from_db()
    assert (answer.status_code, answer.json()) == (202, {"dataset": None, "job": plan.job_id})
    refused = client.post(address, {**asked, "name": "Teine"}, content_type="application/json")
    assert refused.json()["code"] == "wrong_state"
    assert "A worker stores “Paljud “12” – كثير”." in client.get(page).content.decode()
    assert not plan.datasets.exists()
    for _delivered in range(2):
        tasks.store_texts(plan.pk)
    [stored] = plan.datasets.select_related("dataset")
    assert (stored.dataset.name, stored.only, stored.dataset.items.count()) == (asked["name"], "all", 12)
    assert DatasetCheckup.objects.get(dataset=stored.dataset).job is not None, "a worker checks it"
    shown = client.get(page).content.decode()
    assert "A worker stores" not in shown and asked["name"] in shown

    assert client.post(address, {**asked, "name": "Kolmas"}, content_type="application/json").status_code == 202
    storing.store_dataset(plan=plan, name="Kolmas")
    tasks.store_texts(plan.pk)
    assert "Another dataset of this project is called “Kolmas”." in client.get(page).content.decode()
    assert client.post(reverse("generation_store", args=["kassa", plan.pk]), {**asked, "name": "Neljas"}).url == page
    plan.refresh_from_db()
    jobs.cancel(job=Job.objects.get(pk=plan.job_id), actor=cast.aino)
    tasks.store_texts(plan.pk)
    assert plan.datasets.count() == 2
    output = StringIO()
    call_command("store_texts", str(plan.pk), "--name", "Kõik “12”", stdout=output)
    assert "12 items" in output.getvalue()
    for text in plan.realisations.select_related("family", "generator", "item"):
        assert text.item is not None
        assert (text.item.external_id, text.item.fields) == (storing.item_key(text), text.fields)
    for wrong in ([str(plan.pk), "--name", "Kõik “12”"], [str(plan.pk + 1), "--name", "x"]):
        with pytest.raises(CommandError) as error:
            call_command("store_texts", *wrong)
        assert error.value.returncode == 2
