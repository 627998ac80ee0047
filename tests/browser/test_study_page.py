"""The page Study in Chromium: choices in the bar, a square that opens its decision, and what axe finds."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from analytics.judges import thresholds
from analytics.models import Snapshot
from analytics.workflow import AGREEMENT
from tests.analytics import scene
from tests.analytics.test_judge_pages import judged_campaign
from tests.browser.conftest import VisitAs
from tests.browser.test_curation import audited
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_lead_reads_a_study_and_opens_a_square(cast: Cast, visit_as: VisitAs) -> None:
    campaign = judged_campaign(cast)
    thresholds.declare_thresholds(project=campaign.project, preset="skilled", actor=None)
    address = f"/p/kassa/numbers/{campaign.pk}/study/"
    for _try in range(3):
        scene.answered(cast.client("aino"), campaign, address)
    page = visit_as("aino", address)
    expect(page.get_by_text("The panels agree more than by chance in")).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 900})
    text = page.locator("#main").inner_text()
    words, numbers = len(text.split()), len(re.findall(r"\d+(?:[.,]\d+)?", text))
    height = page.evaluate("document.body.scrollHeight")
    assert (words <= 600, numbers <= 150, height <= 2500) == (True, True, True), (words, numbers, height)
    found = {"study": audited(page)}
    page.get_by_role("link", name="Bert · Fluency in Estonian").click()
    decision = page.get_by_role("article")
    expect(decision.get_by_role("heading", name="Bert · Fluency in Estonian")).to_be_visible()
    expect(page.locator("select[name=judge]")).to_have_value("Bert")
    page.get_by_label("What is this?").first.click()
    expect(page.get_by_text("It compares the judge with the people on the items that both scored.")).to_be_visible()
    found["square"] = audited(page)
    assert [fault for faults in found.values() for fault in faults] == []


def test_what_has_the_focus_keeps_it_while_figures_arrive(cast: Cast, visit_as: VisitAs) -> None:
    campaign = judged_campaign(cast)
    address = f"/p/kassa/numbers/{campaign.pk}/study/"
    page = visit_as("aino", address)  # nothing is computed: the page asks for itself
    expect(page.get_by_text("Figures are being computed.").first).to_be_visible()
    link = page.locator("#study-findings").get_by_role("link").last
    link.focus()
    words = link.inner_text()
    page.get_by_label("What is this?").first.click()
    page.get_by_label("What is this?").first.focus()
    scene.compute(campaign, AGREEMENT)
    expect(page.get_by_text("The panels agree more than by chance in")).to_be_visible()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "What is this?"
    expect(page.get_by_text("It compares the judge with the people on the items that both scored.")).to_be_visible()
    link.focus()
    for _time in range(4):
        scene.answered(cast.client("aino"), campaign, address)
    expect(page.get_by_text("Figures are being computed.")).to_have_count(0)
    assert page.evaluate("document.activeElement.textContent").strip() == words
    assert Snapshot.objects.filter(campaign=campaign).count() > 1
