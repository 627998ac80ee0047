"""How every annotator stands in a campaign's qualification, for its leads: pseudonyms, shares, intervals, pauses.

And mismatches with references, which annotators contest and leads decide; each decision is in the audit trail.
"""

from __future__ import annotations

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
from annotation.qualification.guidelines import guideline_for
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
        found += [standing_in(duty, seat.annotator, rule) for seat in seats.order_by("annotator__pseudonym")]
    return found


def standing_in(duty: Duty, annotator: Annotator, rule: QualificationRule | None) -> AnnotatorStanding:
    """One annotator in one duty."""
    guideline = guideline_for(duty=duty, user=annotator.user)
    known = Acknowledgement.objects.filter(guideline=guideline, annotator=annotator)
    compared = controls.control_comparisons(duty=duty, annotator=annotator, rule=rule) if rule else []
    waiting = MismatchReview.objects.filter(
        assignment__duty__stands_for=duty, assignment__annotator=annotator, state=MismatchReview.State.CONTESTED
    )
    has_exam = rule is not None and rule.exam_items > 0
    return AnnotatorStanding(
        duty=duty,
        annotator=annotator,
        acknowledged=known.exists() if guideline else None,
        training=exams.training_progress(duty=duty, annotator=annotator) if rule and rule.training else None,
        exam=exams.exam_standing(duty=duty, annotator=annotator, rule=rule) if rule and has_exam else None,
        controls=controls.standing_of(compared),
        repeats=controls.repeat_match(duty=duty, annotator=annotator),
        pause=controls.open_pause(duty=duty, annotator=annotator),
        contested=waiting.count(),
    )


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
