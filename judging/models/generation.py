"""Generation plans: what is to be written, by which models, and every request that was paid for it."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import SIGHTED, Project, User
from annotation.models import Dataset, Item
from judging.models.asking import LeasedRow, PaidAttempt


class GenerationPlanQuerySet(models.QuerySet["GenerationPlan"]):
    def visible_to(self, user: User) -> GenerationPlanQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)


class GenerationPlan(models.Model):
    """What is to be written: a spec, frozen here, for a number of families, in these languages, by these generators.

    `seed` decides the parameters of every family. While `only_examples` is set, only the first families are asked
    (judging/generation/plans.py EXAMPLES). `bills_from` is when it was resumed last: the bills since then decide how
    many requests may be in flight. Whether it has finished is a query.
    """

    class State(models.TextChoices):
        DRAFT = "draft", _("Draft")
        RUNNING = "running", _("Running")
        PAUSED = "paused", _("Paused")
        CANCELLED = "cancelled", _("Cancelled")

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    spec = models.JSONField(default=dict)
    spec_digest = models.CharField(max_length=64)
    languages = models.JSONField(default=list)
    families_planned = models.PositiveIntegerField()
    repeats = models.PositiveSmallIntegerField(default=1)
    seed = models.BigIntegerField()
    budget = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    state = models.CharField(max_length=9, choices=State, default=State.DRAFT)
    reason = models.CharField(max_length=400, blank=True)
    only_examples = models.BooleanField(default=True)
    bills_from = models.DateTimeField(null=True, editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True)

    objects = GenerationPlanQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="plan_name_unique"),
            models.CheckConstraint(condition=Q(repeats__gte=1), name="plan_repeats_positive"),
            models.CheckConstraint(condition=Q(families_planned__gte=1), name="plan_families_positive"),
            models.CheckConstraint(condition=Q(budget=None) | Q(budget__gte=0), name="plan_budget_not_negative"),
            models.CheckConstraint(
                condition=Q(state__in=["draft", "running", "paused", "cancelled"]), name="plan_state_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PlanGenerator(models.Model):
    """A model that writes every family of a plan, with its parameters; its `name` is the generator of the items.

    `prices` are those of its provider when the plan was started: it keeps them. `width` is how many requests its last
    work session kept in flight. What its provider declares of timeout, tries and concurrency holds.
    """

    plan = models.ForeignKey(GenerationPlan, on_delete=models.PROTECT, related_name="generators")
    position = models.PositiveSmallIntegerField()
    name = models.CharField(_("name"), max_length=120)
    provider = models.CharField(_("provider"), max_length=80)
    model = models.CharField(_("provider model"), max_length=160)
    parameters = models.JSONField(_("parameters"), default=dict)
    prices = models.JSONField(default=dict)
    width = models.PositiveSmallIntegerField(null=True)

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["plan", "position"], name="generator_position_unique"),
            models.UniqueConstraint(fields=["plan", "name"], name="generator_name_unique"),
        ]

    def __str__(self) -> str:
        return self.name


class GenerationFamily(models.Model):
    """One scenario of a plan: its number, from 1, and the parameters that were drawn for it, the same in every
    language."""

    plan = models.ForeignKey(GenerationPlan, on_delete=models.PROTECT, related_name="families")
    number = models.PositiveIntegerField()
    parameters = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["plan", "number"], name="family_number_unique")]


class Realisation(LeasedRow):
    """A family in one language by one generator, one repeat of it: written, or given up with the reasons.

    `turns` and `fields` are as in an item. `problems` are those of the last reply that was discarded, told back to the
    model when it is asked again; `discarded` counts such replies. A person may decide to `keep` it or set it aside.
    `item` is what it was stored as last. `plan` is that of the family and of the generator.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        LEASED = "leased", _("In progress")
        WRITTEN = "written", _("Written")
        GIVEN_UP = "given_up", _("Ended without a text")

    class Decision(models.TextChoices):
        NONE = "", _("No decision")
        KEEP = "keep", _("Keep")
        SET_ASIDE = "set_aside", _("Set aside")

    plan = models.ForeignKey(GenerationPlan, on_delete=models.PROTECT, related_name="realisations")
    family = models.ForeignKey(GenerationFamily, on_delete=models.PROTECT, related_name="realisations")
    language = models.CharField(max_length=35)
    generator = models.ForeignKey(PlanGenerator, on_delete=models.PROTECT, related_name="realisations")
    repeat = models.PositiveSmallIntegerField(default=1)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    discarded = models.PositiveSmallIntegerField(default=0)
    problems = models.JSONField(default=list)
    reason = models.CharField(max_length=400, blank=True)
    turns = models.JSONField(default=list)
    fields = models.JSONField(default=dict)
    decision = models.CharField(max_length=9, choices=Decision, blank=True, default=Decision.NONE)
    decision_reason = models.TextField(blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField(null=True)
    item = models.ForeignKey(Item, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["family", "language", "generator", "repeat"], name="realisation_once"),
            models.CheckConstraint(
                condition=Q(state="leased", lease__isnull=False, leased_until__isnull=False)
                | (~Q(state="leased") & Q(lease=None, leased_until=None)),
                name="realisation_lease_whole",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["generator", "id"], condition=Q(state="waiting"), name="realisation_queue"),
            models.Index(fields=["leased_until"], condition=Q(state="leased"), name="realisation_leases"),
            models.Index(fields=["plan", "state"], name="realisation_by_state"),
        ]


class GenerationAttempt(PaidAttempt):
    """One request for a realisation. `problems`: why its reply was discarded, as `{code, values}`; empty if it was
    not."""

    realisation = models.ForeignKey(Realisation, on_delete=models.PROTECT, related_name="attempts")
    problems = models.JSONField(default=list)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["realisation", "number"], name="generation_number_unique"),
            models.UniqueConstraint(
                fields=["realisation"], condition=Q(outcome__in=["pending", "sent"]), name="generation_open_once"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["at"], name="generation_by_time")]


class PlanDataset(models.Model):
    """A dataset in which the texts of a plan were stored, and which of them (`only`)."""

    class Only(models.TextChoices):
        WHOLE = "whole", _("Whole families only")
        ALL = "all", _("All written texts")

    plan = models.ForeignKey(GenerationPlan, on_delete=models.PROTECT, related_name="datasets")
    dataset = models.OneToOneField(Dataset, on_delete=models.PROTECT, related_name="+")
    only = models.CharField(max_length=5, choices=Only)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["pk"]
