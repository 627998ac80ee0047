"""The configuration from environment variables: strict parsing, secrets, providers, and logging.

An invalid value stops the start with a sentence. An empty variable counts as not set, because compose files pass unset
variables as empty.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import logging
import os
import re
import secrets as random_secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
import structlog
from django.core.exceptions import ImproperlyConfigured

from judging.asking.declarations import DeclaredProvider, read_declaration

ON, OFF = frozenset({"on", "true", "yes", "1"}), frozenset({"off", "false", "no", "0"})
HOST = re.compile(r"\.?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?", re.IGNORECASE)
RATE = re.compile(r"([0-9]{1,9})/(s|sec|second|m|min|minute|h|hour|d|day)")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Proxies = int | tuple[Network, ...]


KNOWN = (
    *("SECRET_KEY", "DEBUG", "ALLOWED_HOSTS", "SITE_ADDRESS", "CSRF_TRUSTED_ORIGINS", "TRUSTED_PROXIES"),
    *("BEHIND_PROXY", "PANELBENCH_SECURE", "DATABASE_URL", "DATABASE_POOL_MIN", "DATABASE_POOL_MAX", "REDIS_URL"),
    *("PAGE_CACHE_MB", "PANELBENCH_DATA_DIR", "UPLOAD_LIMIT_MB", "STATIC_ROOT", "SESSION_IDLE_HOURS", "SESSION_HOURS"),
    *("EMAIL_URL", "DEFAULT_FROM_EMAIL", "IMPORT_MOST_COLUMNS", "IMPORT_MOST_CELLS", "IMPORT_LONGEST_CELL_MB"),
    *("IMPORT_UNPACKED_MB", "PANELBENCH_PROVIDERS", "OPENAI_API_KEY", "OPENAI_BASE_URL", "PANELBENCH_OIDC"),
    *("API_RATE_ANONYMOUS", "API_RATE_USER", "SHARED_RATE", "JUDGE_DRAIN_SECONDS", "WEBHOOK_NETWORKS"),
    *("LOG_LEVEL", "LOG_FORMAT", "PANELBENCH_DEMO"),
)
"""Every variable that is read; docs/operations.md explains them, docker-compose.yml passes them."""
OWN_PREFIX = "PANELBENCH_"
ALIKE = 0.85  # of two names, from which one counts as a misspelling of the other
READ_ELSEWHERE = (
    *("PANELBENCH_TEST", "PANELBENCH_SHARED", "PANELBENCH_PICTURES"),  # tests
    *("PANELBENCH_URL", "PANELBENCH_TOKEN", "PANELBENCH_PROJECT"),  # the client
    "PANELBENCH_KEY_",  # keys of providers that are declared on the page
)


def misspelt_names(variables: Mapping[str, str]) -> list[str]:
    """A sentence for each variable that nobody reads and that looks like one of ours, with the nearest name.

    Any name that begins as ours do, and a name almost like one that is not set. Keys of declared providers are read.
    """
    keys = {provider.key_variable for provider in declared_providers(variables).values()}
    unset = [name for name in KNOWN if not variables.get(name)]
    found = []
    for name in sorted(variables):
        if name in KNOWN or name in keys or name.startswith(READ_ELSEWHERE):
            continue
        is_ours = name.upper().startswith(OWN_PREFIX)
        without_prefix = name.upper().removeprefix(OWN_PREFIX)
        near = (
            [without_prefix]
            if is_ours and without_prefix in KNOWN
            else difflib.get_close_matches(
                name.upper(), KNOWN if is_ours else unset, n=1, cutoff=0.5 if is_ours else ALIKE
            )
        )
        if near:
            found.append(f"the variable {name} is not known and not read. Did you mean {near[0]}?")
        elif is_ours:
            found.append(f"the variable {name} is not known and not read. docs/operations.md lists those that are.")
    return found


def variables_in(lines: Iterable[str]) -> dict[str, str]:
    """The variables of a file with lines NAME=value, as docker-compose and systemd read it."""
    pairs = (line.strip().removeprefix("export ").partition("=") for line in lines)
    return {name.strip(): value.strip().strip("'\"") for name, _equals, value in pairs if name and name[0] != "#"}


class Environment:
    """The environment variables, parsed by type, with defaults."""

    def __init__(self, variables: Mapping[str, str] = os.environ) -> None:
        self._variables = variables

    def text(self, name: str, default: str = "") -> str:
        """A text without surrounding spaces."""
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
        """A whole number from ``least`` to ``most``."""
        text = self.text(name)
        if not text:
            return default
        if not re.fullmatch(r"[0-9]{1,12}", text) or not least <= int(text) <= most:
            raise ImproperlyConfigured(f"{name}={text}: write a whole number from {least} to {most}.")
        return int(text)

    def rate(self, name: str, *, default: str) -> str:
        """A rate, such as 60/min."""
        text = self.text(name, default)
        match = RATE.fullmatch(text)
        if match is None or int(match[1]) == 0:
            raise ImproperlyConfigured(f"{name}={text}: write how often, such as 60/min, and more than 0.")
        return text

    def choice(self, name: str, *, default: str, among: tuple[str, ...]) -> str:
        """One of the words in ``among``."""
        text = self.text(name, default)
        if text not in among:
            raise ImproperlyConfigured(f"{name}={text}: write one of {', '.join(among)}.")
        return text

    def texts(self, name: str, *, default: tuple[str, ...] = ()) -> list[str]:
        """Several texts, separated by commas."""
        text = self.text(name)
        parts = [part.strip() for part in text.split(",")] if text else list(default)
        if not all(parts):
            raise ImproperlyConfigured(f"{name}={text}: there is an empty entry before or after a comma.")
        return parts

    def hosts(self, name: str, *, default: tuple[str, ...], debug: bool) -> list[str]:
        """Host names without scheme and port. `*` is allowed only with ``debug``."""
        hosts = self.texts(name, default=default)
        for host in hosts:
            if not (HOST.fullmatch(host) or _is_bracketed(host) or (host == "*" and debug)):
                raise ImproperlyConfigured(
                    f"{name}: {host!r} is not a host name. Write a name such as bench.example.org, without a "
                    f"scheme or a port; * would let anybody create links that lead to their own site."
                )
        return hosts

    def origins(self, name: str) -> list[str]:
        """Origins such as https://bench.example.org."""
        origins = self.texts(name)
        for origin in origins:
            parts = urlsplit(origin)
            if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path or parts.query:
                raise ImproperlyConfigured(f"{name}: {origin!r} is not an origin such as https://bench.example.org")
        return origins

    def site(self, name: str) -> str:
        """One origin without a slash at its end, such as https://bench.example.org; "" if it is not set."""
        text = self.text(name).rstrip("/")
        parts = urlsplit(text)
        if text and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.path or parts.query):
            raise ImproperlyConfigured(f"{name}: {text!r} is not an origin such as https://bench.example.org")
        return text

    def networks(self, name: str) -> tuple[Network, ...]:
        """Networks such as 10.0.0.0/8."""
        try:
            return tuple(ipaddress.ip_network(text) for text in self.texts(name))
        except ValueError as error:
            raise ImproperlyConfigured(f"{name}: {error}") from None

    def proxies(self, name: str, *, default: int) -> Proxies:
        """The number of trusted proxies in front, or their networks."""
        text = self.text(name)
        return (
            self.number(name, default=default, least=0, most=10)
            if text.isdecimal() or not text
            else self.networks(name)
        )

    def address(self, name: str, *, default: str = "", schemes: tuple[str, ...]) -> str:
        """An address with one of these schemes."""
        text = self.text(name, default)
        if text and urlsplit(text).scheme not in schemes:
            raise ImproperlyConfigured(f"{name} must start with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        return text

    def email(self, name: str, *, default: str) -> dict[str, Any]:
        """Django's settings for sending e-mail."""
        try:
            return dict(environ.Env.email_url_config(self.text(name, default)))
        except (KeyError, ValueError, ImproperlyConfigured):
            raise ImproperlyConfigured(f"{name} must be such as smtp+tls://user:password@host:587") from None

    def json(self, name: str, *, default: list[Any]) -> list[Any]:
        """A JSON list."""
        text = self.text(name)
        try:
            parsed = json.loads(text) if text else default
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} is not JSON: {error}") from None
        if not isinstance(parsed, list):
            raise ImproperlyConfigured(f"{name} must be a JSON list.")
        return parsed


def _is_bracketed(host: str) -> bool:
    try:
        return host.startswith("[") and host.endswith("]") and bool(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        return False


# --- secrets and providers -------------------------------------------------------------------------------------------
MINIMUM_KEY_LENGTH = 40
WEAK_PARTS = ("changeme", "change-me", "change_me", "secret", "insecure", "password", "example", "default")


def secret_key(configured: str, *, debug: bool, embedded: bool, data_dir: Path) -> str:
    """The signing key: the configured one if it is strong; an embedded instance creates one and stores it with its
    data."""
    check_secret_key(configured, debug=debug, embedded=embedded)
    return configured or _own_key(data_dir / "secret_key")


def check_secret_key(configured: str, *, debug: bool, embedded: bool) -> None:
    """Raise ``ImproperlyConfigured`` when the key is weak, or is missing where the instance may not create one."""
    if configured and not debug:
        _refuse_weak(configured)
    if not configured and not debug and not embedded:
        raise ImproperlyConfigured(
            "SECRET_KEY is not set. Make one with: python -c 'import secrets; print(secrets.token_urlsafe(50))'"
        )


def is_embedded(database_url: str) -> bool:
    """Whether the database is a file of this instance, not a server."""
    return not database_url or database_url.startswith("sqlite")


def _refuse_weak(key: str) -> None:
    weak = len(key) < MINIMUM_KEY_LENGTH or len(set(key)) < 12 or any(part in key.lower() for part in WEAK_PARTS)
    if weak:
        raise ImproperlyConfigured(
            f"SECRET_KEY is weak: it needs {MINIMUM_KEY_LENGTH} characters or more, at random. "
            "Make one with: python -c 'import secrets; print(secrets.token_urlsafe(50))'"
        )


def _own_key(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return path.read_text(encoding="ascii").strip()
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(random_secrets.token_urlsafe(50))
    return path.read_text(encoding="ascii").strip()


def declared_providers(environment: Mapping[str, str]) -> dict[str, DeclaredProvider]:
    """All declared providers by name: those in PANELBENCH_PROVIDERS (JSON), and `openai` if OPENAI_API_KEY is set.

    A process that makes no calls needs no key: there OPENAI_BASE_URL declares the same provider.
    """
    declared = [_provider(entry) for entry in _entries(environment.get("PANELBENCH_PROVIDERS", ""))]
    is_given = environment.get("OPENAI_API_KEY") or environment.get("OPENAI_BASE_URL")
    if is_given and not any(provider.name == "openai" for provider in declared):
        base_url = environment.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        declared.append(DeclaredProvider(name="openai", base_url=base_url, key_variable="OPENAI_API_KEY"))
    names = [provider.name for provider in declared]
    if len(set(names)) != len(names):
        raise ImproperlyConfigured("PANELBENCH_PROVIDERS names a provider twice.")
    return {provider.name: provider for provider in declared}


def _entries(text: str) -> list[dict[str, Any]]:
    if not text.strip():
        return []
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise ImproperlyConfigured(f"PANELBENCH_PROVIDERS is not JSON: {error}") from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ImproperlyConfigured(
            'PANELBENCH_PROVIDERS must be a list such as [{"name": "x", "base_url": "https://.."}]'
        )
    return entries


def _provider(entry: dict[str, Any]) -> DeclaredProvider:
    try:
        return read_declaration(entry)
    except ValueError as error:
        raise ImproperlyConfigured(f"PANELBENCH_PROVIDERS: {error}") from None


# --- log lines -------------------------------------------------------------------------------------------------------
_SHARED = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def _is_news(record: logging.LogRecord) -> bool:
    """False for Django's line about each request that was answered with 503: /healthz is requested every few seconds,
    and `accounts.outages` logs the reason of an outage itself."""
    return record.name != "django.request" or getattr(record, "status_code", None) != 503


def logging_configuration(format_name: str, level: str) -> dict[str, Any]:
    """The logging dictionary for Django and Celery."""
    renderer = structlog.dev.ConsoleRenderer() if format_name == "console" else structlog.processors.JSONRenderer()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": _SHARED,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.format_exc_info,
                    renderer,
                ],
            }
        },
        "filters": {"news": {"()": lambda: _is_news}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "lines", "filters": ["news"]},
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django.server": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
            "waitress.queue": {"level": "ERROR"},
        },
    }
