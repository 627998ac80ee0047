"""Kombu's Redis transport, without the error that ends a worker when Redis restarts while it holds messages.

When the connection is lost, kombu takes its transport apart and then puts back the messages that are not acknowledged
yet. There is no connection to do that with any more, and the ``AttributeError`` that says so is none of the errors
after which a Celery worker connects again: it ended with "Unrecoverable error". Here it is a connection error. The
messages are not lost: Redis delivers them again, and what is to be done lies in the database.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis as kombu_redis
from redis.exceptions import ConnectionError as RedisConnectionError


class Channel(kombu_redis.Channel):
    """A channel that says by a connection error that its connection is closed."""

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection is None or self.connection.client is None:
            raise RedisConnectionError("the connection to the broker is closed")
        parameters: dict[str, Any] = super()._connparams(asynchronous=asynchronous)
        return parameters


class Transport(kombu_redis.Transport):
    """Kombu's transport with that channel."""

    Channel = Channel
