"""New databases for instances that a test runs in processes of their own."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from tests.databases import TEMPLATE
from tests.releases.running import environment
from tests.services import FOLDER, OWN_CLUSTER

SQLITE = "panelbench.sqlite3"


@contextmanager
def release_database(kind: str, *, template: str = "template0") -> Iterator[str]:
    """The address of an empty database of the test's PostgreSQL server; empty for SQLite, which needs none."""
    if kind == "sqlite":
        yield ""
        return
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        pytest.skip("this run has no PostgreSQL")
    name = f"release_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def migrated_instance(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """The variables of an empty instance of today's version, which is a copy: of the database that `django_db_setup`
    needed before, or of one that is migrated once in a run of tests.
    """
    if kind == "sqlite":
        copy_migrated(folder)
        yield environment(folder, providers="")
        return
    if not os.environ.get(OWN_CLUSTER):  # nothing may be left on a server of somebody else
        with release_database(kind) as url:
            _migrate(folder, url)
            yield environment(folder, providers="", DATABASE_URL=url)
        return

    with release_database(kind, template=TEMPLATE) as url:
        yield environment(folder, providers="", DATABASE_URL=url)


def copy_migrated(folder: Path) -> None:
    """Put an empty SQLite database of today's version into a data directory."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(once_in_a_run("migrated", _migrate) / SQLITE, folder / SQLITE)


def filled_instance(release: str) -> Path:
    """The data directory of an instance of that release, with work under way, migrated to today's version: for copies,
    and never opened.
    """

    def fill(folder: Path) -> None:
        unpack_release(release, folder)
        _migrate(folder)

    return once_in_a_run(f"filled_{release.replace('.', '_')}", fill)


def unpack_release(release: str, folder: Path) -> Path:
    """Put the instance of that release, with work under way, into a data directory."""
    with tarfile.open(Path(__file__).parent / f"{release}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def once_in_a_run(name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first process of the run to need it fills with ``make``, and that none changes afterwards."""
    folder = Path(os.environ[FOLDER]) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of the other processes of the run
        if not (done := folder.with_suffix(".done")).exists():
            make(folder)
            done.touch()
    return folder


def _migrate(folder: Path, url: str = "") -> None:
    variables = environment(folder, providers="", **({"DATABASE_URL": url} if url else {}))
    command = [sys.executable, "-m", "panelbench.cli", "migrate"]
    subprocess.run(command, env=variables, capture_output=True, check=True)
