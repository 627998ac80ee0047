"""Letting go of the database before a fork: two processes on one connection would read each other's answers."""

from django.db import connections


def close() -> None:
    """Close this process's connections and pools; the next query opens new ones."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()
