"""Webhooks: the addresses of a project's leads, and the deliveries to them.

`announce` writes one delivery for each webhook that listens to the event, in the transaction of the event itself, so
that a change that is rolled back is never announced. After the commit, a worker is asked to send it (decision 0012): a
webhook has one job at a time, which sends the due deliveries, the oldest first (`deliver_due`). The time of the next
try, after a growing delay, is stored before a request is sent (`claim`). So if a worker dies, nothing is lost: the
delivery is due again at that time. Therefore a receiver may get an event twice, always with the same id. Requests are
sent outside any transaction. A job lasts a minute at most; the first delivery that fails ends it.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django import conf
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import get_random_string, salted_hmac
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from uuid_utils.compat import uuid7

from accounts import addresses, audit, jobs
from accounts.jobs import JobHeartbeat, JobKind
from accounts.models import Delivery, Event, Job, Project, User, Webhook
from accounts.refusals import Refused

MOST = 10  # webhooks of one project
OFFERED = (Event.RATINGS, Event.RUN, Event.PLAN, Event.PLAN_PAUSED, Event.IMPORT, Event.DECISION)
PREFIX = "whsec_"


def add(*, project: Project, address: str, events: Iterable[str], actor: User) -> Webhook:
    """Add a webhook for events; `secret` returns its signing secret."""
    if project.webhooks.count() >= MOST:
        raise Refused(_("A project can have at most %d webhooks. Remove one first.") % MOST, code="too_many")
    address, chosen = _checked(address), _offered(events)
    try:
        with transaction.atomic():
            webhook = Webhook.objects.create(
                project=project, address=address, events=chosen, nonce=get_random_string(43), created_by=actor
            )
            audit.record(actor=actor, project=project, verb="add webhook", subject=webhook, fields=["events"])
    except IntegrityError:
        sentence = _("There is already a webhook with this address. Change its events instead.")
        raise Refused(sentence, code="taken", fields={"address": sentence}) from None
    return webhook


def listen(*, webhook: Webhook, events: Iterable[str], actor: User) -> None:
    """Change the events of the webhook."""
    _change(webhook, actor, "change webhook", events=_offered(events))


def turn_on(*, webhook: Webhook, actor: User) -> None:
    """Turn the webhook on again; waiting deliveries are sent first."""
    with transaction.atomic():
        _change(webhook, actor, "turn webhook on", off="", failing_since=None)
        _send_soon(webhook)


def turn_off(*, webhook: Webhook, actor: User) -> None:
    """Turn the webhook off: waiting deliveries stay waiting, and no new ones are added."""
    _change(webhook, actor, "turn webhook off", off=Webhook.Off.BY_HAND)


def renew(*, webhook: Webhook, actor: User) -> None:
    """Replace the webhook's secret; the old secret is no longer used."""
    _change(webhook, actor, "renew webhook secret", nonce=get_random_string(43))


def remove_webhook(*, webhook: Webhook, actor: User) -> None:
    """Delete the webhook with its address and all its deliveries."""
    with transaction.atomic():
        audit.record(actor=actor, project=webhook.project, verb="remove webhook", subject=webhook)
        jobs.drop(webhook)
        Webhook.objects.filter(pk=webhook.pk).delete()


def _change(webhook: Webhook, actor: User, verb: str, **fields: Any) -> None:
    with transaction.atomic():
        Webhook.objects.filter(pk=webhook.pk).update(**fields)
        audit.record(actor=actor, project=webhook.project, verb=verb, subject=webhook, fields=fields)
    for name, value in fields.items():
        setattr(webhook, name, value)


def _checked(address: str) -> str:
    address = address.strip()
    try:
        addresses.check_address(address, limits())
    except addresses.AddressForbidden as no:
        raise Refused(str(no), code="address", fields={"address": str(no)}) from None
    return address


def _offered(events: Iterable[str]) -> list[str]:
    chosen = [event.value for event in OFFERED if event in set(events)]
    if not chosen:
        sentence = _("Choose at least one event.")
        raise Refused(sentence, code="no_event", fields={"events": sentence})
    return chosen


def limits() -> addresses.Limits:
    """The limits on addresses of webhooks: addresses outside the public internet only if the operator allows them."""
    return addresses.Limits(networks=conf.settings.WEBHOOK_NETWORKS, loopback=conf.settings.DEBUG)


def signing_key(webhook: Webhook) -> bytes:
    """The bytes that sign: derived from the nonce and SECRET_KEY, so that a copy of the database can't sign."""
    return salted_hmac("panelbench.webhooks", webhook.nonce, algorithm="sha256").digest()


def secret(webhook: Webhook) -> str:
    """The secret in the form that a receiver's library expects."""
    return PREFIX + base64.b64encode(signing_key(webhook)).decode()


# --- announcing -----------------------------------------------------------------------------------------------------
def listening(*, project: int, event: Event) -> list[Webhook]:
    """The project's webhooks for ``event``: one look-up in an index that is empty for most projects."""
    webhooks = Webhook.objects.filter(project=project, off="", project__deletion=None).select_related("project")
    return [webhook for webhook in webhooks if event in webhook.events]


def announce(*, project: int, event: Event, subject: int, payload: Mapping[str, Any]) -> int:
    """Write a delivery for every webhook that listens, in the caller's transaction; returns how many.

    ``payload`` holds keys and counts: no text of items or ratings, no name, nothing an annotator may not see.
    """
    webhooks = listening(project=project, event=event)
    for webhook in webhooks:
        if webhook.failing_since is None:  # a receiver in trouble is asked by the sweep, not for every event
            _send_soon(webhook)
    return len(Delivery.objects.bulk_create([_delivery(webhook, event, subject, payload) for webhook in webhooks]))


def _send_soon(webhook: Webhook) -> None:
    """Enqueue the sending for after the commit of this transaction; if this fails, the sweep does it later."""
    transaction.on_commit(partial(ask_to_send, webhook.pk), robust=True)


def ask_to_send(webhook_pk: int) -> None:
    """Create and enqueue a job that sends the due deliveries of a webhook, unless such a job waits or runs.

    A running job checks at its end for deliveries that became due during it.
    """
    with transaction.atomic():
        webhooks = Webhook.objects.select_for_update(no_key=True, of=("self",)).select_related("project")
        webhook = webhooks.filter(pk=webhook_pk, off="", project__deletion=None).first()
        if webhook is None or Job.objects.open().filter(pk=webhook.job_id or 0).exists():
            return
        project, unit = webhook.project, Job.Unit.DELIVERIES
        kind = Job.Kind.DELIVERIES
        jobs.begin(kind=kind, subject=webhook, project=project, owner=None, unit=unit, delete_former=True)
        jobs.enqueue(webhook)


def test(*, webhook: Webhook, actor: User) -> Delivery:
    """Create a test delivery and have it sent, whatever events the webhook listens to."""
    with transaction.atomic():
        _require_on(webhook)
        audit.record(actor=actor, project=webhook.project, verb="test webhook", subject=webhook)
        delivery = _delivery(webhook, Event.TEST, webhook.pk, {"webhook": webhook.pk})
        delivery.save()
        _send_soon(webhook)
    return delivery


def send_again(*, delivery: Delivery, actor: User) -> None:
    """Send a delivery again, with the same id, so that the receiver can recognise it."""
    _require_on(delivery.webhook)
    with transaction.atomic():
        fresh = {"state": Delivery.State.WAITING, "tries": 0, "due_at": timezone.now(), "reason": ""}
        if not Delivery.objects.filter(pk=delivery.pk).exclude(state=Delivery.State.WAITING).update(**fresh):
            raise Refused(_("It is already waiting to be sent."), code="wrong_state")
        audit.record(actor=actor, project=delivery.webhook.project, verb="send again", subject=delivery)
        _send_soon(delivery.webhook)
    delivery.refresh_from_db()


def _require_on(webhook: Webhook) -> None:
    if webhook.off:
        raise Refused(_("This webhook is turned off. Turn it on first."), code="webhook_off")


def _delivery(webhook: Webhook, event: Event, subject: int, payload: Mapping[str, Any]) -> Delivery:
    now = timezone.now()
    content = {"type": event.value, "timestamp": now.isoformat(), "data": {"project": webhook.project.slug, **payload}}
    return Delivery(webhook=webhook, key=uuid7(), event=event, subject_pk=subject, payload=content, due_at=now)


def delivery_key(delivery: Delivery) -> str:
    """The id of a delivery for its receiver: the same at every attempt."""
    return f"msg_{delivery.key.hex}"


def body(delivery: Delivery) -> bytes:
    """The bytes that are signed and sent, the same at every try."""
    return json.dumps(delivery.payload, sort_keys=True, separators=(",", ":")).encode()


# --- sending deliveries ----------------------------------------------------------------------------------------------
# The pause after each try: eight tries within a day, the last right after it.
WAITS = tuple(timedelta(seconds=seconds) for seconds in (60, 300, 1_800, 7_200, 14_400, 28_800, 36_000, 0))
PATIENCE = timedelta(days=1)  # a webhook is turned off after this time without a successful delivery
KEPT = timedelta(days=30)
LONGEST_JOB = 60.0  # seconds that one job takes at most, beside its last request
GONE = 410


def due(*, now: datetime | None = None) -> list[int]:
    """The webhooks that have something to send now."""
    waiting = _due(now or timezone.now()).filter(webhook=OuterRef("pk"))
    return list(Webhook.objects.filter(Exists(waiting), off="", project__deletion=None).values_list("pk", flat=True))


def _due(now: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(state=Delivery.State.WAITING, due_at__lte=now)


def deliver_due(*, webhook_pk: int) -> int:
    """Send the due deliveries of one webhook, unless another worker does. Returns how many succeeded.

    If a delivery succeeded, or none failed, the next job is enqueued for deliveries that are (still) due.
    The first failure ends the job: a receiver that does not work is tried now and then, and not for every event.
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
        ask_to_send(webhook_pk)
    return sent


def _send_due(webhook_pk: int, heartbeat: JobHeartbeat) -> tuple[int, str]:
    """Returns how many deliveries succeeded, and why the first failed one failed."""
    ends, sent = time.monotonic() + LONGEST_JOB, 0
    heartbeat.total = _due(timezone.now()).filter(webhook=webhook_pk).count()
    while time.monotonic() < ends and not heartbeat.is_lost and (delivery := claim(webhook_pk=webhook_pk)):
        if sentence := send(delivery=delivery):
            return sent, sentence
        sent += 1
        heartbeat.done, heartbeat.total = sent, max(sent, heartbeat.total)
    return sent, ""


def claim(*, webhook_pk: int, now: datetime | None = None) -> Delivery | None:
    """Count a try of the oldest due delivery of a webhook that is on, and store when the next one is due.

    None while the project is deleted.
    """
    now = now or timezone.now()
    own = _due(now).filter(webhook=webhook_pk, webhook__off="", webhook__project__deletion=None)
    waiting = own.select_related("webhook").order_by("due_at", "pk")
    while (delivery := waiting.first()) is not None:
        if delivery.tries >= len(WAITS):  # its last sender died
            _give_up(delivery, delivery.reason or "The last attempt was interrupted.")
        elif _claimed(delivery, now):
            return delivery
    return None


def _claimed(delivery: Delivery, now: datetime) -> bool:
    again_at = now + max(WAITS[delivery.tries], timedelta(seconds=2 * addresses.TIMEOUT))
    waiting = Delivery.objects.filter(pk=delivery.pk, state=Delivery.State.WAITING)
    unchanged = waiting.filter(tries=delivery.tries, due_at=delivery.due_at)
    if not unchanged.update(tries=delivery.tries + 1, due_at=again_at, tried_at=now):
        return False
    delivery.tries += 1
    return True


def send(*, delivery: Delivery) -> str:
    """Send the request of a claimed delivery and store the outcome. Returns why it failed; empty if it succeeded."""
    content, webhook = body(delivery), delivery.webhook
    secret_key, key = signing_key(webhook), delivery_key(delivery)
    headers = addresses.signed(secret=secret_key, key=key, body=content, now=time.time())
    status, reason = None, ""
    try:
        status = addresses.post(webhook.address, body=content, headers=headers, limits=limits())
    except (addresses.AddressForbidden, addresses.ReceiverUnreachable) as no:
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
    """Delete old deliveries. Returns how many were deleted."""
    return Delivery.objects.filter(made_at__lt=(now or timezone.now()) - KEPT).delete()[0]


# --- what jobs have to know -----------------------------------------------------------------------------------------
def _cancelled(webhook: Webhook, sentence: str) -> bool:
    """Stop the waiting deliveries; each can be sent again from the page of its webhook."""
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
