"""The server is gone for a minute, or for a day, while somebody scores: nothing of what they entered is lost."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db.models import F
from playwright.sync_api import Page, expect

from annotation.models import Annotation, Assignment, Rating
from tests.annotation import scene
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


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
def proxy(live_server: Any) -> Iterator[TcpProxy]:
    opened = TcpProxy(live_server.url)
    yield opened
    opened.cut()


def begun(visit_as: VisitAs, cast: Cast, proxy: TcpProxy) -> Page:
    """An item whose first score the server has; the clock of the page can be moved on."""
    duty = scene.duty(cast, items=2, overlap=1)
    page = visit_as("maarika", "/desk/")
    page.clock.install()
    page.goto(f"http://{proxy.host}:{proxy.port}/desk/{duty.pk}/")
    page.wait_for_url(re.compile("/desk/at/"))
    page.keyboard.press("2")
    expect(page.locator("[data-save-state=saved]")).to_be_attached()
    return page


def entered_without_server(page: Page) -> None:
    page.keyboard.press("j")
    page.keyboard.press("1")
    page.keyboard.press("r")
    page.keyboard.type("Ilma serverita kirjutatud")
    expect(page.locator("[data-save-state=offline]")).to_be_attached()


def test_a_server_that_is_gone_for_a_minute_gets_the_scores_when_it_is_back(
    visit_as: VisitAs, cast: Cast, proxy: TcpProxy
) -> None:
    page = begun(visit_as, cast, proxy)
    proxy.cut()
    entered_without_server(page)
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-alert-text]")).to_contain_text("kept on this device")
    for _tries in range(6):
        page.clock.fast_forward(10_000)
    assert not Annotation.objects.exists()

    proxy.restore()
    before = page.url
    page.clock.fast_forward(31_000)
    page.wait_for_url(lambda address: address != before and "/desk/at/" in address)
    written = Rating.objects.values_list("criterion__key", "score", "rationale")
    assert set(written) == {("fluency", 2.0, ""), ("coherence", 1.0, "Ilma serverita kirjutatud")}
    assert Annotation.objects.count() == 1


def test_what_was_entered_is_there_a_day_later_in_a_new_tab(visit_as: VisitAs, cast: Cast, proxy: TcpProxy) -> None:
    page = begun(visit_as, cast, proxy)
    proxy.cut()
    entered_without_server(page)
    address = page.url
    page.context.new_page()
    page.close()
    Assignment.objects.filter(state=Assignment.State.LEASED).update(
        leased_at=F("leased_at") - timedelta(days=1), leased_until=F("leased_until") - timedelta(days=1)
    )

    proxy.restore()
    page = page.context.pages[0]
    page.goto(address)
    expect(page.locator("#rationale-coherence")).to_have_value("Ilma serverita kirjutatud")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda now: now != address and "/desk/at/" in now)
    assert set(Rating.objects.values_list("score", "rationale")) == {(2.0, ""), (1.0, "Ilma serverita kirjutatud")}
