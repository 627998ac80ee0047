"""Long work under a lease: its holder reports a heartbeat and its progress, so that others notice when it dies."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Protocol, Self
from uuid import uuid4

from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import webhooks
from accounts.models import Event
from accounts.refusals import Refused
from annotation.models import Import

HEARTBEAT_SECONDS = 2.0
LEASE_TIMEOUT = timedelta(minutes=2)  # without a heartbeat the holder counts as dead


class LeasedRow(Protocol):
    """A row that one process at a time works on: its heartbeat is in ``beat_at``, ``done`` and ``total``."""

    _default_manager: Any
    pk: Any
    state: Any
    lease: Any


class JobHeartbeat:
    """Writes the heartbeat and the progress of a lease's holder, from a thread and a connection of its own.

    So others see them while a long transaction runs, whose own updates they would not see.
    """

    def __init__(self, held: LeasedRow, *, total: int = 0) -> None:
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
        self._beating.join(HEARTBEAT_SECONDS)

    def tell(self, done: int, total: int) -> None:
        """So much of it is done."""
        self._done, self._total = done, total

    def _beat(self) -> None:
        row = type(self._held)._default_manager.filter(pk=self._held.pk)
        mine = row.filter(state=self._held.state, lease=self._held.lease)
        try:
            while not self._over.wait(HEARTBEAT_SECONDS):
                # SQLite has one writer: while we write, nobody can sweep us either.
                with suppress(OperationalError):
                    alive = {"beat_at": timezone.now(), "done": self._done, "total": self._total}
                    self.is_lost = not mine.update(**alive) and row.exists()
        finally:
            connection.close()


# One process at a time stores an import: it holds the import's lease. When its heartbeat stops, the sweep frees it
# and another worker stores the import, after it has cleared what was staged. A holder that lost its lease and wakes up
# again (its machine slept) can no longer settle.

MOST_TRIES = 3


class ImportHeartbeat(JobHeartbeat):
    """The heartbeat of the worker that stores or checks an import."""

    def tell(self, done: int, total: int) -> None:
        """So much of it is done. Refused when the lease is lost."""
        if self.is_lost:
            raise Refused(_("This import was deleted while it was running. Start it again."), code="swept")
        super().tell(done, total)


class ImportLease(ImportHeartbeat):
    """The lease on an import that is being stored, taken on entering; refused when somebody else has it.

    Entered, it is told how far storing is: ``reading(done, total)`` in bytes, ``writing(share)`` of the rest.
    """

    def __init__(self, file_import: Import) -> None:
        super().__init__(file_import)
        self._file_import = file_import

    def __enter__(self) -> Self:
        lease, tries = uuid4(), self._file_import.report.get("tries", 0) + 1
        free = Import.objects.filter(pk=self._file_import.pk, state=Import.State.STORING, lease=None)
        beginning = {"lease": lease, "beat_at": timezone.now(), "done": 0, "total": 0, "report": {"tries": tries}}
        if not free.update(**beginning):
            raise Refused(_("This import is being stored, or is already stored. Reload the page."), code="wrong_state")
        self._file_import.lease, self._file_import.report = lease, {"tries": tries}
        return super().__enter__()

    def reading(self, done: int, total: int) -> None:
        """So many bytes of the files are read. Storing takes about as long again, so this is half of it at most."""
        self.tell(done, 2 * total)

    def writing(self, share: float) -> None:
        """This share of what was read is in the database."""
        self.tell(int(self._total * (1 + share) / 2), self._total)


def sweep(*, kinds: Iterable[str], older_than: timedelta = LEASE_TIMEOUT) -> list[Import]:
    """Free the imports whose holder fell silent, or that nobody ever took; returns those to be stored again.

    One that went silent too often takes its worker down with it, and is given up; so is that of a command, which nobody
    brought by page or API. The parts of a study are the business of whoever stores the study.
    """
    before = timezone.now() - older_than
    ended = _(
        "The command that started this import ended before everything was stored. Nothing was stored. Run it again."
    )
    for abandoned in _silent(kinds, before).filter(created_by=None):
        fail(abandoned, {"sentence": ended})
    silent = _silent(kinds, before)
    sentence = _("Storing was interrupted %d times, and nothing was stored. Split the file, or start it again.")
    for tired in silent.filter(report__tries__gte=MOST_TRIES):
        fail(tired, {"sentence": sentence % MOST_TRIES})
    return [each for each in silent if silent.filter(pk=each.pk).update(lease=None, beat_at=timezone.now())]


def _silent(kinds: Iterable[str], before: datetime) -> QuerySet[Import]:
    return Import.objects.filter(state=Import.State.STORING, kind__in=kinds, beat_at__lt=before, part_of=None)


def fail(file_import: Import, report: Mapping[str, Any]) -> None:
    """Leave an import failed, with the reason, unless somebody else has got its lease meanwhile."""
    held = Import.objects.filter(pk=file_import.pk, state=Import.State.STORING, lease=file_import.lease)
    failed = {"state": Import.State.FAILED, "report": dict(report)}
    with transaction.atomic():
        if held.update(**failed, state_since=timezone.now(), lease=None):
            file_import.state, file_import.report = Import.State.FAILED, dict(report)
            announce_end(file_import)


def announce_end(file_import: Import) -> None:
    """Tell the project's programs what became of an import, in the transaction that ends it; a part is told of nowhere.

    Its files and what was wrong with them stay here: told are keys and counts.
    """
    if file_import.part_of_id is not None:
        return
    problems = len(file_import.report.get("problems", ())) + file_import.report.get("more", 0)
    payload = {
        "import_id": file_import.pk,
        "intake": file_import.pk,  # what it was called before; gone with the next version of the API
        "kind": file_import.kind,
        "state": file_import.state,
        "problems": problems,
    }
    webhooks.announce(project=file_import.project_id, event=Event.IMPORT, subject=file_import.pk, payload=payload)
