"""Send webhook deliveries: claimed by compare-and-set, sent outside any transaction, repeated with growing delays.

A claim sets the time of the next try before the request is made, so that a worker that dies loses nothing: the delivery
is due again by then. A receiver may so hear of an event twice, always under the same id.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from accounts import outgoing, webhooks
from accounts.models import Delivery, Webhook

# What is waited after each try: eight tries within a day, the last right after it.
WAITS = tuple(timedelta(seconds=each) for each in (60, 300, 1_800, 7_200, 14_400, 28_800, 36_000, 0))
PATIENCE = timedelta(days=1)  # after so long without anything getting through a webhook is turned off
KEPT = timedelta(days=30)
SHIFT = 60.0  # seconds that one turn of sending takes at most, beside its last request
GONE = 410


def due(*, now: datetime | None = None) -> list[int]:
    """The webhooks that have something to send now."""
    waiting = _due(now or timezone.now()).filter(webhook=OuterRef("pk"))
    return list(Webhook.objects.filter(Exists(waiting), off="").values_list("pk", flat=True))


def _due(now: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(state=Delivery.State.WAITING, due_at__lte=now)


def send_due(*, webhook_pk: int) -> int:
    """Send what is due at one webhook, the oldest first; returns how many got through.

    The first that fails ends the turn: a receiver in trouble is asked once in a while, and not for every event.
    """
    ends, sent = time.monotonic() + SHIFT, 0
    while time.monotonic() < ends and (claimed := claim(webhook_pk=webhook_pk)):
        if not send(delivery=claimed):
            break
        sent += 1
    return sent


def claim(*, webhook_pk: int, now: datetime | None = None) -> Delivery | None:
    """Take the oldest due delivery of a webhook that is on, so that nobody else sends it at the same time."""
    now = now or timezone.now()
    waiting = _due(now).filter(webhook=webhook_pk, webhook__off="").select_related("webhook").order_by("due_at", "pk")
    while (found := waiting.first()) is not None:
        if found.tries >= len(WAITS):  # its last sender died
            _give_up(found, found.reason or "The last attempt was interrupted.")
        elif _claimed(found, now):
            return found
    return None


def _claimed(found: Delivery, now: datetime) -> bool:
    again_at = now + max(WAITS[found.tries], timedelta(seconds=2 * outgoing.TIMEOUT))
    mine = Delivery.objects.filter(pk=found.pk, state=Delivery.State.WAITING, tries=found.tries, due_at=found.due_at)
    if not mine.update(tries=found.tries + 1, due_at=again_at, tried_at=now):
        return False
    found.tries += 1
    return True


def send(*, delivery: Delivery) -> bool:
    """Make the request of a claimed delivery and note what came of it; True when the receiver took it."""
    body, webhook = webhooks.body(delivery), delivery.webhook
    signing_key, key = webhooks.signing_key(webhook), webhooks.delivery_key(delivery)
    headers = outgoing.signed(secret=signing_key, key=key, body=body, now=time.time())
    status, reason = None, ""
    try:
        status = outgoing.post(webhook.address, body=body, headers=headers, limits=webhooks.limits())
    except (outgoing.AddressForbidden, outgoing.ReceiverUnreachable) as no:
        reason = str(no)[:200]
    if status is not None and 200 <= status < 300:
        _note_success(delivery, status)
        return True
    _note_failure(delivery, status, reason or _said(status))
    return False


def _said(status: int | None) -> str:
    return "It answered with a redirect, which is not followed." if status and 300 <= status < 400 else ""


def _note_success(delivery: Delivery, status: int) -> None:
    Delivery.objects.filter(pk=delivery.pk).update(state=Delivery.State.DELIVERED, status=status, reason="")
    Webhook.objects.filter(pk=delivery.webhook_id).exclude(failing_since=None).update(failing_since=None)


def _note_failure(delivery: Delivery, status: int | None, reason: str) -> None:
    Delivery.objects.filter(pk=delivery.pk).update(status=status, reason=reason)
    now, webhook = timezone.now(), Webhook.objects.filter(pk=delivery.webhook_id, off="")
    if status == GONE:
        webhook.update(off=Webhook.Off.GONE)
        return
    if delivery.tries >= len(WAITS):
        _give_up(delivery, reason)
    webhook.filter(failing_since=None).update(failing_since=now)
    webhook.filter(failing_since__lt=now - PATIENCE).update(off=Webhook.Off.FAILING)


def _give_up(delivery: Delivery, reason: str) -> None:
    waiting = Delivery.objects.filter(pk=delivery.pk, state=Delivery.State.WAITING)
    waiting.update(state=Delivery.State.GIVEN_UP, reason=reason)


def sweep_deliveries(*, now: datetime | None = None) -> int:
    """Forget what was made long ago; returns how many."""
    return Delivery.objects.filter(made_at__lt=(now or timezone.now()) - KEPT).delete()[0]
