"""The next item out of 10,000 with eight annotators at once: ``python -m bench.next_item``.

Each annotator asks for the next item, opens its page and submits it, over and over; half of the queue is done before.
Timed are the queue alone (`take`) and what a person waits for (`take` and the page). No item may have more annotations
than its overlap, nobody an item twice.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import clients, server

ITEMS, OVERLAP, ANNOTATORS = 10_000, 3, 8
RUNS, EACH = 5, 40
RESULTS = Path(__file__).parent / "results" / "next_item.md"
HEAD = (
    "| database | items | annotators | take p50, ms | take p95, ms | with page p95, ms | given | over-assigned |\n"
    "|---|---|---|---|---|---|---|---|"
)


def measure(kind: str) -> str:
    """The table's row for one database."""
    with server.database(kind), server.serving(kind) as port:
        from bench import scene

        made = scene.make(items=ITEMS, annotators=ANNOTATORS + OVERLAP)
        duty = made.duty("Everybody", ANNOTATORS + OVERLAP, overlap=OVERLAP)
        _finish_first_half(made, duty)
        signed_in = [clients.Client(port, session) for _user, _annotator, session in made.people[:ANNOTATORS]]
        _run(signed_in, duty.pk, 3)
        runs = [_run(signed_in, duty.pk, EACH) for _turn in range(RUNS)]
        return _told(kind, runs, *_given(duty))


def _finish_first_half(made: Any, duty: Any) -> None:
    """As three other people would have left it."""
    from django.utils import timezone
    from uuid_utils.compat import uuid7

    from annotation.models import Assignment

    first = list(Assignment.objects.filter(duty=duty, position__lte=ITEMS // 2))
    for slot in first:
        slot.state, slot.key, slot.leased_at = Assignment.State.SUBMITTED, uuid7(), timezone.now()
        slot.annotator = made.people[ANNOTATORS + slot.slot - 1][1]
    Assignment.objects.bulk_update(first, ("state", "key", "leased_at", "annotator"), batch_size=500)


Waits = tuple[list[float], list[float]]  # of the queue, and of the queue and the page


def _run(signed_in: list[clients.Client], duty: int, requests: int) -> Waits:
    from bench.scene import CRITERIA

    form: dict[str, object] = {f"score-{key}": 3 for key in CRITERIA} | {"seconds": 30}
    takes: list[float] = []

    def job(client: clients.Client) -> Callable[[], list[float]]:
        return lambda: [_one(client, duty, form, takes) for _request in range(requests)]

    whole = clients.together([job(client) for client in signed_in])
    return takes, whole.seconds


def _one(client: clients.Client, duty: int, form: dict[str, object], takes: list[float]) -> float:
    taken = client.get(f"/desk/{duty}/")
    address = next(line for line in taken.headers.split("\r\n") if line.lower().startswith("location:"))[9:].strip()
    page = client.get(address)
    submitted = client.post(f"{address}submit/", form)
    if (taken.status, page.status, submitted.status) != (302, 200, 200):
        raise RuntimeError(f"{taken.status} {page.status} {submitted.status} at {address}")
    takes.append(taken.seconds)
    return taken.seconds + page.seconds


def _given(duty: Any) -> tuple[int, int]:
    """Items handed out in the measurement, and annotations beyond the overlap or by one person twice."""
    from django.db.models import Count

    from annotation.models import Annotation

    stored = Annotation.objects.filter(assignment__duty=duty)
    by_item = stored.values("item").annotate(count=Count("pk"), people=Count("annotator", distinct=True))
    over = sum(max(0, row["count"] - min(OVERLAP, row["people"])) for row in by_item)
    return stored.count(), over


def _told(kind: str, runs: list[Waits], given: int, over: int) -> str:
    p50 = 1000 * statistics.median(statistics.median(takes) for takes, _whole in runs)
    p95, page = (1000 * statistics.median(statistics.quantiles(run[part], n=20)[-1] for run in runs) for part in (0, 1))
    return f"| {kind} | {ITEMS} | {ANNOTATORS} | {p50:.1f} | {p95:.1f} | {page:.1f} | {given} | {over} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=server.DATABASES, help="only this one, printed and not written")
    chosen = parser.parse_args().database
    if chosen:
        print(measure(chosen))
        return
    table = "\n".join([HEAD, *(server.alone("bench.next_item", kind) for kind in server.DATABASES)])
    RESULTS.write_text(f"# The next item\n\n{table}\n", encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
