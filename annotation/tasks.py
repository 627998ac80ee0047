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
from annotation import jobs
from annotation.imports import batches, checks, lifecycle, uploads
from annotation.imports import storage as storing
from annotation.imports.parsed_files import sweep_parsed
from annotation.models import Import

logger = logging.getLogger(__name__)

AT_ONCE = 4 * 2**20  # bytes that a page can wait for
LONGEST = {"soft_time_limit": 3000, "time_limit": 3060}  # seconds; half a gigabyte on a busy machine
# Verdicts, and studies that may have some, are the business of judging, known here by name alone, as its pages are.
CHECKS = {
    Import.Kind.DATASET: "annotation.tasks.check_import",
    Import.Kind.RUBRIC: "annotation.tasks.check_import",
    Import.Kind.RATINGS: "annotation.tasks.check_import",
    Import.Kind.VERDICTS: "judging.tasks.check_verdicts",
    Import.Kind.STUDY: "judging.tasks.check_study",
}
OPENING = "annotation.tasks.open_packed"
CHECKED_HERE = (Import.Kind.DATASET, Import.Kind.RUBRIC, Import.Kind.RATINGS)
STORED_HERE = (Import.Kind.DATASET, Import.Kind.RUBRIC, Import.Kind.RATINGS)


def is_large(file_import: Import) -> bool:
    """Whether reading it takes longer than anybody should look at a page that loads.

    Workbooks and archives always may, however small they are. A rubric by itself never does; a study, all of which is
    stored and taken back to see what comes of it, always may.
    """
    if file_import.unread is not None or file_import.kind == Import.Kind.STUDY or lifecycle.is_packed(file_import):
        return True
    if file_import.kind == Import.Kind.RUBRIC:
        return False
    return (file_import.files.aggregate(size=Sum("size"))["size"] or 0) > AT_ONCE


# --- looking --------------------------------------------------------------------------------------------------------
def look(file_import: Import) -> bool:
    """Let a worker check a large import; whether one has to. Others are looked at by whoever asks."""
    if not is_large(file_import):
        return False
    checks.start(file_import=file_import)
    transaction.on_commit(partial(ask_for_check, file_import.pk, file_import.kind))
    return True


def ask_for_check(import_pk: int, kind: str) -> None:
    """Queue a check. A queue that is away loses nothing: the sweep finds the check once it is back."""
    is_unread = Import.objects.filter(pk=import_pk, unread__isnull=False).exists()
    try:
        current_app.send_task(OPENING if is_unread else CHECKS[Import.Kind(kind)], (import_pk,))
    except OperationalError as error:
        logger.warning(
            "The message broker is not available; the check of import %s waits for the next sweep: %s", import_pk, error
        )


@shared_task(**LONGEST)
def open_packed(import_pk: int) -> None:
    """Open workbooks and archives, guess what they hold, and have what came of them checked, or stored if asked to."""
    for file_import in checks.open_packed(
        import_pk=import_pk, look_into=lambda held: batches.open_packed(file_import=held)
    ):
        if file_import.state == Import.State.STORING and file_import.created_by:
            enqueue(store_import, file_import, file_import.created_by)
        else:
            look(file_import)


@shared_task(**LONGEST)
def check_import(import_pk: int) -> None:
    """Look at a large import, and keep what was seen."""
    checks.carry_out(import_pk=import_pk, look=lifecycle.preview)


# --- storing --------------------------------------------------------------------------------------------------------
def store(file_import: Import, actor: User) -> bool:
    """Store an import; whether that is done, or else begun: a large one is stored by a worker."""
    if file_import.unread is not None and lifecycle.store_once_read(file_import=file_import):
        return False
    if is_large(file_import):
        lifecycle.start(file_import=file_import, actor=actor)
        enqueue(store_import, file_import, actor)
        return False
    lifecycle.carry_out(file_import=file_import, actor=actor)
    batches.aim(file_import=file_import)
    return True


def enqueue(store: Any, file_import: Import, actor: User) -> None:
    """Hand a started import to the task that stores its kind; where the queue is away, it waits for the sweep."""
    try:
        store.delay_on_commit(file_import.pk, actor.pk)
    except OperationalError as error:
        logger.warning(
            "The message broker is not available; import %s waits for the next sweep: %s", file_import.pk, error
        )


@shared_task(**LONGEST)
def store_import(import_pk: int, actor_pk: int | None = None) -> None:
    """Store a started import. A refusal is on the import itself, for its page."""
    started = Import.objects.filter(pk=import_pk, state=Import.State.STORING).select_related("project").first()
    if started is None:
        return
    with suppress(Refused):
        lifecycle.finish(file_import=started, actor=User.objects.filter(pk=actor_pk or 0).first())
        batches.aim(file_import=started)


@shared_task
def sweep() -> None:
    """Clear what abandoned imports left behind, and take up again what dead workers left undone."""
    storing.sweep()
    uploads.sweep()
    sweep_parsed()
    resume(store_import, kinds=STORED_HERE)
    for kind in CHECKED_HERE:
        for import_pk in checks.sweep(kinds=[kind]):
            ask_for_check(import_pk, kind)


def resume(store: Any, kinds: Sequence[str]) -> None:
    """Have somebody else store what its holder died over; where the queue is away, the next sweep tries again."""
    for freed in jobs.sweep(kinds=kinds):
        try:
            store.delay(freed.pk, freed.created_by_id)
        except OperationalError as error:
            logger.warning(
                "The message broker is not available; import %s waits for the next sweep: %s", freed.pk, error
            )
