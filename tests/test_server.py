"""The web server against clients that are slow, silent or gone: a server in this process, and the product's own."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.db import connection, transaction

from annotation.models import Import, ImportFile
from panelbench.server import Patience, Server, TimedChannel, in_own_thread
from tests.cast import Cast, make_cast
from tests.conftest import database_url

SLOW = 24  # more than the product has web threads, on either database
ANSWERED = 20.0  # seconds within which an ordinary page is to come, whatever others do
DROPPED = 60.0  # seconds after which a server that should have ended a connection is at fault, however busy the machine
IMPATIENT = Patience(headers=0.3, body=0.3, answer=0.3, idle=0.3, slowest_rate=10**6, check=0.05, stop=5)
PATIENT = Patience(check=0.05, stop=5)
LARGE = 40 * 2**20
MEGABYTE = 2**20


# --- a server in this process ---------------------------------------------------------------------------------------
def echo(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """The body; `/large` a large answer, `/file` the same as a file, `/slow` an answer that takes a second."""
    path = environ["PATH_INFO"]
    body = environ["wsgi.input"].read()
    if path == "/slow":
        time.sleep(1)
    if path == "/file":
        file = TemporaryFile()  # noqa: SIM115 the server closes it
        file.truncate(LARGE)
        start_response("200 OK", [("Content-Length", str(LARGE))])
        return environ["wsgi.file_wrapper"](file, 8192)  # type: ignore[no-any-return]
    answer = bytes(LARGE) if path == "/large" else body or b"nothing"
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]


class Running:
    """A server of one web thread, on a port of its own."""

    def __init__(self, patience: Patience) -> None:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        self.port = int(listener.getsockname()[1])
        self.server = Server(echo, listener=listener, threads=1, patience=patience)
        self.drops = drops = threading.Semaphore(0)  # released for each connection that the server ends by itself

        class CountedChannel(TimedChannel):
            def drop(self) -> None:
                super().drop()
                drops.release()

        self.server.channel_class = CountedChannel
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()

    def connect(self, sent: bytes = b"") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), ANSWERED)
        made.sendall(sent)
        return made

    def answer(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWERED)
        with contextlib.closing(client):
            client.request(method, path, body)
            reply = client.getresponse()
            return reply.status, reply.read()

    def stop(self) -> None:
        self.server.stop()
        self.thread.join(ANSWERED)
        assert not self.thread.is_alive()


@pytest.fixture
def start() -> Iterator[Callable[[Patience], Running]]:
    started: list[Running] = []

    def starting(patience: Patience) -> Running:
        started.append(Running(patience))
        return started[-1]

    yield starting
    for running in started:
        if running.thread.is_alive():
            running.stop()


def is_dropped(client: socket.socket) -> bool:
    """Whether the server ends the connection by itself, without an answer or after a part of one."""
    with client, contextlib.suppress(ConnectionResetError):
        while client.recv(MEGABYTE):
            pass
    return True


def drip(client: socket.socket, piece: bytes) -> bool:
    """Send little by little until the server has had enough of it."""
    deadline = time.monotonic() + ANSWERED
    with client, contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while time.monotonic() < deadline:
            client.sendall(piece)
            time.sleep(0.05)
        return False
    return True


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost:",
        b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\nhalf",
        b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n",
        b"GET /file HTTP/1.1\r\nHost: here\r\n\r\n",
    ],
    ids=["silent", "headers", "body", "chunked", "unread", "unread-file"],
)
def test_a_client_that_goes_no_further_is_dropped(start: Callable[[Patience], Running], begun: bytes) -> None:
    running = start(IMPATIENT)
    client = running.connect(begun)
    assert running.drops.acquire(timeout=DROPPED), "still connected"
    assert is_dropped(client)
    running.server.patience = PATIENT  # a busy machine makes us slow, too
    assert running.answer("POST", "/", b"whole") == (200, b"whole")


@pytest.mark.parametrize(
    ("begun", "piece"),
    [
        (b"GET / HTTP/1.1\r\nHost: here\r\n", b"X-A: b\r\n"),
        (b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100000\r\n\r\n", b"x"),
    ],
    ids=["headers", "body"],
)
def test_little_by_little_does_not_help(start: Callable[[Patience], Running], begun: bytes, piece: bytes) -> None:
    assert drip(start(IMPATIENT).connect(begun), piece)


def test_slow_clients_hold_no_thread_and_are_served_in_the_end(start: Callable[[Patience], Running]) -> None:
    running = start(PATIENT)
    head = b"POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 8\r\n\r\nhalf"
    slow = [running.connect(head) for _client in range(SLOW)]
    assert running.answer("GET", "/") == (200, b"nothing")
    for client in slow:
        client.sendall(b"half")
        received = b""
        while piece := client.recv(4096):
            received += piece
        client.close()
        assert received.endswith(b"\r\n\r\nhalfhalf")


@pytest.mark.parametrize("path", ["/large", "/file"])
def test_an_answer_that_is_read_late_is_whole_and_held_no_thread(
    start: Callable[[Patience], Running], path: str
) -> None:
    running = start(PATIENT)
    late = http.client.HTTPConnection("127.0.0.1", running.port, timeout=ANSWERED)
    late.request("GET", path)
    assert running.answer("GET", "/") == (200, b"nothing")
    with contextlib.closing(late):
        assert late.getresponse().read() == bytes(LARGE)
        late.request("POST", "/", b"on the same connection")
        assert late.getresponse().read() == b"on the same connection"


def test_a_head_request_gets_no_body_and_keeps_its_connection(start: Callable[[Patience], Running]) -> None:
    client = http.client.HTTPConnection("127.0.0.1", start(PATIENT).port, timeout=ANSWERED)
    with contextlib.closing(client):
        for path, length in (("/", "7"), ("/file", str(LARGE))):
            client.request("HEAD", path)
            reply = client.getresponse()
            assert (reply.status, reply.getheader("Content-Length"), reply.read()) == (200, length, b"")


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(start: Callable[[Patience], Running]) -> None:
    client = start(PATIENT).connect(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 99999999999\r\n\r\n")
    with client:
        assert client.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_what_is_under_way_is_finished_before_the_server_ends(start: Callable[[Patience], Running]) -> None:
    running = start(PATIENT)
    client = running.connect(b"GET /slow HTTP/1.1\r\nHost: here\r\n\r\n")
    idle = running.connect()
    while not any(channel.requests for channel in list(running.server.active_channels.values())):
        time.sleep(0.01)
    running.stop()
    assert client.recv(4096).startswith(b"HTTP/1.1 200 OK")
    assert is_dropped(client)
    assert is_dropped(idle)


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_one_request_left_open_is_not_the_next_ones() -> None:
    def careless(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        seen.append(connection.in_atomic_block)
        block = transaction.atomic()
        block.__enter__()
        left.append(block)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return [b""]

    seen: list[bool] = []
    left: list[Any] = []
    for _request in range(3):
        in_own_thread(careless)({"REQUEST_METHOD": "GET"}, lambda *_arguments: None)
    in_own_thread(lambda *_arguments: [])({"REQUEST_METHOD": "GET"}, lambda *_arguments: None)
    assert seen == [False] * 3
    assert not connection.in_atomic_block


# --- the product's own web processes --------------------------------------------------------------------------------
class Web:
    """`panelbench web` on the test's database."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        command = [sys.executable, "-m", "panelbench.cli", "web", "--port", str(self.port)]
        self.process = subprocess.Popen(
            command, env={**os.environ, "DATABASE_URL": database_url()}, stderr=subprocess.PIPE, text=True
        )

    def page(self, path: str, **headers: str) -> tuple[int, bytes]:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWERED)
        with contextlib.closing(client):
            client.request("GET", path, headers=headers)
            reply = client.getresponse()
            return reply.status, reply.read()

    def wait(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                self.page("/healthz")
                return
            time.sleep(0.1)
        raise AssertionError("the web server did not start")

    def send(self, begun: str) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), ANSWERED)
        client.sendall(begun.encode())
        return client

    @property
    def children(self) -> list[int]:
        """The web processes; the supervisor's first child is its warden."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in listed[1:]]

    @property
    def memory(self) -> int:
        """Bytes that its processes hold."""
        status = [Path(f"/proc/{pid}/status").read_text() for pid in [self.process.pid, *self.children]]
        kept = [line for text in status for line in text.splitlines() if line.startswith("RssAnon")]
        return sum(int(line.split()[1]) for line in kept) * 1024


@pytest.fixture
def web(transactional_db: None) -> Iterator[Web]:
    started = Web()
    try:
        started.wait()
        yield started
    finally:
        started.process.terminate()
        started.process.communicate(timeout=30)


def test_an_ordinary_page_is_answered_while_strangers_are_slow(web: Web) -> None:
    form = f"Content-Type: application/x-www-form-urlencoded\r\nCookie: csrftoken={'a' * 32}\r\n"  # so it is read
    body = f"POST /account/login/ HTTP/1.1\r\nHost: localhost\r\n{form}Content-Length: 1000\r\n\r\nlogin="
    headers = "GET /account/login/ HTTP/1.1\r\nHost: localhost\r\nX-Slow:"
    with contextlib.ExitStack() as stack:
        for _client in range(SLOW):
            stack.enter_context(web.send(body))
            stack.enter_context(web.send(headers))
        time.sleep(0.5)
        assert [web.page("/account/login/")[0] for _page in range(8)] == [200] * 8


def test_downloads_that_nobody_reads_hold_neither_memory_nor_threads(web: Web) -> None:
    people: Cast = make_cast()
    content = os.urandom(MEGABYTE) * 30
    file_import = Import.objects.create(project=people.kassa, kind=Import.Kind.DATASET, created_by=people.aino)
    file = ImportFile(
        file_import=file_import, name="large.bin", size=len(content), sha256=hashlib.sha256(content).hexdigest()
    )
    file.content.save("large.bin", ContentFile(content))
    session = people.client("aino").cookies["sessionid"].value
    path = f"/p/kassa/imports/{file_import.pk}/files/{file.pk}/"
    cookie = f"Cookie: sessionid={session}\r\n"
    assert web.page(path, Cookie=f"sessionid={session}") == (200, content)
    before = web.memory
    with contextlib.ExitStack() as stack:
        for _client in range(12):
            unread = stack.enter_context(web.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{cookie}\r\n"))
            assert unread.recv(12) == b"HTTP/1.1 200"
        assert web.page("/account/login/")[0] == 200
        time.sleep(1)  # what is to be buffered is buffered by then
        assert web.memory - before < 100 * MEGABYTE


def test_a_web_process_that_is_killed_starts_again(web: Web) -> None:
    first = web.children
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    web.wait()
    assert web.page("/account/login/")[0] == 200
    assert not set(web.children) & set(first)


def test_it_ends_when_it_is_told_to(web: Web) -> None:
    with web.send("GET / HTTP/1.1\r\nHost:"):
        web.process.terminate()
        assert web.process.wait(30) == 0
