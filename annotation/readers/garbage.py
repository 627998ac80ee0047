"""The cyclic garbage collector, kept from going through millions of rows again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

SELDOM = 500_000  # objects made, net of those gone, between two looks at the youngest; Python's own number is 700

_lock = Lock()
_inside: list[tuple[int, int, int]] = []


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Within, cycles are looked for seldom: rows hold none, and go by themselves as soon as they are stored.

    The setting is the process's, so the last of several threads to leave puts it back.
    """
    with _lock:
        _inside.append(gc.get_threshold())
        gc.set_threshold(SELDOM, *_inside[0][1:])
    try:
        yield
    finally:
        with _lock:
            first = _inside[0]
            _inside.pop()
            if not _inside:
                gc.set_threshold(*first)
