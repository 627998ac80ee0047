"""Which work sessions of this machine live: each has the lock of its lease's file for as long as it works; and which
requests of a session left this machine.

The kernel gives the lock back when the process ends, however it ends, so the death of a session is known at once. A
lease whose file can be locked belongs to a dead session. A lease without a file (of another machine, or of a folder
that was removed) ends when its time runs out, as before.

The file is the session's record, too: the number of each attempt is written before the first byte of its request. What
a process has written to a file survives its death, but not that of the machine. So the record begins with the boot of
the machine, and is believed in that boot only; where it is not, every request that is marked as sent counts as lost.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import IO
from uuid import UUID

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class SentRecord:
    """The attempts of a session whose requests have begun to leave this machine, also in its file if it has one."""

    file: int | None = None
    noted: set[int] = field(default_factory=set)

    def note(self, attempt: int) -> None:
        """Note it, before the first byte goes out. A file that takes no more becomes one that is not believed."""
        self.noted.add(attempt)
        if self.file is None:
            return
        line = b"%d\n" % attempt
        try:
            is_whole = os.write(self.file, line) == len(line)
        except OSError as error:
            logger.warning("What this work session sends can't be noted: %s", error)
            is_whole = False
        if not is_whole:
            os.ftruncate(self.file, 0)  # if this fails too, nothing is sent: the exception is that of the request
            self.file = None


@contextmanager
def holding(folder: Path, lease: UUID) -> Iterator[SentRecord]:
    """Have the lock of the lease's file in ``folder`` while the block runs; enter it before anything is leased.

    A folder that can't be written costs the early notice, not the work.
    """
    path = folder / str(lease)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = _locked(path)
    except OSError as error:
        logger.warning("The death of this work session would be noticed only when its lease ends: %s", error)
        yield SentRecord()
        return
    with file:
        record = SentRecord(file.fileno())
        if boot := _boot():
            with suppress(OSError):
                os.write(file.fileno(), b"%s\n" % boot)
        try:
            yield record
        finally:
            record.file = None
            path.unlink(missing_ok=True)


def _locked(path: Path) -> IO[str]:
    """The file, open and locked; made anew when somebody removed it between the two."""
    while True:
        with ExitStack() as opened:
            file = opened.enter_context(path.open("a"))
            fcntl.flock(file, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(file.fileno())):
                    opened.pop_all()
                    return file


@cache
def _boot() -> bytes:
    """What names this boot of this machine; empty where the system does not say it."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    return b""


def _noted(record: bytes) -> set[int] | None:
    """The attempts in a session's record; None if it can't be believed."""
    boot, *lines = record.split(b"\n")
    if not boot or boot != _boot() or not record.endswith(b"\n"):
        return None
    return {int(line) for line in lines if line.isdigit()}


def _leases(folder: Path) -> Iterator[tuple[Path, UUID]]:
    for path in folder.glob("*-*"):
        with suppress(ValueError):
            yield path, UUID(path.name)


def with_dead_leases(folder: Path, release: Callable[[UUID, set[int] | None], object]) -> int:
    """Call ``release`` with each lease in ``folder`` whose session has ended, and the attempts that it sent, if that is
    known; returns how many there were.

    The file is removed after that, so that a release that fails is tried again by the next look. A file that can't be
    opened or locked, such as one of another user, is passed over: its lease ends when its time runs out.
    """
    released = 0
    for path, lease in list(_leases(folder)):
        with ExitStack() as opened:
            try:
                file = opened.enter_context(path.open("rb+"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                sent = _noted(file.read())
            except (FileNotFoundError, BlockingIOError):  # it has ended, or lives
                continue
            except OSError as error:
                _say_once(path, str(error))
                continue
            release(lease, sent)
            path.unlink(missing_ok=True)
            released += 1
    return released


@lru_cache(maxsize=1_000)
def _say_once(path: Path, error: str) -> None:
    logger.warning("Whether the work session of %s has ended can't be known before its lease ends: %s", path, error)
