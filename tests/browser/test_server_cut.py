"""The server is gone for a minute, or for a day, while somebody scores: nothing of what they entered is lost."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db.models import F
from playwright.sync_api import Page, expect

from annotation.models import Annotation, Assignment, Rating
from tests.annotation import scene
from tests.browser.conftest import TcpProxy, VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def begun(visit_as: VisitAs, cast: Cast, tcp_proxy: TcpProxy) -> Page:
    """An item whose first score the server has; the clock of the page can be moved on."""
    duty = scene.duty(cast, items=2, overlap=1)
    page = visit_as("maarika", "/desk/")
    page.clock.install()
    page.goto(f"http://{tcp_proxy.host}:{tcp_proxy.port}/desk/{duty.pk}/")
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
    visit_as: VisitAs, cast: Cast, tcp_proxy: TcpProxy
) -> None:
    page = begun(visit_as, cast, tcp_proxy)
    tcp_proxy.cut()
    entered_without_server(page)
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-alert-text]")).to_contain_text("kept on this device")
    for _tries in range(6):
        page.clock.fast_forward(10_000)
    assert not Annotation.objects.exists()

    tcp_proxy.restore()
    before = page.url
    page.clock.fast_forward(31_000)
    page.wait_for_url(lambda address: address != before and "/desk/at/" in address)
    written = Rating.objects.values_list("criterion__key", "score", "rationale")
    assert set(written) == {("fluency", 2.0, ""), ("coherence", 1.0, "Ilma serverita kirjutatud")}
    assert Annotation.objects.count() == 1


def test_what_was_entered_is_there_a_day_later_in_a_new_tab(visit_as: VisitAs, cast: Cast, tcp_proxy: TcpProxy) -> None:
    page = begun(visit_as, cast, tcp_proxy)
    tcp_proxy.cut()
    entered_without_server(page)
    address = page.url
    page.context.new_page()
    page.close()
    Assignment.objects.filter(state=Assignment.State.LEASED).update(
        leased_at=F("leased_at") - timedelta(days=1), leased_until=F("leased_until") - timedelta(days=1)
    )

    tcp_proxy.restore()
    page = page.context.pages[0]
    page.goto(address)
    expect(page.locator("#rationale-coherence")).to_have_value("Ilma serverita kirjutatud")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda now: now != address and "/desk/at/" in now)
    assert set(Rating.objects.values_list("score", "rationale")) == {(2.0, ""), (1.0, "Ilma serverita kirjutatud")}
