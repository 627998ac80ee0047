"""The database of each test process: migrated once in a run, then copied; emptied after a test that commits.

What a long test rolled back is cleared away too.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from django.db import connection, transaction

from tests.services import FOLDER, OWN_CLUSTER

TEMPLATE = "panelbench_template"
KEPT = {"django_migrations", "django_content_type", "auth_permission"}  # what `migrate` fills, and no test changes
MANY_BYTES = 1024 * 1024
FEW_BYTES = 256 * 1024  # a table of this size is emptied row by row, which is faster than TRUNCATE


def copy_template() -> bool:
    """Give this process a copy of the migrated database, as its test database; False where the server isn't ours.

    The first process of the run migrates. All others wait for it, and copy one after another: PostgreSQL refuses to
    copy a database to which anybody is connected.
    """
    is_sqlite = connection.vendor == "sqlite"
    if not is_sqlite and not os.environ.get(OWN_CLUSTER):
        return False
    name = connection.creation._get_test_db_name()
    with alone_in_run("template.lock") as is_first:
        if is_first:
            _migrate(str(sqlite_template()) if is_sqlite else TEMPLATE)
        if is_sqlite:
            shutil.copyfile(sqlite_template(), name)
        else:
            with connection._nodb_cursor() as cursor:
                cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{TEMPLATE}"')
    return True


def sqlite_template() -> Path:
    """The migrated SQLite database of this run; it exists once a test on SQLite has used the database."""
    return Path(os.environ[FOLDER]) / f"{TEMPLATE}.sqlite3"


@contextmanager
def alone_in_run(name: str) -> Iterator[bool]:
    """Only one process of the run is in here at a time; whether nobody was before."""
    with (Path(os.environ[FOLDER]) / name).open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_first = lock.seek(0, os.SEEK_END) == 0  # who opened it before it was written stands at its beginning
        yield is_first
        lock.write("x")


def _migrate(name: str) -> None:
    own, wanted = connection.settings_dict["NAME"], connection.settings_dict["TEST"]["NAME"]
    connection.settings_dict["TEST"]["NAME"] = name
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # everything is in the file that is copied
    _close()
    connection.settings_dict["NAME"], connection.settings_dict["TEST"]["NAME"] = own, wanted


def _close() -> None:
    """End every connection of this process to the database."""
    connection.close()
    if connection.vendor == "postgresql":
        connection.close_pool()


def empty_tables() -> None:
    """Delete every row that a test committed: much faster than Django's flush, which truncates each table and fills
    content types and permissions anew.
    """
    is_postgresql = connection.vendor == "postgresql"
    size = "pg_relation_size('\"{0}\"')" if is_postgresql else "0"
    filled = " UNION ALL ".join(
        f"SELECT '{table}', {size.format(table)} WHERE EXISTS (SELECT 1 FROM \"{table}\")" for table in _tables()
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(filled)
        tables = cursor.fetchall()
        if large := [f'"{table}"' for table, bytes_ in tables if bytes_ > FEW_BYTES]:
            cursor.execute(f"TRUNCATE {', '.join(large)} CASCADE")
        for table, _bytes in tables:  # foreign keys are looked at when the transaction ends
            cursor.execute(f'DELETE FROM "{table}"')


def drop_dead_rows() -> None:
    """Give back the room of rows that were rolled back. PostgreSQL keeps them until it is vacuumed, and every later
    query of the run that scans such a table reads them: 130 MB of verdicts after one study. Only between tests.
    """
    if connection.vendor != "postgresql" or connection.connection is None or connection.in_atomic_block:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_relation_size(oid) > %s", [MANY_BYTES])
        if large := [f'"{name}"' for (name,) in cursor.fetchall() if name in _tables()]:
            cursor.execute(f"TRUNCATE {', '.join(large)} CASCADE")


@cache
def _tables() -> list[str]:
    return sorted(set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - KEPT)
