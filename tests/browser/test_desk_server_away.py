"""The desk while the server answers 500 or 503, or not at all: it keeps what was entered, and sends it until stored."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from annotation import allocation
from annotation.models import Annotation, Duty, Rating
from tests.annotation import scene
from tests.browser.conftest import TcpProxy, VisitAs
from tests.cast import Cast
from tests.workers import wait_for_workers

pytestmark = pytest.mark.django_db(transaction=True)
STORED = {("fluency", 2.0, "Põhjus “سبب”"), ("coherence", 1.0, "")}


@contextlib.contextmanager
def refusing(tcp_proxy: TcpProxy, status: int, **headers: str) -> Iterator[list[str]]:
    """In place of the server another one, that answers everything with ``status``; yields what it was asked."""
    asked: list[str] = []

    class Refusing(BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked.append(f"{self.command} {self.path.rstrip('/').rpartition('/')[2]}")
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"away")

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, *_anything: Any) -> None:
            pass

    tcp_proxy.cut()
    server = ThreadingHTTPServer(("127.0.0.1", tcp_proxy.port), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()
        tcp_proxy.restore()


def opened(visit_as: VisitAs, work: Duty, tcp_proxy: TcpProxy) -> Page:
    page = visit_as("maarika", "/desk/")
    page.clock.install()
    page.goto(f"http://{tcp_proxy.host}:{tcp_proxy.port}/desk/{work.pk}/")
    page.wait_for_url(re.compile("/desk/at/"))
    expect(page.locator("[data-count]")).not_to_be_empty()
    return page


def entered(page: Page) -> None:
    page.keyboard.type("21")
    page.locator("#criterion-fluency summary").first.click()
    page.locator("#rationale-fluency").fill("Põhjus “سبب”")


def stored() -> set[tuple[str, float | None, str]]:
    return set(Rating.objects.values_list("criterion__key", "score", "rationale"))


@pytest.mark.parametrize("status", [500, 503])
def test_it_sends_until_it_is_stored_and_waits_as_long_as_it_is_asked(
    visit_as: VisitAs, cast: Cast, tcp_proxy: TcpProxy, status: int
) -> None:
    page = opened(visit_as, scene.duty(cast, items=2, overlap=1), tcp_proxy)
    before = page.url
    more = {"Retry_After": "90"} if status == 503 else {}
    with refusing(tcp_proxy, status, **more) as asked:
        entered(page)
        page.clock.fast_forward(700)
        expect(page.locator("[data-save-state=away]")).to_be_attached()
        drafts = asked.count("POST draft")
        assert drafts >= 1
        page.locator("#rationale-fluency").press("End")
        page.keyboard.type(" ja")
        page.keyboard.press("Backspace")
        page.keyboard.press("Backspace")
        page.keyboard.press("Backspace")
        page.clock.fast_forward(20_000 if status == 503 else 100)
        assert asked.count("POST draft") == drafts, "nothing is sent before the server asked for it"
        page.keyboard.press("Control+Enter")
        expect(page.locator("[data-alert-text]")).to_contain_text("kept on this device and are sent again")
        wait_for_workers(lambda: asked.count("POST submit") == 1)
        if status == 503:
            expect(page.locator("[data-alert-text]")).to_contain_text("in 90 s")
            page.clock.fast_forward(80_000)
            page.wait_for_timeout(300)
            assert asked.count("POST submit") == 1, "Retry-After is honoured"
        page.clock.fast_forward(31_000)
        wait_for_workers(lambda: asked.count("POST submit") >= 2)
        assert not Annotation.objects.exists()
    page.clock.fast_forward(91_000)
    page.wait_for_url(lambda address: address != before and "/desk/at/" in address)
    assert Annotation.objects.count() == 1
    assert stored() == STORED
    assert page.evaluate("Object.keys(localStorage).filter((name) => name.startsWith('panelbench.draft.'))") == []


@pytest.mark.parametrize("address", ["item", "duties"])
def test_after_a_reload_it_still_has_it_and_sends_it(
    visit_as: VisitAs, cast: Cast, tcp_proxy: TcpProxy, address: str
) -> None:
    page = opened(visit_as, scene.duty(cast, items=2, overlap=1), tcp_proxy)
    before = page.url
    with refusing(tcp_proxy, 503):
        entered(page)
        page.keyboard.press("Control+Enter")
        expect(page.locator("[data-alert-text]")).to_contain_text("kept on this device")
        page.reload()
    assert not Annotation.objects.exists()
    page.goto(before if address == "item" else f"{before.partition('/desk/')[0]}/desk/")
    wait_for_workers(Annotation.objects.exists)
    if address == "item":
        page.wait_for_url(lambda now: now != before and "/desk/at/" in now)
    else:
        expect(page.locator("[data-resends]")).to_contain_text("are stored now")
    assert stored() == STORED
    assert Annotation.objects.count() == 1


def test_an_answer_that_is_lost_costs_no_second_submission(visit_as: VisitAs, cast: Cast, tcp_proxy: TcpProxy) -> None:
    page = opened(visit_as, scene.duty(cast, items=2, overlap=1), tcp_proxy)
    before, lost = page.url, []

    def lose(route: Route) -> None:
        if lost:
            route.fallback()
            return
        lost.append(route.fetch().status)
        route.abort()

    page.route("**/submit/", lose)
    entered(page)
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-alert-text]")).to_contain_text("kept on this device")
    assert (lost, Annotation.objects.count()) == ([200], 1)
    page.clock.fast_forward(5_000)
    page.wait_for_url(lambda address: address != before and "/desk/at/" in address)
    assert stored() == STORED
    assert Annotation.objects.count() == 1


def test_the_next_item_comes_when_the_server_is_back(visit_as: VisitAs, cast: Cast, tcp_proxy: TcpProxy) -> None:
    """The scores are stored, and then the server goes: no page of an error in between."""
    page = opened(visit_as, scene.duty(cast, items=2, overlap=1), tcp_proxy)
    before, gone = page.url, []

    def cut(route: Route) -> None:
        if not gone:
            gone.append(route.request.method)
            route.abort()
        else:
            route.fallback()

    page.route(re.compile(r"/desk/\d+/$"), cut)
    entered(page)
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-alert-text]")).to_contain_text("Your scores are stored")
    assert (gone, Annotation.objects.count(), page.url) == (["POST"], 1, before)
    page.clock.fast_forward(5_000)
    page.wait_for_url(lambda address: address != before and "/desk/at/" in address)
    expect(page.locator("[data-alert]")).to_be_hidden()


def test_a_second_tab_shows_what_is_stored_beside_what_it_has(
    visit_as: VisitAs, cast: Cast, tcp_proxy: TcpProxy
) -> None:
    page = opened(visit_as, scene.duty(cast, items=2, overlap=1), tcp_proxy)
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("[data-count]")).not_to_be_empty()
    before = page.url
    entered(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda address: address != before and "/desk/at/" in address)
    other.keyboard.type("01")
    other.keyboard.press("Control+Enter")
    dialog = other.locator("#lost")
    expect(dialog).to_contain_text("You submitted this item already")
    expect(dialog.locator("tbody tr").first).to_contain_text("Põhjus “سبب”")
    expect(dialog.locator("tbody tr").first.locator("td").last).to_have_text("0")
    dialog.get_by_role("button", name="Stay").click()
    expect(other.locator("#criterion-fluency [data-given]")).to_have_text("0")
    assert stored() == STORED


def test_a_duty_that_is_removed_keeps_the_text_on_the_page(visit_as: VisitAs, cast: Cast, tcp_proxy: TcpProxy) -> None:
    work = scene.duty(cast, items=2, overlap=1)
    page = opened(visit_as, work, tcp_proxy)
    entered(page)
    allocation.take_back_duty(duty=work, actor=cast.aino)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#lost")).to_contain_text("This task was removed")
    expect(page.locator("#lost")).to_contain_text("What you entered is kept")
    page.locator("#lost [data-closes]").click()
    expect(page.locator("#rationale-fluency")).to_have_value("Põhjus “سبب”")
    page.locator("#rationale-fluency").press("Escape")
    page.reload()
    expect(page.get_by_role("heading", name="This task was removed")).to_be_visible()
    expect(page.get_by_text("Põhjus “سبب”")).to_be_visible()
