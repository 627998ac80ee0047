"""What every paid request has, whoever asks: the row that is leased to a worker, and the attempts to ask for it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class PaidRow(models.Model):
    """A request to a model that may cost money: written before it is sent, with the most that it can cost.

    `reserved` is the worst case (None if no price is known). `cost` is what was paid by the provider's count of tokens;
    or, with `estimated`, the worst case, if the request may have cost something and the amount is unknown. `doubt` says
    why the provider's count was not believed (judging/asking/bills.py).

    `answer` is what the model replied, whatever its API (`asking.wire.ModelReply`), and `reply` the JSON as it came.
    Imported rows, and rows from before the answer was stored, have only the JSON.
    """

    class Doubt(models.TextChoices):
        NONE = "", _("Believed")
        UNCOUNTED = "uncounted", _("The provider did not count the tokens")
        TOO_FEW = "too_few", _("The provider counted fewer tokens than there are")
        TOO_MANY = "too_many", _("The provider counted more tokens than there can be")
        OTHER_MODEL = "other_model", _("Another model answered, without a declared price")
        DEARER_MODEL = "dearer_model", _("Another model answered, which costs more")
        FAILED = "failed", _("The provider failed, and may bill it")

    request = models.JSONField(default=dict)
    reply = models.JSONField(default=dict)
    answer = models.JSONField(null=True)
    reason = models.TextField(blank=True)
    reserved = models.DecimalField(max_digits=12, decimal_places=8, null=True)
    cost = models.DecimalField(max_digits=12, decimal_places=8, null=True)
    estimated = models.BooleanField(default=False, db_default=False)
    doubt = models.CharField(max_length=12, choices=Doubt, blank=True, default="", db_default="")

    class Meta:
        abstract = True


class PaidAttempt(PaidRow):
    """One request for a leased row: written before it is sent, with the most that it can cost; settled by its outcome.

    If a request was sent and its worker died before a reply came, the request is lost and counts at its worst case. An
    attempt that `failed` with a server error is booked at a cost of 0, but counts at its worst case against the caps
    until its run or plan is resumed.
    """

    class Outcome(models.TextChoices):
        PENDING = "pending", _("Not sent yet")
        SENT = "sent", _("Sent")
        LOST = "lost", _("Lost")
        REPLIED = "replied", _("Replied")
        UNAVAILABLE = "unavailable", _("Unavailable")
        REFUSED = "refused", _("Refused")
        REUSED = "reused", _("Reply of an earlier run")

    number = models.PositiveSmallIntegerField()
    outcome = models.CharField(max_length=11, choices=Outcome)
    served_model = models.CharField(max_length=160, blank=True)
    tokens_in = models.PositiveIntegerField(null=True)
    tokens_out = models.PositiveIntegerField(null=True)
    latency = models.FloatField(null=True)
    at = models.DateTimeField(default=timezone.now)

    OPEN: ClassVar = (Outcome.PENDING, Outcome.SENT)
    UNSENT: ClassVar = (Outcome.PENDING, Outcome.REUSED)

    class Meta:
        abstract = True


class LeasedRow(models.Model):
    """Something to ask a model for, until it is there or given up: a call of a judge, or a text to be written.

    A worker leases a waiting row by compare-and-set, and only the holder of the lease may change it; the first reply
    settles it. A lease that ran out is taken up again by the sweeper (judging/asking/leases.py). `tries` counts what
    the provider did not answer, `losses` the requests that were lost with their worker: each has a bound of its own.
    The states that both have are `waiting` and `leased`; each model has its own words for the two ends.
    """

    lease = models.UUIDField(null=True)
    leased_until = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)
    losses = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        abstract = True
