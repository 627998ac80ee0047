"""How large an export will be, before anybody waits for it."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from accounts.models import Project
from analytics import exports
from analytics.exports import Export
from annotation.exports import consistent
from annotation.models import Item, Rating
from annotation.writers import files
from annotation.writers.tables import Table
from judging.models import Verdict

AT_ONCE = 100_000  # rows that a page waits for as they come
WHOLE_AT_ONCE = 20_000  # rows, where the file must be whole first
SAMPLE = 500


class Extent(NamedTuple):
    """Rows, and about how many bytes; None where only writing it all would tell."""

    rows: int
    size: int | None


def is_large(export: Export) -> bool:
    """Whether a worker should write it while its reader does something else."""
    return rows(export) > (WHOLE_AT_ONCE if export.is_whole else AT_ONCE)


def extent(export: Export) -> Extent:
    """How large it will be, told by its first rows."""
    count = rows(export)
    if not export.is_table:
        return Extent(count, None)
    with consistent():
        table = exports.table(export)
        first = list(islice(table.rows, SAMPLE))
    written = sum(map(len, files.pieces(Table(table.name, table.columns, first), export.kind)))
    return Extent(count, written * count // len(first) if first else written)


def rows(export: Export) -> int:
    """How many rows of the database it is made of; one for a document."""
    if export.what == "bundle":
        return _in(export.project)
    if export.what == "items":
        return Item.objects.of(export.subject).count()
    if export.what in {"rubric", "campaign"} or export.kind == "xml":
        return 1
    count = 0
    if export.what not in {"verdicts", "dataset-verdicts"}:
        ratings = Rating.objects.filter(annotation__campaign=export.subject)
        kept = ratings if export.options.revisions else ratings.filter(annotation__superseded_at=None)
        count += kept.count()
    if export.what != "ratings":
        count += Verdict.objects.filter(run__in=exports.runs(export)).count()
    if export.what in {"label-studio", "hugging-face"}:
        count += Item.objects.of(export.subject.dataset).count()
    return count


def _in(project: Project) -> int:
    items = Item.objects.filter(dataset__project=project).count()
    ratings = Rating.objects.filter(annotation__campaign__project=project).count()
    return items + ratings + Verdict.objects.filter(run__project=project).count()
