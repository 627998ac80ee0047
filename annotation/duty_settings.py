"""What a lead changes in a duty while it is rated: deadline, priority, quota, pause, annotators, items in progress."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from accounts import audit, mail
from accounts.models import User
from accounts.refusals import Refused
from annotation import allocation
from annotation.desk import leasing
from annotation.models import Annotator, Assignment, Campaign, Duty, DutyReminder, PanelSeat

REMINDED_BEFORE = timedelta(hours=48)
"""How long before a deadline the mails are sent."""
HIGHEST_PRIORITY = 100
LARGEST_QUOTA = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DutySettings:
    """What `change_duty` sets, all of it."""

    priority: int = 0
    due_at: datetime | None = None
    quota: int | None = None
    paused: bool = False


def change_duty(*, duty: Duty, settings: DutySettings, actor: User | None = None) -> Duty:
    """Set priority, deadline, quota and pause of a duty. Ratings and items in progress are kept.

    Refused: a closed campaign, numbers out of range.
    """
    allocation.require_not_closed(duty.campaign)
    wrong = {}
    if not -HIGHEST_PRIORITY <= settings.priority <= HIGHEST_PRIORITY:
        wrong["priority"] = _("Give a priority from -100 to 100.")
    if settings.quota is not None and not 1 <= settings.quota <= LARGEST_QUOTA:
        wrong["quota"] = _("Give a quota of 1 or more, or none.")
    if wrong:
        raise Refused(" ".join(wrong.values()), code="invalid", fields=wrong)
    values = {name: getattr(settings, name) for name in DutySettings.__slots__}
    changed = [name for name, value in values.items() if getattr(duty, name) != value]
    with transaction.atomic():
        Duty.objects.filter(pk=duty.pk).update(**values)
        Duty.with_hidden.filter(stands_for=duty).update(quota=settings.quota)
        if changed:
            audit.record(actor=actor, project=duty.campaign.project, verb="change duty", subject=duty, fields=changed)
    duty.refresh_from_db()
    return duty


def add_annotators(*, duty: Duty, more: int, overlap: int, actor: User | None = None) -> int:
    """Let ``more`` other annotators score each item of the duty; returns the number of new assignments.

    ``overlap``: the one that the lead has seen; refused if it has changed since (code ``changed``), as by a second
    click. A duty made by rules is extended by its rules.
    """
    allocation.require_not_closed(duty.campaign)
    if duty.taxonomy_id:
        sentence = _("This task was made by rules. Change the number of annotators there, and apply the rules again.")
        raise Refused(sentence, code="by_rules")
    if not 1 <= more <= allocation.MOST_OVERLAP - overlap:
        wrong = _("An item has at most %(most)d annotators.") % {"most": allocation.MOST_OVERLAP}
        raise Refused(wrong, code="invalid", fields={"more": wrong})
    with transaction.atomic():
        if not Duty.objects.filter(pk=duty.pk, overlap=overlap).update(overlap=overlap + more):
            raise Refused(_("The number of annotators has changed. Look at it again."), code="changed")
        Duty.with_hidden.filter(stands_for=duty).update(overlap=overlap + more)
        items = list(Assignment.objects.filter(duty=duty, slot=1).order_by("position").values_list("item", "position"))
        new = [(item, slot, at, 0) for item, at in items for slot in range(overlap + 1, overlap + more + 1)]
        allocation.insert_slots(duty, new)
        audit.record(actor=actor, project=duty.campaign.project, verb="add annotators", subject=duty)
    duty.overlap = overlap + more
    return len(new)


def return_items(*, duty: Duty, annotators: Collection[int], actor: User | None = None) -> int:
    """Give items that these annotators have in progress back to the queue; returns how many.

    Their drafts are kept: who comes first, they or another annotator, gets the item.
    """
    held = Assignment.objects.filter(duty=duty, annotator__in=annotators, state=Assignment.State.LEASED)
    with transaction.atomic():
        leasing.keep_drafts(held.select_for_update(no_key=True))
        returned = held.update(state=Assignment.State.OPEN, annotator=None, key=None, leased_at=None, leased_until=None)
        if returned:
            audit.record(actor=actor, project=duty.campaign.project, verb="return items", subject=duty)
    return returned


def people_with_items(duty: Duty) -> list[tuple[int, str, int]]:
    """The annotators with items in progress: primary key, pseudonym and how many."""
    held = Assignment.objects.filter(duty=duty, state=Assignment.State.LEASED).order_by()
    rows = held.values_list("annotator", "annotator__pseudonym").annotate(count=Count("pk"))
    return sorted(((pk, name, count) for pk, name, count in rows if pk and name), key=lambda row: row[1])


# --- reminders --------------------------------------------------------------------------------------------------------
def send_reminders(*, now: datetime | None = None) -> int:
    """Mail each annotator who has items left in a duty that is due within two days; returns how many were mailed.

    One mail for each duty, deadline and person, in the language of their interface.
    """
    at = now or timezone.now()
    soon = Duty.objects.filter(due_at__gt=at, due_at__lte=at + REMINDED_BEFORE, paused=False)
    soon = soon.filter(campaign__state=Campaign.State.OPEN, campaign__project__archived_at=None)
    return sum(_remind(duty) for duty in soon.select_related("campaign__project"))


def _remind(duty: Duty) -> int:
    if duty.due_at is None:
        return 0
    reminded = DutyReminder.objects.filter(duty=duty, due_at=duty.due_at).values("annotator")
    seats = PanelSeat.objects.filter(panel=duty.panel_id, annotator__user__is_active=True)
    seats = seats.exclude(annotator__in=reminded).select_related("annotator__user")
    return sum(_remind_one(duty, seat.annotator) for seat in seats)


def _remind_one(duty: Duty, annotator: Annotator) -> bool:
    user = annotator.user
    own = next((shown for shown in leasing.duties(user) if shown.pk == duty.pk), None) if user else None
    if user is None or own is None or own.paused or not own.left or duty.due_at is None:
        return False
    with transaction.atomic():
        _row, is_new = DutyReminder.objects.get_or_create(duty=duty, annotator=annotator, due_at=duty.due_at)
        if is_new:
            with translation.override(user.ui_language or "en"):
                mail.queue_text(subject=_("Items are waiting for you"), body=_reminder_text(duty), to=[user.email])
    return is_new


def _reminder_text(duty: Duty) -> str:
    due = date_format(timezone.localtime(duty.due_at), "SHORT_DATETIME_FORMAT")
    text = _(
        "“%(duty)s” in “%(project)s” is due on %(due)s (UTC). Some items are left for you.\n\nYour tasks: %(path)s"
    )
    return text % {
        "duty": duty.name,
        "project": duty.campaign.project.name,
        "due": due,
        "path": mail.site_address(reverse("desk")),
    }
