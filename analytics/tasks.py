"""What workers do for the numbers. A refresh may be delivered twice: the second finds a fresh snapshot."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from celery import shared_task
from django.core.cache import cache
from kombu.exceptions import OperationalError

from analytics import dashboards
from annotation.models import Annotator, Campaign

logger = logging.getLogger(__name__)

PATIENCE = 60  # seconds after which a refresh that was asked for and never came may be asked for again


@shared_task
def refresh(campaign_pk: int, annotator_pks: Sequence[int] = ()) -> None:
    """Compute the campaign's numbers over these annotators (none: all) unless they are fresh."""
    campaign = Campaign.objects.select_related("rubric_version").get(pk=campaign_pk)
    names = Annotator.objects.filter(project=campaign.project_id, pk__in=annotator_pks).order_by("pseudonym")
    raters = tuple(names.values_list("pseudonym", flat=True))
    dashboards.snapshot(campaign=campaign, settings=dashboards.Settings(raters=raters))


@shared_task
def refresh_stale() -> None:
    """Ask for new numbers wherever something was rated since the newest ones."""
    for campaign in Campaign.objects.all():
        found, is_stale = dashboards.current(campaign=campaign)
        if is_stale:
            ask(campaign.pk, after=found.pk if found else 0)


def ask(campaign_pk: int, annotator_pks: Sequence[int] = (), *, after: int) -> None:
    """Have the snapshot that follows number `after` computed: once, however many pages and beats ask for it."""
    wanted = sorted(annotator_pks)
    if not cache.add(f"numbers:{campaign_pk}:{'-'.join(map(str, wanted))}:{after}", 1, PATIENCE):
        return
    try:
        refresh.delay_on_commit(campaign_pk, wanted)
    except OperationalError:
        logger.warning("no broker: the numbers of campaign %s stay as they are", campaign_pk)
