"""Words of the glossary: declared, used, translated, and shown where they stand, once on a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.utils import translation

from analytics.glossary import TERMS
from analytics.views.all_statistics import PARTS_PAGES
from annotation.models import Campaign
from tests.analytics import scene
from tests.cast import Cast

ROOT = Path(__file__).parents[2]
IN_TEMPLATES = {
    key
    for page in (ROOT / "templates").rglob("*.html")
    for tag in re.findall(r"{% terms ([^%]+)%}", page.read_text(encoding="utf-8"))
    for key in re.findall(r'"(\w+)"', tag)
}
IN_SECTIONS = {key for page in PARTS_PAGES for section in page.sections for key in section.terms}


def test_every_word_that_pages_use_is_declared_and_every_declared_one_is_used() -> None:
    assert set(TERMS) == IN_TEMPLATES | IN_SECTIONS


@pytest.mark.parametrize("key", TERMS)
def test_a_word_is_explained_in_two_sentences_and_its_page_of_docs_has_the_anchor(key: str) -> None:
    with translation.override("en"):
        text = str(TERMS[key].text)
    assert 1 <= len(re.findall(r"[.?!](?= |$)", text)) <= 2 and len(text) <= 240
    name, _hash, anchor = TERMS[key].doc.partition("#")
    heads = re.findall(r"^#+ (.+)$", (ROOT / "docs" / name).read_text(encoding="utf-8"), re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}
    assert not anchor or anchor in slugs, sorted(slugs)


@pytest.mark.parametrize("language", ["es", "et", "ja", "ar"])
def test_every_word_is_translated(language: str) -> None:
    with translation.override("en"):
        english = {key: str(term.text) for key, term in TERMS.items()}
    with translation.override(language):
        assert [key for key, term in TERMS.items() if str(term.text) == english[key]] == []


@pytest.mark.django_db
def test_a_page_explains_a_word_once_and_the_page_of_all_words_lists_it(cast: Cast) -> None:
    campaign: Campaign = scene.rated_campaign(cast)
    client = cast.client("boris")
    for below in ("agreement/", "annotators/", "raters/", "comparison/", "waves/", ""):
        page = client.get(f"/p/kassa/numbers/{campaign.pk}/{below}").content.decode()
        opened = re.findall(r'popovertarget="term-(\w+)"', page)
        assert len(opened) == len(set(opened))
        assert all(f'id="term-{key}" popover' in page for key in opened)
    every = client.get("/p/kassa/glossary/").content.decode()
    assert all(f'<div id="{key}">' in every for key in TERMS)
    assert cast.client("maarika").get("/p/kassa/glossary/").status_code == 403
