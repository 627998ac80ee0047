"""Curating a dataset in Chromium: without JavaScript, on a phone, in the dark, right to left, and what axe finds."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from judging.models import JudgeRun
from tests.browser.conftest import VisitAs
from tests.browser.test_data_pages import overflow, violations
from tests.cast import Cast
from tests.judging.test_curations import stored_run

pytestmark = pytest.mark.django_db(transaction=True)


def audited(page: Page) -> list[str]:
    """What axe finds, light or dark, and whether something has to be scrolled sideways on a phone, either direction."""
    wide = overflow(page, 390)
    found = [violations(page, scheme) for scheme in ("light", "dark")]
    return [*filter(None, found), *([f"{wide} pixels too wide"] if wide else [])]


@pytest.fixture
def run(cast: Cast) -> JudgeRun:
    return stored_run(cast)


def test_from_the_form_to_the_certificate(cast: Cast, visit_as: VisitAs, run: JudgeRun) -> None:
    visit: Any = partial(visit_as, "boris")
    page = visit(f"/p/kassa/datasets/{run.dataset_id}/")
    page.get_by_role("link", name="Curate", exact=True).click()
    page.get_by_label("Judge run").select_option(label=f"{run} · {run.rubric_version}")
    expect(page.get_by_label("Exclude items flagged as")).to_have_value("uninterpretable")
    found = {"form": audited(page)}
    page.get_by_label("Random: each item with a known probability").check()
    expect(page.get_by_text("Strata within a language")).to_be_visible()
    expect(page.get_by_text("Balance over")).to_be_hidden()
    page.get_by_label("Balanced: the rarer values first, at random among equals").check()
    page.get_by_label("Name of the new dataset").fill("Set “12”")
    page.get_by_label("Items per language").fill("12")
    page.get_by_role("button", name="Show the certificate").click()
    expect(page.get_by_role("heading", name="24 items would be chosen; nothing is stored yet")).to_be_visible()
    found["preview"] = audited(page)
    page.get_by_role("button", name="Store the dataset").click()
    expect(page.get_by_role("heading", name="Set “12”")).to_be_visible()
    found["certificate"] = audited(page)
    assert [fault for faults in found.values() for fault in faults] == []
