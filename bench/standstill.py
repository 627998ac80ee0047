"""A moment held still: whoever is about to make something visible waits, so that it can be killed right there."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
from django.db import connection

from accounts.models import AuditEntry


@contextlib.contextmanager
def held_up(kind: str, folder: Path) -> Iterator[Callable[[], bool]]:
    """Hold up the next audit entry: the last row of a transaction that makes something visible. Says when it waits.

    SQLite has one lock for everything: there the transaction can't even begin.
    """
    yield from _locked_file(folder / "panelbench.sqlite3") if kind == "sqlite" else _locked_table()


def _locked_file(database: Path) -> Iterator[Callable[[], bool]]:
    mine = sqlite3.connect(database, isolation_level=None)
    mine.execute("BEGIN IMMEDIATE")
    until = time.monotonic() + 2
    yield lambda: time.monotonic() > until
    mine.execute("ROLLBACK")
    mine.close()


def _locked_table() -> Iterator[Callable[[], bool]]:
    table = AuditEntry._meta.db_table

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = %s::regclass", [table])
            return cursor.fetchone() is not None

    with psycopg.connect(os.environ["DATABASE_URL"]) as mine:
        mine.execute(f"LOCK TABLE {table} IN SHARE MODE")
        yield waits
        mine.rollback()
