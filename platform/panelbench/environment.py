"""Settings from the environment, read strictly: a value that is not understood stops the start with a sentence.

An empty variable counts as one that is not there, as compose files pass on what is not set.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

ON, OFF = frozenset({"on", "true", "yes", "1"}), frozenset({"off", "false", "no", "0"})
HOST = re.compile(r"\.?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?", re.IGNORECASE)
RATE = re.compile(r"([0-9]{1,9})/(s|sec|second|m|min|minute|h|hour|d|day)")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Proxies = int | tuple[Network, ...]


class Environment:
    """The variables, each with a default for where it is not given."""

    def __init__(self, variables: Mapping[str, str] = os.environ) -> None:
        self._variables = variables

    def text(self, name: str, default: str = "") -> str:
        """A text without space around it."""
        return self._variables.get(name, "").strip() or default

    def switch(self, name: str, *, default: bool) -> bool:
        """on or off; also true, yes, 1 and false, no, 0."""
        word = self.text(name).lower()
        if not word:
            return default
        if word not in ON | OFF:
            raise ImproperlyConfigured(f"{name}={word}: write on or off.")
        return word in ON

    def number(self, name: str, *, default: int, least: int = 1, most: int = 10**6) -> int:
        """A whole number within bounds."""
        given = self.text(name)
        if not given:
            return default
        if not re.fullmatch(r"[0-9]{1,12}", given) or not least <= int(given) <= most:
            raise ImproperlyConfigured(f"{name}={given}: write a whole number from {least} to {most}.")
        return int(given)

    def rate(self, name: str, *, default: str) -> str:
        """How often something may be done, such as 60/min."""
        given = self.text(name, default)
        found = RATE.fullmatch(given)
        if found is None or int(found[1]) == 0:
            raise ImproperlyConfigured(f"{name}={given}: write how often, such as 60/min, and more than 0.")
        return given

    def choice(self, name: str, *, default: str, among: tuple[str, ...]) -> str:
        """One of several words."""
        given = self.text(name, default)
        if given not in among:
            raise ImproperlyConfigured(f"{name}={given}: write one of {', '.join(among)}.")
        return given

    def texts(self, name: str, *, default: tuple[str, ...] = ()) -> list[str]:
        """Several texts, separated by commas."""
        given = self.text(name)
        found = [part.strip() for part in given.split(",")] if given else list(default)
        if not all(found):
            raise ImproperlyConfigured(f"{name}={given}: there is an empty entry before or after a comma.")
        return found

    def hosts(self, name: str, *, default: tuple[str, ...], debug: bool) -> list[str]:
        """The names that a site answers to, without scheme and port. All names (*) only while debugging."""
        found = self.texts(name, default=default)
        for host in found:
            if not (HOST.fullmatch(host) or _is_bracketed(host) or (host == "*" and debug)):
                raise ImproperlyConfigured(
                    f"{name}: {host!r} is not a host name. Write a name such as bench.example.org, without a "
                    f"scheme or a port; * would let anybody create links that lead to their own site."
                )
        return found

    def origins(self, name: str) -> list[str]:
        """Origins such as https://bench.example.org."""
        found = self.texts(name)
        for origin in found:
            parts = urlsplit(origin)
            if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path or parts.query:
                raise ImproperlyConfigured(f"{name}: {origin!r} is not an origin such as https://bench.example.org")
        return found

    def networks(self, name: str) -> tuple[Network, ...]:
        """Networks such as 10.0.0.0/8."""
        try:
            return tuple(ipaddress.ip_network(text) for text in self.texts(name))
        except ValueError as error:
            raise ImproperlyConfigured(f"{name}: {error}") from None

    def proxies(self, name: str, *, default: int) -> Proxies:
        """How many proxies stand in front, or the networks that they are in."""
        given = self.text(name)
        return (
            self.number(name, default=default, least=0, most=10)
            if given.isdecimal() or not given
            else self.networks(name)
        )

    def address(self, name: str, *, default: str = "", schemes: tuple[str, ...]) -> str:
        """An address with one of these schemes."""
        given = self.text(name, default)
        if given and urlsplit(given).scheme not in schemes:
            raise ImproperlyConfigured(f"{name} must start with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        return given

    def email(self, name: str, *, default: str) -> dict[str, Any]:
        """Django's settings for sending e-mail."""
        try:
            return dict(environ.Env.email_url_config(self.text(name, default)))
        except (KeyError, ValueError, ImproperlyConfigured):
            raise ImproperlyConfigured(f"{name} must be such as smtp+tls://user:password@host:587") from None

    def json(self, name: str, *, default: list[Any]) -> list[Any]:
        """A JSON list."""
        given = self.text(name)
        try:
            found = json.loads(given) if given else default
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} is not JSON: {error}") from None
        if not isinstance(found, list):
            raise ImproperlyConfigured(f"{name} must be a JSON list.")
        return found


def _is_bracketed(host: str) -> bool:
    try:
        return host.startswith("[") and host.endswith("]") and bool(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        return False
