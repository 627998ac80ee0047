"""Who stores an import: one process at a time, which tells that it lives, and whose death others notice.

A holder has the import's lease, and its pulse says that it lives and how far it is. When it falls silent, the sweep
frees the lease and has the import stored by somebody else, who first clears what was staged. A holder that lost its
lease all the same (its machine slept) can no longer settle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import uuid4

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import webhooks
from accounts.models import Event
from accounts.refusals import Refused
from annotation.models import Intake
from annotation.pulse import PATIENCE, Pulse

MOST_TRIES = 3


class Custody(Pulse):
    """The pulse of whoever has an import, to store it or to check it."""

    def tell(self, done: int, total: int) -> None:
        """So much of it is done. Refused when the lease is lost."""
        if self.is_lost:
            raise Refused(_("This import was cleared away while it ran. Start it again."), code="swept")
        super().tell(done, total)


class Held(Custody):
    """The lease on an import that is being stored, taken on entering; refused when somebody else has it.

    Entered, it is told how far storing is: ``reading(done, total)`` in bytes, ``writing(share)`` of the rest.
    """

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        self._intake = intake

    def __enter__(self) -> Self:
        lease, tries = uuid4(), self._intake.report.get("tries", 0) + 1
        free = Intake.objects.filter(pk=self._intake.pk, state=Intake.State.STORING, lease=None)
        beginning = {"lease": lease, "beat_at": timezone.now(), "done": 0, "total": 0, "report": {"tries": tries}}
        if not free.update(**beginning):
            raise Refused(_("This import is being stored, or was stored already. Reload the page."), code="wrong_state")
        self._intake.lease, self._intake.report = lease, {"tries": tries}
        return super().__enter__()

    def reading(self, done: int, total: int) -> None:
        """So many bytes of the files are read. Storing takes about as long again, so this is half of it at most."""
        self.tell(done, 2 * total)

    def writing(self, share: float) -> None:
        """This share of what was read is in the database."""
        self.tell(int(self._total * (1 + share) / 2), self._total)


def sweep(*, kinds: Iterable[str], older_than: timedelta = PATIENCE) -> list[Intake]:
    """Free the imports whose holder fell silent, or that nobody ever took; returns those to be stored again.

    One that went silent too often takes its worker down with it, and is given up; so is that of a command, which nobody
    brought by page or API. The parts of a study are the business of whoever stores the study.
    """
    before = timezone.now() - older_than
    ended = _("The command that brought this import ended before it was stored. Nothing was stored; run it again.")
    for abandoned in _silent(kinds, before).filter(created_by=None):
        fail(abandoned, {"sentence": ended})
    silent = _silent(kinds, before)
    sentence = _("Storing was interrupted %d times, and nothing was stored. Split the file, or start it again.")
    for tired in silent.filter(report__tries__gte=MOST_TRIES):
        fail(tired, {"sentence": sentence % MOST_TRIES})
    return [each for each in silent if silent.filter(pk=each.pk).update(lease=None, beat_at=timezone.now())]


def _silent(kinds: Iterable[str], before: datetime) -> QuerySet[Intake]:
    return Intake.objects.filter(state=Intake.State.STORING, kind__in=kinds, beat_at__lt=before, part_of=None)


def fail(intake: Intake, report: Mapping[str, Any]) -> None:
    """Leave an import failed, with the reason, unless somebody else has got its lease meanwhile."""
    held = Intake.objects.filter(pk=intake.pk, state=Intake.State.STORING, lease=intake.lease)
    failed = {"state": Intake.State.FAILED, "report": dict(report)}
    with transaction.atomic():
        if held.update(**failed, state_since=timezone.now(), lease=None):
            intake.state, intake.report = Intake.State.FAILED, dict(report)
            announce_end(intake)


def announce_end(intake: Intake) -> None:
    """Tell the project's programs what became of an import, in the transaction that ends it; a part is told of nowhere.

    Its files and what was wrong with them stay here: told are keys and counts.
    """
    if intake.part_of_id is not None:
        return
    problems = len(intake.report.get("problems", ())) + intake.report.get("more", 0)
    payload = {"intake": intake.pk, "kind": intake.kind, "state": intake.state, "problems": problems}
    webhooks.announce(project=intake.project_id, event=Event.IMPORT, subject=intake.pk, payload=payload)
