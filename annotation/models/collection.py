"""Prompts that people write for slots of a collection, and the reviews of other people."""

from __future__ import annotations

import secrets
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.models import SIGHTED, Project, User
from annotation.models.campaign import Annotator
from annotation.models.content import Dataset


class PromptCollectionQuerySet(models.QuerySet["PromptCollection"]):
    def visible_to(self, user: User) -> PromptCollectionQuerySet:
        """All collections of the projects in which the user is a lead or researcher, and those that have the user as a
        writer or reviewer."""
        seen = Project.objects.filter(memberships__user=user, memberships__role__in=SIGHTED)
        return self.filter(Q(project__in=seen) | Q(pk__in=PromptCollection.objects.worked_on_by(user).values("pk")))

    def worked_on_by(self, user: User) -> PromptCollectionQuerySet:
        """Those for which the user writes or reviews, in projects of which they are still a member."""
        own = CollectionMember.objects.filter(annotator__user=user).filter(Q(writes=True) | Q(reviews=True))
        return self.filter(pk__in=own.values("collection"), project__in=Project.objects.visible_to(user))


class PromptCollection(models.Model):
    """Prompts that are to be written in a project. `guidelines`: Markdown by language. `due_on`: the last day."""

    class State(models.TextChoices):
        OPEN = "open", _("Open")
        CLOSED = "closed", _("Closed")

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    guidelines = models.JSONField(default=dict, blank=True)
    due_on = models.DateField(_("due on"), null=True, blank=True)
    state = models.CharField(max_length=6, choices=State, default=State.OPEN)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = PromptCollectionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="prompt_collection_name_unique"),
            models.CheckConstraint(condition=Q(state__in=["open", "closed"]), name="prompt_collection_state_known"),
        ]

    def __str__(self) -> str:
        return self.name


class PromptSlot(models.Model):
    """What kind of prompt is wanted, and how many of it."""

    collection = models.ForeignKey(PromptCollection, on_delete=models.PROTECT, related_name="slots")
    task = models.CharField(_("task type"), max_length=120)
    style = models.CharField(_("functional style"), max_length=120, blank=True)
    difficulty = models.CharField(_("difficulty"), max_length=120, blank=True)
    language = models.CharField(_("language"), max_length=35)
    wanted = models.PositiveIntegerField(_("wanted"))

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["collection", "task", "style", "difficulty", "language"], name="prompt_slot_unique"
            ),
        ]

    def __str__(self) -> str:
        return " · ".join(filter(None, (self.task, self.style, self.difficulty, self.language)))


class CollectionMember(models.Model):
    """An annotator who writes prompts for a collection, reviews those of others, or both. A person who does neither any
    more stays as the author of what they wrote."""

    collection = models.ForeignKey(PromptCollection, on_delete=models.PROTECT, related_name="members")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    writes = models.BooleanField(_("writes"), default=False)
    reviews = models.BooleanField(_("reviews"), default=False)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["collection", "annotator"], name="collection_member_once"),
        ]

    def __str__(self) -> str:
        return self.annotator.pseudonym


def new_prompt_code() -> str:
    """A name that no other prompt has, here or elsewhere."""
    return "".join(secrets.choice("abcdefghjkmnpqrstuvwxyz23456789") for _place in range(10))


class CollectedPromptQuerySet(models.QuerySet["CollectedPrompt"]):
    def submitted(self) -> CollectedPromptQuerySet:
        """Without drafts."""
        return self.exclude(state=CollectedPrompt.State.DRAFT)


class CollectedPrompt(models.Model):
    """A prompt for a slot. `draft`: what its author has entered and not submitted; `digest`: of the language and the
    plain words of its newest version, so that no two prompts of a collection are equal. `code`: its name in files and
    datasets, and in another installation. The place of a released prompt was given to
    somebody else after it was sent back."""

    class State(models.TextChoices):
        DRAFT = "draft", pgettext_lazy("prompt", "Draft")
        IN_REVIEW = "in_review", pgettext_lazy("prompt", "In review")
        RETURNED = "returned", pgettext_lazy("prompt", "Sent back")
        ACCEPTED = "accepted", pgettext_lazy("prompt", "Accepted")
        REJECTED = "rejected", pgettext_lazy("prompt", "Rejected")
        RELEASED = "released", pgettext_lazy("prompt", "Given to somebody else")

    LIVE = ("in_review", "returned", "accepted")

    collection = models.ForeignKey(PromptCollection, on_delete=models.PROTECT, related_name="prompts")
    slot = models.ForeignKey(PromptSlot, on_delete=models.PROTECT, related_name="prompts")
    author = models.ForeignKey(CollectionMember, on_delete=models.PROTECT, related_name="prompts")
    code = models.CharField(max_length=10, default=new_prompt_code, editable=False)
    state = models.CharField(max_length=9, choices=State, default=State.DRAFT)
    draft = models.TextField(blank=True)
    digest = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    changed_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = CollectedPromptQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["slot", "author"], condition=Q(state="draft"), name="prompt_one_draft_per_slot"
            ),
            models.UniqueConstraint(
                fields=["collection", "digest"],
                condition=Q(state__in=["in_review", "returned", "accepted"]),
                name="prompt_text_unique",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["draft", "in_review", "returned", "accepted", "rejected", "released"]),
                name="prompt_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk}"


class PromptVersion(models.Model):
    """A text that was submitted, and its review. It never changes after the review. `key`: of the submission, so that
    one sent twice is stored once. `notices`: what its author was shown of similar texts and the language. `signature`:
    of its text, by which similar ones are found; empty until it is needed."""

    class Decision(models.TextChoices):
        NONE = "", pgettext_lazy("prompt", "Not reviewed")
        ACCEPT = "accept", pgettext_lazy("prompt", "Accepted")
        SEND_BACK = "send_back", pgettext_lazy("prompt", "Sent back")
        REJECT = "reject", pgettext_lazy("prompt", "Rejected")

    prompt = models.ForeignKey(CollectedPrompt, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    author = models.ForeignKey(CollectionMember, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    key = models.UUIDField()
    notices = models.JSONField(default=dict)
    signature = models.CharField(max_length=512, blank=True, editable=False)
    submitted_at = models.DateTimeField(default=timezone.now, editable=False)
    decision = models.CharField(max_length=9, choices=Decision, default=Decision.NONE, blank=True)
    comment = models.TextField(blank=True)
    reviewer = models.ForeignKey(CollectionMember, null=True, on_delete=models.PROTECT, related_name="+")
    reviewed_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["prompt", "number"], name="prompt_version_number_unique"),
            models.UniqueConstraint(fields=["author", "key"], name="prompt_submitted_once"),
            models.CheckConstraint(
                condition=Q(reviewer=None) | ~Q(reviewer=F("author")), name="prompt_not_reviewed_by_author"
            ),
            models.CheckConstraint(
                condition=Q(decision="", reviewer=None, reviewed_at=None)
                | Q(decision__in=["accept", "send_back", "reject"], reviewer__isnull=False, reviewed_at__isnull=False),
                name="prompt_decision_has_reviewer",
            ),
        ]


class CollectionDataset(models.Model):
    """A dataset that accepted prompts of a collection were stored as."""

    collection = models.ForeignKey(PromptCollection, on_delete=models.PROTECT, related_name="stored")
    dataset = models.OneToOneField(Dataset, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
