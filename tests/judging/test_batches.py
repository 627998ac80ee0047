"""Runs by the batch API: asked once, matched by number, paid at the price of batches, whatever the batch does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts import deletion, jobs, people
from accounts.models import Job
from accounts.refusals import Refused
from judging import batches, judges, runs
from judging.asking import allowances
from judging.models import Attempt, Call, CallBatch, Judge, JudgeRun, ModelCapability
from panelbench import environment
from tests import make
from tests.cast import Cast
from tests.conftest import database_url
from tests.judging.test_runs import worked
from tests.provider_server import RunningProvider
from tests.workers import long_after, wait_for_workers

pytestmark = pytest.mark.django_db(transaction=True)

ITEMS = 20
PRICES = {"prices": {"sim-steady": [2, 80]}, "batch_prices": {"sim-steady": [1, 40]}}


@pytest.fixture
def offered(provider: RunningProvider, settings: Any) -> RunningProvider:
    """The simulated provider with a batch API at half the price; `plain` has the same server without one."""
    entry = {"base_url": provider.base_url, "simulated": True, **PRICES}
    entries = [{"name": "simulated", "batches": True, **entry}, {"name": "plain", **entry}]
    settings.PROVIDERS = environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps(entries)})
    provider.control(batch_seconds=0)
    return provider


def declared(cast: Cast, model: str = "sim-steady", **options: Any) -> Judge:
    named = {"name": f"{model} {options}", "provider": "simulated", "parameters": {"max_tokens": 300}, **options}
    return judges.declare(project=cast.kassa, model=model, variant={"grouping": "compound"}, **named)


def begun(cast: Cast, judge: Judge | None = None, **options: Any) -> JudgeRun:
    about = {"dataset": make.dataset(cast.kassa, ITEMS), "rubric_version": make.rubric(cast.kassa)}
    return runs.start_judge_run(judge=judge or declared(cast), by_batch=True, **about, **options)


def step(run: JudgeRun) -> CallBatch | None:
    """What the tasks do once: begin the next batch of a run, or look after the one that is open."""
    Call.objects.filter(run=run).update(not_before=None)
    batches.begin_batch(run_pk=run.pk)
    batch = run.batches.filter(ended_at=None).first()
    if batch is not None:
        batches.carry_out_batch(batch_pk=batch.pk)
        batch.refresh_from_db()
    return batch


def stepped(run: JudgeRun) -> runs.RunProgress:
    """What the tasks do until nothing more happens."""
    while step(run) is not None:
        pass
    run.refresh_from_db()
    return runs.run_progress(run)


def scores(run: JudgeRun) -> dict[tuple[int, int], float | None]:
    return {(item, key): score for item, key, score in run.verdicts.values_list("item", "criterion", "score")}


def billed(provider: RunningProvider) -> Decimal:
    """What the provider asks for, at the price of batches."""
    counts = provider.control()
    return Decimal(counts["tokens_in"] + 40 * counts["tokens_out"]) / 1_000_000


def asked_once(provider: RunningProvider) -> bool:
    return set(provider.control()["prompts"].values()) == {1}


# --- the whole of it, through the page --------------------------------------------------------------------------------
def test_a_run_by_batch_gives_the_scores_of_a_plain_run_at_half_the_price(cast: Cast, offered: RunningProvider) -> None:
    client, judge, plain = cast.client("boris"), declared(cast), declared(cast, provider="plain")
    dataset, version = make.dataset(cast.kassa, ITEMS), make.rubric(cast.kassa)
    chosen = {"dataset": dataset.pk, "rubric_version": version.pk, "repeats": 1, "budget": "5", "by_batch": "on"}
    offers = 'type="checkbox" name="by_batch"'
    assert offers in client.get(f"/p/kassa/judges/{judge.pk}/runs/new/").content.decode()
    assert offers not in client.get(f"/p/kassa/judges/{plain.pk}/runs/new/").content.decode()
    refused = client.post(f"/p/kassa/judges/{plain.pk}/runs/new/", chosen)
    assert "is not declared to have a batch API" in refused.content.decode()

    estimates = [
        runs.forecast(judge=judge, dataset=dataset, rubric_version=version, by_batch=by_batch).cost
        for by_batch in (False, True)
    ]
    assert estimates[0] == 2 * estimates[1]  # type: ignore[operator]
    offered.control(next_batches=["shuffled"])
    client.post(f"/p/kassa/judges/{judge.pk}/runs/new/", chosen)
    run = JudgeRun.objects.get()
    progress = stepped(run)
    assert (progress.finished, progress.settled, offered.control()["requests"]) == (True, ITEMS, 0)
    assert progress.cost == billed(offered)
    assert asked_once(offered)
    assert not Attempt.objects.exclude(latency=None).exists()
    text = client.get(f"/p/kassa/runs/{run.pk}/").content.decode()
    assert "2 of 2 calls answered" in text, "a batch of two, until its bills are known"
    assert sum(run.batches.values_list("answered", flat=True)) == ITEMS
    assert "completed" in text

    other = runs.start_judge_run(judge=plain, dataset=dataset, rubric_version=version)
    worked(other)
    assert scores(run) == scores(other)


def test_the_api_starts_a_run_by_batch_and_shows_its_batches(cast: Cast, offered: RunningProvider) -> None:
    about = {"dataset": make.dataset(cast.kassa, 3).pk, "rubric_version": make.rubric(cast.kassa).pk, "by_batch": True}
    client, root = cast.client("boris"), "/api/v1/projects/kassa/runs/"

    def post(address: str, judge: Judge) -> Any:
        return client.post(address, json.dumps({"judge": judge.pk, **about}), content_type="application/json")

    assert post(root, declared(cast, provider="plain")).json()["code"] == "batches"
    assert Decimal(post(f"{root}forecast/", declared(cast)).json()["cost"]) > 0
    made = post(root, declared(cast)).json()
    stepped(JudgeRun.objects.get(pk=made["id"]))
    shown = client.get(f"{root}{made['id']}/").json()
    assert (shown["by_batch"], shown["progress"]["settled"]) == (True, 3)
    assert [(batch["status"], batch["calls"], batch["answered"]) for batch in shown["batches"]] == [("completed", 3, 3)]


# --- what a batch may do ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["expired", "missing", "doubled", "shuffled", "unanswered", "invalid"])
def test_whatever_a_batch_does_every_call_is_settled_once(cast: Cast, offered: RunningProvider, kind: str) -> None:
    offered.control(next_batches=[kind])
    run = begun(cast)
    progress = stepped(run)
    if kind == "invalid":
        assert (run.state, progress.cost, progress.in_flight) == ("paused", Decimal(0), 0)
        assert "Line 1 cannot be read." in run.reason
        runs.resume_run(run=run)
        progress = stepped(run)
    assert (progress.finished, progress.settled, progress.failed) == (True, ITEMS, 0)
    assert run.verdicts.count() == ITEMS * run.rubric_version.criteria.count()
    counts = offered.control()
    assert counts["batches"] == (2 if kind in ("expired", "missing", "invalid") else 1)
    if kind == "missing":  # they may have been paid: booked at their worst case, and asked again
        assert progress.lost == counts["batch_lines"] - ITEMS > 0
        assert progress.cost and progress.cost > billed(offered)
    else:
        assert progress.cost == billed(offered)
        assert asked_once(offered)


def test_a_slow_batch_is_waited_for_and_its_run_is_not_asked_otherwise(cast: Cast, offered: RunningProvider) -> None:
    offered.control(batch_seconds=3600, next_batches=["slow"])
    run = begun(cast)
    for _time in range(3):
        batch = step(run)
        assert batch is not None
        assert batch.status == "in_progress"
    job = Job.objects.get()
    assert (job.state, job.due_at > timezone.now()) == ("waiting", True)
    progress = runs.run_progress(run)
    assert (progress.in_flight, progress.waiting, offered.control()["batches"]) == (ITEMS, 0, 1)
    assert progress.reserved


def test_lines_that_failed_are_asked_again_and_refused_ones_are_not(cast: Cast, offered: RunningProvider) -> None:
    offered.control(next=["rate_limit", "server_error", "forbidden", "no_schema", *["none"] * (ITEMS - 4)])
    run = begun(cast)
    step(run)
    assert Counter(run.calls.values_list("state", flat=True)) == {
        "settled": ITEMS - 3,
        "waiting": 3,
    }
    assert ModelCapability.objects.get().refused == ["json_schema"]
    progress = stepped(run)
    assert (progress.finished, progress.verdicts["refused"]) == (True, run.rubric_version.criteria.count())
    assert run.batches.count() == 2
    assert progress.cost == billed(offered)


def test_a_cancelled_run_cancels_its_batch_and_keeps_what_was_answered(cast: Cast, offered: RunningProvider) -> None:
    offered.control(batch_seconds=3600)
    run = begun(cast)
    step(run)
    runs.cancel_run(run=run)
    step(run)
    batch = run.batches.get()
    assert (batch.status, batch.ended_at is None) == ("cancelled", False)
    progress = stepped(run)
    assert (progress.settled, progress.in_flight, progress.cost) == (ITEMS // 2, 0, billed(offered))
    assert offered.control()["batches"] == 1


def test_what_is_wrong_here_gives_up_no_batch_that_may_have_begun(
    cast: Cast, offered: RunningProvider, settings: Any
) -> None:
    """A key that is refused while nobody knows whether the batch was begun, then a provider that is not declared."""
    offered.control(batch_seconds=3600, next_batches=["unanswered"])
    run = begun(cast)
    step(run)
    assert run.batches.get().provider_batch == ""
    offered.control(required_key="another")
    step(run)
    run.refresh_from_db()
    assert (run.state, "401" in run.reason, run.batches.get().ended_at) == ("paused", True, None)
    offered.control(required_key=None)
    step(run)
    declared_now, settings.PROVIDERS = settings.PROVIDERS, {}
    runs.resume_run(run=run)
    step(run)
    run.refresh_from_db()
    assert (run.state, run.batches.get().ended_at) == ("paused", None)
    settings.PROVIDERS = declared_now
    offered.control(batch_seconds=0)
    progress = stepped(run)
    assert (progress.settled, progress.lost, offered.control()["batches"]) == (ITEMS, 0, 1)
    assert progress.cost == billed(offered)


@pytest.mark.parametrize("stop", ["delete", "archive", "pause"])
def test_no_batch_begins_at_a_second_try_after_its_run_was_stopped(
    cast: Cast, offered: RunningProvider, stop: str
) -> None:
    offered.control(batch_seconds=3600, next_batches=["unanswered"])
    run = begun(cast)
    step(run)
    batch = run.batches.get()
    assert Attempt.objects.filter(call__lease=batch.lease, outcome=Attempt.Outcome.SENT).count() == batch.calls
    # The first try never reached the provider: it knows no batch with this lease or this file.
    CallBatch.objects.filter(pk=batch.pk).update(input_file="file-nowhere")
    Call.objects.filter(lease=batch.lease).update(lease=(lease := uuid4()))
    CallBatch.objects.filter(pk=batch.pk).update(lease=lease)
    if stop == "delete":
        deletion.delete_project(project=cast.kassa, name="Kassa", actor=cast.aino)
    elif stop == "archive":
        people.archive(project=cast.kassa, actor=cast.aino)
    else:
        runs.pause_run(run=run, reason="")
    before = offered.control()["batches"]
    batches.carry_out_batch(batch_pk=batch.pk)
    batch.refresh_from_db()
    assert offered.control()["batches"] == before and batch.ended_at is not None and batch.provider_batch == ""
    assert not Attempt.objects.filter(outcome=Attempt.Outcome.SENT).exists()
    assert not run.calls.filter(state=Call.State.LEASED).exists()


def test_an_archived_project_still_takes_the_replies_of_its_batch(cast: Cast, offered: RunningProvider) -> None:
    offered.control(batch_seconds=3600)
    run = begun(cast)
    step(run)
    people.archive(project=cast.kassa, actor=cast.aino)
    offered.control(batch_seconds=0)
    progress = stepped(run)
    assert (run.state, progress.settled, progress.lost) == ("paused", ITEMS, 0)


def test_results_are_matched_by_the_number_alone(cast: Cast, offered: RunningProvider) -> None:
    offered.control(batch_seconds=3600)
    run = begun(cast)
    batch = step(run)
    assert batch is not None
    pk = Attempt.objects.filter(call__run=run).values_list("pk", flat=True)[0]
    names = [f"{pk:09d}", "".join(chr(0xFF10 + int(digit)) for digit in str(pk)), "9" * 30, None, "nobody's"]
    lines = [{"custom_id": name, "error": {"code": "server_error", "message": "?"}} for name in names]
    batches._settle(batch, lines, [])
    assert run.calls.filter(state=Call.State.WAITING).count() == 1


def test_the_files_of_a_batch_are_deleted_at_the_provider(cast: Cast, offered: RunningProvider) -> None:
    offered.control(next=["rate_limit", *["none"] * (ITEMS - 1)], batch_seconds=3600)
    run = begun(cast)
    step(run)
    assert is_there(offered, 1)
    offered.control(batch_seconds=0)
    step(run)
    assert [is_there(offered, number) for number in (1, 2, 3)] == [False] * 3  # what was uploaded, results, errors
    assert Job.objects.get().state == "finished"


def is_there(provider: RunningProvider, number: int) -> bool:
    try:
        with urllib.request.urlopen(f"{provider.base_url}/files/file-simulated-{number}/content", timeout=60):
            return True
    except urllib.error.HTTPError as missing:
        return missing.code != 404


def test_a_batch_has_no_more_calls_than_results_are_read_of(
    cast: Cast, offered: RunningProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judging.asking.client.LARGEST_FILE", 50_000)
    run = begun(cast)
    assert stepped(run).settled == ITEMS
    assert sorted(run.batches.values_list("calls", flat=True)) == [9, 11]
    listed = declared(cast, parameters={"max_tokens": 300, "logprobs": True, "top_logprobs": 20})
    assert batches._most_calls(listed) == 1


# --- money ------------------------------------------------------------------------------------------------------------
def test_caps_are_reserved_before_a_batch_is_sent(cast: Cast, offered: RunningProvider) -> None:
    judge = declared(cast)
    free = begun(cast, judge)
    offered.control(batch_seconds=3600)
    step(free)
    worst = Attempt.objects.filter(call__run=free).first()
    assert worst is not None
    assert worst.reserved
    offered.control(batch_seconds=0)
    stepped(free)
    about: dict[str, Any] = {"dataset": free.dataset, "rubric_version": free.rubric_version, "by_batch": True}
    other = declared(cast, parameters={"max_tokens": 299})
    capped = runs.start_judge_run(judge=other, budget=2 * worst.reserved, **about)
    progress = stepped(capped)
    assert capped.state == "paused"
    assert "The budget is spent" in capped.reason
    assert 0 < progress.settled < ITEMS
    assert progress.cost is not None
    assert progress.cost <= 2 * worst.reserved
    runs.rebudget(run=capped, budget=Decimal(5))
    runs.resume_run(run=capped)
    assert stepped(capped).finished


def test_a_batch_waits_while_another_run_fills_the_limit_of_the_project(
    cast: Cast, offered: RunningProvider, settings: Any
) -> None:
    entry = {"name": "simulated", "batches": True, "base_url": offered.base_url, **PRICES}
    settings.PROVIDERS = environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps([entry])})
    allowances.allow(project=cast.kassa, provider="simulated")
    offered.control(batch_seconds=3600)
    first = begun(cast)
    step(first)
    reserved = runs.run_progress(first).reserved
    assert reserved
    allowances.allow(project=cast.kassa, provider="simulated", cap_total=reserved)
    about: dict[str, Any] = {"dataset": first.dataset, "rubric_version": first.rubric_version, "by_batch": True}
    second = runs.start_judge_run(judge=declared(cast, parameters={"max_tokens": 299}), **about)
    for _time in range(3):
        step(second)
    second.refresh_from_db()
    assert (second.state, second.batches.count(), second.batches.get().ended_at) == ("running", 1, None)
    offered.control(batch_seconds=0)
    stepped(first)
    step(second)
    assert runs.run_progress(second).settled > 0


def test_replies_of_earlier_runs_are_used_and_nothing_is_sent(cast: Cast, offered: RunningProvider) -> None:
    run = begun(cast)
    stepped(run)
    about = {"dataset": run.dataset, "rubric_version": run.rubric_version, "by_batch": True}
    again = runs.start_judge_run(judge=run.judge, **about)
    progress = stepped(again)
    assert (progress.finished, progress.reused, progress.cost) == (True, ITEMS, Decimal(0))
    assert offered.control()["batches"] == 1
    assert scores(again) == scores(run)


# --- deaths -----------------------------------------------------------------------------------------------------------
HERE = """
import os, django
django.setup()
from judging import batches
from judging.asking import allowances
from judging.models import CallBatch
batch = batches.begin_batch(run_pk={run})
batches.carry_out_batch(batch_pk=batch.pk)
"""


@pytest.mark.parametrize("moment", ["input_file", "provider_batch"])
def test_a_worker_that_is_killed_loses_nothing_and_nothing_is_paid_twice(
    cast: Cast, offered: RunningProvider, moment: str
) -> None:
    """Killed while it writes and uploads the file, or as soon as the batch is begun."""
    offered.control(batch_seconds=3600)
    run = begun(cast)
    declared_now = json.dumps([{"name": "simulated", "base_url": offered.base_url, "simulated": True, "batches": True}])
    environ = {**os.environ, "DATABASE_URL": database_url(), "PANELBENCH_PROVIDERS": declared_now}
    worker = subprocess.Popen([sys.executable, "-c", HERE.format(run=run.pk)], env=environ)
    if moment == "input_file":
        wait_for_workers(lambda: Attempt.objects.filter(call__run=run).exists())
    else:
        wait_for_workers(lambda: run.batches.exclude(provider_batch="").exists())
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    offered.control(batch_seconds=0)
    jobs.sweep_jobs(now=long_after())
    progress = stepped(run)
    assert (progress.finished, progress.settled, progress.lost) == (True, ITEMS, 0)
    assert offered.control()["batches"] == 1
    assert asked_once(offered)


def test_the_job_of_a_batch_that_has_ended_ends(cast: Cast, offered: RunningProvider) -> None:
    """A worker was killed after the batch had ended, before its job had."""
    run = begun(cast)
    batch = batches.begin_batch(run_pk=run.pk)
    assert batch is not None
    CallBatch.objects.filter(pk=batch.pk).update(ended_at=timezone.now())
    assert batches.carry_out_batch(batch_pk=batch.pk) == run.pk
    assert Job.objects.get().state == "finished"


def test_who_cancels_the_job_gives_the_batch_up(cast: Cast, offered: RunningProvider) -> None:
    offered.control(batch_seconds=3600)
    run = begun(cast, actor=cast.aino)
    step(run)
    jobs.cancel(job=Job.objects.get(), actor=cast.aino)
    progress = stepped(run)
    assert (run.state, progress.in_flight, progress.lost) == ("paused", 0, ITEMS)
    with pytest.raises(Refused, match="over already"):
        jobs.cancel(job=Job.objects.get(), actor=cast.aino)


@pytest.mark.parametrize(
    ("kind", "learnt"),
    [
        ("loc_response_format", ["json_schema", "json_object"]),
        ("loc_temperature", ["temperature"]),
        ("bare_temperature", ["temperature"]),
        ("two_roles", ["system_role"]),
        ("guided_decoding", ["json_schema"]),
    ],
)
def test_what_a_line_refuses_in_other_words_is_left_out_of_the_next_batch(
    cast: Cast, offered: RunningProvider, kind: str, learnt: list[str]
) -> None:
    judge = declared(cast, f"sim-steady:{kind}", parameters={"max_tokens": 300, "temperature": 0})
    run = begun(cast, judge)
    assert stepped(run).verdicts == {"ok": 2 * ITEMS}
    assert judges.refused_by_model(judge) == learnt
