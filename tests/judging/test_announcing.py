"""The end of a run is told exactly once, whoever settles the last call, and never before."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from accounts import webhooks
from accounts.models import Delivery
from judging import runs
from judging.calls import CALLS
from judging.generation import plans
from judging.models import JudgeRun
from tests.cast import Cast
from tests.judging.generation.test_writing import planned, written
from tests.judging.test_runs import declared, started
from tests.judging.test_work_sessions import reply, sent
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(cast: Cast, provider: RunningProvider, settings: Any) -> JudgeRun:
    """A run of a project that wants to hear of it."""
    settings.DEBUG = True
    webhooks.add(project=cast.kassa, address="http://127.0.0.1:9/", events=["run.finished"], actor=cast.aino)
    return started(cast, declared(cast))


def told() -> list[dict[str, Any]]:
    return [delivery.payload["data"] for delivery in Delivery.objects.order_by("pk")]


def test_the_end_is_told_and_nothing_before_it(run: JudgeRun) -> None:
    planned = run.calls.count()
    for number in range(planned):
        assert told() == [], number
        lease, (call_request,) = sent(run, 1)
        CALLS.settle(outcomes=[reply(call_request, lease)])
    about = {"judge": run.judge_id, "dataset": run.dataset_id, "rubric_version": run.rubric_version_id}
    assert told() == [{"project": "kassa", "run": run.pk, **about, "calls": planned, "failed": 0}]
    CALLS.settle(outcomes=[reply(call_request, lease)])
    assert len(told()) == 1, "a second reply to a settled call ends nothing"


def test_two_workers_that_settle_the_last_calls_at_once_tell_it_once(run: JudgeRun) -> None:
    for _turn in range(5):
        Delivery.objects.all().delete()
        lease, call_requests = sent(run, 100)
        half = len(call_requests) // 2
        together = threading.Barrier(2)

        def hand_in(share: list[Any], lease: Any = lease, together: threading.Barrier = together) -> None:
            together.wait()
            CALLS.settle(outcomes=[reply(call_request, lease) for call_request in share])
            connection.close()

        workers = [
            threading.Thread(target=hand_in, args=(share,)) for share in (call_requests[:half], call_requests[half:])
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert runs.run_progress(run).finished
        assert len(told()) == 1
        run = runs.start_judge_run(judge=run.judge, dataset=run.dataset, rubric_version=run.rubric_version, again=True)


def test_a_cancelled_run_never_finishes(cast: Cast, run: JudgeRun) -> None:
    lease, call_requests = sent(run, 100)
    runs.cancel_run(run=run)
    CALLS.settle(outcomes=[reply(call_request, lease) for call_request in call_requests])
    assert told() == []


@pytest.mark.both_databases
def test_the_end_and_the_pause_of_a_plan_are_told_once(cast: Cast, provider: RunningProvider, settings: Any) -> None:
    settings.DEBUG = True
    events = ["plan.finished", "plan.paused"]
    webhooks.add(project=cast.kassa, address="http://127.0.0.1:9/", events=events, actor=cast.aino)
    plan = planned(cast, languages=["et"], families=4, models=("sim-steady", "sim-chatty"))
    plans.start_examples(plan=plan)
    written(plan)
    about = {"project": "kassa", "plan": plan.pk, "texts": 8, "given_up": 0}
    assert told() == [{**about, "phase": "examples", "written": 6}]
    plans.start_plan(plan=plan)
    for _twice in range(2):
        plans.pause_plan(plan=plan)
    assert told()[1:] == [{**about, "phase": "paused", "written": 6}]
    plans.resume_plan(plan=plan)
    written(plan)
    assert told()[2:] == [{**about, "phase": "finished", "written": 8}]
    assert [*Delivery.objects.order_by("pk").values_list("event", flat=True)] == [events[0], events[1], events[0]]
