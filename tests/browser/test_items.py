"""From a row of the numbers to an Arabic item on a phone, and on to the next one."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from analytics.answers import snapshots
from tests import make
from tests.analytics import scene
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def is_accessible(page: Page) -> bool:
    """No fault that axe finds, in light and in dark, and nothing wider than the screen."""
    faults = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        faults += [fault["id"] for fault in Axe().run(page).response["violations"]]
    assert faults == []
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_from_the_numbers_to_an_arabic_item_on_a_phone(cast: Cast, visit_as: VisitAs) -> None:
    text = "أين طردي؟ كان من المفترض أن يصل يوم الجمعة."
    turns = [{"speaker": "customer", "text": text}, {"speaker": "agent", "text": "سأتحقق من ذلك."}]
    rows = [make.item_row(number, "ar", title="طرد متأخر", turns=turns) for number in (1, 2, 3, 4)]
    campaign = make.campaign(cast.kassa, items=rows)
    make.rated(campaign, {"fluency": {"noor": [0, 1, 2, 3], "hala": [3, 1, 2, 2]}})
    scene.with_verdicts(campaign, {"fluency": [3, "unparsed", 2, 1]})
    snapshots.snapshot(campaign=campaign)
    page = visit_as("boris", f"/p/kassa/numbers/{campaign.pk}/")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("details.fold", has=page.locator(".calibration")).locator("> summary").click()
    page.locator(".calibration a", has_text="Items").first.click()
    expect(page.locator("tbody th").first).to_contain_text("d3")  # the only one with a reference and a verdict
    expect(page.locator("tbody th")).to_have_count(1)
    assert is_accessible(page)
    page.get_by_text("Filters (1 chosen)").click()
    page.get_by_label("With a reference and a score of the judge").uncheck()
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("tbody th")).to_have_count(4)
    page.locator("#filter-sort").select_option("disagreement")
    expect(page.locator("tbody th").first).to_contain_text("d1")
    page.locator("tbody .who summary").first.click()
    expect(page.locator("tbody .who").first).to_contain_text("noor")
    assert is_accessible(page)
    page.locator("tbody a").first.click()
    bubble = page.locator(".bubble").first
    expect(bubble).to_have_text(text)
    assert bubble.evaluate("element => getComputedStyle(element).direction") == "rtl"
    assert page.locator("details.item-criterion").first.get_attribute("open") is not None
    assert is_accessible(page)
    page.locator("a[rel=next]").click()
    expect(page.get_by_text("Item 2 of 4 in the list")).to_be_visible()
    expect(page.locator("bdi", has_text="Unreadable")).to_have_count(0)
