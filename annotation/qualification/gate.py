"""What an annotator has to do before a duty gives them items: acknowledge guidelines, train, pass the exam."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db import connection
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.refusals import Refused
from annotation.models import Annotator, ControlPause, Duty, Guideline, QualificationRule
from annotation.qualification import controls, exams, guidelines
from annotation.qualification.exams import ExamStanding, TrainingProgress
from annotation.qualification.references import rule_of

StageName = Literal["guidelines", "paused", "training", "exam", "open"]
_ASKS = """
SELECT EXISTS (SELECT 1 FROM annotation_guideline WHERE campaign_id = %s),
       EXISTS (SELECT 1 FROM annotation_qualificationrule WHERE campaign_id = %s)
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """What comes next for an annotator in a duty, and what its page shows. ``open``: the items themselves."""

    name: StageName
    rule: QualificationRule | None = None
    guideline: Guideline | None = None
    pause: ControlPause | None = None
    training: TrainingProgress | None = None
    exam: ExamStanding | None = None


OPEN = Stage("open")


def asks_anything(duty: Duty) -> tuple[bool, bool]:
    """Whether the duty's campaign has guidelines, and whether it has a qualification rule; `duty_and_annotator` of the
    desk has loaded it already."""
    if duty.asks is not None:
        return duty.asks
    with connection.cursor() as cursor:
        cursor.execute(_ASKS, [duty.campaign_id, duty.campaign_id])
        has_guidelines, has_rule = cursor.fetchone()
    return bool(has_guidelines), bool(has_rule)


def stage_of(*, duty: Duty, annotator: Annotator, now: datetime | None = None) -> Stage:
    """What the annotator has to do next in a duty."""
    has_guidelines, has_rule = asks_anything(duty)
    if has_guidelines:
        guideline = guidelines.guideline_for(duty=duty, user=_user_of(annotator))
        if guideline and not guidelines.is_acknowledged(guideline=guideline, annotator=annotator):
            return Stage("guidelines", guideline=guideline)
    rule = rule_of(duty.campaign_id) if has_rule else None
    if rule is None:
        return OPEN
    if pause := controls.open_pause(duty=duty, annotator=annotator):
        return Stage("paused", rule=rule, pause=pause)
    if rule.training:
        progress = exams.training_progress(duty=duty, annotator=annotator)
        if not progress.is_done:
            return Stage("training", rule=rule, training=progress)
    if rule.exam_items:
        standing = exams.exam_standing(duty=duty, annotator=annotator, rule=rule, now=now)
        if standing.state != "passed":
            return Stage("exam", rule=rule, exam=standing)
    return Stage("open", rule=rule)


def _user_of(annotator: Annotator) -> User | None:
    return User.objects.filter(pk__in=Annotator.objects.filter(pk=annotator.pk).values("user")).first()


class NotQualified(Refused):
    """The duty gives no items yet; ``stage`` says what is missing."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        super().__init__(_WORDS[stage.name](), code=f"qualification_{stage.name}")


_WORDS = {
    "guidelines": lambda: _("Read the guidelines and confirm that you have read them."),
    "paused": lambda: _("Your work in this task is paused. The project lead will look at it."),
    "training": lambda: _("Finish the training of this task first."),
    "exam": lambda: _("Pass the exam of this task first."),
}


def require_qualified(*, duty: Duty, annotator: Annotator, now: datetime) -> Stage:
    """The open stage of a duty. Raises ``NotQualified``; pauses the work first if the controls match too seldom.

    The controls are looked at before every item, not after a control, so that no answer takes longer than another.
    """
    stage = stage_of(duty=duty, annotator=annotator, now=now)
    if stage.name != "open":
        raise NotQualified(stage)
    rule = stage.rule
    if rule and rule.control_rate and (pause := controls.pause_if_below(duty=duty, annotator=annotator, rule=rule)):
        raise NotQualified(Stage("paused", rule=rule, pause=pause))
    return stage
