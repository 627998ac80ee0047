"""A whole study in Chromium: a folder is chosen, recognised, looked at, stored, and taken back."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from annotation.models import Dataset, Import, Rating
from judging.models import Verdict
from tests.browser.conftest import VisitAs
from tests.judging import made_up

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(visit_as: VisitAs) -> Page:
    """The page on which Boris chooses files."""
    return visit_as("boris", "/p/kassa/imports/new/")


def test_a_folder_of_a_known_study_is_imported_as_a_whole_and_taken_back(
    page: Page, worker: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    (tmp_path / "study" / ".git").mkdir(parents=True)
    (tmp_path / "study" / ".git" / "config").write_text("hidden")
    for name, content in made_up.folder().items():
        (tmp_path / "study" / name).write_bytes(content)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a folder").click()
    chooser.value.set_files(tmp_path / "study")
    expect(page.locator("[data-chosen] li")).to_have_count(len(made_up.folder()))
    page.get_by_role("button", name="Check the files").click()
    page.wait_for_url(re.compile(r"/study-imports/\d+/"))

    expect(page.get_by_role("heading", name="What would be stored")).to_be_visible(timeout=120_000)
    expect(page.get_by_role("heading", name="These are the files of: HANNA")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("Verdicts.*20 runs"))).to_contain_text(str(made_up.VERDICTS))
    assert not Dataset.objects.exists()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()

    page.get_by_role("button", name="Store the whole study").click()
    expect(page.get_by_role("heading", name="Result of the rows")).to_be_visible(timeout=120_000)
    assert (Rating.objects.count(), Verdict.objects.count()) == (made_up.RATINGS, made_up.VERDICTS)
    page.get_by_role("link", name="HANNA stories v1", exact=True).click()
    expect(page.get_by_role("link", name=re.compile("Part of import"))).to_be_visible()
    page.go_back()

    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Undo the import").click()
    expect(page.get_by_text("Undone. The files are kept")).to_be_visible()
    assert not Rating.objects.exists() and not Verdict.objects.exists()
    assert Import.objects.get().files.count() == len(made_up.folder())
