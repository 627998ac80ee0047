"""Who gets which slot next. Every claim is a compare-and-set on one row, so the cap is the number of rows."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q
from uuid_utils.compat import uuid7

from annotation.desk import leasing
from annotation.models import Annotator, Assignment, Draft, Duty, Skip

LEASE = timedelta(hours=2)
TRIES = 5


def held(*, duty: Duty, annotator: Annotator, now: datetime) -> Assignment | None:
    """The slot that is the annotator's own already, its lease renewed if it had run out and nobody took it."""
    pk = leasing.held(duty=duty, annotator=annotator)
    if pk is None:
        return None
    own = Assignment.objects.get(pk=pk)
    if own.annotator_id != annotator.pk or own.leased_until is None:
        return None  # taken over since it was looked up
    if own.leased_until >= now:
        return own
    until = now + LEASE
    if not Assignment.objects.filter(pk=pk, key=own.key, state=Assignment.State.LEASED).update(leased_until=until):
        return None
    own.leased_until = until
    return own


def claim(*, duty: Duty, annotator: Annotator, now: datetime) -> Assignment | None:
    """Lease the next free slot, or None when nothing is left for this annotator. Call it inside a transaction."""
    for _ in range(TRIES):
        free = leasing.ahead(duty=duty, annotator=annotator) or _behind(duty, annotator, now)
        if free is None or _lease(free, annotator, now):
            return free
    return None


def _behind(duty: Duty, annotator: Annotator, now: datetime) -> Assignment | None:
    """Whatever else is left: what others gave back or let run out, and at the very end what this person skipped."""
    slots = Assignment.objects.select_for_update(skip_locked=True, no_key=True).filter(duty=duty)
    free = Q(state=Assignment.State.OPEN) | Q(state=Assignment.State.LEASED, leased_until__lt=now)
    skipped = Exists(Skip.objects.filter(duty=duty, annotator=annotator, item=OuterRef("item")))
    mine = Exists(Assignment.objects.filter(duty=duty, annotator=annotator, item=OuterRef("item")))
    return slots.filter(free).filter(~mine).order_by(skipped, "position", "slot").first()


def _lease(slot: Assignment, annotator: Annotator, now: datetime) -> bool:
    """Compare-and-set: the slot must be as it was read. ``slot`` then holds the new lease."""
    as_read = Assignment.objects.filter(pk=slot.pk, state=slot.state, key=slot.key, leased_until=slot.leased_until)
    lease = {
        "state": Assignment.State.LEASED,
        "annotator": annotator,
        "key": uuid7(),
        "leased_at": now,
        "leased_until": now + LEASE,
    }
    if not as_read.update(**lease):
        return False
    _keep_draft(slot, now)
    for field, value in lease.items():
        setattr(slot, field, value)
    return True


def _keep_draft(slot: Assignment, now: datetime) -> None:
    """Whoever let the lease run out keeps a draft under its key, so that a late submission is told what happened."""
    if slot.key and slot.annotator_id:
        Draft.objects.update_or_create(
            duty_id=slot.duty_id,
            item_id=slot.item_id,
            annotator_id=slot.annotator_id,
            defaults={"key": slot.key},
            create_defaults={"key": slot.key, "saved_at": now},
        )
