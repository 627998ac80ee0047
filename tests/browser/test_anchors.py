"""A link to a part of a page lands on it, also where the part is folded or sections above it come after the jump."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from analytics.judges import thresholds
from tests.analytics import scene
from tests.analytics.test_judge_pages import judged_campaign
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)
HIGHEST, LOWEST = 0, 150
"""Where the top of a target lies that a link leads to, in pixels from that of the window."""


def lands_on(page: Page, target: str) -> float:
    """The top of the target, when nothing moves any more."""
    place = "name => document.querySelector(name)?.getBoundingClientRect().top"
    seen = [page.evaluate(place, target)]
    while len(seen) < 2 or seen[-1] != seen[-2]:
        page.wait_for_timeout(300)
        seen.append(page.evaluate(place, target))
    return float(seen[-1])


def test_chips_land_on_what_they_name(cast: Cast, visit_as: VisitAs) -> None:
    campaign = judged_campaign(cast)
    thresholds.declare_thresholds(project=campaign.project, preset="skilled", actor=None)
    client, here = cast.client("aino"), f"/p/kassa/numbers/{campaign.pk}"

    page = visit_as("aino", f"{here}/calibration/")  # nothing is computed: the first section comes after the jump
    page.set_viewport_size({"width": 1280, "height": 420})
    page.evaluate("location.hash = 'fold-confusion'")
    expect(page.locator("#fold-confusion")).to_have_attribute("open", "")
    for address in ("", "bias/", "confusion/"):
        scene.answered(client, campaign, f"{here}/calibration/{address}")
    expect(page.locator("#part-bias table").first).to_be_visible()
    expect(page.locator("#part-confusion table").first).to_be_visible()
    assert HIGHEST <= lands_on(page, "#fold-confusion") <= LOWEST

    scene.answered(client, campaign, f"{here}/judges/")
    page.goto(page.url.partition("/p/")[0] + f"{here}/judges/")
    for number in (0, 1):
        chip = page.locator("a.use").nth(number)
        name = (chip.get_attribute("href") or "").partition("#")[2]
        chip.click()
        expect(page.locator(f"[id='{name}']")).to_have_attribute("open", "")
        assert HIGHEST <= lands_on(page, f"[id='{name}']") <= LOWEST

    page.set_viewport_size({"width": 390, "height": 420})  # a bar stays at the top
    page.reload()
    page.locator("a.use").first.click()
    name = page.url.partition("#")[2]
    bar = page.locator(".topbar").bounding_box()
    assert bar is not None and bar["height"] <= lands_on(page, f"[id='{name}']") <= LOWEST


def test_who_scrolls_on_is_not_brought_back(cast: Cast, visit_as: VisitAs) -> None:
    campaign = judged_campaign(cast)
    client, here = cast.client("aino"), f"/p/kassa/numbers/{campaign.pk}"
    page = visit_as("aino", f"{here}/calibration/#fold-confusion")
    page.set_viewport_size({"width": 1280, "height": 420})
    expect(page.locator("#fold-confusion")).to_have_attribute("open", "")
    page.evaluate("scrollTo(0, 0)")  # as by the scroll bar, which sends no event but that
    for address in ("", "bias/", "confusion/"):
        scene.answered(client, campaign, f"{here}/calibration/{address}")
    expect(page.locator("#part-bias table").first).to_be_visible()
    page.wait_for_timeout(500)
    assert page.evaluate("scrollY") == 0
