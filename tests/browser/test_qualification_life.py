"""One annotator's way in Chromium: guidelines, training, a failed and a passed exam, items, controls, a pause, back."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Annotation, Assignment, ControlPause, Duty
from annotation.qualification import guidelines
from tests.annotation import qualified, scene
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)
RIGHT, WRONG = ("2", "1"), ("0", "0")


def scored(page: Page, keys: tuple[str, str]) -> None:
    """Score the item on the page by keyboard, and wait for what comes after it."""
    before = page.url
    page.keyboard.press(keys[0])
    page.keyboard.press("j")
    page.keyboard.press(keys[1])
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda address: address != before)


def opened(page: Page, button: str) -> None:
    """Press a button that leads to an item."""
    page.get_by_role("button", name=button).click()
    page.wait_for_url(re.compile("/desk/at/"))


def qualify(page: Page) -> None:
    """Confirm the guidelines, train, fail the exam once, and pass it."""
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", name="Juhend")).to_be_visible()
    page.get_by_role("button", name="I have read the guidelines").click()

    opened(page, "Start the training")
    scored(page, WRONG)
    expect(page.get_by_text("Why fluency")).to_be_visible()
    page.get_by_role("link", name="Continue").click()

    opened(page, "Start the exam")
    expect(page.get_by_role("button", name="Skip")).to_have_count(0)
    scored(page, WRONG)
    expect(page.get_by_text("You did not pass the exam.")).to_be_visible()
    opened(page, "Start the exam")
    scored(page, RIGHT)
    expect(page.get_by_text("You passed the exam.")).to_be_visible()
    opened(page, "Open the next item")


def work_until_paused(page: Page, work: Duty) -> None:
    """Score items right and controls wrong, until the work is paused."""
    for _item in range(25):
        if "/desk/at/" not in page.url:
            break
        key = scene.key_at(urlsplit(page.url).path)
        purpose = Assignment.objects.get(key=key).duty.purpose
        scored(page, WRONG if purpose == Duty.Purpose.CONTROL else RIGHT)
        page.wait_for_url(re.compile("/desk/at/|/before/"))
    page.wait_for_url(re.compile(f"/desk/{work.pk}/before/"))
    expect(page.get_by_role("heading", name="Your work in this task is paused")).to_be_visible()


def test_from_the_guidelines_to_a_pause_and_back(visit_as: VisitAs, cast: Cast) -> None:
    work = qualified.qualified_duty(
        cast, training=[1], exam=[2, 3], control=range(4, 16), exam_items=1, wait_hours=0, control_rate=0.5,
        fewest_controls=2,
    )  # fmt: skip
    guidelines.publish_guideline(campaign=work.campaign, language="et", text="# Juhend\n\nLoe **kõik** läbi.")
    page = visit_as("maarika", "/desk/")
    qualify(page)
    work_until_paused(page, work)
    assert ControlPause.objects.get().matched == 0

    page.get_by_label("Why your score is right").first.fill("Vaata teist vooru.")
    page.get_by_role("button", name="Contest").first.click()
    expect(page.get_by_text("The project lead will decide about this score.")).to_be_visible()

    page = visit_as("aino", f"/p/kassa/campaigns/{work.campaign_id}/qualification/")
    expect(page.get_by_text("1 contested score")).to_be_visible()
    page.get_by_role("link", name="A01").click()
    expect(page.get_by_text("Vaata teist vooru.")).to_be_visible()
    page.get_by_role("button", name="Accept as a match").first.click()
    page.get_by_role("button", name="Let them work again").click()
    expect(page.get_by_role("button", name="Let them work again")).to_have_count(0)

    page = visit_as("maarika", "/desk/")
    opened(page, "Continue")
    purposes = set(
        Annotation.objects.filter(campaign=work.campaign).values_list("assignment__duty__purpose", flat=True)
    )
    assert purposes <= {"rating"}, "only ratings are annotations of the campaign"
