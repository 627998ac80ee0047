"""An annotator's duties, and the lease of their next item.

Only `take` leases new items; `desk.service` renews leases, and creates a new one on undo. A lease is set by
compare-and-set on one row, so an item never has more leases than slots. The queries in SQL run for every item taken:
Django needs longer to build them than the database to run them, and they limit the number of annotators that one
machine can serve (bench/next_item.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.db import connection, transaction
from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from accounts import access, languages
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.desk.column_lists import ColumnList
from annotation.models import (
    Annotator,
    Assignment,
    Campaign,
    Draft,
    Duty,
    Guideline,
    ItemQuestion,
    Panel,
    PanelSeat,
    QualificationRule,
    Selection,
    Skip,
    WritingText,
)
from annotation.qualification import controls, exams, gate
from annotation.qualification.gate import Stage
from annotation.qualification.references import UNSEEN, as_seen, lease_hidden

LEASE = timedelta(hours=2)
TRIES = 5

_SEAT = "SELECT seat.id FROM annotation_panelseat seat WHERE seat.panel_id = %s AND seat.annotator_id = %s "
_HELD = """
SELECT own.id FROM annotation_assignment own
WHERE own.annotator_id = %s AND own.state = 'leased' AND own.duty_id IN (
  SELECT duty.id FROM annotation_duty duty
  WHERE duty.id = %s OR (duty.stands_for_id = %s AND duty.purpose IN ('control', 'repeat')))
ORDER BY own.leased_at DESC LIMIT 1
"""
# After the last item that the annotator submitted, every item is new to them, except skipped ones; the index
# assignment_queue finds the first free slot there directly.
_AHEAD = """
SELECT slot.id FROM annotation_assignment slot
WHERE slot.duty_id = %s AND slot.state = 'open'
  AND slot.position > COALESCE((
    SELECT MAX(own.position) FROM annotation_assignment own
    WHERE own.annotator_id = %s AND own.duty_id = %s AND own.state = 'submitted'), 0)
  AND NOT EXISTS (
    SELECT 1 FROM annotation_skip skip
    WHERE skip.duty_id = slot.duty_id AND skip.item_id = slot.item_id AND skip.annotator_id = %s)
  AND NOT EXISTS (
    SELECT 1 FROM annotation_writingtext written
    JOIN annotation_item item ON written.external_id IN (
      item.external_id, item.attributes ->> 'written_as', item.attributes ->> 'source_item')
    WHERE written.annotator_id = %s AND written.external_id <> '' AND item.id = slot.item_id)
ORDER BY slot.position, slot.slot LIMIT 1
"""
_UNLOCKED = "FOR NO KEY UPDATE OF slot SKIP LOCKED"


class LeaseLost(Refused):
    """The lease has ended: somebody else took the item after it expired, or it was submitted or skipped in another
    tab."""

    def __init__(self) -> None:
        super().__init__(
            _("This item is no longer assigned to you: your time for it ended, or you finished it in another tab."),
            code="lease_lost",
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """An annotator's progress in a duty, in items; ``total`` is their even share, which they may exceed."""

    done: int
    total: int

    @property
    def extra(self) -> int:
        """The items beyond the share."""
        return max(0, self.done - self.total)


@dataclass(frozen=True, slots=True)
class DeskDuty(Progress):
    """A duty as its annotator sees it; ``has_open_item``: they have leased an item in it; ``left``: the items that they
    may still be offered, those that others hold now among them; ``has_stages``: it has a training or an exam.

    With controls or repeats ``left`` is the rest of the share, at least 1 while there is an item: the number of items
    themselves would not fall with a control, and so show it.
    """

    pk: int
    name: str
    campaign: str
    project: str
    project_slug: str
    language: str
    language_name: str
    paused: bool
    has_open_item: bool
    left: int
    has_guidelines: bool
    has_stages: bool
    has_questions: bool
    due_at: datetime | None


def duties(user: User) -> list[DeskDuty]:
    """The duties of the user's panels, in campaigns that are not closed. Controls and repeats count as items."""
    mine = Assignment.objects.filter(duty=OuterRef("pk"), annotator__user=user)
    unseen = Assignment.objects.filter(duty__stands_for=OuterRef("pk"), duty__purpose__in=UNSEEN, annotator__user=user)
    rates = QualificationRule.objects.filter(campaign=OuterRef("campaign"))
    answered = Assignment.objects.filter(duty=OuterRef("duty"), item=OuterRef("item"), annotator__user=user)
    skipped = Skip.objects.filter(controls.unseen_skips(OuterRef("pk")), ~Exists(answered), annotator__user=user)
    asked = ItemQuestion.objects.filter(duty=OuterRef("pk"))
    same_item = Assignment.objects.filter(duty=OuterRef("duty"), item=OuterRef("item"), annotator__user=user)
    not_own = ~Exists(same_item), ~Exists(WritingText.objects.filter(annotator__user=user).behind("item__"))
    free = Assignment.objects.filter(*not_own, duty=OuterRef("pk")).exclude(state=Assignment.State.SUBMITTED)
    rows = (
        seated_duties(user).exclude(campaign__state=Campaign.State.CLOSED).select_related("campaign__project", "panel")
    )
    counted = rows.annotate(
        slots=Case(
            When(taxonomy=None, then=_count(Selection.objects.filter(duty=OuterRef("pk")), "duty") * F("overlap")),
            default=_count(Assignment.objects.filter(duty=OuterRef("pk")), "duty"),
        ),
        seats=_count(PanelSeat.objects.filter(panel=OuterRef("panel")), "panel"),
        done=_count(mine.filter(state=Assignment.State.SUBMITTED), "duty")
        + _count(unseen.filter(state=Assignment.State.SUBMITTED), "duty__stands_for"),
        has_guidelines=Exists(Guideline.objects.filter(campaign=OuterRef("campaign"))),
        has_stages=Exists(rates.filter(Q(training=True) | Q(exam_items__gt=0))),
        control_rate=Coalesce(Subquery(rates.values("control_rate")), 0.0),
        repeat_rate=Coalesce(Subquery(rates.values("repeat_rate")), 0.0),
        left=_count(free, "duty", Count("item", distinct=True)),
        has_skipped=Exists(skipped),
        has_questions=Exists(asked.filter(Q(annotator__user=user) | Q(is_broadcast=True))),
        has_open_item=Exists(mine.filter(state=Assignment.State.LEASED))
        | Exists(unseen.filter(state=Assignment.State.LEASED)),
    )
    soonest = F("due_at").asc(nulls_last=True)
    ordered = counted.order_by("-priority", soonest, "campaign__project__name", "campaign", "pk")
    return [_desk_duty(duty) for duty in ordered]


def seated_duties(user: User) -> QuerySet[Duty]:
    member = access.member_of(user, project="campaign__project")
    return Duty.objects.filter(member, panel__seats__annotator__user=user, campaign__project__archived_at=None)


def _count(rows: QuerySet[Any], column: str, counting: Count = Count("pk")) -> Coalesce:  # noqa: B008
    return Coalesce(Subquery(rows.order_by().values(column).annotate(count=counting).values("count")), 0)


def _desk_duty(duty: Any) -> DeskDuty:
    unseen, left = duty.control_rate + duty.repeat_rate, duty.left + (duty.has_open_item or duty.has_skipped)
    total = _even_share(slots=duty.slots, overlap=duty.overlap, seats=duty.seats, unseen=unseen)
    if duty.quota is not None:
        total = min(total, duty.quota)
        left = min(left, max(0, duty.quota - duty.done) or int(duty.has_open_item))
    return DeskDuty(
        pk=duty.pk,
        name=duty.name,
        campaign=duty.campaign.name,
        project=duty.campaign.project.name,
        project_slug=duty.campaign.project.slug,
        language=duty.panel.language,
        language_name=languages.endonym(duty.panel.language) if duty.panel.language else "",
        paused=duty.campaign.state == Campaign.State.PAUSED or (duty.paused and not duty.has_open_item),
        due_at=duty.due_at,
        has_open_item=duty.has_open_item,
        left=max(1, total - duty.done) if unseen and left else left,
        has_guidelines=duty.has_guidelines,
        has_stages=duty.has_stages,
        has_questions=duty.has_questions,
        done=duty.done,
        total=total,
    )


def _even_share(*, slots: int, overlap: int, seats: int, unseen: float = 0.0) -> int:
    """``unseen``: the share of controls and repeats among all items that the annotator gets."""
    return math.ceil(slots / max(seats, overlap) / (1 - min(unseen, 0.9)))


def desk_progress(*, duty: Duty, annotator: Annotator) -> Progress:
    """The annotator's progress while they have a leased item: in the exam, in the training, or in the duty itself, in
    which controls and repeats count as items."""
    if duty.purpose == Duty.Purpose.TRAINING or duty.purpose == Duty.Purpose.EXAM:
        return _progress_before_work(duty, annotator)
    visible, submitted = duty.visible_pk, Assignment.State.SUBMITTED
    done = Assignment.objects.filter(as_seen(visible), annotator=annotator, state=submitted).count()
    seats = PanelSeat.objects.filter(panel=duty.panel_id).count()
    rule = QualificationRule.objects.filter(campaign__duties=visible).first()
    unseen = rule.control_rate + rule.repeat_rate if rule else 0.0
    total = _even_share(slots=_slots(duty), overlap=duty.overlap, seats=seats, unseen=unseen)
    return Progress(done=done, total=total if duty.quota is None else min(total, duty.quota))


def _slots(duty: Duty) -> int:
    """The slots of the visible duty. By the rules of a taxonomy items have different numbers of them."""
    if duty.taxonomy_id:
        return Assignment.objects.filter(duty=duty.visible_pk).count()
    return Selection.objects.filter(duty=duty.visible_pk).count() * duty.overlap


def _progress_before_work(duty: Duty, annotator: Annotator) -> Progress:
    visible = Duty.objects.select_related("campaign", "panel").get(pk=duty.visible_pk)
    if duty.purpose == Duty.Purpose.TRAINING:
        of_round = exams.training_progress(duty=visible, annotator=annotator)
        return Progress(done=of_round.done % max(of_round.total, 1), total=of_round.total)
    done, total = exams.items_done(duty=visible, annotator=annotator)
    return Progress(done=done, total=total)


# What the desk reads of a duty, its campaign, project and panel, by the path to each; other fields are deferred.
_OF_DUTY = ColumnList(
    Duty,
    (
        "id",
        "campaign_id",
        "panel_id",
        "name",
        "overlap",
        "purpose",
        "stands_for_id",
        "taxonomy_id",
        "quota",
        "paused",
    ),
)
_OF_CAMPAIGN = ColumnList(
    Campaign,
    (
        "id",
        "project_id",
        "name",
        "dataset_id",
        "rubric_version_id",
        "state",
        "asks_at_close",
        "qualification_of_id",
    ),
)
_OF_PROJECT = ColumnList(Project, ("id", "name", "slug"))
_OF_PANEL = ColumnList(Panel, ("id", "project_id", "name", "language"))
_READ: dict[str, ColumnList[Any]] = {
    "": _OF_DUTY,
    "campaign__": _OF_CAMPAIGN,
    "campaign__project__": _OF_PROJECT,
    "panel__": _OF_PANEL,
}
_OF_SLOT = ColumnList(Assignment, ("id", "state", "annotator_id", "key", "leased_until"))
_USER, _DUTY = -1, -2  # stand for the two values of the statement, which no primary key is


@cache
def _duty_statement(_vendor: str) -> tuple[str, tuple[Any, ...]]:
    """The SQL for one of `seated_duties`, and its values. Written once in a process: Django needs ten times as long to
    write it as the database to run it."""
    found = seated_duties(User(pk=_USER)).filter(pk=_DUTY)
    columns = [f"{path}{name}" for path, read in _READ.items() for name in read.names]
    asked = [Exists(of.objects.filter(campaign=OuterRef("campaign"))) for of in (Guideline, QualificationRule)]
    seat = F("panel__seats__annotator")  # of the seat in the filter
    sql, values = found.order_by().values_list(*columns, seat, *asked).query.sql_with_params()
    return sql, tuple(values)


def duty_and_annotator(*, user: User, duty: int) -> tuple[Duty, Annotator]:
    """The user's duty with its campaign, project and panel, and the user as its annotator; the duty knows whether its
    campaign ``asks`` anything (`gate.asks_anything`). Raises ``Duty.DoesNotExist`` if no panel of the user has it."""
    statement, values = _duty_statement(connection.vendor)
    given = {_USER: user.pk, _DUTY: duty}
    with connection.cursor() as cursor:
        cursor.execute(statement, [given.get(value, value) for value in values])
        row = cursor.fetchone()
    if row is None:
        raise Duty.DoesNotExist
    *columns, annotator, has_guidelines, has_rule = row
    own_duty, own_duty.campaign, own_duty.campaign.project, own_duty.panel = _loaded(columns)
    own_duty.asks = bool(has_guidelines), bool(has_rule)
    return own_duty, Annotator(pk=annotator)


def _loaded(columns: Sequence[Any]) -> Iterator[Any]:
    at = 0
    for read in _READ.values():
        yield read.load(columns[at : at + len(read.names)])
        at += len(read.names)


def require_open(campaign: Campaign) -> None:
    """Raise ``Refused`` if the campaign is paused or closed."""
    if campaign.state == Campaign.State.PAUSED:
        raise Refused(_("This campaign is paused. Your draft is kept; come back later."), code="campaign_paused")
    if campaign.state == Campaign.State.CLOSED:
        raise Refused(_("This campaign is closed: no more ratings can be submitted."), code="campaign_closed")


@dataclass(frozen=True, slots=True)
class DeskOffer:
    """What `take` would do: return the annotator's own slot ``held``, or lease a free one if ``is_free``."""

    held: Assignment | None
    is_free: bool


def offer(*, duty: Duty, annotator: Annotator, item: int | None = None, now: datetime | None = None) -> DeskOffer:
    """The annotator's own slot (its lease may have expired), or whether a slot of ``item`` (default: any item) is free.
    Changes nothing."""
    require_open(duty.campaign)
    own = Assignment.objects.filter(as_seen(duty.pk), annotator=annotator, state=Assignment.State.LEASED)
    held = own.order_by("-leased_at").first()
    if held is None:
        _require_new_items(duty, annotator)
    is_free = not held and _free(duty, annotator, item, now or timezone.now()).exists()
    if not held and not is_free and item is None:
        is_free = controls.skipped_unseen(duty=duty, annotator=annotator) is not None
    return DeskOffer(held=held, is_free=is_free)


def take(
    *, duty: Duty, annotator: Annotator, item: int | None = None, now: datetime | None = None
) -> Assignment | None:
    """Lease an item: the annotator's own slot, else the next free slot (of ``item`` if given); None if there is none.

    Where the campaign asks for it, the next item may be a control or a repeat, or one of the exam that is under way.
    Raises ``gate.NotQualified`` while guidelines, training or exam are missing, or the work is paused.

    Safe for concurrent annotators and tabs: nobody gets an item twice, and no item gets more ratings than its overlap.
    """
    now = now or timezone.now()
    require_open(duty.campaign)
    try:
        stage = gate.require_qualified(duty=duty, annotator=annotator, now=now)
    except gate.NotQualified as missing:
        if leased := _take_exam_item(duty, annotator, missing.stage, now):
            return leased
        raise
    with transaction.atomic():
        _require_seat(duty, annotator)
        if held := _held(duty, annotator, now):
            return held
        _require_new_items(duty, annotator)
        if item is not None or stage.rule is None or not (stage.rule.control_rate or stage.rule.repeat_rate):
            return _claim(duty, annotator, item, now, with_unseen=item is None)
        if unseen := _unseen_item(duty, annotator, stage.rule, now):
            return unseen
        with transaction.atomic():  # as many statements as for a control, so that the time it takes shows nothing
            return _claim(duty, annotator, item, now, with_unseen=True)


def _require_new_items(duty: Duty, annotator: Annotator) -> None:
    """Refuse a new item in a duty that is paused, or beyond the quota; controls and repeats count."""
    if duty.paused:
        raise Refused(_("This task is paused. You can continue when the project lead opens it."), code="duty_paused")
    if duty.quota is None:
        return
    own = Assignment.objects.filter(as_seen(duty.pk), annotator=annotator, state=Assignment.State.SUBMITTED)
    if own.count() >= duty.quota:
        raise Refused(_("You have scored all items that are meant for you in this task."), code="quota_reached")


def _require_seat(duty: Duty, annotator: Annotator) -> None:
    """The locked seat serialises the tabs of one person, so that nobody leases two items; on SQLite its write lock."""
    if not _lock_seat(duty, annotator):
        raise Refused(_("You are not a member of this panel. Ask the project lead."), code="not_seated")


def _take_exam_item(duty: Duty, annotator: Annotator, stage: Stage, now: datetime) -> Assignment | None:
    if stage.exam is None or stage.exam.state != "under_way":
        return None
    with transaction.atomic():
        _require_seat(duty, annotator)
        return exams.take_exam_item(duty=duty, annotator=annotator, now=now, until=now + LEASE)


def take_training_item(*, duty: Duty, annotator: Annotator, again: bool) -> Assignment | None:
    """Lease the next item of the duty's training; ``again``: begin another round after the last item."""
    require_open(duty.campaign)
    now = timezone.now()
    with transaction.atomic():
        _require_seat(duty, annotator)
        return exams.take_training(duty=duty, annotator=annotator, again=again, now=now, until=now + LEASE)


def _unseen_item(duty: Duty, annotator: Annotator, rule: QualificationRule, now: datetime) -> Assignment | None:
    """A control or a repeat, if the draw asks for one now, there is one, and an ordinary item is free as well.

    While only items come back that the annotator skipped, a new one would be known as a control.
    """
    skips = Skip.objects.filter(duty=duty, annotator=annotator, item=OuterRef("item"))
    is_free = _free(duty, annotator, None, now).filter(~Exists(skips)).exists()
    chosen = controls.next_unseen(duty=duty, annotator=annotator, rule=rule)
    if chosen is None or not is_free:
        return None
    hidden, item = chosen
    return lease_hidden(duty=hidden, item=item, annotator=annotator, now=now, until=now + LEASE)


def _lock_seat(duty: Duty, annotator: Annotator) -> bool:
    """Whether the annotator belongs to the duty's panel; locks the row of their seat until the transaction ends."""
    locking = "FOR NO KEY UPDATE" if connection.features.has_select_for_no_key_update else ""
    return _first_pk(_SEAT + locking, [duty.panel_id, annotator.pk]) is not None


def _held(duty: Duty, annotator: Annotator, now: datetime) -> Assignment | None:
    """The slot that the annotator has leased already; an expired lease is renewed unless somebody took the slot."""
    pk = _first_pk(_HELD, [annotator.pk, duty.pk, duty.pk])
    if pk is None:
        return None
    own = Assignment.objects.get(pk=pk)
    if own.annotator_id != annotator.pk or own.leased_until is None:
        return None  # somebody took it after the first query
    if own.leased_until >= now:
        return own
    until = now + LEASE
    if not Assignment.objects.filter(pk=pk, key=own.key, state=Assignment.State.LEASED).update(leased_until=until):
        return None
    own.leased_until = until
    return own


def _claim(
    duty: Duty, annotator: Annotator, item: int | None, now: datetime, *, with_unseen: bool = False
) -> Assignment | None:
    """Lease the next free slot; None if there is none for this annotator. Call it inside a transaction.

    ``with_unseen``: skipped controls and repeats come back as skipped items do, last and in the order of skipping.
    """
    for _try in range(TRIES):
        free = (item is None and _ahead(duty, annotator)) or _behind(duty, annotator, item, now)
        skipped_at = getattr(free, "skipped_at", None)
        if with_unseen and (free is None or skipped_at is not None):
            unseen = controls.skipped_unseen(duty=duty, annotator=annotator)
            if unseen is not None and (skipped_at is None or unseen[2] < skipped_at):
                hidden, of_unseen, _at = unseen
                until = now + LEASE
                if leased := lease_hidden(duty=hidden, item=of_unseen, annotator=annotator, now=now, until=until):
                    return leased
        if free is None or _lease(free, annotator, now):
            return free
    return None


def _ahead(duty: Duty, annotator: Annotator) -> Assignment | None:
    """The first open slot after the annotator's last submitted item, locked; slots locked by others are passed over."""
    locking = _UNLOCKED if connection.features.has_select_for_update_skip_locked else ""
    pk = _first_pk(_AHEAD + locking, [duty.pk, annotator.pk, duty.pk, annotator.pk, annotator.pk])
    if pk is None:
        return None
    return _OF_SLOT.load((pk, Assignment.State.OPEN, None, None, None))


def _behind(duty: Duty, annotator: Annotator, item: int | None, now: datetime) -> Assignment | None:
    """The first of the other free slots: returned or expired ones, and last those that this annotator skipped, the
    one that they skipped first (``skipped_at``) before the others."""
    skips = Skip.objects.filter(duty=duty, annotator=annotator, item=OuterRef("item"))
    unlocked = _free(duty, annotator, item, now).select_for_update(skip_locked=True, no_key=True)
    unlocked = unlocked.annotate(skipped_at=Subquery(skips.values("at")))
    return unlocked.order_by(F("skipped_at").asc(nulls_first=True), "position", "slot").first()


def _free(duty: Duty, annotator: Annotator, item: int | None, now: datetime) -> QuerySet[Assignment]:
    """The slots that this annotator may take: open or expired ones of items in which they have no slot, and which they
    did not write."""
    open_or_over = Q(state=Assignment.State.OPEN) | Q(state=Assignment.State.LEASED, leased_until__lt=now)
    mine = Exists(Assignment.objects.filter(duty=duty, annotator=annotator, item=OuterRef("item")))
    own_text = Exists(WritingText.objects.filter(annotator=annotator).behind("item__"))
    free = Assignment.objects.filter(open_or_over, ~mine, ~own_text, duty=duty)
    return free if item is None else free.filter(item=item)


def _first_pk(statement: str, values: Sequence[int]) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row = cursor.fetchone()
    return row[0] if row else None


def _lease(slot: Assignment, annotator: Annotator, now: datetime) -> bool:
    """Lease the slot by compare-and-set; False if it has changed since it was read. Updates ``slot``."""
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
    keep_drafts([slot], now)
    for field, value in lease.items():
        setattr(slot, field, value)
    return True


def keep_drafts(slots: Iterable[Assignment], now: datetime | None = None) -> None:
    """Keep a draft with the key of each lease that ends, so that a late submission gets an explanation."""
    for slot in slots:
        if slot.key and slot.annotator_id:
            Draft.objects.update_or_create(
                duty_id=slot.duty_id,
                item_id=slot.item_id,
                annotator_id=slot.annotator_id,
                defaults={"key": slot.key},
                create_defaults={"key": slot.key, "saved_at": now or timezone.now()},
            )
