"""New databases for instances that a test runs in processes of their own."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from tests.releases.running import environment
from tests.services import FOLDER

SQLITE = "panelbench.sqlite3"


@contextmanager
def release_database(kind: str) -> Iterator[str]:
    """The address of an empty database of the test's PostgreSQL server; empty for SQLite, which needs none."""
    if kind == "sqlite":
        yield ""
        return
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        pytest.skip("this run has no PostgreSQL")
    name = f"release_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def copy_migrated(folder: Path) -> None:
    """Put an empty SQLite database of today's version into a data directory; it is migrated once in a run of tests."""
    source = Path(os.environ[FOLDER]) / "migrated"
    with source.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of the other processes of the run
        if not source.exists():
            command, variables = [sys.executable, "-m", "panelbench.cli", "migrate"], environment(source, providers="")
            subprocess.run(command, env=variables, capture_output=True, check=True)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / SQLITE, folder / SQLITE)
