"""A lead's pages of webhooks: added, tried, turned off, sent again, removed; nobody else comes near."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse

from accounts import webhooks
from accounts.models import AuditEntry, Delivery, Webhook
from tests.accounts.receiver import Receiver, receiver, send_due
from tests.cast import Cast

PAGE = "/p/kassa/settings/webhooks/"


@pytest.fixture
def there(settings: Any) -> Iterator[Receiver]:
    settings.DEBUG = True  # or nothing is sent to this machine
    with receiver() as running:
        yield running


@pytest.fixture
def webhook(cast: Cast, there: Receiver) -> Webhook:
    return webhooks.add(project=cast.kassa, address=there.address, events=["run.finished"], actor=cast.aino)


def posted(cast: Cast, place: str, **said: Any) -> str:
    """The page that a lead sees after posting a form of it."""
    answer: HttpResponse = cast.client("aino").post(f"{PAGE}{place}", said, follow=True)  # type: ignore[assignment]
    assert answer.status_code in (200, 422)
    return answer.content.decode()


def page(cast: Cast, address: str = "") -> str:
    return cast.client("aino").get(f"{PAGE}{address}").content.decode()


def test_one_is_added_and_its_secret_shown_once(cast: Cast, there: Receiver) -> None:
    shown = posted(cast, "", address=there.address, events=["run.finished", "import.finished"])
    (found,) = Webhook.objects.all()
    assert webhooks.secret(found) in shown
    listed = page(cast)
    assert there.address in listed
    assert webhooks.secret(found) not in listed + page(cast, f"{found.pk}/")
    assert "whsec_" not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"address": "https://10.0.0.7/hook", "events": ["run.finished"]}, "private network"),
        ({"address": "http://hooks.example.org/", "events": ["run.finished"]}, "https://"),
        ({"address": "https://10.0.0.7/hook"}, "Choose at least one event"),
    ],
)
def test_what_cannot_be_told_is_said_beside_its_field(cast: Cast, said: dict[str, Any], sentence: str) -> None:
    refused = cast.client("aino").post(PAGE, said)
    assert refused.status_code == 422
    assert sentence in refused.content.decode()
    assert not Webhook.objects.exists()


def test_a_test_is_sent_and_what_came_of_it_is_shown(cast: Cast, webhook: Webhook, there: Receiver) -> None:
    there.status = 418
    assert "It is being sent" in posted(cast, f"{webhook.pk}/test/")
    send_due(webhook)
    shown = page(cast, f"{webhook.pk}/")
    assert "418" in shown
    assert "No delivery has succeeded since" in shown


def test_other_events_are_chosen(cast: Cast, webhook: Webhook) -> None:
    posted(cast, f"{webhook.pk}/", events=["ratings.submitted"])
    webhook.refresh_from_db()
    assert webhook.events == ["ratings.submitted"]
    assert "Choose at least one event" in posted(cast, f"{webhook.pk}/")


def test_one_is_turned_off_and_on_again(cast: Cast, webhook: Webhook) -> None:
    assert "Turned off by hand." in posted(cast, f"{webhook.pk}/turn/", to="off")
    assert "turned off. Turn it on first" in posted(cast, f"{webhook.pk}/test/")
    assert "Turned off by hand." not in posted(cast, f"{webhook.pk}/turn/", to="on")
    assert not Delivery.objects.exists()


def test_a_delivery_is_sent_again(cast: Cast, webhook: Webhook, there: Receiver) -> None:
    posted(cast, f"{webhook.pk}/test/")
    told = Delivery.objects.get()
    again = f"{webhook.pk}/deliveries/{told.pk}/again/"
    assert again not in page(cast, f"{webhook.pk}/"), "it waits still"
    send_due(webhook)
    assert again in page(cast, f"{webhook.pk}/")
    posted(cast, again)
    send_due(webhook)
    assert len({headers["webhook-id"] for headers, _body in there.came}) == 1
    assert len(there.came) == 2


def test_a_secret_is_renewed_and_a_webhook_removed_only_after_a_question(cast: Cast, webhook: Webhook) -> None:
    asking = re.findall(r'action="[^"]*/(\w+)/" data-confirm="([^"]+)"', page(cast, f"{webhook.pk}/"))
    assert asking == [("secret", "Create a new secret?"), ("remove", "Remove this webhook?")]
    before = webhooks.secret(webhook)
    shown = posted(cast, f"{webhook.pk}/secret/")
    webhook.refresh_from_db()
    assert before not in shown
    assert webhooks.secret(webhook) in shown
    assert f"Nothing more is sent to {webhook.address}" in posted(cast, f"{webhook.pk}/remove/")
    assert not Webhook.objects.exists()
    assert set(AuditEntry.objects.values_list("verb", flat=True)) >= {"renew webhook secret", "remove webhook"}


@pytest.mark.parametrize(("who", "status"), [("boris", 403), ("maarika", 403), ("zoltan", 404)])
def test_only_leads_see_them(cast: Cast, webhook: Webhook, who: str, status: int) -> None:
    for address in (PAGE, f"{PAGE}{webhook.pk}/"):
        assert cast.client(who).get(address).status_code == status
    assert cast.client(who).post(f"{PAGE}{webhook.pk}/remove/").status_code == status
    assert Webhook.objects.exists()
