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
from judging import designs, judges, runs, tasks
from judging.asking import leases
from judging.models import Attempt, Call, JudgeRun, Verdict
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


def both_wait_for_replies(provider: RunningProvider) -> bool:
    """Whether both workers have requests at the provider, and none is on its way there.

    A worker that is killed before it sent its first request loses none.
    """
    sent = list(Attempt.objects.filter(outcome=Attempt.Outcome.SENT).values_list("call__lease", flat=True))
    return len(set(sent)) == 2 and provider.control()["in_flight"] == len(sent)


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
    replied = Attempt.objects.filter(call__run=run, outcome=Attempt.Outcome.REPLIED)
    lost = Attempt.objects.filter(call__run=run, outcome=Attempt.Outcome.LOST)

    with working(queues="judging", name="doomed") as doomed, working(queues="judging", name="survivor"):
        wait_for_workers(lambda: Heartbeat.objects.filter(kind="worker").count() == 2)
        tasks.enqueue_run(run.pk)
        wait_for_workers(lambda: replied.count() == BEFORE and both_wait_for_replies(provider))
        kill(doomed)
        # The survivor gives back what the dead one held, and asks for it again: no lease has to end before that.
        wait_for_workers(lost.exists, seconds=leases.LEASE.total_seconds() * 0.8)
        provider.control(slowness=0)
        wait_for_workers(lambda: runs.run_progress(run).finished)

    pairs = Counter(run.verdicts.values_list("item", "criterion"))
    assert (len(pairs), set(pairs.values())) == (DIALOGUES * CRITERIA, {1})
    counts, call_of = provider.control(), digests(run)
    in_flight_at_the_kill = set(lost.values_list("call", flat=True))
    assert counts["prompts"].keys() == call_of.keys()
    assert counts["requests"] - replied.count() <= len(in_flight_at_the_kill)
    assert {call_of[digest] for digest, times in counts["prompts"].items() if times > 1} <= in_flight_at_the_kill


def test_two_variants_with_equal_requests_pay_once_also_when_a_worker_is_killed(
    cast: Cast, provider: RunningProvider
) -> None:
    """Two runs of one design send the same at the same time, on two workers; one of those is killed midway."""
    provider.control(latency=0.05, next=["none"] * BEFORE + ["slow"] * (2 * DIALOGUES), slowness=600)
    app.control.purge()
    judge = judges.declare(project=cast.kassa, name="Steady", provider="simulated", model="sim-steady")
    about = {"dataset": make.dataset(cast.kassa, DIALOGUES), "rubric_version": make.rubric(cast.kassa)}
    factors = {"anchor_detail": ["anchors", "reasons"]}
    design = designs.create_design(project=cast.kassa, name="D", judges_asked=[judge], factors=factors, **about)
    started = designs.start_design(design=design)
    replied, lost = (Attempt.objects.filter(outcome=outcome) for outcome in ("replied", "lost"))
    with working(queues="judging", name="doomed") as doomed, working(queues="judging", name="survivor"):
        wait_for_workers(lambda: Heartbeat.objects.filter(kind="worker").count() == 2)
        tasks.enqueue_runs(started)
        wait_for_workers(lambda: replied.count() == BEFORE and both_wait_for_replies(provider))
        kill(doomed)
        wait_for_workers(lost.exists, seconds=leases.LEASE.total_seconds() * 0.8)
        provider.control(slowness=0)
        wait_for_workers(lambda: designs.progress_of_design(design).finished)
    counts = provider.control()
    assert Verdict.objects.filter(status="ok").count() == 2 * DIALOGUES * CRITERIA
    assert len(counts["prompts"]) == replied.count() == DIALOGUES
    assert counts["requests"] - DIALOGUES <= lost.count()
    assert Attempt.objects.filter(outcome="reused").count() == DIALOGUES


def test_the_run_of_a_worker_that_died_alone_goes_on_when_the_next_worker_starts(
    cast: Cast, provider: RunningProvider
) -> None:
    provider.control(latency=600)
    app.control.purge()
    judge = judges.declare(project=cast.kassa, name="Steady", provider="simulated", model="sim-steady")
    about = {"dataset": make.dataset(cast.kassa, 8), "rubric_version": make.rubric(cast.kassa)}
    run = runs.start_judge_run(judge=judge, **about)
    with working(queues="judging") as doomed:
        tasks.enqueue_run(run.pk)
        wait_for_workers(lambda: provider.control()["in_flight"] == 8)
        kill(doomed)
    provider.control(latency=0)
    lease_ends = Call.objects.filter(run=run).latest("leased_until").leased_until
    with working(queues="judging", name="next"):
        wait_for_workers(lambda: runs.run_progress(run).finished)
    assert timezone.now() < lease_ends, "nobody waited for the dead worker's lease to end"
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"lost", "replied"}
