"""Two candidates in Chromium: chosen by the arrow to their side; below each other on a phone."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from annotation.models import Annotation, Rating
from tests.annotation.test_pairs import duty_of_pairs
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("language", ["en", "ar"])
def test_the_better_text_is_chosen_by_the_arrow_to_its_side(visit_as: VisitAs, cast: Cast, language: str) -> None:
    duty = duty_of_pairs(cast, items=3, overlap=1)
    cast.maarika.ui_language = language
    cast.maarika.save()
    page = visit_as("maarika", f"/desk/{duty.pk}/")
    page.wait_for_url(re.compile("/desk/at/"))
    first, second = page.locator(".pair .passage").all()
    left, right = first.bounding_box(), second.bounding_box()
    assert left and right and left["y"] == right["y"]
    assert (left["x"] < right["x"]) == (language == "en")
    given = page.locator("#criterion-preference input:checked")

    for key in ("ArrowLeft", "ArrowRight"):  # the second time the focus may be on the first choice
        page.keyboard.press(key)
        on_left = first if language == "en" else second
        chosen = on_left if key == "ArrowLeft" else (second if language == "en" else first)
        is_first_candidate = "Esimene" in chosen.inner_text()
        expect(given).to_have_value("1" if is_first_candidate else "2")
    assert not Axe().run(page).response["violations"]
    page.set_viewport_size({"width": 390, "height": 844})
    upper, lower = first.bounding_box(), second.bounding_box()
    assert upper and lower and upper["y"] < lower["y"]
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    page.keyboard.press("0")
    before = page.url
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda address: address != before)
    assert Rating.objects.get().score == 1.5
    assert Annotation.objects.get().swapped is not None
