"""Celery workers that a test starts, and kills as a machine dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from panelbench.celery import app
from tests.conftest import database_url


@contextmanager
def working(*, queues: str = "judging,imports,default", name: str = "celery") -> Iterator[subprocess.Popen[bytes]]:
    """A Celery worker in a process group of its own, as on a machine of its own."""
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "panelbench", "worker", "-Q", queues]
    started = subprocess.Popen(
        [*command, "-n", f"{name}@%h", "--concurrency", "1", "-l", "ERROR"],
        env={**os.environ, "DATABASE_URL": database_url()},
        start_new_session=True,
    )
    try:
        yield started
    finally:
        kill(started)


@contextmanager
def absent_broker() -> Iterator[None]:
    """Messages are sent to a broker that is not there."""
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(app.conf, "broker_write_url", "redis://127.0.0.1:1/0")
        broken.setattr(app.amqp, "_producer_pool", None)
        broken.setattr(app, "_pool", None)
        yield


def kill(started: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the worker and all of its pool."""
    if started.poll() is None:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def long_after() -> datetime:
    """A time by which every lease of today has run out, for the sweep."""
    return timezone.now() + timedelta(hours=1)


def waits_for_a_lock() -> bool:
    """Whether another connection to this PostgreSQL database waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # a transaction sees what it saw first
        cursor.execute("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        return cursor.fetchone() is not None


@contextmanager
def locked_table(name: str) -> Iterator[None]:
    """Nobody writes to a table of the test's PostgreSQL database, so that workers wait in the middle of their job.

    SQLite can't lock one table: there nobody is held up.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with psycopg.connect(database_url()) as other:
        other.execute(f"LOCK TABLE {name} IN EXCLUSIVE MODE")
        yield
        other.rollback()


def wait_for_workers(condition: Callable[[], Any], *, seconds: float = 180) -> None:
    """Wait for a condition; the limit is far above what a busy machine needs."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)
