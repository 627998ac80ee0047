"""The demo in Chromium: three dialogues right to left by keyboard alone, and the lead's heatmap moves."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from analytics.judges.thresholds import judge_changes
from analytics.models import Snapshot
from annotation.models import Annotation, Campaign
from judging.models import JudgeRun
from panelbench.demo import loading
from tests.browser import tour
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_scoring_right_to_left_moves_the_heatmap(
    browser: Browser, live_server: Any, provider: RunningProvider, worker: subprocess.Popen[bytes], settings: Any
) -> None:
    loading.load_demo()
    settings.DEMO = True
    _offered(browser, live_server.url)
    with tour.sign_in(browser, live_server.url, tour.LEAD) as lead:
        before = tour.draw_heatmap(lead)
    rated = Annotation.objects.count()
    with tour.sign_in(browser, live_server.url, tour.ARABIC) as page:
        tour.score_three(page, tour.ARABIC)
    assert Annotation.objects.count() == rated + 3
    with tour.sign_in(browser, live_server.url, tour.LEAD) as lead:
        after = tour.draw_heatmap(lead)
    assert before != after
    assert Snapshot.objects.count() >= 2
    campaign = Campaign.objects.get(dataset__name="Support dialogues")
    run = JudgeRun.objects.get(judge__name="Steady (simulated)", dataset=campaign.dataset)
    assert [change["code"] for change in judge_changes(campaign, run)] == ["served"]  # the spot check, live


def _offered(browser: Browser, root: str) -> None:
    """The sign-in page offers the demo's people, with what each has left to score; one click signs in."""
    page = browser.new_page(base_url=root)
    page.goto("/account/login/")
    person = page.get_by_role("button", name="Mari Põld")
    expect(person).to_contain_text("Annotator · 3 dialogues to score")
    person.click()
    expect(page.get_by_role("heading", name="Sinu ülesanded")).to_be_visible()
    page.close()
