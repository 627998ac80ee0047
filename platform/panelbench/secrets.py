"""Secrets and provider declarations, read from the environment and checked before anything starts. Pure."""

from __future__ import annotations

import json
import os
import secrets as random_secrets
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

MINIMUM_KEY_LENGTH = 40
WEAK_PARTS = ("changeme", "change-me", "change_me", "secret", "insecure", "password", "example", "default")

# The most that a provider may declare of each.
MOST = {
    "requests_per_minute": 10_000_000,
    "tokens_per_minute": 10_000_000_000,
    "timeout": 1800,
    "tries": 50,
    "concurrency": 256,
}


def secret_key(given: str, *, debug: bool, embedded: bool, data_dir: Path) -> str:
    """The signing key: the given one if it is strong; an embedded instance makes one and keeps it with its data."""
    if given:
        if not debug:
            _refuse_weak(given)
        return given
    if debug or embedded:
        return _own_key(data_dir / "secret_key")
    raise ImproperlyConfigured(
        "SECRET_KEY is not set. Make one with: python -c 'import secrets; print(secrets.token_urlsafe(50))'"
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One OpenAI-compatible endpoint that the operator declared; the key itself is read only when a call is made.

    ``prices`` maps a model to (USD per million tokens in, out). ``timeout`` (seconds for a reply), ``tries`` of a call
    and ``concurrency`` (calls of a run in flight) hold for judges that declare none of their own.
    """

    name: str
    base_url: str
    key_variable: str = ""
    simulated: bool = False
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout: int | None = None
    tries: int | None = None
    concurrency: int | None = None
    prices: tuple[tuple[str, Decimal, Decimal], ...] = ()
    models: tuple[str, ...] = ()

    def price(self, model: str) -> tuple[Decimal, Decimal] | None:
        """USD per million tokens in and out, or None when the operator declared none."""
        return next(((into, out) for name, into, out in self.prices if name == model), None)


def providers(environment: Mapping[str, str]) -> dict[str, Provider]:
    """Every declared provider by name: those of PANELBENCH_PROVIDERS (JSON), and that of OPENAI_API_KEY.

    A process that makes no calls needs no key: there OPENAI_BASE_URL declares the same provider.
    """
    declared = [_provider(entry) for entry in _entries(environment.get("PANELBENCH_PROVIDERS", ""))]
    is_given = environment.get("OPENAI_API_KEY") or environment.get("OPENAI_BASE_URL")
    if is_given and not any(provider.name == "openai" for provider in declared):
        base_url = environment.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        declared.append(Provider(name="openai", base_url=base_url, key_variable="OPENAI_API_KEY"))
    names = [provider.name for provider in declared]
    if len(set(names)) != len(names):
        raise ImproperlyConfigured("PANELBENCH_PROVIDERS names a provider twice.")
    return {provider.name: provider for provider in declared}


def _entries(text: str) -> list[dict[str, object]]:
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


def _provider(entry: dict[str, object]) -> Provider:
    known = set(Provider.__dataclass_fields__)
    if unknown := set(entry) - known:
        raise ImproperlyConfigured(f"PANELBENCH_PROVIDERS: unknown {sorted(unknown)}; known are {sorted(known)}.")
    prices = entry.get("prices") or {}
    models = entry.get("models") or []
    if not isinstance(prices, dict) or not isinstance(models, list):
        raise ImproperlyConfigured('PANELBENCH_PROVIDERS: prices is {"model": [in, out]} and models is a list.')
    try:
        provider = Provider(
            **{
                **entry,
                "prices": tuple((m, Decimal(str(i)), Decimal(str(o))) for m, (i, o) in prices.items()),
                "models": tuple(map(str, models)),
            }  # type: ignore[arg-type]
        )
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ImproperlyConfigured(f"PANELBENCH_PROVIDERS: {entry.get('name', entry)}: {error}") from None
    for name, most in MOST.items():
        number = getattr(provider, name)
        if number is not None and not (type(number) is int and 1 <= number <= most):
            raise ImproperlyConfigured(
                f"PANELBENCH_PROVIDERS: {name} of {provider.name} must be a whole number from 1 to {most}."
            )
    if urlsplit(provider.base_url).scheme not in {"http", "https"}:
        raise ImproperlyConfigured(f"PANELBENCH_PROVIDERS: base_url of {provider.name} must start with http(s)://")
    return provider
