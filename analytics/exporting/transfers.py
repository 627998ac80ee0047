"""Transfers too large for one request: exports that a worker writes to a file, and bundles that a worker loads.

A transfer goes waiting -> done | failed, each step by compare-and-set, and has a job (`accounts.jobs`). Files are
deleted when they expire.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, cast
from uuid import uuid4

from django.core.files.base import ContentFile
from django.core.files.base import File as StoredFile
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import data_folder, jobs
from accounts.jobs import JobHeartbeat, JobKind
from accounts.models import Job, Project, User
from accounts.refusals import Refused
from analytics.exporting import bundles, exports
from analytics.exporting.exports import Export, Options
from analytics.models import Transfer
from annotation.imports import uploads
from annotation.models import Upload

State = Transfer.State
KEPT = timedelta(days=3)
MOST_AT_ONCE = 5  # of one person in one project


# --- asking for one -------------------------------------------------------------------------------------------------
def prepare(*, export: Export, actor: User) -> Transfer:
    """Have a worker write this export to a file, which is kept for a while."""
    asked = {
        "what": export.what,
        "format": export.kind,
        "subject": export.subject.pk,
        "options": asdict(export.options),
    }
    with transaction.atomic():
        _require_room(export.project, actor)
        exports.record_export(export, actor)
        return _begun(export.project, Transfer.Kind.EXPORT, export.file_name, actor, asked=asked)


def receive_bundle(*, project: Project, name: str, content: BinaryIO, actor: User) -> Transfer:
    """Store a bundle for a worker to load, after checking that the file is a bundle and fits an empty project.

    Raises `Refused`.
    """
    carried = bundles.look_into_bundle(project=project, name=name, content=content)
    content.seek(0)
    with transaction.atomic():
        begun = _arriving(project, name, carried, actor)
        begun.content.save(begun.name, StoredFile(content))
    return begun


def take_over(*, upload: Upload, actor: User) -> Transfer:
    """Like `receive_bundle`, for a file that was uploaded in chunks; the bytes are not moved."""
    with upload.content.open("rb") as content:
        carried = bundles.look_into_bundle(project=upload.project, name=upload.name, content=cast(BinaryIO, content))
    with transaction.atomic():
        deleted, _by_model = Upload.objects.filter(pk=upload.pk).delete()
        if not deleted:
            raise Refused(_("This upload was already imported or cancelled. Start it again."), code="gone")
        begun = _arriving(upload.project, upload.name, carried, actor)
        begun.content = upload.content.name
        begun.save(update_fields=["content"])
    return begun


def _arriving(project: Project, name: str, carried: bundles.Carried, actor: User) -> Transfer:
    _require_room(project, actor)
    total = sum(carried.rows.values())
    return _begun(project, Transfer.Kind.BUNDLE, uploads.short_name(name), actor, total=total)


def _begun(project: Project, kind: str, name: str, actor: User, *, total: int = 0, **parts: Any) -> Transfer:
    """A transfer with its waiting job, which the caller enqueues."""
    expires = timezone.now() + KEPT
    begun = Transfer.objects.create(
        project=project, kind=kind, name=name, created_by=actor, expires_at=expires, **parts
    )
    unit = Job.Unit.ROWS
    jobs.begin(kind=Job.Kind(kind), subject=begun, project=project, owner=actor, total=total, unit=unit)
    return begun


def _require_room(project: Project, actor: User) -> None:
    moving = Transfer.objects.filter(project=project, created_by=actor, state=State.WAITING)
    if moving.count() >= MOST_AT_ONCE:
        sentence = _("%d of your files are already being created. Wait until one is ready, or remove one.")
        raise Refused(sentence % MOST_AT_ONCE, code="too_many")


def export_of(transfer: Transfer) -> Export:
    """The export that a transfer is about. Raises `Refused` if its subject was deleted."""
    asked = transfer.asked
    subject: Any = transfer.project
    if (kind := exports.SUBJECTS[asked["what"]]) != "project":
        subject = exports.subject_choices(project=transfer.project, subject=kind).filter(pk=asked["subject"]).first()
    left_out = tuple(asked["options"].get("without_attributes", ()))
    options = Options(**{**asked["options"], "without_attributes": left_out})
    return exports.checked_export(
        project=transfer.project, what=asked["what"], kind=asked["format"], subject=subject, options=options
    )


def has_file(transfer: Transfer) -> bool:
    """Whether the owner can download the written file."""
    return transfer.kind == Transfer.Kind.EXPORT and transfer.state == State.DONE and bool(transfer.content)


# --- carrying it out ------------------------------------------------------------------------------------------------
def carry_out_transfer(*, transfer_pk: int) -> None:
    """Write or load the transfer, unless another worker does or did.

    The result is stored on the transfer, for its owner.
    """
    waiting = Transfer.objects.filter(pk=transfer_pk, state=State.WAITING)
    transfer = waiting.select_related("project", "created_by").first()
    if transfer is None or (job := jobs.take_job(transfer, Job.Kind.EXPORT, Job.Kind.BUNDLE)) is None:
        return
    try:
        with JobHeartbeat(job) as heartbeat:
            _WORK[Transfer.Kind(transfer.kind)](transfer, heartbeat)
    except Refused as refused:
        _settle(transfer, State.FAILED, sentence=refused.sentence)
    except OSError as error:
        if not data_folder.is_full(error):
            raise
        _settle(transfer, State.FAILED, sentence=uploads.no_room().sentence)


def _write(transfer: Transfer, heartbeat: JobHeartbeat) -> None:
    export = export_of(transfer)
    rows = exports.row_count(export)
    if not transfer.content:
        transfer.content.save(transfer.name, ContentFile(b""), save=False)
        Transfer.objects.filter(pk=transfer.pk).update(content=transfer.content.name)
    path = Path(transfer.content.path)
    own = path.with_name(f"{uuid4()}.part")  # a worker that lost its lease writes into another file
    try:
        with own.open("wb") as file:
            file.writelines(exports.export_pieces(export, tell=lambda done: heartbeat.tell(done, rows)))
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        with transaction.atomic():
            if _settle(transfer, State.DONE, rows=rows, size=size, expires_at=timezone.now() + KEPT):
                own.replace(path)
    finally:
        own.unlink(missing_ok=True)


def _load(transfer: Transfer, heartbeat: JobHeartbeat) -> None:
    """The contents and the state DONE are stored in one transaction, so two workers can't both load a bundle."""
    with transfer.content.open("rb") as file, transaction.atomic():
        carried = bundles.load_bundle(
            project=transfer.project,
            name=transfer.name,
            content=cast(BinaryIO, file),
            actor=transfer.created_by,
            progress=heartbeat.tell,
        )
        if not _settle(transfer, State.DONE, rows=transfer.total, sentence=carried.sentence):
            raise Refused(
                _("This was removed, or restarted by another worker, while it was running. Nothing was stored."),
                code="lost",
            )


_WORK: dict[Transfer.Kind, Callable[[Transfer, JobHeartbeat], None]] = {
    Transfer.Kind.EXPORT: _write,
    Transfer.Kind.BUNDLE: _load,
}


def _settle(transfer: Transfer, state: Transfer.State, *, rows: int = 0, **changes: Any) -> bool:
    """Store the result, if this worker still has the lease."""
    job = cast(Job, transfer.job)
    with transaction.atomic():
        if _ended(transfer, state, **changes):
            is_failed = state == State.FAILED
            if jobs.fail(job, changes["sentence"]) if is_failed else jobs.finish_job(job, done=rows, total=rows):
                return True
        transaction.set_rollback(True)
    return False


def _ended(transfer: Transfer, state: Transfer.State, **changes: Any) -> bool:
    """End a transfer that is still open. The file of a bundle, and the partial file of a failed export, are deleted."""
    if not Transfer.objects.filter(pk=transfer.pk, state=State.WAITING).update(state=state, **changes):
        return False
    if transfer.kind == Transfer.Kind.BUNDLE or state == State.FAILED:
        transaction.on_commit(lambda: _delete_file(transfer))
    return True


def _delete_file(transfer: Transfer) -> None:
    kept = Transfer.objects.filter(pk=transfer.pk).values_list("content", flat=True).first() or transfer.content.name
    if kept:
        Transfer.objects.filter(pk=transfer.pk).update(content="")
        Transfer.content.field.storage.delete(kept)


# --- the end of it --------------------------------------------------------------------------------------------------
def remove(*, transfer: Transfer) -> None:
    """Delete the transfer and its file. A worker that processes it then stores no result."""
    jobs.drop(transfer)
    _delete_file(transfer)
    Transfer.objects.filter(pk=transfer.pk).delete()


def clear() -> None:
    """Delete expired transfers and files."""
    over = Transfer.objects.filter(expires_at__lt=timezone.now()).exclude(job__state=Job.State.RUNNING)
    for transfer in over:
        remove(transfer=transfer)


# --- what jobs have to know -----------------------------------------------------------------------------------------
def _kind(loses: str | Promise) -> JobKind:
    return JobKind(
        model=Transfer,
        task=lambda _transfer: "analytics.tasks.carry_transfer",
        fail=lambda transfer, sentence: _ended(transfer, State.FAILED, sentence=sentence),
        title=lambda transfer: str(transfer.name),
        address=lambda transfer: reverse("export", args=[transfer.project.slug]),
        related=("project",),
        interrupted=gettext_lazy(
            "It was interrupted %d times and will not be tried again. Request it again, or request a smaller part."
        ),
        loses=loses,
    )


KINDS: dict[str, JobKind] = {
    Job.Kind.EXPORT: _kind(gettext_lazy("Everything written so far is deleted. The file can be requested again.")),
    Job.Kind.BUNDLE: _kind(gettext_lazy("The uploaded bundle is deleted. It can be uploaded again.")),
}
