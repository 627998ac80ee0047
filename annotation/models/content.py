"""What is rated, and by which rubric: imports with their files, datasets with their items, rubrics."""

from __future__ import annotations

from collections import abc
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NamedTuple, cast
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.inputs import without_nul
from accounts.models import SIGHTED, HasJob, Project, Role, User
from analytics.stats.core.identifiers import normal_identifier, spellings_of
from annotation.blinding import heading_of, lay_out
from annotation.readers import File, Mapping, is_compressed, is_on_scale, plain_number
from annotation.whole_item import AskedAs, asked_as

if TYPE_CHECKING:
    from analytics.stats.core.scales import Level, Scale

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

    # What is stored later may be about what is earlier; a study is by itself.
    STORING_ORDER = (Kind.STUDY, Kind.RUBRIC, Kind.DATASET, Kind.RATINGS, Kind.VERDICTS)

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

    def siblings(self) -> list[Import]:
        """The other imports of the same upload, in the order in which they are stored."""
        if self.batch is None:
            return []
        together = Import.objects.filter(project=self.project_id, batch=self.batch).exclude(pk=self.pk)
        return sorted(together.prefetch_related("files"), key=lambda sibling: Import.STORING_ORDER.index(sibling.kind))

    def default_name(self) -> str:
        """A dataset is called after its first file unless somebody says otherwise."""
        first = self.files.order_by("pk").first()
        return (PurePath(first.name).stem if first else "")[:120] or "Dataset"

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


# --- datasets and items: named, versioned, frozen once ready ---------------------------------------------------------
class DatasetQuerySet(models.QuerySet["Dataset"]):
    def visible_to(self, user: User) -> DatasetQuerySet:
        """Ready datasets of the projects in which the user is a lead or a researcher."""
        return self.ready().filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)

    def ready(self) -> DatasetQuerySet:
        return self.filter(state=Dataset.State.READY)

    def parts_of(self, dataset: Dataset) -> DatasetQuerySet:
        """This version and the versions that it extends: together they have its items."""
        return self.filter(pk=dataset.pk) if dataset.extends_id is None else self.filter(wholes=dataset)

    def holding(self, dataset: Dataset) -> DatasetQuerySet:
        """The ready versions that contain all items of this one, latest first; this version is last."""
        return self.ready().filter(parts=dataset).order_by("-pk")

    def sized(self) -> DatasetQuerySet:
        """Annotated with `items_count` and `languages` (number of items and of languages, over all parts) and `added`
        (number of items that this version adds)."""
        own = models.Q(parts=models.F("pk"))
        return self.annotate(
            items_count=models.Count("parts__items"),
            added=models.Count("parts__items", filter=own),
            languages=models.Count("parts__items__language", distinct=True),
        )


class Dataset(models.Model):
    """One version of a dataset. Its items never change. It is invisible while `loading`; the sweep deletes an abandoned
    one.

    A version that `extends` an earlier version has the items of that version (the same rows), then its own. `parts` are
    the versions whose own items it consists of, including itself; they are set when it becomes ready, and
    `Item.objects.of` reads them. `staged_at`: when items were last inserted. `names_shown`: the generators' names that
    annotators and judges would see (`blinding.find_generator_names`), NULL until they are searched.
    """

    class State(models.TextChoices):
        LOADING = "loading", _("Loading")
        READY = "ready", _("Ready")

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    version = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=8, choices=State, default=State.LOADING)
    staged_at = models.DateTimeField(default=timezone.now, editable=False)
    derived_from = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    extends = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    parts: models.ManyToManyField[Dataset, Any] = models.ManyToManyField(
        "self", symmetrical=False, related_name="wholes", editable=False
    )
    allocatable = models.BooleanField(default=True)
    layout = models.JSONField(default=dict, blank=True)
    licence = models.CharField(max_length=200, blank=True)
    names_shown = models.JSONField(null=True, editable=False)
    simulated = models.BooleanField(default=False)
    file_import = models.ForeignKey(Import, null=True, on_delete=models.PROTECT, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = DatasetQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name", "-version"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name", "version"], name="dataset_version_unique"),
            models.CheckConstraint(condition=models.Q(state__in=["loading", "ready"]), name="dataset_state_known"),
            # A version is extended at most once: of two appends at the same time, only one becomes ready.
            models.UniqueConstraint(
                fields=["extends"], condition=models.Q(state="ready"), name="dataset_extended_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class DatasetCheckupQuerySet(models.QuerySet["DatasetCheckup"]):
    def visible_to(self, user: User) -> DatasetCheckupQuerySet:
        """Of the datasets that the user may see: leads and researchers only, so that nothing here reaches a rater."""
        return self.filter(dataset__in=Dataset.objects.visible_to(user))


class DatasetCheckup(HasJob):
    """What the newest check-up of a dataset found (`checkup.checking.CheckedDataset`); NULL until one has ended.

    `rules` is the version of the checks and `digest` that of the items. `asked`: what the job has to do; empty for a
    check-up, else the version to make (`checkups.LeftOut`). `made_from`: of a dataset that leaves out what was found in
    the one that it is derived from, how it was made.
    """

    dataset = models.OneToOneField(Dataset, on_delete=models.CASCADE, related_name="checkup")
    result = models.JSONField(null=True)
    rules = models.PositiveIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True)
    checked_at = models.DateTimeField(null=True)
    asked = models.JSONField(default=dict)
    made_from = models.JSONField(default=dict)

    objects = DatasetCheckupQuerySet.as_manager()

    class Meta:
        verbose_name = _("check-up")
        verbose_name_plural = _("check-ups")

    def __str__(self) -> str:
        return str(self.dataset)


ITEM_FILTERS = ("language", "generator", "scenario")


class ItemQuerySet(models.QuerySet["Item"]):
    def visible_to(self, user: User) -> ItemQuerySet:
        """Items of ready datasets, for leads and researchers. Annotators see items only through their assignments."""
        return self.filter(dataset__in=Dataset.objects.visible_to(user))

    def of(self, dataset: Dataset) -> ItemQuerySet:
        """The items of a version in order; items of the versions that it extends come first."""
        if dataset.extends_id is None:  # its own only: the index on (dataset, ordinal) has them in order
            return self.filter(dataset=dataset).order_by("ordinal")
        parts = Dataset.parts.through._default_manager.filter(from_dataset=dataset)
        return self.filter(dataset__in=parts.values("to_dataset")).order_by("ordinal")

    def matching(self, filters: abc.Mapping[str, str]) -> ItemQuerySet:
        """Items with these values of language, generator and scenario, and with the text ``q`` in their turns, fields,
        title or id."""
        plain = {name: without_nul(text).strip() for name, text in filters.items()}
        spelt = {name: spellings_of([normal_identifier(text)]) for name, text in plain.items() if text}
        matching = self.filter(**{f"{name}__in": spelt[name] for name in ITEM_FILTERS if name in spelt})
        if "q" not in spelt:
            return matching
        words = {"turns_text": Cast("turns", models.TextField()), "fields_text": Cast("fields", models.TextField())}
        inside = models.Q()
        for text in sorted(spelt["q"]):
            for field in (*words, "title", "external_id"):
                inside |= models.Q(**{f"{field}__icontains": text})
        return matching.annotate(**words).filter(inside)


class Item(models.Model):
    """The unit that is rated: turns and / or named fields, in one language, by one generator. It never changes.

    `dataset` is the version that added it; `ordinal` is its position, from 0, in every version that contains it.
    `turns` is a list of ``{"speaker": str, "name"?: str, "text": str}``, 0-based; `fields` maps a field's name to its
    text (or, for `passages`, a list of texts).
    """

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="items")
    external_id = models.CharField(max_length=200)
    ordinal = models.PositiveIntegerField()
    language = models.CharField(max_length=35)
    generator = models.CharField(max_length=120, blank=True)
    scenario = models.CharField(max_length=200, blank=True)
    title = models.TextField(blank=True)
    turns = models.JSONField(default=list)
    fields = models.JSONField(default=dict)
    attributes = models.JSONField(default=dict)
    content_warning = models.TextField(blank=True)
    digest = models.CharField(max_length=64)

    objects = ItemQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["dataset", "ordinal"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["dataset", "external_id"], name="item_id_unique"),
            models.UniqueConstraint(fields=["dataset", "ordinal"], name="item_ordinal_unique"),
        ]
        indexes: ClassVar = [models.Index(fields=["dataset", "language"], name="item_by_language")]

    @property
    def heading(self) -> str:
        """What people call the item: its title, else the first words that its dataset's layout shows."""
        return heading_of(self.title, lay_out(fields=self.fields, turns=self.turns, layout=self.dataset.layout))

    @property
    def cluster(self) -> str:
        """The unit of resampling: the scenario if the item has one, else the item itself (METHODS 0)."""
        return self.scenario or self.external_id


# --- rubrics: versioned, immutable once published --------------------------------------------------------------------
class RubricQuerySet(models.QuerySet["Rubric"]):
    def visible_to(self, user: User) -> RubricQuerySet:
        return self.filter(project__memberships__user=user)


class Rubric(models.Model):
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    key = models.SlugField(max_length=60)

    objects = RubricQuerySet.as_manager()

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

    @property
    def asked(self) -> dict[str, AskedAs]:
        """How each question about the whole item is asked: none, optional or required."""
        return asked_as(self.document)

    @property
    def scales(self) -> dict[str, Scale]:
        """The declared scale of every criterion, by key."""
        return {criterion.key: criterion.declared_scale for criterion in self.criteria.all()}

    def name(self, language: str = "en") -> str:
        """The rubric's name in ``language`` or its nearest fallback."""
        return spoken(self.document["name"], language, self.document["source_language"]) or self.rubric.key

    def name_tag(self, language: str) -> str:
        """The language of `name`."""
        return spoken_tag(self.document["name"], language, self.document["source_language"]) or language


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

    class EvidenceRule(models.TextChoices):
        NONE = "none", _("None")
        OPTIONAL = "optional", _("Optional")
        REQUIRED = "required", _("Required below the best point")

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
    evidence_rule = models.CharField(max_length=8, choices=EvidenceRule, default=EvidenceRule.OPTIONAL)
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
    def declared_scale(self) -> Scale:
        """The scale as statistics read it: its points, the steps between its ends, or any number between them."""
        from analytics.stats.core.scales import Scale, range_scale

        level = cast("Level", self.level)
        if self.points:
            declared = Scale(points=tuple(sorted(self.values)), level=level)
        else:
            declared = range_scale(self.minimum, self.maximum, self.step, level)
        return replace(declared, lower_is_better=self.direction == self.Direction.LOWER)

    @property
    def labels(self) -> dict[float | None, str]:
        """Map each point to its label in the rubric's source language; points without a label are left out."""
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

    def tag_of(self, part: str, language: str) -> str:
        """The language that `says` answers in: another one where the part has no text in ``language``."""
        return spoken_tag(self.text.get(part), language, self.text.get("source_language", "en")) or language

    def tags_of_point(self, value: float, language: str) -> tuple[str, str]:
        """The languages in which `label` and `anchor` answer for a point."""
        source = self.text.get("source_language", "en")
        labels = next((point.get("label") for point in self.points if float(point["value"]) == value), None)
        anchors = {float(point): words for point, words in (self.text.get("anchors") or {}).items()}
        chosen = (spoken_tag(texts, language, source) or language for texts in (labels, anchors.get(value)))
        label, anchor = chosen
        return label, anchor

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
    tag = spoken_tag(texts, language, source)
    return texts[tag] if tag else texts


def spoken_tag(texts: Any, language: str, source: str) -> str:
    """The language of the entry that `spoken` chooses; "" if ``texts`` is not by language, or empty."""
    if not isinstance(texts, dict) or not texts:
        return ""
    base = language.partition("-")[0]
    near = next((tag for tag in texts if tag.partition("-")[0] == base), None)
    return str(next((tag for tag in (language, base, near, source) if tag in texts), next(iter(texts))))
