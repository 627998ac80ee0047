"""Words and plurals that pages, forms and prompts were found to get wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from analytics.figures import Figure
from annotation.models import Criterion, Import
from annotation.views import import_page, import_words
from judging.requests import criterion_brief
from tests import make
from tests.analytics.test_figures import figure
from tests.annotation import scene
from tests.cast import Cast
from tests.test_locale import extracted_catalogue

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 25  # in one sentence
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w+\}|<[^>]+>")
RIDDLES = re.compile(
    r"\b(shall|whose|whoever|meanwhile|anew|by now|at once|for good|by itself|by themselves|given up|gives? up"
    r"|desks?|lanes?|(?-i:shifts?)|shel(f|ves)|outlook|rooms?|told|brings?|brought|rests? on|carr(y|ied|ies|ying)"
    r"|hand(s|ed|ing)? (it |them )?out|tak(e|es|en|ing) (it )?(back|out|over|off)|goes on|go on|hold(s|ing)?|held"
    r"|say which|found projects?)\b",
    re.IGNORECASE,
)
"""Old, figurative or ambiguous words that a reader with English as a second language has to guess."""


@cache
def sentences() -> tuple[str, ...]:
    """Every sentence that the interface marks for translation, without its values and tags."""

    def texts() -> Iterator[str]:
        for message in extracted_catalogue():
            if message.id:
                yield from (message.id,) if isinstance(message.id, str) else message.id

    return tuple(part for text in texts() for part in re.split(r"(?<=[.!?:;])\s+", PLACEHOLDER.sub("…", text)))


def test_the_interface_uses_plain_words() -> None:
    """docs/translating.md lists the words that are used in their place."""
    assert len(sentences()) > 1_000
    assert [text for text in sentences() if RIDDLES.search(text)] == []


def test_no_sentence_of_the_interface_is_long() -> None:
    assert [text for text in sentences() if len(text.split()) > MOST_WORDS] == []


OTHER_NAMES = re.compile(r"two[- ]step|second (step|factor)|2fa", re.IGNORECASE)
"""Of two-factor authentication, which allauth's own pages call so."""


def test_two_factor_authentication_has_one_name() -> None:
    assert [text for text in sentences() if OTHER_NAMES.search(text)] == []
    assert any("wo-factor authentication" in text for text in sentences())


def test_the_uses_of_a_column_are_said_in_words(cast: Cast) -> None:
    """What a mapping file writes as `turn.speaker` or `ignore` is not what a person chooses from."""
    lead = cast.client("aino")
    for kind, text in {
        "dataset": "id,language,question\nd1,et,Miks?\n",
        "ratings": "item,rater,criterion,score\nd1,A1,fluency,3\n",
        "verdicts": "item,judge,criterion,score\nd1,J,fluency,3\n",
    }.items():
        upload = SimpleUploadedFile("a.csv", text.encode())
        lead.post("/p/kassa/imports/new/", {"files": [upload], "kind": kind})
        page = lead.get(Import.objects.latest("pk").get_absolute_url()).content.decode()
        options = re.findall(r'<option value="([^"]+)"[^>]*>([^<]*)</option>', page)
        fields = {value: label for value, label in options if value in import_page.FIELDS[kind]}
        assert fields.keys() == set(import_page.FIELDS[kind]), kind
        assert [label for value, label in fields.items() if value == label or not label[0].isupper()] == []
    assert import_words.field_label("score.fluency") == "Score: fluency"


def test_one_of_something_is_said_in_the_singular(cast: Cast) -> None:
    duty = scene.duty(cast, items=1, overlap=1)
    page = cast.client("aino").get(f"/p/kassa/campaigns/{duty.campaign_id}/").content.decode()
    assert "0 of 1 item complete" in page
    assert "1 annotator per item" in page
    assert "0 of 1 assignment<" in page


def test_the_basis_of_a_figure_has_its_singulars() -> None:
    one: Figure = figure(n_items=1, n_raters=1, n_ratings=1)
    assert one.basis == "1 item × 1 rater"


def test_an_interval_with_negative_ends_is_not_written_with_a_dash() -> None:
    assert figure(-0.1, -0.42, 0.34).span == "−0.42 to 0.34"
    assert figure(0.7, 0.64, 0.77).span == "0.64–0.77"


def test_an_address_is_refused_by_its_own_name(cast: Cast) -> None:
    page = cast.client("aino").post("/new/", {"name": "New", "slug": "not an address!"}).content.decode()
    assert "slug”" not in page
    assert "An address can contain only the letters" in page


def test_clauses_of_a_prompt_are_joined_without_a_full_stop_before_the_semicolon(cast: Cast) -> None:
    clauses = {"mark_if": {"en": ["It is rude.", "It is wrong."]}}
    version = make.rubric(cast.kassa, make.criterion("tone", **clauses))
    brief = criterion_brief(Criterion.objects.get(rubric_version=version), "en")
    assert brief.mark_if == "It is rude; It is wrong."


def test_a_rubric_is_shown_in_words(cast: Cast) -> None:
    version = make.rubric(cast.kassa, make.criterion("tone", direction="lower_is_better"))
    page = cast.client("aino").get(f"/p/kassa/rubrics/{version.rubric.key}/v{version.number}/").content.decode()
    assert "_is_better" not in page
    assert "lower is better" in page


@pytest.mark.parametrize("address", ["/account/email/", "/account/password/change/", "/account/2fa/"])
def test_headings_of_accounts_are_in_sentence_case(cast: Cast, address: str) -> None:
    page = cast.client("aino").get(address, follow=True).content.decode()
    said = re.findall(
        r"<h[12][^>]*>(.*?)</h[12]>|<(?:button|a)[^>]*class=\"btn [^\"]*\"[^>]*>([^<]+)<", page, re.DOTALL
    )
    words = [(first or second).strip() for first, second in said]
    assert words
    assert [text for text in words if re.search(r"\w[ -][A-Z][a-z]+\b", text)] == []
