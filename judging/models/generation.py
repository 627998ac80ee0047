"""Generation plans: what is to be written, by which models, and every request that was paid for it.

A plan whose spec is of the kind `conversation` is a simulation: a user model talks with the generators, turn by turn.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import SIGHTED, HasJob, Project, User
from annotation.models import Dataset, Item, RubricVersion
from judging.models.asking import LeasedRow, PaidAttempt
from judging.models.judging import Judge


class GenerationPlanQuerySet(models.QuerySet["GenerationPlan"]):
    def visible_to(self, user: User) -> GenerationPlanQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)


class GenerationPlan(HasJob):
    """What is to be written: a spec, frozen here, for a number of families, in these languages, by these generators.

    `seed` decides the parameters of every family. While `only_examples` is set, only the first families are asked
    (judging/generation/plans.py EXAMPLES). `bills_from` is when it was resumed last: the bills since then decide how
    many requests may be in flight. Whether it has finished is a query.

    In a simulation, `utterance_judge` may judge every user turn by `utterance_rubric` before a generator sees it.
    A plan of translations has a `source` dataset: its families are items of that in `source_language`. Its job stores
    many texts as a dataset, as `storing` asks for.
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
    source = models.ForeignKey(Dataset, null=True, on_delete=models.PROTECT, related_name="+")
    answers_to = models.ForeignKey(Dataset, null=True, on_delete=models.PROTECT, related_name="+")
    source_language = models.CharField(max_length=35, blank=True, default="", db_default="")
    families_planned = models.PositiveIntegerField()
    repeats = models.PositiveSmallIntegerField(default=1)
    seed = models.BigIntegerField()
    budget = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    state = models.CharField(max_length=9, choices=State, default=State.DRAFT)
    reason = models.CharField(max_length=400, blank=True)
    only_examples = models.BooleanField(default=True)
    bills_from = models.DateTimeField(null=True, editable=False)
    utterance_judge = models.ForeignKey(Judge, null=True, on_delete=models.PROTECT, related_name="+")
    utterance_rubric = models.ForeignKey(RubricVersion, null=True, on_delete=models.PROTECT, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True)
    storing = models.JSONField(null=True, editable=False)

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
            models.CheckConstraint(
                condition=Q(utterance_judge=None, utterance_rubric=None)
                | Q(utterance_judge__isnull=False, utterance_rubric__isnull=False),
                name="plan_judge_has_rubric",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_simulation(self) -> bool:
        """Whether its texts are conversations of user models with the generators."""
        return bool(self.spec.get("kind") == "conversation")

    @property
    def writers(self) -> models.QuerySet[PlanGenerator]:
        """The generators of its items: without user models, and without the utterance judge."""
        return self.generators.filter(role=PlanGenerator.Role.GENERATOR)

    @property
    def user_models(self) -> models.QuerySet[PlanGenerator]:
        """The models that write the user's turns of a simulation."""
        return self.generators.filter(role=PlanGenerator.Role.USER_MODEL)


class PlanGenerator(models.Model):
    """A model that writes every family of a plan, with its parameters; its `name` is the generator of the items.

    A simulation also has a row for each user model, and one for its utterance judge, with the judge's parameters: so
    that caps, prices and widths are those of every model that it asks.

    `prices` are those of its provider when the plan was started: it keeps them. `width` is how many requests its last
    work session kept in flight. What its provider declares of timeout, tries and concurrency holds.
    """

    class Role(models.TextChoices):
        GENERATOR = "generator", _("Generator")
        USER_MODEL = "user_model", _("User model")
        UTTERANCE_JUDGE = "utterance_judge", _("Utterance judge")

    plan = models.ForeignKey(GenerationPlan, on_delete=models.PROTECT, related_name="generators")
    role = models.CharField(
        _("role"), max_length=15, choices=Role, default=Role.GENERATOR, db_default=Role.GENERATOR.value
    )
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
            models.UniqueConstraint(fields=["plan", "role", "name"], name="generator_name_unique"),
        ]

    def __str__(self) -> str:
        return self.name


class GenerationFamily(models.Model):
    """One scenario of a plan: its number, from 1, and the parameters that were drawn for it, the same in every
    language; in a plan of translations, the `source` item that is translated. In a plan that `answers_to` a
    dataset, it is a prompt of that, with the `scenario` of the item, and written in its `language` only."""

    plan = models.ForeignKey(GenerationPlan, on_delete=models.PROTECT, related_name="families")
    number = models.PositiveIntegerField()
    parameters = models.JSONField(default=dict)
    source = models.ForeignKey(Item, null=True, on_delete=models.PROTECT, related_name="+")
    scenario = models.CharField(max_length=200, blank=True, default="", db_default="")
    language = models.CharField(max_length=35, blank=True, default="", db_default="")

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["plan", "number"], name="family_number_unique")]


class TextManager(models.Manager["Realisation"]):
    """The texts that were planned, without the openings that the conversations of a simulation share."""

    def get_queryset(self) -> models.QuerySet[Realisation]:
        return super().get_queryset().filter(is_opening=False)


class Realisation(LeasedRow):
    """A family in one language by one generator, one repeat of it: written, or given up with the reasons.

    `turns` and `fields` are as in an item. `problems` are those of the last reply that was discarded, told back to the
    model when it is asked again; `discarded` counts such replies. A person may decide to `keep` it or set it aside.
    `item` is what it was stored as last. `plan` is that of the family and of the generator.

    A conversation of a simulation has a `simulator`, which writes the user's turns. `step` is its next request, and
    `turn` the number of the user turn, from 0, that this request is about; `draft` is an utterance that waits for its
    verdict, and `refused_tries` counts the discarded replies to this step (of an utterance, the refusals of the judge
    too). Its first turn is that of its `opening`, a row that all generators share: `is_opening`, by the simulator
    itself. `ended` says how the conversation ended. The engine sets aside a conversation with faults that can't be
    asked for again: `ended` is then `set_aside`, `problems` has the faults, and nobody is `decided_by`.
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

    class Step(models.TextChoices):
        NONE = "", _("A text is written by one request")
        OPENING = "opening", _("Waits for its first turn")
        UTTERANCE = "utterance", _("User turn")
        VERDICT = "verdict", _("Verdict on the user turn")
        ANSWER = "answer", _("Answer")

    class Ended(models.TextChoices):
        NONE = "", _("Not ended")
        STOPPED = "stopped", _("The user ended it")
        USER_TURNS = "user_turns", _("It has as many user turns as it may have")
        TOO_MANY_REFUSALS = "too_many_refusals", _("Every try of a user turn was refused")
        SET_ASIDE = "set_aside", _("A fault was found that sets it aside")

    plan = models.ForeignKey(GenerationPlan, on_delete=models.PROTECT, related_name="realisations")
    family = models.ForeignKey(GenerationFamily, on_delete=models.PROTECT, related_name="realisations")
    language = models.CharField(max_length=35)
    generator = models.ForeignKey(PlanGenerator, on_delete=models.PROTECT, related_name="realisations")
    simulator = models.ForeignKey(PlanGenerator, null=True, on_delete=models.PROTECT, related_name="conversations")
    repeat = models.PositiveSmallIntegerField(default=1)
    opening = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="conversations")
    is_opening = models.BooleanField(default=False, db_default=False)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    step = models.CharField(max_length=9, choices=Step, blank=True, default=Step.NONE, db_default="")
    turn = models.PositiveSmallIntegerField(default=0, db_default=0)
    draft = models.TextField(blank=True, default="", db_default="")
    refused_tries = models.PositiveSmallIntegerField(default=0, db_default=0)
    ended = models.CharField(max_length=17, choices=Ended, blank=True, default=Ended.NONE, db_default="")
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

    objects = TextManager()
    everything: ClassVar[models.Manager[Realisation]] = models.Manager()

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["family", "language", "generator", "repeat"],
                condition=Q(simulator=None),
                name="realisation_once",
            ),
            models.UniqueConstraint(
                fields=["family", "language", "generator", "simulator", "repeat"],
                condition=Q(simulator__isnull=False),
                name="conversation_once",
            ),
            models.CheckConstraint(
                condition=Q(state="leased", lease__isnull=False, leased_until__isnull=False)
                | (~Q(state="leased") & Q(lease=None, leased_until=None)),
                name="realisation_lease_whole",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["generator", "id"], condition=Q(state="waiting"), name="realisation_queue"),
            models.Index(
                fields=["plan", "family", "id"], condition=Q(state="waiting") & ~Q(step=""), name="conversation_queue"
            ),
            models.Index(fields=["leased_until"], condition=Q(state="leased"), name="realisation_leases"),
            models.Index(fields=["plan", "state"], name="realisation_by_state"),
        ]

    @property
    def discarded_replies(self) -> int:
        """How many replies were discarded for it, those for a first turn that it shares too."""
        return self.discarded + (self.opening.discarded if self.opening else 0)


READ_VERDICT = Q(problems=[]) | Q(problems__0__code="refused_by_judge")
"""The verdicts on user turns that could be read: the turn was accepted, or refused by the judge."""


class GenerationAttempt(PaidAttempt):
    """One request for a realisation, to a `model` of a `provider`. `problems`: why its reply was discarded, as `{code,
    values}`; empty if it was not.

    Of a conversation: `step` is opening, utterance, verdict or answer, `turn` the number of the user turn, from 0, and
    `text` the utterance that was written or judged, without the stop mark. `reply_key` of a verdict is as in `Attempt`.
    """

    realisation = models.ForeignKey(Realisation, on_delete=models.PROTECT, related_name="attempts")
    provider = models.CharField(max_length=80, blank=True, default="", db_default="")
    model = models.CharField(max_length=160, blank=True, default="", db_default="")
    step = models.CharField(max_length=9, choices=Realisation.Step, blank=True, default="", db_default="")
    turn = models.PositiveSmallIntegerField(default=0, db_default=0)
    text = models.TextField(blank=True, default="", db_default="")
    reply_key = models.CharField(max_length=64, blank=True, default="", db_default="")
    problems = models.JSONField(default=list)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["realisation", "number"], name="generation_number_unique"),
            models.UniqueConstraint(
                fields=["realisation"], condition=Q(outcome__in=["pending", "sent"]), name="generation_open_once"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["at"], name="generation_by_time"),
            models.Index(fields=["reply_key"], condition=~Q(reply_key=""), name="generation_verdict_key"),
        ]


class PlanDataset(models.Model):
    """A dataset in which the texts of a plan were stored, and which of them (`only`)."""

    class Only(models.TextChoices):
        WHOLE = "whole", _("Whole families only")
        ALL = "all", _("All written texts")
        EVERY = "every", _("All written texts, also those that were set aside")

    plan = models.ForeignKey(GenerationPlan, on_delete=models.PROTECT, related_name="datasets")
    dataset = models.OneToOneField(Dataset, on_delete=models.PROTECT, related_name="+")
    only = models.CharField(max_length=5, choices=Only)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["pk"]
