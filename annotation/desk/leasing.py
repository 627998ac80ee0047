"""Choose the next item of an annotator, and lease it: their duties, their leases, and the free assignments.

New items are leased only by `take`; `desk.service` renews a lease, and leases again on undo. A claim is a compare-and-
set on one row, so an item never has more leases than it has slots. The queries written out in SQL are those of every
item taken: building them with Django took longer than running them, and they decide how many annotators one machine can
serve (bench/next_item.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from accounts import access, languages
from accounts.models import User
from accounts.refusals import Refused
from annotation.models import Annotator, Assignment, Campaign, Draft, Duty, PanelSeat, Selection, Skip

LEASE = timedelta(hours=2)
TRIES = 5

_SEAT = "SELECT seat.id FROM annotation_panelseat seat WHERE seat.panel_id = %s AND seat.annotator_id = %s "
_HELD = """
SELECT own.id FROM annotation_assignment own
WHERE own.annotator_id = %s AND own.duty_id = %s AND own.state = 'leased' ORDER BY own.leased_at DESC LIMIT 1
"""
# Past the furthest item of their own everything is new to the annotator, but for what they skipped; the index
# assignment_queue leads straight to the first free slot there.
_AHEAD = """
SELECT slot.id FROM annotation_assignment slot
WHERE slot.duty_id = %s AND slot.state = 'open'
  AND slot.position > COALESCE((
    SELECT MAX(own.position) FROM annotation_assignment own
    WHERE own.annotator_id = %s AND own.duty_id = %s AND own.state = 'submitted'), 0)
  AND NOT EXISTS (
    SELECT 1 FROM annotation_skip skip
    WHERE skip.duty_id = slot.duty_id AND skip.item_id = slot.item_id AND skip.annotator_id = %s)
ORDER BY slot.position, slot.slot LIMIT 1
"""
_UNLOCKED = "FOR NO KEY UPDATE OF slot SKIP LOCKED"


class LeaseLost(Refused):
    """The item went to somebody else after its lease ran out, or was handed in or put aside in another tab."""

    def __init__(self) -> None:
        super().__init__(
            _("This item is no longer assigned to you: your time for it ended, or you finished it in another tab."),
            code="lease_lost",
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an annotator is in a duty; ``total`` is their even share of it while there is that much."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class DeskDuty:
    """A duty as the person who does it sees it; ``draft`` when an item lies on their desk."""

    pk: int
    name: str
    campaign: str
    project: str
    project_slug: str
    language: str
    language_name: str
    paused: bool
    draft: bool
    done: int
    total: int


def duties(user: User) -> list[DeskDuty]:
    """What this person can work on: the duties of their panels in campaigns that are not closed."""
    mine = Assignment.objects.filter(duty=OuterRef("pk"), annotator__user=user)
    same_item = Assignment.objects.filter(duty=OuterRef("duty"), item=OuterRef("item"), annotator__user=user)
    free = Assignment.objects.filter(~Exists(same_item), duty=OuterRef("pk")).exclude(state=Assignment.State.SUBMITTED)
    rows = _seated(user).exclude(campaign__state=Campaign.State.CLOSED).select_related("campaign__project", "panel")
    counted = rows.annotate(
        items=_count(Selection.objects.filter(duty=OuterRef("pk")), "duty"),
        seats=_count(PanelSeat.objects.filter(panel=OuterRef("panel")), "panel"),
        done=_count(mine.filter(state=Assignment.State.SUBMITTED), "duty"),
        left=_count(free, "duty", Count("item", distinct=True)),
        draft=Exists(mine.filter(state=Assignment.State.LEASED)),
    )
    return [_desk_duty(duty) for duty in counted.order_by("campaign__project__name", "campaign", "pk")]


def _seated(user: User) -> QuerySet[Duty]:
    member = access.member_of(user, project="campaign__project")
    return Duty.objects.filter(member, panel__seats__annotator__user=user, campaign__project__archived_at=None)


def _count(rows: QuerySet[Any], column: str, counting: Count = Count("pk")) -> Coalesce:  # noqa: B008
    return Coalesce(Subquery(rows.order_by().values(column).annotate(count=counting).values("count")), 0)


def _desk_duty(duty: Any) -> DeskDuty:
    left = duty.left + duty.draft
    even = _even_share(items=duty.items, overlap=duty.overlap, seats=duty.seats)
    return DeskDuty(
        pk=duty.pk,
        name=duty.name,
        campaign=duty.campaign.name,
        project=duty.campaign.project.name,
        project_slug=duty.campaign.project.slug,
        language=duty.panel.language,
        language_name=languages.endonym(duty.panel.language) if duty.panel.language else "",
        paused=duty.campaign.state == Campaign.State.PAUSED,
        draft=duty.draft,
        done=duty.done,
        total=duty.done + (left if duty.done >= even else min(left, even - duty.done)),
    )


def _even_share(*, items: int, overlap: int, seats: int) -> int:
    return math.ceil(items * overlap / max(seats, overlap))


def desk_progress(*, duty: Duty, annotator: Annotator) -> Progress:
    """How far the annotator is while an item is on their desk."""
    done = Assignment.objects.filter(duty=duty, annotator=annotator, state=Assignment.State.SUBMITTED).count()
    items = Selection.objects.filter(duty=duty).count()
    seats = PanelSeat.objects.filter(panel=duty.panel_id).count()
    return Progress(done=done, total=max(_even_share(items=items, overlap=duty.overlap, seats=seats), done + 1))


def seat_of(*, user: User, duty: int) -> tuple[Duty, Annotator]:
    """The duty with its campaign, and who this person is in it; ``Duty.DoesNotExist`` if it is none of theirs."""
    seated = _seated(user).annotate(seated=F("panel__seats__annotator"))  # of the seat that is filtered by
    found = seated.select_related("campaign").get(pk=duty)
    return found, Annotator(pk=found.seated)


def require_open(campaign: Campaign) -> None:
    """Refuse what a paused or closed campaign does not take."""
    if campaign.state == Campaign.State.PAUSED:
        raise Refused(_("This campaign is paused. Your draft is kept; come back later."), code="campaign_paused")
    if campaign.state == Campaign.State.CLOSED:
        raise Refused(_("This campaign is closed: no more ratings can be submitted."), code="campaign_closed")


@dataclass(frozen=True, slots=True)
class DeskOffer:
    """What `take` would do, as far as can be seen without taking: the slot it leads to, else whether one is free."""

    held: Assignment | None
    is_free: bool


def offer(*, duty: Duty, annotator: Annotator, item: int | None = None, now: datetime | None = None) -> DeskOffer:
    """The annotator's own slot, its lease perhaps run out, or whether one of ``item``, else of any item, is free."""
    require_open(duty.campaign)
    own = Assignment.objects.filter(duty=duty, annotator=annotator, state=Assignment.State.LEASED)
    held = own.order_by("-leased_at").first()
    return DeskOffer(held=held, is_free=not held and _free(duty, annotator, item, now or timezone.now()).exists())


def take(
    *, duty: Duty, annotator: Annotator, item: int | None = None, now: datetime | None = None
) -> Assignment | None:
    """The annotator's own slot, else the next free one, or only one of ``item``; None when nothing is left for them.

    Safe under any number of annotators and tabs: nobody gets an item twice and no item more slots than its overlap.
    """
    now = now or timezone.now()
    require_open(duty.campaign)
    with transaction.atomic():
        # The locked seat makes one person's tabs queue up, so that nobody holds two items; so does SQLite's write lock.
        if not _lock_seat(duty, annotator):
            raise Refused(_("You are not a member of this panel. Ask the project lead."), code="not_seated")
        return _held(duty, annotator, now) or _claim(duty, annotator, item, now)


def _lock_seat(duty: Duty, annotator: Annotator) -> bool:
    """Whether the annotator sits on the duty's panel; the seat's row stays locked until the transaction ends."""
    locking = "FOR NO KEY UPDATE" if connection.features.has_select_for_no_key_update else ""
    return _first_pk(_SEAT + locking, [duty.panel_id, annotator.pk]) is not None


def _held(duty: Duty, annotator: Annotator, now: datetime) -> Assignment | None:
    """The slot that is the annotator's own already, its lease renewed if it had run out and nobody took it."""
    pk = _first_pk(_HELD, [annotator.pk, duty.pk])
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


def _claim(duty: Duty, annotator: Annotator, item: int | None, now: datetime) -> Assignment | None:
    """Lease the next free slot, or None when nothing is left for this annotator. Call it inside a transaction."""
    for _try in range(TRIES):
        free = (item is None and _ahead(duty, annotator)) or _behind(duty, annotator, item, now)
        if free is None or _lease(free, annotator, now):
            return free
    return None


def _ahead(duty: Duty, annotator: Annotator) -> Assignment | None:
    """The first open slot that lies ahead of the annotator's own work and is in nobody else's hands, locked."""
    locking = _UNLOCKED if connection.features.has_select_for_update_skip_locked else ""
    pk = _first_pk(_AHEAD + locking, [duty.pk, annotator.pk, duty.pk, annotator.pk])
    if pk is None:
        return None
    unleased = (pk, Assignment.State.OPEN, None, None, None)
    return Assignment.from_db(None, ("id", "state", "annotator_id", "key", "leased_until"), unleased)


def _behind(duty: Duty, annotator: Annotator, item: int | None, now: datetime) -> Assignment | None:
    """Whatever else is left: what others gave back or let run out, and at the very end what this person skipped."""
    skipped = Exists(Skip.objects.filter(duty=duty, annotator=annotator, item=OuterRef("item")))
    unlocked = _free(duty, annotator, item, now).select_for_update(skip_locked=True, no_key=True)
    return unlocked.order_by(skipped, "position", "slot").first()


def _free(duty: Duty, annotator: Annotator, item: int | None, now: datetime) -> QuerySet[Assignment]:
    """The slots that this annotator may take: of items that they have no slot of."""
    open_or_over = Q(state=Assignment.State.OPEN) | Q(state=Assignment.State.LEASED, leased_until__lt=now)
    mine = Exists(Assignment.objects.filter(duty=duty, annotator=annotator, item=OuterRef("item")))
    free = Assignment.objects.filter(open_or_over, ~mine, duty=duty)
    return free if item is None else free.filter(item=item)


def _first_pk(statement: str, values: Sequence[int]) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row = cursor.fetchone()
    return row[0] if row else None


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
    """An annotator whose lease ran out keeps a draft with its key, so that a late submission gets an explanation."""
    if slot.key and slot.annotator_id:
        Draft.objects.update_or_create(
            duty_id=slot.duty_id,
            item_id=slot.item_id,
            annotator_id=slot.annotator_id,
            defaults={"key": slot.key},
            create_defaults={"key": slot.key, "saved_at": now},
        )
