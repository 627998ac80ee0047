"""Studies whose project was deleted: what their annotators are told, and what they entered last."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID

from django.db.models import QuerySet

from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.desk.leasing import LeaseLost
from annotation.models import Assignment, Duty, WritingDuty, WritingText
from annotation.whole_item import WholeItemAnswers


def ended_studies(user: User) -> QuerySet[Project]:
    """The deleted projects in which the user was."""
    return Project.objects.filter(suspended_memberships__user=user).order_by("name", "pk")


def ended_study(
    user: User, *, key: UUID | None = None, duty: int | None = None, writing: int | None = None
) -> Project | None:
    """The deleted project that the user's item or text (``key``) or duty is of; None if there is none."""
    ended, seated = ended_studies(user), {"panel__seats__annotator__user": user}
    rows: list[QuerySet[Project]] = []
    if key is not None:
        own = {"key": key, "annotator__user": user}
        rows.append(ended.filter(pk__in=Assignment.objects.filter(**own).values("duty__campaign__project")))
        rows.append(ended.filter(pk__in=WritingText.objects.filter(**own).values("duty__project")))
    if duty is not None:
        rows.append(ended.filter(pk__in=Duty.objects.filter(pk=duty, **seated).values("campaign__project")))
    if writing is not None:
        rows.append(ended.filter(pk__in=WritingDuty.objects.filter(pk=writing, **seated).values("project")))
    return next((found for of_kind in rows if (found := of_kind.first())), None)


def keep_sent(
    *, user: User, key: UUID, answers: Mapping[str, Answer], seconds: float, about_item: WholeItemAnswers
) -> None:
    """Store what a page sends after its project was deleted as the draft of the item, if the item is still theirs."""
    assignment = Assignment.objects.filter(key=key, annotator__user=user, state=Assignment.State.LEASED).first()
    if assignment is not None and any(answer.is_given or answer.rationale for answer in answers.values()):
        with suppress(LeaseLost, Refused):
            service.save_draft(assignment=assignment, answers=answers, seconds=seconds, about_item=about_item)
