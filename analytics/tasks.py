"""What workers do for the numbers, and for what goes out and in. What is delivered twice is found to be done."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from celery import shared_task
from django.core.cache import caches
from django.db import transaction
from kombu.exceptions import OperationalError

from analytics import dashboards, transfers
from analytics.models import Transfer
from annotation.models import Annotator, Campaign

logger = logging.getLogger(__name__)

PATIENCE = 60  # seconds after which a refresh that was asked for and never came may be asked for again


LONGEST = {"soft_time_limit": 3000, "time_limit": 3060}  # seconds; millions of rows on a busy machine


@shared_task
def refresh(campaign_pk: int, annotator_pks: Sequence[int] = (), blind_only: bool = False) -> None:
    """Compute the campaign's numbers over these annotators (none: all) unless they are fresh.

    ``blind_only`` leaves out ratings by people who could see verdicts.
    """
    campaign = Campaign.objects.select_related("rubric_version").get(pk=campaign_pk)
    names = Annotator.objects.filter(project=campaign.project_id, pk__in=annotator_pks).order_by("pseudonym")
    raters = tuple(names.values_list("pseudonym", flat=True))
    dashboards.snapshot(campaign=campaign, settings=dashboards.Settings(raters=raters, blind_only=blind_only))


@shared_task
def refresh_stale() -> None:
    """Ask for new numbers wherever something was rated since the newest ones."""
    for campaign in Campaign.objects.all():
        found, is_stale = dashboards.current(campaign=campaign)
        if is_stale:
            ask(campaign.pk, after=found.pk if found else 0)


def ask(campaign_pk: int, annotator_pks: Sequence[int] = (), *, blind_only: bool = False, after: int) -> None:
    """Have the snapshot that follows number `after` computed: once, however many pages and beats ask for it."""
    wanted = sorted(annotator_pks)
    chosen = f"{'-'.join(map(str, wanted))}:{'blind' if blind_only else ''}"
    if not caches["content"].add(f"numbers:{campaign_pk}:{chosen}:{after}", 1, PATIENCE):
        return
    try:
        refresh.delay_on_commit(campaign_pk, wanted, blind_only)
    except OperationalError:
        logger.warning("no broker: the numbers of campaign %s stay as they are", campaign_pk)


# --- transfers ------------------------------------------------------------------------------------------------------
@shared_task(**LONGEST)
def carry_transfer(transfer_pk: int) -> None:
    """Write an export to its file, or load a bundle."""
    transfers.carry_out(transfer_pk=transfer_pk)


@shared_task
def sweep() -> None:
    """Delete files that have had their time, and have done what dead workers left undone."""
    for transfer_pk in transfers.sweep():
        ask_for_transfer(transfer_pk)


def begin(transfer: Transfer) -> Transfer:
    """Hand a transfer to a worker once it is stored."""
    transaction.on_commit(partial(ask_for_transfer, transfer.pk))
    return transfer


def ask_for_transfer(transfer_pk: int) -> None:
    """Queue a transfer. A queue that is away loses nothing: the sweep finds it once it is back."""
    try:
        carry_transfer.delay(transfer_pk)
    except OperationalError as error:
        logger.warning("The queue is away; transfer %s waits for the sweep: %s", transfer_pk, error)
