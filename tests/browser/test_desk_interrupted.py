"""The desk in Chromium when something else got in the way: long texts, a damaged draft, a session that ended."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from annotation.models import Annotation, Rating
from tests import make
from tests.annotation import scene
from tests.browser.conftest import VisitAs
from tests.cast import Cast
from tests.workers import wait_for_workers

pytestmark = pytest.mark.django_db(transaction=True)

PHONE = {"width": 390, "height": 844}
LONG = {"turns": [{"speaker": "customer", "text": f"Turn {n}: my parcel has not arrived yet."} for n in range(80)]}


def first_item(visit_as: VisitAs, cast: Cast, *, long: bool = False) -> Page:
    more = LONG if long else {}
    duty = scene.duty(cast, items=[make.item_row(n, **more) for n in (1, 2)], overlap=1)
    page = visit_as("maarika", "/desk/")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile("/desk/at/"))
    assert duty.pk
    return page


def test_a_long_dialogue_is_read_by_the_keys_wherever_the_focus_is(visit_as: VisitAs, cast: Cast) -> None:
    page = first_item(visit_as, cast, long=True)
    dialogue = page.locator("#dialogue .pane-scroll")

    def place() -> float:
        return float(dialogue.evaluate("node => node.scrollTop"))

    page.keyboard.press("PageDown")
    wait_for_workers(lambda: place() > 200)
    page.keyboard.press("PageUp")
    wait_for_workers(lambda: place() == 0)
    page.locator("body").press("Space")
    wait_for_workers(lambda: place() > 200)
    page.keyboard.press("3")  # the next criterion has the focus now: End and Home are no keys of its own
    expect(page.locator("#criterion-coherence")).to_have_attribute("open", "")
    page.keyboard.press("End")
    wait_for_workers(lambda: place() > 2000)
    expect(page.locator(".turn").last).to_be_in_viewport()
    page.keyboard.press("Home")
    wait_for_workers(lambda: place() == 0)
    dialogue.focus()
    page.keyboard.press("ArrowDown")
    wait_for_workers(lambda: place() > 0)
    expect(page.locator("#criterion-coherence")).to_have_attribute("open", "")


def test_a_phone_keeps_the_place_in_the_dialogue(visit_as: VisitAs, cast: Cast) -> None:
    page = first_item(visit_as, cast, long=True)
    page.set_viewport_size(PHONE)
    page.reload()
    page.evaluate("window.scrollTo(0, 3000)")
    turn = page.get_by_text("Turn 40:")
    turn.scroll_into_view_if_needed()
    place = page.evaluate("window.scrollY")
    page.locator("[data-shows=rubric]").first.click()
    expect(turn, "the rubric lies over the dialogue").to_be_in_viewport()
    rubric = page.locator("#rubric .pane-scroll")
    page.get_by_label("Open the next criterion after a score").scroll_into_view_if_needed()
    down = rubric.evaluate("node => node.scrollTop")
    assert down > 0
    page.locator("[data-shows=dialogue]").first.click()
    assert page.evaluate("window.scrollY") == place
    page.locator("[data-shows=rubric]").first.click()
    assert rubric.evaluate("node => node.scrollTop") == down


def test_the_reason_of_a_score_is_written_after_the_next_criterion_opened(visit_as: VisitAs, cast: Cast) -> None:
    page = first_item(visit_as, cast)
    page.keyboard.press("2")
    expect(page.locator("#criterion-coherence")).to_have_attribute("open", "")
    page.locator(".turn").first.click()  # neither reading on nor saving chooses another criterion
    page.keyboard.press("Control+s")
    page.keyboard.press("r")
    page.keyboard.type("Sest nii")
    expect(page.locator("#rationale-fluency")).to_have_value("Sest nii")


def test_an_annotator_who_does_not_want_it_is_not_led_to_the_next_criterion(visit_as: VisitAs, cast: Cast) -> None:
    page = first_item(visit_as, cast)
    page.get_by_label("Open the next criterion after a score").uncheck()
    page.reload()
    expect(page.get_by_label("Open the next criterion after a score")).not_to_be_checked()
    page.keyboard.press("2")
    page.wait_for_timeout(600)  # longer than the next one takes to open
    expect(page.locator("#criterion-fluency")).to_have_attribute("open", "")


def test_a_damaged_draft_on_this_device_is_set_aside_and_mentioned(visit_as: VisitAs, cast: Cast) -> None:
    page = first_item(visit_as, cast)
    key = page.url.rstrip("/").rpartition("/")[2]
    for damaged in ("{cut", "7", '{"at": 1}', '{"at": 1, "fields": [7]}'):
        page.evaluate("([name, text]) => localStorage.setItem(name, text)", [f"panelbench.draft.{key}", damaged])
        page.evaluate("(text) => localStorage.setItem('panelbench.draft.other', text)", damaged)
        page.reload()
        expect(page.locator("[data-alert-text]")).to_contain_text("can't be read")
        aside = page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('panelbench.damaged.'))")
        assert [page.evaluate("(key) => localStorage.getItem(key)", name) for name in aside] == [damaged, damaged]
        page.evaluate("localStorage.clear()")
        page.keyboard.press("2")
        expect(page.locator("#criterion-fluency [data-given]")).to_have_text("2")


def test_signing_in_again_in_another_tab_lets_the_submission_through(visit_as: VisitAs, cast: Cast) -> None:
    page = first_item(visit_as, cast)
    context = page.context
    context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.keyboard.press("2")
    page.keyboard.press("j")
    page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-alert-text]")).to_contain_text("another tab")
    expect(page.locator("[data-save-state=signed-out]")).to_be_visible()

    server = page.url.partition("/desk/")[0]
    context.clear_cookies()  # the token of the page is of no use now, and none came with another page
    cookie = cast.client("maarika").cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": server}])
    before = page.url
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda now: now != before and "/desk/at/" in now)
    assert (Annotation.objects.count(), Rating.objects.count()) == (1, 2)
