"""What is unsafe about an instance that others reach: `panelbench check --deploy` lists it in words."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register  # noqa: A004 Django's own name

LOCAL = {"localhost", "127.0.0.1", "[::1]", "::1"}


@register(Tags.security, deploy=True)
def check_deployment(app_configs: Any, **options: Any) -> list[CheckMessage]:
    """One warning for each thing that is unsafe, with what to do about it."""
    found = [*_about_connections(), *_about_accounts(), *_about_files(), *_about_providers()]
    return [Warning(text, hint=hint, id=f"panelbench.W{number:03d}") for number, text, hint in found]


def _about_connections() -> Iterator[tuple[int, str, str]]:
    if not settings.SECURE:
        yield (
            1,
            "Pages and cookies are sent unencrypted.",
            "Put a proxy with HTTPS in front and set PANELBENCH_SECURE=on.",
        )
    if settings.SECURE and not settings.TRUSTED_PROXIES:
        yield (
            2,
            "No proxy is trusted: behind one, all people are one client, and failed sign-ins lock everybody out.",
            "Set TRUSTED_PROXIES to how many proxies stand in front, or to the networks that they are in.",
        )
    if set(settings.ALLOWED_HOSTS) <= LOCAL:
        yield 3, "The site answers to names of this machine only.", "Set ALLOWED_HOSTS to the names that people type."
    if plain := [origin for origin in settings.CSRF_TRUSTED_ORIGINS if origin.startswith("http://")]:
        yield (
            4,
            f"Forms are accepted from unencrypted pages of {', '.join(plain)}.",
            "Write https:// in CSRF_TRUSTED_ORIGINS.",
        )
    if settings.WEBHOOK_NETWORKS:
        yield (
            5,
            f"Leads can have requests sent to {', '.join(map(str, settings.WEBHOOK_NETWORKS))}.",
            "Allow in WEBHOOK_NETWORKS only networks in which every service requires authentication.",
        )


def _about_accounts() -> Iterator[tuple[int, str, str]]:
    if settings.DEMO:
        yield 6, "The sign-in page signs anybody in as a person of the demo.", "Remove PANELBENCH_DEMO."
    if settings.EMAIL_BACKEND.endswith(("console.EmailBackend", "dummy.EmailBackend")):
        yield 7, "No e-mail is sent: nobody can reset a password.", "Set EMAIL_URL."


def _about_files() -> Iterator[tuple[int, str, str]]:
    if os.geteuid() == 0:
        yield 8, "This runs as root.", "Run every program as a user of its own that owns the data directory only."
    paths = [settings.DATA_DIR, settings.DATA_DIR / "secret_key"]
    if settings.EMBEDDED:
        paths.append(settings.DATABASES["default"]["NAME"])
    for path in paths:
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode)  # noqa: PTH116 a setting may be a text
        except OSError:
            continue
        if mode & 0o077:
            yield 9, f"Other users of this machine may look into {path} (mode {mode:o}).", f"chmod go-rwx {path}"


def _about_providers() -> Iterator[tuple[int, str, str]]:
    for provider in settings.PROVIDERS.values():
        address = urlsplit(provider.base_url)
        if address.scheme == "http" and address.hostname not in LOCAL and provider.key_variable:
            text = f"The key of the provider {provider.name} is sent unencrypted."
            yield 10, text, "Write https:// in its base_url."
