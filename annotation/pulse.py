"""Signs of life of whoever works for long under a lease, so that others notice its death."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, Protocol, Self

from django.db import OperationalError, connection
from django.utils import timezone

PACE = 2.0  # seconds between two signs of life
PATIENCE = timedelta(minutes=2)  # the longest that a living holder says nothing


class Leased(Protocol):
    """A row that one process at a time works on: with ``beat_at``, ``done`` and ``total`` for its signs of life."""

    _default_manager: Any
    pk: Any
    state: Any
    lease: Any


class Pulse:
    """Tells from a thread of its own that whoever has the lease on a row lives, and how far it is.

    So it does while a long transaction runs, whose own updates nobody else would see.
    """

    def __init__(self, held: Leased, *, total: int = 0) -> None:
        self.is_lost = False  # somebody else has the row, or freed it
        self._held = held
        self._done, self._total = 0, total
        self._over = threading.Event()
        self._beating = threading.Thread(target=self._beat, name=f"{type(held).__name__} {held.pk}", daemon=True)

    def __enter__(self) -> Self:
        self._beating.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._beating.join(PACE)

    def tell(self, done: int, total: int) -> None:
        """So much of it is done."""
        self._done, self._total = done, total

    def _beat(self) -> None:
        row = type(self._held)._default_manager.filter(pk=self._held.pk)
        mine = row.filter(state=self._held.state, lease=self._held.lease)
        try:
            while not self._over.wait(PACE):
                # SQLite has one writer: while we write, nobody can sweep us either.
                with suppress(OperationalError):
                    alive = {"beat_at": timezone.now(), "done": self._done, "total": self._total}
                    self.is_lost = not mine.update(**alive) and row.exists()
        finally:
            connection.close()
