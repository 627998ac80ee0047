"""Replies stored a second by one worker against a loop that stores nothing: ``python -m bench.judge_run``.

The simulated provider answers after 200 ms in a process of its own and 64 requests are in flight, so 320 replies a
second are the ideal. Per database three runs of each, alternating; medians.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import server
from tests.provider_server import running_provider

TURNS = 3
ITEMS, REPEATS = 500, 4
CALLS = ITEMS * REPEATS
LATENCY, IN_FLIGHT = 0.2, 64
IDEAL = IN_FLIGHT / LATENCY
RESULTS = Path(__file__).parent / "results" / "judge_run.md"
HEAD = (
    "| database | replies sent and read, per s | of the ideal | run, stored per s | of the ideal "
    "| loop, CPU s per 1,000 | run, CPU s per 1,000 | verdicts missing |\n|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of clock and of this process's CPU."""

    clock: float
    cpu: float

    @property
    def per_second(self) -> float:
        return CALLS / self.clock

    @property
    def cpu_per_thousand(self) -> float:
        return 1000 * self.cpu / CALLS


def measure(kind: str) -> str:
    """The table's row for one database."""
    with running_provider(latency=LATENCY) as provider:
        declared = [{"name": "simulated", "base_url": provider.base_url, "simulated": True}]
        os.environ["PANELBENCH_PROVIDERS"] = json.dumps(declared)
        with server.database(kind):
            return _row(kind, *_scene())


def _scene() -> tuple[Any, Any, Any]:
    from accounts import people
    from accounts.models import User
    from judging import judges
    from tests import make

    lead = User.objects.create_user("lead@panelbench.test", "correct horse battery", name="Lead")
    project = people.create_project(name="Bench", slug="bench", founder=lead)
    judge = judges.declare(project=project, name="Steady", provider="simulated", model="sim-steady")
    return judge, make.dataset(project, ITEMS), make.rubric(project)


def _row(kind: str, judge: Any, dataset: Any, version: Any) -> str:
    found: dict[str, list[Took]] = {"loop": [], "run": []}
    missing: list[int] = []
    ways = [("loop", _loop(judge, dataset, version)), ("run", _run(judge, dataset, version, missing))]
    for turn in range(TURNS):
        for name, way in ways if turn % 2 else reversed(ways):
            found[name].append(way())
    return _summary(kind, found, sum(missing))


def took_of(work: Callable[[], object]) -> Took:
    """What it took."""
    began, used = time.perf_counter(), _cpu()
    work()
    return Took(time.perf_counter() - began, _cpu() - used)


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _run(judge: Any, dataset: Any, version: Any, missing: list[int]) -> Callable[[], Took]:
    """A worker's sessions until the run is finished, planning not counted."""
    from judging import runs, work_sessions

    def way() -> Took:
        run = runs.start_judge_run(judge=judge, dataset=dataset, rubric_version=version, repeats=REPEATS, again=True)

        def work_sessions_until_finished() -> None:
            while not runs.run_progress(run).finished:
                work_sessions.work_on_run(run.pk)

        took = took_of(work_sessions_until_finished)
        missing.append(CALLS * version.criteria.count() - run.verdicts.filter(status="ok").count())
        return took

    return way


def _loop(judge: Any, dataset: Any, version: Any) -> Callable[[], Took]:
    """The same questions over the same client, 64 at once, read and thrown away."""
    from judging import judges, requests

    prompts = [
        requests.preview_prompts(judge=judge, item=item, rubric_version=version)[0]
        for item in dataset.items.select_related("dataset")
    ]
    endpoint = judges.endpoint(judge)
    return lambda: took_of(lambda: asyncio.run(_ask_all(endpoint, judge.model, prompts * REPEATS)))


async def _ask_all(endpoint: Any, model: str, prompts: list[Any]) -> None:
    from judging.asking import client

    places = asyncio.Semaphore(IN_FLIGHT)
    async with client.connect(endpoint) as line, asyncio.TaskGroup() as group:

        async def ask(prompt: Any) -> None:
            async with places:
                messages, schema = prompt.messages, prompt.schema
                await client.ask(line, model=model, messages=messages, parameters={}, schema=schema, timeout=30)

        for prompt in prompts:
            group.create_task(ask(prompt))


def _summary(kind: str, found: dict[str, list[Took]], missing: int) -> str:
    loop, run = (statistics.median(took.per_second for took in found[name]) for name in ("loop", "run"))
    cpus = (statistics.median(took.cpu_per_thousand for took in found[name]) for name in ("loop", "run"))
    shares = f"| {kind} | {loop:.0f} | {loop / IDEAL:.2f} | {run:.0f} | {run / IDEAL:.2f}"
    return " | ".join([shares, *(f"{cpu:.2f}" for cpu in cpus), f"{missing} |"])


def _main() -> None:
    if table := server.on_both_databases(measure, head=HEAD):
        head = f"# Replies stored a second by one worker\n\n{_description()}"
        RESULTS.write_text(f"{head}\n\n{table}\n", encoding="utf-8")


def _description() -> str:
    text = f"{CALLS} calls of two verdicts, {LATENCY} s a reply, {IN_FLIGHT} in flight: {IDEAL:.0f} a second are ideal."
    load = f"{os.cpu_count()} cores under a load of {os.getloadavg()[1]:.1f}"
    return f"{text} {load}: read the run against the loop beside it."


if __name__ == "__main__":
    _main()
