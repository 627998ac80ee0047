"""A judge run through Redis and two workers, one of them killed with SIGKILL midway: nothing lost, nothing paid twice.

`python -m bench.kill_worker [FILE.json]` judges the dialogues of a file (120 of our own without one) on two criteria.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.server import database, redis_server
from tests.provider_server import running_provider

WORKER = ["-m", "celery", "--quiet", "-A", "panelbench", "worker", "-Q", "judging", "-l", "ERROR", "--concurrency", "1"]
PATIENCE = 180.0


@contextlib.contextmanager
def workers(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many Celery workers, each a process group of its own."""
    started = [
        subprocess.Popen([sys.executable, *WORKER, "-n", f"w{n}@%h"], start_new_session=True) for n in range(count)
    ]
    try:
        yield started
    finally:
        for each in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def run_through_kill(provider: Any, path: Path | None) -> dict[str, Any]:
    """Start the run, kill a worker in the middle of it, wait for its end, and hold rows against what was answered."""
    from judging import calls, runs, tasks
    from judging.models import Attempt, Call, Verdict

    run = _run(path)
    with workers(2) as both:
        tasks.enqueue_run(run.pk)
        _wait(lambda: runs.run_progress(run).settled >= runs.run_progress(run).planned // 3)
        os.killpg(both[0].pid, signal.SIGKILL)
        in_flight = Call.objects.filter(run=run, state=Call.State.LEASED).count()
        killed_at = runs.run_progress(run).settled

        def finished() -> bool:
            for run_pk in calls.sweep_leases():  # what beat does twice a minute
                tasks.enqueue_run(run_pk)
            return runs.run_progress(run).finished

        _wait(finished)
    verdicts = Counter(Verdict.objects.filter(run=run).values_list("item", "criterion", "repeat"))
    answered = provider.control()
    return {
        "calls planned": runs.run_progress(run).planned,
        "settled when one worker was killed": killed_at,
        "calls in flight at the kill": in_flight,
        "calls settled": runs.run_progress(run).settled,
        "items x criteria": run.dataset.items.count() * run.rubric_version.criteria.count(),
        "verdicts": sum(verdicts.values()),
        "most verdicts on one item and criterion": max(verdicts.values()),
        "requests the provider answered": answered["answered"],
        "replies stored": Attempt.objects.filter(call__run=run, outcome=Attempt.Outcome.REPLIED).count(),
        "stored replies paid for twice": _stored_twice(run),
    }


def _stored_twice(run: Any) -> int:
    """Calls with more than one stored reply."""
    from judging.models import Attempt

    replies = Attempt.objects.filter(call__run=run, outcome=Attempt.Outcome.REPLIED)
    return sum(count > 1 for count in Counter(replies.values_list("call", flat=True)).values())


def _run(path: Path | None) -> Any:
    from accounts import people
    from accounts.models import User
    from annotation.imports import storage
    from annotation.readers.guessing import guess_mapping
    from annotation.readers.items import parse_items
    from annotation.readers.reading import peek
    from judging import judges, runs
    from tests import make

    project = people.found_project(name="Kill", slug="kill", founder=User.objects.create_user("k@panelbench.test"))
    items: Any = [make.item_row(number) for number in range(120)]
    if path:
        file = (path.name, path.read_bytes())
        seen = peek(*file)
        items = parse_items([file], guess_mapping("dataset", seen.columns, [row.fields for row in seen.rows])).items
    dataset = storage.store(project=project, name="Dialogues", items=items)
    judge = judges.declare(
        project=project, name="Steady", provider="simulated", model="sim-steady", variant={"grouping": "single"}
    )
    return runs.start_judge_run(judge=judge, dataset=dataset, rubric_version=make.rubric(project))


def _wait(found: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not found():
        if time.monotonic() > deadline:
            raise TimeoutError("the run did not get on")
        time.sleep(0.2)


def _main() -> None:
    """Run it on PostgreSQL and print what came out."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with redis_server(), running_provider(latency=0.4) as provider:
        os.environ["PANELBENCH_PROVIDERS"] = json.dumps(
            [{"name": "simulated", "base_url": provider.base_url, "simulated": True}]
        )
        with database("postgresql"):
            for what, count in run_through_kill(provider, path).items():
                print(f"{what:<42}{count}")


if __name__ == "__main__":
    _main()
