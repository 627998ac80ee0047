"""The chart of the numbers takes the page's colours, and the width of the screen."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from analytics.answers import snapshots
from tests.analytics import scene
from tests.analytics.test_campaign_kinds import many_criteria
from tests.analytics.test_judge_pages import judged_campaign
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)
COLOUR = "element => getComputedStyle(element).fill"


def test_the_chart_follows_theme_and_screen(cast: Cast, visit_as: VisitAs) -> None:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign)
    snapshots.snapshot(campaign=campaign)
    page = visit_as("boris", f"/p/kassa/numbers/{campaign.pk}/")
    label, colours = page.locator(".bias .wide text", has_text="Estonian"), []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        ink = page.locator("#bias-title").evaluate("element => getComputedStyle(element).color")
        colours.append(label.evaluate(COLOUR))
        assert colours[-1] == ink
    assert colours[0] != colours[1]
    for theme in ("light", "dark"):
        page.locator("html").evaluate("(element, theme) => (element.dataset.theme = theme)", theme)
        page.emulate_media(media="screen", color_scheme="light")
        assert label.evaluate(COLOUR) == colours[theme == "dark"]
        page.emulate_media(media="print", color_scheme="dark")
        assert label.evaluate(COLOUR) == colours[0], "printed dark"
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 390, "height": 844})
    chart = page.locator(".bias svg:visible")
    assert chart.count() == 1
    assert page.locator(".bias .narrow svg").is_visible()
    assert not page.locator(".bias .wide svg").is_visible()
    edges = chart.evaluate(
        """svg => { const all = svg.getBoundingClientRect();
                    return [...svg.querySelectorAll("text")].every(text => { const box = text.getBoundingClientRect();
                        return box.left >= all.left - 1 && box.right <= all.right + 1; }); }"""
    )
    assert edges, "a word is cut off"


def test_calibration_and_generators_are_walked(cast: Cast, visit_as: VisitAs) -> None:
    """By the rows of links from page to page, on a phone, from the section that is shown to one that is folded."""
    campaign = judged_campaign(cast)
    there = f"/p/kassa/numbers/{campaign.pk}"
    for address in ("calibration/", "calibration/correlation/", "results/", "results/ranks/"):
        scene.answered(cast.client("boris"), campaign, f"{there}/{address}")
    page = visit_as("boris", f"{there}/")
    page.set_viewport_size({"width": 390, "height": 844})
    pages = page.locator(".campaign-pages")
    stops = ((("Judges", "Calibration"), "bias", "correlation"), (("Generators",), "languages", "ranks"))
    for labels, first, later in stops:
        for label in labels:
            pages.get_by_role("link", name=label, exact=True).click()
        expect(pages.locator("[aria-current]").last).to_have_text(labels[-1])
        expect(page.locator(f"#part-{first} table").first).to_be_visible()
        fold = page.locator(f"#fold-{later}")
        expect(fold).not_to_have_attribute("open", "")  # sections below the first one are closed
        fold.locator("summary").first.click()
        expect(page.locator(f"#part-{later} table").first).to_be_visible()
        page.set_viewport_size({"width": 1280, "height": 844})
        page.set_viewport_size({"width": 390, "height": 844})
        expect(fold).to_have_attribute("open", "")
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"{labels[-1]} scrolls sideways on a phone"
        audit = Axe().run(page)
        assert not audit.violations_count, audit.generate_report()


def test_a_folded_table_of_a_long_page_comes_when_it_is_opened(cast: Cast, visit_as: VisitAs) -> None:
    campaign = many_criteria(cast)
    snapshots.snapshot(campaign=campaign)
    page = visit_as("boris", f"/p/kassa/numbers/{campaign.pk}/")
    for rows, shown in (
        ("agreement-table", "How computed"),
        ("distributions-rows", "General"),
        ("generators-rows", "atlas"),
    ):
        fold = page.locator(f"#{rows}")
        expect(fold.locator(".fold-rows")).to_have_count(0)
        fold.locator("summary").first.click()
        expect(fold.locator(".fold-rows")).to_be_visible()
        expect(fold.get_by_text(shown).first).to_be_visible()
    cell = page.locator("#heatmap td a").first
    row = (cell.get_attribute("href") or "").partition("#")[2]
    cell.click()
    expect(page.locator(f'tr[id="{row}"]')).to_be_in_viewport()
