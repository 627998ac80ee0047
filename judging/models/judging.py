"""Judges, their runs, and every reply that was paid for."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import SIGHTED, HasJob, Project, User
from annotation.models import Campaign, Criterion, Dataset, Import, Item, ItemSelection, RubricVersion
from judging.models.asking import LeasedRow, PaidAttempt, PaidRow


class ProviderAllowance(models.Model):
    """The operator's permission for a project to use a provider that costs money, with caps on its spending.

    An empty cap means no limit. A simulated provider needs no allowance.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    provider = models.CharField(_("provider"), max_length=80)
    cap_total = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    cap_per_day = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["project", "provider"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "provider"], name="allowance_once"),
            models.CheckConstraint(
                condition=(Q(cap_total=None) | Q(cap_total__gte=0)) & (Q(cap_per_day=None) | Q(cap_per_day__gte=0)),
                name="allowance_caps_not_negative",
            ),
        ]


class StoredProvider(models.Model):
    """A provider that the operator declared on a page, by the API or by a command (judging/providers.py).

    `api` is the kind of its API. `key_variable` is the name of the environment variable with its key: the key itself is
    stored nowhere. `prices` and `batch_prices` are JSON objects: by model, USD for a million tokens in and out. A
    removed provider is kept with `removed_at`: judges contain its name, which must not get another address.
    """

    name = models.CharField(_("name"), max_length=80, unique=True)
    base_url = models.CharField(_("address"), max_length=500)
    api = models.CharField(max_length=20, default="openai", db_default="openai")
    key_variable = models.CharField(max_length=100, blank=True)
    prices = models.JSONField(default=dict)
    batch_prices = models.JSONField(default=dict)
    batches = models.BooleanField(default=False)
    requests_per_minute = models.BigIntegerField(null=True)
    tokens_per_minute = models.BigIntegerField(null=True)
    timeout = models.PositiveSmallIntegerField(null=True)
    tries = models.PositiveSmallIntegerField(null=True)
    concurrency = models.PositiveSmallIntegerField(null=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    removed_at = models.DateTimeField(null=True)
    models = models.JSONField(default=list)  # the last field: below it, `models` is no module

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class ProviderTest(models.Model):
    """One call that tests how an endpoint answers, outside of any project. Only the worker that sets `started_at` sends
    it, so it is sent once.

    `result`: the served model, the form of the reply, the stated limits, tokens and cost; or the `reason` why there is
    no reply.
    """

    provider = models.CharField(_("provider"), max_length=80)
    model = models.CharField(_("provider model"), max_length=160)
    result = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"{self.provider}, {self.model}"


class ProviderListing(models.Model):
    """The models that an endpoint lists itself, as a worker read them last, or the `reason` why there is no list."""

    provider = models.CharField(max_length=80, unique=True)
    names = models.JSONField(default=list)
    reason = models.CharField(max_length=400, blank=True)
    asked_at = models.DateTimeField(default=timezone.now)
    listed_at = models.DateTimeField(null=True)


class JudgeTrialQuerySet(models.QuerySet["JudgeTrial"]):
    def visible_to(self, user: User) -> JudgeTrialQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)


class JudgeTrial(PaidRow):
    """One call of a judge that is not saved yet, about one item: the request with what it may cost, and the reply.

    `series`: the calls that were asked for together. `digest`: that of the judge. `verdicts`: what was read, by
    criterion; `is_read`: whether a score was among it, None as long as nothing came. `material`: the keys of the item
    and the rubric version, or of the study; without an item, the built-in specimen. `parameters`: the judge's, with a
    limit on the tokens of the reply.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    series = models.UUIDField(db_index=True)
    digest = models.CharField(max_length=64)
    provider = models.CharField(_("provider"), max_length=80)
    model = models.CharField(_("provider model"), max_length=160)
    parameters = models.JSONField(default=dict)
    variant = models.JSONField(default=dict)
    material = models.JSONField(default=dict)
    about = models.CharField(max_length=300, blank=True)
    verdicts = models.JSONField(default=list)
    is_read = models.BooleanField(null=True)
    served_model = models.CharField(max_length=160, blank=True)
    seconds = models.FloatField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    sent_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = JudgeTrialQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["pk"]
        indexes: ClassVar = [models.Index(fields=["project", "digest", "-id"], name="trial_of_judge")]

    def __str__(self) -> str:
        return f"{self.provider}, {self.model}"


class JudgeQuerySet(models.QuerySet["Judge"]):
    def visible_to(self, user: User) -> JudgeQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)

    def only_in_designs(self) -> JudgeQuerySet:
        """The judges that are cells of designs and have no run but those of designs: lists leave them out."""
        cells = DesignCell.objects.filter(judge=OuterRef("pk"))
        own = JudgeRun.objects.filter(judge=OuterRef("pk"), design=None)
        return self.filter(Exists(cells), ~Exists(own))


class Judge(models.Model):
    """Endpoint, provider model, prompt variant and parameters. Never changed: a changed judge is a new judge.

    `digest` covers everything that can change a verdict. An imported judge has no `provider`. How long a reply may
    take (`timeout`, seconds), how often a call is tried and how many are in flight at most (`concurrency`) change no
    verdict and may be set anew; empty, they are the provider's. A judge that an alignment or a design made of another
    one has that as its `parent`.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    provider = models.CharField(_("provider"), max_length=80, blank=True)
    model = models.CharField(_("provider model"), max_length=160)
    parameters = models.JSONField(_("parameters"), default=dict)
    variant = models.JSONField(_("prompt variant"), default=dict)
    simulated = models.BooleanField(default=False)
    timeout = models.PositiveSmallIntegerField(_("seconds for a reply"), null=True)
    tries = models.PositiveSmallIntegerField(_("tries"), null=True)
    concurrency = models.PositiveSmallIntegerField(_("most calls at the same time"), null=True)
    digest = models.CharField(max_length=64)
    parent = models.ForeignKey("self", null=True, editable=False, on_delete=models.PROTECT, related_name="children")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = JudgeQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="judge_name_unique"),
            models.UniqueConstraint(fields=["project", "digest"], name="judge_digest_unique"),
        ]

    def __str__(self) -> str:
        return self.name

    def ancestry(self) -> list[Judge]:
        """The judges that this one was made from, the nearest first; a query for each."""
        found: list[Judge] = []
        made_from = self.parent_id
        while made_from is not None:
            found.append(Judge.objects.get(pk=made_from))
            made_from = found[-1].parent_id
        return found


class ModelCapability(models.Model):
    """What a provider's model has refused by name, so that it is not sent again: formats of a reply, parameters.

    This is learnt from its errors, for all projects; after a while it is tried again (judging/asking/endpoints.py).
    """

    provider = models.CharField(max_length=80)
    model = models.CharField(max_length=160)
    refused = models.JSONField(default=list)
    learnt_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["provider", "model"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["provider", "model"], name="capability_once")]


class JudgeDesignQuerySet(models.QuerySet["JudgeDesign"]):
    def visible_to(self, user: User) -> JudgeDesignQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)


class JudgeDesign(models.Model):
    """A factorial of judges, prompt factors and parameters over the same items: a run for every combination.

    `selection`: the items, all of the dataset without one. `factors`: by name, the levels; every combination of them is
    a cell. `budget` caps all runs together, the pilot's included. `jury`: the rule by which its judges count as one
    more rater, empty for none.
    """

    class Jury(models.TextChoices):
        MAJORITY = "majority", _("Majority (a tie gives no score)")
        MEDIAN = "median", _("Median")
        MEAN = "mean", _("Mean")
        MINIMUM = "minimum", _("Minimum")

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="+")
    selection = models.ForeignKey(ItemSelection, null=True, on_delete=models.PROTECT, related_name="+")
    factors = models.JSONField(default=dict)
    repeats = models.PositiveSmallIntegerField(default=1)
    budget = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    jury = models.CharField(max_length=8, choices=Jury, blank=True)
    started_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = JudgeDesignQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="design_name_unique"),
            models.CheckConstraint(condition=Q(repeats__gte=1), name="design_repeats_positive"),
            models.CheckConstraint(condition=Q(budget=None) | Q(budget__gte=0), name="design_budget_not_negative"),
        ]

    def __str__(self) -> str:
        return self.name


class DesignCell(models.Model):
    """One combination of a design's levels (`levels`, by factor) and the judge that it makes."""

    design = models.ForeignKey(JudgeDesign, on_delete=models.CASCADE, related_name="cells")
    position = models.PositiveSmallIntegerField()
    levels = models.JSONField(default=dict)
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["design", "position"], name="design_cell_position_unique"),
            models.UniqueConstraint(fields=["design", "judge"], name="design_cell_judge_unique"),
        ]


class AlignmentQuerySet(models.QuerySet["Alignment"]):
    def visible_to(self, user: User) -> AlignmentQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)


class Alignment(models.Model):
    """Versions of one judge compared with the panel's labels, which are split once: `tuning` and the locked `test`.

    Everything that the figures depend on is stated before: `seed` and `share` of the split, the `measure`, the
    `confidence` and how many `looks_allowed` there are at the locked split. `budget` caps all its runs and proposals.
    A closed alignment can't make new versions or take looks.
    """

    class Measure(models.TextChoices):
        ACCURACY = "accuracy", _("Exact agreement with the reference label")
        CLOSENESS = "closeness", _("1 less the mean distance, as a share of the scale")

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+")
    base = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="+")
    seed = models.BigIntegerField()
    share = models.FloatField()
    looks_allowed = models.PositiveSmallIntegerField()
    measure = models.CharField(max_length=9, choices=Measure, default=Measure.ACCURACY)
    confidence = models.FloatField(default=0.95)
    budget = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    tuning = models.ForeignKey(ItemSelection, on_delete=models.PROTECT, related_name="+")
    test = models.ForeignKey(ItemSelection, on_delete=models.PROTECT, related_name="+")
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = AlignmentQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="alignment_name_unique"),
            models.CheckConstraint(condition=Q(looks_allowed__gte=1), name="alignment_looks_positive"),
            models.CheckConstraint(condition=Q(share__gt=0, share__lt=1), name="alignment_share_inside"),
            models.CheckConstraint(condition=Q(budget=None) | Q(budget__gte=0), name="alignment_budget_not_negative"),
        ]

    def __str__(self) -> str:
        return self.name


class AlignmentSearch(HasJob):
    """A search over examples and versions, a step at a time; `reason` says why it ended before its last step."""

    class Method(models.TextChoices):
        RANDOM = "random", _("Random: versions with random examples")
        GREEDY = "greedy", _("Greedy: one more example for the best version so far")

    alignment = models.ForeignKey(Alignment, on_delete=models.PROTECT, related_name="searches")
    method = models.CharField(max_length=6, choices=Method)
    steps = models.PositiveSmallIntegerField()
    seed = models.BigIntegerField()
    reason = models.TextField(blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [models.CheckConstraint(condition=Q(steps__gte=1), name="search_steps_positive")]


class AlignmentCandidate(models.Model):
    """A version of the judge that an alignment scores on its tuning items, and where it comes from."""

    class Origin(models.TextChoices):
        BASE = "base", _("The judge as it was")
        EDIT = "edit", _("Edited")
        PROPOSAL = "proposal", _("Proposed by a model")
        SEARCH = "search", _("Found by a search")

    alignment = models.ForeignKey(Alignment, on_delete=models.PROTECT, related_name="candidates")
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="+")
    origin = models.CharField(max_length=8, choices=Origin)
    search = models.ForeignKey(AlignmentSearch, null=True, on_delete=models.PROTECT, related_name="candidates")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["alignment", "judge"], name="candidate_once")]


class AlignmentProposal(PaidRow, HasJob):
    """A version that a model was asked to write: the request, the reply, and the version made from it.

    A request that was sent and has no cost counts at its worst case. `reason` says why no version was made.
    """

    alignment = models.ForeignKey(Alignment, on_delete=models.PROTECT, related_name="proposals")
    parent = models.ForeignKey(AlignmentCandidate, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    provider = models.CharField(_("provider"), max_length=80)
    model = models.CharField(_("provider model"), max_length=160)
    parameters = models.JSONField(default=dict)
    sent_at = models.DateTimeField(null=True)
    candidate = models.OneToOneField(AlignmentCandidate, null=True, on_delete=models.PROTECT, related_name="proposal")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-pk"]


class AlignmentLook(models.Model):
    """One look at the locked split: counted before anything is asked. `result` is stored once, when all is answered."""

    alignment = models.ForeignKey(Alignment, on_delete=models.PROTECT, related_name="looks")
    number = models.PositiveSmallIntegerField()
    candidate = models.OneToOneField(AlignmentCandidate, on_delete=models.PROTECT, related_name="look")
    result = models.JSONField(null=True)
    taken_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    taken_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["alignment", "number"], name="look_number_unique"),
            models.CheckConstraint(condition=Q(number__gte=1), name="look_number_positive"),
        ]


class JudgeRunQuerySet(models.QuerySet["JudgeRun"]):
    def visible_to(self, user: User) -> JudgeRunQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)

    def ordinary(self) -> JudgeRunQuerySet:
        """The runs that figures use: without pilots of designs, audits and runs of alignments."""
        return self.filter(perturbation__isnull=True, is_pilot=False, alignment__isnull=True)

    def perturbed(self) -> JudgeRunQuerySet:
        """The audits, which ask about changed items too."""
        return self.filter(perturbation__isnull=False)


class JudgeRun(models.Model):
    """One judge over one dataset on one rubric version, so many repeats. Whether it has finished is a query.

    A run that `continues` one on an earlier version of the dataset asks only about the items that are new since: what
    was paid for there is not asked again, and the numbers read both (judging/runs.py). Replies of the judge's earlier
    runs to the same requests are used again, unless the run `pays_again`. A run over a `selection` asks only about its
    items. `key` makes starting it twice start it once; `width` is how many calls its last work session kept in flight,
    for the next to go on with. A run of a `design` is one of its cells; one that `is_pilot` asks a few calls
    beforehand, for the forecast, and enters no figure. A run of an `alignment` asks a version of its judge about the
    tuning items or, for a look, about the locked ones: only the alignment's own figures rest on it. A run `by_batch`
    hands its calls to the provider's batch API, for replies within a day at the price of batches. `prices` are those of
    its provider when it was started: it keeps them, whatever is declared later (judging/providers.py). The bills since
    `bills_from`, when it was resumed last, decide how many of its calls may be in flight (judging/calls.py).

    A run with a `perturbation` (its `changes`, `per_language`, `seed` and `rule`) is an audit of the judge: it asks
    about some items as they are and changed (judging/perturbed_runs.py). Its verdicts enter no figure but those of
    audits.
    """

    class State(models.TextChoices):
        RUNNING = "running", _("Running")
        PAUSED = "paused", _("Paused")
        CANCELLED = "cancelled", _("Cancelled")

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="runs")
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="+")
    selection = models.ForeignKey(ItemSelection, null=True, on_delete=models.PROTECT, related_name="+")
    repeats = models.PositiveSmallIntegerField(default=1)
    design = models.ForeignKey(JudgeDesign, null=True, on_delete=models.PROTECT, related_name="runs")
    is_pilot = models.BooleanField(default=False, db_default=False)
    by_batch = models.BooleanField(default=False, db_default=False)
    prices = models.JSONField(default=dict, db_default={})
    alignment = models.ForeignKey(Alignment, null=True, on_delete=models.PROTECT, related_name="runs")
    continues = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=9, choices=State, default=State.RUNNING)
    reason = models.CharField(max_length=400, blank=True)
    budget = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    pays_again = models.BooleanField(default=False, db_default=False)
    perturbation = models.JSONField(null=True)
    key = models.CharField(max_length=100, null=True)
    width = models.PositiveSmallIntegerField(null=True)
    bills_from = models.DateTimeField(null=True, editable=False)
    file_import = models.ForeignKey(Import, null=True, on_delete=models.PROTECT, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = JudgeRunQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(repeats__gte=1), name="run_repeats_positive"),
            models.UniqueConstraint(fields=["project", "key"], name="run_key_unique"),
            models.CheckConstraint(condition=Q(state__in=["running", "paused", "cancelled"]), name="run_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.judge.name} #{self.pk}"


class Call(LeasedRow):
    """One question to be put to the judge: an item, a repeat, and a criterion (or all of them, in a compound prompt).

    Rows are made when the run starts; the reply that settled a call is an attempt. A call that `repairs` an attempt
    waits to ask once more, for that reply could not be read. In an audit, `change` is the key of what is changed about
    the item or the request (judging/perturbation.py): the item itself stays as it is.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        LEASED = "leased", _("In progress")
        SETTLED = "settled", _("Finished")
        FAILED = "failed", _("Failed")

    run = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, related_name="calls")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(Criterion, null=True, on_delete=models.PROTECT, related_name="+")
    repeat = models.PositiveSmallIntegerField(default=1)
    change = models.CharField(max_length=40, blank=True, default="", db_default="")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    repairs = models.ForeignKey("Attempt", null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run", "item", "criterion", "repeat", "change"],
                condition=Q(criterion__isnull=False),
                name="call_once",
            ),
            models.UniqueConstraint(
                fields=["run", "item", "repeat", "change"], condition=Q(criterion=None), name="call_compound_once"
            ),
            models.CheckConstraint(
                condition=Q(state="leased", lease__isnull=False, leased_until__isnull=False)
                | (~Q(state="leased") & Q(lease=None, leased_until=None)),
                name="call_lease_whole",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["run", "id"], condition=Q(state="waiting"), name="call_queue"),
            models.Index(fields=["leased_until"], condition=Q(state="leased"), name="call_leases"),
            models.Index(fields=["run", "state"], name="call_by_state"),
        ]


class CallBatch(HasJob):
    """Calls of a run that the provider answers together: they are leased under `lease` until the batch has ended.

    `input_file` and `provider_batch` are the provider's names for what was uploaded and begun; `status` and `answered`
    are what it said last. `leaves_out`: what the model has refused, so that no request of it has that.
    """

    run = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, related_name="batches")
    lease = models.UUIDField(unique=True)
    calls = models.PositiveIntegerField(default=0)
    answered = models.PositiveIntegerField(default=0)
    leaves_out = models.JSONField(default=list)
    input_file = models.CharField(max_length=200, blank=True)
    provider_batch = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    sent_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run"], condition=Q(ended_at=None), name="batch_open_once")
        ]


class Attempt(PaidAttempt):
    """One request about a call.

    `reply_key` is a digest of everything that was sent, and the repeat: requests with the same key get the same reply.
    An attempt that was `reused_from` another attempt was not sent: it has the reply of the other, and cost nothing. A
    reused reply to the judge of user turns in a simulation has no such attempt: its key finds it there.
    """

    call = models.ForeignKey(Call, on_delete=models.PROTECT, related_name="attempts")
    reply_key = models.CharField(max_length=64, blank=True, default="", db_default="")
    reused_from = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["call", "number"], name="attempt_number_unique"),
            models.UniqueConstraint(
                fields=["call"], condition=Q(outcome__in=["pending", "sent"]), name="attempt_open_once"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["at"], name="attempt_by_time"),
            models.Index(fields=["reply_key"], condition=Q(outcome="replied"), name="attempt_reply_key"),
        ]


class Verdict(models.Model):
    """A judge's score on one criterion, or the reason there is none. A number off the scale is kept, for no mean.

    Where the reply has the probabilities of its tokens, `expected` is the mean of the scale's points by them, and
    `confidence` the probability of the score that was given. `change` is that of its call. `reason`: why there is no
    score on the scale (`replies.NoScore`), null where there is one, and of imported verdicts.
    """

    class Status(models.TextChoices):
        OK = "ok", _("Read")
        UNPARSED = "unparsed", _("Unreadable")
        OUT_OF_RANGE = "out_of_range", _("Off the scale")
        REFUSED = "refused", _("Refused")
        TRUNCATED = "truncated", _("Cut off")
        ERROR = "error", _("Error")

    run = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, related_name="verdicts")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    repeat = models.PositiveSmallIntegerField(default=1)
    change = models.CharField(max_length=40, blank=True, default="", db_default="")
    status = models.CharField(max_length=12, choices=Status)
    score = models.FloatField(null=True)
    applicable = models.BooleanField(default=True)
    fractional = models.BooleanField(default=False)
    coerced = models.CharField(max_length=80, blank=True)
    rationale = models.TextField(blank=True)
    expected = models.FloatField(null=True)
    confidence = models.FloatField(null=True)
    reason = models.JSONField(null=True)
    attempt = models.ForeignKey(Attempt, null=True, on_delete=models.PROTECT, related_name="verdicts")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "item", "criterion", "repeat", "change"], name="verdict_once"),
            models.CheckConstraint(
                condition=Q(status="ok", applicable=True, score__isnull=False)
                | Q(status="ok", applicable=False, score=None)
                | Q(status="out_of_range", score__isnull=False)
                | (~Q(status__in=["ok", "out_of_range"]) & Q(score=None)),
                name="verdict_score_fits_status",
            ),
        ]


class ErrorTagQuerySet(models.QuerySet["ErrorTag"]):
    def visible_to(self, user: User) -> ErrorTagQuerySet:
        memberships = "verdict__run__project__memberships"
        return self.filter(**{f"{memberships}__user": user, f"{memberships}__role__in": SIGHTED})


class ErrorTag(models.Model):
    """Why a verdict is wrong, in a few words of a person who has read it; a verdict may have several."""

    verdict = models.ForeignKey(Verdict, on_delete=models.PROTECT, related_name="error_tags")
    text = models.CharField(max_length=60)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ErrorTagQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["verdict", "text"], name="error_tag_once")]

    def __str__(self) -> str:
        return self.text
