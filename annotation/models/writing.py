"""People as generators: duties to write, the texts that people write in them, and what leads decide about those."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import OuterRef, Q
from django.db.models.fields.json import KeyTextTransform
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts import access
from accounts.models import Project, User
from annotation.models.campaign import Annotator, Panel, SightedAccess
from annotation.models.content import Dataset, Item


class WritingDuty(models.Model):
    """A panel's duty to write: an answer to the prompt of an item, or the turns of one role of a dialogue.

    The prompts are the items of `dataset` in the panel's language, one for each scenario; what people write themselves
    (`part`: the name of a field, or a role) is not shown. `most_turns`: where the dialogue has no turns of the role, so
    many may be written behind its last one. `shortest` and `longest` are characters of each text. `per_prompt`: how
    many people write for a prompt. `generator`: the name that all texts are stored under; without one every person has
    a code of their own. `seed` gives the order of the prompts.
    """

    class Kind(models.TextChoices):
        ANSWER = "answer", _("An answer, or another field")
        TURNS = "turns", _("The turns of one role of a dialogue")

    class State(models.TextChoices):
        OPEN = "open", _("Open")
        PAUSED = "paused", _("Paused")
        CLOSED = "closed", _("Closed")

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="+")
    panel = models.ForeignKey(Panel, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=6, choices=Kind, default=Kind.ANSWER)
    part = models.CharField(max_length=60, default="answer")
    most_turns = models.PositiveSmallIntegerField(default=1)
    shortest = models.PositiveIntegerField(default=1)
    longest = models.PositiveIntegerField(default=8_000)
    per_prompt = models.PositiveSmallIntegerField(default=1)
    generator = models.CharField(max_length=80, blank=True)
    instructions = models.TextField(blank=True)
    seed = models.BigIntegerField()
    state = models.CharField(max_length=6, choices=State, default=State.OPEN)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = SightedAccess.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        verbose_name_plural = "writing duties"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="writing_duty_name_unique"),
            models.CheckConstraint(condition=Q(per_prompt__gte=1), name="writing_duty_per_prompt_positive"),
            models.CheckConstraint(condition=Q(shortest__lte=models.F("longest")), name="writing_duty_lengths"),
        ]

    def __str__(self) -> str:
        return self.name


class WritingTextQuerySet(models.QuerySet["WritingText"]):
    def visible_to(self, user: User) -> WritingTextQuerySet:
        """A person's own texts, while they are a member of the project."""
        return self.filter(access.member_of(user, project="duty__project"), annotator__user=user)

    def behind(self, item: str) -> WritingTextQuerySet:
        """The texts that the outer query's item is, or that it was copied, translated or cut from. ``item``: the path
        of that item, such as "item__"; "" in a query of items."""
        keys: list[Any] = [OuterRef(f"{item}external_id")]
        keys += [KeyTextTransform(name, OuterRef(f"{item}attributes")) for name in ("written_as", "source_item")]
        return self.filter(external_id__in=keys).exclude(external_id="")


class WritingText(models.Model):
    """The text of one person for one prompt (`item`), from the moment they took it.

    `key` is part of the page's address, and makes a submission idempotent: it changes when a lead sends the text back.
    `draft` is what they entered last: one text for each field or turn. `place`, from 1 to the duty's `per_prompt`, is
    nobody else's while the text is live; when `held_until` is over, somebody else may take it, and the draft stays with
    its author. `external_id` is that of the item it was stored as, and its attribute `written_as`, which items that are
    made of it keep: the author rates none of them (`behind`).
    """

    class State(models.TextChoices):
        WRITING = "writing", _("Being written")
        SUBMITTED = "submitted", _("Submitted")
        RETURNED = "returned", _("Sent back")
        ACCEPTED = "accepted", _("Accepted")
        SKIPPED = "skipped", _("Skipped")
        RELEASED = "released", _("Given to somebody else")

    class SkipReason(models.TextChoices):
        CANNOT = "cannot", _("I don't know enough about it")
        LANGUAGE = "language", _("Not in my language or variety")
        DAMAGED = "damaged", _("Damaged or incomplete text")
        DISTRESSING = "distressing", _("I don't want to read it")
        OTHER = "other", _("Something else")

    duty = models.ForeignKey(WritingDuty, on_delete=models.PROTECT, related_name="texts")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    place = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=9, choices=State, default=State.WRITING)
    key = models.UUIDField(unique=True)
    draft = models.JSONField(default=list)
    seconds = models.FloatField(default=0)
    pasted = models.PositiveIntegerField(default=0)
    taken_at = models.DateTimeField(default=timezone.now)
    saved_at = models.DateTimeField(null=True)
    held_until = models.DateTimeField()
    skip_reason = models.CharField(max_length=11, choices=SkipReason, blank=True)
    note = models.CharField(max_length=500, blank=True)
    external_id = models.CharField(max_length=200, blank=True)
    stored_in = models.ForeignKey(Dataset, null=True, on_delete=models.PROTECT, related_name="+")

    objects = WritingTextQuerySet.as_manager()

    LIVE: ClassVar = (State.WRITING, State.SUBMITTED, State.RETURNED, State.ACCEPTED)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["duty", "item", "annotator"], name="writing_text_once"),
            models.UniqueConstraint(
                fields=["duty", "item", "place"],
                condition=Q(state__in=["writing", "submitted", "returned", "accepted"]),
                name="writing_text_place",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["annotator", "external_id"], name="writing_by_annotator")]


class WritingSubmission(models.Model):
    """One submission of a text. Append-only.

    `texts`: one for each field or turn. `warnings`: what the page disclosed to the author, and leads see, as codes with
    values. `pasted`: characters that were pasted in.
    """

    text = models.ForeignKey(WritingText, on_delete=models.PROTECT, related_name="submissions")
    number = models.PositiveSmallIntegerField()
    key = models.UUIDField(unique=True)
    texts = models.JSONField(default=list)
    warnings = models.JSONField(default=list)
    seconds = models.FloatField(default=0)
    pasted = models.PositiveIntegerField(default=0)
    submitted_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["text", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["text", "number"], name="writing_submission_number"),
        ]

    @property
    def decision(self) -> WritingDecision | None:
        """The newest decision, which is in force; None if nobody has read the submission yet."""
        return max(self.decisions.all(), key=lambda decision: decision.pk, default=None)


class WritingDecision(models.Model):
    """What a lead decided about a submission. Append-only: an accepted text that is sent back has two."""

    class Decision(models.TextChoices):
        ACCEPTED = "accepted", _("Accepted")
        RETURNED = "returned", _("Sent back")

    submission = models.ForeignKey(WritingSubmission, on_delete=models.PROTECT, related_name="decisions")
    decision = models.CharField(max_length=8, choices=Decision)
    comment = models.TextField(blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["pk"]
