"""Simulations in Chromium: a plan, a conversation turn by turn, comparing users with people; and what axe finds."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from judging.models import GenerationPlan, Realisation
from tests import make
from tests.annotation.test_user_comparison import human_rows, simulated_rows
from tests.browser.conftest import VisitAs
from tests.browser.test_curation import audited
from tests.cast import Cast
from tests.judging.generation.conversed import simulated_plan
from tests.judging.generation.test_writing import priced
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_simulation_is_planned(cast: Cast, visit_as: VisitAs, provider: RunningProvider) -> None:
    priced()
    page = visit_as("boris", "/p/kassa/generation/new/?spec=simulated-users")
    found = {"what": audited(page)}
    page.locator("main").get_by_role("button", name="Next", exact=True).click()
    page.get_by_role("checkbox", name="Estonian").check()
    page.locator("main").get_by_role("button", name="Next", exact=True).click()
    page.get_by_role("group", name="Models", exact=True).get_by_label("sim-steady").check()
    page.get_by_role("group", name="User models").get_by_label("sim-chatty").check()
    page.get_by_label("Judge of the user’s turns").select_option(index=1)
    found["by whom"] = audited(page)
    with page.expect_navigation():
        page.locator("main").get_by_role("button", name="Next", exact=True).click()
    found["how much"] = audited(page)
    page.get_by_label("Name of the plan").fill("Vestlused “õhtul” – مساء")
    page.get_by_role("button", name="Make the plan").click()
    expect(page.get_by_role("heading", name="Three examples first")).to_be_visible()
    found["plan"] = audited(page)
    assert [fault for faults in found.values() for fault in faults] == []
    assert GenerationPlan.objects.get().utterance_judge is not None


def test_a_conversation_is_looked_at_turn_by_turn(cast: Cast, visit_as: VisitAs) -> None:
    plan = simulated_plan(cast)
    page = visit_as("boris", f"/p/kassa/generation/{plan.pk}/")
    expect(page.get_by_role("heading", name="8 texts are set aside")).to_be_visible()
    found = {"plan": audited(page)}
    with page.expect_navigation():
        page.get_by_role("link", name="All texts that are set aside").click()
    found["texts"] = audited(page)
    text = Realisation.objects.filter(plan=plan, language="ar").first()
    page.goto(f"{page.url.split('/texts/')[0]}/texts/{text.pk if text else 0}/")
    expect(page.get_by_text("2 tries refused")).to_be_visible()
    found["conversation"] = audited(page)
    page.get_by_text("Request as it was sent").first.locator("xpath=ancestor::details[2]/summary").click()
    found["request"] = audited(page)
    assert [fault for faults in found.values() for fault in faults] == []


def test_users_are_compared_with_people(cast: Cast, visit_as: VisitAs) -> None:
    make.dataset(cast.kassa, simulated_rows(), name="Simuleeritud")
    make.dataset(cast.kassa, human_rows(), name="Päris “kliendid”")
    page: Any = visit_as("boris", "/p/kassa/campaigns/new/")
    page.get_by_role("link", name="Compare simulated users with people").click()
    page.get_by_label("Dialogues with simulated users").select_option(label="Simuleeritud v1")
    page.get_by_label("Dialogues with people").select_option(label="Päris “kliendid” v1")
    page.get_by_label("Name of the campaign").fill("Kes kirjutab?")
    page.get_by_label("Speaker who is the person").fill("Klient “Õhtu”")
    found = {"form": audited(page)}
    page.get_by_role("button", name="Count the dialogues").click()
    expect(page.get_by_role("heading", name="48 items would be rated; nothing is stored yet")).to_be_visible()
    found["counted"] = audited(page)
    page.get_by_role("button", name="Open the campaign").click()
    expect(page.get_by_role("heading", name="Who rates what")).to_be_visible()
    assert [fault for faults in found.values() for fault in faults] == []
