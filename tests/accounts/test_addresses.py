"""Whom a request comes from, and what is counted for it: behind a proxy, without one, and with forged headers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from typing import Any

import pytest
from django.core.cache import caches
from django.test import Client

from accounts import addresses, tokens
from accounts.api_requests import UnauthenticatedThrottle
from accounts.models import Scope
from tests.cast import PASSWORD, Cast

PROXY = "172.18.0.1"
NETWORKS = (ip_network("172.18.0.0/16"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("proxies", "peer", "forwarded", "expected"),
    [
        (0, "203.0.113.9", "1.1.1.1", "203.0.113.9"),
        (1, PROXY, "203.0.113.9", "203.0.113.9"),
        (1, PROXY, "1.1.1.1, 203.0.113.9", "203.0.113.9"),
        (2, PROXY, "1.1.1.1, 203.0.113.9, 10.0.0.7", "203.0.113.9"),
        (1, PROXY, "", PROXY),
        (1, PROXY, "203.0.113.9:5123", "203.0.113.9"),
        (1, PROXY, '"[2001:db8::5]:443"', "2001:db8::5"),
        (1, PROXY, "::ffff:203.0.113.9", "203.0.113.9"),
        (1, PROXY, "1.1.1.1, nonsense", PROXY),
        (NETWORKS, PROXY, "1.1.1.1, 203.0.113.9, fd00::7", "203.0.113.9"),
        (NETWORKS, "203.0.113.9", "1.1.1.1", "203.0.113.9"),
        (NETWORKS, PROXY, "172.18.3.3", "172.18.3.3"),
    ],
)
def test_the_client_is_who_the_outermost_trusted_proxy_was_asked_by(
    proxies: Any, peer: str, forwarded: str, expected: str
) -> None:
    meta = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded}
    addresses.settle_client_address(meta, proxies)
    assert meta == {"REMOTE_ADDR": expected}


def test_a_stranger_does_not_say_that_a_request_came_encrypted() -> None:
    meta = {"REMOTE_ADDR": "203.0.113.9", "HTTP_X_FORWARDED_PROTO": "https", "HTTP_HOST": "here"}
    addresses.settle_client_address(meta, NETWORKS)
    assert meta == {"REMOTE_ADDR": "203.0.113.9", "HTTP_HOST": "here"}


def test_all_addresses_of_a_customers_ipv6_network_count_as_one() -> None:
    assert addresses.group("2001:db8::1") == addresses.group("2001:db8::ffff:1") == "2001:db8::/64"
    assert addresses.group("203.0.113.9") == "203.0.113.9"


def signed_in(address: str, password: str, *, name: str = "aino", **headers: str) -> int:
    form = {"login": f"{name}@panelbench.test", "password": password}
    return Client().post("/account/login/", form, REMOTE_ADDR=address, headers=headers).status_code


@pytest.mark.django_db
def test_behind_the_proxy_nobody_locks_out_everybody(cast: Cast, settings: Any) -> None:
    settings.TRUSTED_PROXIES = 1
    for attempt in range(40):
        signed_in(PROXY, "wrong", name=f"nobody{attempt}", x_forwarded_for="203.0.113.66")
    assert signed_in(PROXY, PASSWORD, x_forwarded_for="203.0.113.66") == 429
    assert signed_in(PROXY, PASSWORD, x_forwarded_for="198.51.100.7") == 302


@pytest.mark.django_db
@pytest.mark.parametrize("proxies", [0, 1])
def test_forged_headers_do_not_pass_the_sign_in_throttle(cast: Cast, settings: Any, proxies: int) -> None:
    settings.TRUSTED_PROXIES = proxies
    own = ", 203.0.113.66" if proxies else ""
    statuses = [
        signed_in("203.0.113.66", "wrong", name=f"nobody{attempt}", x_forwarded_for=f"10.1.{attempt}.1{own}")
        for attempt in range(40)
    ]
    assert statuses[-1] == 429


@pytest.mark.django_db
def test_many_entries_do_not_empty_the_sign_in_throttle(cast: Cast) -> None:
    examined = 0
    for attempt in range(9):
        form = {"login": "aino@panelbench.test", "password": f"guess {attempt}"}
        page = Client().post("/account/login/", form, REMOTE_ADDR=f"203.0.113.{attempt}").content.decode()
        examined += "Too many failed" not in page
        for other in range(50):  # each makes an entry of its own in the store of the throttles, and in that of pages
            Client().get("/api/v1/me/", REMOTE_ADDR=f"10.{attempt}.{other}.1")
            caches["content"].set(f"page:{attempt}:{other}", "x")
    assert examined == 5  # guesses at one account's password, whatever address they come from


@pytest.mark.django_db
def test_bad_tokens_are_counted_and_good_ones_go_on(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnauthenticatedThrottle, "rate", "60/min", raising=False)
    monkeypatch.setattr(UnauthenticatedThrottle, "timer", staticmethod(lambda: 1_000_000.0))  # one window throughout
    _token, secret = tokens.issue(user=cast.aino, name="script", scope=Scope.READ)
    bad = Client(headers={"authorization": "Bearer pb_nonsense"}, REMOTE_ADDR="203.0.113.66")
    statuses = [
        bad.get("/api/v1/me/", headers={"x-forwarded-for": f"10.1.1.{guess}"}).status_code for guess in range(70)
    ]
    assert (statuses[0], statuses[-1]) == (401, 429)
    refused = bad.get("/api/v1/me/")
    assert refused.json()["code"] == "throttled"
    assert int(refused["Retry-After"]) >= 1
    good = Client(headers={"authorization": f"Bearer {secret}"}, REMOTE_ADDR="203.0.113.66")
    assert good.get("/api/v1/me/").status_code == 200
    assert Client(REMOTE_ADDR="198.51.100.7").get("/api/v1/me/").status_code == 401


def test_requests_that_come_at_once_are_each_counted() -> None:
    counts = caches["default"]
    counts.add("at-once", 0, 60)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _turn: counts.incr("at-once"), range(200)))
        assert sorted(found) == list(range(1, 201))
        assert sum(threads.map(lambda _turn: bool(counts.add("first", 1, 60)), range(50))) == 1
