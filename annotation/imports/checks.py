"""Check a large import in a background worker, store the report, and show it on the import's page.

A check goes uploaded | failed -> checking -> uploaded | failed. Its worker has a lease and sends heartbeats
with its progress. When the heartbeat stops, the sweep gives the check to another worker; one that has lost its lease
stops, so a mapping may be corrected, or the import discarded, while its check runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import orjson
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.refusals import Refused
from annotation.imports import targets, uploads
from annotation.imports.previews import Outlook, Preview, outlook
from annotation.jobs import ImportHeartbeat
from annotation.models import DryRun, Import

State = Import.State
Progress = Callable[[int, int], None]
Look = Callable[[Import, Progress], Preview | Outlook]
EDITABLE = (State.UPLOADED, State.FAILED, State.CHECKING)
PATIENCE = timedelta(minutes=5)  # the longest a living worker says nothing
MOST_TRIES = 3


def start(*, file_import: Import) -> None:
    """Say that a check is due; the edge enqueues the task that carries it out."""
    found = Import.objects.filter(pk=file_import.pk, state__in=EDITABLE)
    fresh: dict[str, Any] = {"lease": None, "beat_at": timezone.now(), "done": 0, "total": 0, "report": {}}
    if not found.update(state=State.CHECKING, state_since=timezone.now(), **fresh):
        raise Refused(_("This import is being stored, or is already stored. Reload the page."), code="wrong_state")
    file_import.state, file_import.report = State.CHECKING, {}


def current(file_import: Import) -> Outlook | None:
    """What the last check saw, as long as it answers what the import asks now."""
    made = DryRun.objects.filter(file_import=file_import, asked=asked(file_import)).first()
    return made.seen if made else None


def asked(file_import: Import) -> str:
    """A digest of all that a check depends on and its project's people can change."""
    question = orjson.dumps([file_import.kind, file_import.mapping, file_import.target], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(question).hexdigest()


def carry_out(*, import_pk: int, look: Look) -> None:
    """Check an import and keep what was seen. Delivered twice, or late, it finds nothing to do.

    A check that lost its import ends where it next tells how far it is; what it saw is not kept.
    """
    held = _take(import_pk)
    if held is None:
        return
    try:
        with ImportHeartbeat(held) as heartbeat:
            seen = look(held, heartbeat.tell)
    except Refused as refused:
        _end(held, State.FAILED, {"sentence": refused.sentence})
    except BaseException as error:
        wrong = _("Something went wrong while the files were checked. Try again, and tell the operator.")
        _end(held, State.FAILED, {"sentence": uploads.no_room().sentence if uploads.is_full(error) else wrong})
        raise
    else:
        if isinstance(seen, Preview):
            seen = outlook(seen, targets.resolve(project=held.project, said=held.target))
        _keep(held, seen)


def open_packed(*, import_pk: int, look_into: Callable[[Import], list[Import]]) -> list[Import]:
    """Have files opened that only a worker may open; the imports that came of them, to be checked next."""
    held = _take(import_pk)
    if held is None:
        return []
    try:
        with ImportHeartbeat(held):
            return look_into(held)
    except Refused as refused:
        _end(held, State.FAILED, {"sentence": refused.sentence})
    except BaseException:
        wrong = _("Something went wrong while the files were opened. Try again, and tell the operator.")
        _end(held, State.FAILED, {"sentence": wrong})
        raise
    return []


def _take(import_pk: int) -> Import | None:
    """The import with a lease on it; None when its check is over, or in other hands."""
    found = Import.objects.filter(pk=import_pk, state=State.CHECKING, lease=None)
    due = found.select_related("project", "created_by").first()
    if due is None:
        return None
    due.lease, tries = uuid4(), due.report.get("tries", 0) + 1
    mine = Import.objects.filter(pk=due.pk, state=State.CHECKING, lease=None)
    if not mine.update(lease=due.lease, beat_at=timezone.now(), report={"tries": tries}):
        return None
    return due


def _end(held: Import, state: str, report: dict[str, Any]) -> bool:
    mine = Import.objects.filter(pk=held.pk, state=State.CHECKING, lease=held.lease)
    return bool(mine.update(state=state, state_since=timezone.now(), lease=None, report=report))


def _keep(held: Import, seen: Outlook) -> None:
    with transaction.atomic():
        if _end(held, State.UPLOADED, {}):
            kept = {"asked": asked(held), "seen": seen, "made_at": timezone.now()}
            DryRun.objects.update_or_create(file_import=held, defaults=kept)


def sweep(*, kinds: Iterable[str], older_than: timedelta = PATIENCE) -> list[int]:
    """Free the checks whose worker fell silent, or that no worker ever took; returns which have to be enqueued again.

    One that went silent too often takes its worker down with it, and is given up.
    """
    silent = Import.objects.filter(state=State.CHECKING, kind__in=kinds, beat_at__lt=timezone.now() - older_than)
    sentence = _("The check was interrupted %d times. Split the file, or ask the operator for more memory.")
    hopeless = silent.filter(report__tries__gte=MOST_TRIES)
    hopeless.update(
        state=State.FAILED, state_since=timezone.now(), lease=None, report={"sentence": sentence % MOST_TRIES}
    )
    freed = list(silent.values_list("pk", flat=True))
    silent.filter(pk__in=freed).update(lease=None, beat_at=timezone.now())
    return freed
