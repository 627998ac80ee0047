"""When items were rated."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db.models import Max

from annotation import exports as rated
from annotation.models import Annotation, Campaign


def item_times(campaign: Campaign) -> dict[str, tuple[str, str, int]]:
    """Map each item to its `week`, `hundred` and place in the order of rating. Its last annotation counts; items
    without annotations are left out. Items with the same time are in the order of the dataset.
    """
    here = Annotation.objects.filter(campaign=campaign, superseded_at=None)
    last = here.values_list("item__external_id").annotate(last=Max("submitted_at")).order_by("last", "item__ordinal")
    return {item: (iso_week(moment), str(place // 100 * 100 + 1), place) for place, (item, moment) in enumerate(last)}


def rating_moments(campaign: Campaign) -> dict[tuple[str, str], float]:
    """Map item and rater to the time of submission, in seconds. Imported ratings are left out, because they were not
    submitted here.
    """
    here = Annotation.objects.filter(campaign=campaign, superseded_at=None, file_import=None)
    names = rated.pseudonyms(campaign.project)
    found = here.order_by("submitted_at").values_list("item__external_id", "annotator", "submitted_at")
    return {(item, names[annotator]): moment.timestamp() for item, annotator, moment in found}


def iso_week(moment: datetime) -> str:
    """2026-W47, in UTC."""
    year, week, _day = moment.astimezone(UTC).isocalendar()
    return f"{year:04}-W{week:02}"
