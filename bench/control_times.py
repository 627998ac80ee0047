"""Whether the time of an answer shows a control: ``python -m bench.control_times``.

One annotator scores items of which half are controls, in the order that the rule's seed draws. Timed are taking an
item, its page and its submission. The rank test (Mann-Whitney, two-sided) asks whether the times of controls and of
ordinary items differ; under equal times its p is below .05 once in twenty rows.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path

from bench import clients, server

ITEMS, CONTROLS, REQUESTS = 1_000, 400, 700
SCORES: dict[str, object] = {f"score-{key}": 3 for key in clients.CRITERIA} | {"seconds": 30}
RESULTS = Path(__file__).parent / "results" / "control_times.md"
HEAD = (
    "| database | answer | controls | median, ms | ordinary items | median, ms | rank test, p |\n"
    "|---|---|---|---|---|---|---|"
)


def measure(kind: str) -> str:
    """The rows of one database."""
    with server.database(kind), server.serving() as port:
        from annotation.models import Assignment
        from annotation.qualification import references
        from annotation.qualification.references import ReferenceRow
        from bench import scene

        made = scene.make_scene(items=ITEMS, annotators=1)
        rows = [
            ReferenceRow(item=f"d{number}", purpose="control", criterion=key, score="3")
            for number in range(1, CONTROLS + 1)
            for key in clients.CRITERIA
        ]
        references.mark(campaign=made.campaign, rows=rows)
        references.set_rule(campaign=made.campaign, seed=1, training=False, control_rate=0.5)
        duty = made.duty("One", 1, overlap=1)
        client = clients.SessionClient(port, made.people[0][2])
        timed = [_one(client, duty.pk) for _request in range(REQUESTS)]
        keys = [key for key, _seconds in timed]
        purposes = dict(Assignment.objects.filter(key__in=keys).values_list("key", "duty__purpose"))
        by_key = {str(key): purpose for key, purpose in purposes.items()}
        return "\n".join(_rows(kind, [(by_key[key], seconds) for key, seconds in timed[20:]]))


def _one(client: clients.SessionClient, duty: int) -> tuple[str, dict[str, float]]:
    """Take an item, open it and submit it; its key, and the seconds of each answer."""
    taken = client.post(f"/desk/{duty}/", {})
    address = next(line for line in taken.headers.split("\r\n") if line.lower().startswith("location:"))[9:].strip()
    page, submitted = client.get(address), client.post(f"{address}submit/", SCORES)
    if (taken.status, page.status, submitted.status) != (302, 200, 200):
        raise RuntimeError(f"{taken.status} {page.status} {submitted.status}: {submitted.body[:300]!r}")
    seconds = {"take": taken.seconds, "page": page.seconds, "submit": submitted.seconds}
    return address.strip("/").split("/")[2], seconds


def _rows(kind: str, timed: list[tuple[str, dict[str, float]]]) -> list[str]:
    from scipy.stats import mannwhitneyu

    found = []
    for answer in ("take", "page", "submit"):
        groups: dict[str, list[float]] = defaultdict(list)
        for purpose, seconds in timed:
            groups[purpose].append(1000 * seconds[answer])
        control, item = groups["control"], groups["rating"]
        p = mannwhitneyu(control, item).pvalue
        medians = [statistics.median(times) for times in (control, item)]
        found.append(
            f"| {kind} | {answer} | {len(control)} | {medians[0]:.2f} | {len(item)} | {medians[1]:.2f} | {p:.2f} |"
        )
    return found


def _main() -> None:
    if table := server.on_both_databases(measure, head=HEAD):
        RESULTS.write_text(f"# Times of controls and ordinary items\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
