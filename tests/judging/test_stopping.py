"""A worker that is told to end: nothing more is sent, and what is being paid for comes in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from judging import judges, runs, tasks
from judging.models import Attempt, Call, JudgeRun
from panelbench.celery import app
from tests import make
from tests.cast import Cast
from tests.conftest import database_url
from tests.provider_server import RunningProvider
from tests.workers import wait_for_workers, working

pytestmark = pytest.mark.django_db(transaction=True)

IN_FLIGHT = 8


@pytest.fixture
def asked(cast: Cast, provider: RunningProvider) -> dict[str, Any]:
    """What a run is about whose replies come when the test says so."""
    provider.control(latency=600)
    judge = judges.declare(
        project=cast.kassa, name="Slow", provider="simulated", model="sim-steady", concurrency=IN_FLIGHT
    )
    return {"judge": judge, "dataset": make.dataset(cast.kassa, 60), "rubric_version": make.rubric(cast.kassa)}


def let_replies_come(provider: RunningProvider) -> None:
    """Three seconds after the signal: long enough for the worker to hear of it, and to send more if it did not."""
    time.sleep(3)
    provider.control(latency=0)


def holds_what_was_paid_for(run: JudgeRun, provider: RunningProvider, *, requests: int) -> None:
    counts = provider.control()
    assert counts["requests"] == requests, "nothing was sent after the signal"
    assert counts["answered"] == Attempt.objects.filter(outcome="replied").count() == requests
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"replied"}
    assert not Call.objects.filter(run=run, state="leased").exists()


def test_a_worker_that_is_told_to_end_sends_nothing_more_and_stores_what_comes(
    asked: dict[str, Any], provider: RunningProvider
) -> None:
    app.control.purge()
    run = runs.start_judge_run(**asked)
    with working(queues="judging") as worker:
        tasks.enqueue_run(run.pk)
        wait_for_workers(lambda: provider.control()["in_flight"] == IN_FLIGHT)
        worker.send_signal(signal.SIGTERM)
        let_replies_come(provider)
        worker.wait(60)
    holds_what_was_paid_for(run, provider, requests=IN_FLIGHT)
    assert run.calls.filter(state="waiting").count() == 60 - IN_FLIGHT


def test_a_command_that_is_told_to_end_stores_what_comes_and_pauses(
    asked: dict[str, Any], provider: RunningProvider
) -> None:
    names = ["--project", "kassa", "--judge", "Slow", "--dataset", "Dialogues", "--rubric", "quality", "--here"]
    command = [sys.executable, "-m", "panelbench.cli", "run_judge", *names]
    with subprocess.Popen(
        command, env={**os.environ, "DATABASE_URL": database_url()}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as here:
        wait_for_workers(lambda: provider.control()["in_flight"] == IN_FLIGHT)
        here.send_signal(signal.SIGTERM)
        let_replies_come(provider)
        _, complaints = here.communicate(timeout=60)
    assert b"Interrupted at the command line" in complaints
    run = JudgeRun.objects.get()
    assert run.state == "paused"
    holds_what_was_paid_for(run, provider, requests=IN_FLIGHT)
