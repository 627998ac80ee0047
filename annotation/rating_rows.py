"""Imported ratings as rows: an annotation for each rater on each item, and its ratings."""

from __future__ import annotations

from collections.abc import Collection

from django.utils import timezone

from annotation import bulk
from annotation.formats.progress import Told
from annotation.formats.shelves import Shelves
from annotation.formats.spool import Plain
from annotation.models import Annotation, Annotator, Campaign, Intake, Rating

ANNOTATION = ("id", "campaign_id", "item_id", "annotator_id", "intake_id", "revision", "seconds", "submitted_at")
RATING = ("annotation_id", "criterion_id", "status", "score", "rationale")


def write(
    *,
    campaign: Campaign,
    intake: Intake,
    rows: Shelves,
    raters: Collection[str],
    identified: bool,
    told: Told | None = None,
) -> None:
    """Insert fitted ratings in the caller's transaction, shelf by shelf."""
    people = _annotators(campaign, raters, identified)
    with bulk.Load() as load:
        for shelf in rows.told(told):
            _write_shelf(load, campaign.pk, intake.pk, shelf, people)


def _write_shelf(load: bulk.Load, campaign: int, intake: int, shelf: list[Plain], people: dict[str, int]) -> None:
    items, raters, *answers, seconds = zip(*shelf, strict=True)
    pairs = list(zip(items, raters, strict=True))
    taken = dict(zip(pairs, seconds, strict=True))
    numbers = dict(zip(taken, bulk.reserve(Annotation, len(taken)), strict=True))
    now = timezone.now()
    load.insert(
        Annotation,
        ANNOTATION,
        [
            (number, campaign, item, people[rater], intake, 1, taken[item, rater], now)
            for (item, rater), number in numbers.items()
        ],
    )
    load.insert(Rating, RATING, list(zip(map(numbers.__getitem__, pairs), *answers, strict=True)))


def _annotators(campaign: Campaign, names: Collection[str], identified: bool) -> dict[str, int]:
    """The annotators of these pseudonyms, those made that are not there yet."""
    project = campaign.project
    Annotator.objects.bulk_create(
        [Annotator(project=project, pseudonym=name, identified=identified) for name in names],
        ignore_conflicts=True,
        batch_size=5_000,
    )
    there_are = Annotator.objects.filter(project=project).values_list("pseudonym", "pk")
    wanted = set(names)
    return {name: pk for name, pk in there_are.iterator() if name in wanted}
