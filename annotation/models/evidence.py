"""Evidence spans: what annotators mark in a text to explain a score."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from annotation.models.campaign import Rating


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
