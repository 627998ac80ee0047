"""The client address of a request, determined in one way for sign-in limits, throttles and logs.

Every proxy appends the address of its client to X-Forwarded-For. Entries before those of trusted proxies were written
by the client and can be false. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, MutableMapping
from typing import Any

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
