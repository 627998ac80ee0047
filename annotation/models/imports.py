"""Imports, their files, resumable uploads, dry runs, and the saved mappings of a project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, ClassVar, NamedTuple, cast
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import SIGHTED, HasJob, Project, User
from annotation.readers import File, Mapping, is_compressed

AT_ONCE = 2**20  # bytes; larger imports are read and stored by a worker


class Import(HasJob):
    """One import: its files, their mapping, and a report of the rows stored, merged, refused and flagged.

    ``unread``: what the uploader has specified (kind, mapping, target) for files that a worker still has to open; else
    NULL. Imports of one upload share a ``batch``. The imports created by a study's import are ``part_of`` it. ``job``
    is the newest job that checks, stores or undoes it.
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
        UNDOING = "undoing", _("Being undone")
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
                condition=models.Q(state__in=["uploaded", "checking", "storing", "stored", "undoing", "failed"]),
                name="import_state_known",
            ),
        ]

    def get_absolute_url(self) -> str:
        """Its page; judging has those of verdicts and of whole studies."""
        pages: dict[str, str] = {Import.Kind.VERDICTS: "verdict_import", Import.Kind.STUDY: "study_import"}
        return reverse(pages.get(self.kind, "import"), args=[self.project.slug, self.pk])

    def column_mapping(self) -> Mapping:
        """The mapping that it keeps."""
        return Mapping.from_dict(self.mapping)

    @contextmanager
    def opened(self) -> Iterator[list[File]]:
        """Its files, open for reading, in the order in which they came."""
        with opened_files(self.files.order_by("pk")) as kept:
            yield [stored.file for stored in kept]

    def is_packed(self) -> bool:
        """Whether small files of it may unfold to large ones, so that only workers open them."""
        names = ImportFile.objects.filter(file_import=self.pk).values_list("name", flat=True)
        return self.mapping.get("format") in ("xlsx", "parquet") or any(map(is_compressed, names))

    def is_large(self) -> bool:
        """Whether an import is read in the background, because a page would load too long.

        Workbooks and archives always are, because a small one can expand to a lot of data. So is a study: its check
        stores everything and rolls it back. A rubric never is.
        """
        if self.unread is not None or self.kind == self.Kind.STUDY or self.is_packed():
            return True
        if self.kind == self.Kind.RUBRIC:
            return False
        return (self.files.aggregate(size=models.Sum("size"))["size"] or 0) > AT_ONCE


class ImportFile(models.Model):
    """One uploaded file of an import, stored unchanged."""

    file_import = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=255)
    content = models.FileField(upload_to="imports/%Y/%m/")
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)


class KeptFile(NamedTuple):
    """A file that the media directory holds: open for reading, its name there, its size and SHA-256."""

    file: File
    content: str
    size: int
    sha256: str


@contextmanager
def opened_files(rows: Iterable[ImportFile | Upload]) -> Iterator[list[KeptFile]]:
    """Files that the media directory holds, open for reading, so that an import can take them over."""
    with ExitStack() as stack:
        yield [
            KeptFile(
                (row.name, cast(BinaryIO, stack.enter_context(row.content.open("rb")))),
                str(row.content.name),
                row.size,
                row.sha256,
            )
            for row in rows
        ]


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
