"""Long work that workers do: who asked for it, who does it now, how far it is, and how it ended."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models.people import SIGHTED, Project, Role, User

RECENT = timedelta(days=7)


class JobQuerySet(models.QuerySet["Job"]):
    def visible_to(self, user: User) -> JobQuerySet:
        """The jobs of one's projects, for researchers without those of webhooks, which only leads see."""
        leads = models.Q(project__memberships__role=Role.LEAD)
        others = models.Q(~models.Q(kind=Job.Kind.DELIVERIES), project__memberships__role__in=SIGHTED)
        return self.filter(leads | others, project__memberships__user=user)

    def cancellable_by(self, user: User) -> JobQuerySet:
        """The open jobs that somebody may cancel: their own, those of projects that they lead, and for staff all."""
        if user.is_staff:
            return self.filter(state__in=Job.OPEN)
        seen = JobQuerySet(Job).visible_to(user)
        led = seen.filter(project__memberships__user=user, project__memberships__role=Role.LEAD)
        own = seen.filter(owner=user)
        return self.filter(models.Q(pk__in=led.values("pk")) | models.Q(pk__in=own.values("pk")), state__in=Job.OPEN)

    def current(self) -> JobQuerySet:
        """What waits or runs, and what failed or was cancelled by somebody in the last days."""
        ended = models.Q(ended_at__gte=timezone.now() - RECENT)
        stopped = models.Q(state=Job.State.FAILED) | models.Q(
            models.Q(state=Job.State.CANCELLED), ~models.Q(sentence="")
        )
        return self.filter(models.Q(state__in=Job.OPEN) | (ended & stopped))

    def open(self) -> JobQuerySet:
        return self.filter(state__in=Job.OPEN)


class Job(models.Model):
    """One piece of long work: waiting -> running -> finished | failed | cancelled, each step by compare-and-set.

    What it is about (an import, a transfer, a webhook) refers to its newest job; `accounts.jobs.KINDS` says by kind
    which model that is. One process at a time works on it: it has the ``lease`` until ``lease_until`` and extends that
    with every heartbeat (``beat_at``). A job that waits is sent to the workers once more when ``due_at`` is past;
    ``sent_at`` is NULL as long as no queue took it. ``done`` of ``total`` are counted in ``unit``; nobody knows how
    much there is while the total is 0. ``sentence`` says why it failed.
    """

    class Kind(models.TextChoices):
        CHECK = "check", _("Check of an import")
        STORE = "store", _("Import")
        UNDO = "undo", _("Undo of an import")
        EXPORT = "export", _("Export")
        BUNDLE = "bundle", _("Bundle import")
        DELIVERIES = "deliveries", _("Webhook deliveries")
        NUMBERS = "numbers", _("Numbers of a campaign")
        PROPOSAL = "proposal", _("Version of a judge, proposed by a model")
        SEARCH = "search", _("Search for a version of a judge")

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        RUNNING = "running", _("Running")
        FINISHED = "finished", _("Finished")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    class Unit(models.TextChoices):
        BYTES = "bytes", _("bytes")
        ROWS = "rows", _("rows")
        DELIVERIES = "deliveries", _("deliveries")
        NONE = "", ""

    OPEN = (State.WAITING, State.RUNNING)

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=10, choices=Kind)
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(default=0)
    unit = models.CharField(max_length=10, choices=Unit, default=Unit.NONE, blank=True)
    tries = models.PositiveIntegerField(default=0)
    sentence = models.TextField(blank=True)
    lease = models.UUIDField(null=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    beat_at = models.DateTimeField(null=True, editable=False)
    sent_at = models.DateTimeField(null=True, editable=False)
    due_at = models.DateTimeField(default=timezone.now, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    ended_at = models.DateTimeField(null=True, editable=False)

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [
            models.Index(fields=["project", "-id"], name="job_by_project"),
            models.Index(fields=["due_at"], condition=models.Q(state__in=["waiting", "running"]), name="job_open"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(
                    kind__in=[
                        *("check", "store", "undo", "export", "bundle", "deliveries", "numbers", "proposal", "search")
                    ]
                ),
                name="job_kind_known",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["waiting", "running", "finished", "failed", "cancelled"]),
                name="job_state_known",
            ),
            models.CheckConstraint(
                condition=models.Q(state="running", lease__isnull=False, lease_until__isnull=False)
                | (~models.Q(state="running") & models.Q(lease=None)),
                name="job_leased_while_running",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} #{self.pk}"

    @property
    def is_open(self) -> bool:
        """Whether something may still come of it."""
        return self.state in Job.OPEN

    @property
    def percent(self) -> int:
        """How far it is; 0 where nobody knows."""
        return min(100, 100 * self.done // self.total) if self.total else 0


class HasJob(models.Model):
    """What long work is about, such as an import: it refers to its newest job."""

    job = models.OneToOneField(Job, null=True, editable=False, on_delete=models.PROTECT, related_name="+")

    class Meta:
        abstract = True

    @property
    def done(self) -> int:
        """How many of ``total`` units (bytes of an import, rows of a transfer) the newest job has done."""
        return self.job.done if self.job else 0

    @property
    def total(self) -> int:
        """How many units there are; 0 while nobody knows."""
        return self.job.total if self.job else 0
