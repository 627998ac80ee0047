"""Resumable uploads: each chunk is appended at the present end of the file, so that none is lost or stored twice.

The file grows in the media directory, which every web process shares. The row counts only bytes that
are already written; later bytes, left by a process that died, are overwritten.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from io import BufferedReader
from pathlib import Path, PurePath
from typing import cast
from uuid import UUID

from django.conf import settings
from django.core.files.base import ContentFile
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import data_folder, outages
from accounts.data_folder import FolderState
from accounts.inputs import without_nul
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.models import Upload

MEGABYTE = 2**20
AT_ONCE = 100 * MEGABYTE  # the most bytes of one request that is not a chunk
CHUNK = 8 * MEGABYTE  # the most bytes that one transaction appends; a longer body is split into pieces of this size
LONGEST_NAME = 255
ABANDONED = timedelta(days=1)


def begin_upload(*, project: Project, name: str, size: int, actor: User) -> Upload:
    """Create an upload for a file of ``size`` bytes."""
    if size > settings.UPLOAD_LIMIT:
        raise too_large(name, size)
    _require_folder()
    try:
        with transaction.atomic():
            begun = Upload(project=project, name=short_name(name), size=size, created_by=actor)
            empty = partial(begun.content.save, stored_name(begun.name), ContentFile(b""), save=False)
            data_folder.write_unless_frozen(empty)
            begun.save()
        if shutil.disk_usage(Path(begun.content.path).parent).free < size:
            abandon(upload=begun)
            raise no_room()
    except OSError as error:
        raise _refusal(error) from error
    return begun if size else _whole(begun)


def short_name(name: str) -> str:
    """The name of a file without its folders, shortened to the length that the database allows."""
    return PurePath(_plain(name)).name[-LONGEST_NAME:] or "file"


def name_in_archive(name: str) -> str:
    """The name of an archive's member with its folders, because they may name the rater; long names keep their end."""
    parts = [part for part in PurePath(_plain(name)).parts if part not in ("/", "..")]
    return "/".join(parts)[-LONGEST_NAME:] or "file"


def _plain(name: str) -> str:
    return without_nul(name).replace("\\", "/")


def stored_name(name: str) -> str:
    """A file name that the storage accepts: it drops some characters, and refuses an empty name."""
    return f"file-{name}"


def too_large(name: str, size: int) -> Refused:
    """The refusal of an upload beyond the limit."""
    sentence = _(
        "“%(name)s” has %(size)d MB; the limit for one import is %(limit)d MB. Split the file, or ask the operator "
        "to raise UPLOAD_LIMIT_MB."
    ) % {"name": name, "size": -(-size // MEGABYTE), "limit": settings.UPLOAD_LIMIT // MEGABYTE}
    return Refused(sentence, code="too_large", fields={"files": sentence})


def too_long(size: int, name: str = "") -> Refused:
    """The refusal of a request that is too large, with the name of its file, the largest of several."""
    sentence = _("%(size)d MB are too much for one request: the limit is %(limit)d MB. Upload the file in chunks.")
    sizes = {"size": -(-size // MEGABYTE), "limit": AT_ONCE // MEGABYTE, "name": name}
    if name:
        sentence = _(
            "“%(name)s”: %(size)d MB are too much for one request. The limit is %(limit)d MB. Upload the file in "
            "chunks."
        )
    return Refused(sentence % sizes, code="too_large", fields={"files": sentence % sizes})


def no_room() -> Refused:
    """The refusal of bytes when the disk is full."""
    return Refused(_("The server's disk is full. Ask the operator to free some space, then continue."), code="no_room")


def append_part(*, upload: Upload, offset: int, chunk: bytes) -> Upload:
    """Append ``chunk`` if the file ends at ``offset``; a second request with the same offset is refused.

    Requests for one upload wait for the lock on its database row, so that only one chunk is written at a time.
    """
    _require_folder()
    try:
        with transaction.atomic():
            held = _held(upload, offset, len(chunk))
            data_folder.write_unless_frozen(partial(_write, held, offset, chunk))
            held.received, held.changed_at = offset + len(chunk), timezone.now()
            held.save(update_fields=["received", "changed_at"])
    except OSError as error:
        raise _refusal(error) from error
    return _whole(held) if held.received == held.size else held


def _write(upload: Upload, offset: int, chunk: bytes) -> None:
    with _own_file(upload, "r+b") as file:
        file.seek(offset)
        file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def _held(upload: Upload, offset: int, length: int) -> Upload:
    held = Upload.objects.select_for_update().filter(pk=upload.pk).first()
    if held is None:
        raise Refused(_("This upload was already imported or cancelled. Start it again."), code="gone")
    if held.received != offset:
        sentence = _("The server has %(received)d bytes of the file. Continue at that byte, not at %(offset)d.")
        raise Refused(sentence % {"received": held.received, "offset": offset}, code="wrong_offset")
    if offset + length > held.size:
        raise Refused(_("This is more than the announced %d bytes.") % held.size, code="beyond_the_end")
    return held


def _own_file(upload: Upload, mode: str) -> BufferedReader:
    """Open the upload's file. Refused if its first bytes are not on this machine's disk."""
    try:
        return cast("BufferedReader", Path(upload.content.path).open(mode))
    except FileNotFoundError:
        _require_folder(fresh=True)
        raise elsewhere() from None


def elsewhere() -> Refused:
    """The refusal of a file that another machine has, because the machines do not share one data folder."""
    sentence = _(
        "The beginning of this file is on another web machine. All machines must share one data folder: tell the "
        "operator of this server."
    )
    return Refused(sentence, code="other_machine")


def _require_folder(*, fresh: bool = False) -> None:
    """Refuse before anything is written if the data folder is not writable: a frozen disk would block this thread."""
    if (state := data_folder.folder_state(fresh=fresh)) is not FolderState.FINE:
        raise _refusal_of(state)


def _refusal(error: OSError) -> Refused:
    """The refusal for an error of the disk."""
    return _refusal_of(data_folder.state_of_error(error))


def _refusal_of(state: FolderState) -> Refused:
    if state is FolderState.FULL:
        return no_room()
    return Refused(str(outages.FOLDER[state].sentence), code=str(state))


def _whole(upload: Upload) -> Upload:
    """Compute the digest of a complete file, once."""
    if not upload.sha256:
        with _own_file(upload, "rb") as file:
            upload.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        Upload.objects.filter(pk=upload.pk).update(sha256=upload.sha256)
    return upload


def whole(*, project: Project, keys: Sequence[UUID], actor: User) -> list[Upload]:
    """The uploads of these keys, in their order. Raises ``Refused`` unless all are complete."""
    mine = {upload.key: upload for upload in Upload.objects.visible_to(actor).filter(project=project, key__in=keys)}
    if missing := [key for key in keys if key not in mine]:
        sentence = _(
            "%d of the files are not on the server: they were already imported, or cancelled. Upload them again."
        )
        raise Refused(sentence % len(missing), code="gone")
    for upload in mine.values():
        if upload.received < upload.size:
            sentence = _(
                "“%(name)s” is not complete: %(received)d of %(size)d bytes were uploaded. Continue the upload."
            )
            sizes = {"name": upload.name, "received": upload.received, "size": upload.size}
            raise Refused(sentence % sizes, code="not_whole")
    return [_whole(mine[key]) for key in dict.fromkeys(keys)]


def abandon(*, upload: Upload) -> None:
    """Delete an upload and its file."""
    with transaction.atomic():
        if Upload.objects.filter(pk=upload.pk).delete()[0]:
            transaction.on_commit(lambda: upload.content.storage.delete(str(upload.content.name)))


def sweep_uploads(*, older_than: timedelta = ABANDONED) -> int:
    """Delete uploads that were not continued; returns how many."""
    forgotten = list(Upload.objects.filter(changed_at__lt=timezone.now() - older_than))
    for upload in forgotten:
        abandon(upload=upload)
    return len(forgotten)
