"""Celery tasks that compute numbers, export, and load bundles. Each may be delivered twice without harm."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.core.cache import caches
from kombu.exceptions import OperationalError

from analytics import computing, snapshots, transfers
from analytics.models import Computation
from annotation.models import Annotator, Campaign

logger = logging.getLogger(__name__)

PATIENCE = 60  # seconds after which a refresh that was asked for and never came may be asked for again


LONGEST = {"soft_time_limit": computing.LONGEST, "time_limit": computing.LONGEST + 60}  # seconds


@shared_task(**LONGEST)
def refresh(campaign_pk: int, annotator_pks: Sequence[int] = (), blind_only: bool = False) -> None:
    """Compute the campaign's numbers over these annotators (none: all) unless they are fresh.

    ``blind_only`` leaves out ratings by people who could see verdicts. A computation that fails says why on the page,
    and is tried again after a pause that grows.
    """
    campaign = Campaign.objects.select_related("rubric_version").get(pk=campaign_pk)
    settings = _settings(campaign_pk, annotator_pks, blind_only)
    if (lease := computing.begin_computation(campaign=campaign, settings=settings)) is None:
        return
    try:
        snapshots.snapshot(campaign=campaign, settings=settings)
    except Exception as error:
        logger.exception("the numbers of campaign %s can't be computed", campaign_pk)
        reason, detail = _why(error)
        computing.fail_computation(lease=lease, reason=reason, detail=detail)
    else:
        computing.finish_computation(lease=lease)


def _why(error: Exception) -> tuple[Computation.Reason, str]:
    from analytics.stats.core.tables import TableError

    if isinstance(error, SoftTimeLimitExceeded):
        return Computation.Reason.LONG, str(computing.LONGEST // 60)
    if isinstance(error, TableError):
        return Computation.Reason.TABLE, str(error)
    return Computation.Reason.FAULT, f"{type(error).__name__}: {error}"


def _settings(campaign_pk: int, annotator_pks: Sequence[int], blind_only: bool) -> snapshots.Settings:
    here = Annotator.objects.filter(project__in=Campaign.objects.filter(pk=campaign_pk).values("project"))
    names = here.filter(pk__in=annotator_pks).order_by("pseudonym").values_list("pseudonym", flat=True)
    return snapshots.Settings(raters=tuple(names) if annotator_pks else (), blind_only=blind_only)


@shared_task
def refresh_stale() -> None:
    """Ask for new numbers wherever something was rated since the newest ones; closed campaigns are asked about once."""
    for campaign in snapshots.to_be_polled():
        found, is_stale = snapshots.current_snapshot(campaign=campaign)
        if is_stale:
            ask_to_compute(campaign.pk, after=found.pk if found else 0)
        else:
            snapshots.settle_computation(campaign)


def ask_to_compute(
    campaign_pk: int, annotator_pks: Sequence[int] = (), *, blind_only: bool = False, after: int
) -> None:
    """Have the snapshot that follows number `after` computed: once, however many pages and beats ask for it."""
    wanted = sorted(annotator_pks)
    if not computing.may_begin(campaign_pk=campaign_pk, settings=_settings(campaign_pk, wanted, blind_only)):
        return
    chosen = f"{'-'.join(map(str, wanted))}:{'blind' if blind_only else ''}"
    if not caches["content"].add(f"numbers:{campaign_pk}:{chosen}:{after}", 1, PATIENCE):
        return
    try:
        refresh.delay_on_commit(campaign_pk, wanted, blind_only)
    except OperationalError:
        logger.warning("no message broker: the numbers of campaign %s are not computed again", campaign_pk)


# --- transfers ------------------------------------------------------------------------------------------------------
@shared_task(**LONGEST)
def carry_transfer(transfer_pk: int) -> None:
    """Write an export to its file, or load a bundle."""
    transfers.carry_out(transfer_pk=transfer_pk)
