"""Taxonomies: which items are rated on which criteria, by which panel, by how many of its annotators."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from accounts.models import SIGHTED, Project, User
from annotation.models.content import spoken


class TaxonomyQuerySet(models.QuerySet["Taxonomy"]):
    def visible_to(self, user: User) -> TaxonomyQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)


class Taxonomy(models.Model):
    """One version of a taxonomy: tasks, styles, groups of criteria, and the rules that combine them. It never changes;
    `document` is the canonical JSON form of its file (docs/taxonomies.md)."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    key = models.SlugField(max_length=60)
    number = models.PositiveIntegerField()
    document = models.JSONField()
    digest = models.CharField(max_length=64)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = TaxonomyQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["key", "-number"]
        verbose_name_plural = "taxonomies"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "key", "number"], name="taxonomy_number_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.key} v{self.number}"

    def name(self, language: str = "en") -> str:
        """The taxonomy's name in ``language`` or its nearest fallback."""
        return spoken(self.document["name"], language, self.document["source_language"]) or self.key
