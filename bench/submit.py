"""Submissions a second against a bare view that writes the same rows: ``python -m bench.submit``.

Per database and number of clients, five runs of each, alternating; medians. Every acknowledged submission must be
stored exactly once, with all its ratings.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import clients, server

RUNS = 5
WARM_UP = 5
REQUESTS = {1: 200, 8: 800, 32: 960}  # in one run, over all clients
RESULTS = Path(__file__).parent / "results" / "submit.md"
HEAD = (
    "| database | clients | bare, per s | submit, per s | ratio | bare p95, ms | submit p95, ms | p95 ratio "
    "| acknowledged | stored once |\n|---|---|---|---|---|---|---|---|---|---|"
)


def measure(kind: str) -> str:
    """The table's rows for one database."""
    with server.database(kind), server.serving() as port:
        from bench import scene

        made = scene.make_scene(items=max(map(_each, REQUESTS)), annotators=max(REQUESTS))
        return "\n".join(_row(kind, made, port, count) for count in REQUESTS)


def _each(count: int) -> int:
    """How many submissions one of so many clients makes over all runs, both ways, with the warming up."""
    return (REQUESTS[count] // count * RUNS + WARM_UP) * 2


def _row(kind: str, made: Any, port: int, count: int) -> str:
    desks = made.lease(made.duty(f"{count} clients", count, overlap=count), count, _each(count))
    signed_in = [clients.SessionClient(port, session) for _user, _annotator, session in made.people[:count]]
    acknowledged: list[str] = []
    submit, bare = _submission(), _bare(made)
    for way in (submit, bare):  # connections, caches and code warm up outside the measurement
        _run(signed_in, desks, WARM_UP, way, acknowledged)
    found: dict[str, list[clients.Run]] = {"submit": [], "bare": []}
    for turn in range(RUNS):
        for name, way in (("bare", bare), ("submit", submit)) if turn % 2 else (("submit", submit), ("bare", bare)):
            found[name].append(_run(signed_in, desks, REQUESTS[count] // count, way, acknowledged))
    return _summary(kind, count, found, len(acknowledged), _stored(acknowledged))


Way = Callable[[clients.SessionClient, Any], clients.Reply]


def _run(
    signed_in: list[clients.SessionClient], desks: list[list[Any]], requests: int, way: Way, acknowledged: list[str]
) -> clients.Run:
    def job(client: clients.SessionClient, desk: list[Any]) -> Callable[[], list[float]]:
        return lambda: [_acknowledge(way(client, slot), slot, acknowledged) for slot in desk]

    batches = [[desk.pop() for _slot in range(requests)] for desk in desks]
    return clients.together([job(client, batch) for client, batch in zip(signed_in, batches, strict=True)])


def _acknowledge(reply: clients.Reply, slot: Any, acknowledged: list[str]) -> float:
    if reply.status != 200:
        raise RuntimeError(f"{reply.status}: {reply.body[:300]!r}")
    acknowledged.append(str(slot.key))
    return reply.seconds


def _submission() -> Way:
    scores = {f"score-{key}": 3 for key in clients.CRITERIA}
    return lambda client, slot: client.post(f"/desk/at/{slot.key}/submit/", {**scores, "key": slot.key, "seconds": 30})


def _bare(made: Any) -> Way:
    criteria = list(made.campaign.rubric_version.criteria.values_list("pk", flat=True))
    fixed = {"campaign": made.campaign.pk, "criteria": ",".join(map(str, criteria)), "seconds": 30}
    fixed |= {f"score-{criterion}": 3 for criterion in criteria}
    return lambda client, slot: client.post(
        f"/bare/{slot.pk}/", {**fixed, "item": slot.item, "annotator": slot.annotator, "key": slot.key}
    )


def _stored(acknowledged: list[str]) -> int:
    """How many acknowledged submissions are there exactly once, with exactly five ratings."""
    from django.db.models import Count

    from annotation.models import Annotation

    whole = Annotation.objects.annotate(count=Count("ratings")).filter(count=5).values_list("key", flat=True)
    keys = [str(key) for key in whole]
    assert len(keys) == len(set(keys))
    return len(set(keys) & set(acknowledged))


def _summary(kind: str, count: int, found: dict[str, list[clients.Run]], acknowledged: int, stored: int) -> str:
    per_second = {name: statistics.median(run.per_second for run in runs) for name, runs in found.items()}
    p95 = {name: 1000 * statistics.median(run.p95 for run in runs) for name, runs in found.items()}
    return (
        f"| {kind} | {count} | {per_second['bare']:.0f} | {per_second['submit']:.0f} "
        f"| {per_second['submit'] / per_second['bare']:.2f} | {p95['bare']:.1f} | {p95['submit']:.1f} "
        f"| {p95['submit'] / p95['bare']:.2f} | {acknowledged} | {stored} |"
    )


def _main() -> None:
    if table := server.on_both_databases(measure, head=HEAD):
        RESULTS.write_text(f"# Submissions a second\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
