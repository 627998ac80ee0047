"""A judge is tested in Chromium before it is saved: the reply comes beside the prompt without a reload."""

from __future__ import annotations

import re
import subprocess

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from judging.models import Judge, JudgeTrial
from tests import make
from tests.browser.conftest import VisitAs
from tests.cast import Cast
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_judge_is_tested_with_one_call_and_then_saved(
    cast: Cast, visit_as: VisitAs, provider: RunningProvider, worker: subprocess.Popen[bytes]
) -> None:
    make.dataset(cast.kassa)
    make.rubric(cast.kassa)
    page = visit_as("boris", "/p/kassa/judges/new/")
    page.get_by_label("Model", exact=True).fill("sim-steady")
    page.get_by_label("Name", exact=True).fill("Nähe “1”")
    page.get_by_role("button", name="Test the judge").click()
    expect(page.get_by_text("Passed: a score was read.")).to_be_visible(timeout=120_000)
    expect(page.get_by_label("Model", exact=True)).to_have_value("sim-steady")
    expect(page.get_by_text("Minu pakk number 1 on kadunud.")).to_be_visible()
    assert JudgeTrial.objects.get().is_read and not Judge.objects.exists()
    frame = page.get_by_role("region", name="Prompt about d1 · et")
    shape = frame.evaluate("frame => [frame.clientHeight, frame.scrollHeight, frame.tabIndex]")
    assert shape[0] <= 420 < shape[1] and shape[2] == 0, "a long prompt scrolls in its frame"
    frame.focus()
    page.keyboard.press("PageDown")
    page.wait_for_timeout(500)
    assert frame.evaluate("frame => frame.scrollTop") > 0, "by keyboard"
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name=re.compile("Add the judge")).click()
    expect(page.get_by_role("heading", name="Nähe “1”", level=1)).to_be_visible()
    assert Judge.objects.get().digest == JudgeTrial.objects.get().digest
