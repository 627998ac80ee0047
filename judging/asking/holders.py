"""Which work sessions of this machine live: each has the lock of its lease's file for as long as it works.

The kernel gives the lock back when the process ends, however it ends, so the death of a session is known at once. A
lease whose file can be locked belongs to a dead session. A lease without a file (of another machine, or of a folder
that was removed) ends when its time runs out, as before.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO
from uuid import UUID

logger = logging.getLogger(__name__)


@contextmanager
def holding(folder: Path, lease: UUID) -> Iterator[None]:
    """Have the lock of the lease's file in ``folder`` while the block runs; enter it before anything is leased.

    A folder that can't be written costs the early notice, not the work.
    """
    path = folder / str(lease)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = _locked(path)
    except OSError as error:
        logger.warning("The death of this work session would be noticed only when its lease ends: %s", error)
        yield
        return
    with file:
        try:
            yield
        finally:
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


def _leases(folder: Path) -> Iterator[tuple[Path, UUID]]:
    for path in folder.glob("*-*"):
        with suppress(ValueError):
            yield path, UUID(path.name)


def with_dead_leases(folder: Path, release: Callable[[UUID], object]) -> int:
    """Call ``release`` with each lease in ``folder`` whose session has ended; returns how many there were.

    The file is removed after that, so that a release that fails is tried again by the next look. A file that can't be
    opened or locked, such as one of another user, is passed over: its lease ends when its time runs out.
    """
    released = 0
    for path, lease in list(_leases(folder)):
        with ExitStack() as opened:
            try:
                fcntl.flock(opened.enter_context(path.open("r+")), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (FileNotFoundError, BlockingIOError):  # it has ended, or lives
                continue
            except OSError as error:
                _say_once(path, str(error))
                continue
            release(lease)
            path.unlink(missing_ok=True)
            released += 1
    return released


@lru_cache(maxsize=1_000)
def _say_once(path: Path, error: str) -> None:
    logger.warning("Whether the work session of %s has ended can't be known before its lease ends: %s", path, error)
