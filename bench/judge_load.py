"""Judging under load: replies a second of workers in processes of their own beside a plain AsyncOpenAI loop.

``python -m bench.judge_load``: 64 requests in flight on one worker and 256 on two, replies of 0.2, 15 and 40 s, and
faults (2 % 429 with a wait of 1 s, 1 % 500). The ideal is requests in flight by seconds a reply. The simulated
provider has a process of its own, the database is PostgreSQL with Redis beside it. Processor time and memory are each
worker's own, with all writes. ``--cpu FILE`` has the first worker of one row write its profile there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench import server
from tests.provider_server import running_provider

RESULTS = Path(__file__).parent / "results" / "judge_load.md"
ITEMS = 400
HEAD = (
    "| in flight | workers | s a reply | faults | wanted | run, per s | of the ideal | loop beside it, per s "
    "| of the loop | CPU s per 1,000 | MB a worker | load |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class LoadCase:
    """One row: so many requests in flight on so many workers, and what of the ideal is wanted."""

    in_flight: int
    workers: int
    latency: float
    repeats: int
    wanted: float
    faulty: bool = False
    turns: int = 3

    @property
    def calls(self) -> int:
        return ITEMS * self.repeats

    @property
    def ideal(self) -> float:
        return self.in_flight / self.latency


CASES = (
    LoadCase(64, 1, 0.2, 8, 0.85),
    LoadCase(256, 2, 0.2, 20, 0.6),
    LoadCase(64, 1, 0.2, 8, 0.6, faulty=True),
    LoadCase(256, 2, 0.2, 20, 0.4, faulty=True),
    LoadCase(64, 1, 15.0, 2, 0.8, turns=1),
    LoadCase(64, 1, 40.0, 2, 0.8, turns=1),
)


@dataclass(frozen=True)
class LoadFigures:
    """Of one way to ask: seconds of clock, of each process's CPU, and MB of each at most."""

    clock: float
    cpu: float
    memory: float
    stored: int


def measure(cases: Sequence[LoadCase], profile: str = "") -> list[str]:
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(running_provider())
        stack.enter_context(server.redis_server())
        declared = [{"name": "simulated", "base_url": provider.base_url, "simulated": True}]
        os.environ["PANELBENCH_PROVIDERS"] = json.dumps(declared)
        stack.enter_context(server.database("postgresql"))
        return [_row(case, provider, number, profile) for number, case in enumerate(cases)]


def _row(case: LoadCase, provider: Any, number: int, profile: str) -> str:
    from judging import judges
    from tests import make

    project = _project(number)
    paced: dict[str, Any] = {"concurrency": case.in_flight // case.workers, "timeout": 90}
    judge = judges.declare(project=project, name="Steady", provider="simulated", model="sim-steady", **paced)
    dataset, version = make.dataset(project, ITEMS), make.rubric(project)
    rates = {"rate_limit": 0.02, "server_error": 0.01} if case.faulty else {}
    runs_took, loops_took, loads = [], [], []
    for _turn in range(case.turns):
        provider.control(reset=True, latency=case.latency, rates=rates, retry_after="1")
        loads.append(os.getloadavg()[0])
        runs_took.append(_run(case, judge, dataset, version, profile))
        if case.latency < 1 and not case.faulty:
            provider.control(reset=True, latency=case.latency)
            loops_took.append(_processes(case, ["--loop", str(judge.pk), str(version.pk), str(dataset.pk)]))
    return _written(case, runs_took, loops_took, statistics.median(loads))


def _project(number: int) -> Any:
    from accounts import people
    from accounts.models import User

    mail = f"lead{number}@panelbench.test"
    lead = User.objects.create_user(mail, "correct horse battery", name="Lead")
    return people.create_project(name=f"Bench {number}", slug=f"bench-{number}", founder=lead)


def _run(case: LoadCase, judge: Any, dataset: Any, version: Any, profile: str) -> LoadFigures:
    from judging import runs

    about = {"judge": judge, "dataset": dataset, "rubric_version": version}
    run = runs.start_judge_run(**about, repeats=case.repeats, again=True)
    took = _processes(case, ["--work", str(run.pk), *(["--cpu", profile] if profile else [])])
    stored = run.verdicts.filter(status="ok").count() // version.criteria.count()
    return replace(took, stored=stored)


def _processes(case: LoadCase, arguments: Sequence[str]) -> LoadFigures:
    """The same work in as many processes; the clock runs from when all are ready until the last has ended."""
    command = [sys.executable, "-m", "bench.judge_load", *arguments, "--case", json.dumps(asdict(case))]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, **pipes) for _number in range(case.workers)]
    for worker in started:
        assert worker.stdout.readline().strip() == "ready"
    began = time.perf_counter()
    for worker in started:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    figures = [json.loads(worker.communicate()[0]) for worker in started]
    clock = max(figure["ended"] for figure in figures) - began
    cpu, memory = sum(figure["cpu"] for figure in figures), max(figure["memory"] for figure in figures)
    return LoadFigures(clock=clock, cpu=cpu, memory=memory, stored=case.calls)


def _written(case: LoadCase, runs_took: list[LoadFigures], loops_took: list[LoadFigures], load: float) -> str:
    def per_second(took: LoadFigures) -> float:
        return took.stored / took.clock

    run = statistics.median(map(per_second, runs_took))
    loop = statistics.median(map(per_second, loops_took)) if loops_took else None
    cpu = statistics.median(1000 * took.cpu / case.calls for took in runs_took)
    cells = [case.in_flight, case.workers, f"{case.latency:g}", "2 % 429, 1 % 500" if case.faulty else "none"]
    cells += [case.wanted, f"{run:.1f}", f"{run / case.ideal:.2f}"]
    cells += [f"{loop:.1f}" if loop else "", f"{run / loop:.2f}" if loop else ""]
    cells += [f"{cpu:.2f}", f"{max(took.memory for took in runs_took):.0f}", f"{load:.1f}"]
    row = "| " + " | ".join(map(str, cells)) + " |"
    print(row, flush=True)
    return row


# --- in a process of its own ------------------------------------------------------------------------------------------


def _child(options: argparse.Namespace) -> None:
    import django

    django.setup()
    case = LoadCase(**json.loads(options.case))
    work = _session_work(options.work, options.cpu) if options.work else _loop_work(case, *options.loop)
    print("ready", flush=True)
    sys.stdin.readline()
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"ended": time.perf_counter(), "cpu": cpu, "memory": used.ru_maxrss / 1024}), flush=True)


def _session_work(run_pk: int, profile: str) -> Any:
    import openai  # noqa: F401 - a worker has imported it before its second run

    from judging import runs, work_sessions
    from judging.models import JudgeRun

    run = JudgeRun.objects.get(pk=run_pk)

    def work() -> None:
        if profile:
            _profile_sessions(profile)
        while not runs.run_progress(run).finished:
            if not work_sessions.work_on_run(run.pk):
                time.sleep(0.05)

    return work


def _profile_sessions(profile: str) -> None:
    """Every thread of this process writes how long its functions took: ``FILE.thread`` for each."""
    import cProfile
    import threading

    plain = threading.Thread.run

    def profiled(thread: threading.Thread) -> None:
        with contextlib.suppress(ValueError), cProfile.Profile() as profiler:
            plain(thread)
        profiler.dump_stats(f"{profile}.{thread.name}")

    threading.Thread.run = profiled  # type: ignore[method-assign]


def _loop_work(case: LoadCase, judge_pk: int, version_pk: int, dataset_pk: int) -> Any:
    from annotation.models import Dataset, RubricVersion
    from judging import judges, requests
    from judging.models import Judge

    judge = Judge.objects.select_related("project").get(pk=judge_pk)
    version = RubricVersion.objects.get(pk=version_pk)
    items = Dataset.objects.get(pk=dataset_pk).items.select_related("dataset")
    prompts = [requests.preview_prompts(judge=judge, item=item, rubric_version=version)[0] for item in items]
    asked = prompts * (case.repeats // case.workers)
    return lambda: asyncio.run(_ask_all(judges.endpoint(judge), judge.model, asked, case.in_flight // case.workers))


async def _ask_all(endpoint: Any, model: str, prompts: Sequence[Any], width: int) -> None:
    """A plain AsyncOpenAI client: nothing is stored, limited or tried again."""
    import openai

    places = asyncio.Semaphore(width)
    async with openai.AsyncOpenAI(
        api_key="none", base_url=endpoint.base_url, max_retries=0, http_client=openai.DefaultAioHttpClient()
    ) as client:

        async def ask(prompt: Any) -> None:
            async with places:
                form = {"name": "verdicts", "strict": True, "schema": dict(prompt.schema)}
                reply = await client.chat.completions.create(
                    model=model,
                    messages=prompt.messages,
                    response_format={"type": "json_schema", "json_schema": form},  # type: ignore[arg-type]
                )
                json.loads(reply.choices[0].message.content or "")

        async with asyncio.TaskGroup() as group:
            for prompt in prompts:
                group.create_task(ask(prompt))


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=int, default=0)
    parser.add_argument("--loop", type=int, nargs=3, default=None)
    parser.add_argument("--case", default="")
    parser.add_argument("--cpu", default="", metavar="FILE")
    parser.add_argument("--only", type=int, action="append", help="only this row, from 0; nothing is written")
    options = parser.parse_args()
    if options.case:
        _child(options)
        return
    chosen = [CASES[number] for number in options.only] if options.only else CASES
    table = "\n".join([HEAD, *measure(chosen, options.cpu)])
    if not options.only:
        text = f"{os.cpu_count()} cores; PostgreSQL and Redis. Medians of three alternating turns; one of slow replies."
        RESULTS.write_text(f"# Judging under load\n\n{text}\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
