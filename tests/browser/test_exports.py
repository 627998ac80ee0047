"""The export page in Chromium: a file made in the background, and a bundle that comes in elsewhere."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from playwright.sync_api import BrowserContext, Page, expect

from accounts.models import Membership, Project, Role
from annotation.models import Item
from tests.analytics import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(context: BrowserContext, live_server: Any, cast: Cast) -> Page:
    """Aino's browser."""
    cookie = cast.client("aino").cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}])
    opened = context.new_page()
    opened.set_default_timeout(20_000)
    return opened


def test_a_project_goes_out_in_the_background_and_in_elsewhere(
    page: Page, live_server: Any, cast: Cast, worker: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    scene.judged(scene.campaign(cast))
    empty = Project.objects.create(slug="elsewhere", name="Elsewhere")
    Membership.objects.create(project=empty, user=cast.aino, role=Role.LEAD)
    page.goto(f"{live_server.url}/p/kassa/export/")
    whole = page.get_by_role("region", name="The whole project")
    whole.get_by_role("button", name="How large?").click()
    expect(page.get_by_text("kassa.zip: 72 rows")).to_be_visible()
    whole.get_by_role("button", name="Make it in the background").click()
    link = page.locator("#transfers").get_by_role("link", name="Download")
    expect(link).to_be_visible(timeout=30_000)  # the list asks for itself
    assert Axe().run(page).response["violations"] == []
    with page.expect_download() as download:
        link.click()
    bundle = tmp_path / "kassa.zip"
    download.value.save_as(bundle)

    page.goto(f"{live_server.url}/p/elsewhere/import-bundle/")
    assert Axe().run(page).response["violations"] == []
    page.locator("input[type=file]").set_input_files(bundle)
    page.get_by_role("button", name="Load it").click()
    expect(page.locator("#transfers").get_by_text("Done", exact=True)).to_be_visible(timeout=30_000)
    assert Item.objects.filter(dataset__project=empty).count() == 12
