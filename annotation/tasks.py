"""What workers do for imports."""

from __future__ import annotations

from contextlib import suppress

from celery import shared_task
from django.db.models import Sum

from accounts import jobs
from accounts.models import User
from accounts.refusals import Refused
from annotation.imports import batches, checks, lifecycle
from annotation.models import Import

AT_ONCE = 4 * 2**20  # bytes that a page can wait for
LONGEST = {"soft_time_limit": 3000, "time_limit": 3060}  # seconds; half a gigabyte on a busy machine


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
    jobs.enqueue(file_import)
    return True


@shared_task(**LONGEST)
def open_packed(import_pk: int) -> None:
    """Open workbooks and archives, guess what they hold, and have what came of them checked, or stored if asked to."""
    for file_import in checks.open_packed(
        import_pk=import_pk, look_into=lambda held: batches.open_packed(file_import=held)
    ):
        if file_import.state == Import.State.STORING:
            jobs.enqueue(file_import)
        else:
            look(file_import)


@shared_task(**LONGEST)
def check_import(import_pk: int) -> None:
    """Look at a large import, and keep what was seen."""
    checks.carry_out(import_pk=import_pk, look=lifecycle.preview)


# --- storing --------------------------------------------------------------------------------------------------------
def store(file_import: Import, actor: User) -> bool:
    """Store an import; whether that is done, or else begun: a large one is stored by a worker."""
    if file_import.unread is not None and lifecycle.store_after_opening(file_import=file_import):
        return False
    if is_large(file_import):
        lifecycle.start(file_import=file_import, actor=actor)
        jobs.enqueue(file_import)
        return False
    lifecycle.carry_out(file_import=file_import, actor=actor)
    batches.aim(file_import=file_import)
    return True


@shared_task(**LONGEST)
def store_import(import_pk: int, actor_pk: int | None = None) -> None:
    """Store a started import for whoever asked for it. A refusal is on the import itself, for its page."""
    if (started := lifecycle.started(import_pk)) is None:
        return
    with suppress(Refused):
        lifecycle.finish(file_import=started, actor=started.job.owner if started.job else None)
        batches.aim(file_import=started)
