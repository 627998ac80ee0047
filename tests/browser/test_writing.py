"""People write in Chromium: by keys, while the server is away, on a phone, right to left, and what axe finds."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from annotation import panels
from annotation.collection import texts
from annotation.models import WritingSubmission, WritingText
from tests.annotation.test_writing import ANSWER, ARABIC, answers, opened
from tests.browser.conftest import VisitAs
from tests.browser.test_curation import audited
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def narrow(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def test_a_text_is_written_by_keys_kept_while_the_server_is_away_and_submitted(cast: Cast, visit_as: VisitAs) -> None:
    duty = opened(cast, instructions="Kirjuta ise.")
    page = visit_as("maarika", "/desk/")
    page.get_by_role("link", name=duty.name).click()
    page.get_by_role("button", name="Start").click()
    box = page.get_by_label("Your text")
    found = {"write": audited(page)}
    box.press_sequentially(ANSWER[:40])
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_text("Now: 40")).to_be_visible()
    assert WritingText.objects.get().draft == [ANSWER[:40]]
    page.context.set_offline(True)
    box.press_sequentially(ANSWER[40:])
    expect(page.get_by_text("Kept on this device.")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_text("Saved.")).to_be_visible(timeout=40_000)
    page.reload()
    expect(page.get_by_label("Your text")).to_have_value(ANSWER)
    page.get_by_label("Your text").press("Control+Enter")
    expect(page.get_by_text("Submitted. Thank you.")).to_be_visible()
    found["list"] = audited(page)
    stored = WritingSubmission.objects.get()
    assert (stored.texts, stored.pasted) == ([ANSWER], 0)

    lead: Any = visit_as("aino", f"/p/kassa/writing/{duty.pk}/")
    found["duty"] = audited(lead)
    lead.get_by_role("link", name="Read", exact=True).click()
    found["read"] = audited(lead)
    lead.get_by_role("button", name="Accept").click()
    expect(lead.get_by_text("1 of 3 accepted")).to_be_visible()
    found["accepted"] = audited(lead)
    lead.goto(lead.url.rsplit("/", 2)[0] + "/new/")
    found["new"] = audited(lead)
    assert [fault for faults in found.values() for fault in faults] == []


def test_a_phone_from_right_to_left_in_the_dark(cast: Cast, visit_as: VisitAs) -> None:
    arabic = panels.create(project=cast.kassa, name="Arabic", language="ar")
    panels.seat(panel=arabic, user=cast.layla)
    duty = opened(cast, dataset=answers(cast), panel=arabic)
    cast.layla.ui_language = "ar"
    cast.layla.save()
    page = visit_as("layla", f"/desk/writing/{duty.pk}/")
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    assert narrow(page)
    page.locator("main, header").get_by_role("button").last.click()
    page.wait_for_url("**/desk/writing/at/**")
    box = page.locator("textarea")
    assert box.get_attribute("dir") == "rtl" and narrow(page)
    assert audited(page) == []
    box.fill(ARABIC)
    box.press("Control+Enter")
    page.wait_for_url(f"**/desk/writing/{duty.pk}/")
    assert WritingSubmission.objects.get().texts == [ARABIC]


def test_of_two_devices_the_older_text_does_not_replace_the_newer_draft(cast: Cast, visit_as: VisitAs) -> None:
    duty = opened(cast)
    page = visit_as("maarika", f"/desk/writing/{duty.pk}/")
    page.get_by_role("button", name="Start").click()
    box = page.get_by_label("Your text")
    expect(page.get_by_text("Now: 0")).to_be_visible()
    page.route("**/draft/", lambda route: route.abort())
    box.fill("Vana tekst sülearvutis.")
    expect(page.get_by_text("Kept on this device.")).to_be_visible()
    text = WritingText.objects.get()
    texts.save_writing(text=text, key=text.key, texts=["Uuem «telefonis»."])
    page.unroute("**/draft/")
    page.reload()
    expect(box).to_have_value("Uuem «telefonis».")
    expect(page.get_by_text("Vana tekst sülearvutis.")).to_be_visible()
    page.wait_for_timeout(1_000)
    assert WritingText.objects.get().draft == ["Uuem «telefonis»."]
    page.get_by_role("button", name="Keep what is in the box").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    texts.save_writing(text=text, key=text.key, texts=["Kolmas, telefonis."])
    box.fill("Neljas, siin.")
    expect(page.get_by_text("Kolmas, telefonis.")).to_be_visible()
    assert WritingText.objects.get().draft == ["Kolmas, telefonis."]
    page.get_by_role("button", name="Take this draft").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert WritingText.objects.get().draft == ["Kolmas, telefonis."]
