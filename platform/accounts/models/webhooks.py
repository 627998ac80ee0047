"""The models of webhooks and their deliveries."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models.jobs import HasJob
from accounts.models.people import Project, Role, User


class Event(models.TextChoices):
    """The events that a webhook can receive."""

    RATINGS = "ratings.submitted", _("Ratings submitted")
    RUN = "run.finished", _("Judge run finished")
    IMPORT = "import.finished", _("Import finished")
    DECISION = "decision.changed", _("Decision about a judge changed")
    TEST = "test", _("Test")


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def visible_to(self, user: User) -> WebhookQuerySet:
        return self.filter(project__memberships__user=user, project__memberships__role=Role.LEAD)


class Webhook(HasJob):
    """An address that receives a project's events. Its secret is derived from `nonce` and SECRET_KEY, and not stored.

    Its ``job`` is the newest turn of sending what is due.
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
