"""What was computed, from what, by which code, who outside may read it, and what goes out and in by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import SIGHTED, HasJob, Job, Project, Role, User
from analytics.stats.core.messages import MessageDecoder, coded_messages
from annotation.models import Campaign
from judging.models import Judge

BY_WORKER: dict[str, Callable[[Any, Callable[[int, int], None]], Iterator[bytes]]] = {}
"""The exports that only workers and commands write, because they compute: how, given an export and what hears the
progress. Registered when the app is loaded, under a name of `exports.FORMATS`."""


class RowsField(models.JSONField):
    """A JSON object of which the lists of rows (`estimates`, `counts`) are stored by columns, each text once.

    A quarter of the size; whoever reads it has the rows as they were, in the order of their fields, and rows that were
    stored as such stay readable. Messages keep their templates and values. For the database it is a `JSONField`.
    """

    PACKED = ("estimates", "counts")

    def __init__(self, **options: Any) -> None:
        super().__init__(decoder=MessageDecoder, **options)

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        del kwargs["decoder"]
        return name, "django.db.models.JSONField", args, kwargs

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if isinstance(value, dict):
            rows = {name: packed_rows(value[name]) for name in self.PACKED if isinstance(value.get(name), list)}
            value = {name: rows.get(name) or coded_messages(part) for name, part in value.items()}
        return super().get_db_prep_value(value, connection, prepared)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        found = super().from_db_value(value, expression, connection)
        if isinstance(found, dict):
            for name in self.PACKED:
                if isinstance(found.get(name), dict) and "shapes" in found[name]:
                    found[name] = list(unpacked_rows(found[name]))
        return found


def packed_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows by columns: `shapes`, the names that rows have; `of`, the shape of each row; and of each name its values in
    the order of the rows, or its distinct values with their codes.
    """
    shapes: dict[tuple[str, ...], int] = {}
    columns: dict[str, list[Any]] = {}
    of = [shapes.setdefault(tuple(row), len(shapes)) for row in rows]
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return {"shapes": list(map(list, shapes)), "of": of, "columns": {name: _coded(v) for name, v in columns.items()}}


def _coded(values: list[Any]) -> list[Any] | dict[str, list[Any]]:
    places: dict[tuple[type, str], int] = {}
    codes = [places.setdefault((type(value), repr(value)), len(places)) for value in values]
    if 2 * len(places) > len(values):
        return list(map(coded_messages, values))
    first = dict(zip(reversed(codes), reversed(values), strict=True))
    return {"values": [coded_messages(first[place]) for place in range(len(places))], "codes": codes}


def unpacked_rows(packed: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of `packed_rows`."""
    columns = {name: iter(_decoded(values)) for name, values in packed["columns"].items()}
    shapes = [[(name, columns[name]) for name in names] for names in packed["shapes"]]
    for shape in packed["of"]:
        yield {name: next(values) for name, values in shapes[shape]}


def _decoded(values: Any) -> Iterator[Any]:
    return map(values["values"].__getitem__, values["codes"]) if isinstance(values, dict) else iter(values)


class Snapshot(models.Model):
    """The estimates of one campaign at a `revision` of its annotations and verdicts, with how they were made."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+")
    revision = models.CharField(max_length=120)
    settings_digest = models.CharField(max_length=64)
    inputs_digest = models.CharField(max_length=64)
    seed = models.BigIntegerField()
    code_version = models.CharField(max_length=40)
    content = RowsField()
    seconds = models.FloatField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["campaign", "revision", "settings_digest", "code_version"], name="snapshot_once"
            )
        ]


class Chart(models.Model):
    """What a judge's scores are beside the panel's on one criterion, drawn when the snapshot was computed.

    One SVG for wide screens and one for phones, in the page's colours and without words: see `figures.inline`.
    """

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="charts")
    judge = models.TextField()
    criterion = models.TextField()
    wide = models.TextField()
    narrow = models.TextField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["snapshot", "judge", "criterion"], name="chart_of_snapshot_unique")
        ]


class StoredCell(models.Model):
    """The figures of one cell, or one chart, by the digest of everything that they are computed from.

    The next computation under the same settings takes them from here. Deleting them loses time, no figure.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="+")
    settings_digest = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    content = models.JSONField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["campaign", "settings_digest", "digest"], name="stored_cell_once")
        ]


class Computation(HasJob):
    """The numbers of a campaign under some settings (``asked``), which are to be computed; deleted once they are.

    Its ``job`` is the newest try; a campaign has one open job at a time. After ``tries`` that failed none begins before
    ``next_at``; ``reason`` and ``detail`` say why the last one failed.
    """

    class Reason(models.TextChoices):
        ENDED = "ended", _("The worker stopped before it had finished.")
        LONG = "long", _("It took longer than %(detail)s minutes and was stopped.")
        TABLE = "table", _("The ratings can't be used: %(detail)s")
        FAULT = "fault", _("An error in Panelbench: %(detail)s")
        CANCELLED = "cancelled", "%(detail)s"

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="+")
    settings_digest = models.CharField(max_length=64)
    code_version = models.CharField(max_length=40)
    asked = models.JSONField(default=dict)
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(default=timezone.now)
    reason = models.CharField(max_length=9, choices=Reason, default=Reason.ENDED)
    detail = models.CharField(max_length=400, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["campaign", "settings_digest", "code_version"], name="computation_of_settings_unique"
            )
        ]

    @property
    def sentence(self) -> str:
        """Why the last try failed."""
        return str(Computation.Reason(self.reason).label) % {"detail": self.detail}


class GateThresholds(models.Model):
    """What a project declares for the use of judges; a row for each version, the newest counts and none is changed.

    Shares are of 1, `bias_margin` is one of the scale's width. `audits`: those that JUDGE ALONE needs besides repeats.
    `figures_since`: since when a judge's figures could be read in the project when this was declared, None where it
    had none.
    """

    class Preset(models.TextChoices):
        EXPERTS = "experts", _("Experts")
        SKILLED = "skilled", _("Skilled annotators")
        CROWD = "crowd", _("Crowd")

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    number = models.PositiveSmallIntegerField()
    preset = models.CharField(_("who the annotators are"), max_length=8, choices=Preset)
    epsilon = models.FloatField()
    bias_margin = models.FloatField()
    flip_rate = models.FloatField()
    fewest_items = models.PositiveIntegerField()
    alpha_ceiling = models.FloatField()
    ac_ceiling = models.FloatField()
    omega = models.FloatField()
    readable = models.FloatField()
    tau_b = models.FloatField()
    tau_b_low = models.FloatField()
    audits = models.JSONField(default=list)
    figures_since = models.DateTimeField(null=True)
    declared_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    declared_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-number"]
        verbose_name_plural = "gate thresholds"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "number"], name="thresholds_number_unique"),
            models.CheckConstraint(
                condition=models.Q(preset__in=["experts", "skilled", "crowd"]), name="thresholds_preset_known"
            ),
        ]

    def __str__(self) -> str:
        return f"v{self.number}"


class GateDecision(models.Model):
    """What a judge may be used for in one criterion and language, since `at`: a row for each change.

    `former` is the decision before, empty for the first. `facts`: the figures that it rests on, as in
    `decisions.facts_of`.
    """

    class Use(models.TextChoices):
        STALE = "stale", _("Must be measured again")
        INSUFFICIENT = "insufficient", _("Insufficient")
        RUBRIC_PROBLEM = "rubric_problem", _("Rubric problem")
        JUDGE_ALONE = "judge_alone", _("Judge alone")
        JUDGE_WITH_CORRECTION = "judge_with_correction", _("With correction")
        RANKING_ONLY = "ranking_only", _("Ranking only")
        HUMANS_ONLY = "humans_only", _("Humans only")

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+")
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="+")
    criterion = models.CharField(max_length=60)
    language = models.CharField(max_length=35)
    decision = models.CharField(max_length=21, choices=Use)
    former = models.CharField(max_length=21, choices=Use, blank=True)
    thresholds = models.ForeignKey(GateThresholds, on_delete=models.PROTECT, related_name="+")
    facts = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [models.Index(fields=["campaign", "judge", "-id"], name="gate_decision_history")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(
                    decision__in=[
                        "stale",
                        "insufficient",
                        "rubric_problem",
                        "judge_alone",
                        "judge_with_correction",
                        "ranking_only",
                        "humans_only",
                    ]
                ),
                name="gate_decision_known",
            )
        ]


class ShareQuerySet(models.QuerySet["Share"]):
    def visible_to(self, user: User) -> ShareQuerySet:
        return self.filter(campaign__project__memberships__user=user, campaign__project__memberships__role=Role.LEAD)

    def live(self) -> ShareQuerySet:
        ends = models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now())
        return self.filter(ends, revoked_at=None)


class Share(models.Model):
    """A link that lets whoever holds it read one campaign's numbers. Only the digest of its secret is stored.

    ``shows_generators``: generators, scenarios and attributes of items, too.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+")
    label = models.CharField(max_length=120)
    digest = models.CharField(max_length=64)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    shows_generators = models.BooleanField(default=False)

    objects = ShareQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["digest"], name="share_digest_unique")]

    def __str__(self) -> str:
        return self.label


class TransferQuerySet(models.QuerySet["Transfer"]):
    def visible_to(self, user: User) -> TransferQuerySet:
        """One's own, as long as one may take things out of the project."""
        return self.filter(created_by=user, project__memberships__user=user, project__memberships__role__in=SIGHTED)


class Transfer(HasJob):
    """A file that a worker writes for somebody, or a bundle that it loads. Only who asked for it sees it.

    ``asked`` says what an export is of. Its ``job`` says whether a worker is at it, and how many rows are done. The
    file of an export is kept until ``expires_at``, that of a bundle until it is loaded or refused; ``sentence`` says
    what came of it.
    """

    class Kind(models.TextChoices):
        EXPORT = "export", _("Export")
        BUNDLE = "bundle", _("Bundle import")

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        WORKING = "working", _("Running")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    key = models.UUIDField(default=uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=6, choices=Kind)
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    asked = models.JSONField(default=dict)
    name = models.CharField(max_length=255)
    content = models.FileField(upload_to="transfers/%Y/%m/", max_length=300, blank=True)
    size = models.BigIntegerField(null=True)
    sentence = models.TextField(blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()

    objects = TransferQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(kind__in=["export", "bundle"]), name="transfer_kind_known"),
            models.CheckConstraint(
                condition=models.Q(state__in=["waiting", "done", "failed"]), name="transfer_state_known"
            ),
        ]

    @property
    def is_moving(self) -> bool:
        """Whether something may still come of it."""
        return self.state == Transfer.State.WAITING

    @property
    def stage(self) -> Transfer.State:
        """Its state as it is shown: one that waits is under way while a worker is at it."""
        is_running = self.is_moving and self.job is not None and self.job.state == Job.State.RUNNING
        return Transfer.State.WORKING if is_running else Transfer.State(self.state)
