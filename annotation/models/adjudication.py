"""Records that belong to ratings: evidence spans, adjudications, decisions of calibration meetings, closing
questionnaires, and rates of pay.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import SIGHTED, User
from annotation.models.campaign import Annotator, Campaign, Duty, Rating
from annotation.models.content import Criterion, Item, RubricVersion


class AdjudicationQuerySet(models.QuerySet["Adjudication"]):
    def visible_to(self, user: User) -> AdjudicationQuerySet:
        return self.filter(campaign__project__memberships__user=user, campaign__project__memberships__role__in=SIGHTED)


class Adjudication(models.Model):
    """What an adjudicator decided for one item and criterion. Append-only: the newest row counts, ratings never change.

    `seen`: the ratings that they saw, each ``{"rater", "revision", "status", "score"}``. `digest`: the digest of these;
    it differs from the digest of the present ratings if one of them has changed. `order`: the order of the queue.
    `key`: identifies one submission, which may decide several criteria; a repeated submission stores nothing.
    """

    class Status(models.TextChoices):
        SCORED = "scored", _("Scored")
        NOT_APPLICABLE = "na", _("Not applicable")

    class Cause(models.TextChoices):
        MISREAD_RUBRIC = "misread_rubric", _("Rubric misread")
        MISREAD_DIALOGUE = "misread_dialogue", _("Dialogue misread")
        SLIP = "slip", _("Slip: another score was meant")
        AMBIGUOUS_RUBRIC = "ambiguous_rubric", _("Rubric ambiguous")
        AMBIGUOUS_DIALOGUE = "ambiguous_dialogue", _("Dialogue ambiguous")
        STANDARDS = "standards", _("Different standards")
        LANGUAGE = "language", _("Language or variety")
        OTHER = "other", _("Something else")

    class Order(models.TextChoices):
        RANGE = "range", _("Range of the scores")
        ENTROPY = "entropy", _("Entropy of the scores")
        APPLICABILITY = "na", _("Score against N/A")
        CRITICAL = "critical", _("Disputed critical mark")
        JUDGE = "judge", _("Distance of a judge")

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="+")
    status = models.CharField(max_length=6, choices=Status, default=Status.SCORED)
    score = models.FloatField(null=True)
    cause = models.CharField(max_length=18, choices=Cause, blank=True)
    cause_note = models.CharField(max_length=300, blank=True)
    rationale = models.TextField(blank=True)
    seen = models.JSONField(default=list)
    digest = models.CharField(max_length=64)
    order = models.CharField(max_length=8, choices=Order, blank=True)
    adjudicator = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    key = models.UUIDField()
    at = models.DateTimeField(default=timezone.now)

    objects = AdjudicationQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["pk"]
        indexes: ClassVar = [models.Index(fields=["campaign", "item", "criterion"], name="adjudication_of_item")]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["key", "criterion"], name="adjudication_once"),
            models.CheckConstraint(
                condition=Q(status="scored", score__isnull=False) | Q(status="na", score=None),
                name="adjudication_score_fits_status",
            ),
            models.CheckConstraint(
                condition=Q(score=None) | Q(score__lte=1e12, score__gte=-1e12), name="adjudication_score_finite"
            ),
        ]


class MeetingDecision(models.Model):
    """What a panel's calibration meeting decided on a criterion, and how the guidelines change. Append-only.

    `item`: the discussed dialogue; None if the decision is about the criterion in general.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(Criterion, null=True, on_delete=models.PROTECT, related_name="+")
    item = models.ForeignKey(Item, null=True, on_delete=models.PROTECT, related_name="+")
    held_on = models.DateField(_("date of the meeting"))
    decision = models.TextField(_("decision"))
    guideline_change = models.TextField(_("change of the guidelines"), blank=True)
    recorded_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    recorded_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["-held_on", "-pk"]


class ClosingAnswer(models.Model):
    """What an annotator answered to the closing questionnaire of a campaign, once. Leads see it only in groups.

    `language`: the language of their panels in the campaign; "" if the panels have several languages, or none.
    `answers`: by the key of a criterion, ``{"difficulty": 1 to 5 or null, "confidence": 1 to 5 or null}``.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="+", db_index=False)
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    language = models.CharField(max_length=35, blank=True)
    answers = models.JSONField(default=dict)
    comment = models.CharField(max_length=2000, blank=True)
    answered_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["campaign", "annotator"], name="closing_answer_once"),
        ]


class PayRate(models.Model):
    """What a duty's annotators are paid, in USD: for an hour of active work, or for each item."""

    class Unit(models.TextChoices):
        HOUR = "hour", _("Hour")
        ITEM = "item", _("Item")

    duty = models.OneToOneField(Duty, on_delete=models.CASCADE, related_name="pay_rate")
    unit = models.CharField(max_length=4, choices=Unit)
    amount = models.DecimalField(max_digits=10, decimal_places=4)
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    set_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(unit__in=["hour", "item"]), name="pay_rate_unit_known"),
            models.CheckConstraint(condition=Q(amount__gte=0), name="pay_rate_not_negative"),
        ]


class EvidenceSpan(models.Model):
    """A marked text of a turn (from 0) or of a named field, attached to one rating. Append-only, as its rating is.

    Offsets are Unicode code points of the stored text, half-open; `quote` is that text (docs/evidence.md). `label` and
    `severity` come from imported studies of errors.
    """

    rating = models.ForeignKey(Rating, on_delete=models.PROTECT, related_name="evidence")
    turn = models.PositiveIntegerField(null=True)
    field = models.CharField(max_length=60, blank=True)
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    quote = models.TextField()
    label = models.CharField(max_length=120, blank=True)
    severity = models.CharField(max_length=120, blank=True)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=(Q(turn=None) & ~Q(field="")) | Q(turn__isnull=False, field=""), name="evidence_in_one_text"
            ),
            models.CheckConstraint(condition=Q(start__lt=F("end")), name="evidence_not_empty"),
            models.UniqueConstraint(
                fields=["rating", "turn", "start", "end", "label", "severity"],
                condition=Q(turn__isnull=False),
                name="evidence_once_in_turn",
            ),
            models.UniqueConstraint(
                fields=["rating", "field", "start", "end", "label", "severity"],
                condition=Q(turn=None),
                name="evidence_once_in_field",
            ),
        ]

    def __str__(self) -> str:
        return self.quote
