"""The brokers: a folder of an embedded instance, and Redis on servers, each as a transport of kombu.

In a folder kombu makes a file visible before it has written it, so that a reader can take an empty or half-written
message (and the worker ends with a JSON error), and it moves a message through the machine's temporary folder, where a
copy between two file systems is no atomic step either. Here every file is written under a name that nobody looks for
and renamed, and a message is taken by a rename inside the queue's own folder.

When the connection to Redis is lost, kombu takes its transport apart and then puts back the messages that are not
acknowledged yet. There is no connection to do that with any more, and the ``AttributeError`` that says so is none of
the errors after which a Celery worker connects again: it ended with "Unrecoverable error". Here it is a connection
error. The messages are not lost: Redis delivers them again, and what is to be done lies in the database.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.transport import redis as kombu_redis
from kombu.utils.encoding import bytes_to_str, str_to_bytes
from kombu.utils.json import dumps, loads
from redis.exceptions import ConnectionError as RedisConnectionError

# --- a folder --------------------------------------------------------------------------------------------------------
logger = logging.getLogger(__name__)

TEMPORARY = ".tmp"  # such names end in no queue's name, so that nobody takes them for messages


class FolderChannel(filesystem.Channel):
    """A channel of kombu's file system transport that replaces and takes files in one step."""

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]  # as its parent does
        """Put one message on ``queue``: visible when it is whole."""
        final = Path(self.data_folder_out) / f"{time.time_ns()}_{uuid4()}.{queue}.msg"
        _write_whole(final, str_to_bytes(dumps(payload)))

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """Take the oldest message of ``queue``; one that cannot be read is logged and left out."""
        folder = Path(self.data_folder_in)
        for name in sorted(path.name for path in folder.iterdir()):
            if name.partition(".")[2] != f"{queue}.msg":
                continue
            taken = folder / f"{uuid4()}{TEMPORARY}"
            try:
                (folder / name).rename(taken)
            except OSError:
                continue  # another worker was first
            content = taken.read_bytes()
            taken.unlink()
            try:
                return loads(bytes_to_str(content))
            except ValueError:
                logger.warning("queue: left out message %s, which is not complete (%d bytes)", name, len(content))
        raise Empty

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        added = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        self._change_table(exchange, lambda table: table if added in table else [added, *table])

    def _delete(self, queue: str, exchange: str, routing_key: str, pattern: str, *args: Any, **kwargs: Any) -> None:
        self._purge(queue)
        removed = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        self._change_table(exchange, lambda table: [entry for entry in table if entry != removed])

    def _change_table(self, exchange: str, change: Callable[[list[Any]], list[Any]]) -> None:
        """Replace the table of an exchange's queues, one process at a time."""
        path = self._exchange_file(exchange)
        self.control_folder.mkdir(exist_ok=True)
        with _locked(self.control_folder / "lock"):
            table = self.get_table(exchange)
            if (changed := change(table)) != table:
                _write_whole(path, str_to_bytes(dumps(changed)))


class FolderTransport(filesystem.Transport):
    """kombu's file system transport with this module's channel."""

    Channel = FolderChannel


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears under its name with all of its content, or not at all."""
    temporary = path.with_name(f"{uuid4()}{TEMPORARY}")
    try:
        temporary.write_bytes(content)
        temporary.rename(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise ChannelError(f"Cannot write {path.name} to the queue's folder: {error.strerror}") from error


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# --- Redis -----------------------------------------------------------------------------------------------------------
class RedisChannel(kombu_redis.Channel):
    """A channel that says by a connection error that its connection is closed."""

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection is None or self.connection.client is None:
            raise RedisConnectionError("the connection to the broker is closed")
        parameters: dict[str, Any] = super()._connparams(asynchronous=asynchronous)
        return parameters


class RedisTransport(kombu_redis.Transport):
    """Kombu's transport with that channel."""

    Channel = RedisChannel
