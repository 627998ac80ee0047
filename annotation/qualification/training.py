"""Training: reference items with feedback at once. It can be repeated as often as somebody wants."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F
from uuid_utils.compat import uuid7

from annotation.models import Annotator, Assignment, Draft, Duty
from annotation.qualification.hidden_duties import drawn_number, hidden_duty, lease_hidden
from annotation.qualification.references import reference_items


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """The items of the present round: ``done`` of ``total``; ``rounds``: how often all of them were done."""

    done: int
    total: int
    rounds: int

    @property
    def is_done(self) -> bool:
        """Whether every item was done once, or there is none."""
        return self.rounds > 0 or not self.total


def training_progress(*, duty: Duty, annotator: Annotator) -> TrainingProgress:
    """How far the annotator is with the training of a duty."""
    items = set(reference_items(duty=duty, purpose=Duty.Purpose.TRAINING).values_list("item", flat=True))
    revisions = _revisions(duty, annotator, items)
    finished = [revisions.get(item, 0) for item in items]
    rounds = min(finished, default=0)
    done = sum(revision > rounds for revision in finished)
    return TrainingProgress(done=done or (len(items) if rounds else 0), total=len(items), rounds=rounds)


def _revisions(duty: Duty, annotator: Annotator, items: set[int]) -> dict[int, int]:
    """By item, how often the annotator has submitted it in the training."""
    own = Assignment.objects.filter(
        duty__stands_for=duty, duty__purpose=Duty.Purpose.TRAINING, annotator=annotator, item__in=items
    )
    rows = own.values_list("item", "state", "revision")
    submitted = Assignment.State.SUBMITTED
    return {item: revision if state == submitted else revision - 1 for item, state, revision in rows}


def take_training(
    *, duty: Duty, annotator: Annotator, again: bool, now: datetime, until: datetime
) -> Assignment | None:
    """The next training item: the one in work, else one that the round still lacks; None after the last one, unless
    ``again`` begins another round. The answers of an earlier round are not shown."""
    hidden = hidden_duty(duty=duty, purpose=Duty.Purpose.TRAINING)
    own = Assignment.objects.filter(duty=hidden, annotator=annotator)
    if held := own.filter(state=Assignment.State.LEASED).first():
        return held
    items = set(reference_items(duty=duty, purpose=Duty.Purpose.TRAINING).values_list("item", flat=True))
    revisions = _revisions(duty, annotator, items)
    order = sorted(items, key=lambda item: (revisions.get(item, 0), drawn_number(duty.seed, "training", item)))
    if not order:
        return None
    fewest = revisions.get(order[0], 0)
    if fewest and fewest == max(revisions.values()) and not again:
        return None
    if not fewest:
        return lease_hidden(duty=hidden, item=order[0], annotator=annotator, now=now, until=until)
    return _reopened(own.get(item=order[0]), now, until)


def _reopened(done: Assignment, now: datetime, until: datetime) -> Assignment:
    from annotation.models import Annotation

    with transaction.atomic():
        Annotation.objects.filter(assignment=done, superseded_at=None).update(superseded_at=now)
        Draft.objects.filter(duty=done.duty_id, item=done.item_id, annotator=done.annotator_id).delete()
        Assignment.objects.filter(pk=done.pk, state=Assignment.State.SUBMITTED).update(
            state=Assignment.State.LEASED,
            key=uuid7(),
            leased_at=now,
            leased_until=until,
            revision=F("revision") + 1,
        )
    done.refresh_from_db()
    return done
