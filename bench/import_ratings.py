"""500,000 ratings from parsed rows to commit, against COPY or executemany, and from the bytes of a CSV file:
``python -m bench.import_ratings``.

The other side writes the same columns into the same tables, keys and indexes and all, in one transaction, from tuples
that are ready. One run of each after a small one to warm up; memory is the highest of the whole process. Beside the
rows of a second stand those of a second of processor time, ours and that of the database's own process (Linux): what
other jobs on the machine take away counts in the first and hardly in the second.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bench import server

RATERS, CRITERIA, RATINGS = 20, 5, 500_000
T = TypeVar("T")
RESULTS = Path(__file__).parent / "results" / "import_ratings.md"
HEAD = (
    "| database | bare, rows/s (per CPU s) | store, rows/s (per CPU s) | ratio (of CPU s) "
    "| from CSV, rows/s (per CPU s) | of which read, rows/s (per CPU s) | peak of the process, MB | load |\n"
    "|---|---|---|---|---|---|---|---|"
)


def measure(kind: str) -> str:
    """The table's row for one database."""
    with server.database(kind):
        from annotation.readers.ratings import parse_ratings

        scene = _Scene()
        content = scene.csv(RATINGS)
        scene.stored(parse_ratings([("warm.csv", scene.csv(5_000))], scene.mapping).rows)
        whole, _ = _rate(lambda: scene.stored(parse_ratings([("r.csv", content)], scene.mapping).rows))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        read, rows = _rate(lambda: parse_ratings([("r.csv", content)], scene.mapping).rows)
        store, _ = _rate(lambda: scene.stored(rows))
        ready = scene.ready()
        bare, _ = _rate(lambda: scene.bare(*ready))
        ratio = f"{store.wall / bare.wall:.2f} ({store.cpu / bare.cpu:.2f})"
        load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()}"
        return f"| {kind} | {bare} | {store} | {ratio} | {whole} | {read} | {peak} | {load} |"


class _Rate(NamedTuple):
    """Rows of a second, and of a second of processor time."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:,.0f} ({self.cpu:,.0f})"


def _rate(way: Callable[[], T]) -> tuple[_Rate, T]:
    started, busy = time.perf_counter(), _busy()
    made = way()
    busy, passed = _busy() - busy, time.perf_counter() - started
    return _Rate(RATINGS / passed, RATINGS / busy), made


def _busy() -> float:
    """The processor time that this process has taken so far, and the database's process that serves it."""
    from django.db import connection

    if connection.vendor == "sqlite":
        return time.process_time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return time.process_time() + (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class _Scene:
    """A dataset, a rubric of five criteria, and a campaign of its own for every import."""

    def __init__(self) -> None:
        from accounts import people
        from accounts.models import User
        from annotation.readers.mapping import Mapping
        from tests import make

        founder = User.objects.create_user("lead@panelbench.test")
        self.project = people.create_project(name="Bench", slug="bench", founder=founder)
        count = RATINGS // RATERS // CRITERIA
        self.dataset = make.dataset(self.project, count)
        criteria = [make.criterion(f"criterion_{number}", range(5)) for number in range(CRITERIA)]
        self.version = make.rubric(self.project, *criteria)
        self.mapping = Mapping(columns={name: name for name in ("item", "rater", "criterion", "score", "seconds")})
        self._campaigns = 0

    def csv(self, count: int) -> bytes:
        lines = ["item,rater,criterion,score,seconds"]
        for number in range(count):
            item, rest = divmod(number, RATERS * CRITERIA)
            rater, criterion = divmod(rest, CRITERIA)
            lines.append(f"d{item + 1},annotator {rater},criterion_{criterion},{number * 7 % 5},{12.5 + rater}")
        return "\n".join(lines).encode()

    def _campaign(self) -> tuple[Any, Any]:
        from annotation import campaigns
        from annotation.models import Import

        self._campaigns += 1
        opened = campaigns.open_campaign(
            project=self.project, name=f"{self._campaigns}", dataset=self.dataset, rubric_version=self.version
        )
        return opened, Import.objects.create(project=self.project, kind=Import.Kind.RATINGS)

    def stored(self, rows: Any) -> None:
        from annotation.imports import storage

        campaign, opened = self._campaign()
        storage.store_ratings(campaign=campaign, rows=rows, file_import=opened)

    def ready(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        from django.utils import timezone

        from annotation.models import Annotator

        campaign, opened = self._campaign()
        items = list(self.dataset.items.order_by("ordinal").values_list("pk", flat=True))
        people = list(Annotator.objects.values_list("pk", flat=True))
        criteria = list(self.version.criteria.values_list("pk", flat=True))
        pairs = [(item, person) for item in items for person in people]
        now, first = timezone.now(), 10**9
        annotations = [
            (first + place, campaign.pk, item, person, opened.pk, 1, 12.5, now)
            for place, (item, person) in enumerate(pairs)
        ]
        ratings = [(row[0], criterion, "scored", 1.0, "") for row in annotations for criterion in criteria]
        return annotations, ratings

    def bare(self, annotations: list[tuple[Any, ...]], ratings: list[tuple[Any, ...]]) -> None:
        from django.db import transaction

        from annotation import bulk
        from annotation.imports.rating_rows import ANNOTATION, RATING
        from annotation.models import Annotation, Rating

        with transaction.atomic():
            bulk.insert(Annotation, ANNOTATION, annotations)
            bulk.insert(Rating, RATING, ratings)


def _main() -> None:
    if table := server.on_both_databases(measure, head=HEAD):
        title = f"# Import of {RATINGS:,} ratings: {RATERS} raters, {CRITERIA} criteria"
        RESULTS.write_text(f"{title}\n\n`python -m bench.import_ratings`\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
