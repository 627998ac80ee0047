"""Leads' pages are in the reader's language where its catalogue is complete, else in English; annotators' pages follow
their language; through HTTP."""

from __future__ import annotations

import re

import pytest
from django.conf import settings

from accounts.models import User
from tests.annotation import scene
from tests.cast import Cast
from tests.test_locale import LANGUAGES, catalogue, extracted_catalogue, translated


@pytest.mark.parametrize("address", ["/p/kassa/", "/p/kassa/people/", "/p/kassa/audit/", "/p/kassa/campaigns/"])
def test_a_leads_page_is_english_from_left_to_right_until_the_catalogue_is_complete(cast: Cast, address: str) -> None:
    User.objects.filter(pk=cast.aino.pk).update(ui_language="de")
    answer = cast.client("aino").get(address)
    page = answer.content.decode()
    assert 'lang="en" dir="ltr"' in page
    assert answer["Content-Language"] == "en"
    menu = page.partition('id="languages"')[2].partition("</form>")[0]
    body = page.replace(menu, "")
    assert "Kampagne" not in body
    assert "This page is in English" in menu
    assert re.search(r'value="de"[^>]*aria-current="true"', menu)


@pytest.mark.parametrize(("language", "direction"), [("ar", "rtl"), ("et", "ltr"), ("es", "ltr"), ("ja", "ltr")])
def test_a_leads_page_is_in_the_reader_s_language_where_that_is_complete(
    cast: Cast, language: str, direction: str
) -> None:
    User.objects.filter(pk=cast.aino.pk).update(ui_language=language)
    answer = cast.client("aino").get("/p/kassa/people/")
    page = answer.content.decode()
    assert f'lang="{language}" dir="{direction}"' in page
    assert answer["Content-Language"] == language
    assert "This page is in English" not in page
    message = catalogue(language).get("People")
    assert message is not None
    assert str(message.string) in page


def test_an_annotators_page_follows_their_language_and_isolates_numbers(cast: Cast) -> None:
    scene.duty(cast, items=3)
    User.objects.filter(pk=cast.maarika.pk).update(ui_language="ar")
    answer = cast.client("maarika").get("/desk/")
    page = answer.content.decode()
    assert 'lang="ar" dir="rtl"' in page
    assert answer["Content-Language"] == "ar"
    assert "\u20680\u2069" in page
    assert "\u20683\u2069" in page
    assert "<bdi>Round 1</bdi>" in page


def test_a_language_is_offered_for_leads_pages_exactly_when_it_is_complete() -> None:
    every = {message.id for message in extracted_catalogue() if message.id}
    complete = {code for code in LANGUAGES if every <= {message.id for message in translated(code)}}
    assert set(settings.COMPLETE_LANGUAGES) == {settings.LANGUAGE_CODE} | complete
