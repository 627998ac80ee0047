"""The background tasks of imports, versions of rubrics and reminders, and the choice between request and background."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from celery import shared_task

from accounts import jobs
from accounts.models import User
from accounts.refusals import Refused
from annotation import duty_settings, rubric_changes
from annotation.checkup import checkups
from annotation.imports import import_jobs, lifecycle, opening, previews, undoing
from annotation.models import Dataset, Import

ROWS_AT_ONCE = 5_000  # stored rows; imports of more are undone in the background
LONGEST = {"soft_time_limit": 3000, "time_limit": 3060}  # seconds; half a gigabyte on a busy machine


# --- looking --------------------------------------------------------------------------------------------------------
def look(file_import: Import) -> bool:
    """Start a background check of a large import, and return True. A small import is checked when its page or preview
    is requested: return False."""
    if not file_import.is_large():
        return False
    import_jobs.start_check(file_import=file_import)
    jobs.enqueue(file_import)
    return True


@shared_task(**LONGEST)
def open_packed(import_pk: int) -> None:
    """Open workbooks and archives and detect their contents; then check the resulting imports, or store them if storing
    was already requested."""
    for file_import in import_jobs.open_under_job(
        import_pk=import_pk, look_into=lambda packed: opening.open_files(file_import=packed)
    ):
        if file_import.state == Import.State.STORING:
            jobs.enqueue(file_import)
        else:
            look(file_import)


@shared_task(**LONGEST)
def check_import(import_pk: int) -> None:
    """Check a large import and save the result."""
    import_jobs.carry_out_check(import_pk=import_pk, look=previews.preview_import)


# --- storing --------------------------------------------------------------------------------------------------------
def store_here_or_later(file_import: Import, actor: User) -> bool:
    """Store an import. True if it is stored; False if it is large and a worker stores it in the background."""
    if file_import.unread is not None and lifecycle.store_after_opening(file_import=file_import):
        return False
    if file_import.is_large():
        lifecycle.start(file_import=file_import, actor=actor)
        jobs.enqueue(file_import)
        return False
    lifecycle.carry_out(file_import=file_import, actor=actor)
    _check_stored(file_import, actor)
    lifecycle.set_targets_of_siblings(file_import=file_import)
    return True


@shared_task(**LONGEST)
def store_import(import_pk: int, actor_pk: int | None = None) -> None:
    """Store an import in the background. A refusal is saved in the import's report, for its page."""
    if (started := lifecycle.started(import_pk)) is None:
        return
    with suppress(Refused):
        owner = started.job.owner if started.job else None
        lifecycle.finish(file_import=started, actor=owner)
        _check_stored(started, owner)
        lifecycle.set_targets_of_siblings(file_import=started)


# --- check-ups of datasets --------------------------------------------------------------------------------------------
def _check_stored(file_import: Import, actor: User | None) -> None:
    """A worker checks the dataset that an import has stored."""
    for dataset in Dataset.objects.filter(file_import=file_import, state=Dataset.State.READY):
        check_later(dataset, actor)


def check_later(dataset: Dataset, actor: User | None) -> None:
    """A worker checks a dataset: the language identifier takes memory that web processes do not have."""
    jobs.enqueue(checkups.begin_checkup(dataset=dataset, actor=actor))


@shared_task(**LONGEST)
def check_dataset(checkup_pk: int) -> None:
    """Check a dataset, or make the one that leaves out what was found, which is then checked."""
    if made := checkups.carry_out_checkup(checkup_pk):
        check_later(made, made.created_by)


# --- undoing --------------------------------------------------------------------------------------------------------
def undo_here_or_later(file_import: Import, actor: User, *, undo: Callable[..., None] = undoing.undo) -> bool:
    """Undo a small import, and return True; start to undo a large one in the background, and return False.

    ``undo`` is the function of its kind.
    """
    if file_import.report.get("stored", 0) > ROWS_AT_ONCE:
        undoing.start_undo(file_import=file_import, actor=actor)
        jobs.enqueue(file_import)
        return False
    undo(file_import=file_import, actor=actor)
    return True


@shared_task(**LONGEST)
def undo_large_import(import_pk: int) -> None:
    """Delete what an import stored. A refusal is saved in its job, for its page."""
    undoing.carry_out_undo(import_pk=import_pk, undo=undoing.undo)


# --- versions of rubrics ----------------------------------------------------------------------------------------------
@shared_task(**LONGEST)
def change_rubric_version(change_pk: int) -> None:
    """Carry out a change of a large campaign's rubric version, or its undo."""
    rubric_changes.carry_out_job(change_pk)


# --- deadlines --------------------------------------------------------------------------------------------------------
@shared_task
def remind_annotators() -> None:
    """Mail everybody who has items left in a duty that is due soon, once for each deadline."""
    duty_settings.send_reminders()
