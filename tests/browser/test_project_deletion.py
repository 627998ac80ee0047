"""A lead deletes a project in Chromium, brings it back, and deletes it for good; in every mode."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts import deletion
from accounts.models import Project, ProjectDeletion
from tests import access
from tests.browser import tour
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "Köök “talk” «pakk» مطبخ"


def faults(page: Page) -> list[str]:
    return [fault for mode in tour.MODES for fault in tour.faults_in_mode(page, mode)]


def test_a_project_is_deleted_restored_and_purged(visit_as: VisitAs, cast: Cast) -> None:
    access.furnish(cast)
    Project.objects.filter(pk=cast.kassa.pk).update(name=NAME)
    page = visit_as("aino", "/p/kassa/settings/project/")
    page.get_by_role("link", name="Delete this project").click()
    expect(page.get_by_role("heading", name="What is deleted")).to_be_visible()
    found = faults(page)
    field = page.get_by_label("The project's name, to confirm")
    field.fill("Köök talk pakk مطبخ")
    page.get_by_role("button", name="Delete this project").click()
    expect(page.get_by_text(f"This is not the project's name. Type “{NAME}” to delete it.").first).to_be_visible()
    expect(field).to_have_value("Köök talk pakk مطبخ")
    found += faults(page)
    field.fill('Köök "talk" "pakk" مطبخ')
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=NAME)).to_be_visible()
    expect(page.get_by_text("It can be restored until")).to_be_visible()
    found += faults(page)
    page.get_by_role("link", name="To the start page").click()
    expect(page.get_by_text("can be restored until")).to_be_visible()
    found += faults(page)
    page.get_by_role("link", name=NAME).click()
    page.get_by_role("button", name="Restore the project").click()
    expect(page.get_by_text("The project is restored.")).to_be_visible()
    page.goto(f"{page.url.partition('/p/')[0]}/p/kassa/settings/delete/")
    field.fill(NAME)
    page.get_by_role("button", name="Delete this project").click()
    expect(page.get_by_text("It can be restored until")).to_be_visible()
    deletion.purge_deleted(now=timezone.now() + ProjectDeletion.GRACE + timedelta(hours=1), seconds=600)
    assert not Project.objects.filter(slug="kassa").exists()
    gone = page.reload()
    assert gone is not None and gone.status == 404
    assert found == []
