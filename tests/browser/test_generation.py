"""Generation in Chromium: a new plan, the reading queue by keys, on a phone and in the dark, and what axe finds."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import connections
from playwright.sync_api import Page, expect

from judging.generation import plans
from judging.models import GenerationPlan, Realisation
from tests.browser.conftest import VisitAs
from tests.browser.test_curation import audited
from tests.cast import Cast
from tests.judging.generation.test_writing import planned, written
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


def _written(plan: GenerationPlan) -> None:
    written(plan)
    connections.close_all()


def goes_on(page: Page) -> None:
    page.locator("main").get_by_role("button", name="Next", exact=True).click()


def test_a_plan_is_made_in_four_steps(cast: Cast, visit_as: VisitAs, provider: RunningProvider) -> None:
    page = visit_as("boris", "/p/kassa/generation/")
    with page.expect_navigation():
        page.get_by_role("link", name="New plan").click()
    found = {"what": audited(page)}
    page.get_by_label("Short stories").check()
    page.get_by_role("button", name="Another example").click()
    expect(page.get_by_text("Short stories: A short story")).to_be_visible()
    goes_on(page)
    page.get_by_role("checkbox", name=re.compile("Estonian")).check()
    page.get_by_role("checkbox", name=re.compile("Arabic")).check()
    found["languages"] = audited(page)
    goes_on(page)
    page.get_by_label("Further models").fill("simulated/sim-steady")
    found["by whom"] = audited(page)
    goes_on(page)
    page.get_by_label("Families").fill("4")
    page.get_by_role("button", name="Work it out again").click()
    expect(page.get_by_text("4 families × 2 languages × 1 models")).to_be_visible()
    found["how much"] = audited(page)
    page.get_by_role("button", name="Make the plan").click()
    page.get_by_label("Name of the plan").fill("Jutud “õhtuks” – قصص")
    page.get_by_role("button", name="Make the plan").click()
    expect(page.get_by_role("heading", name="Three examples first")).to_be_visible()
    found["plan"] = audited(page)
    assert [fault for faults in found.values() for fault in faults] == []
    assert GenerationPlan.objects.get().spec["key"] == "stories"


def test_texts_are_read_by_keys(cast: Cast, visit_as: VisitAs, provider: RunningProvider) -> None:
    provider.control(written_breaks={"no_greeting": 0.3})
    plan = planned(cast, models=("sim-steady",), languages=["et", "ar"], families=4)
    plans.start_plan(plan=plan)
    with ThreadPoolExecutor(1) as worker:  # Playwright's loop runs in this thread
        worker.submit(_written, plan).result()
    visit: Any = partial(visit_as, "boris")
    page = visit(f"/p/kassa/generation/{plan.pk}/")
    found = {"plan": audited(page)}
    with page.expect_navigation():
        page.get_by_role("link", name="Read", exact=True).click()
    found["reading"] = audited(page)
    page.keyboard.press("s")
    expect(page.get_by_text("Set aside:")).to_be_visible()
    page.get_by_label("Reason").press_sequentially("kus")  # letters that somebody types press nothing
    assert Realisation.objects.exclude(decision="").count() == 1
    page.get_by_role("heading", name="Keep it?").click()
    page.keyboard.press("u")
    expect(page.get_by_text("Set aside:")).to_be_hidden()
    page.keyboard.press("k")
    expect(page.get_by_text("Kept:")).to_be_visible()
    assert (
        Realisation.objects.get(decision="keep").pk == Realisation.objects.filter(state="written").order_by("pk")[0].pk
    )
    page.get_by_role("link", name="Requests").click()
    found["text"] = audited(page)
    page.goto(page.url.rsplit("/texts/", 1)[0] + "/texts/?family=2")
    found["family"] = audited(page)
    page = visit("/p/kassa/generation/specs/support-dialogues/")
    found["spec"] = audited(page)
    assert [fault for faults in found.values() for fault in faults] == []
