"""The data folder (PANELBENCH_DATA_DIR): whether files can be written to it, and what an error of the disk means.

A disk can be full, read-only, missing, or not answer at all (a network disk whose server is away, a file system that a
snapshot froze). A thread that writes to such a disk waits in the kernel and nothing can end it. So the folder is tried
in a thread of its own, and whoever asks waits only for a limited time.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

from django.conf import settings
from django.db import connection

Written = TypeVar("Written")

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
BROKEN = (errno.EIO, errno.ESTALE, errno.ENXIO, errno.ENODEV, errno.EREMOTEIO)
PROBED = 64 * 1024  # bytes written to see whether the disk takes them
LEAST_FREE = 200 * 2**20
PROBE_WAIT = 2.0  # seconds that a request waits for the disk
WRITE_PATIENCE = 3.0  # if a write takes longer (seconds), the disk is tested
PROBE_SECONDS = 1.0  # a good result of a test is used again for this many seconds


class FolderState(StrEnum):
    """What is wrong with the data folder; empty if nothing is."""

    FINE = ""
    FULL = "disk_full"
    READ_ONLY = "data_folder_read_only"
    MISSING = "data_folder_missing"
    FROZEN = "data_folder_frozen"
    BROKEN = "data_folder_broken"


class FolderProbe:
    """Writes a small file to a folder, in a thread, so that a disk that does not answer keeps only that thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._began = self._ended = float("-inf")
        self._found = FolderState.FINE

    def state(self, *, wait: float = PROBE_WAIT, fresh: bool = False) -> FolderState:
        """The state of the disk, after at most ``wait`` seconds. A good result of the last second is used again unless
        ``fresh`` is set."""
        with self._lock:
            thread = self._thread
            if thread is None or not thread.is_alive():
                is_recent = time.monotonic() - self._ended < PROBE_SECONDS
                if is_recent and self._found is FolderState.FINE and not fresh:
                    return self._found
                thread = self._thread = threading.Thread(target=self._try, name="data folder", daemon=True)
                self._began = time.monotonic()
                thread.start()
        thread.join(max(0.0, self._began + wait - time.monotonic()))
        return FolderState.FROZEN if thread.is_alive() else self._found

    def _try(self) -> None:
        found = FolderState.FINE
        try:
            with TemporaryFile(dir=self.folder) as file:
                file.write(bytes(PROBED))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            found = state_of_error(error)
        self._found, self._ended = found, time.monotonic()


_probes: dict[tuple[int, Path], FolderProbe] = {}  # by process: threads do not outlive a fork


def folder_state(*, wait: float = PROBE_WAIT, fresh: bool = False) -> FolderState:
    """What is wrong with the data folder now."""
    key = (os.getpid(), Path(settings.DATA_DIR))
    probe = _probes.get(key) or _probes.setdefault(key, FolderProbe(key[1]))
    return probe.state(wait=wait, fresh=fresh)


def folder_report() -> str:
    """ "ok", or what is wrong, for the operator."""
    words = {
        FolderState.FULL: "the disk of the data directory is full",
        FolderState.READ_ONLY: "nothing can be written to the data directory: it is read-only or not ours",
        FolderState.MISSING: "nothing can be written to the data directory: it does not exist",
        FolderState.FROZEN: f"the disk of the data directory has not answered for {PROBE_WAIT:g} s",
        FolderState.BROKEN: "the disk of the data directory reports errors",
    }
    if (state := folder_state(fresh=True)) is not FolderState.FINE:
        return words[state]
    try:
        free = shutil.disk_usage(settings.DATA_DIR).free
    except OSError as error:
        return words[state_of_error(error)]
    return "ok" if free >= LEAST_FREE else f"less than {LEAST_FREE // 2**20} MB left in the data directory"


def is_full(error: BaseException) -> bool:
    """Whether a write failed because the disk is full."""
    return isinstance(error, OSError) and error.errno in FULL


def state_of_error(error: OSError) -> FolderState:
    """What a failed write to the data folder says about it."""
    if error.errno in FULL:
        return FolderState.FULL
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return FolderState.READ_ONLY
    if error.errno == errno.ETIMEDOUT:
        return FolderState.FROZEN
    return FolderState.MISSING if error.errno in (errno.ENOENT, errno.ENOTDIR) else FolderState.BROKEN


def state_behind(error: OSError) -> FolderState:
    """What an error somewhere in a request says about the data folder; `FINE` where it is about something else.

    If a file is missing or belongs to another user, but files can be written to the folder, the result is `FINE`.
    """
    if error.errno in (*FULL, *BROKEN, errno.EROFS):
        return state_of_error(error)
    inside = error.filename is not None and str(error.filename).startswith(str(settings.DATA_DIR))
    return folder_state(fresh=True) if inside else FolderState.FINE


def write_unless_frozen(write: Callable[[], Written]) -> Written:
    """Call ``write`` in a thread of its own, and return its result. ``write`` writes to the data folder and must not
    use the database.

    A disk that freezes in the middle keeps that thread and not the caller: after `WRITE_PATIENCE` the disk is tried,
    and if it does not answer, the caller gets an `OSError`. What was to be written may then still be written later.
    """
    done: Future[Written] = Future()

    def run() -> None:
        try:
            done.set_result(write())
        except BaseException as error:  # noqa: BLE001 (raised again by `result`, where the caller sees it)
            done.set_exception(error)

    threading.Thread(target=run, name="data folder write", daemon=True).start()
    while True:
        try:
            return done.result(WRITE_PATIENCE)
        except FutureTimeout:
            if done.done():  # ``write`` itself raised a timeout, or it ended just now
                return done.result()
            if folder_state(fresh=True) is FolderState.FROZEN:
                raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None


# --- the database file of an embedded instance -----------------------------------------------------------------------
_opened = threading.local()  # a thread's connection, with device and inode of the file that it has open


def is_database_missing() -> bool:
    """Whether the file of an embedded database is missing, so that everything written to it would be lost.

    SQLite keeps writing to a file that was moved or deleted, and creates an empty one where there is none. If another
    file is in its place, such as a restored one, this thread's connection is closed, so that the next one opens it.
    """
    name = str(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or not os.path.isabs(name):  # noqa: PTH117 (it runs in every request)
        return False
    try:
        found = os.stat(name)  # noqa: PTH116
    except OSError:
        return True
    current = (found.st_dev, found.st_ino)
    if getattr(_opened, "connection", None) is not connection.connection:
        _opened.connection, _opened.file = connection.connection, current
    elif connection.connection is not None and _opened.file != current and not connection.in_atomic_block:
        connection.close()
    return False
