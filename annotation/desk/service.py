"""A leased item: find it by its key, save a draft, submit it, skip it, undo the submission.

Every lease has a key. The key is part of the page's address, and makes the submission idempotent. `on_desk` finds an
item by key and checks membership; every later change is a compare-and-set on the key. Two queries of every submission
are in SQL, because Django needs longer to build them than the database to run them (bench/submit.py).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from accounts import access, webhooks
from accounts.models import SIGHTED, Event, Membership, User
from accounts.refusals import Refused
from annotation import allocation, evidence
from annotation.desk import leasing, pairs, times
from annotation.desk.answers import Answer, Status, check_about_item, complete
from annotation.desk.column_lists import ColumnList
from annotation.desk.leasing import LEASE, LeaseLost, require_open
from annotation.models import (
    Annotation,
    Annotator,
    Assignment,
    Campaign,
    Criterion,
    Draft,
    Duty,
    KeptDraft,
    PrivateNote,
    QualificationRule,
    Rating,
    Skip,
)
from annotation.qualification import controls, exams
from annotation.qualification.references import UNSEEN
from annotation.readers import as_spans
from annotation.whole_item import (
    NO_ANSWERS,
    WHOLE_ITEM_COLUMNS,
    WHOLE_ITEM_QUESTIONS,
    AskedAs,
    WholeItemAnswers,
    item_answers,
)

# The same rows as Assignment.objects.visible_to(user).filter(key=key); test_desk_addresses.py compares both.
_BY_KEY = """
SELECT duty.campaign_id, CASE WHEN project.archived_at IS NULL THEN campaign.state ELSE 'closed' END,
       campaign.project_id, campaign.rubric_version_id,
       assignment.id, assignment.duty_id, assignment.item_id, assignment.state, assignment.annotator_id,
       assignment.revision, assignment.criteria_set, membership.role, duty.purpose, duty.stands_for_id,
       EXISTS (SELECT 1 FROM accounts_webhook WHERE project_id = campaign.project_id AND off = ''),
       EXISTS (SELECT 1 FROM annotation_rubricchange
               WHERE campaign_id = COALESCE(campaign.qualification_of_id, campaign.id) AND undone_at IS NULL)
FROM annotation_assignment assignment
JOIN annotation_annotator annotator ON annotator.id = assignment.annotator_id
JOIN annotation_duty duty ON duty.id = assignment.duty_id
JOIN annotation_campaign campaign ON campaign.id = duty.campaign_id
JOIN accounts_project project ON project.id = campaign.project_id
JOIN accounts_membership membership ON membership.project_id = campaign.project_id
WHERE assignment.key = %s AND annotator.user_id = %s AND membership.user_id = %s
  AND (NOT project.requires_second_factor OR EXISTS (
    SELECT 1 FROM mfa_authenticator factor
    WHERE factor.user_id = membership.user_id AND factor.type IN ('totp', 'webauthn')))
"""
_LOADED = ColumnList(Assignment, ("id", "duty_id", "item_id", "state", "annotator_id", "revision", "criteria_set"))
_OF_DUTY = ColumnList(Duty, ("id", "campaign_id", "purpose", "stands_for_id"))
_OF_CAMPAIGN = ColumnList(Campaign, ("id", "project_id", "rubric_version_id", "state"))
_DROP_DRAFT = "DELETE FROM annotation_draft WHERE duty_id = %s AND item_id = %s AND annotator_id = %s"
_KEY = Assignment._meta.get_field("key")
MOST_VERSIONS = 20


class SubmittedAlready(Refused):
    """The item was submitted with other answers, in another tab: ``stored``; ``sent`` are those that are refused."""

    def __init__(self, stored: Annotation, sent: Mapping[str, Answer]) -> None:
        self.stored, self.sent = stored, sent
        super().__init__(
            _("You submitted this item already, with other answers. Those are stored; what is on this page is not."),
            code="submitted_already",
        )


class DutyRemoved(Refused):
    """The lead removed the duty while the annotator had an item of it; ``kept`` is what they had entered."""

    def __init__(self, kept: KeptDraft) -> None:
        self.kept = kept
        sentence = _(
            "The project lead removed the task “%(duty)s”, so this item can't be submitted. What you entered is kept."
        )
        super().__init__(sentence % {"duty": kept.duty_name}, code="duty_removed")


def on_desk(*, user: User, key: UUID, related: Sequence[str] = ()) -> Assignment:
    """The assignment that the user leased with ``key``, if they are still a member of the project.

    After an undo the assignment has a new `key`; the old one finds it too. Raises ``LeaseLost`` if somebody else has
    taken the slot, ``DutyRemoved`` if there is no such duty any more, and ``Assignment.DoesNotExist`` if the key was
    never theirs.
    """
    if not related and (assignment := find_by_key(user=user, key=key)):
        return assignment
    loaded = Assignment.objects.select_related("duty__campaign", *related)
    for mine in (loaded.visible_to(user).filter(key=key), loaded.filter(pk__in=_submitted(user, key))):
        if assignment := mine.first():
            return assignment
    if _drafts_under(user, key).exists():
        raise LeaseLost
    if kept := kept_drafts(user).filter(key=key).first():
        raise DutyRemoved(kept)
    raise Assignment.DoesNotExist


def kept_drafts(user: User) -> QuerySet[KeptDraft]:
    """What the user had entered in duties that were removed, newest first, while they are a member of the project."""
    own = _own(KeptDraft.objects.all(), user, "campaign").filter(campaign__project__archived_at=None)
    return own.select_related("campaign__rubric_version", "item__dataset").order_by("-kept_at", "-pk")


def keep_entered(*, kept: KeptDraft, answers: Mapping[str, Answer]) -> None:
    """Keep what a page of an item sends after its duty was removed: it is newer than the draft."""
    if any(answer.is_given or answer.rationale for answer in answers.values()):
        KeptDraft.objects.filter(pk=kept.pk).update(answers=_entered_parts(answers))


def answers_kept(kept: KeptDraft) -> dict[str, Answer]:
    """The answers of a kept draft, by criterion."""
    return {key: _entered(parts) for key, parts in kept.answers.items()}


def own_submission(*, user: User, key: UUID, related: Sequence[str] = ()) -> Assignment:
    """The assignment that the user submitted with ``key`` and still has, in a duty of one of their panels.

    Raises as `on_desk` does, ``LeaseLost`` if the slot went to somebody else, and ``Duty.DoesNotExist`` if they are no
    longer on the panel.
    """
    assignment = on_desk(user=user, key=key, related=related)
    _duty, annotator = leasing.duty_and_annotator(user=user, duty=assignment.duty.visible_pk)
    if assignment.annotator_id != annotator.pk:
        raise LeaseLost
    return assignment


def find_by_key(*, user: User, key: UUID) -> Assignment | None:
    """The assignment that the user has leased or submitted with ``key``; None if there is none in their projects.

    Loads only the primary keys of its duty and campaign, and the campaign's project, version and state; other fields
    are deferred. ``holder_role`` is the user's role in the project, ``has_webhooks`` whether it has any that is on.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _BY_KEY, [Assignment._meta.get_field("key").get_db_prep_value(key, connection), user.pk, user.pk]
        )
        row = cursor.fetchone()
    if row is None:
        return None
    campaign, state, project, version, *loaded, role, purpose, stands_for, has_webhooks, has_changes = row
    assignment = _LOADED.load(loaded)
    assignment.key, assignment.holder_role, assignment.has_webhooks = key, role, bool(has_webhooks)
    assignment.has_rubric_changes = bool(has_changes)
    assignment.duty = _OF_DUTY.load((assignment.duty_id, campaign, purpose, stands_for))
    assignment.duty.campaign = _OF_CAMPAIGN.load((campaign, project, version, state))
    return assignment


def _submitted(user: User, key: UUID) -> QuerySet[Any]:
    return _own(Annotation.objects.filter(key=key), user, "campaign").values("assignment")


def _drafts_under(user: User, key: UUID) -> QuerySet[Draft]:
    return _own(Draft.objects.filter(key=key), user, "duty__campaign")


def _own(rows: QuerySet[Any], user: User, campaign: str) -> QuerySet[Any]:
    return rows.filter(access.member_of(user, project=f"{campaign}__project"), annotator__user=user)


def is_leased(assignment: Assignment) -> bool:
    """Whether its lease has not expired, so that nobody else can take the item."""
    leased_until = assignment.leased_until
    return assignment.state == Assignment.State.LEASED and bool(leased_until and leased_until >= timezone.now())


def offer_again(*, user: User, key: UUID) -> leasing.DeskOffer:
    """What `take_again` would do for a lost lease; raises ``LeaseLost`` if its item has no free slot."""
    duty, annotator, item = _lost_lease(user, key)
    offer = leasing.offer(duty=duty, annotator=annotator, item=item)
    if not offer.held and not offer.is_free:
        raise LeaseLost
    return offer


def take_again(*, user: User, key: UUID) -> Assignment:
    """Lease the item of ``key`` again: renew the lease, or take another free slot of the item, which has a new key.

    A submitted assignment is returned unchanged. If the user has leased another item of the duty, that one is returned.
    Raises as `on_desk` does.
    """
    try:
        assignment = on_desk(user=user, key=key)
    except LeaseLost:
        duty, annotator, item = _lost_lease(user, key)
        taken = leasing.take(duty=duty, annotator=annotator, item=item)
        if taken is None:
            raise
        return taken
    if assignment.key == key and assignment.state == Assignment.State.LEASED:
        extend(assignment=assignment)
    return assignment


def _lost_lease(user: User, key: UUID) -> tuple[Duty, Annotator, int]:
    """The duty, the annotator and the item's primary key of a lease whose slot somebody else has taken."""
    draft = _drafts_under(user, key).select_related("duty").first()
    try:
        if draft:
            return *leasing.duty_and_annotator(user=user, duty=draft.duty.visible_pk), draft.item_id
    except Duty.DoesNotExist:
        pass  # no longer on its panel
    raise LeaseLost


def criteria_on_desk(assignment: Assignment) -> tuple[Criterion, ...]:
    """The criteria that the assignment asks for, in the rubric's order, from the cache of `allocation.criteria_of`."""
    duty = assignment.duty
    return allocation.criteria_of(duty.visible_pk, duty.campaign.rubric_version_id, assignment.criteria_set)


def answers_so_far(assignment: Assignment) -> tuple[dict[str, Answer], float, WholeItemAnswers]:
    """The annotator's draft: the answers by criterion, the seconds spent so far, and the answers about the item."""
    draft = _drafts(assignment).first()
    if draft is None:
        return {}, 0.0, NO_ANSWERS
    return {key: _entered(parts) for key, parts in draft.answers.items()}, draft.seconds, item_answers(draft)


def asked_of_item(assignment: Assignment) -> dict[str, AskedAs]:
    """How the rubric asks each question about the whole item."""
    return criteria_on_desk(assignment)[0].rubric_version.asked


def _entered(parts: Mapping[str, Any]) -> Answer:
    return Answer(**{**parts, "evidence": as_spans(parts.get("evidence"))})


def save_draft(
    *, assignment: Assignment, answers: Mapping[str, Answer], seconds: float, about_item: WholeItemAnswers = NO_ANSWERS
) -> datetime:
    """Save the answers entered so far, and return the time. Raises ``LeaseLost`` if the slot is no longer theirs."""
    now = timezone.now()
    with transaction.atomic():
        if not _leased(assignment).select_for_update(no_key=True).exists():
            _refuse_others(Annotation.objects.filter(key=assignment.key).first(), answers, about_item)
            raise LeaseLost
        _write_draft(assignment, answers=answers, seconds=seconds, about_item=about_item, now=now)
    return now


def _write_draft(
    assignment: Assignment,
    *,
    answers: Mapping[str, Answer],
    seconds: float,
    about_item: WholeItemAnswers,
    now: datetime,
) -> None:
    allowed = {one.name: answer for one in WHOLE_ITEM_QUESTIONS if one.allows(answer := about_item[one.name])}
    entered = {"answers": _entered_parts(answers), **allowed}
    lease = _owner_keys(assignment) | {"key": assignment.key}
    Draft.objects.bulk_create(
        [Draft(**lease, **entered, seconds=times.possible_seconds(assignment, seconds, now), saved_at=now)],
        update_conflicts=True,
        unique_fields=["duty", "item", "annotator"],
        update_fields=["key", "answers", *WHOLE_ITEM_COLUMNS, "seconds", "saved_at"],
    )


def _entered_parts(answers: Mapping[str, Answer]) -> dict[str, dict[str, Any]]:
    return {
        name: {"score": _finite(answer.score), "status": answer.status, "rationale": answer.rationale}
        | ({"evidence": [span.as_dict() for span in answer.evidence]} if answer.evidence else {})
        for name, answer in answers.items()
    }


def _drafts(assignment: Assignment) -> QuerySet[Draft]:
    return Draft.objects.filter(**_owner_keys(assignment))


def _owner_keys(assignment: Assignment) -> dict[str, Any]:
    """The columns that identify a draft or a skip: duty, item and annotator."""
    return {
        "duty_id": assignment.duty_id,
        "item_id": assignment.item_id,
        "annotator_id": assignment.annotator_id,
    }


def _leased(assignment: Assignment) -> QuerySet[Assignment]:
    return Assignment.objects.filter(pk=assignment.pk, key=assignment.key, state=Assignment.State.LEASED)


def _drop_draft(assignment: Assignment) -> None:
    """Delete the draft of the assignment's annotator, if there is one."""
    with connection.cursor() as cursor:
        cursor.execute(_DROP_DRAFT, [assignment.duty_id, assignment.item_id, assignment.annotator_id])


def _finite(score: float | None) -> float | None:
    return score if score is not None and math.isfinite(score) else None


def submit(
    *,
    assignment: Assignment,
    key: UUID,
    answers: Mapping[str, Answer],
    seconds: float,
    about_item: WholeItemAnswers = NO_ANSWERS,
) -> Annotation:
    """Submit the assignment: store its ratings, all or none. The same key and answers again return what is stored.

    A lease that has expired is accepted if nobody else took the slot. Raises ``Refused`` with all problems by
    criterion, ``SubmittedAlready`` if other answers are stored under the key, or ``LeaseLost``.
    """
    if assignment.key != key or assignment.state != Assignment.State.LEASED:
        return _stored_alike(key, answers, about_item)
    require_open(assignment.duty.campaign)
    answered = evidence.quoted(assignment, complete(criteria_on_desk(assignment), answers))
    check_about_item(asked_of_item(assignment), about_item)
    with transaction.atomic():
        if _leased(assignment).update(state=Assignment.State.SUBMITTED, leased_until=None):
            return _store(assignment, answered, seconds=seconds, about_item=about_item)
    return _stored_alike(key, answers, about_item)


def _stored_alike(key: UUID, answers: Mapping[str, Answer], about_item: WholeItemAnswers) -> Annotation:
    """The annotation that was submitted with the key and these answers. Raises ``LeaseLost`` if there is none, and
    ``SubmittedAlready`` if it has other answers."""
    stored = Annotation.objects.filter(key=key).first()
    if stored is None:
        raise LeaseLost
    _refuse_others(stored, answers, about_item)
    return stored


def _refuse_others(stored: Annotation | None, sent: Mapping[str, Answer], about_item: WholeItemAnswers) -> None:
    """Raise ``SubmittedAlready`` if an annotation has other answers than were sent. A critical mark's own answers are
    compared, not what it stopped."""
    if stored is None:
        return
    given = {key: _compared(answer) for key, answer in sent.items() if answer.is_given and answer.status != "stopped"}
    has_others = given != {key: _compared(answer) for key, answer in answers_of(stored).items()}
    if has_others or dict(about_item) != item_answers(stored):
        raise SubmittedAlready(stored, sent)


def _compared(answer: Answer) -> tuple[Any, ...]:
    spans = {(span.turn, "" if span.turn is not None else span.field, span.start, span.end) for span in answer.evidence}
    return answer.status, answer.score, answer.rationale.strip(), spans


def _store(
    assignment: Assignment, answered: Mapping[str, Answer], *, seconds: float, about_item: WholeItemAnswers
) -> Annotation:
    if assignment.revision > 1 or assignment.has_rubric_changes:
        _supersede(assignment)
    annotation = Annotation.objects.create(
        campaign_id=assignment.duty.campaign_id,
        item_id=assignment.item_id,
        annotator_id=assignment.annotator_id,  # type: ignore[misc]  # the update above found it leased
        assignment=assignment,
        key=assignment.key,
        revision=assignment.revision,
        seconds=times.possible_seconds(assignment, seconds),
        **about_item,
        blind=_is_blind(assignment),
        swapped=pairs.swapped_for(assignment, criteria_on_desk(assignment)),
    )
    ratings = Rating.objects.bulk_create(_ratings(annotation, criteria_on_desk(assignment), answered))
    evidence.store_spans(ratings, answered)
    _drop_draft(assignment)
    if assignment.duty.purpose == Duty.Purpose.RATING:
        if assignment.has_webhooks:
            _announce(annotation, assignment.duty.campaign.project_id, len(ratings))
    elif assignment.duty.purpose == Duty.Purpose.EXAM:
        exams.finish_exam(assignment)
    elif assignment.has_webhooks:  # unused: a control item takes as many queries as any other
        webhooks.listening(project=assignment.duty.campaign.project_id, event=Event.RATINGS)
    return annotation


def _supersede(assignment: Assignment) -> None:
    """Let the scores be replaced that a change of the rubric kept: those of this slot, and those that the annotator
    has in another slot of the item, which went back to the queue. So nobody has two current annotations of an item."""
    own = Q(annotator=assignment.annotator_id, assignment__duty=assignment.duty_id, item=assignment.item_id)
    kept = Annotation.objects.filter(Q(assignment=assignment) | own, superseded_at=None)
    kept.update(superseded_at=timezone.now())


def _is_blind(assignment: Assignment) -> bool | None:
    """Whether the annotator's role hides verdicts and other people's ratings from them; None if they are no member."""
    role = assignment.holder_role
    if role is None:
        members = Membership.objects.filter(project=assignment.duty.campaign.project_id)
        person = Assignment.objects.filter(pk=assignment.pk).values("annotator__user")
        role = members.filter(user__in=person).values_list("role", flat=True).first()
    return None if role is None else role not in SIGHTED


def _announce(annotation: Annotation, project: int, ratings: int) -> None:
    """Notify the project's webhooks: keys and counts, without the annotator or the scores."""
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
    """Renew the lease: it lasts ``LEASE`` from now. Returns its end. Raises ``LeaseLost``."""
    until = timezone.now() + LEASE
    if not _leased(assignment).update(leased_until=until):
        raise LeaseLost
    return until


def skip(*, assignment: Assignment, reason: str, note: str = "") -> None:
    """Free the slot and delete its draft. The annotator gets the item again only when no other item is left."""
    if is_training_or_exam(assignment.duty):
        raise Refused(_("Every item of the training and of the exam needs an answer."), code="no_skip")
    with transaction.atomic():
        if not _leased(assignment).update(
            state=Assignment.State.OPEN, annotator=None, key=None, leased_at=None, leased_until=None
        ):
            raise LeaseLost
        Skip.objects.update_or_create(
            **_owner_keys(assignment),
            defaults={"reason": reason, "note": note, "at": timezone.now(), "resolved_at": None},
        )
        _drop_draft(assignment)


def is_training_or_exam(duty: Duty) -> bool:
    """Whether the duty is a training or an exam: its items are answered once, and can't be skipped or changed."""
    return duty.purpose in (Duty.Purpose.TRAINING, Duty.Purpose.EXAM)


def last_submitted(*, duty: Duty, annotator: Annotator | None) -> Assignment | None:
    """The annotator's last submitted assignment in the duty, if it can be undone: within ``LEASE`` (two hours)."""
    if is_training_or_exam(duty):
        return None
    last = (
        Annotation.objects.filter(
            Q(assignment__duty=duty.visible_pk)
            | Q(assignment__duty__stands_for=duty.visible_pk, assignment__duty__purpose__in=UNSEEN),
            annotator=annotator,
        )
        .select_related("assignment__duty__campaign")
        .order_by("-pk")
        .first()
    )
    if last is None or last.superseded_at or last.submitted_at < timezone.now() - LEASE:
        return None
    is_submitted = last.assignment is not None and last.assignment.state == Assignment.State.SUBMITTED
    return last.assignment if is_submitted else None  # a change of the rubric may have given it back


def undo_submission(*, assignment: Assignment) -> Assignment:
    """Undo the last submission: its annotation is superseded, the item is leased again, its answers become a draft."""
    require_open(assignment.duty.campaign)
    _require_changeable(assignment)
    if last_submitted(duty=assignment.duty, annotator=assignment.annotator) != assignment:
        raise Refused(_("Only your last submission can be undone, and only within two hours."), code="undo_late")
    with transaction.atomic():
        return _reopen(assignment)


def _require_changeable(assignment: Assignment) -> None:
    """Refuse a change of answers whose references the annotator has seen, or of an exam."""
    is_control = assignment.duty.purpose == Duty.Purpose.CONTROL
    if is_training_or_exam(assignment.duty) or (is_control and controls.was_revealed(assignment)):
        raise Refused(_("These scores can't be changed: they were compared with a reference."), code="compared")


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
    _write_draft(
        assignment,
        answers=answers_of(annotation),
        seconds=annotation.seconds or 0.0,
        about_item=item_answers(annotation),
        now=now,
    )
    return assignment


def submitted_annotations(*, duty: Duty, annotator: Annotator) -> QuerySet[Annotation]:
    """The annotator's current submissions in a duty, newest first, each with their private ``note``."""
    noted = PrivateNote.objects.filter(
        annotator=OuterRef("annotator"), item=OuterRef("item"), of_repeat=OuterRef("is_repeat")
    )
    is_repeat = Exists(Assignment.objects.filter(pk=OuterRef("assignment"), duty__purpose=Duty.Purpose.REPEAT))
    unseen = Q(assignment__duty__stands_for=duty, assignment__duty__purpose__in=UNSEEN)
    own = Annotation.objects.filter(Q(assignment__duty=duty) | unseen, annotator=annotator, superseded_at=None)
    own = own.annotate(is_repeat=is_repeat).annotate(note=Subquery(noted.values("text")))
    return own.select_related("item__dataset", "assignment").order_by("-submitted_at", "-pk")


def has_repeats(duty: Duty) -> bool:
    """Whether the duty may repeat items. Annotators must not notice repeats: a list of their items shows no titles."""
    asked = QualificationRule.objects.filter(campaign=duty.campaign_id, repeat_rate__gt=0)
    return asked.exists() or Duty.with_hidden.filter(stands_for=duty, purpose=Duty.Purpose.REPEAT).exists()


def current_submission(assignment: Assignment) -> Annotation:
    """The current annotation of a submitted assignment. Raises ``LeaseLost`` if there are none."""
    current = Annotation.objects.filter(assignment=assignment, superseded_at=None).first()
    if assignment.state != Assignment.State.SUBMITTED or current is None:
        raise LeaseLost
    return current


def revise_scores(
    *,
    assignment: Assignment,
    shown: UUID,
    key: UUID,
    answers: Mapping[str, Answer],
    seconds: float,
    about_item: WholeItemAnswers = NO_ANSWERS,
) -> Annotation:
    """Replace the scores of a submitted assignment, until its campaign closes: a new revision supersedes them.

    ``shown`` is the key of the scores that the page showed; ``key`` is the new revision's own: the same key again
    returns the stored annotation. ``seconds`` are those of all revisions together. Raises ``Refused`` as `submit` does,
    ``SubmittedAlready`` if the scores were changed in another tab since, or ``LeaseLost``.
    """
    if earlier := Annotation.objects.filter(key=key).values_list("assignment", flat=True).first():
        if earlier != assignment.pk:
            raise LeaseLost
        return _stored_alike(key, answers, about_item)
    require_open(assignment.duty.campaign)
    _require_changeable(assignment)
    answered = evidence.quoted(assignment, complete(criteria_on_desk(assignment), answers))
    check_about_item(asked_of_item(assignment), about_item)
    submitted = Assignment.objects.filter(pk=assignment.pk, key=shown, state=Assignment.State.SUBMITTED)
    with transaction.atomic():
        if not submitted.update(key=key, revision=F("revision") + 1):
            own = Annotation.objects.filter(assignment=assignment, annotator=assignment.annotator_id)
            _refuse_others(own.filter(superseded_at=None).first(), answers, about_item)
            raise LeaseLost
        assignment.refresh_from_db(fields=["key", "revision"])
        return _store(assignment, answered, seconds=seconds, about_item=about_item)


def asked_again(assignment: Assignment) -> list[Criterion]:
    """The criteria that an item lacks which came back because the rubric changed after its annotator scored it."""
    if assignment.revision <= 1 or assignment.state != Assignment.State.LEASED:
        return []
    mine = Annotation.objects.filter(assignment=assignment, annotator=assignment.annotator_id, superseded_at=None)
    kept = set(mine.exclude(rubric_change=None).values_list("ratings__criterion", flat=True))
    return [one for one in criteria_on_desk(assignment) if kept and one.pk not in kept]


def earlier_versions(assignment: Assignment) -> list[tuple[datetime, list[Criterion], dict[str, Answer]]]:
    """The annotator's own earlier submissions of the assignment, newest first, each with its time and its criteria.

    The criteria are those of the rubric's version under which they submitted. Annotations written by a change of the
    rubric are left out.
    """
    if assignment.revision <= 1:
        return []
    own = Annotation.objects.filter(assignment=assignment, annotator=assignment.annotator_id, rubric_change=None)
    replaced = list(own.filter(superseded_at__isnull=False).order_by("-revision")[:MOST_VERSIONS])
    answers = _answers_by_annotation(replaced)
    rated = Rating.objects.filter(annotation__in=replaced).select_related("criterion").order_by("criterion__position")
    criteria: dict[int, list[Criterion]] = defaultdict(list)
    for rating in rated:
        criteria[rating.annotation_id].append(rating.criterion)
    return [(one.submitted_at, criteria[one.pk], answers[one.pk]) for one in replaced]


def answers_of(annotation: Annotation) -> dict[str, Answer]:
    """The ratings of an annotation as answers, without the stopped ones."""
    return _answers_by_annotation([annotation])[annotation.pk]


def _answers_by_annotation(annotations: Sequence[Annotation]) -> dict[int, dict[str, Answer]]:
    ratings = Rating.objects.filter(annotation__in=annotations).exclude(status=Rating.Status.STOPPED)
    marked = evidence.spans_of(Q(rating__annotation__in=annotations))
    answers: dict[int, dict[str, Answer]] = {annotation.pk: {} for annotation in annotations}
    for rating in ratings.select_related("criterion").order_by("pk"):
        status: Status = "na" if rating.score is None else "scored"
        spans = marked.get(rating.pk, ())
        answers[rating.annotation_id][rating.criterion.key] = Answer(rating.score, status, rating.rationale, spans)
    return answers
