"""The next item out of 10,000 with eight annotators at once: ``python -m bench.next_item``.

Half of the queue is done before. Each annotator asks for the next item and submits it, over and over and without
thinking; then the same with the page opened in between. Timed are `take`, and in the second part `take` and the page,
which is what a person waits for. No item may have more annotations than its overlap, nobody an item twice.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import clients, server

ITEMS, OVERLAP, ANNOTATORS = 10_000, 3, 8
RUNS, EACH = 5, 40
SCORES: dict[str, object] = {f"score-{key}": 3 for key in clients.CRITERIA} | {"seconds": 30}
RESULTS = Path(__file__).parent / "results" / "next_item.md"
HEAD = (
    "| database | items | annotators | take p50, ms | take p95, ms | with page p95, ms | given | over-assigned |\n"
    "|---|---|---|---|---|---|---|---|"
)


def measure(kind: str) -> str:
    """The table's row for one database."""
    with server.database(kind), server.serving() as port:
        from annotation.models import Assignment
        from bench import scene

        made = scene.make_scene(items=ITEMS, annotators=ANNOTATORS + OVERLAP)
        duty = made.duty("Everybody", ANNOTATORS + OVERLAP, overlap=OVERLAP)
        done = Assignment.objects.filter(duty=duty, position__lte=ITEMS // 2)
        made.fill(done, Assignment.State.SUBMITTED, first=ANNOTATORS)  # as three other people would have left it
        signed_in = [clients.SessionClient(port, session) for _user, _annotator, session in made.people[:ANNOTATORS]]
        _run(signed_in, duty.pk, 3, opens=True)
        takes = [_run(signed_in, duty.pk, EACH, opens=False) for _turn in range(RUNS)]
        waits = [_run(signed_in, duty.pk, EACH, opens=True) for _turn in range(RUNS)]
        return _summary(kind, takes, waits, *_given(duty))


def _run(signed_in: list[clients.SessionClient], duty: int, requests: int, *, opens: bool) -> clients.Run:
    def job(client: clients.SessionClient) -> Callable[[], list[float]]:
        return lambda: [_one(client, duty, opens) for _request in range(requests)]

    return clients.together([job(client) for client in signed_in])


def _one(client: clients.SessionClient, duty: int, opens: bool) -> float:
    """Take an item and submit it; the seconds of `take`, and of the page if it is opened."""
    taken = client.post(f"/desk/{duty}/", {})
    _require(302, taken)
    address = next(line for line in taken.headers.split("\r\n") if line.lower().startswith("location:"))[9:].strip()
    seconds = taken.seconds
    if opens:
        page = client.get(address)
        _require(200, page)
        seconds += page.seconds
    _require(200, client.post(f"{address}submit/", SCORES))
    return seconds


def _require(status: int, reply: clients.Reply) -> None:
    if reply.status != status:
        raise RuntimeError(f"{reply.status}: {reply.body[:300]!r}")


def _given(duty: Any) -> tuple[int, int]:
    """Items handed out in the measurement, and annotations beyond the overlap or by one person twice."""
    from django.db.models import Count

    from annotation.models import Annotation

    stored = Annotation.objects.filter(assignment__duty=duty)
    by_item = stored.values("item").annotate(count=Count("pk"), people=Count("annotator", distinct=True))
    over = sum(max(0, row["count"] - min(OVERLAP, row["people"])) for row in by_item)
    return stored.count(), over


def _summary(kind: str, takes: list[clients.Run], waits: list[clients.Run], given: int, over: int) -> str:
    p50 = 1000 * statistics.median(statistics.median(run.seconds) for run in takes)
    p95, page = (1000 * statistics.median(run.p95 for run in runs) for runs in (takes, waits))
    return f"| {kind} | {ITEMS} | {ANNOTATORS} | {p50:.1f} | {p95:.1f} | {page:.1f} | {given} | {over} |"


def _main() -> None:
    if table := server.on_both_databases(measure, head=HEAD):
        RESULTS.write_text(f"# The next item\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
