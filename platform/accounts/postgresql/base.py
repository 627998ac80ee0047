"""Django's PostgreSQL backend, in which no web request waits for ever for a server that does not answer.

Where a reply takes longer than `PATIENCE`, the server is asked over a new connection whether it is alive. If it is, the
statement is only slow and the wait continues. If it is not, the wait ends with an `OperationalError`, which becomes a
503 (`accounts.outages`). Commands and workers wait as long as they always did.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import IsolationLevel
from psycopg_pool import PoolTimeout

from accounts import outages

PATIENCE = 3.0  # seconds without a reply until the server is asked whether it is alive
POOL_WAIT = 2.0  # seconds for a connection of the pool until it is asked


class WatchedConnection(psycopg.Connection[Any]):
    """A connection on which a web request waits only as long as the server is alive."""

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        """Wait for the end of ``gen``, as its parent does."""
        watched = self._watched(gen) if outages.in_web_request() else gen
        return super().wait(watched, *arguments, **options)

    def _watched(self, gen: Any) -> Generator[Any, Any, Any]:
        since = time.monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    since = time.monotonic()
                elif time.monotonic() - since > PATIENCE:
                    self._require_server()
                    since = time.monotonic()
                state = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _require_server(self) -> None:
        """Close this connection and raise unless the server answers on a new one."""
        if not outages.database_answers():
            self.pgconn.finish()  # whatever is tried on it next fails at once
            raise psycopg.OperationalError(f"the server has not answered for {PATIENCE:g} s")


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's wrapper with those connections."""

    @property
    def pool(self) -> Any:
        """Django's pool, of watched connections."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if isinstance(options, dict):
            options.setdefault("connection_class", WatchedConnection)
        return super().pool

    def get_new_connection(self, conn_params: Any) -> Any:
        """A connection of the pool. A web request asks soon whether the server is alive; then it waits as others do."""
        if self.pool and outages.in_web_request():
            self.isolation_level = IsolationLevel.READ_COMMITTED  # which Django sets here; the settings name no other
            self.pool.open()
            try:
                return self.pool.getconn(timeout=POOL_WAIT)
            except PoolTimeout:
                if not outages.database_answers():
                    raise
        return super().get_new_connection(conn_params)
