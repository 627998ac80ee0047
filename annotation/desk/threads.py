"""Questions about items: an annotator asks at the item, a lead answers, to them alone or to everybody on the duty.

Annotators never see who asked. In an exam nobody can ask, and no questions are shown. At a repeat, only the questions
asked at that repeat are shown, because earlier questions would show that the item is a repeat. With one annotator for
each item, answers for everybody are only in the list: at an item, another person's question would show that it is a
control.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.desk import leasing
from annotation.models import Annotator, Assignment, Campaign, Duty, ItemQuestion

LONGEST_QUESTION = LONGEST_ANSWER = 2000
MOST_SHOWN = 100
MOST_OPEN = 50
"""Unanswered questions that one annotator may have in a duty."""


@dataclass(frozen=True, slots=True)
class ThreadEntry:
    """A question as an annotator sees it: whether it is their own, its answer if there is one; never who asked."""

    text: str
    answer: str
    is_own: bool
    is_broadcast: bool


def ask_about_item(*, assignment: Assignment, user: User, text: str) -> ItemQuestion:
    """Store the annotator's question about the item of their assignment."""
    duty, annotator = leasing.duty_and_annotator(user=user, duty=assignment.duty.visible_pk)
    leasing.require_open(duty.campaign)
    question = text.strip()[:LONGEST_QUESTION]
    if assignment.duty.purpose == Duty.Purpose.EXAM:
        raise Refused(_("You can't ask questions during the exam."), code="in_exam")
    if not question:
        wrong = _("Write your question.")
        raise Refused(wrong, code="invalid", fields={"question": wrong})
    own = ItemQuestion.objects.filter(duty=duty, annotator=annotator, answered_at=None)
    same = {"item_id": assignment.item_id, "text": question, "of_repeat": _is_repeat(assignment)}
    with transaction.atomic():
        Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)  # a double click asks once
        if asked := own.filter(**same).first():
            return asked
        if own.count() >= MOST_OPEN:
            raise Refused(_("Wait for an answer before you ask more."), code="too_many")
        return ItemQuestion.objects.create(duty=duty, annotator=annotator, **same)


def _is_repeat(assignment: Assignment) -> bool:
    return assignment.duty.purpose == Duty.Purpose.REPEAT


def thread_at(assignment: Assignment) -> list[ThreadEntry]:
    """What the annotator sees at the item, oldest first: their own questions and answers for everybody."""
    if assignment.duty.purpose == Duty.Purpose.EXAM:
        return []
    of_item = ItemQuestion.objects.filter(duty=assignment.duty.visible_pk, item=assignment.item_id)
    mine = Q(annotator=assignment.annotator_id, of_repeat=_is_repeat(assignment))
    if not _is_repeat(assignment) and assignment.duty.overlap > 1:
        mine |= Q(is_broadcast=True) & ~Q(annotator=assignment.annotator_id)
    return _entries(of_item.filter(mine).order_by("pk"), assignment.annotator_id)


def thread_of(*, duty: Duty, annotator: Annotator) -> list[ThreadEntry]:
    """The annotator's own questions in a duty and the answers for everybody, newest first."""
    shown = ItemQuestion.objects.filter(Q(annotator=annotator) | Q(is_broadcast=True), duty=duty)
    return _entries(shown.order_by("-pk"), annotator.pk)


def _entries(questions: QuerySet[ItemQuestion], annotator: int | None) -> list[ThreadEntry]:
    return [
        ThreadEntry(one.text, one.answer, one.annotator_id == annotator, one.is_broadcast)
        for one in questions[:MOST_SHOWN]
    ]


# --- for leads --------------------------------------------------------------------------------------------------------
def questions_in(campaign: Campaign) -> QuerySet[ItemQuestion]:
    """All questions of a campaign, unanswered ones first, oldest first; then the answered ones, newest first."""
    found = ItemQuestion.objects.filter(duty__campaign=campaign).select_related("duty", "item", "annotator")
    return found.order_by(F("answered_at").desc(nulls_first=True), "pk")


def open_questions(project: Project) -> QuerySet[ItemQuestion]:
    """The questions of a project that nobody has answered."""
    return ItemQuestion.objects.filter(duty__campaign__project=project, answered_at=None)


def answer_item_question(
    *, question: ItemQuestion, text: str, broadcast: bool, seen: str | None = None, actor: User | None = None
) -> ItemQuestion:
    """Answer a question, or change its answer. ``broadcast``: everybody on the duty sees question and answer.

    ``seen``: when the answer was given that the lead has seen (ISO 8601), "" for none. Refused (code ``changed``) if
    somebody else has answered since; the same answer again changes nothing.
    """
    written = text.strip()[:LONGEST_ANSWER]
    if not written:
        wrong = _("Write an answer.")
        raise Refused(wrong, code="invalid", fields={"answer": wrong})
    given = {"answer": written, "is_broadcast": broadcast}
    with transaction.atomic():
        same = ItemQuestion.objects.filter(pk=question.pk)
        if same.filter(**given).exists():
            return question
        at = question.answered_at.isoformat() if question.answered_at else ""
        unchanged = same.filter(answered_at=question.answered_at)
        if seen not in (None, at) or not unchanged.update(**given, answered_by=actor, answered_at=timezone.now()):
            sentence = _("Somebody else has answered this question since you opened the page. Read that answer first.")
            raise Refused(sentence, code="changed")
        question.refresh_from_db()
        audit.record(actor=actor, project=question.duty.campaign.project, verb="answer question", subject=question)
    return question
