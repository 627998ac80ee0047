"""The models of people, projects, jobs and webhooks, and the access rules (DESIGN 2, 8.24, 8.25)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    LEAD = "lead", _("Lead")
    RESEARCHER = "researcher", _("Researcher")
    ANNOTATOR = "annotator", _("Annotator")


# The roles that may see datasets, judges and numbers. Annotators may not, so that they rate blind.
SIGHTED = (Role.LEAD, Role.RESEARCHER)


class UserQuerySet(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        """Create an account. The first account of an instance may create projects."""
        if "may_found_projects" not in fields:
            fields["may_found_projects"] = not self.exists()
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        fields = {"may_found_projects": True, **fields}
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, email: str | None) -> User:
        return self.get(email=(email or "").lower())


class User(AbstractUser):
    """A person, identified by e-mail address. Erasing a person empties this row and keeps it (DESIGN 8.25)."""

    username = None  # type: ignore[assignment]
    first_name = None  # type: ignore[assignment]
    last_name = None  # type: ignore[assignment]
    email = models.EmailField(_("e-mail"))
    name = models.CharField(_("name"), max_length=120, blank=True)
    languages = models.JSONField(_("languages"), default=list, blank=True)
    ui_language = models.CharField(_("interface language"), max_length=35, blank=True)
    may_found_projects = models.BooleanField(_("can create projects"), default=False)
    erased_at = models.DateTimeField(null=True, blank=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserQuerySet] = UserQuerySet()  # type: ignore[assignment]

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["email"], name="user_email_unique"),
            models.CheckConstraint(condition=models.Q(email=Lower("email")), name="user_email_lower"),
        ]

    def __str__(self) -> str:
        return self.name or self.email

    @property
    def initials(self) -> str:
        """The first letters of the first and the last word of the name; "" without a name."""
        words = self.name.split()
        ends = words[:1] + words[1:][-1:]
        return "".join(word[0] for word in ends).upper()


AGE_BANDS = ("18–24", "25–34", "35–44", "45–54", "55–64", "65+")


class Profile(models.Model):
    """Facts that a person lets studies publish about their panel. Not used without `consented_at`."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="profile")
    education = models.CharField(_("education"), max_length=120, blank=True)
    experience = models.CharField(_("experience"), max_length=240, blank=True)
    grew_up_with = models.JSONField(_("languages grown up with"), default=list, blank=True)
    dialect = models.CharField(max_length=80, blank=True)
    age_band = models.CharField(max_length=5, blank=True)
    consented_at = models.DateTimeField(null=True, blank=True)


class ProjectQuerySet(models.QuerySet["Project"]):
    def visible_to(self, user: User) -> ProjectQuerySet:
        """Projects in which the user has a role. Pages and API find projects only through this."""
        return self.filter(memberships__user=user)


class Project(models.Model):
    slug = models.SlugField(max_length=60)
    name = models.CharField(_("name"), max_length=120)
    description = models.TextField(_("description"), blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    archived_at = models.DateTimeField(null=True, blank=True)
    requires_second_factor = models.BooleanField("requires a second factor", default=False)  # no page shows this name

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name", "pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["slug"], name="project_slug_unique")]

    def __str__(self) -> str:
        return self.name


class ProjectDeletion(models.Model):
    """A project that a lead has deleted. Restoring it removes this row; after `GRACE` its rows are deleted for good.

    A deleted project has no membership, and is archived; ``archived_before`` is what restoring it sets again.
    """

    GRACE = timedelta(days=30)

    project = models.OneToOneField(Project, on_delete=models.PROTECT, related_name="deletion")
    deleted_at = models.DateTimeField(default=timezone.now, editable=False)
    deleted_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    archived_before = models.DateTimeField(null=True)
    purge_started_at = models.DateTimeField(null=True)

    @property
    def deleted_by_name(self) -> str:
        """The name that the page shows, "" if nobody is known."""
        if self.deleted_by is None:
            return ""
        erased = self.deleted_by.erased_at is not None
        return gettext("erased account %d") % self.deleted_by.pk if erased else str(self.deleted_by)

    @property
    def restorable_until(self) -> datetime:
        """When the grace ends."""
        return self.deleted_at + self.GRACE


class MembershipQuerySet(models.QuerySet["Membership"]):
    def visible_to(self, user: User) -> MembershipQuerySet:
        """All memberships in the projects that the user leads, and the user's own."""
        led = Project.objects.filter(memberships__user=user, memberships__role=Role.LEAD)
        return self.filter(models.Q(project__in=led) | models.Q(user=user))


class Membership(models.Model):
    """A person's role in a project; at most one."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(_("role"), max_length=12, choices=Role)
    since = models.DateTimeField(default=timezone.now, editable=False)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "user"], name="membership_once"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return str(self.user)


class SuspendedMembership(models.Model):
    """A membership of a deleted project, which restoring the project brings back with its primary key."""

    membership_pk = models.BigIntegerField(primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="suspended_memberships")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="suspended_memberships")
    role = models.CharField(max_length=12, choices=Role)
    since = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "user"], name="suspended_membership_once"),
        ]


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def visible_to(self, user: User) -> InvitationQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role=Role.LEAD)

    def open(self) -> InvitationQuerySet:
        """Those that can be accepted: not while their project is deleted.

        Without a join, so that an UPDATE has the conditions itself: then PostgreSQL asks them again after it has waited
        for the row, and of two requests one has it.
        """
        live = self.filter(accepted_at=None, revoked_at=None, expires_at__gt=timezone.now())
        return live.exclude(project__in=ProjectDeletion.objects.values("project"))


class Invitation(models.Model):
    """A link to join a project, valid once and until `expires_at`. Only the digest of its secret is stored.

    With an `email`, only that address can use it. `name` becomes the name of the person who accepts, if they have none.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=12, choices=Role)
    email = models.EmailField(_("e-mail"), blank=True)
    name = models.CharField(_("name"), max_length=120, blank=True)
    note = models.CharField(_("for whom"), max_length=120, blank=True)
    languages = models.JSONField(default=list, blank=True)
    secret_digest = models.CharField(max_length=64)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    mailed_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["secret_digest"], name="invitation_secret_unique"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="invitation_role_known"),
        ]

    def __str__(self) -> str:
        return self.name or self.note or self.email or f"#{self.pk}"


class Scope(models.TextChoices):
    READ = "read", _("Read everything I can read")
    WRITE = "write", _("Upload, publish and run everything I can")


class TokenQuerySet(models.QuerySet["Token"]):
    def visible_to(self, user: User) -> TokenQuerySet:
        return self.filter(user=user)

    def live(self) -> TokenQuerySet:
        return self.filter(revoked_at=None, expires_at__gt=timezone.now())


class Token(models.Model):
    """An API token: shown once, stored as a digest. It allows no more than its owner's roles, optionally in one project
    only."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    project = models.ForeignKey(Project, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(_("name"), max_length=80)
    scope = models.CharField(_("scope"), max_length=8, choices=Scope, default=Scope.READ)
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    objects = TokenQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["digest"], name="token_digest_unique"),
            models.CheckConstraint(condition=models.Q(scope__in=Scope.values), name="token_scope_known"),
        ]

    def __str__(self) -> str:
        return self.name


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    def visible_to(self, user: User) -> AuditQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role=Role.LEAD)


class AuditEntry(models.Model):
    """One change: who, what, which row. Append-only; primary keys and field names, never personal text."""

    at = models.DateTimeField(default=timezone.now, editable=False)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    project = models.ForeignKey(Project, null=True, on_delete=models.PROTECT, related_name="+")
    verb = models.CharField(max_length=60)
    subject = models.CharField(max_length=60)
    subject_pk = models.BigIntegerField(null=True)
    fields = models.JSONField(default=list)

    objects = AuditQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [
            models.Index(fields=["project", "-id"], name="audit_by_project"),
            models.Index(fields=["subject_pk"], condition=models.Q(subject="accounts.User"), name="audit_by_account"),
        ]


class HeartbeatQuerySet(models.QuerySet["Heartbeat"]):
    def pulse(self, kind: str, name: str) -> None:
        """Write the heartbeat of the process ``name`` of this ``kind``."""
        self.update_or_create(name=name, defaults={"kind": kind, "seen_at": timezone.now()})

    def silent(self) -> list[str]:
        """The kinds of process (worker, beat) without a recent heartbeat; one query."""
        recent = set(self.filter(seen_at__gte=timezone.now() - Heartbeat.SILENCE).values_list("kind", flat=True))
        return [kind for kind in (Heartbeat.WORKER, Heartbeat.BEAT) if kind not in recent]


class Heartbeat(models.Model):
    """The last heartbeat of a worker or of beat, one row per process name, which the process overwrites every few
    seconds. The heartbeat of a killed process becomes old, so no counter of processes can become wrong.
    """

    WORKER, BEAT = "worker", "beat"
    INTERVAL = 10.0  # seconds between two heartbeats
    SILENCE = timedelta(seconds=35)  # three missed heartbeats and some slack

    name = models.CharField(max_length=120, primary_key=True)
    kind = models.CharField(max_length=12)
    seen_at = models.DateTimeField()

    objects = HeartbeatQuerySet.as_manager()


# --- jobs: who asked for long work, who does it now, how far it is, and how it ended ---------------------------------
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
        """The jobs that wait or run, and those that failed or were cancelled by a person in the last days."""
        ended = models.Q(ended_at__gte=timezone.now() - RECENT)
        stopped = models.Q(state=Job.State.FAILED) | models.Q(
            models.Q(state=Job.State.CANCELLED), ~models.Q(sentence="")
        )
        return self.filter(models.Q(state__in=Job.OPEN) | (ended & stopped))

    def open(self) -> JobQuerySet:
        return self.filter(state__in=Job.OPEN)


class Job(models.Model):
    """One piece of long work: waiting -> running -> finished | failed | cancelled, each step by compare-and-set.

    What it is about (an import, a transfer, a webhook) refers to its newest job; `accounts.jobs.job_kinds` says by kind
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
        CALLS = "calls", _("Batch of calls")
        RUBRIC = "rubric", _("Change of a rubric's version")
        CHECKUP = "checkup", _("Check-up of a dataset")
        TEXTS = "texts", _("Storing of written texts")

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
                        *("check", "store", "undo", "export", "bundle", "deliveries", "numbers", "proposal", "search"),
                        *("calls", "rubric", "checkup", "texts"),
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
        """Whether the job waits or runs."""
        return self.state in Job.OPEN

    @property
    def percent(self) -> int:
        """The progress in percent; 0 if the total is unknown."""
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


# --- webhooks --------------------------------------------------------------------------------------------------------
class Event(models.TextChoices):
    """The events that a webhook can receive."""

    RATINGS = "ratings.submitted", _("Ratings submitted")
    RUN = "run.finished", _("Judge run finished")
    PLAN = "plan.finished", _("Generation plan finished")
    PLAN_PAUSED = "plan.paused", _("Generation plan paused")
    IMPORT = "import.finished", _("Import finished")
    DECISION = "decision.changed", _("Decision about a judge changed")
    TEST = "test", _("Test")


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def visible_to(self, user: User) -> WebhookQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role=Role.LEAD)


class Webhook(HasJob):
    """An address that receives a project's events. Its secret is derived from `nonce` and SECRET_KEY, and not stored.

    Its ``job`` is the newest job that sends its due deliveries.
    """

    class Off(models.TextChoices):
        BY_HAND = "by_hand", _("Turned off by hand.")
        GONE = "gone", _("Turned off: the receiver answered 410, so it wants no more requests.")
        FAILING = "failing", _("Turned off: no delivery succeeded for a day.")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="webhooks")
    address = models.CharField(_("address"), max_length=500)
    events = models.JSONField(_("events"), default=list)
    nonce = models.CharField(max_length=64)
    off = models.CharField(max_length=8, choices=Off, blank=True)
    failing_since = models.DateTimeField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = WebhookQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "address"], name="webhook_address_unique"),
            models.CheckConstraint(
                condition=models.Q(off__in=["", "by_hand", "gone", "failing"]), name="webhook_off_known"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["project"], condition=models.Q(off=""), name="webhook_listening")]

    def __str__(self) -> str:
        return self.address


class Delivery(models.Model):
    """One event for one webhook: written with what happened, sent afterwards, perhaps more than once."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        DELIVERED = "delivered", _("Delivered")
        GIVEN_UP = "given_up", _("Not delivered")

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    key = models.UUIDField()
    event = models.CharField(max_length=20, choices=Event)
    subject_pk = models.BigIntegerField(null=True)
    payload = models.JSONField()
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(default=timezone.now)
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    tried_at = models.DateTimeField(null=True)
    status = models.PositiveSmallIntegerField(null=True)
    reason = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        verbose_name_plural = "deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["key"], name="delivery_key_unique"),
            models.CheckConstraint(
                condition=models.Q(state__in=["waiting", "delivered", "given_up"]), name="delivery_state_known"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["webhook", "due_at"], condition=models.Q(state="waiting"), name="delivery_due"),
        ]
