"""Exams: silent attempts at reference items, with a threshold per criterion and language; training: with feedback."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from accounts.refusals import Refused
from annotation.models import (
    Annotation,
    Annotator,
    Assignment,
    Draft,
    Duty,
    ExamAttempt,
    ExamItem,
    PanelSeat,
    QualificationRule,
    ReferenceItem,
    RubricChange,
    WritingText,
)
from annotation.qualification.matching import MatchedShare, ReferenceComparison, compare, shares
from annotation.qualification.references import drawn_number, hidden_duties, lease_hidden, reference_items, rule_of

_SUBMITTED = Assignment.State.SUBMITTED
ExamState = Literal["passed", "under_way", "ready", "waiting", "used_up", "no_items"]


@dataclass(frozen=True, slots=True)
class ExamStanding:
    """An annotator's exam in a duty. ``last``: the last finished attempt; ``wait_until``: when the next may begin;
    ``left``: how many attempts are left; ``done`` of ``total``: the items of the attempt that is under way."""

    state: ExamState
    last: ExamAttempt | None
    left: int
    wait_until: datetime | None = None
    done: int = 0
    total: int = 0


def exam_standing(
    *, duty: Duty, annotator: Annotator, rule: QualificationRule, now: datetime | None = None
) -> ExamStanding:
    """What the annotator may do about the exam of a duty."""
    attempts = list(_attempts(duty).filter(annotator=annotator).order_by("number"))
    return _standing_after(attempts, duty, annotator, rule, now or timezone.now())


def standings_by_annotator(
    *, duty: Duty, annotators: Sequence[Annotator], rule: QualificationRule
) -> dict[int, ExamStanding]:
    """By annotator, as `exam_standing`. Those who have begun no attempt share one."""
    now = timezone.now()
    attempts: dict[int, list[ExamAttempt]] = defaultdict(list)
    for attempt in _attempts(duty).filter(annotator__in=annotators).order_by("number"):
        attempts[attempt.annotator_id].append(attempt)
    writers = _writers(annotators)
    unseen = [person for person in annotators if person.pk not in attempts and person.pk not in writers]
    of_unseen = _standing_after([], duty, unseen[0], rule, now) if unseen else None
    begun = {
        person.pk: _standing_after(attempts[person.pk], duty, person, rule, now)
        for person in annotators
        if person.pk in attempts or person.pk in writers
    }
    return begun | {person.pk: of_unseen for person in unseen if of_unseen}


def _standing_after(
    attempts: Sequence[ExamAttempt], duty: Duty, annotator: Annotator, rule: QualificationRule, now: datetime
) -> ExamStanding:
    finished = [attempt for attempt in attempts if attempt.finished_at]
    last = finished[-1] if finished else None
    since_passed = next((place for place, attempt in enumerate(reversed(finished)) if attempt.passed), len(finished))
    left = max(0, rule.attempts - since_passed)
    if any(attempt.passed and (attempt.expires_at is None or attempt.expires_at > now) for attempt in finished):
        return ExamStanding("passed", last, left)
    if len(finished) < len(attempts):
        done, total = items_done(duty=duty, annotator=annotator)
        return ExamStanding("under_way", last, left, done=done, total=total)
    if not left:
        return ExamStanding("used_up", last, 0)
    if last and last.finished_at and not last.passed:
        ready = last.finished_at + timedelta(hours=rule.wait_hours)
        if ready > now:
            return ExamStanding("waiting", last, left, wait_until=ready)
    if len(_unseen(duty, annotator)) < rule.exam_items:
        return ExamStanding("no_items", last, left)
    return ExamStanding("ready", last, left, total=rule.exam_items)


def items_done(*, duty: Duty, annotator: Annotator) -> tuple[int, int]:
    """How many items of the attempt that is under way are submitted, and how many it has."""
    items = ExamItem.objects.filter(attempt__duty=duty, attempt__annotator=annotator, attempt__finished_at=None)
    return items.filter(assignment__state=_SUBMITTED).count(), items.count()


def _counting(duty: Duty, began: str) -> Q:
    """Of rows with a time ``began``: those after the last change of the rubric that asks for training and exam anew."""
    changes = RubricChange.objects.filter(campaign=duty.campaign_id, qualify_again=True, undone_at=None)
    return ~Q(Exists(changes.filter(finished_at__isnull=False, at__gte=OuterRef(began))))


def _attempts(duty: Duty) -> QuerySet[ExamAttempt]:
    return ExamAttempt.objects.filter(_counting(duty, "started_at"), duty=duty)


def _unseen(duty: Duty, annotator: Annotator) -> list[ReferenceItem]:
    """The exam's reference items that no attempt of the annotator had, and that they did not write."""
    seen = ExamItem.objects.filter(attempt__duty=duty, attempt__annotator=annotator).values("item")
    pool = reference_items(duty=duty, purpose=Duty.Purpose.EXAM).exclude(item__in=seen)
    return list(pool.filter(~_own_text(annotator)).select_related("item"))


def _own_text(annotator: Annotator) -> Exists:
    return Exists(WritingText.objects.filter(annotator=annotator).behind("item__"))


def _writers(annotators: Sequence[Annotator]) -> set[int]:
    """Those of the annotators who wrote a text that is an item now."""
    stored = WritingText.objects.filter(annotator__in=annotators).exclude(external_id="")
    return set(stored.values_list("annotator", flat=True))


def start_exam(*, duty: Duty, annotator: Annotator, now: datetime | None = None) -> ExamAttempt:
    """Begin an attempt with items that no earlier attempt had; one that is under way is returned unchanged.

    Raises ``Refused`` if no attempt may begin now.
    """
    now = now or timezone.now()
    rule = rule_of(duty.campaign_id)
    if rule is None or not rule.exam_items:
        raise Refused(_("This task has no exam."), code="no_exam")
    with transaction.atomic():
        # One attempt at a time: two tabs wait for each other here.
        list(PanelSeat.objects.select_for_update().filter(panel=duty.panel_id, annotator=annotator))
        standing = exam_standing(duty=duty, annotator=annotator, rule=rule, now=now)
        if standing.state == "under_way":
            return ExamAttempt.objects.get(duty=duty, annotator=annotator, finished_at=None)
        if standing.state != "ready":
            raise Refused(REASONS[standing.state](), code=f"exam_{standing.state}")
        drawn = _drawn(_unseen(duty, annotator), rule, annotator)
        number = ExamAttempt.objects.filter(duty=duty, annotator=annotator).count() + 1
        attempt = ExamAttempt.objects.create(duty=duty, annotator=annotator, number=number, started_at=now)
        ExamItem.objects.bulk_create(
            [ExamItem(attempt=attempt, item=item.item, position=place) for place, item in enumerate(drawn, 1)]
        )
    return attempt


REASONS = {
    "passed": lambda: _("You have passed this exam."),
    "waiting": lambda: _("You can't take the exam again yet."),
    "used_up": lambda: _("You have no attempt left. Ask the project lead."),
    "no_items": lambda: _("There are not enough new items for an exam. Ask the project lead."),
}


def _drawn(pool: Sequence[ReferenceItem], rule: QualificationRule, annotator: Annotator) -> list[ReferenceItem]:
    """So many items as the rule asks for, in an order by the seed; the languages take turns."""
    by_language: dict[str, list[ReferenceItem]] = defaultdict(list)
    for one in sorted(pool, key=lambda one: drawn_number(rule.seed, "exam", annotator.pk, one.item_id)):
        by_language[one.item.language.partition("-")[0]].append(one)
    ranked = [(place, language, one) for language, row in by_language.items() for place, one in enumerate(row)]
    ranked.sort(key=lambda found: found[:2])
    return [one for _place, _language, one in ranked[: rule.exam_items]]


def take_exam_item(*, duty: Duty, annotator: Annotator, now: datetime, until: datetime) -> Assignment | None:
    """The next item of the attempt that is under way; None if there is no such attempt, or no item left in it."""
    attempt = ExamAttempt.objects.filter(duty=duty, annotator=annotator, finished_at=None).first()
    if attempt is None:
        return None
    hidden = hidden_duties(duty)[Duty.Purpose.EXAM]
    own = Assignment.objects.filter(pk__in=attempt.items.values("assignment"))
    held = own.filter(state=Assignment.State.LEASED).first()
    if held:
        return held
    for exam_item in attempt.items.filter(assignment=None).order_by("position"):
        with transaction.atomic():
            leased = lease_hidden(duty=hidden, item=exam_item.item_id, annotator=annotator, now=now, until=until)
            if leased:
                ExamItem.objects.filter(pk=exam_item.pk).update(assignment=leased)
                return leased
    return None


def finish_exam(assignment: Assignment, now: datetime | None = None) -> ExamAttempt | None:
    """After the submission of an exam's item: if it was the last one, settle the attempt, and return it."""
    open_items = Q(items__assignment=None) | ~Q(items__assignment__state=_SUBMITTED)
    attempt = ExamAttempt.objects.filter(items__assignment=assignment, finished_at=None).first()
    if attempt is None or ExamAttempt.objects.filter(open_items, pk=attempt.pk).exists():
        return None
    settle_exam(attempt, now or timezone.now())
    return attempt


def is_under_way(assignment: Assignment) -> bool:
    """Whether the attempt that an exam's item belongs to has not finished."""
    return ExamAttempt.objects.filter(items__assignment=assignment, finished_at=None).exists()


def settle_exam(attempt: ExamAttempt, now: datetime | None = None) -> None:
    """Store whether a finished attempt is passed, with what leads have accepted since."""
    rule = rule_of(attempt.duty.campaign_id)
    if rule is None:
        return
    finished = attempt.finished_at or now or timezone.now()
    found = shares(exam_comparisons(attempt, rule))
    if attempt.finished_at and not found:
        return  # its references went with an earlier version of the rubric: it stays as it was settled
    passed = bool(found) and all(share.share >= rule.threshold for share in found)
    expires = finished + timedelta(days=rule.valid_days) if passed and rule.valid_days else None
    ExamAttempt.objects.filter(pk=attempt.pk).update(finished_at=finished, passed=passed, expires_at=expires)
    attempt.finished_at, attempt.passed, attempt.expires_at = finished, passed, expires


def exam_comparisons(attempt: ExamAttempt, rule: QualificationRule) -> list[ReferenceComparison]:
    """The answers of an attempt beside their reference scores."""
    of_attempt = ExamItem.objects.filter(attempt=attempt).values("assignment")
    submitted = Assignment.objects.filter(pk__in=of_attempt, state=_SUBMITTED).select_related("item")
    return compare(submitted.order_by("leased_at", "pk"), campaign=attempt.duty.campaign_id, rule=rule)


def exam_result(attempt: ExamAttempt) -> list[MatchedShare]:
    """Map each criterion and language to the share of matching answers of a finished attempt."""
    rule = rule_of(attempt.duty.campaign_id)
    return shares(exam_comparisons(attempt, rule)) if rule and attempt.finished_at else []


# --- training: reference items with feedback at once, as often as somebody wants -------------------------------------
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
    return training_by_annotator(duty=duty, annotators=[annotator])[annotator.pk]


def training_by_annotator(*, duty: Duty, annotators: Sequence[Annotator]) -> dict[int, TrainingProgress]:
    """By annotator, how far they are with the training of a duty."""
    items = _training_items(duty, annotators)
    revisions = _revisions(duty, annotators, set().union(*items.values()))
    return {person.pk: _training_of(items[person.pk], revisions[person.pk]) for person in annotators}


def _training_items(duty: Duty, annotators: Sequence[Annotator]) -> dict[int, set[int]]:
    """By annotator, the training's items without those that they wrote."""
    pool = reference_items(duty=duty, purpose=Duty.Purpose.TRAINING)
    items, writers = set(pool.values_list("item", flat=True)), _writers(annotators)
    return {
        person.pk: set(pool.filter(~_own_text(person)).values_list("item", flat=True))
        if person.pk in writers
        else items
        for person in annotators
    }


def _training_of(items: set[int], revisions: Mapping[int, int]) -> TrainingProgress:
    finished = [revisions.get(item, 0) for item in items]
    rounds = min(finished, default=0)
    done = sum(revision > rounds for revision in finished)
    return TrainingProgress(done=done or (len(items) if rounds else 0), total=len(items), rounds=rounds)


def _revisions(duty: Duty, annotators: Sequence[Annotator], items: set[int]) -> dict[int, dict[int, int]]:
    """By annotator and item, how often the annotator has submitted it in the training."""
    hidden = {"assignment__duty__stands_for": duty, "assignment__duty__purpose": Duty.Purpose.TRAINING}
    own = Annotation.objects.filter(_counting(duty, "submitted_at"), **hidden, annotator__in=annotators, item__in=items)
    given = own.filter(rubric_change=None).order_by().values_list("annotator", "item")  # not what a change carried over
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for annotator, item, count in given.annotate(count=Count("pk")):
        found[annotator][item] = count
    return found


def take_training(
    *, duty: Duty, annotator: Annotator, again: bool, now: datetime, until: datetime
) -> Assignment | None:
    """The next training item: the one in work, else one that the round still lacks; None after the last one, unless
    ``again`` begins another round. The answers of an earlier round are not shown."""
    hidden = hidden_duties(duty)[Duty.Purpose.TRAINING]
    own = Assignment.objects.filter(duty=hidden, annotator=annotator)
    if held := own.filter(state=Assignment.State.LEASED).first():
        return held
    items = _training_items(duty, [annotator])[annotator.pk]
    revisions = _revisions(duty, [annotator], items)[annotator.pk]
    order = sorted(items, key=lambda item: (revisions.get(item, 0), drawn_number(duty.seed, "training", item)))
    if not order:
        return None
    fewest = revisions.get(order[0], 0)
    if fewest and fewest == max(revisions.values()) and not again:
        return None
    if (earlier := own.filter(item=order[0]).first()) is None:
        return lease_hidden(duty=hidden, item=order[0], annotator=annotator, now=now, until=until)
    return _reopened(earlier, now, until)


def _reopened(done: Assignment, now: datetime, until: datetime) -> Assignment:
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
