"""Curated datasets: how the items of a dataset were chosen out of another one."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import SIGHTED, User
from annotation.models.content import Dataset, Item


class CurationQuerySet(models.QuerySet["Curation"]):
    def visible_to(self, user: User) -> CurationQuerySet:
        return self.filter(dataset__project__memberships__user=user, dataset__project__memberships__role__in=SIGHTED)


class Curation(models.Model):
    """How the items of `dataset` were chosen out of those of `source`. It never changes.

    `rule` is what was asked for and, with `seed`, gives the same items again from the same verdicts. `certificate`:
    what there was, the distributions before and after, and how far a judge's errors can bias the set
    (docs/curation.md).
    """

    dataset = models.OneToOneField(Dataset, on_delete=models.CASCADE, related_name="curation")
    source = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="+")
    rule = models.JSONField(default=dict)
    seed = models.BigIntegerField()
    certificate = models.JSONField(default=dict)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = CurationQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return str(self.dataset)


class CuratedItem(models.Model):
    """An item of a curated dataset, and the probability with which the draw chose it out of the pool.

    Items that were chosen for balance have no probability.
    """

    curation = models.ForeignKey(Curation, on_delete=models.CASCADE, related_name="chosen")
    item = models.OneToOneField(Item, on_delete=models.CASCADE, related_name="+")
    probability = models.FloatField(null=True)
    stratum = models.CharField(max_length=400, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(probability=None) | Q(probability__gt=0, probability__lte=1),
                name="curated_item_probability",
            ),
        ]
