"""What imports need beside themselves: files on their way in, what a dry run came to, mappings kept under a name."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import SIGHTED, Project, User
from annotation.models.corpus import Intake


class UploadQuerySet(models.QuerySet["Upload"]):
    def visible_to(self, user: User) -> UploadQuerySet:
        """One's own, as long as one may import into the project."""
        return self.filter(created_by=user, project__memberships__user=user, project__memberships__role__in=SIGHTED)


class Upload(models.Model):
    """A file on its way in, appended to chunk by chunk; an intake takes it over once it is whole.

    Only who began it sees it. ``sha256`` is known when ``received`` has reached ``size``.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    key = models.UUIDField(default=uuid4, unique=True, editable=False)
    name = models.CharField(max_length=255)
    size = models.BigIntegerField()
    received = models.BigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    content = models.FileField(upload_to="intakes/%Y/%m/")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    changed_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = UploadQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(received__gte=0) & models.Q(received__lte=models.F("size")), name="upload_fits"
            )
        ]

    @property
    def is_whole(self) -> bool:
        """Whether every byte is here."""
        return bool(self.sha256)


class DryRun(models.Model):
    """What storing a large intake would come to, as its page shows it; ``asked`` is the digest of what it answers."""

    intake = models.OneToOneField(Intake, on_delete=models.CASCADE, related_name="dry_run")
    asked = models.CharField(max_length=64)
    seen = models.JSONField(default=dict)
    made_at = models.DateTimeField(default=timezone.now, editable=False)


class SavedMappingQuerySet(models.QuerySet["SavedMapping"]):
    def visible_to(self, user: User) -> SavedMappingQuerySet:
        """Of the projects into which this person may import."""
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)


class SavedMapping(models.Model):
    """A mapping that a project keeps under a name, for the next file of the same make."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    kind = models.CharField(max_length=10, choices=Intake.Kind)
    mapping = models.JSONField(default=dict)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = SavedMappingQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["kind", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "kind", "name"], name="saved_mapping_name_unique"),
            models.CheckConstraint(
                condition=models.Q(kind__in=["dataset", "ratings", "verdicts"]), name="saved_mapping_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name
