"""Who rates what: annotators, panels, campaigns (one dataset on one rubric version), duties, assignments, ratings."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts import access
from accounts.models import SIGHTED, HasJob, Invitation, Project, User
from annotation.models.content import Criterion, Dataset, Import, Item, RubricVersion
from annotation.models.taxonomy import Taxonomy


# --- annotators, and the panels that they belong to ------------------------------------------------------------------
class SightedAccess(models.QuerySet):
    """Rows that only leads and researchers of their project see."""

    def visible_to(self, user: User) -> SightedAccess:
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)


class Annotator(models.Model):
    """A person who rates in a project: a member, or a rater of an imported study who is known only by `pseudonym`.

    Exports and numbers show the `pseudonym`. `identified` is False for imported raters that are positions in a file
    (such as column 1, 2, 3), because the same position may be different persons.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    pseudonym = models.CharField(_("pseudonym"), max_length=80)
    identified = models.BooleanField(default=True)
    removed_at = models.DateTimeField(null=True, editable=False)
    """When the person behind the pseudonym was erased, or removed by a lead: `user` is None since, nothing is paid."""

    objects = SightedAccess.as_manager()

    class Meta:
        ordering: ClassVar = ["pseudonym"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "pseudonym"], name="annotator_pseudonym_unique"),
            models.UniqueConstraint(
                fields=["project", "user"], condition=models.Q(user__isnull=False), name="annotator_user_unique"
            ),
        ]

    def __str__(self) -> str:
        return self.pseudonym


class Panel(models.Model):
    """A group of annotators who rate together, usually native speakers of one `language`."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    language = models.CharField(_("language"), max_length=35, blank=True)
    annotators = models.ManyToManyField(Annotator, through="PanelSeat", related_name="panels")

    objects = SightedAccess.as_manager()

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "name"], name="panel_name_unique")]

    def __str__(self) -> str:
        return self.name


class PanelSeat(models.Model):
    panel = models.ForeignKey(Panel, on_delete=models.CASCADE, related_name="seats")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="seats")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["panel", "annotator"], name="panel_seat_once")]

    def __str__(self) -> str:
        return f"{self.annotator} · {self.panel}"


class InvitedSeat(models.Model):
    """A panel that an invited annotator will join. Deleted when they accept and get their seat."""

    invitation = models.ForeignKey(Invitation, on_delete=models.CASCADE, related_name="+")
    panel = models.ForeignKey(Panel, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["invitation", "panel"], name="invited_to_panel_once")]


# --- campaigns and their duties, assignments, annotations and ratings ------------------------------------------------
class CampaignQuerySet(models.QuerySet["Campaign"]):
    def visible_to(self, user: User) -> CampaignQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)


class _ListedCampaigns(models.Manager["Campaign"]):
    """The campaigns that people see: without the hidden ones that hold answers to training, exams and controls."""

    def get_queryset(self) -> models.QuerySet[Campaign]:
        return super().get_queryset().filter(qualification_of=None)


CampaignManager = _ListedCampaigns.from_queryset(CampaignQuerySet)


class Campaign(models.Model):
    """One dataset rated on one rubric version.

    A campaign with `qualification_of` is hidden: its annotations are the answers to training, exams, controls and
    repeats of that campaign, so that nothing that reads a campaign's ratings finds them. Only `with_hidden` lists it.
    """

    class State(models.TextChoices):
        OPEN = "open", _("Open")
        PAUSED = "paused", _("Paused")
        CLOSED = "closed", _("Closed")

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=8, choices=State, default=State.OPEN)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    asks_at_close = models.BooleanField(default=False, db_default=False)
    """Whether annotators who have finished get the closing questionnaire (`annotation/questionnaires.py`)."""
    qualification_of = models.OneToOneField(
        "self", null=True, editable=False, on_delete=models.CASCADE, related_name="+"
    )

    objects = CampaignManager()
    with_hidden = CampaignQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "name"], condition=Q(qualification_of=None), name="campaign_name_unique"
            ),
            models.CheckConstraint(condition=Q(state__in=["open", "paused", "closed"]), name="campaign_state_known"),
        ]

    def __str__(self) -> str:
        return self.name


class DutyQuerySet(models.QuerySet["Duty"]):
    def visible_to(self, user: User) -> DutyQuerySet:
        """The duties of the user's own panels; for leads and researchers, every duty of the project."""
        sighted = Project.objects.filter(memberships__user=user, memberships__role__in=SIGHTED)
        seated = Q(panel__seats__annotator__user=user, campaign__project__memberships__user=user)
        return self.filter(Q(campaign__project__in=sighted) | seated).distinct()


class _ListedDuties(models.Manager["Duty"]):
    """The duties that people see: without the hidden ones of training, exams, controls and repeats."""

    def get_queryset(self) -> models.QuerySet[Duty]:
        return super().get_queryset().filter(stands_for=None)


DutyManager = _ListedDuties.from_queryset(DutyQuerySet)


class Duty(models.Model):
    """A panel's share of a campaign: its criteria, and the number of annotators per item (`overlap`).

    `languages`: the languages of the items, if they differ from the panel's. `seed` gives the order of the items: leads
    see it, annotators never do. A duty over a `chosen` selection has only its items. A duty that `stands_for` another
    is hidden: its assignments are that duty's training, exams, controls or repeats (`purpose`), in the hidden campaign.

    A duty made by the rules of a `taxonomy` asks different items, and different annotators of an item, about different
    criteria: `criteria_sets` are lists of keys, and `Assignment.criteria_set` says which of them a slot has. Sets are
    only ever added. `overlap` is then the largest number of annotators that an item has.

    `priority`: a duty with a higher one comes first on the desk. `due_at`: its deadline. `quota`: the most items that
    one annotator scores. While it is `paused` nobody gets new items in it.
    """

    class Purpose(models.TextChoices):
        RATING = "rating", _("Rating")
        TRAINING = "training", _("Training")
        EXAM = "exam", _("Exam")
        CONTROL = "control", _("Control")
        REPEAT = "repeat", _("Repeat")

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="duties")
    panel = models.ForeignKey(Panel, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    overlap = models.PositiveSmallIntegerField(_("annotators per item"))
    criteria = models.ManyToManyField(Criterion, related_name="+")
    seed = models.BigIntegerField()
    languages = models.JSONField(default=list, blank=True)
    chosen = models.ForeignKey("ItemSelection", null=True, on_delete=models.PROTECT, related_name="duties")
    purpose = models.CharField(max_length=8, choices=Purpose, default=Purpose.RATING, editable=False)
    stands_for = models.ForeignKey("self", null=True, editable=False, on_delete=models.CASCADE, related_name="+")
    taxonomy = models.ForeignKey(Taxonomy, null=True, editable=False, on_delete=models.PROTECT, related_name="+")
    criteria_sets = models.JSONField(default=list, editable=False)
    priority = models.SmallIntegerField(default=0)
    due_at = models.DateTimeField(null=True)
    quota = models.PositiveIntegerField(null=True)
    paused = models.BooleanField(default=False)

    objects = DutyManager()
    with_hidden = DutyQuerySet.as_manager()
    asks: tuple[bool, bool] | None = None
    """No column: whether the campaign has guidelines, and a qualification rule; None where this was not loaded."""

    class Meta:
        ordering: ClassVar = ["campaign", "pk"]
        verbose_name_plural = "duties"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["campaign", "name"], condition=Q(stands_for=None), name="duty_name_unique"),
            models.UniqueConstraint(fields=["stands_for", "purpose"], name="duty_purpose_once"),
            models.CheckConstraint(
                condition=Q(stands_for=None, purpose="rating")
                | Q(stands_for__isnull=False, purpose__in=["training", "exam", "control", "repeat"]),
                name="duty_purpose_known",
            ),
            models.CheckConstraint(condition=Q(overlap__gte=1), name="duty_overlap_positive"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def visible_pk(self) -> int:
        """The primary key of the duty that its annotators know: its own, or of the duty that it stands for."""
        return self.stands_for_id or self.pk


class DutyReminder(models.Model):
    """A mail that reminded an annotator of a deadline; with another deadline they get another mail."""

    duty = models.ForeignKey(Duty, on_delete=models.CASCADE, related_name="reminders")
    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="+")
    due_at = models.DateTimeField()
    sent_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["duty", "annotator", "due_at"], name="duty_reminder_once"),
        ]


class ItemSelectionQuerySet(models.QuerySet["ItemSelection"]):
    def visible_to(self, user: User) -> ItemSelectionQuerySet:
        return self.filter(campaign__project__memberships__user=user, campaign__project__memberships__role__in=SIGHTED)


class ItemSelection(models.Model):
    """A part of a campaign's items under a name, for judges and panels to rate. It never changes.

    `rule` says how its items were chosen (`annotation/selections.py`), `seed` gives the draw again.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="selections")
    name = models.CharField(_("name"), max_length=120)
    rule = models.JSONField(default=dict)
    seed = models.BigIntegerField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ItemSelectionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["campaign", "name"], name="item_selection_name_unique"),
        ]

    def __str__(self) -> str:
        return self.name


class SelectedItem(models.Model):
    """An item of a selection, with the probability that the draw had of choosing it, and its stratum."""

    selection = models.ForeignKey(ItemSelection, on_delete=models.CASCADE, related_name="selected")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    probability = models.FloatField(default=1.0)
    stratum = models.CharField(max_length=400, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["selection", "item"], name="selected_item_once"),
            models.CheckConstraint(
                condition=Q(probability__gt=0, probability__lte=1), name="selected_item_probability"
            ),
        ]


class Selection(models.Model):
    """Which items a wave drew into a duty, and with what probability: the only store of inclusion probabilities."""

    duty = models.ForeignKey(Duty, on_delete=models.CASCADE, related_name="selections")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    wave = models.PositiveIntegerField(default=1)
    probability = models.FloatField(default=1.0)
    stratum = models.CharField(max_length=120, blank=True)
    origin = models.CharField(max_length=40, default="all")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["duty", "item"], name="selection_once"),
            models.CheckConstraint(condition=Q(probability__gt=0, probability__lte=1), name="selection_probability"),
        ]


class AssignmentQuerySet(models.QuerySet["Assignment"]):
    def visible_to(self, user: User) -> AssignmentQuerySet:
        """A person's own assignments, while they are still a member of the project."""
        return self.filter(access.member_of(user, project="duty__campaign__project"), annotator__user=user)


class Assignment(models.Model):
    """A slot: one item for one annotator. In a duty every item has `overlap` slots, numbered from 1, and never more.

    A slot is `open` until an annotator leases it by compare-and-set. Another annotator may take a slot whose lease has
    expired, but never a submitted one. `key` identifies the lease and makes its submission idempotent. `revision` is
    the revision that the submission creates. All slots of an item have the same `position`. `criteria_set`: the number,
    from 1, of the duty's set of criteria that this slot is about; 0: all criteria of the duty.
    """

    class State(models.TextChoices):
        OPEN = "open", _("Open")
        LEASED = "leased", _("In progress")
        SUBMITTED = "submitted", _("Submitted")

    duty = models.ForeignKey(Duty, on_delete=models.CASCADE, related_name="assignments")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    slot = models.PositiveSmallIntegerField()
    position = models.PositiveIntegerField()
    state = models.CharField(max_length=9, choices=State, default=State.OPEN)
    annotator = models.ForeignKey(Annotator, null=True, on_delete=models.PROTECT, related_name="+")
    key = models.UUIDField(null=True)
    revision = models.PositiveSmallIntegerField(default=1)
    criteria_set = models.PositiveSmallIntegerField(default=0, db_default=0)
    leased_at = models.DateTimeField(null=True)
    leased_until = models.DateTimeField(null=True)

    holder_role: str | None = None
    """Not a column: the annotator's role in the project, if the query that loaded the row has read it."""
    has_webhooks: bool = True
    """Not a column: False if the query that loaded the row found no webhook of the project that is on."""
    has_rubric_changes: bool = True
    """Not a column: False if the query that loaded the row found that the campaign has its first rubric version."""

    objects = AssignmentQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["duty", "item", "slot"], name="assignment_slot_unique"),
            models.UniqueConstraint(
                fields=["duty", "item", "annotator"], condition=Q(annotator__isnull=False), name="assignment_once_each"
            ),
            models.UniqueConstraint(fields=["key"], condition=Q(key__isnull=False), name="assignment_key_unique"),
            models.CheckConstraint(
                condition=Q(state="open", annotator=None, key=None, leased_until=None)
                | Q(state="leased", annotator__isnull=False, key__isnull=False, leased_until__isnull=False)
                | Q(state="submitted", annotator__isnull=False, key__isnull=False),
                name="assignment_state_whole",
            ),
        ]
        indexes: ClassVar = [
            # Not a partial index: SQLite does not use one for a condition with a bound parameter.
            models.Index(fields=["duty", "state", "position", "slot"], name="assignment_queue"),
            models.Index(fields=["annotator", "duty", "state", "position"], name="assignment_by_annotator"),
        ]


class Draft(models.Model):
    """What an annotator has entered for an item and not submitted yet. Deleted when they submit.

    `key` is the key of the lease. If somebody else takes the slot after the lease has expired, the draft stays with its
    author; it shows that a late submission had a lease once.
    """

    duty = models.ForeignKey(Duty, on_delete=models.CASCADE, related_name="+")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    key = models.UUIDField()
    answers = models.JSONField(default=dict)
    certainty = models.PositiveSmallIntegerField(null=True)
    seconds = models.FloatField(default=0)
    saved_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["duty", "item", "annotator"], name="draft_once"),
            models.UniqueConstraint(fields=["key"], name="draft_key_unique"),
        ]


class KeptDraft(models.Model):
    """What an annotator had entered for an item when a lead removed its duty: for nobody but them.

    `key` is the key of the lease, so that the item's page says what happened; `answers` as in `Draft`.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="+")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    duty_name = models.CharField(max_length=120)
    key = models.UUIDField(unique=True)
    answers = models.JSONField(default=dict)
    kept_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.duty_name


class PrivateNote(models.Model):
    """What an annotator wrote about an item for nobody else. It is in no export, and deleted when they are erased.

    A repeat has a note of its own (`of_repeat`): the note of the first time would show that the item comes again.
    """

    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    of_repeat = models.BooleanField(default=False)
    text = models.CharField(max_length=2000)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["annotator", "item", "of_repeat"], name="private_note_once")
        ]


class ItemQuestion(models.Model):
    """What an annotator asked about an item in a duty, and a lead's answer; see `annotation/desk/threads.py`.

    `is_broadcast`: everybody on the duty sees question and answer. `of_repeat` as in `PrivateNote`.
    """

    duty = models.ForeignKey(Duty, on_delete=models.CASCADE, related_name="+")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    of_repeat = models.BooleanField(default=False)
    text = models.CharField(max_length=2000)
    asked_at = models.DateTimeField(default=timezone.now)
    answer = models.CharField(max_length=2000, blank=True)
    answered_at = models.DateTimeField(null=True)
    answered_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    is_broadcast = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(answered_at=None, answer="", is_broadcast=False)
                | (Q(answered_at__isnull=False) & ~Q(answer="")),
                name="question_answer_whole",
            ),
        ]


class Skip(models.Model):
    """An item that an annotator skipped, with the reason. They get it again only when no other item is left.

    `resolved_at`: when a lead or researcher marked it as resolved; a later skip of the item is unresolved again.
    """

    class Reason(models.TextChoices):
        CANNOT_JUDGE = "cannot_judge", _("Can't judge it")
        LANGUAGE = "language", _("Not in the annotator's language or variety")
        DAMAGED = "damaged", _("Damaged or incomplete text")
        DISTRESSING = "distressing", _("Does not want to read it")
        OTHER = "other", _("Something else")

    duty = models.ForeignKey(Duty, on_delete=models.CASCADE, related_name="+")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    reason = models.CharField(max_length=12, choices=Reason)
    note = models.CharField(max_length=500, blank=True)
    at = models.DateTimeField(default=timezone.now)
    resolved_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["duty", "item", "annotator"], name="skip_once")]


class RubricChange(HasJob):
    """A campaign went on with another version of its rubric; what was decided on each criterion that differs.

    Until `finished_at` is set a worker has still to do it (`job`), or it failed. `qualify_again`: training and exam of
    its duties count only `at` it and later.

    `decisions`: by key, ``{"decision": "keep" | "requeue" | "map", "scores": {old: new}}``. `counts` says what it did.
    `former` is what `rubric_changes.undo_change` needs. `at` is the `superseded_at` of what it replaced.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="rubric_changes")
    from_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="+")
    to_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="+")
    decisions = models.JSONField(default=dict)
    counts = models.JSONField(default=dict)
    former = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now, editable=False)
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    qualify_again = models.BooleanField(default=False, db_default=False)
    finished_at = models.DateTimeField(null=True)
    undone_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"{self.from_version} → {self.to_version}"


class Annotation(models.Model):
    """A submitted assignment, or an imported rater's ratings of one item. Append-only: a revision is a new row, and the
    row it replaces gets `superseded_at`. `key` is the key of the lease: a repeated submission finds the stored row.
    A change of the rubric's version is a revision, too: `rubric_change` wrote it, nobody submitted it.

    `blind` is False if the annotator's role showed them verdicts and other people's ratings when they submitted, and
    None if this is not known (imported, or submitted before this column existed). `swapped`: of two candidates
    ``passage_b`` was shown first; None where no preference was asked, or imported. `certainty`: how sure the annotator
    was of the item's scores, 0 to 100; None where the rubric does not ask, or nothing was said.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    # No index of their own: the constraints and the index below start with these columns already.
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+", db_index=False)
    assignment = models.ForeignKey(
        Assignment, null=True, on_delete=models.PROTECT, related_name="annotations", db_index=False
    )
    file_import = models.ForeignKey(Import, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    key = models.UUIDField(null=True)
    revision = models.PositiveSmallIntegerField(default=1)
    seconds = models.FloatField(null=True)
    certainty = models.PositiveSmallIntegerField(null=True)
    blind = models.BooleanField(null=True)
    swapped = models.BooleanField(null=True)
    submitted_at = models.DateTimeField(default=timezone.now)
    superseded_at = models.DateTimeField(null=True)
    rubric_change = models.ForeignKey(
        RubricChange, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["assignment", "revision"], name="annotation_revision_unique"),
            models.UniqueConstraint(
                fields=["assignment"], condition=Q(superseded_at=None), name="annotation_current_once"
            ),
            models.UniqueConstraint(
                fields=["file_import", "item", "annotator", "revision"], name="annotation_imported_once"
            ),
            models.UniqueConstraint(fields=["key"], name="annotation_key_unique"),
            models.CheckConstraint(
                condition=Q(assignment__isnull=False, key__isnull=False, file_import=None)
                | Q(assignment=None, key=None, file_import__isnull=False),
                name="annotation_has_one_origin",
            ),
            models.CheckConstraint(
                condition=Q(certainty=None) | Q(certainty__lte=100), name="annotation_certainty_in_percent"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["annotator", "id"], name="annotation_by_annotator")]


class Rating(models.Model):
    """The answer to one criterion in an annotation: a score, N/A, or stopped by a critical mark. A criterion without an
    answer has no row.

    A rating that was given under an earlier version of the rubric has that as `given_version`; it was kept, or mapped
    from the `given_score` (`RubricChange`). NULL: given under the version of its criterion.
    """

    class Status(models.TextChoices):
        SCORED = "scored", _("Scored")
        NOT_APPLICABLE = "na", _("Not applicable")
        STOPPED = "stopped", _("Stopped")

    annotation = models.ForeignKey(Annotation, on_delete=models.PROTECT, related_name="ratings", db_index=False)
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    status = models.CharField(max_length=7, choices=Status, default=Status.SCORED)
    score = models.FloatField(null=True)
    rationale = models.TextField(blank=True)
    rule_kept = models.BooleanField(null=True)
    """Whether a rationale that was erased with its author's account kept the criterion's rule; None: none was."""
    given_version = models.ForeignKey(
        RubricVersion, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    given_score = models.FloatField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["annotation", "criterion"], name="rating_once"),
            models.CheckConstraint(
                condition=Q(status="scored", score__isnull=False) | (Q(status__in=["na", "stopped"]) & Q(score=None)),
                name="rating_score_fits_status",
            ),
            # PostgreSQL sorts NaN above every number, so the upper bound refuses it along with infinity.
            models.CheckConstraint(
                condition=Q(score=None) | Q(score__lte=1e12, score__gte=-1e12),
                name="rating_score_finite",
            ),
        ]
