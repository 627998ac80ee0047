"""The export page in Chromium: a file made in the background, and a bundle that comes in elsewhere."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from accounts.models import Membership, Project, Role
from annotation.models import Item
from tests.analytics import scene
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_project_goes_out_in_the_background_and_in_elsewhere(
    visit_as: VisitAs, cast: Cast, worker: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    scene.with_verdicts(scene.rated_campaign(cast))
    empty = Project.objects.create(slug="elsewhere", name="Elsewhere")
    Membership.objects.create(project=empty, user=cast.aino, role=Role.LEAD)
    page = visit_as("aino", "/p/kassa/export/")
    whole = page.get_by_role("region", name="The whole project")
    whole.get_by_role("button", name="Show the size").click()
    expect(page.get_by_text("kassa.zip: 72 rows")).to_be_visible()
    whole.get_by_role("button", name="Create it in the background").click()
    link = page.locator("#transfers").get_by_role("link", name="Download")
    expect(link).to_be_visible(timeout=120_000)  # the list asks for itself
    assert Axe().run(page).response["violations"] == []
    with page.expect_download() as download:
        link.click()
    bundle = tmp_path / "kassa.zip"
    download.value.save_as(bundle)

    visit_as("aino", "/p/elsewhere/import-bundle/")
    assert Axe().run(page).response["violations"] == []
    page.locator("input[type=file]").set_input_files(bundle)
    page.get_by_role("button", name="Load the bundle").click()
    expect(page.locator("#transfers").get_by_text("Done", exact=True)).to_be_visible(timeout=120_000)
    assert Item.objects.filter(dataset__project=empty).count() == 12
