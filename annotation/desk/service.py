"""The annotator's desk: take an item, keep a draft, submit it once, put it aside, take it back.

A lease has a key; the key addresses the page and makes the submission idempotent. Membership is checked where the
key is looked up (`on_desk`), and every change after that is a compare-and-set on the key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from accounts import access, languages, webhooks
from accounts.models import SIGHTED, Event, Membership, User
from accounts.refusals import Refused
from annotation import allocation
from annotation.desk import leasing, next_item
from annotation.desk.answers import Answer, complete
from annotation.desk.next_item import LEASE
from annotation.models import (
    Annotation,
    Annotator,
    Assignment,
    Campaign,
    Criterion,
    Draft,
    Duty,
    PanelSeat,
    Rating,
    Selection,
    Skip,
)

LONGEST_SECONDS = 86_400.0


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
    return Duty.objects.filter(
        access.factor_met(user, project="campaign__project"),
        panel__seats__annotator__user=user,
        campaign__project__memberships__user=user,
        campaign__project__archived_at=None,
    )


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


def progress(*, duty: Duty, annotator: Annotator) -> Progress:
    """How far the annotator is while an item is on their desk."""
    done = Assignment.objects.filter(duty=duty, annotator=annotator, state=Assignment.State.SUBMITTED).count()
    items = Selection.objects.filter(duty=duty).count()
    seats = PanelSeat.objects.filter(panel=duty.panel_id).count()
    return Progress(done=done, total=max(_even_share(items=items, overlap=duty.overlap, seats=seats), done + 1))


def take(*, duty: Duty, annotator: Annotator, now: datetime | None = None) -> Assignment | None:
    """The annotator's own slot, else the next free one; None when nothing is left for them.

    Safe under any number of annotators and tabs: nobody gets an item twice and no item more slots than its overlap.
    """
    now = now or timezone.now()
    _require_open(duty.campaign)
    with transaction.atomic():
        # The locked seat makes one person's tabs queue up, so that nobody holds two items; so does SQLite's write lock.
        if not leasing.lock_seat(duty=duty, annotator=annotator):
            raise Refused(_("You are not a member of this panel. Ask the project lead."), code="not_seated")
        return next_item.held(duty=duty, annotator=annotator, now=now) or next_item.claim(
            duty=duty, annotator=annotator, now=now
        )


def _require_open(campaign: Campaign) -> None:
    if campaign.state == Campaign.State.PAUSED:
        raise Refused(_("This campaign is paused. Your draft is kept; come back later."), code="campaign_paused")
    if campaign.state == Campaign.State.CLOSED:
        raise Refused(_("This campaign is closed: no more ratings can be submitted."), code="campaign_closed")


def seat(*, user: User, duty: int) -> tuple[Duty, Annotator]:
    """The duty with its campaign, and who this person is in it; ``Duty.DoesNotExist`` if it is none of theirs."""
    seated = _seated(user).annotate(seated=F("panel__seats__annotator"))  # of the seat that is filtered by
    found = seated.select_related("campaign").get(pk=duty)
    return found, Annotator(pk=found.seated)


def on_desk(*, user: User, key: UUID, related: Sequence[str] = ()) -> Assignment:
    """The assignment that this person leased under ``key``, in a project they are still a member of.

    After an undo the assignment has moved on to another `key`. Raises ``LeaseLost`` when somebody else took the slot,
    and ``Assignment.DoesNotExist`` when the key never was theirs.
    """
    if not related and (found := leasing.find(user=user, key=key)):
        return found
    loaded = Assignment.objects.select_related("duty__campaign", *related)
    for mine in (loaded.visible_to(user).filter(key=key), loaded.filter(pk__in=_submitted(user, key))):
        if found := mine.first():
            return found
    if _own(Draft.objects.filter(key=key), user, "duty__campaign").exists():
        raise LeaseLost
    raise Assignment.DoesNotExist


def _submitted(user: User, key: UUID) -> QuerySet[Any]:
    return _own(Annotation.objects.filter(key=key), user, "campaign").values("assignment")


def _own(rows: QuerySet[Any], user: User, campaign: str) -> QuerySet[Any]:
    return rows.filter(**{"annotator__user": user, f"{campaign}__project__memberships__user": user})


def criteria_of(duty: Duty) -> tuple[Criterion, ...]:
    """The duty's criteria in the rubric's order. They never change, so each server process reads them once."""
    return allocation.criteria_of(duty.pk)


def answers_so_far(assignment: Assignment) -> tuple[dict[str, Answer], float]:
    """What the annotator has entered on this item, and the seconds it took."""
    draft = _drafts(assignment).first()
    if draft is None:
        return {}, 0.0
    return {key: Answer(**entered) for key, entered in draft.answers.items()}, draft.seconds


def save_draft(*, assignment: Assignment, answers: Mapping[str, Answer], seconds: float) -> datetime:
    """Keep what has been entered, complete or not; raises ``LeaseLost`` once the slot is no longer theirs."""
    now = timezone.now()
    with transaction.atomic():
        if not _leased(assignment).select_for_update(no_key=True).exists():
            raise LeaseLost
        _write_draft(assignment, answers, seconds, now)
    return now


def _write_draft(assignment: Assignment, answers: Mapping[str, Answer], seconds: float, now: datetime) -> None:
    entered = {
        name: {"score": _finite(answer.score), "status": answer.status, "rationale": answer.rationale}
        for name, answer in answers.items()
    }
    lease = _whose(assignment) | {"key": assignment.key}
    Draft.objects.bulk_create(
        [Draft(**lease, answers=entered, seconds=_clock(seconds), saved_at=now)],
        update_conflicts=True,
        unique_fields=["duty", "item", "annotator"],
        update_fields=["key", "answers", "seconds", "saved_at"],
    )


def _drafts(assignment: Assignment) -> QuerySet[Draft]:
    return Draft.objects.filter(**_whose(assignment))


def _whose(assignment: Assignment) -> dict[str, Any]:
    """What drafts and skips are known by: the duty, the item and the person."""
    return {
        "duty_id": assignment.duty_id,
        "item_id": assignment.item_id,
        "annotator_id": assignment.annotator_id,
    }


def _leased(assignment: Assignment) -> QuerySet[Assignment]:
    return Assignment.objects.filter(pk=assignment.pk, key=assignment.key, state=Assignment.State.LEASED)


def _finite(score: float | None) -> float | None:
    return score if score is not None and math.isfinite(score) else None


def _clock(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_SECONDS) if math.isfinite(seconds) else 0.0


def submit(*, assignment: Assignment, key: UUID, answers: Mapping[str, Answer], seconds: float) -> Annotation:
    """Close the assignment and store its ratings, all or nothing; the same key again returns what it stored.

    An expired lease that nobody took still counts. Raises ``Refused`` with all problems by criterion, or ``LeaseLost``.
    """
    if assignment.key != key or assignment.state != Assignment.State.LEASED:
        return _stored(key)
    _require_open(assignment.duty.campaign)
    answered = complete(criteria_of(assignment.duty), answers)
    with transaction.atomic():
        if _leased(assignment).update(state=Assignment.State.SUBMITTED, leased_until=None):
            return _store(assignment, answered, seconds)
    return _stored(key)


def _stored(key: UUID) -> Annotation:
    try:
        return Annotation.objects.get(key=key)
    except Annotation.DoesNotExist:
        raise LeaseLost from None


def _store(assignment: Assignment, answered: Mapping[str, Answer], seconds: float) -> Annotation:
    annotation = Annotation.objects.create(
        campaign_id=assignment.duty.campaign_id,
        item_id=assignment.item_id,
        annotator_id=assignment.annotator_id,  # type: ignore[misc]  # the update above found it leased
        assignment=assignment,
        key=assignment.key,
        revision=assignment.revision,
        seconds=_clock(seconds),
        blind=_is_blind(assignment),
    )
    ratings = Rating.objects.bulk_create(_ratings(annotation, criteria_of(assignment.duty), answered))
    leasing.drop_draft(assignment)
    _announce(annotation, assignment.duty.campaign.project_id, len(ratings))
    return annotation


def _is_blind(assignment: Assignment) -> bool | None:
    """Whether the person's role keeps verdicts and other people's ratings from them; None for no member."""
    role = assignment.holder_role
    if role is None:
        members = Membership.objects.filter(project=assignment.duty.campaign.project_id)
        person = Assignment.objects.filter(pk=assignment.pk).values("annotator__user")
        role = members.filter(user__in=person).values_list("role", flat=True).first()
    return None if role is None else role not in SIGHTED


def _announce(annotation: Annotation, project: int, ratings: int) -> None:
    """Tell the project's programs: keys and counts, and neither who rated nor what."""
    counted = {"revision": annotation.revision, "ratings": ratings}
    payload = {"campaign": annotation.campaign_id, "item": annotation.item_id, **counted}
    webhooks.announce(project=project, event=Event.RATINGS, subject=annotation.pk, payload=payload)


def _ratings(annotation: Annotation, criteria: Sequence[Criterion], answered: Mapping[str, Answer]) -> list[Rating]:
    return [
        Rating(
            annotation=annotation,
            criterion=criterion,
            status=answered[criterion.key].status,
            score=answered[criterion.key].score,
            rationale=answered[criterion.key].rationale,
        )
        for criterion in criteria
    ]


def extend(*, assignment: Assignment) -> datetime:
    """The heartbeat: the lease runs from now again."""
    until = timezone.now() + LEASE
    if not _leased(assignment).update(leased_until=until):
        raise LeaseLost
    return until


def skip(*, assignment: Assignment, reason: str, note: str = "") -> None:
    """Give the slot back to the queue and drop its draft; the annotator meets the item again only at the very end."""
    with transaction.atomic():
        if not _leased(assignment).update(
            state=Assignment.State.OPEN, annotator=None, key=None, leased_at=None, leased_until=None
        ):
            raise LeaseLost
        Skip.objects.update_or_create(
            **_whose(assignment),
            defaults={"reason": reason, "note": note, "at": timezone.now()},
        )
        leasing.drop_draft(assignment)


def last_submitted(*, duty: Duty, annotator: Annotator | None) -> Assignment | None:
    """The annotator's last submission in the duty while it can be taken back: within a lease's time."""
    last = (
        Annotation.objects.filter(annotator=annotator, assignment__duty=duty)
        .select_related("assignment__duty__campaign")
        .order_by("-pk")
        .first()
    )
    if last is None or last.superseded_at or last.submitted_at < timezone.now() - LEASE:
        return None
    return last.assignment


def undo(*, assignment: Assignment) -> Assignment:
    """Take back the last submission: its annotation is superseded, and its answers are a draft on the desk again."""
    _require_open(assignment.duty.campaign)
    if last_submitted(duty=assignment.duty, annotator=assignment.annotator) != assignment:
        raise Refused(_("Only your last submission can be undone, and only within two hours."), code="undo_late")
    with transaction.atomic():
        return _reopen(assignment)


def _reopen(assignment: Assignment) -> Assignment:
    now, key = timezone.now(), uuid7()
    submitted = Assignment.objects.filter(pk=assignment.pk, key=assignment.key, state=Assignment.State.SUBMITTED)
    if not submitted.update(
        state=Assignment.State.LEASED, key=key, leased_at=now, leased_until=now + LEASE, revision=F("revision") + 1
    ):
        raise LeaseLost
    annotation = Annotation.objects.get(key=assignment.key)
    Annotation.objects.filter(pk=annotation.pk).update(superseded_at=now)
    assignment.refresh_from_db()
    _write_draft(assignment, _answers_of(annotation), annotation.seconds or 0.0, now)
    return assignment


def _answers_of(annotation: Annotation) -> dict[str, Answer]:
    """Its ratings as answers; what was stopped is blank again."""
    given = annotation.ratings.exclude(status=Rating.Status.STOPPED).select_related("criterion")
    return {
        rating.criterion.key: Answer(rating.score, "na" if rating.score is None else "scored", rating.rationale)
        for rating in given
    }
