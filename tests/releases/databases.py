"""New databases for instances that a test runs in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest


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
