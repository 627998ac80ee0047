"""The client address of a request, computed in one way for sign-in, throttles and logs.

A proxy appends the address that it was asked from to X-Forwarded-For; what stands left of the entries that trusted
proxies appended is what the client wrote itself. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, MutableMapping
from typing import Any

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PORT")
IPV6_CLIENT = 64  # bits: what one customer is given, and may choose any address of


def settle_client_address(meta: MutableMapping[str, Any], proxies: int | tuple[Network, ...]) -> None:
    """Make REMOTE_ADDR the client's address, and drop what a sender that is no trusted proxy says of forwarding."""
    peer = _address(str(meta.get("REMOTE_ADDR", "")))
    is_trusted = proxies > 0 if isinstance(proxies, int) else _is_in(peer, proxies)
    if is_trusted:
        meta["REMOTE_ADDR"] = client(meta, proxies)
        meta.pop("HTTP_X_FORWARDED_FOR", None)
        return
    for name in FORWARDED:
        meta.pop(name, None)


def client(meta: Mapping[str, Any], proxies: int | tuple[Network, ...]) -> str:
    """The address that the outermost trusted proxy was asked from; the sender's own where no proxy says another.

    ``proxies``: how many there are, or the networks that they are in.
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
    """What counts as one client in a throttle: an IPv4 address, or the network of an IPv6 one."""
    parsed = _address(address)
    if not isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed or address)
    return str(ipaddress.ip_network((parsed, IPV6_CLIENT), strict=False))


def _address(text: str) -> Address | None:
    """The address in an entry, which may have a port; an IPv4 address carried by an IPv6 one as itself."""
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
