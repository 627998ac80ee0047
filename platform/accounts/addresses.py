"""Network addresses: of the client of a request, and of a server that a signed request is sent to. Pure.

The address of a client is determined in one way for sign-in limits, throttles and logs. Every proxy appends the address
of its client to X-Forwarded-For. Entries before those of trusted proxies were written by the client and can be false.

A signed request goes to the address that a user gave: never to a private network, and without following redirects. The
name is resolved at the moment of sending, every address it stands for is checked, and the connection is made to a
checked address, so that a name which points elsewhere a second later gains nothing.

"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpcore

REQUESTED_SITE: ContextVar[str] = ContextVar("REQUESTED_SITE", default="")
"""Scheme and host of the request that is answered now, such as https://bench.example.org; "" outside of requests."""
TIMEOUT = 10.0  # seconds for everything: name, connection, request, first line of the answer
LONGEST_ADDRESS = 500
NAT64 = ipaddress.ip_network("64:ff9b::/96")
COMPATIBLE = ipaddress.ip_network("::/96")  # IPv4 addresses written as IPv6 ones, without a mark
# What IANA's registries of special addresses call reserved, and some versions of Python's ipaddress call global.
RESERVED = tuple(
    ipaddress.ip_network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        *("::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2002::/16"),
        *("2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    )
)
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PORT")
IPV6_CLIENT = 64  # bits: a provider usually assigns a customer a /64 network, so all its addresses are one client


def settle_client_address(meta: MutableMapping[str, Any], proxies: int | tuple[Network, ...]) -> None:
    """Set REMOTE_ADDR to the client's address, and remove forwarding headers that no trusted proxy has set."""
    peer = _address(str(meta.get("REMOTE_ADDR", "")))
    is_trusted = proxies > 0 if isinstance(proxies, int) else _is_in(peer, proxies)
    if is_trusted:
        meta["REMOTE_ADDR"] = client(meta, proxies)
        meta.pop("HTTP_X_FORWARDED_FOR", None)
        return
    for name in FORWARDED:
        meta.pop(name, None)


def client(meta: Mapping[str, Any], proxies: int | tuple[Network, ...]) -> str:
    """The address that connected to the outermost trusted proxy; without a trusted proxy, the sender's own address.

    ``proxies``: the number of trusted proxies, or their networks.
    """
    peer = str(meta.get("REMOTE_ADDR", ""))
    chain = [peer]
    for part in reversed(str(meta.get("HTTP_X_FORWARDED_FOR", "")).split(",")):
        if len(chain) > proxies if isinstance(proxies, int) else not _is_in(_address(chain[-1]), proxies):
            break
        address = _address(part)
        if address is None:
            break
        chain.append(str(address))
    return chain[-1]


def group(address: str) -> str:
    """What counts as one client in a throttle: an IPv4 address, or the /64 network of an IPv6 address."""
    parsed = _address(address)
    if not isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed or address)
    return str(ipaddress.ip_network((parsed, IPV6_CLIENT), strict=False))


def _address(text: str) -> Address | None:
    """The address in one entry, which may include a port; an IPv4 address mapped to IPv6 becomes IPv4. None if the
    entry is invalid."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        parsed = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


def _is_in(address: Address | None, networks: tuple[Network, ...]) -> bool:
    return address is not None and any(address in network for network in networks if network.version == address.version)


class AddressForbidden(Exception):
    """An address that nothing may be sent to; its text says why."""


class ReceiverUnreachable(Exception):
    """Nothing came back; its text says what went wrong."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the operator allows beyond public addresses by https: ``networks``, and plain http to this machine."""

    networks: tuple[Network, ...] = ()
    loopback: bool = False


# --- addresses ------------------------------------------------------------------------------------------------------
def check_address(address: str, limits: Limits) -> None:
    """Raise `AddressForbidden` if the address is invalid, or if its name resolves to an address that is not allowed."""
    scheme, host, port = _split(address)
    if scheme == "http" and not (limits.loopback and host in ("localhost", "127.0.0.1", "::1")):
        raise AddressForbidden("The address has to start with https://.")
    _resolve(host, port, limits)


def _split(address: str) -> tuple[str, str, int]:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise AddressForbidden("This is not an address.") from None
    if parts.scheme not in ("http", "https") or not host or len(address) > LONGEST_ADDRESS:
        raise AddressForbidden("The address has to start with https:// and have at most 500 characters.")
    if not address.isascii() or any(char <= " " or char in '\\"<>^`{|}' for char in address):
        raise AddressForbidden("The address holds characters that have to be written as %-codes.")
    if parts.username is not None or parts.fragment:
        raise AddressForbidden("Leave user names, passwords and # out of the address.")
    return parts.scheme, host, port or (443 if parts.scheme == "https" else 80)


def _resolve(host: str, port: int, limits: Limits) -> list[Address]:
    """Every address of a host name; raises `AddressForbidden` unless all of them are allowed."""
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise AddressForbidden(f"The name {host} is not known.") from None
    addresses = list(dict.fromkeys(ipaddress.ip_address(str(answer[4][0]).split("%")[0]) for answer in answers))
    if any(not _allowed(address, limits) for address in addresses):
        raise AddressForbidden(f"The name {host} belongs to a private network, and nothing is sent there.")
    return addresses


def _allowed(address: Address, limits: Limits) -> bool:
    plain = _unwrapped(address)
    if any(_lies_in(plain, network) for network in limits.networks):
        return True
    is_public = plain.is_global and not plain.is_multicast and not any(_lies_in(plain, network) for network in RESERVED)
    return is_public or (limits.loopback and plain.is_loopback)


def _lies_in(address: Address, network: Network) -> bool:
    return address.version == network.version and address in network


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that is embedded in an IPv6 address; any other address is returned unchanged."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64 or (address in COMPATIBLE and int(address) > 1):  # :: and ::1 are themselves
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)


# --- signatures -----------------------------------------------------------------------------------------------------
def signed(*, secret: bytes, key: str, body: bytes, now: float) -> dict[str, str]:
    """The three headers of the Standard Webhooks scheme."""
    stamp = str(int(now))
    digest = hmac.new(secret, f"{key}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": key,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


# --- sending --------------------------------------------------------------------------------------------------------
def post(address: str, *, body: bytes, headers: dict[str, str], limits: Limits, timeout: float = TIMEOUT) -> int:
    """Post ``body`` and return the status of the answer, which is not read; raises the two errors above."""
    check_address(address, limits)
    sent_headers = [("Host", urlsplit(address).netloc), ("Content-Type", "application/json"), *headers.items()]
    sent_headers.append(("Content-Length", str(len(body))))
    backend = _CheckedBackend(limits, time.monotonic() + timeout)
    try:
        with (
            httpcore.ConnectionPool(ssl_context=ssl.create_default_context(), network_backend=backend) as pool,
            pool.stream("POST", address, headers=sent_headers, content=body) as answer,
        ):
            return answer.status
    except (httpcore.TimeoutException, TimeoutError):
        raise ReceiverUnreachable(f"No answer within {timeout:g} seconds.") from None
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        raise ReceiverUnreachable(f"No connection: {error}" if str(error) else "The connection was cut off.") from None


class _CheckedBackend(httpcore.SyncBackend):
    """Connects only to addresses that were checked, and in the time that is left."""

    def __init__(self, limits: Limits, ends: float) -> None:
        self.limits, self.ends = limits, ends

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """A connection to the first of the name's addresses that takes one."""
        addresses: Sequence[Address] = _resolve(host, port, self.limits)
        for number, checked in enumerate(addresses, start=1):
            try:
                return _TimedStream(super().connect_tcp(str(checked), port, _left(self.ends)), self.ends)
            except httpcore.ConnectError:
                if number == len(addresses):
                    raise
        raise httpcore.ConnectError(f"{host} has no address")


class _TimedStream(httpcore.NetworkStream):
    """A stream on which everything together takes until ``ends``: a receiver can't hold it by trickling."""

    def __init__(self, stream: httpcore.NetworkStream, ends: float) -> None:
        self.stream, self.ends = stream, ends

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.stream.read(max_bytes, _left(self.ends))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.stream.write(buffer, _left(self.ends))

    def close(self) -> None:
        self.stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _TimedStream(self.stream.start_tls(ssl_context, server_hostname, _left(self.ends)), self.ends)

    def get_extra_info(self, name: str) -> Any:
        return self.stream.get_extra_info(name)


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the time is up")
    return left
