"""How every annotator stands in a campaign's qualification, for its leads: pseudonyms, shares, intervals, pauses."""

from __future__ import annotations

from dataclasses import dataclass

from annotation.models import (
    Acknowledgement,
    Annotator,
    Assignment,
    Campaign,
    ControlPause,
    Duty,
    MismatchReview,
    PanelSeat,
    QualificationRule,
)
from annotation.qualification import controls, exams, training
from annotation.qualification.controls import ControlStanding
from annotation.qualification.exams import ExamStanding
from annotation.qualification.guidelines import guideline_for
from annotation.qualification.hidden_duties import rule_of
from annotation.qualification.matching import ReferenceComparison, compare
from annotation.qualification.training import TrainingProgress


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
        training=training.training_progress(duty=duty, annotator=annotator) if rule and rule.training else None,
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
