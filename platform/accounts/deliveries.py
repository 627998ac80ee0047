"""Send webhook deliveries: one job at a time for a webhook, which sends what is due, the oldest first.

The time of the next try, after a growing delay, is stored before a request is sent (`claim`), so that a worker that
dies loses nothing: the delivery is due again by then. A receiver may so get an event twice, always under the same id.
Requests are sent outside any transaction. A job lasts a minute at most; the first delivery that fails ends it.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import jobs, outgoing, webhooks
from accounts.jobs import JobHeartbeat, JobKind
from accounts.models import Delivery, Job, Webhook

# What is waited after each try: eight tries within a day, the last right after it.
WAITS = tuple(timedelta(seconds=seconds) for seconds in (60, 300, 1_800, 7_200, 14_400, 28_800, 36_000, 0))
PATIENCE = timedelta(days=1)  # after so long without anything getting through a webhook is turned off
KEPT = timedelta(days=30)
LONGEST_JOB = 60.0  # seconds that one job takes at most, beside its last request
GONE = 410


def due(*, now: datetime | None = None) -> list[int]:
    """The webhooks that have something to send now."""
    waiting = _due(now or timezone.now()).filter(webhook=OuterRef("pk"))
    return list(Webhook.objects.filter(Exists(waiting), off="").values_list("pk", flat=True))


def _due(now: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(state=Delivery.State.WAITING, due_at__lte=now)


def deliver_due(*, webhook_pk: int) -> int:
    """Send what is due at one webhook, unless another worker does; returns how many got through.

    While deliveries get through, the next job is enqueued for what is still due, or became so just now.
    The first that fails ends the job: a receiver in trouble is asked once in a while, and not for every event.
    """
    webhook = Webhook.objects.filter(pk=webhook_pk).first()
    if webhook is None or (job := jobs.take_job(webhook, Job.Kind.DELIVERIES)) is None:
        return 0
    with JobHeartbeat(job) as heartbeat:
        sent, sentence = _send_due(webhook_pk, heartbeat)
    if sentence:
        jobs.fail(job, sentence)
    else:
        jobs.finish_job(job, done=sent, total=sent)
    if (sent or not sentence) and _due(timezone.now()).filter(webhook=webhook_pk, webhook__off="").exists():
        webhooks.ask_to_send(webhook_pk)
    return sent


def _send_due(webhook_pk: int, heartbeat: JobHeartbeat) -> tuple[int, str]:
    """How many got through, and why the first that did not failed."""
    ends, sent = time.monotonic() + LONGEST_JOB, 0
    heartbeat.total = _due(timezone.now()).filter(webhook=webhook_pk).count()
    while time.monotonic() < ends and not heartbeat.is_lost and (delivery := claim(webhook_pk=webhook_pk)):
        if sentence := send(delivery=delivery):
            return sent, sentence
        sent += 1
        heartbeat.done, heartbeat.total = sent, max(sent, heartbeat.total)
    return sent, ""


def claim(*, webhook_pk: int, now: datetime | None = None) -> Delivery | None:
    """Count a try of the oldest due delivery of a webhook that is on, and store when the next one is due."""
    now = now or timezone.now()
    waiting = _due(now).filter(webhook=webhook_pk, webhook__off="").select_related("webhook").order_by("due_at", "pk")
    while (delivery := waiting.first()) is not None:
        if delivery.tries >= len(WAITS):  # its last sender died
            _give_up(delivery, delivery.reason or "The last attempt was interrupted.")
        elif _claimed(delivery, now):
            return delivery
    return None


def _claimed(delivery: Delivery, now: datetime) -> bool:
    again_at = now + max(WAITS[delivery.tries], timedelta(seconds=2 * outgoing.TIMEOUT))
    waiting = Delivery.objects.filter(pk=delivery.pk, state=Delivery.State.WAITING)
    unchanged = waiting.filter(tries=delivery.tries, due_at=delivery.due_at)
    if not unchanged.update(tries=delivery.tries + 1, due_at=again_at, tried_at=now):
        return False
    delivery.tries += 1
    return True


def send(*, delivery: Delivery) -> str:
    """Send the request of a claimed delivery and store the outcome; empty when the receiver took it, else why not."""
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
        return ""
    if status is not None and 300 <= status < 400:
        reason = "It answered with a redirect, which is not followed."
    _note_failure(delivery, status, reason)
    return reason or _("The receiver answered with status %d.") % (status or 0)


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
    """Delete what is old; returns how many."""
    return Delivery.objects.filter(made_at__lt=(now or timezone.now()) - KEPT).delete()[0]


# --- what jobs have to know -----------------------------------------------------------------------------------------
def _cancelled(webhook: Webhook, sentence: str) -> bool:
    """What waits is not sent; each delivery can be sent again from the page of its webhook."""
    waiting = Delivery.objects.filter(webhook=webhook.pk, state=Delivery.State.WAITING)
    waiting.update(state=Delivery.State.GIVEN_UP, reason=sentence[:200])
    return True


KINDS: dict[str, JobKind] = {
    Job.Kind.DELIVERIES: JobKind(
        model=Webhook,
        task=lambda _webhook: "accounts.tasks.deliver",
        fail=lambda _webhook, _sentence: True,
        cancel=_cancelled,
        title=lambda webhook: urlsplit(webhook.address).hostname or "",  # the rest of an address may be secret
        address=lambda webhook: reverse("webhook", args=[webhook.project.slug, webhook.pk]),
        related=("project",),
        most_tries=None,  # the tries of every delivery are counted
        loses=gettext_lazy("The deliveries that wait are not sent. They can be sent again from the webhook's page."),
    ),
}
