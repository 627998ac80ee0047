"""Mismatches with references: annotators contest controls, leads decide. Every decision is in the audit trail."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from accounts.refusals import Refused
from annotation.models import Assignment, Criterion, Duty, ExamAttempt, MismatchReview
from annotation.qualification import controls, exams

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
