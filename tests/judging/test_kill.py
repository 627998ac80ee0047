"""A run through Redis and two workers, one killed with SIGKILL midway: every verdict once, no reply paid twice."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import Heartbeat
from judging import calls, judges, runs, tasks
from judging.models import Attempt, Call, JudgeRun
from judging.prompts import PromptVariant, render, response_schema
from judging.requests import criterion_brief, item_text
from panelbench.celery import app
from tests import make
from tests.cast import Cast
from tests.provider_server import RunningProvider
from tests.workers import kill, wait_for_workers, working

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not settings.REDIS_URL, reason="needs Redis"),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="needs PostgreSQL"),
]

DIALOGUES, CRITERIA = 120, 2
BEFORE = 40  # replies that are stored before the worker is killed


def digests(run: JudgeRun) -> dict[str, int]:
    """What the provider counts each call's request under, and the call: every item and criterion differ."""
    variant = judges.variant_of(run.judge.variant)
    calls = Call.objects.filter(run=run).select_related("item__dataset", "criterion")
    return {_digest(run.judge.model, call, variant): call.pk for call in calls}


def _digest(model: str, call: Call, variant: PromptVariant) -> str:
    asked = [criterion_brief(call.criterion, variant.instruction_language)]
    schema = {"name": "verdicts", "strict": True, "schema": response_schema(asked, variant)}
    body = {
        "model": model,
        "messages": render(item=item_text(call.item), criteria=asked, variant=variant),
        "response_format": {"type": "json_schema", "json_schema": schema},
    }
    return hashlib.sha256(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


def test_every_verdict_once_and_no_stored_reply_paid_twice(cast: Cast, provider: RunningProvider) -> None:
    # Forty replies come; all others wait until the first worker is killed.
    provider.control(latency=0.05, next=["none"] * BEFORE + ["slow"] * (DIALOGUES * CRITERIA), slowness=600)
    app.control.purge()
    judge = judges.declare(
        project=cast.kassa, name="Steady", provider="simulated", model="sim-steady", variant={"grouping": "single"}
    )
    run = runs.start_judge_run(
        judge=judge, dataset=make.dataset(cast.kassa, DIALOGUES), rubric_version=make.rubric(cast.kassa)
    )
    leased = Call.objects.filter(run=run, state=Call.State.LEASED)
    replied = Attempt.objects.filter(call__run=run, outcome=Attempt.Outcome.REPLIED)

    with working(queues="judging", name="doomed") as doomed, working(queues="judging", name="survivor"):
        wait_for_workers(lambda: Heartbeat.objects.filter(kind="worker").count() == 2)
        tasks.enqueue_run(run.pk)
        wait_for_workers(lambda: calls.holders(run) == 2 and replied.count() == BEFORE)
        kill(doomed)
        provider.control(slowness=0)

        wait_for_workers(lambda: calls.holders(run) == 1 and runs.run_progress(run).waiting == 0)
        lost = set(leased.values_list("pk", flat=True))
        assert lost
        assert calls.sweep_leases() == [], "the dead worker's lease still runs"
        assert calls.sweep_leases(now=timezone.now() + calls.LEASE) == [run.pk]
        tasks.enqueue_run(run.pk)
        wait_for_workers(lambda: runs.run_progress(run).finished)

    pairs = Counter(run.verdicts.values_list("item", "criterion"))
    assert (len(pairs), set(pairs.values())) == (DIALOGUES * CRITERIA, {1})
    counts, call_of = provider.control(), digests(run)
    assert counts["prompts"].keys() == call_of.keys()
    assert counts["answered"] - replied.count() <= len(lost)
    assert {call_of[digest] for digest, times in counts["prompts"].items() if times > 1} <= lost
