"""Webhooks: what is announced, when it is sent, and what becomes of a receiver that is gone."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts import addresses, jobs, tasks, webhooks
from accounts.models import Delivery, Event, Job, Webhook
from accounts.refusals import Refused
from annotation.desk import service
from annotation.imports import lifecycle, opening
from annotation.models import Annotation, Import
from tests.accounts.receiver import Receiver, receiver, send_due
from tests.annotation import scene
from tests.cast import Cast
from tests.workers import long_after

pytestmark = pytest.mark.django_db


@pytest.fixture
def there(settings: Any) -> Iterator[Receiver]:
    """A receiver on this machine, which only a development instance may send to."""
    settings.DEBUG = True
    with receiver() as running:
        yield running


@pytest.fixture
def webhook(cast: Cast, there: Receiver) -> Webhook:
    return webhooks.add(project=cast.kassa, address=there.address, events=webhooks.OFFERED, actor=cast.aino)


def announced(cast: Cast, subject: int = 1) -> Delivery:
    webhooks.announce(project=cast.kassa.pk, event=Event.IMPORT, subject=subject, payload={"import_id": subject})
    return Delivery.objects.latest("pk")


def later(**past: float) -> None:
    """Let time pass for everything that waits."""
    for delivery in Delivery.objects.all():
        Delivery.objects.filter(pk=delivery.pk).update(due_at=delivery.due_at - timedelta(**past))
    for found in Webhook.objects.exclude(failing_since=None):
        Webhook.objects.filter(pk=found.pk).update(failing_since=found.failing_since - timedelta(**past))  # type: ignore[operator]


def test_a_submission_is_told_without_saying_who_or_what(cast: Cast, webhook: Webhook, there: Receiver) -> None:
    taken = scene.taken(cast, scene.duty(cast))
    annotation = service.submit(assignment=taken, key=taken.key, answers=scene.ANSWERS, seconds=5)
    service.submit(assignment=taken, key=taken.key, answers=scene.ANSWERS, seconds=5)
    tasks.sweep_all.apply()
    assert send_due(webhook) == 1
    headers, body = there.came[0]
    told = json.loads(body)
    assert told["type"] == "ratings.submitted"
    where = {"project": "kassa", "campaign": annotation.campaign_id, "item": annotation.item_id}
    assert told["data"] == {**where, "revision": 1, "ratings": 2}
    secret = base64.b64decode(webhooks.secret(webhook).removeprefix("whsec_"))
    signed = addresses.signed(
        secret=secret, key=headers["webhook-id"], body=body, now=float(headers["webhook-timestamp"])
    )
    assert headers["webhook-signature"] == signed["webhook-signature"]


def test_what_is_rolled_back_is_never_told(cast: Cast, webhook: Webhook) -> None:
    taken = scene.taken(cast, scene.duty(cast))
    with transaction.atomic():
        service.submit(assignment=taken, key=taken.key, answers=scene.ANSWERS, seconds=5)
        transaction.set_rollback(True)
    assert (Annotation.objects.count(), Delivery.objects.count()) == (0, 0)


def test_submitting_asks_nothing_more_where_nobody_listens(cast: Cast) -> None:
    taken = scene.taken(cast, scene.duty(cast))
    found = service.on_desk(user=cast.maarika, key=taken.key)
    with CaptureQueriesContext(connection) as asked:
        service.submit(assignment=found, key=taken.key, answers=scene.ANSWERS, seconds=5)
    assert sum("accounts_" in query["sql"] for query in asked.captured_queries) == 0


def test_an_import_is_told_once_it_is_stored(cast: Cast, webhook: Webhook) -> None:
    file = b'{"id": "1", "language": "et", "question": "?"}\n'
    opened = opening.open_import(project=cast.kassa, kind=Import.Kind.DATASET, files=[("d.jsonl", file)])
    assert not Delivery.objects.exists()
    lifecycle.carry_out(file_import=opened)
    told = Delivery.objects.get()
    assert (told.event, told.subject_pk) == ("import.finished", opened.pk)
    about = {"project": "kassa", "import_id": opened.pk, "intake": opened.pk, "kind": "dataset"}
    assert told.payload["data"] == {**about, "state": "stored", "problems": 0}


def test_an_import_that_was_refused_is_told_without_what_was_in_it(cast: Cast, webhook: Webhook) -> None:
    file = b'{"id": "1", "language": "et", "question": "Salajane?"}\n' * 2 + b'{"id": "2"}\n'
    opened = opening.open_import(project=cast.kassa, kind=Import.Kind.DATASET, files=[("d.jsonl", file)])
    with pytest.raises(Refused):
        lifecycle.carry_out(file_import=opened)
    (told,) = Delivery.objects.all()
    assert told.payload["data"]["state"] == "failed"
    assert told.payload["data"]["problems"] == len(opened.report["problems"]) > 0
    assert "Salajane" not in str(told.payload)


def test_an_import_that_was_given_up_is_told(cast: Cast, webhook: Webhook) -> None:
    opened = opening.open_import(
        project=cast.kassa, kind=Import.Kind.DATASET, files=[("d.jsonl", b"{}")], actor=cast.boris
    )
    lifecycle.start(file_import=opened, actor=cast.boris)
    Job.objects.update(tries=jobs.MOST_TRIES)
    assert jobs.sweep_jobs(now=long_after()) == []
    assert Delivery.objects.get().payload["data"]["state"] == "failed"


def test_only_chosen_events_of_the_own_project_are_told(cast: Cast, there: Receiver) -> None:
    webhooks.add(project=cast.kassa, address=there.address, events=["run.finished"], actor=cast.aino)
    webhooks.add(project=cast.teine, address=there.address, events=["import.finished"], actor=cast.zoltan)
    webhooks.announce(project=cast.kassa.pk, event=Event.IMPORT, subject=1, payload={})
    assert not Delivery.objects.exists()


def test_a_failed_delivery_is_tried_again_later_and_later_and_then_given_up(
    cast: Cast, webhook: Webhook, there: Receiver
) -> None:
    there.status = 500
    told = announced(cast)
    for number, wait in enumerate(webhooks.WAITS, start=1):
        assert send_due(webhook) == 0
        told.refresh_from_db()
        assert (told.tries, told.status, len(there.came)) == (number, 500, number)
        if number < len(webhooks.WAITS):
            assert webhooks.due() == []
            later(seconds=wait.total_seconds())
    webhook.refresh_from_db()
    assert (told.state, webhook.off) == (Delivery.State.GIVEN_UP, Webhook.Off.FAILING)
    assert len({headers["webhook-id"] for headers, _body in there.came}) == 1
    assert len({body for _headers, body in there.came}) == 1


def test_a_receiver_in_trouble_is_asked_once_a_turn_and_gets_everything_when_it_is_back(
    cast: Cast, webhook: Webhook, there: Receiver
) -> None:
    there.status = 503
    for subject in range(5):
        announced(cast, subject)
    assert (send_due(webhook), len(there.came)) == (0, 1)
    there.status = 200
    later(seconds=3600)
    assert send_due(webhook) == 5
    webhook.refresh_from_db()
    assert webhook.failing_since is None


def test_a_receiver_that_is_gone_is_sent_nothing_more(cast: Cast, webhook: Webhook, there: Receiver) -> None:
    there.status = 410
    first = announced(cast)
    send_due(webhook)
    webhook.refresh_from_db()
    assert webhook.off == Webhook.Off.GONE
    assert announced(cast) == first, "nothing is written for a webhook that is off"
    later(hours=1)
    assert (webhooks.due(), webhooks.claim(webhook_pk=webhook.pk)) == ([], None)
    there.status = 200
    webhooks.turn_on(webhook=webhook, actor=cast.aino)
    assert send_due(webhook) == 1


def test_a_delivery_is_claimed_by_one_sender(cast: Cast, webhook: Webhook) -> None:
    announced(cast)
    assert webhooks.claim(webhook_pk=webhook.pk) is not None
    assert webhooks.claim(webhook_pk=webhook.pk) is None


def test_a_sender_that_dies_loses_nothing(cast: Cast, webhook: Webhook, there: Receiver) -> None:
    announced(cast)
    webhooks.claim(webhook_pk=webhook.pk)
    later(seconds=60)
    assert send_due(webhook) == 1


def test_a_sender_that_dies_at_the_last_try_leaves_it_given_up(cast: Cast, webhook: Webhook) -> None:
    told = announced(cast)
    for _try in webhooks.WAITS:
        assert webhooks.claim(webhook_pk=webhook.pk) is not None
        later(days=1)
    assert webhooks.claim(webhook_pk=webhook.pk) is None
    told.refresh_from_db()
    assert told.state == Delivery.State.GIVEN_UP


def test_a_delivery_is_sent_again_under_the_same_id(cast: Cast, webhook: Webhook, there: Receiver) -> None:
    told = announced(cast)
    with pytest.raises(Refused, match="waiting"):
        webhooks.send_again(delivery=told, actor=cast.aino)
    send_due(webhook)
    webhooks.send_again(delivery=told, actor=cast.aino)
    send_due(webhook)
    assert len(there.came) == 2
    assert there.came[0][0]["webhook-id"] == there.came[1][0]["webhook-id"]


def test_another_secret_signs_otherwise_and_the_database_holds_neither(cast: Cast, webhook: Webhook) -> None:
    before = webhooks.secret(webhook)
    webhooks.renew(webhook=webhook, actor=cast.aino)
    after = webhooks.secret(webhook)
    assert before != after
    stored = str(list(Webhook.objects.values()))
    assert all(secret.removeprefix("whsec_") not in stored for secret in (before, after))


def test_old_deliveries_are_forgotten(cast: Cast, webhook: Webhook) -> None:
    announced(cast)
    announced(cast)
    Delivery.objects.filter(pk=announced(cast).pk).update(made_at=timezone.now() - timedelta(days=31))
    assert (webhooks.sweep_deliveries(), Delivery.objects.count()) == (1, 2)


def test_a_private_address_is_refused_when_it_is_added(cast: Cast, settings: Any) -> None:
    with pytest.raises(Refused, match="private network") as refused:
        webhooks.add(project=cast.kassa, address="https://127.0.0.1/x", events=["run.finished"], actor=cast.aino)
    assert "address" in refused.value.fields
    with pytest.raises(Refused, match="https://"):
        webhooks.add(project=cast.kassa, address="http://127.0.0.1/x", events=["run.finished"], actor=cast.aino)
