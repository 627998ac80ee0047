"""Datasets and their items: named, versioned, frozen once ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.inputs import without_nul
from accounts.models import SIGHTED, Project, User
from annotation.models.imports import Import


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

    def matching(self, filters: Mapping[str, str]) -> ItemQuerySet:
        """Items with these values of language, generator and scenario, and with the text ``q`` in their turns, fields,
        title or id."""
        plain = {name: without_nul(text) for name, text in filters.items()}
        matching = self.filter(**{name: plain[name] for name in ITEM_FILTERS if plain.get(name)})
        if not (text := plain.get("q", "").strip()):
            return matching
        words = {"turns_text": Cast("turns", models.TextField()), "fields_text": Cast("fields", models.TextField())}
        inside = models.Q(turns_text__icontains=text) | models.Q(fields_text__icontains=text)
        return matching.annotate(**words).filter(
            inside | models.Q(title__icontains=text) | models.Q(external_id__icontains=text)
        )


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
    def cluster(self) -> str:
        """The unit of resampling: the scenario if the item has one, else the item itself (METHODS 0)."""
        return self.scenario or self.external_id
