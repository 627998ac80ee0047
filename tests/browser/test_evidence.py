"""Marking text and asking in Chromium: what is chosen or was sent can be seen."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from annotation import layouts
from annotation.models import Draft, ItemQuestion
from tests import make
from tests.annotation import scene
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)

LONG = " ".join(f"sõna{number}" for number in range(600))
CHOSEN = "() => { const r = getSelection().getRangeAt(0).getBoundingClientRect(); return [r.top, r.bottom] }"
BAR = "document.querySelector('[data-mark-bar]').getBoundingClientRect().top"


def test_words_that_keys_choose_are_never_below_the_bar(visit_as: VisitAs, cast: Cast) -> None:
    turns: dict[str, Any] = {"turns": [{"speaker": "agent", "text": LONG}]}
    work = scene.duty(cast, items=[make.item_row(1, **turns)], overlap=1)
    page = visit_as("maarika", f"/desk/{work.pk}/")
    page.wait_for_url(re.compile("/desk/at/"))
    page.keyboard.press("e")
    bar = page.locator("[data-mark-bar]")
    expect(bar).to_be_visible()
    for _word in range(400):
        page.keyboard.press("ArrowRight")
    top, bottom = page.evaluate(CHOSEN)
    assert page.evaluate("getSelection().toString()") == "sõna400"
    assert 0 < top < bottom <= page.evaluate(BAR)

    page.locator("[data-mark]").dblclick()
    expect(page.locator("[data-span]")).to_have_count(1)
    expect(bar).to_be_hidden()
    assert page.evaluate("getSelection().toString()") == ""


def test_a_question_from_a_phone_is_confirmed_where_it_was_asked(visit_as: VisitAs, cast: Cast) -> None:
    work = scene.duty(cast, items=1, overlap=1)
    page = visit_as("maarika", f"/desk/{work.pk}/")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".desk-switch [data-shows=rubric]").click()
    page.get_by_text("Questions about this item").click()
    page.locator("#ask-question").fill("Kas see on nali?")
    page.locator("button[form=ask-form]").click()
    expect(page.get_by_text("Your question was sent.")).to_be_in_viewport()
    assert ItemQuestion.objects.count() == 1


NOTES = "**Märkus**: esimene.\n\nHiljem, Märkus: teine."
FIRST_WORD = """() => {
  const strong = document.querySelector("#dialogue [data-part='turn:0'] strong");
  const range = document.createRange();
  range.setStart(strong.firstChild, 0);
  range.setEnd(strong.nextSibling, 1);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}"""


def test_a_word_with_emphasis_is_marked_where_it_stands_and_not_where_it_comes_again(
    visit_as: VisitAs, cast: Cast
) -> None:
    work = scene.duty(cast, items=[make.item_row(1, turns=[{"speaker": "agent", "text": NOTES}])], overlap=1)
    layouts.set_markup(dataset=work.campaign.dataset, markup="markdown", actor=cast.aino)
    page = visit_as("maarika", f"/desk/{work.pk}/")
    page.wait_for_url(re.compile("/desk/at/"))
    page.evaluate(FIRST_WORD)
    page.locator("[data-mark]").click()
    expect(page.locator("[data-span]")).to_have_count(1)
    page.keyboard.press("Control+s")
    expect(page.locator("[data-save-state=saved]")).to_be_visible()
    (span,) = Draft.objects.get().answers["fluency"]["evidence"]
    assert (span["start"], span["end"], span["quote"]) == (2, 11, "Märkus**:")
    page.reload()
    expect(page.locator("[data-span]")).to_contain_text("Märkus")
