"""A flag that tells the processes of a worker that it must stop; the main process sets it.

Celery tells only the main process of a worker that it is to end, and then waits for the tasks of its children. They
look here, so that a work session takes nothing more and stores what comes. The flag lies in memory that is shared with
every child forked after ``prepare``.
"""

from __future__ import annotations

import mmap

_flag = mmap.mmap(-1, 1)


def prepare_stop() -> None:
    """A flag of this process and the children it will fork; call it before it forks any."""
    global _flag  # noqa: PLW0603 - one worker, one flag
    _flag = mmap.mmap(-1, 1)


def ask_to_stop() -> None:
    """Ask this worker's sessions to end."""
    _flag[0] = 1


def withdraw_stop() -> None:
    """Ask no longer."""
    _flag[0] = 0


def is_asked() -> bool:
    """Whether this worker is to end."""
    return _flag[0] == 1
