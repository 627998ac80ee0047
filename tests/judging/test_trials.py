"""A judge is tested before it is saved: models of the endpoint's own list, prompt beside reply, cost, correction."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry
from analytics.ratings.raters import all_runs
from annotation import campaigns
from annotation.models import Dataset, RubricVersion
from judging import judges, providers, runs, tasks, trials
from judging.asking import allowances, budgets, endpoints
from judging.models import Attempt, Judge, JudgeTrial, ProviderListing
from judging.templatetags.judging import usd
from tests import make
from tests.cast import Cast
from tests.judging.test_runs import worked
from tests.provider_server import RunningProvider

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

FORM = {
    "provider": "simulated",
    "model": "sim-steady",
    "name": "Nähe “1”",
    "grouping": "compound",
    "anchor_detail": "anchors",
    "explanation": "yes",
    "instruction_language": "en",
    "parameters": '{"max_tokens": 300}',
}
PRICE = (("sim-steady", Decimal(2), Decimal(8)), ("sim-broken", Decimal(2), Decimal(8)))


@pytest.fixture
def boris(cast: Cast) -> Client:
    return cast.client("boris")


@pytest.fixture
def material(cast: Cast) -> dict[str, Any]:
    """A dataset with four items and a rubric, as the form chooses them."""
    rows = [make.item_row(number, title=f"Pakk “{number}” مرحبا") for number in range(1, 5)]
    dataset, rubric = make.dataset(cast.kassa, rows), make.rubric(cast.kassa)
    return {"test-dataset": dataset.pk, "test-rubric_version": rubric.pk, "test-items": "1, d3, 4"}


def posted(client: Client, query: str = "", **sent: Any) -> str:
    answer = client.post(reverse("judge_new", args=["kassa"]) + query, {**FORM, **sent}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def tried_out(client: Client, material: dict[str, Any], query: str = "", **sent: Any) -> list[JudgeTrial]:
    """The calls of a test that the form has asked for, and a worker has made."""
    page = posted(client, query, **material, **{"try": "1"}, **sent)
    assert "A worker asks the model." in page, re.findall(r'class="errorlist.*?</ul>', page, re.DOTALL)
    series = JudgeTrial.objects.latest("pk").series
    trials.carry_out_trials(series)
    trials.carry_out_trials(series)  # a broker may deliver a task again
    return list(JudgeTrial.objects.filter(series=series))


def shown(client: Client, series: Any) -> str:
    return client.get(reverse("judge_trials", args=["kassa", series])).content.decode()


def test_three_items_are_asked_once_each_and_stand_beside_their_prompts(
    cast: Cast, boris: Client, provider: RunningProvider, settings: Any, material: dict[str, Any]
) -> None:
    object.__setattr__(settings.PROVIDERS["simulated"], "prices", PRICE)
    before = provider.control()["requests"]
    calls = tried_out(boris, material)
    assert provider.control()["requests"] - before == 3
    assert [call.about for call in calls] == ["d1 · et", "d3 · et", "d4 · et"]
    assert all(call.is_read and call.cost and call.reserved and call.cost <= call.reserved for call in calls)
    page = shown(boris, calls[0].series)
    assert "Passed: a score was read." in page
    for words in ("Minu pakk number 3 on kadunud.", "Fluency", "Coherence", "sim-steady-2026-01"):
        assert words in page
    cost = sum((call.cost for call in calls if call.cost), Decimal(0))
    assert f"This test cost {usd(cost)}." in page
    assert budgets.spent_at(cast.kassa.pk, "simulated").paid == cost
    assert not Judge.objects.exists()
    assert "Test this judge" not in posted(boris), "the tested configuration is saved"
    judge = Judge.objects.get()
    assert judge.digest == calls[0].digest
    assert not trials.failed_judges(Judge.objects.all()).exists()
    (entry,) = AuditEntry.objects.filter(verb="test judge")
    assert (entry.actor, entry.subject_pk) == (cast.boris, calls[0].pk)


def test_a_judge_that_nobody_tested_is_saved_only_if_that_is_ticked(
    boris: Client, provider: RunningProvider, material: dict[str, Any]
) -> None:
    assert "Test this judge with one call first" in posted(boris)
    assert not Judge.objects.exists()
    tried_out(boris, material)
    assert "Test this judge with one call first" in posted(boris, parameters='{"max_tokens": 301}'), "another judge"
    posted(boris, parameters='{"max_tokens": 301}', untested="on")
    assert Judge.objects.get().parameters == {"max_tokens": 301}


def test_one_criterion_in_a_call_is_asked_about_one_for_each_item(
    boris: Client, provider: RunningProvider, material: dict[str, Any]
) -> None:
    calls = tried_out(boris, material, grouping="single")
    assert [[row["criterion"] for row in call.verdicts] for call in calls] == [["Fluency"], ["Coherence"], ["Fluency"]]


def test_without_material_the_test_is_about_a_built_in_example(boris: Client, provider: RunningProvider) -> None:
    (call,) = tried_out(boris, {})
    assert (call.is_read, call.about) == (True, "")
    assert "A built-in example" in shown(boris, call.series)


def test_a_study_is_tested_by_its_own_rubric(
    boris: Client, provider: RunningProvider, material: dict[str, Any]
) -> None:
    calls = tried_out(boris, {**material, "test-items": "2"}, "?study=s3", parameters='{"temperature": 0}')
    assert len(calls) == 1
    assert calls[0].parameters["max_tokens"] == trials.MOST_TOKENS, "a judge without a limit gets one for the test"


@pytest.mark.parametrize(
    ("items", "sentence"),
    [("1, 2, 3, 4", "at most three items"), ("nicht da", "no item “nicht da”"), ("9", "no item “9”"), ("", "required")],
)
def test_items_that_are_not_there_are_named(
    boris: Client, provider: RunningProvider, material: dict[str, Any], items: str, sentence: str
) -> None:
    assert sentence in posted(boris, **{**material, "test-items": items, "try": "1"})
    assert not JudgeTrial.objects.exists()


def test_caps_hold_and_a_provider_that_is_not_allowed_is_not_asked(
    cast: Cast, boris: Client, provider: RunningProvider, settings: Any, material: dict[str, Any]
) -> None:
    simulated = settings.PROVIDERS["simulated"]
    object.__setattr__(simulated, "prices", PRICE)
    object.__setattr__(simulated, "simulated", False)
    before = provider.control()["requests"]
    assert "may not use the provider" in posted(boris, **material, **{"try": "1"})
    allowances.allow(project=cast.kassa, provider="simulated", cap_total=Decimal("0.0001"))
    for call in tried_out(boris, material):
        assert (call.is_read, call.cost, call.sent_at) == (False, None, None)
        assert call.reason
    allowances.allow(project=cast.kassa, provider="simulated", cap_total=Decimal(5))
    dear = tried_out(boris, material, parameters='{"max_tokens": 100000}')
    assert all("A test may cost at most USD 0.50" in call.reason for call in dear)
    assert provider.control()["requests"] == before
    assert all(call.cost for call in tried_out(boris, material))
    spent = sum((call.cost for call in JudgeTrial.objects.all() if call.cost), Decimal(0))
    (allowed,) = allowances.allowed_providers(cast.kassa)
    assert allowed.spent == spent > 0


def test_a_failed_judge_is_marked_and_corrected_as_a_new_version(
    cast: Cast, boris: Client, provider: RunningProvider, material: dict[str, Any]
) -> None:
    (call,) = tried_out(boris, {**material, "test-items": "1"}, model="sim-steady:garbage")
    assert call.is_read is False
    assert "Failed: no score could be read." in shown(boris, call.series)
    posted(boris, model="sim-steady:garbage", untested="on")
    wrong = Judge.objects.get()
    assert list(trials.failed_judges(Judge.objects.all())) == [wrong]
    page = boris.get(reverse("judges", args=["kassa"])).content.decode()
    assert f"?like={wrong.pk}" in page
    page = boris.get(reverse("judge", args=["kassa", wrong.pk])).content.decode()
    assert "Correct it: a new version" in page
    begun = boris.get(reverse("judge_new", args=["kassa"]) + f"?like={wrong.pk}").content.decode()
    assert 'value="Nähe “1” (2)"' in begun
    assert "sim-steady:garbage" in begun
    like = f"?like={wrong.pk}"
    tried_out(boris, material, like, name="Nähe “1” (2)")
    posted(boris, like, name="Nähe “1” (2)")
    right = Judge.objects.get(name="Nähe “1” (2)")
    assert (right.parent, right.model) == (wrong, "sim-steady")
    assert list(trials.failed_judges(Judge.objects.all())) == [wrong]
    dataset, rubric = Dataset.objects.get(), RubricVersion.objects.get()
    run = runs.start_judge_run(judge=right, dataset=dataset, rubric_version=rubric)
    assert worked(run).finished
    assert Attempt.objects.filter(call__run__judge=right).exists()
    failing = runs.start_judge_run(judge=wrong, dataset=dataset, rubric_version=rubric)
    worked(failing)
    campaign = campaigns.open_campaign(project=cast.kassa, name="R", dataset=dataset, rubric_version=rubric)
    names = [found.judge.name for found in all_runs(campaign)]
    assert names == ["Nähe “1” (2)", "Nähe “1”"], "what was never read is the default of no page"


def test_models_come_from_the_list_of_the_endpoint(
    cast: Cast, boris: Client, provider: RunningProvider, settings: Any
) -> None:
    page = boris.get(reverse("judge_new", args=["kassa"])).content.decode()
    assert "list was not read yet" in page or "own list" in page
    assert providers.outdated_listings(["simulated"]) == [], "the page has asked for it"
    tasks.list_provider_models("simulated")
    listed = ProviderListing.objects.get()
    assert "sim-steady" in listed.names
    page = boris.get(reverse("judge_new", args=["kassa"])).content.decode()
    assert "from the endpoint’s own list" in page
    assert all(f'<option value="{name}">simulated' in page for name in listed.names)
    object.__setattr__(settings.PROVIDERS["simulated"], "base_url", f"{provider.root}/nowhere")
    ProviderListing.objects.update(listed_at=None)
    tasks.list_provider_models("simulated")
    page = boris.get(reverse("judge_new", args=["kassa"])).content.decode()
    assert "so type the name" in page
    assert endpoints.find_provider("simulated") is not None


def test_a_list_of_models_is_shown_only_where_the_project_may_use_the_provider(
    cast: Cast, boris: Client, provider: RunningProvider, settings: Any
) -> None:
    ProviderListing.objects.create(provider="simulated", names=["ft:kunde “x”"], listed_at=timezone.now())
    object.__setattr__(settings.PROVIDERS["simulated"], "simulated", False)
    address = reverse("judge_new", args=["kassa"])
    assert "ft:kunde" not in boris.get(address).content.decode()
    allowances.allow(project=cast.kassa, provider="simulated", cap_total=Decimal(5))
    assert "ft:kunde" in boris.get(address).content.decode()


def begun(cast: Cast, **changes: Any) -> JudgeTrial:
    """A call of a test about the built-in example that no worker has made, changed to what one did of it."""
    series = trials.begin_trials(
        project=cast.kassa, provider="simulated", model="sim-steady", parameters={"max_tokens": 300}, variant={}
    )
    JudgeTrial.objects.filter(series=series).update(**changes)
    return JudgeTrial.objects.get(series=series)


def test_a_call_whose_worker_died_ends_at_its_worst_case(cast: Cast, boris: Client, provider: RunningProvider) -> None:
    now, worst = timezone.now(), Decimal("0.4")
    dead = begun(cast, sent_at=now - timedelta(hours=2), reserved=worst)
    fresh = begun(cast, sent_at=now, reserved=worst)
    waiting = begun(cast)
    assert budgets.spent_at(cast.kassa.pk, "simulated").in_flight == 2
    tasks.sweep_runs()
    committed = budgets.spent_at(cast.kassa.pk, "simulated")
    assert (committed.in_flight, committed.paid, committed.reserved) == (1, worst, worst)
    dead.refresh_from_db()
    assert (dead.cost, dead.estimated, dead.is_read) == (worst, True, False)
    assert "The worker stopped before the reply was stored" in shown(boris, dead.series)
    assert "A worker asks the model." not in shown(boris, dead.series)
    assert not JudgeTrial.objects.filter(pk__in=[fresh.pk, waiting.pk]).exclude(ended_at=None).exists()
    trials.sweep_trials(now=now + timedelta(days=2))
    assert not JudgeTrial.objects.filter(ended_at=None).exists()
    waiting.refresh_from_db()
    assert (waiting.cost, waiting.reason) == (None, "The worker stopped before it had finished.")


def test_a_call_that_our_own_code_fails_ends(cast: Cast, boris: Client, provider: RunningProvider) -> None:
    broken = begun(cast, material={})
    trials.carry_out_trials(broken.series)
    broken.refresh_from_db()
    assert broken.ended_at and broken.sent_at and broken.is_read is False
    assert "A worker asks the model." not in shown(boris, broken.series)


def test_a_test_that_was_not_sent_makes_no_judge_failed(cast: Cast, provider: RunningProvider) -> None:
    unsent = begun(cast, is_read=False, ended_at=timezone.now(), reason="The limit is spent.")
    parameters: dict[str, Any] = {"max_tokens": 300}
    named: dict[str, Any] = {"name": "Nähe", "provider": "simulated", "model": "sim-steady"}
    judge = judges.declare(project=cast.kassa, **named, parameters=parameters, variant={})
    assert judge.digest == unsent.digest
    assert not trials.failed_judges(Judge.objects.all()).exists()
    JudgeTrial.objects.filter(pk=unsent.pk).update(sent_at=timezone.now())
    assert list(trials.failed_judges(Judge.objects.all())) == [judge]


def test_what_a_failed_test_may_be_billed_counts_until_a_run_is_resumed(cast: Cast, provider: RunningProvider) -> None:
    now, worst = timezone.now(), Decimal("0.45")
    begun(cast, sent_at=now, ended_at=now, reserved=worst, cost=0, doubt="failed", is_read=False)
    judge = judges.declare(project=cast.kassa, name="Nähe", provider="simulated", model="sim-steady")
    about: dict[str, Any] = {"dataset": make.dataset(cast.kassa, 2), "rubric_version": make.rubric(cast.kassa)}
    run = runs.start_judge_run(judge=judge, **about)
    assert budgets.spent_at(cast.kassa.pk, "simulated").failed == worst
    runs.pause_run(run=run)
    runs.resume_run(run=run)
    assert budgets.spent_at(cast.kassa.pk, "simulated").failed == 0


def test_a_test_is_read_by_members_who_see_verdicts_only(
    cast: Cast, boris: Client, provider: RunningProvider, material: dict[str, Any]
) -> None:
    series = tried_out(boris, material)[0].series
    address = reverse("judge_trials", args=["kassa", series])
    assert cast.client("maarika").get(address).status_code == 403
    assert cast.client("zoltan").get(address).status_code == 404
