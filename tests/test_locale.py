"""The interface's languages: what an annotator sees is said in each of them, and said as the language asks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from gettext import c2py
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from babel import Locale
from babel.messages.catalog import Catalog, Message
from django.conf import settings
from django.template.base import Lexer, TokenType
from django.test import Client

from panelbench.management.commands import catalogues

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = [code for code, _name in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
# What can come before an annotator's eyes; the templates bring along what they include and extend.
PAGES = {
    "accounts": ("home", "join", "join_closed", "me", "tokens"),
    "annotation": (
        "desk",
        "done",
        "home",
        "take",
        "scored",
        "work",
        "asked",
        "before_work",
        "desk_guidelines",
        "feedback",
    ),
    ".": ("403", "404", "429", "500", "507"),
}
MODULES = {
    "annotation": (
        "desk/answers",
        "evidence",
        "desk/service",
        "desk/leasing",
        "desk/presentation",
        "desk/threads",
        "desk/views",
        "desk/stage_pages",
        "models/qualification",
        "qualification/exams",
        "qualification/gate",
        "qualification/standings",
    ),
    "platform/accounts": ("forms", "invitations", "models", "views"),
}
# Where a module's part begins that only leads and operators see: jobs and webhooks.
LEADS_ONLY_FROM = {"platform/accounts/models.py": "class JobQuerySet", "platform/accounts/views.py": "def _listed"}
SAME_AS_IN_ENGLISH = {("es", "N/A")}
PLACEHOLDER = re.compile(r"%\(\w+\)[sdf]|\{\w+\}|</?\w+[^>]*>")
SCRIPTS = {"ar": ("ARABIC",), "ja": ("HIRAGANA", "KATAKANA", "CJK UNIFIED")}
FOR_ONE_NUMBER = {"zero", "one", "two"}  # "two words" may say the number as a word


def with_parts(name: str) -> Iterator[str]:
    """A template's name and those of all it includes and extends."""
    yield name
    parts = re.findall(r'{%\s*(?:include|extends)\s+"([^"]+)"', (ROOT / "templates" / name).read_text(encoding="utf-8"))
    for part in parts:
        if (ROOT / "templates" / part).exists():  # the others are allauth's
            yield from with_parts(part)


@cache
def templates() -> tuple[Path, ...]:
    pages = [f"{folder}/{name}.html" for folder, names in PAGES.items() for name in names]
    doors = [f"account/{path.name}" for path in sorted((ROOT / "templates/account").glob("*.html"))]
    names = dict.fromkeys(name for page in (*pages, *doors) for name in with_parts(page))
    return tuple(ROOT / "templates" / name for name in names)


@cache
def annotator_facing() -> Catalog:
    modules = [ROOT / folder / f"{name}.py" for folder, names in MODULES.items() for name in names]
    catalogue = catalogues.extracted(ROOT, [*templates(), *modules])
    ends = {name: (ROOT / name).read_text().partition(start)[0].count("\n") for name, start in LEADS_ONLY_FROM.items()}
    for message in list(catalogue):
        if message.locations and all(line > ends.get(name, line) for name, line in message.locations):
            catalogue.delete(message.id, message.context)
    return catalogue


def po(language: str) -> Path:
    return ROOT / "locale" / language / "LC_MESSAGES" / "django.po"


@cache
def catalogue(language: str) -> Catalog:
    return catalogues.read_catalogue(po(language))


def forms(text: Any) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def translated(language: str) -> Iterator[Message]:
    return (message for message in catalogue(language) if message.id and any(forms(message.string)))


def categories(language: str) -> list[str]:
    """The plural categories of CLDR that whole numbers have, in CLDR's order, which gettext's forms follow."""
    rule = Locale.parse(language).plural_form
    return [name for name in ("zero", "one", "two", "few", "many", "other") if name in rule.tags | {"other"}]


def test_it_is_known_what_an_annotator_sees() -> None:
    said = {text for message in annotator_facing() if message.id for text in forms(message.id)}
    assert {"Submit and next", "Draft saved", "I can't judge it", "Sign in", "Customer", "Give a score."} <= said


@pytest.mark.parametrize("language", LANGUAGES)
def test_everything_an_annotator_sees_is_translated(language: str) -> None:
    known = {(message.id, message.context) for message in translated(language) if all(forms(message.string))}
    assert [
        message.id for message in annotator_facing() if (message.id, message.context) not in known | {("", None)}
    ] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_placeholders_and_tags_are_kept(language: str) -> None:
    wrong = []
    for message in translated(language):
        asked = [set(PLACEHOLDER.findall(text)) for text in forms(message.id)]
        names = categories(language) if message.pluralizable else ["other"]
        for name, said in zip(names, forms(message.string), strict=True):
            kept = set(PLACEHOLDER.findall(said))
            if not (kept <= asked[-1] if name in FOR_ONE_NUMBER else kept == asked[-1]):
                wrong.append(said)
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_plural_forms_are_those_of_cldr(language: str) -> None:
    names, rule = categories(language), Locale.parse(language).plural_form
    choose = c2py(catalogue(language).plural_expr)
    assert catalogue(language).num_plurals == len(names)
    numbers = [*range(250), 1_000, 1_000_000, 1_000_001, 2_000_000]
    assert [names[choose(number)] for number in numbers] == [rule(number) for number in numbers]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_is_no_copy_of_the_english(language: str) -> None:
    copies = {
        (language, text)
        for message in translated(language)
        for text in forms(message.string)
        if text in forms(message.id)
    }
    assert copies - SAME_AS_IN_ENGLISH == set()


@pytest.mark.parametrize(("language", "scripts"), SCRIPTS.items())
def test_it_is_written_in_the_language_s_own_script(language: str, scripts: tuple[str, ...]) -> None:
    said = (text for message in translated(language) for text in forms(message.string))
    assert [text for text in said if not any(unicodedata.name(char, "").startswith(scripts) for char in text)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_compiled_catalogue_is_up_to_date(language: str) -> None:
    """If not: `make locale`."""
    assert po(language).with_suffix(".mo").read_bytes() == catalogues.compiled(catalogue(language))


class Unmarked(HTMLParser):
    """Collects the words that a template says itself, outside of any `{% translate %}`."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tag = tag
        spoken = ("aria-label", "title", "alt", "placeholder")
        self.words += [value for name, value in attrs if name in spoken and value and value.strip()]

    def handle_endtag(self, tag: str) -> None:
        self.tag = ""

    def handle_data(self, data: str) -> None:
        if self.tag not in ("kbd", "style", "script") and re.search(r"[^\W\d_]{2}", data):
            self.words.append(data.strip())


def without_tags(path: Path) -> str:
    """A template with its tags, variables, comments, class names and translated blocks taken out."""
    text, inside = "", ""
    for token in Lexer(path.read_text(encoding="utf-8")).tokenize():
        name, *named = token.contents.split() if token.token_type == TokenType.BLOCK else [""]
        if name in ("blocktranslate", "comment") or (name == "block" and named[0].endswith("_class")):
            inside = name
        elif name == f"end{inside}":
            inside = ""
        elif token.token_type == TokenType.TEXT and not inside:
            text += token.contents
    return text


def test_a_template_says_nothing_unmarked() -> None:
    unmarked = []
    for path in templates():
        page = Unmarked()
        page.feed(without_tags(path))
        unmarked += [(path.name, words) for words in page.words if words not in ("Panelbench", "· Panelbench")]
    assert unmarked == []


@pytest.mark.django_db
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_speaks_it_and_says_that_nobody_reviewed_it(client: Client, language: str) -> None:
    """Remove the language from UNREVIEWED_LANGUAGES, and from here, once a native speaker has read it through."""
    page = client.get("/account/login/", headers={"accept-language": language}).content.decode()
    note = catalogue(language).get("Draft translation: no native speaker has reviewed it yet.")
    assert note.string in page
    assert catalogue(language).get("Sign in").string in page
    assert f'lang="{language}" dir="{"rtl" if language == "ar" else "ltr"}"' in page


@pytest.mark.django_db
def test_english_needs_no_review(client: Client) -> None:
    assert "menu-note" not in client.get("/account/login/", headers={"accept-language": "en"}).content.decode()
