"""What workers do for imports."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from celery import current_app, shared_task
from django.db import transaction
from django.db.models import Sum
from kombu.exceptions import OperationalError

from accounts.models import User
from accounts.refusals import Refused
from annotation import batches, checks, custody, reception, uploads
from annotation import intake as storing
from annotation.models import Intake

logger = logging.getLogger(__name__)

AT_ONCE = 4 * 2**20  # bytes that a page can wait for
LONGEST = {"soft_time_limit": 3000, "time_limit": 3060}  # seconds; half a gigabyte on a busy machine
# Verdicts, and studies that may have some, are the business of judging, known here by name alone, as its pages are.
CHECKS = {
    Intake.Kind.DATASET: "annotation.tasks.check_intake",
    Intake.Kind.RUBRIC: "annotation.tasks.check_intake",
    Intake.Kind.RATINGS: "annotation.tasks.check_intake",
    Intake.Kind.VERDICTS: "judging.tasks.check_verdicts",
    Intake.Kind.STUDY: "judging.tasks.check_study",
}
OPENING = "annotation.tasks.open_packed"
CHECKED_HERE = (Intake.Kind.DATASET, Intake.Kind.RUBRIC, Intake.Kind.RATINGS)
STORED_HERE = (Intake.Kind.DATASET, Intake.Kind.RUBRIC, Intake.Kind.RATINGS)


def is_large(intake: Intake) -> bool:
    """Whether reading it takes longer than anybody should look at a page that loads.

    Workbooks and archives always may, however small they are. A rubric by itself never does; a study, all of which is
    stored and taken back to see what comes of it, always may.
    """
    if intake.unread is not None or intake.kind == Intake.Kind.STUDY or reception.is_packed(intake):
        return True
    if intake.kind == Intake.Kind.RUBRIC:
        return False
    return (intake.files.aggregate(size=Sum("size"))["size"] or 0) > AT_ONCE


# --- looking --------------------------------------------------------------------------------------------------------
def look(intake: Intake) -> bool:
    """Let a worker check a large intake; whether one has to. Others are looked at by whoever asks."""
    if not is_large(intake):
        return False
    checks.start(intake=intake)
    transaction.on_commit(partial(ask_for_check, intake.pk, intake.kind))
    return True


def ask_for_check(intake_pk: int, kind: str) -> None:
    """Queue a check. A queue that is away loses nothing: the sweep finds the check once it is back."""
    is_unread = Intake.objects.filter(pk=intake_pk, unread__isnull=False).exists()
    try:
        current_app.send_task(OPENING if is_unread else CHECKS[Intake.Kind(kind)], (intake_pk,))
    except OperationalError as error:
        logger.warning("The queue is away; the check of import %s waits for the sweep: %s", intake_pk, error)


@shared_task(**LONGEST)
def open_packed(intake_pk: int) -> None:
    """Open workbooks and archives, guess what they hold, and have what came of them checked, or stored if asked to."""
    for intake in checks.open_packed(intake_pk=intake_pk, look_into=lambda held: batches.open_packed(intake=held)):
        if intake.state == Intake.State.STORING and intake.created_by:
            enqueue(store_intake, intake, intake.created_by)
        else:
            look(intake)


@shared_task(**LONGEST)
def check_intake(intake_pk: int) -> None:
    """Look at a large intake, and keep what was seen."""
    checks.carry_out(intake_pk=intake_pk, look=reception.preview)


# --- storing --------------------------------------------------------------------------------------------------------
def store(intake: Intake, actor: User) -> bool:
    """Store an intake; whether that is done, or else begun: a large one is stored by a worker."""
    if intake.unread is not None and reception.store_once_read(intake=intake):
        return False
    if is_large(intake):
        reception.start(intake=intake, actor=actor)
        enqueue(store_intake, intake, actor)
        return False
    reception.carry_out(intake=intake, actor=actor)
    batches.aim(intake=intake)
    return True


def enqueue(store: Any, intake: Intake, actor: User) -> None:
    """Hand a started import to the task that stores its kind; where the queue is away, it waits for the sweep."""
    try:
        store.delay_on_commit(intake.pk, actor.pk)
    except OperationalError as error:
        logger.warning("The queue is away; import %s waits for the sweep: %s", intake.pk, error)


@shared_task(**LONGEST)
def store_intake(intake_pk: int, actor_pk: int | None = None) -> None:
    """Store a started import. A refusal is on the import itself, for its page."""
    started = Intake.objects.filter(pk=intake_pk, state=Intake.State.STORING).select_related("project").first()
    if started is None:
        return
    with suppress(Refused):
        reception.finish(intake=started, actor=User.objects.filter(pk=actor_pk or 0).first())
        batches.aim(intake=started)


@shared_task
def sweep() -> None:
    """Clear what abandoned imports left behind, and take up again what dead workers left undone."""
    storing.sweep()
    uploads.sweep()
    resume(store_intake, kinds=STORED_HERE)
    for kind in CHECKED_HERE:
        for intake_pk in checks.sweep(kinds=[kind]):
            ask_for_check(intake_pk, kind)


def resume(store: Any, kinds: Sequence[str]) -> None:
    """Have somebody else store what its holder died over; where the queue is away, the next sweep tries again."""
    for freed in custody.sweep(kinds=kinds):
        try:
            store.delay(freed.pk, freed.created_by_id)
        except OperationalError as error:
            logger.warning("The queue is away; import %s waits for the sweep: %s", freed.pk, error)
