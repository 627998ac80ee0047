"""The upload page in Chromium: chunks with progress, a lost request, a reload, and the report at the end."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from annotation.models import Import, Upload
from tests.browser.conftest import VisitAs

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "Kus on minu pakk? " * 33


@pytest.fixture
def page(visit_as: VisitAs) -> Page:
    """The page on which Boris chooses files."""
    return visit_as("boris", "/p/kassa/imports/new/")


def dialogues(folder: Path, rows: int) -> Path:
    """A CSV file of so many items, about 610 bytes each."""
    path = folder / "dialogues.csv"
    with path.open("w") as file:
        file.write("id,language,question\n")
        file.writelines(f"d{number},et,{TEXT}{number}\n" for number in range(rows))
    return path


def test_sixty_megabytes_come_in_by_chunks_although_one_is_lost(
    page: Page, worker: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    path = dialogues(tmp_path, 100_000)
    assert path.stat().st_size > 60 * 10**6
    sent: list[str] = []

    def lose_one(route: Route) -> None:
        if route.request.method == "PATCH":
            sent.append(route.request.headers["upload-offset"])
            if len(sent) == 6:
                route.abort("connectionreset")
                return
        route.continue_()

    page.route(re.compile("/uploads/[0-9a-f-]+/"), lose_one)
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name="Check the files").click()
    expect(page.locator("[data-uploads] [data-done]")).to_contain_text("/ 58.2 MB")
    page.wait_for_url(re.compile(r"/imports/\d+/"), timeout=120_000)
    expect(page.get_by_role("heading", name="What would be stored")).to_be_visible(timeout=180_000)

    assert sent[5] == sent[6], "the lost chunk goes again"
    assert len(sent) == -(-path.stat().st_size // 2**22) + 1
    file_import = Import.objects.get()
    with file_import.files.get().content.open("rb") as kept:
        assert kept.read() == path.read_bytes()
    assert not Upload.objects.exists()
    expect(page.get_by_text("100,000", exact=True).first).to_be_visible()
    assert page.evaluate("localStorage.length") == 0


def test_an_upload_goes_on_after_a_reload(page: Page, tmp_path: Path) -> None:
    path = dialogues(tmp_path, 20_000)
    sent: list[int] = []
    is_lost = True

    def lose_from_third(route: Route) -> None:
        if route.request.method == "PATCH":
            if is_lost and len(sent) == 2:
                route.abort("connectionreset")
                return
            sent.append(int(route.request.headers["upload-offset"]))
        route.continue_()

    page.route(re.compile("/uploads/[0-9a-f-]+/"), lose_from_third)
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name="Check the files").click()
    expect(page.get_by_text("Connection lost. The upload continues when it is back.")).to_be_visible()
    page.reload()
    is_lost = False
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name="Check the files").click()
    page.wait_for_url(re.compile(r"/imports/\d+/"))
    assert sent == [0, 2**22, 2**23]
    assert Import.objects.get().files.get().size == path.stat().st_size


def test_an_upload_is_cancelled_and_leaves_nothing(page: Page, tmp_path: Path) -> None:
    page.route(
        re.compile("/uploads/[0-9a-f-]+/"),
        lambda route: route.abort() if route.request.method == "PATCH" else route.continue_(),
    )
    page.locator("input[type=file]").set_input_files(dialogues(tmp_path, 100))
    page.get_by_role("button", name="Check the files").click()
    expect(page.get_by_text("Connection lost. The upload continues when it is back.")).to_be_visible()
    page.get_by_role("button", name="Cancel the upload").click()
    expect(page.get_by_role("button", name="Check the files")).to_be_enabled()
    expect(page.locator("[data-uploads] li")).to_have_count(0)
    assert not Upload.objects.exists()


def test_a_refusal_of_the_server_is_shown(page: Page, tmp_path: Path, settings: Any) -> None:
    settings.UPLOAD_LIMIT = 1000
    page.locator("input[type=file]").set_input_files(dialogues(tmp_path, 10))
    page.get_by_role("button", name="Check the files").click()
    expect(page.get_by_role("alert")).to_contain_text("UPLOAD_LIMIT_MB")


@pytest.mark.parametrize("name", ["new", "small"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_are_accessible(page: Page, tmp_path: Path, name: str, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    if name == "small":
        page.locator("input[type=file]").set_input_files(dialogues(tmp_path, 10))
        page.get_by_role("button", name="Check the files").click()
        page.wait_for_url(re.compile(r"/imports/\d+/"))
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
