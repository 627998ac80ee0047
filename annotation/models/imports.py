"""Imports, their files, resumable uploads, dry runs, and the saved mappings of a project."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import SIGHTED, HasJob, Project, User


class Import(HasJob):
    """One import: its files, their mapping, and a report of the rows stored, merged, refused and flagged.

    ``unread``: what the uploader has specified (kind, mapping, target) for files that a worker still has to open; else
    NULL. Imports of one upload share a ``batch``. The imports created by a study's import are ``part_of`` it. ``job``
    is the newest job that checks or stores it.
    """

    class Kind(models.TextChoices):
        DATASET = "dataset", _("Dataset")
        RUBRIC = "rubric", _("Rubric")
        RATINGS = "ratings", _("Ratings")
        VERDICTS = "verdicts", _("Verdicts")
        STUDY = "study", _("A whole study")

    class State(models.TextChoices):
        UPLOADED = "uploaded", _("Uploaded")
        CHECKING = "checking", _("Being checked")
        STORING = "storing", _("Being stored")
        STORED = "stored", _("Stored")
        FAILED = "failed", _("Failed")

    class Access(models.QuerySet["Import"]):
        def visible_to(self, user: User) -> Import.Access:
            return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=10, choices=Kind)
    state = models.CharField(max_length=10, choices=State, default=State.UPLOADED)
    target = models.JSONField(default=dict)
    mapping = models.JSONField(default=dict)
    unread = models.JSONField(null=True, editable=False)
    report = models.JSONField(default=dict)
    batch = models.UUIDField(null=True, editable=False, db_index=True)
    part_of = models.ForeignKey("self", null=True, editable=False, on_delete=models.PROTECT, related_name="parts")
    state_since = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = Access.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [models.Index(fields=["project", "-id"], name="import_by_project")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(kind__in=["dataset", "rubric", "ratings", "verdicts", "study"]),
                name="import_kind_known",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["uploaded", "checking", "storing", "stored", "failed"]),
                name="import_state_known",
            ),
        ]


class ImportFile(models.Model):
    """One uploaded file of an import, stored unchanged."""

    file_import = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=255)
    content = models.FileField(upload_to="imports/%Y/%m/")
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)


class UploadQuerySet(models.QuerySet["Upload"]):
    def visible_to(self, user: User) -> UploadQuerySet:
        """The user's own uploads in projects in which they may import."""
        return self.filter(created_by=user, project__memberships__user=user, project__memberships__role__in=SIGHTED)


class Upload(models.Model):
    """A file that is being uploaded in chunks. A complete upload can be imported.

    Only its uploader sees it. ``sha256`` is set when ``received`` equals ``size``.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    key = models.UUIDField(default=uuid4, unique=True, editable=False)
    name = models.CharField(max_length=255)
    size = models.BigIntegerField()
    received = models.BigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    content = models.FileField(upload_to="imports/%Y/%m/")
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
        """Whether every byte was received."""
        return bool(self.sha256)


class DryRun(models.Model):
    """The result of the check of a large import, as its page shows it. ``asked`` is a digest of the files, the mapping
    and the target that were checked."""

    file_import = models.OneToOneField(Import, on_delete=models.CASCADE, related_name="dry_run")
    asked = models.CharField(max_length=64)
    seen = models.JSONField(default=dict)
    made_at = models.DateTimeField(default=timezone.now, editable=False)


class SavedMappingQuerySet(models.QuerySet["SavedMapping"]):
    def visible_to(self, user: User) -> SavedMappingQuerySet:
        """Mappings of the projects in which the user may import."""
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)


class SavedMapping(models.Model):
    """A mapping saved under a name, for later files with the same columns."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    kind = models.CharField(max_length=10, choices=Import.Kind)
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
