"""Where a request may go, what is signed, and how long a receiver may take; over real sockets."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import pytest

from accounts import addresses
from accounts.addresses import AddressForbidden, Limits, ReceiverUnreachable
from tests.accounts.certificates import certificate
from tests.accounts.receiver import receiver

HERE = Limits(loopback=True)


def _leads_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name stand for these addresses: the world's name servers are no part of the test."""
    known = socket.getaddrinfo

    def answer(host: str, port: int, *args: Any, **options: Any) -> list[Any]:
        asked = addresses if host.endswith((".org", ".test")) else (host,)
        return [
            (0, 0, 0, "", (each, port)) if "%" in each else known(each, port, *args, **options)[0] for each in asked
        ]

    monkeypatch.setattr(socket, "getaddrinfo", answer)


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        *("fec0::1", "::7f00:1", "::a00:1", "64:ff9b:1::1", "64:ff9b::a00:1", "100:0:0:1::1", "5f00::1", "3fff::1"),
        *("2002:7f00:1::", "192.88.99.1", "192.0.0.9", "192.31.196.1", "240.0.0.1", "255.255.255.255", "100.64.1.1"),
        "127.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.168.1.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    ],
)
def test_a_name_that_leads_into_a_private_network_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    _leads_to(monkeypatch, "93.184.215.14", address)
    with pytest.raises(AddressForbidden, match="private network"):
        addresses.check_address("https://hooks.example.org/x", Limits())


def test_a_public_address_is_allowed_and_a_private_one_where_the_operator_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _leads_to(monkeypatch, "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c")
    addresses.check_address("https://hooks.example.org/x", Limits())
    _leads_to(monkeypatch, "10.1.2.3")
    addresses.check_address("https://hooks.example.org/x", Limits(networks=(ipaddress.ip_network("10.0.0.0/8"),)))


@pytest.mark.parametrize(
    "address",
    [
        "http://hooks.example.org/",
        "ftp://hooks.example.org/",
        "https://",
        "https://user:secret@hooks.example.org/",
        "https://hooks.example.org/#x",
        "https://hooks.example.org/a b",
        "https://hooks.example.org/õ",
        "https://hooks.example.org:port/",
        "https://[::1",
        "https://hooks.example.org/" + "x" * 500,
        "",
    ],
)
def test_what_is_no_https_address_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    _leads_to(monkeypatch, "93.184.215.14")
    with pytest.raises(AddressForbidden):
        addresses.check_address(address, HERE)


def test_a_name_that_moves_after_the_check_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: the first answer is public, the one the connection is made by is not."""
    answers = iter(["93.184.215.14", "127.0.0.1"])
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: [(0, 0, 0, "", (next(answers), 443))])
    with pytest.raises(AddressForbidden, match="private network"):
        addresses.post("https://hooks.example.org/", body=b"{}", headers={}, limits=Limits())


def test_a_request_carries_the_body_and_its_signature() -> None:
    body = b'{"type":"test"}'
    headers = addresses.signed(secret=b"k" * 32, key="msg_1", body=body, now=1_700_000_000.9)
    with receiver() as there:
        assert addresses.post(there.address, body=body, headers=headers, limits=HERE) == 204
    came, said = there.came[0]
    expected = hmac.new(b"k" * 32, b"msg_1.1700000000." + body, hashlib.sha256).digest()
    assert (said, came["content-type"]) == (body, "application/json")
    assert came["webhook-signature"] == f"v1,{base64.b64encode(expected).decode()}"
    assert (came["webhook-id"], came["webhook-timestamp"]) == ("msg_1", "1700000000")


def test_the_signature_is_that_of_the_standard() -> None:
    """The example of the Standard Webhooks' own reference libraries."""
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = addresses.signed(
        secret=secret, key="msg_p5jXN8AQM9LWM0D4loKWxJek", body=b'{"test": 2432232314}', now=1614265330
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_redirect_is_not_followed() -> None:
    with receiver() as elsewhere, receiver() as there:
        there.status, there.location = 302, elsewhere.address
        assert addresses.post(there.address, body=b"{}", headers={}, limits=HERE) == 302
    assert (len(there.came), elsewhere.came) == (1, [])


def test_nobody_there_is_said() -> None:
    with receiver() as there:
        gone = there.address
    with pytest.raises(ReceiverUnreachable, match="No connection"):
        addresses.post(gone, body=b"{}", headers={}, limits=HERE)


def test_a_receiver_that_trickles_is_cut_off_in_time() -> None:
    """Each byte comes well within any timeout of its own; together they would take for ever."""
    listening = socket.create_server(("127.0.0.1", 0))

    def trickle() -> None:
        there, _peer = listening.accept()
        with there:
            try:
                for _turn in range(200):
                    there.sendall(b"H")
                    time.sleep(0.05)
            except OSError:
                pass

    thread = threading.Thread(target=trickle, daemon=True)
    thread.start()
    started = time.monotonic()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    with pytest.raises(ReceiverUnreachable):
        addresses.post(address, body=b"{}", headers={}, limits=HERE, timeout=0.5)
    assert time.monotonic() - started < 8  # all of it takes ten
    thread.join()
    listening.close()


def test_the_certificate_has_to_be_for_the_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Connecting to a checked address changes nothing about whom the certificate has to name."""
    made = certificate(tmp_path, "hooks.test")
    with receiver(certificate=made) as there:
        port = urlsplit(there.address).port
        monkeypatch.setenv("SSL_CERT_FILE", str(made))
        _leads_to(monkeypatch, "127.0.0.1")
        assert addresses.post(f"https://hooks.test:{port}/", body=b"{}", headers={}, limits=HERE) == 204
        with pytest.raises(ReceiverUnreachable, match="certificate"):
            addresses.post(f"https://other.test:{port}/", body=b"{}", headers={}, limits=HERE)
