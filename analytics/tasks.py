"""Celery tasks that compute numbers, export, and load bundles. Each may be delivered twice without harm."""

from __future__ import annotations

import logging

from celery import shared_task
from django.db import OperationalError

from accounts import jobs
from analytics import page_cache
from analytics.answers import computing, revisions, snapshots
from analytics.exporting import transfers
from analytics.judges import alignments, decisions
from analytics.questions.question import Settings
from analytics.study import preparing
from annotation.models import Campaign
from judging import tasks as judging_tasks

logger = logging.getLogger(__name__)

PREPARING_SECONDS = 20.0  # seconds; the beat prepares studies as often
LONGEST = {"soft_time_limit": computing.LONGEST, "time_limit": computing.LONGEST + 60}  # seconds


# --- numbers --------------------------------------------------------------------------------------------------------
@shared_task(**LONGEST)
def compute_numbers(computation_pk: int) -> None:
    """Compute numbers that were asked for; then what else the pages of a settled campaign lack."""
    computing.carry_out_computation(computation_pk=computation_pk)
    jobs.enqueue_task(prepare_studies.name, expires=PREPARING_SECONDS)


@shared_task
def refresh_stale() -> None:
    """Ask for new numbers, then for new decisions about judges, wherever something changed since the newest ones.

    Never for closed campaigns.
    """
    for campaign in revisions.to_be_polled():
        if snapshots.is_stale(campaign):
            ask_to_compute(campaign=campaign)
        elif (asked := decisions.to_be_decided(campaign)) is not None:
            ask_to_compute(campaign=campaign, settings=asked)
        else:
            revisions.mark_as_current(campaign)


@shared_task
def prepare_studies() -> None:
    """Ask for what pages of campaigns lack whose numbers have settled, so that nobody waits for it: Study first.

    One answer at a time, and none that failed; who has computed it asks for the next one. None while other numbers are
    computed, or a page waits for some: what people ask for comes first.
    """
    for campaign in preparing.settled_campaigns():
        if computing.is_any_open() or computing.is_a_page_held_up():
            return
        try:
            stale = preparing.stale_questions(campaign)
            waiting = [each for each in stale if not computing.failed(campaign=campaign, settings=each)]
        except Exception:  # the others are prepared all the same
            logger.exception("what the pages of campaign %s lack can't be told", campaign.pk)
            continue
        if waiting:
            _begin(campaign, waiting[0])
        else:
            preparing.mark_as_prepared(campaign)


def ask_to_compute(*, campaign: Campaign, settings: Settings | None = None) -> None:
    """Have these numbers computed: once, however many pages and beats ask for it. The page that asks is not kept."""
    page_cache.do_not_keep()
    if not _begin(campaign, settings or Settings()):
        computing.note_if_held_up(campaign_pk=campaign.pk, settings=settings or Settings())


def _begin(campaign: Campaign, settings: Settings) -> bool:
    """Send these numbers to a worker; False where others are being computed, or the database is busy."""
    try:
        computation = computing.begin_computation(campaign=campaign, settings=settings)
    except OperationalError:  # SQLite has one writer, and a page does not wait for numbers
        logger.warning("the database is busy: the numbers of campaign %s are asked for later", campaign.pk)
        return False
    if computation is not None:
        jobs.enqueue(computation)
    return computation is not None


@shared_task
def settle_looks() -> None:
    """Store what looks at locked labels have shown."""
    alignments.settle_open_looks()


@shared_task
def step_search(search_pk: int) -> None:
    """One step of a search for a version of a judge; the sweep sends the next."""
    run = alignments.carry_out_search_step(search_pk=search_pk)
    if run is not None:
        judging_tasks.enqueue_run(run.pk)


# --- transfers ------------------------------------------------------------------------------------------------------
@shared_task(**LONGEST)
def carry_transfer(transfer_pk: int) -> None:
    """Write an export to its file, or load a bundle."""
    transfers.carry_out_transfer(transfer_pk=transfer_pk)
