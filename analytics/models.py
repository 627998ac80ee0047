"""What was computed, from what, by which code."""

from typing import ClassVar

from django.db import models
from django.utils import timezone

from annotation.models import Campaign


class Snapshot(models.Model):
    """The estimates of one campaign at a `revision` of its annotations and verdicts, with how they were made."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+")
    revision = models.CharField(max_length=120)
    settings_digest = models.CharField(max_length=64)
    inputs_digest = models.CharField(max_length=64)
    seed = models.BigIntegerField()
    code_version = models.CharField(max_length=40)
    content = models.JSONField()
    seconds = models.FloatField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["campaign", "revision", "settings_digest", "code_version"], name="snapshot_once"
            )
        ]
