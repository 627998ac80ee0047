"""What runs and what does not, for /healthz and for the line on every page. No secrets in it."""

from __future__ import annotations

import os
import shutil
from functools import lru_cache
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from panelbench import heartbeat

if TYPE_CHECKING:
    from redis import Redis

OK = "ok"
PROBED = 64 * 1024  # bytes written to see whether the disk takes them
LEAST_FREE = 200 * 2**20


def report() -> dict[str, str]:
    """The state of database, migrations, disk, broker, worker and beat: ok, or in a few words what is wrong."""
    parts = _parts()
    healthy = all(state == OK for state in parts.values())
    return {"status": OK if healthy else "failing", **parts}


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """The report, with 200 when every part is ok and 503 when one is not."""
    state = report()
    return JsonResponse(state, status=200 if state["status"] == OK else 503)


def _parts() -> dict[str, str]:
    database = _database()
    if database != OK:
        unknown = "unknown: no database"
        silent = dict.fromkeys(("worker", "beat"), unknown)
        return {"database": database, "migrations": unknown, "disk": _disk(), "broker": _broker(), **silent}
    migrations = _migrations()
    processes = _processes() if migrations == OK else dict.fromkeys(("worker", "beat"), "unknown: not migrated")
    return {"database": database, "migrations": migrations, "disk": _disk(), "broker": _broker(), **processes}


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "unreachable"
    return OK


def _disk() -> str:
    """Whether the data directory takes files, and for how long it will."""
    try:
        with TemporaryFile(dir=settings.DATA_DIR) as file:
            file.write(bytes(PROBED))
            file.flush()
        free = shutil.disk_usage(settings.DATA_DIR).free
    except OSError as error:
        return f"nothing can be written to the data directory: {os.strerror(error.errno or 0)}"
    return OK if free >= LEAST_FREE else f"less than {LEAST_FREE // 2**20} MB left in the data directory"


def _migrations() -> str:
    return OK if _migrated() else "pending: run `panelbench migrate`"


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
    silent = heartbeat.silent()
    return {kind: f"no {kind} is running" if kind in silent else OK for kind in (heartbeat.WORKER, heartbeat.BEAT)}
