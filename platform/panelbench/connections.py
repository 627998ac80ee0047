"""Close database connections before a fork, because two processes must not share one."""

from django.db import connections


def close() -> None:
    """Close this process's connections and pools; the next query opens new ones."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()
