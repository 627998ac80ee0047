"""What was computed, from what, by which code, and who outside may read it."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from accounts.models import Role, User
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


class ShareQuerySet(models.QuerySet["Share"]):
    def visible_to(self, user: User) -> ShareQuerySet:
        return self.filter(campaign__project__memberships__user=user, campaign__project__memberships__role=Role.LEAD)

    def live(self) -> ShareQuerySet:
        ends = models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now())
        return self.filter(ends, revoked_at=None)


class Share(models.Model):
    """A link that lets whoever holds it read one campaign's numbers. Only the digest of its secret is stored."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+")
    label = models.CharField(max_length=120)
    digest = models.CharField(max_length=64)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    objects = ShareQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["digest"], name="share_digest_unique")]

    def __str__(self) -> str:
        return self.label
