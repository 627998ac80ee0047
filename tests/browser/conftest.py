"""The cast before their screens: Chromium on the live server, signed in as somebody of the cast."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection
from playwright.sync_api import BrowserContext, Page, expect

from tests.cast import Cast
from tests.workers import wait_for_workers

expect.set_options(timeout=20_000)  # on a busy machine a page takes longer than the five seconds that are usual
VisitAs = Callable[[str, str], Page]
BUSY = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND state <> 'idle'
"""


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    """Nothing moves: a colour that is half-way to another is no colour of ours."""
    return {**browser_context_args, "reduced_motion": "reduce"}


@pytest.fixture
def visit_as(context: BrowserContext, live_server: Any, cast: Cast) -> Iterator[VisitAs]:
    """Opens an address of the server for the person of that name, in the first tab of the browser."""

    def opened(name: str, address: str) -> Page:
        cookie = cast.client(name).cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}])
        page = context.pages[0] if context.pages else context.new_page()
        page.set_default_timeout(20_000)
        page.goto(f"{live_server.url}{address}")
        return page

    yield opened
    for page in context.pages:
        page.close()
    wait_for_workers(_answered, seconds=60)


def _answered() -> bool:
    """Whether the server has nothing left to do, seen twice: what it still writes stands in the way of the clean-up."""
    return not any(_busy() or time.sleep(0.05) for _look in range(2))


def _busy() -> int:
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(BUSY)
        return int(cursor.fetchone()[0])


class TcpProxy:
    """The only way from the browser to the server, byte by byte; `cut` closes it, `restore` opens it again."""

    def __init__(self, server: str) -> None:
        self.host = urlsplit(server).hostname
        self._target = (urlsplit(server).hostname, urlsplit(server).port)
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._accept_in_background()

    def _accept_in_background(self) -> None:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _address = listener.accept()
                far = socket.create_connection(self._target)
                self._open |= {near, far}
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(65_536):
                target.sendall(part)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for end in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._open.clear()

    def restore(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._accept_in_background()


@pytest.fixture
def tcp_proxy(live_server: Any) -> Iterator[TcpProxy]:
    opened = TcpProxy(live_server.url)
    yield opened
    opened.cut()
