"""Scores typed at the desk faster than anything there moves or loads: every key counts, in its order."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Annotation, Assignment, Duty, Rating
from tests import make
from tests.annotation import scene
from tests.browser.conftest import TcpProxy, VisitAs
from tests.cast import Cast
from tests.workers import wait_for_workers

pytestmark = pytest.mark.django_db(transaction=True)

KEYS_A_SECOND = 8
ITEMS = 30
NAMES = ("fluency", "coherence", "tone", "grammar")


def duty_of_four(cast: Cast, *, items: int = ITEMS) -> Duty:
    criteria = [make.criterion(name, (0, 1, 2, 3, 4), not_applicable=True) for name in NAMES]
    return scene.duty(cast, items=items, overlap=1, criteria=criteria)


def opened(visit_as: VisitAs, work: Duty) -> Page:
    page = visit_as("maarika", f"/desk/{work.pk}/")
    page.wait_for_url(re.compile("/desk/at/"))
    expect(page.locator("[data-count]")).not_to_be_empty()
    return page


def digits(number: int) -> str:
    """Four digits that tell the items apart, and neighbours within an item too."""
    return "".join(str((number * step + place) % 5) for place, step in enumerate((1, 2, 3, 7)))


def stored() -> Iterator[str]:
    for annotation in Annotation.objects.order_by("pk"):
        ratings = Rating.objects.filter(annotation=annotation).order_by("criterion__position")
        yield "".join("n" if one.score is None else f"{one.score:g}" for one in ratings)


def test_thirty_items_by_keyboard_alone_at_eight_keys_a_second(visit_as: VisitAs, cast: Cast) -> None:
    work = duty_of_four(cast)
    page = opened(visit_as, work)
    keys = [key for number in range(ITEMS) for key in (*digits(number), "Control+Enter")]
    begun = time.monotonic()
    for number, key in enumerate(keys):
        time.sleep(max(0.0, begun + number / KEYS_A_SECOND - time.monotonic()))
        page.keyboard.press(key)
    took = time.monotonic() - begun
    wait_for_workers(lambda: Annotation.objects.count() == ITEMS, seconds=60)
    wrong = [pair for pair in zip(stored(), map(digits, range(ITEMS)), strict=True) if pair[0] != pair[1]]
    assert wrong == []
    assert len(keys) / took > KEYS_A_SECOND * 0.95
    places = Annotation.objects.order_by("pk").values_list("assignment__position", flat=True)
    assert list(places) == sorted(places), "item after item in the order of the queue"
    expect(page.get_by_role("heading", name="All scored")).to_be_visible()


def test_three_digits_within_a_moment_go_to_three_criteria(visit_as: VisitAs, cast: Cast) -> None:
    page = opened(visit_as, duty_of_four(cast, items=1))
    page.keyboard.type("312")
    for name, score in zip(NAMES, ("3", "1", "2"), strict=False):
        expect(page.locator(f"#criterion-{name} [data-given]")).to_have_text(score)
    expect(page.locator("#criterion-grammar")).to_have_attribute("open", "")
    page.keyboard.type("9")
    expect(page.locator("#criterion-grammar [data-error]")).to_contain_text("not on the scale")
    page.keyboard.press("n")
    page.keyboard.press("Control+Enter")
    wait_for_workers(Annotation.objects.exists)
    assert list(stored()) == ["312n"]


def test_a_finger_and_then_keys_at_once(visit_as: VisitAs, cast: Cast) -> None:
    page = opened(visit_as, duty_of_four(cast, items=1))
    page.locator("#criterion-fluency .point").nth(4).click()
    page.keyboard.type("123")
    page.keyboard.press("Control+Enter")
    wait_for_workers(Annotation.objects.exists)
    assert list(stored()) == ["4123"]


def test_keys_for_the_next_item_wait_for_it_with_a_rationale(
    visit_as: VisitAs, cast: Cast, tcp_proxy: TcpProxy
) -> None:
    """The server is away when the first item is submitted; all of the second one is typed meanwhile."""
    work = duty_of_four(cast, items=3)
    page = visit_as("maarika", "/desk/")
    page.goto(f"http://{tcp_proxy.host}:{tcp_proxy.port}/desk/{work.pk}/")
    page.wait_for_url(re.compile("/desk/at/"))
    expect(page.locator("[data-count]")).not_to_be_empty()
    first = page.url
    tcp_proxy.cut()
    page.keyboard.type("4321")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-alert-text]")).to_contain_text("kept on this device")
    page.keyboard.type("0r")
    page.keyboard.type("Jama, n 1")
    page.keyboard.press("Backspace")
    page.keyboard.press("Escape")
    for key in ("j", "1", "2", "3", "Control+Enter", "4"):
        page.keyboard.press(key)
    assert not Annotation.objects.exists()
    tcp_proxy.restore()
    wait_for_workers(lambda: Annotation.objects.count() == 2, seconds=60)
    assert list(stored()) == ["4321", "0123"]
    assert Rating.objects.exclude(rationale="").values_list("criterion__key", "rationale").get() == (
        "fluency",
        "Jama, n",
    )
    page.wait_for_url(lambda address: address != first and "/desk/at/" in address)
    expect(page.locator("#criterion-fluency [data-given]")).to_have_text("4")
    assert Assignment.objects.filter(state="leased").count() == 1
