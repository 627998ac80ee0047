"""kombu transports for the broker: a folder for embedded instances, and Redis on servers.

In kombu's own folder transport a file is visible before it is completely written, so that a reader can take an empty or
partial message and the worker ends with a JSON error. It also moves messages through the machine's temporary folder; a
copy between file systems is not atomic either. Here every file is written under a temporary name and then renamed, and
a message is taken by renaming it inside the queue's folder.

When the connection to Redis is lost, kombu closes its transport and then tries to put unacknowledged messages back.
This fails with an ``AttributeError``, after which a Celery worker does not reconnect but ends with "Unrecoverable
error". Here it is a connection error. No message is lost: Redis delivers them again, and open work is in the database.
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
    """kombu's file system channel, with atomic writes and atomic taking of messages."""

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]  # as its parent does
        """Put one message into ``queue``; it becomes visible when it is complete."""
        final = Path(self.data_folder_out) / f"{time.time_ns()}_{uuid4()}.{queue}.msg"
        _write_whole(final, str_to_bytes(dumps(payload)))

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """Take the oldest message of ``queue``. A message that cannot be read is logged and dropped."""
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
        """Change the table of an exchange's queues, under a lock."""
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
    """Write a file that appears under its name only when it is complete."""
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
    """A channel that raises a connection error if its connection is closed."""

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection is None or self.connection.client is None:
            raise RedisConnectionError("the connection to the broker is closed")
        parameters: dict[str, Any] = super()._connparams(asynchronous=asynchronous)
        return parameters


class RedisTransport(kombu_redis.Transport):
    """Kombu's transport with that channel."""

    Channel = RedisChannel
