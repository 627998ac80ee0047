"""Pages where the system chooses the colours (forced colours): nothing is lost that a colour alone would show."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from analytics.judges import thresholds
from judging.models import Judge
from tests.analytics import scene
from tests.analytics.test_judge_pages import judged_campaign
from tests.annotation import scene as desk_scene
from tests.browser import tour
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)

FORCED = [mode for mode in tour.MODES if "forced" in mode]
PAGES = (
    "study",
    "agreement",
    "judges",
    "calibration",
    "comparison",
    "results",
    "workflow",
    "planner",
    "items",
    "report",
)
# Whether two neighbours look alike, by what forced colours leave of them: frame, outline, filling and text.
LOOKS = """(node) => { const style = getComputedStyle(node);
  return [style.outlineStyle, style.outlineColor, style.outlineWidth, style.borderBlockEndColor, style.backgroundColor,
          style.backgroundImage].join(' ') }"""


def looks(page: Page, selector: str) -> Any:
    return page.locator(selector).first.evaluate(LOOKS)


def test_a_leads_pages(visit_as: VisitAs, cast: Cast) -> None:
    campaign = judged_campaign(cast)
    thresholds.declare_thresholds(project=campaign.project, preset="skilled", actor=None)
    aino, faults = cast.client("aino"), {}
    page = visit_as("aino", "/me/")
    audit, root = tour.PageAudit(page), page.url.removesuffix("/me/")
    addresses = [f"/p/kassa/numbers/{campaign.pk}/{name}/" for name in PAGES]
    addresses += [f"/p/kassa/judges/{Judge.objects.earliest('pk').pk}/"]
    for address in addresses:
        scene.answered(aino, campaign, address)
        faults[address] = audit.faults(f"{root}{address}", FORCED)
    assert not any(faults.values()), {there: wrong for there, wrong in faults.items() if wrong}


def test_what_is_chosen_and_what_a_colour_says_stays_visible(visit_as: VisitAs, cast: Cast) -> None:
    campaign = judged_campaign(cast)
    thresholds.declare_thresholds(project=campaign.project, preset="skilled", actor=None)
    address = f"/p/kassa/numbers/{campaign.pk}/study/"
    for _try in range(3):
        scene.answered(cast.client("aino"), campaign, address)
    page = visit_as("aino", address)
    page.emulate_media(forced_colors="active")
    square = page.locator("td .square").first
    assert square.inner_text().strip(), "a letter says what the colour says"
    assert looks(page, ".tabs [aria-current], .subpages [aria-current]") != looks(
        page, ".tabs a:not([aria-current]), .subpages a:not([aria-current])"
    )
    square.focus()
    assert "double" in square.evaluate(LOOKS)
    square.click()
    expect(page.get_by_role("article")).to_be_visible()
    chosen = looks(page, ".square[aria-current]")
    assert chosen != looks(page, "td .square:not([aria-current])") and "none" not in chosen.split()[0]
    hatched = page.locator(".study-heat td.hatched")
    for cell in hatched.all():
        assert "gradient" in cell.evaluate(LOOKS)
    for mark in page.locator(".axis-marks .mark path").all():
        assert mark.evaluate("(node) => getComputedStyle(node).fill") != "rgb(255, 255, 255)"


def test_the_desk(visit_as: VisitAs, cast: Cast) -> None:
    duty = desk_scene.duty(cast, items=1, overlap=1)
    page = visit_as("maarika", f"/desk/{duty.pk}/")
    page.emulate_media(forced_colors="active")
    page.keyboard.press("2")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".point:has(:checked)").first).to_be_visible()
    assert looks(page, ".point:has(:checked)") != looks(page, ".point:not(:has(:checked))")
    found = [fault for mode in FORCED for fault in tour.faults_in_mode(page, mode)]
    assert found == []
