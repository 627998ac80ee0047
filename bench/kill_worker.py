"""Judge runs whose workers are killed with SIGKILL midway: how long nothing comes, and what was sent for nothing.

`make bench NAME=kill_worker` writes `bench/results/kill_worker.md`, on PostgreSQL with Redis and on SQLite with a
queue in a folder. Three deaths: one of two workers, all workers (started again after half a second, as the supervisor
does), and one process of a worker's pool. The sweep comes every ten seconds, as beat sends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.server import database, descendants, on_both_databases, redis_server
from tests.provider_server import RunningProvider, running_provider

RESULT = Path(__file__).parent / "results" / "kill_worker.md"
HEAD = """\
# Workers of judge runs killed with SIGKILL

1,200 calls of one judge, 0.4 s a reply, at most 24 in flight for each work session; the kill comes when a third of the
calls is settled and both sessions work. The workers are stopped (SIGSTOP) before it, so that all counts of what is *in
flight* are of one moment: requests that the provider has *asked* for and not answered, requests that it has *answered*
and whose replies are not stored (they wait in the worker, which stores replies together), and the *rows* that are
marked as sent, for each of the two sessions. A row is marked before its request goes out. *Lost* are the rows that were
given back without a reply. *Sent* and *stored* are requests at the provider and replies in the database, at the end:
what was sent and not stored is at most what was in flight at the kill, and each of these requests has a row that is
lost. *Pause* is the longest time without a new reply after the kill, *end* all of the time after it. *Missing* and
*doubled* are verdicts.

| database | killed | asked | answered | rows | lost | sent | stored | more sent | missing | doubled | pause, s | end |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""
WORKER = ["-m", "celery", "--quiet", "-A", "panelbench", "worker", "-Q", "judging", "-l", "ERROR"]
ALONE = ["--without-gossip", "--without-mingle"]
ITEMS, WIDTH = 600, 24
RESTART, SWEEP = 0.5, 10.0  # seconds: the supervisor's delay, and beat's
PATIENCE = 240.0
SETTLING = 0.1  # seconds until what the stopped workers had handed to the kernel has reached the provider


@dataclass(slots=True)
class Workers:
    """So many Celery workers, each a process group of its own."""

    running: list[subprocess.Popen[bytes]]
    processes: int
    started: int = 0

    def start(self) -> None:
        self.started += 1
        own = ["-n", f"w{self.started}@%h", "--concurrency", str(self.processes)]
        command = [sys.executable, *WORKER, *ALONE, *own]
        self.running.append(subprocess.Popen(command, start_new_session=True))

    def signal(self, number: int) -> None:
        """The same signal to every process of every worker."""
        for each in self.running:
            for pid in [each.pid, *descendants(each.pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def kill(self, which: subprocess.Popen[bytes]) -> None:
        for pid in [which.pid, *descendants(which.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        which.wait()
        self.running.remove(which)


@contextlib.contextmanager
def workers(count: int) -> Iterator[Workers]:
    """The workers, two processes in all, killed in the end."""
    chosen = Workers([], processes=2 // count)
    try:
        for _worker in range(count):
            chosen.start()
        yield chosen
    finally:
        for each in list(chosen.running):
            chosen.kill(each)


def kill_one(those: Workers, _provider: RunningProvider) -> None:
    """One of two workers; nobody starts it again."""
    those.kill(those.running[0])


def kill_both(those: Workers, _provider: RunningProvider) -> None:
    """All of them, started again after the supervisor's delay."""
    count = len(those.running)
    for each in list(those.running):
        those.kill(each)
    time.sleep(RESTART)
    for _worker in range(count):
        those.start()


def kill_child(those: Workers, _provider: RunningProvider) -> None:
    """The busiest process of a pool: its worker lives, and gets another."""
    children = descendants(those.running[0].pid)
    busiest = max(children, key=_processor_time)
    os.kill(busiest, signal.SIGKILL)


def _processor_time(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


DEATHS: dict[str, tuple[int, Callable[[Workers, RunningProvider], None]]] = {
    "one of two workers": (2, kill_one),
    "both workers, restarted": (2, kill_both),
    "one process of one worker": (1, kill_child),
}


def measure(kind: str) -> str:
    """The rows of one database."""
    with contextlib.ExitStack() as stack:
        if kind == "postgresql":
            stack.enter_context(redis_server())
        else:
            os.environ.pop("REDIS_URL", None)
        provider = stack.enter_context(running_provider(latency=0.4))
        os.environ["PANELBENCH_PROVIDERS"] = json.dumps(
            [{"name": "simulated", "base_url": provider.base_url, "simulated": True}]
        )
        stack.enter_context(database(kind))
        return "\n".join(_row(kind, death, provider) for death in DEATHS)


def _row(kind: str, death: str, provider: RunningProvider) -> str:
    from judging import runs, tasks
    from judging.calls import CALLS
    from judging.models import Attempt

    count, kill = DEATHS[death]
    provider.control(reset=True)
    run = _run(death)
    replied = Attempt.objects.filter(call__run=run, outcome=Attempt.Outcome.REPLIED)
    with workers(count) as those:
        tasks.enqueue_run(run.pk)
        _wait(lambda: CALLS.holders(run) == 2 and runs.run_progress(run).settled >= runs.run_progress(run).planned // 3)
        those.signal(signal.SIGSTOP)
        time.sleep(SETTLING)
        counts = provider.control()
        answered = counts["answered"] - replied.count()
        marked = Counter(
            Attempt.objects.filter(call__run=run, outcome=Attempt.Outcome.SENT).values_list("call__lease", flat=True)
        )
        killed_at = time.monotonic()
        kill(those, provider)
        those.signal(signal.SIGCONT)
        pause = _watched(replied.count, lambda: runs.run_progress(run).finished, killed_at)
        took = time.monotonic() - killed_at
    verdicts = Counter(run.verdicts.values_list("item", "criterion", "repeat"))
    missing = run.dataset.items.count() * run.rubric_version.criteria.count() - len(verdicts)
    doubled = sum(each > 1 for each in verdicts.values())
    sent, stored = provider.control()["requests"], replied.count()
    rows = " + ".join(map(str, sorted(marked.values())))
    lost = Attempt.objects.filter(call__run=run, outcome=Attempt.Outcome.LOST).count()
    in_flight = counts["in_flight"], answered, rows
    times = f"{pause:.1f}", f"{took:.1f}"
    figures = (*in_flight, lost, sent, stored, sent - stored, missing, doubled, *times)
    return "| " + " | ".join(map(str, (kind, death, *figures))) + " |"


def _watched(replies: Callable[[], int], finished: Callable[[], bool], since: float) -> float:
    """Sweep as beat does until the run is finished; the longest time without a reply."""
    from judging import tasks
    from judging.calls import CALLS

    swept = heard = since
    longest, known = 0.0, replies()

    def is_finished() -> bool:
        nonlocal swept, heard, longest, known
        now = time.monotonic()
        longest = max(longest, now - heard)
        if (count := replies()) != known:
            known, heard = count, now
        if now - swept >= SWEEP:
            swept = now
            for run_pk in CALLS.sweep():
                tasks.enqueue_run(run_pk, expires=tasks.LULL)
        return finished()

    _wait(is_finished)
    return longest


def _run(name: str) -> Any:
    from accounts import people
    from accounts.models import User
    from judging import judges, runs
    from tests import make

    slug = name.partition(",")[0].replace(" ", "-")
    founder = User.objects.create_user(f"{slug}@panelbench.test")
    project = people.create_project(name=name, slug=slug, founder=founder)
    steady = {"provider": "simulated", "model": "sim-steady", "variant": {"grouping": "single"}, "concurrency": WIDTH}
    judge = judges.declare(project=project, name="Steady", **steady)
    dataset = make.dataset(project, ITEMS)
    return runs.start_judge_run(judge=judge, dataset=dataset, rubric_version=make.rubric(project))


def _wait(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not found():
        if time.monotonic() > deadline:
            raise TimeoutError("the run did not get on")
        time.sleep(0.1)


if __name__ == "__main__":
    if table := on_both_databases(measure, head=HEAD):
        RESULT.write_text(table + "\n", encoding="utf-8")
