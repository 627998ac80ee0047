"""Rubrics: versioned, and immutable once published."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Project, Role, User
from annotation.readers import is_on_scale, plain_number


class Rubric(models.Model):
    class Access(models.QuerySet["Rubric"]):
        def visible_to(self, user: User) -> Rubric.Access:
            return self.filter(project__memberships__user=user)

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    key = models.SlugField(max_length=60)

    objects = Access.as_manager()

    class Meta:
        ordering: ClassVar = ["key"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "key"], name="rubric_key_unique")]

    def __str__(self) -> str:
        return self.key


class RubricVersionQuerySet(models.QuerySet["RubricVersion"]):
    def visible_to(self, user: User) -> RubricVersionQuerySet:
        """Published versions for every member of the project; drafts for leads and researchers."""
        drafting = Project.objects.filter(memberships__user=user, memberships__role__in=(Role.LEAD, Role.RESEARCHER))
        mine = self.filter(rubric__project__in=Project.objects.visible_to(user))
        return mine.filter(models.Q(state=RubricVersion.State.PUBLISHED) | models.Q(rubric__project__in=drafting))

    def published(self) -> RubricVersionQuerySet:
        return self.filter(state=RubricVersion.State.PUBLISHED)


class RubricVersion(models.Model):
    """One version of a rubric; `document` is the canonical JSON form of its file (docs/formats.md)."""

    class State(models.TextChoices):
        DRAFT = "draft", _("Draft")
        PUBLISHED = "published", _("Published")

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    document = models.JSONField()
    digest = models.CharField(max_length=64)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    published_at = models.DateTimeField(null=True)

    objects = RubricVersionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["rubric", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rubric", "number"], name="rubric_number_unique"),
            models.CheckConstraint(
                condition=models.Q(state="draft", published_at=None)
                | models.Q(state="published", published_at__isnull=False),
                name="rubric_published_has_date",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rubric.key} v{self.number}"

    def name(self, language: str = "en") -> str:
        """The rubric's name in ``language`` or its nearest fallback."""
        return spoken(self.document["name"], language, self.document["source_language"]) or self.rubric.key


class Criterion(models.Model):
    """One criterion of one rubric version. `points` are ``[{"value": number, "label": {language: text}}]``, in order.
    A long interval scale has no points, only `minimum`, `maximum` and `step`. `text` is the criterion's part of the
    rubric document: name, question, definition, anchors, mark_if, dont_mark_if and examples, by language.
    """

    class Level(models.TextChoices):
        NOMINAL = "nominal", _("Nominal")
        ORDINAL = "ordinal", _("Ordinal")
        INTERVAL = "interval", _("Interval")

    class RationaleRule(models.TextChoices):
        NEVER = "never", _("Never")
        OPTIONAL = "optional", _("Optional")
        REQUIRED = "required", _("Required")
        REQUIRED_EXCEPT_BEST = "required_except_best", _("Required below the best point")

    class Direction(models.TextChoices):
        HIGHER = "higher_is_better", _("Higher is better")
        LOWER = "lower_is_better", _("Lower is better")
        NONE = "none", _("Neither")

    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="criteria")
    key = models.SlugField(max_length=60)
    position = models.PositiveSmallIntegerField()
    level = models.CharField(max_length=8, choices=Level)
    points = models.JSONField(default=list)
    minimum = models.FloatField()
    maximum = models.FloatField()
    step = models.FloatField(null=True)
    not_applicable = models.BooleanField(default=False)
    rationale_rule = models.CharField(max_length=20, choices=RationaleRule, default=RationaleRule.OPTIONAL)
    rationale_words = models.PositiveSmallIntegerField(default=0)
    group = models.CharField(max_length=12, default="general")
    speaker = models.CharField(max_length=60, blank=True)
    panel_hint = models.CharField(max_length=120, blank=True)
    direction = models.CharField(max_length=16, choices=Direction, default=Direction.HIGHER)
    text = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["rubric_version", "position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rubric_version", "key"], name="criterion_key_unique"),
            models.UniqueConstraint(fields=["rubric_version", "position"], name="criterion_position_unique"),
            models.CheckConstraint(condition=models.Q(minimum__lt=models.F("maximum")), name="criterion_scale_wide"),
            models.CheckConstraint(
                condition=models.Q(level__in=["nominal", "ordinal", "interval"]), name="criterion_level_known"
            ),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def values(self) -> tuple[float, ...]:
        """The points of the scale, in order; empty for a scale that has only a minimum and a maximum."""
        return tuple(float(point["value"]) for point in self.points)

    @property
    def scale(self) -> list[float] | dict[str, float]:
        """The scale as exports write it: the points in order, or minimum, maximum and the step if there is one."""
        if self.points:
            return [plain_number(value) for value in self.values]
        step = {} if self.step is None else {"step": plain_number(self.step)}
        return {"min": plain_number(self.minimum), "max": plain_number(self.maximum), **step}

    @property
    def labels(self) -> dict[float | None, str]:
        """By point, its label in the rubric's source language; points without a label are left out."""
        source = self.text.get("source_language", "en")
        return {value: label for value in self.values if (label := self.label(value, source))}

    @property
    def best(self) -> float | None:
        """The best point of the scale; None if neither direction is better."""
        return {"higher_is_better": self.maximum, "lower_is_better": self.minimum}.get(self.direction)

    @property
    def is_critical(self) -> bool:
        """Whether the worst point stops the rest of the assignment."""
        return self.group == "critical"

    def says(self, part: str, language: str) -> Any:
        """A text of the criterion (``name``, ``question`` and so on) in ``language``, else in the source language."""
        return spoken(self.text.get(part), language, self.text.get("source_language", "en"))

    def anchor(self, value: float, language: str) -> dict[str, str]:
        """The anchor of one point in ``language``: ``{"text", "reason"}``, both "" if there is none."""
        anchors = {float(point): words for point, words in (self.text.get("anchors") or {}).items()}
        words = spoken(anchors.get(value), language, self.text.get("source_language", "en")) or ""
        return {"text": words, "reason": ""} if isinstance(words, str) else {"reason": "", **words}

    def label(self, value: float, language: str) -> str:
        """The label of one point, such as "No"; "" if it has none."""
        labels = next((point.get("label") for point in self.points if float(point["value"]) == value), None)
        return spoken(labels, language, self.text.get("source_language", "en")) or ""

    def is_on_scale(self, score: float) -> bool:
        """Whether ``score`` is on the scale: one of the points, or minimum plus a whole number of steps, or (without a
        step) any number from minimum to maximum."""
        return is_on_scale(score, points=self.values, minimum=self.minimum, maximum=self.maximum, step=self.step)


def spoken(texts: Any, language: str, source: str) -> Any:
    """The entry of ``texts`` for ``language``: exact, then its base language, then the source language, then any."""
    if not isinstance(texts, dict) or not texts:
        return texts
    base = language.partition("-")[0]
    near = next((tag for tag in texts if tag.partition("-")[0] == base), None)
    for tag in (language, base, near, source):
        if tag in texts:
            return texts[tag]
    return next(iter(texts.values()))
