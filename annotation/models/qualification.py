"""Guidelines, reference items, exams, and what a campaign asks of annotators before and during their work.

Answers to training, exams, controls and repeats are annotations of a hidden qualification campaign, never of the
campaign that they belong to (docs/decisions/0034).
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from annotation.models.campaign import Annotator, Assignment, Campaign, Duty
from annotation.models.content import Criterion, Item


class Guideline(models.Model):
    """One version of a campaign's guidelines in one language: Markdown and worked examples. It never changes.

    `examples` are ``[{"text": Markdown, "criterion": key or "", "score": number or None, "explanation": Markdown}]``.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="guidelines")
    language = models.CharField(_("language"), max_length=35)
    number = models.PositiveIntegerField()
    text = models.TextField(_("text"))
    examples = models.JSONField(default=list, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["campaign", "language", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["campaign", "language", "number"], name="guideline_number_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.language} v{self.number}"


class Acknowledgement(models.Model):
    """An annotator has confirmed that they read a version of the guidelines."""

    guideline = models.ForeignKey(Guideline, on_delete=models.PROTECT, related_name="acknowledgements")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["guideline", "annotator"], name="acknowledgement_once"),
        ]


class QualificationRule(models.Model):
    """What a campaign asks of its annotators. Shares are from 0 to 1; an exam of 0 items means that there is none.

    `tolerance` counts steps of the scale. `valid_days`: how long a passed exam counts; None: for ever. `seed` decides
    which items an exam has, and when controls and repeats come.
    """

    class Matching(models.TextChoices):
        EXACT = "exact", _("The same score")
        TOLERANCE = "tolerance", _("A score within the tolerance")

    _share = (MinValueValidator(0), MaxValueValidator(1))

    campaign = models.OneToOneField(Campaign, on_delete=models.CASCADE, related_name="qualification_rule")
    training = models.BooleanField(default=True)
    exam_items = models.PositiveSmallIntegerField(default=0)
    matching = models.CharField(max_length=9, choices=Matching, default=Matching.EXACT)
    tolerance = models.FloatField(default=1, validators=[MinValueValidator(0)])
    threshold = models.FloatField(default=0.7, validators=_share)
    attempts = models.PositiveSmallIntegerField(default=2)
    wait_hours = models.PositiveIntegerField(default=24)
    valid_days = models.PositiveIntegerField(null=True)
    control_rate = models.FloatField(default=0, validators=_share)
    repeat_rate = models.FloatField(default=0, validators=_share)
    control_threshold = models.FloatField(default=0.7, validators=_share)
    fewest_controls = models.PositiveSmallIntegerField(default=5)
    seed = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(threshold__range=(0, 1), control_threshold__range=(0, 1)), name="qualification_thresholds"
            ),
            models.CheckConstraint(
                condition=Q(control_rate__gte=0, repeat_rate__gte=0)
                & Q(control_rate__lte=0.5, repeat_rate__lte=0.5, tolerance__gte=0),
                name="qualification_rates",
            ),
            models.CheckConstraint(condition=Q(attempts__gte=1, fewest_controls__gte=1), name="qualification_counts"),
            models.CheckConstraint(condition=Q(matching__in=["exact", "tolerance"]), name="qualification_matching"),
        ]


class ReferenceItem(models.Model):
    """An item of a campaign with reference scores, for one purpose only; no duty gets it as an ordinary item."""

    class Purpose(models.TextChoices):
        TRAINING = "training", _("Training")
        EXAM = "exam", _("Exam")
        CONTROL = "control", _("Control")

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="reference_items")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    purpose = models.CharField(max_length=8, choices=Purpose)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["campaign", "purpose", "item__ordinal"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["campaign", "item"], name="reference_item_once"),
            models.CheckConstraint(
                condition=Q(purpose__in=["training", "exam", "control"]), name="reference_item_purpose"
            ),
        ]

    def __str__(self) -> str:
        return str(self.item.external_id)


class ReferenceScore(models.Model):
    """The reference score of one criterion; no score means N/A. Scores from `lowest` to `highest` are accepted, too."""

    reference = models.ForeignKey(ReferenceItem, on_delete=models.CASCADE, related_name="scores")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    score = models.FloatField(null=True)
    lowest = models.FloatField(null=True)
    highest = models.FloatField(null=True)
    explanation = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["reference", "criterion__position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["reference", "criterion"], name="reference_score_once"),
            models.CheckConstraint(
                condition=Q(lowest=None, highest=None)
                | Q(score__isnull=False, lowest__lte=models.F("score"), highest__gte=models.F("score")),
                name="reference_score_range",
            ),
        ]


class ExamAttempt(models.Model):
    """One attempt of an annotator at a duty's exam, in force until `expires_at` once `passed`."""

    duty = models.ForeignKey(Duty, on_delete=models.CASCADE, related_name="exam_attempts")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    number = models.PositiveSmallIntegerField()
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)
    passed = models.BooleanField(null=True)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["duty", "annotator", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["duty", "annotator", "number"], name="exam_attempt_number"),
            models.UniqueConstraint(
                fields=["duty", "annotator"], condition=Q(finished_at=None), name="exam_attempt_open_once"
            ),
            models.CheckConstraint(
                condition=Q(finished_at=None, passed=None) | Q(finished_at__isnull=False, passed__isnull=False),
                name="exam_attempt_finished",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.annotator} · {self.duty}"


class ExamItem(models.Model):
    """An item of an attempt, in its order, and the assignment that the annotator got for it."""

    attempt = models.ForeignKey(ExamAttempt, on_delete=models.CASCADE, related_name="items")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField()
    assignment = models.OneToOneField(Assignment, null=True, on_delete=models.CASCADE, related_name="+")

    class Meta:
        ordering: ClassVar = ["attempt", "position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["attempt", "item"], name="exam_item_once"),
        ]


class MismatchReview(models.Model):
    """What was said and decided about a score that does not match its reference: contested by the annotator, or
    looked at by a lead, who accepts it (it counts as a match) or not."""

    class State(models.TextChoices):
        CONTESTED = "contested", _("Waiting for a decision")
        ACCEPTED = "accepted", _("Accepted")
        REJECTED = "rejected", _("Not accepted")

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="mismatch_reviews")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=9, choices=State)
    objection = models.TextField(blank=True)
    contested_at = models.DateTimeField(null=True)
    note = models.TextField(blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["assignment", "criterion"], name="mismatch_review_once"),
            models.CheckConstraint(
                condition=Q(state="contested", decided_at=None)
                | Q(state__in=["accepted", "rejected"], decided_at__isnull=False),
                name="mismatch_review_decided",
            ),
        ]


class ControlPause(models.Model):
    """An annotator's work in a duty is paused, because their controls matched too seldom. `matched` (the mean share of
    matching criteria over `controls` items) and `upper` (the upper end of its interval) are those of that time."""

    duty = models.ForeignKey(Duty, on_delete=models.CASCADE, related_name="control_pauses")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    paused_at = models.DateTimeField(default=timezone.now)
    controls = models.PositiveIntegerField()
    matched = models.FloatField()
    upper = models.FloatField()
    reinstated_at = models.DateTimeField(null=True)
    reinstated_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    note = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["-paused_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["duty", "annotator"], condition=Q(reinstated_at=None), name="control_pause_open_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.annotator} · {self.duty}"
