"""Clients that cost next to nothing: one thread and one kept connection each, prepared bytes out, one answer in."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

CRITERIA = ("grammar", "readability", "coherence", "fluency", "tone")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: str
    body: bytes
    seconds: float


@dataclass(slots=True)
class SessionClient:
    """A signed-in browser. `post` writes the form with its CSRF token."""

    port: int
    session: str
    csrf: str = "a" * 32
    _connection: socket.socket | None = field(default=None)

    def get(self, path: str) -> Reply:
        return self._send(f"GET {path} HTTP/1.1\r\n{self._headers()}\r\n".encode())

    def post(self, path: str, form: dict[str, object]) -> Reply:
        body = urlencode({"csrfmiddlewaretoken": self.csrf, **form})
        kind = f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n"
        return self._send(f"POST {path} HTTP/1.1\r\n{self._headers()}{kind}\r\n{body}".encode())

    def _headers(self) -> str:
        cookies = f"Cookie: sessionid={self.session}; csrftoken={self.csrf}\r\n"
        return f"Host: 127.0.0.1:{self.port}\r\nAccept: application/json\r\nAccept-Language: en\r\n{cookies}"

    def _send(self, request: bytes) -> Reply:
        if self._connection is None:
            self._connection = socket.create_connection(("127.0.0.1", self.port), 60)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        started = time.perf_counter()
        self._connection.sendall(request)
        head, _, body = self._receive_head(self._connection).partition(b"\r\n\r\n")
        headers = head.decode("latin-1")
        body = self._receive_body(self._connection, body, _length(headers))
        return Reply(int(headers.split(" ", 2)[1]), headers, body, time.perf_counter() - started)

    @staticmethod
    def _receive_head(connection: socket.socket) -> bytes:
        received = b""
        while b"\r\n\r\n" not in received:
            part = connection.recv(65536)
            if not part:
                raise ConnectionError("the server hung up")
            received += part
        return received

    @staticmethod
    def _receive_body(connection: socket.socket, body: bytes, length: int) -> bytes:
        while len(body) < length:
            body += connection.recv(65536)
        return body


def _length(headers: str) -> int:
    line = next((line for line in headers.split("\r\n") if line.lower().startswith("content-length:")), ":0")
    return int(line.split(":")[1])


@dataclass(frozen=True, slots=True)
class Run:
    """One run: requests a second over all clients, and every request's seconds."""

    per_second: float
    seconds: list[float]

    @property
    def p95(self) -> float:
        return statistics.quantiles(self.seconds, n=20)[-1]


def together(jobs: Sequence[Callable[[], list[float]]]) -> Run:
    """Every job in its own thread, all starting at once; each returns the seconds of its requests."""
    start = threading.Barrier(len(jobs) + 1)
    results: list[list[float] | Exception] = [[] for _job in jobs]

    def run(place: int) -> None:
        start.wait()
        try:
            results[place] = jobs[place]()
        except Exception as failure:  # noqa: BLE001 raised again below, where somebody sees it
            results[place] = failure

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(jobs))]
    for thread in threads:
        thread.start()
    start.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - started
    seconds = []
    for result in results:
        if isinstance(result, Exception):
            raise result
        seconds += result
    return Run(per_second=len(seconds) / elapsed, seconds=seconds)
