"""The health of an instance (`/healthz`), and security warnings (`panelbench check --deploy`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import (
    CheckMessage,
    Tags,
    Warning,  # noqa: A004 Django's own name
    register,
)
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts import data_folder
from accounts.models import Heartbeat
from panelbench import environment

if TYPE_CHECKING:
    from redis import Redis


OK = "ok"


def health_report() -> dict[str, str]:
    """The state of database, migrations, disk, broker, worker and beat: "ok" or the problem in a few words."""
    parts = _parts()
    healthy = all(state == OK for state in parts.values())
    return {"status": OK if healthy else "failing", **parts}


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """The report; 200 if every part is ok, else 503."""
    state = health_report()
    return JsonResponse(state, status=200 if state["status"] == OK else 503)


def _parts() -> dict[str, str]:
    database, disk = _database(), data_folder.folder_report()
    if database != OK:
        unknown = "unknown: no database"
        silent = dict.fromkeys(("worker", "beat"), unknown)
        return {"database": database, "migrations": unknown, "disk": disk, "broker": _broker(), **silent}
    migrations = OK if _migrated() else "pending: run `panelbench migrate`"
    processes = _processes() if migrations == OK else dict.fromkeys(("worker", "beat"), "unknown: not migrated")
    return {"database": database, "migrations": migrations, "disk": disk, "broker": _broker(), **processes}


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "unreachable"
    return OK


_seen_migrated = False


def _migrated() -> bool:
    # Once applied, migrations stay applied: building the graph at every probe would cost more than all the rest.
    global _seen_migrated  # noqa: PLW0603 (one fact about this process)
    if not _seen_migrated:
        executor = MigrationExecutor(connection)
        _seen_migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    return _seen_migrated


def _broker() -> str:
    if not settings.REDIS_URL:
        return OK if os.access(settings.CELERY_BROKER_DIR / "messages", os.W_OK) else "queue folder not writable"
    return OK if _redis_answers() else "unreachable"


def _redis_answers() -> bool:
    import redis  # a third of a second that an instance without Redis need not spend

    try:
        return bool(_redis(settings.REDIS_URL).ping())
    except redis.RedisError:
        return False


@lru_cache
def _redis(url: str) -> Redis:
    from redis import Redis

    return Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1)


def _processes() -> dict[str, str]:
    silent = Heartbeat.objects.silent()
    return {kind: f"no {kind} is running" if kind in silent else OK for kind in (Heartbeat.WORKER, Heartbeat.BEAT)}


@register()
def check_variables(app_configs: Any, **options: Any) -> list[CheckMessage]:
    """A warning for every variable of the environment that looks like a misspelt one of ours."""
    return [Warning(sentence, id="panelbench.W011") for sentence in environment.misspelt_names(os.environ)]


# --- `panelbench check --deploy` -------------------------------------------------------------------------------------
LOCAL = {"localhost", "127.0.0.1", "[::1]", "::1"}


@register(Tags.security, deploy=True)
def check_deployment(app_configs: Any, **options: Any) -> list[CheckMessage]:
    """One warning for every security problem, with what to do about it."""
    findings = [*_about_connections(), *_about_accounts(), *_about_files(), *_about_providers()]
    return [Warning(text, hint=hint, id=f"panelbench.W{number:03d}") for number, text, hint in findings]


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
