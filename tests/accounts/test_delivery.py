"""From what happens to somebody's own program: through the API, a real worker, https and the documented check."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts import jobs, tasks, webhooks
from accounts.models import Delivery, Event, Job, Webhook
from panelbench.celery import app
from panelbench_client import Forged, received
from tests.accounts.certificates import certificate
from tests.accounts.receiver import Receiver, receiver, send_due
from tests.annotation import scene
from tests.cast import Cast
from tests.workers import kill, long_after, wait_for_workers, working

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = "/api/v1/projects/kassa/webhooks/"
HERE = "127.0.0.0/8", "::1/128"


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Receiver]:
    """A receiver by https in this machine's own network, which the operator allows; asked for before the worker."""
    made = certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(made))
    monkeypatch.setenv("WEBHOOK_NETWORKS", ",".join(HERE))
    settings.WEBHOOK_NETWORKS = tuple(map(ip_network, HERE))
    with receiver(certificate=made) as running:
        yield running


@pytest.fixture
def secret(cast: Cast, there: Receiver) -> str:
    """The secret of a webhook that a lead adds by the API."""
    said = {"address": there.address, "events": ["ratings.submitted", "import.finished"]}
    answer = cast.client("aino").post(ADDRESS, said, content_type="application/json")
    assert answer.status_code == 201, answer.content
    return str(answer.json()["secret"])


def announced(cast: Cast, *subjects: int) -> None:
    for subject in subjects:
        webhooks.announce(project=cast.kassa.pk, event=Event.IMPORT, subject=subject, payload={"import_id": subject})


def test_a_submission_reaches_the_program_at_once(
    cast: Cast, there: Receiver, secret: str, worker: subprocess.Popen[bytes]
) -> None:
    """No beat runs here: what arrives was asked for by the submission itself."""
    taken = scene.taken(cast, scene.duty(cast))
    answers = [{"criterion": key, "score": given.score} for key, given in scene.ANSWERS.items()]
    address = f"/api/v1/projects/kassa/desk/at/{taken.key}/"
    said = {"answers": answers, "seconds": 5}
    assert cast.client("maarika").post(address, said, content_type="application/json").status_code == 200
    wait_for_workers(lambda: bool(there.came))
    event = received(secret, *there.came[0])
    assert (event["type"], event["data"]["ratings"]) == ("ratings.submitted", 2)


def test_what_fails_comes_again_later_signed_anew_under_the_same_id(
    cast: Cast, there: Receiver, secret: str, worker: subprocess.Popen[bytes]
) -> None:
    there.status = 500
    announced(cast, 1)
    wait_for_workers(lambda: Delivery.objects.get().status == 500)
    announced(cast, 2)
    told = Delivery.objects.earliest("pk")
    assert timedelta(seconds=50) < told.due_at - told.made_at < timedelta(seconds=90)
    assert len(there.came) == 1, "one in trouble is not asked for every event"
    there.status = 204
    Delivery.objects.update(due_at=told.made_at)
    tasks.sweep_all.delay()
    wait_for_workers(lambda: Delivery.objects.filter(state="delivered").count() == 2)
    events = [received(secret, *each)["data"]["import_id"] for each in there.came]
    assert events == [1, 1, 2], "the oldest first"
    first, again, second = (headers["webhook-id"] for headers, _body in there.came)
    assert first == again != second
    assert Webhook.objects.get().failing_since is None


def test_events_come_in_their_order(cast: Cast, there: Receiver, secret: str) -> None:
    announced(cast, *range(10))
    assert send_due(Webhook.objects.get()) == 10
    assert [received(secret, *each)["data"]["import_id"] for each in there.came] == list(range(10))


def test_a_delivery_whose_worker_is_killed_is_sent_again_under_its_id(
    cast: Cast, there: Receiver, secret: str, settings: Any
) -> None:
    if not settings.REDIS_URL:
        pytest.skip("needs Redis")
    app.control.purge()
    there.delay = 8.0
    with working(queues="default") as doomed:
        announced(cast, 1, 2)
        wait_for_workers(lambda: bool(there.came) and Job.objects.get().total)  # it reports every other second
        kill(doomed)
    there.delay = 0.0
    job = Job.objects.get()
    assert (job.state, job.kind, job.tries) == ("running", "deliveries", 1)
    (listed,) = cast.client("aino").get("/api/v1/projects/kassa/jobs/").json()["results"]
    assert (listed["title"], listed["state"], listed["total"]) == ("localhost", "running", 2)
    assert cast.client("boris").get("/api/v1/projects/kassa/jobs/").json()["results"] == [], "webhooks are for leads"
    with working(queues="default"):
        assert jobs.sweep_jobs(now=long_after()) == [job]
        wait_for_workers(lambda: Delivery.objects.filter(state="delivered").count() == 1)  # the second, which is due
        wait_for_workers(lambda: Job.objects.get().state == "finished")
        Delivery.objects.update(due_at=timezone.now())
        tasks.sweep_all.delay()
        wait_for_workers(lambda: Delivery.objects.filter(state="delivered").count() == 2)
    assert [received(secret, *event)["data"]["import_id"] for event in there.came] == [1, 2, 1]
    assert there.came[0][0]["webhook-id"] == there.came[2][0]["webhook-id"]
    assert list(Delivery.objects.order_by("pk").values_list("tries", flat=True)) == [2, 1]


def test_what_a_lead_cancels_is_not_sent_and_can_be_sent_again(cast: Cast, there: Receiver, secret: str) -> None:
    announced(cast, 1)
    answer = cast.client("aino").post(f"/api/v1/projects/kassa/jobs/{Job.objects.get().pk}/cancel/")
    assert answer.json()["state"] == "cancelled"
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.reason, there.came) == ("given_up", "This was cancelled by Aino.", [])
    webhooks.send_again(delivery=delivery, actor=cast.aino)
    assert (webhooks.deliver_due(webhook_pk=delivery.webhook_id), len(there.came)) == (1, 1)


def test_the_documented_check_refuses_what_is_old_changed_or_signed_by_another(
    cast: Cast, there: Receiver, secret: str
) -> None:
    announced(cast, 1)
    send_due(Webhook.objects.get())
    headers, body = there.came[0]
    signed_at = int(headers["webhook-timestamp"])
    assert received(secret, {name.title(): value for name, value in headers.items()}, body)
    assert received(secret, headers, body, now=signed_at + 299.0)
    for late in (301.0, -301.0):
        with pytest.raises(Forged, match="clock"):
            received(secret, headers, body, now=signed_at + late)
    with pytest.raises(Forged, match="signature"):
        received(secret, headers, body.replace(b"1", b"2"))
    with pytest.raises(Forged, match="signature"):
        received(secret, {**headers, "webhook-timestamp": str(signed_at + 1)}, body)
    with pytest.raises(Forged, match="signature"):
        received(secret, {**headers, "webhook-id": "msg_other"}, body)
    with pytest.raises(Forged, match="timestamp"):
        received(secret, {}, body)
    webhooks.renew(webhook=Webhook.objects.get(), actor=cast.aino)
    with pytest.raises(Forged, match="signature"):
        received(webhooks.secret(Webhook.objects.get()), headers, body)


def test_the_secret_is_said_once(cast: Cast, secret: str) -> None:
    (listed,) = cast.client("aino").get(ADDRESS).json()["results"]
    detail = cast.client("aino").get(f"{ADDRESS}{listed['id']}/").json()
    assert "secret" not in listed | detail
    renewed = cast.client("aino").post(f"{ADDRESS}{listed['id']}/secret/").json()
    assert renewed["secret"] != secret


def test_a_network_that_is_not_allowed_any_more_is_not_sent_to(
    cast: Cast, there: Receiver, secret: str, settings: Any
) -> None:
    announced(cast, 1)
    settings.WEBHOOK_NETWORKS = ()
    send_due(Webhook.objects.get())
    assert (there.came, "private network" in Delivery.objects.get().reason) == ([], True)
    again = cast.client("aino").post(
        ADDRESS, {"address": there.address, "events": ["run.finished"]}, content_type="application/json"
    )
    assert (again.status_code, list(again.json()["fields"])) == (422, ["address"])


def test_a_redirect_leads_nowhere_and_is_said(cast: Cast, there: Receiver, secret: str) -> None:
    there.status, there.location = 302, there.address
    announced(cast, 1)
    send_due(Webhook.objects.get())
    assert (len(there.came), "redirect" in Delivery.objects.get().reason) == (1, True)
