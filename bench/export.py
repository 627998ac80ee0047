"""Exports against the database's own COPY TO STDOUT of the same columns: ``python -m bench.export``.

50,000 ratings of one campaign with a duty, a panel and rationales, five runs of each way, alternating; medians, and how
much memory the product's way takes beyond what it had before. On SQLite, which has no COPY, a bare fetch stands in.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from bench import server

RATINGS, PEOPLE, RUNS = 50_000, 5, 5
TARGET_TIMES, TARGET_MEGABYTES = 5.0, 50.0
RESULTS = Path(__file__).parent / "results" / "export.md"
HEAD = (
    "| database | format | rows | raw, s | export, s | times raw | of at most | grown, MB | of at most |\n"
    "|---|---|---|---|---|---|---|---|---|"
)
RAW = """
SELECT d.name, d.version, i.external_id, i.language, i.generator, i.scenario, ru.key, rv.number, c.key, an.pseudonym,
       'annotator', 0, r.status, r.score, r.status = 'na', r.rationale, s.probability, a.file_import_id, an.identified,
       a.seconds, ca.name, du.name, p.name, s.stratum, s.wave, s.origin, a.revision, a.submitted_at, a.superseded_at
FROM annotation_rating r
JOIN annotation_annotation a ON a.id = r.annotation_id
JOIN annotation_item i ON i.id = a.item_id
JOIN annotation_criterion c ON c.id = r.criterion_id
JOIN annotation_annotator an ON an.id = a.annotator_id
JOIN annotation_campaign ca ON ca.id = a.campaign_id
JOIN annotation_dataset d ON d.id = ca.dataset_id
JOIN annotation_rubricversion rv ON rv.id = ca.rubric_version_id
JOIN annotation_rubric ru ON ru.id = rv.rubric_id
LEFT JOIN annotation_assignment g ON g.id = a.assignment_id
LEFT JOIN annotation_duty du ON du.id = g.duty_id
LEFT JOIN annotation_panel p ON p.id = du.panel_id
LEFT JOIN annotation_selection s ON s.duty_id = du.id AND s.item_id = a.item_id
WHERE a.campaign_id = {campaign} AND a.superseded_at IS NULL
ORDER BY i.ordinal, c.position, a.id
"""


def measure(kind: str) -> str:
    """The table's rows for one database."""
    with server.database(kind):
        export = _scene()
        ways = {each: _way(export, each) for each in ("csv", "jsonl")}
        raw = _raw(export)
        raw()  # the database is warm; the memory of the first export counts
        return "\n".join(_row(kind, each, raw, way) for each, way in ways.items())


def _row(database: str, kind: str, raw: Callable[[], int], way: Callable[[], int]) -> str:
    seconds: dict[str, list[float]] = {"raw": [], "export": []}
    Path("/proc/self/clear_refs").write_text("5")  # forget what making the scene took at most
    before = _megabytes("VmRSS")
    for turn in range(RUNS):
        for name, job in (("raw", raw), ("export", way)) if turn % 2 else (("export", way), ("raw", raw)):
            started = perf_counter()
            job()
            seconds[name].append(perf_counter() - started)
    grown = _megabytes("VmHWM") - before
    middle = {name: statistics.median(found) for name, found in seconds.items()}
    return (
        f"| {database} | {kind} | {RATINGS:,} | {middle['raw']:.3f} | {middle['export']:.3f} "
        f"| {middle['export'] / middle['raw']:.2f} | {TARGET_TIMES:.0f} | {grown:.1f} | {TARGET_MEGABYTES:.0f} |"
    )


def _megabytes(name: str) -> float:
    """What this process holds (VmRSS), or has held at most since it was reset (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def _way(export: Any, kind: str) -> Callable[[], int]:
    from analytics.exporting import exports

    asked = exports.checked_export(project=export.project, what="ratings", kind=kind, subject=export)
    return lambda: sum(len(piece) for piece in exports.export_pieces(asked))


def _raw(campaign: Any) -> Callable[[], int]:
    from django.db import connection

    statement = RAW.format(campaign=campaign.pk)

    def fetched() -> int:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return sum(len(row) for row in cursor)

    def copied() -> int:
        with connection.cursor() as cursor, cursor.cursor.copy(f"COPY ({statement}) TO STDOUT (FORMAT csv)") as copy:
            return sum(len(piece) for piece in copy)

    return copied if connection.vendor == "postgresql" else fetched


def _scene() -> Any:
    """A campaign whose every item five people have rated, stored as a submission stores it."""
    from django.db import connection, transaction
    from django.utils import timezone
    from uuid_utils.compat import uuid7

    from annotation import bulk
    from annotation.models import Annotation, Assignment, Criterion, Rating
    from bench import scene
    from bench.clients import CRITERIA

    items = RATINGS // PEOPLE // len(CRITERIA)
    made = scene.make_scene(items=items, annotators=PEOPLE)
    duty = made.duty("Everyone", PEOPLE, overlap=PEOPLE)
    filled = made.fill(Assignment.objects.filter(duty=duty), Assignment.State.SUBMITTED)
    fields = ("campaign_id", "item_id", "annotator_id", "assignment_id", "key", "revision", "seconds", "submitted_at")
    now = timezone.now()
    with transaction.atomic():
        bulk.insert(
            Annotation,
            fields,
            [(made.campaign.pk, slot.item, slot.annotator, slot.pk, uuid7(), 1, 31.5, now) for _n, slot in filled],
        )
        criteria = list(
            Criterion.objects.filter(rubric_version=made.campaign.rubric_version_id).values_list("pk", flat=True)
        )
        stored = Annotation.objects.values_list("pk", flat=True)
        rationale = "The reply is clear, and one word is odd: = as if copied."
        rows = [(pk, criterion, "scored", 3.0, rationale) for pk in stored for criterion in criteria]
        bulk.insert(Rating, ("annotation_id", "criterion_id", "status", "score", "rationale"), rows)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    return made.campaign


def _main() -> None:
    if table := server.on_both_databases(measure, head=HEAD):
        RESULTS.write_text(f"# Exports\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
