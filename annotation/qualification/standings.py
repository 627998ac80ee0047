"""How every annotator stands in a campaign's qualification, for its leads: pseudonyms, shares, intervals, pauses.

And mismatches with references, which annotators contest and leads decide; each decision is in the audit trail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from accounts.refusals import Refused
from annotation.models import (
    Acknowledgement,
    Annotator,
    Assignment,
    Campaign,
    ControlPause,
    Criterion,
    Duty,
    ExamAttempt,
    MismatchReview,
    PanelSeat,
    QualificationRule,
)
from annotation.qualification import controls, exams
from annotation.qualification.controls import ControlStanding
from annotation.qualification.exams import ExamStanding, TrainingProgress
from annotation.qualification.guidelines import guideline_among, newest_guidelines
from annotation.qualification.matching import ReferenceComparison, compare
from annotation.qualification.references import rule_of


@dataclass(frozen=True, slots=True)
class AnnotatorStanding:
    """One annotator in one duty. ``acknowledged``: None if there are no guidelines; ``repeats``: (same, compared)."""

    duty: Duty
    annotator: Annotator
    acknowledged: bool | None
    training: TrainingProgress | None
    exam: ExamStanding | None
    controls: ControlStanding
    repeats: tuple[int, int]
    pause: ControlPause | None
    contested: int


def standings(campaign: Campaign) -> list[AnnotatorStanding]:
    """Every annotator on the panels of the campaign's duties, by duty and pseudonym."""
    rule = rule_of(campaign.pk)
    found = []
    for duty in Duty.objects.filter(campaign=campaign).select_related("panel", "campaign__project").order_by("pk"):
        seats = PanelSeat.objects.filter(panel=duty.panel).select_related("annotator__user")
        people = [seat.annotator for seat in seats.order_by("annotator__pseudonym")]
        found += _standings_in(duty, people, rule)
    return found


def standing_in(duty: Duty, annotator: Annotator, rule: QualificationRule | None) -> AnnotatorStanding:
    """One annotator in one duty."""
    (standing,) = _standings_in(duty, [annotator], rule)
    return standing


def _standings_in(duty: Duty, people: Sequence[Annotator], rule: QualificationRule | None) -> list[AnnotatorStanding]:
    """Of some annotators in one duty, in a number of queries that does not grow with them; those whose exam is neither
    passed nor unseen take some of their own."""
    newest = newest_guidelines(duty.campaign_id)
    guidelines = {person.pk: guideline_among(newest, duty=duty, user=person.user) for person in people}
    known = Acknowledgement.objects.filter(guideline__campaign=duty.campaign_id, annotator__in=people)
    confirmed = set(known.values_list("guideline", "annotator"))
    compared = controls.comparisons_by_annotator(duty=duty, annotators=people, rule=rule) if rule else {}
    repeats = controls.repeats_by_annotator(duty=duty, annotators=people)
    training = exams.training_by_annotator(duty=duty, annotators=people) if rule and rule.training else {}
    exam = exams.standings_by_annotator(duty=duty, annotators=people, rule=rule) if rule and rule.exam_items else {}
    paused = ControlPause.objects.filter(duty=duty, annotator__in=people, reinstated_at=None).order_by("-pk")
    pauses = {pause.annotator_id: pause for pause in paused}
    waiting_for = MismatchReview.objects.filter(
        assignment__duty__stands_for=duty, assignment__annotator__in=people, state=MismatchReview.State.CONTESTED
    )
    contested = Counter(waiting_for.values_list("assignment__annotator", flat=True))
    return [
        AnnotatorStanding(
            duty=duty,
            annotator=person,
            acknowledged=(guideline.pk, person.pk) in confirmed if (guideline := guidelines[person.pk]) else None,
            training=training.get(person.pk),
            exam=exam.get(person.pk),
            controls=controls.standing_of(compared.get(person.pk, [])),
            repeats=repeats.get(person.pk, (0, 0)),
            pause=pauses.get(person.pk),
            contested=contested[person.pk],
        )
        for person in people
    ]


def mismatches(*, duty: Duty, annotator: Annotator) -> list[ReferenceComparison]:
    """The annotator's answers to exams and controls of a duty that do not agree with their references, newest first."""
    rule = rule_of(duty.campaign_id)
    if rule is None:
        return []
    own = Assignment.objects.filter(
        duty__stands_for=duty,
        duty__purpose__in=(Duty.Purpose.EXAM, Duty.Purpose.CONTROL),
        annotator=annotator,
        state=Assignment.State.SUBMITTED,
    )
    ordered = own.select_related("item", "duty").order_by("-leased_at", "-pk")
    return [one for one in compare(ordered, campaign=duty.campaign_id, rule=rule) if not one.agrees]


# --- mismatches with references: annotators contest controls, leads decide -------------------------------------------
LONGEST_OBJECTION = 2000


def contest(
    *, assignment: Assignment, criterion: Criterion, objection: str, actor: User | None = None
) -> MismatchReview:
    """Store why the annotator thinks that their score of a control is right; until a lead has decided, it can change.

    Refused before the annotator was shown that the item is a control.
    """
    text = objection.strip()[:LONGEST_OBJECTION]
    if assignment.duty.purpose != Duty.Purpose.CONTROL or not controls.was_revealed(assignment):
        raise Refused(_("This score can't be contested."), code="not_contestable")
    if not text:
        wrong = _("Write why your score is right.")
        raise Refused(wrong, code="invalid", fields={"objection": wrong})
    with transaction.atomic():
        own = MismatchReview.objects.select_for_update().filter(assignment=assignment, criterion=criterion).first()
        if own and own.state != MismatchReview.State.CONTESTED:
            raise Refused(_("The project lead has decided about this score already."), code="wrong_state")
        review, _is_new = MismatchReview.objects.update_or_create(
            assignment=assignment,
            criterion=criterion,
            defaults={"state": MismatchReview.State.CONTESTED, "objection": text, "contested_at": timezone.now()},
        )
        project = assignment.duty.campaign.project
        audit.record(actor=actor, project=project, verb="contest control", subject=review)
    return review


def decide_mismatch(
    *, assignment: Assignment, criterion: Criterion, accept: bool, note: str = "", actor: User | None = None
) -> MismatchReview:
    """Accept a score that does not match its reference (it then counts as a match), or not. Settles a finished exam
    anew."""
    state = MismatchReview.State.ACCEPTED if accept else MismatchReview.State.REJECTED
    decided = {"state": state, "note": note.strip()[:LONGEST_OBJECTION]}
    with transaction.atomic():
        review, _is_new = MismatchReview.objects.update_or_create(
            assignment=assignment,
            criterion=criterion,
            defaults={**decided, "decided_by": actor, "decided_at": timezone.now()},
        )
        verb = "accept mismatch" if accept else "reject mismatch"
        audit.record(actor=actor, project=assignment.duty.campaign.project, verb=verb, subject=review)
        attempts = ExamAttempt.objects.filter(items__assignment=assignment, finished_at__isnull=False)
        for attempt in attempts.select_related("duty"):
            exams.settle_exam(attempt)
    return review


def waiting(campaign: int) -> int:
    """How many contested scores of a campaign wait for a decision."""
    hidden = MismatchReview.objects.filter(assignment__duty__campaign__qualification_of=campaign)
    return hidden.filter(state=MismatchReview.State.CONTESTED).count()
