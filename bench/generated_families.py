"""The first study's dialogues made by a generation plan, with two SIGKILLs, a storm of 429 and an exhausted budget.

``python -m bench.generated_families`` writes ``bench/results/generated_families.md``, on PostgreSQL with Redis and on
SQLite with a queue in a folder: 4 languages x 50 families x 3 generators by the simulated provider, which breaks rules
of the turns at planted rates. About three minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from bench.kill_worker import SWEEP, kill_both, kill_one, workers
from bench.server import database, on_both_databases, redis_server
from tests.provider_server import RunningProvider, running_provider

RESULT = Path(__file__).parent / "results" / "generated_families.md"
HEAD = """\
# A generation plan of 600 dialogues through two SIGKILLs, a storm of 429 and an exhausted budget

4 languages x 50 families x 3 generators, replies of 0.1 s, two workers. The provider breaks a rule in a twelfth of the
replies, as planted. The first budget is too small: the plan pauses, the budget is raised, and it resumes. Then one
worker is killed, 60 requests in a row get 429, and both workers are killed and started again. *Booked* are the requests
that were sent, by our attempts; *counted* by the provider. *Twice* are texts with more than one reply that keeps the
rules. *Found* are discarded replies. A request is booked if its first byte has left (the work session notes it), so
*booked* is *counted*. A kill can lose replies that broke a rule: *planted* exceeds *found* by at most *lost*. *Spent
first* is the cost when the first budget was exhausted.

| database | texts | written | whole families | booked | counted | lost | 429 | planted | found | twice | first budget \
| spent first | cost | seconds |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""
LANGUAGES, FAMILIES = ("et", "en", "es", "ja"), 50
MODELS = ("sim-steady", "sim-flawed", "sim-chatty")
BREAKS = {"no_greeting": 0.02, "wrong_count": 0.02, "unreadable": 0.02, "stand_in": 0.02}
PRICES = {model: [0.2, 0.8] for model in MODELS}
FIRST_BUDGET, LAST_BUDGET = Decimal("0.02"), Decimal(200)
STORM = 60
MOST_SECONDS = 200.0


def measure(kind: str) -> str:
    """The row of one database."""
    with contextlib.ExitStack() as stack:
        if kind == "postgresql":
            stack.enter_context(redis_server())
        else:
            os.environ.pop("REDIS_URL", None)
        provider = stack.enter_context(running_provider(latency=0.1))
        declared = {"name": "simulated", "base_url": provider.base_url, "simulated": True, "prices": PRICES}
        os.environ["PANELBENCH_PROVIDERS"] = json.dumps([declared])
        stack.enter_context(database(kind))
        return _measured(kind, provider)


def _measured(kind: str, provider: RunningProvider) -> str:
    from accounts import people
    from accounts.models import User
    from judging import tasks
    from judging.generation import plans, storing
    from judging.generation.plans import GeneratorChoice
    from judging.generation.specs import preset
    from judging.models import GenerationAttempt

    provider.control(written_breaks=BREAKS)
    founder = User.objects.create_user("generated@panelbench.test")
    project = people.create_project(name="Generated", slug="generated", founder=founder)
    parameters = {"max_tokens": 2_000}
    plan = plans.create_plan(
        project=project,
        name="Support dialogues",
        spec=preset("support-dialogues"),
        languages=LANGUAGES,
        families=FAMILIES,
        generators=[GeneratorChoice(provider="simulated", model=model, parameters=parameters) for model in MODELS],
        seed=1,
        budget=FIRST_BUDGET,
    )
    attempts = GenerationAttempt.objects.filter(realisation__plan=plan)
    replied = attempts.filter(outcome="replied")
    texts = plan.realisations.count()
    began = time.monotonic()
    with workers(2) as those:
        plans.start_plan(plan=plan)
        tasks.enqueue_plan(plan)

        def is_paused() -> bool:
            plan.refresh_from_db()
            return plan.state == "paused" and plans.plan_progress(plan).in_flight == 0

        _wait(is_paused)
        spent_first = plans.plan_progress(plan).cost
        plans.set_plan_budget(plan=plan, budget=LAST_BUDGET)
        plans.resume_plan(plan=plan)
        tasks.enqueue_plan(plan)
        _wait(lambda: replied.count() > texts * 0.45)
        kill_one(those, provider)
        those.start()
        provider.control(next=["rate_limit"] * STORM)
        _wait(lambda: replied.count() > texts * 0.7)
        kill_both(those, provider)
        _wait(lambda: plans.has_finished(plan))
    took = time.monotonic() - began
    progress = plans.plan_progress(plan)
    counts = provider.control()
    kept = replied.filter(problems=[])
    dataset = storing.store_dataset(plan=plan, name="Support dialogues", only="all")
    assert dataset.items.count() == progress.written
    figures = (
        *(kind, texts, progress.written, f"{progress.whole} of {FAMILIES}", progress.attempts, counts["requests"]),
        *(progress.lost, attempts.filter(outcome="unavailable").count()),
        *(sum(counts["written_breaks"].values()), progress.discarded),
        kept.count() - kept.values("realisation").distinct().count(),
        *(FIRST_BUDGET, f"{spent_first:.4f}", f"{progress.cost:.4f}", f"{took:.0f}"),
    )
    return "| " + " | ".join(map(str, figures)) + " |"


def _wait(is_there: Callable[[], bool]) -> None:
    """Sweep as beat does until it is there."""
    from judging import tasks

    began = swept = time.monotonic()
    while not is_there():
        now = time.monotonic()
        if now - began > MOST_SECONDS:
            raise TimeoutError("the plan did not get on")
        if now - swept >= SWEEP:
            swept = now
            tasks.sweep_runs()
        time.sleep(0.1)


if __name__ == "__main__":
    if table := on_both_databases(measure, head=HEAD):
        RESULT.write_text(table + "\n", encoding="utf-8")
