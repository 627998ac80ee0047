"""The web server: waitress, which reads a request completely before a thread works on it, with time limits for clients.

One thread of each process does all network input and output. Large request bodies and responses are in temporary files,
so a slow client uses an open socket but no web thread, database connection or memory. This module adds limits that
waitress lacks: the time for headers, for a body, for reading a response and for an idle connection, and the total size
of temporary files.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO, Any
from wsgiref.util import FileWrapper

from django.db import connections
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.buffers import ReadOnlyFileBasedBuffer
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

CONNECTIONS = 1000  # open at once in one process; fewer where the system allows few open files
LARGEST_BODY = 128 * 2**20  # of one request; larger files come in chunks
BODIES_TOGETHER = 2 * 2**30  # of unfinished requests of one process
IN_MEMORY = 256 * 1024  # of a body or an answer; the rest lies in a temporary file
CROWDED = 0.9  # from this share of the allowed connections on, clients get a tenth of the usual time


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Time limits for clients, in seconds. Body and response get one more second per ``slowest_rate`` bytes
    transferred."""

    headers: float = 20.0  # from the first byte of a request on
    body: float = 30.0
    answer: float = 60.0
    idle: float = 60.0  # between two requests of one connection
    slowest_rate: int = 4096
    stop: float = 8.0  # for running requests when the server stops; less than the supervisor's 10
    check: float = 1.0  # between two looks at who has had its time


WSGIApplication = Callable[[dict[str, Any], Any], Iterable[bytes]]
logger = logging.getLogger(__name__)


class TimedChannel(HTTPChannel):
    """A client's connection that knows the progress of its request or response, and when it began."""

    began: float | None = None
    sending_since: float | None = None
    received_bytes = sent_bytes = 0

    def received(self, chunk: bytes) -> bool:
        before = self.request
        if before is None:
            self.began, self.received_bytes = time.monotonic(), 0
        self.received_bytes += len(chunk)
        is_taken = bool(super().received(chunk))
        if self.request is None:
            self.began, self.received_bytes = None, 0
        elif self.request is not before:
            self.began = time.monotonic()
        return is_taken

    def send(self, chunk: bytes, do_close: bool = True) -> int:
        sent = int(super().send(chunk, do_close=do_close))
        self.sent_bytes += sent
        return sent

    @property
    def is_idle(self) -> bool:
        """Whether the connection is idle."""
        return not (self.requests or self.request or self.total_outbufs_len)

    def is_overdue(self, patience: Patience, share: float) -> bool:
        """Whether the client has exceeded its time limit, or ``share`` of it."""
        now = time.monotonic()
        if self.total_outbufs_len == 0:
            self.sending_since = None
        elif self.sending_since is None:
            self.sending_since, self.sent_bytes = now, 0
        if self.requests:  # the application works on one: that is no fault of the client
            return False
        if self.sending_since is not None:
            return now - self.sending_since > share * patience.answer + self.sent_bytes / patience.slowest_rate
        if self.request is not None and self.began is not None:
            if not self.request.headers_finished:
                return now - self.began > share * patience.headers
            return now - self.began > share * patience.body + self.received_bytes / patience.slowest_rate
        return bool(time.time() - self.last_activity > share * patience.idle)

    def drop(self) -> None:
        """Close the connection and delete its temporary files."""
        if self.request is not None:
            self.request.close()
        self.handle_close()


class Server(TcpWSGIServer):
    """Waitress on a bound socket, until ``stop`` is called."""

    channel_class = TimedChannel
    stopping = False

    def __init__(
        self, application: WSGIApplication, *, listener: socket.socket, threads: int, patience: Patience = Patience()
    ) -> None:
        self.patience = patience
        adjustments = Adjustments(
            sockets=[listener],
            threads=threads,
            connection_limit=_connection_limit(),
            asyncore_use_poll=True,
            clear_untrusted_proxy_headers=False,  # accounts.addresses decides whom to believe
            max_request_header_size=64 * 1024,
            max_request_body_size=LARGEST_BODY,
            inbuf_overflow=IN_MEMORY,
            outbuf_overflow=IN_MEMORY,
            outbuf_high_watermark=2**62,  # never keep a web thread until the client has read
            ident=None,
        )
        address = (listener.family, listener.type, listener.proto, listener.getsockname())
        super().__init__(
            in_own_thread(application), _sock=listener, adj=adjustments, sockinfo=address, bind_socket=False
        )

    def stop(self, *_signal: object) -> None:
        """Accept no more connections, finish running requests, and return from ``run``."""
        self.stopping = True
        self.pull_trigger()

    def run(self) -> None:
        next_check = 0.0
        while not self.stopping:
            wasyncore.loop(timeout=self.patience.check, map=self._map, use_poll=True, count=1)
            if time.monotonic() >= next_check:
                self.drop_overdue()
                next_check = time.monotonic() + self.patience.check
        self._finish()

    def maintenance(self, now: float) -> None:
        """Does nothing: waitress closes a channel only when it can be written to; ``drop_overdue`` is used instead."""

    def drop_overdue(self) -> None:
        """Close connections that exceed their time limit, and the largest bodies if all together are too large."""
        channels = list(self.active_channels.values())
        share = 0.1 if len(channels) >= CROWDED * self.adj.connection_limit else 1.0
        for channel in channels:
            if channel.is_overdue(self.patience, share):
                channel.drop()
        unfinished = sorted(self.active_channels.values(), key=lambda channel: channel.received_bytes)
        together = sum(channel.received_bytes for channel in unfinished)
        while together > BODIES_TOGETHER:
            largest = unfinished.pop()
            together -= largest.received_bytes
            largest.drop()

    def _finish(self) -> None:
        self.accepting = False
        deadline = time.monotonic() + self.patience.stop
        while time.monotonic() < deadline:
            for channel in list(self.active_channels.values()):
                if channel.is_idle:
                    channel.drop()
            if not self.active_channels:
                break
            wasyncore.loop(timeout=0.1, map=self._map, use_poll=True, count=1)
        self.task_dispatcher.shutdown(timeout=0.5)
        wasyncore.close_all(self._map, ignore_all=True)


def serve(listener: socket.socket, threads: int, application: WSGIApplication) -> None:
    """Serve ``application`` on a bound socket, which other processes may share, until SIGTERM or SIGINT."""
    server = Server(application, listener=listener, threads=threads)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.stop)
    server.run()


# --- the application ------------------------------------------------------------------------------------------------
def in_own_thread(application: WSGIApplication) -> WSGIApplication:
    """The application with all its work done in the request's thread, before the response is sent."""

    def called(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        _leave_transactions()
        environ["wsgi.file_wrapper"] = _own_file
        body = application(environ, start_response)
        if environ["REQUEST_METHOD"] != "HEAD":
            return body
        if hasattr(body, "close"):
            body.close()
        return []

    return called


def _own_file(file: IO[bytes], block_size: int = 2**16) -> Iterable[bytes]:
    """The rest of a file, sent and closed by the network thread; the application's own file object is closed here."""
    try:
        descriptor = os.dup(file.fileno())
    except (AttributeError, OSError):  # a part of a file, or none at all: this thread reads it
        return FileWrapper(file, block_size)
    position = file.tell()
    file.close()
    own = os.fdopen(descriptor, "rb")
    own.seek(position)
    buffer: Iterable[bytes] = ReadOnlyFileBasedBuffer(own, block_size)
    return buffer


def _leave_transactions() -> None:
    """Close connections that the previous request of this thread left inside a transaction.

    Django never closes such a connection: every later request of the thread would run in that transaction, and fail
    with it.
    """
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            logger.error("a request left a transaction open; its connection is closed")
            connection.close()
            del connections[connection.alias]


def _connection_limit() -> int:
    """The number of connections that the limit of open files allows, at four files per connection: a socket,
    temporary files, a database connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 4 * CONNECTIONS
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(50, min(CONNECTIONS, soft // 4))
