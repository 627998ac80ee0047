"""The interface's languages: what an annotator sees is said in each of them, and said as the language asks."""

from __future__ import annotations

import os
import pickle
import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from gettext import c2py
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from babel import Locale
from babel.messages.catalog import Catalog, Message
from django.conf import settings
from django.contrib.humanize.templatetags.humanize import intcomma
from django.template.base import Lexer, TokenType
from django.template.defaultfilters import floatformat
from django.test import Client
from django.utils import translation
from django.utils.formats import date_format
from django.utils.translation import to_locale

from annotation.checkup.written_languages import OtherLanguage, OtherScript
from panelbench.management.commands import catalogues
from tests import access, databases, reached
from tests.services import FOLDER

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = [code for code, _name in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
# Words that are the same in English and in the language.
SAME_AS_IN_ENGLISH = {
    "cs": {"Prompt", "Text", "text"},
    "de": {
        "Panels",
        *("Agent", "Name", "Panel", "Passage A", "Passage B", "Prompt", "Prompts", "System", "Text", "Text 1"),
        "Text 2",
    },
    "es": {
        *(
            "%(into)s + %(out)s tokens",
            "%(tokens)s tokens",
            "%d panel",
            "Error",
            "General",
            "N/A",
            "Prompt",
            "Tokens",
            "tokens",
        ),
        *("Total", "Webhook", "Webhooks", "bootstrap", "bootstrap BCa", "byte %(number)s", "bytes", "error"),
        *("infit %s", "jackknife", "normal", "ordinal", "panel", "webhook"),
    },
    "et": {
        *(
            "%(score)s, epsilon %(epsilon)s",
            "Audit",
            "Filter",
            "Import",
            "Link",
            "Server",
            "Variant",
            "bootstrap",
            "import",
        ),
        "jackknife",
    },
    "fr": {
        *(
            "Agent",
            "Assistant",
            "Dialogue",
            "Document",
            "Invitation",
            "Pages",
            "Passage A",
            "Passage B",
            "Panels",
            "Passages",
        ),
        *("Prompt", "Prompts", "Question", "Sections", "Source", "Version %(number)s, %(at)s", "Versions"),
    },
    "hu": {"Prompt"},
    "it": {"Password", "Prompt"},
    "pt-br": {"Prompt", "Prompts"},
}
PLACEHOLDER = re.compile(r"%%|%(?:\(\w+\))?(?:\.\d+(?!s))?[sdfg]|\{\w+\}|</?\w+[^>]*>")
NOT_SHOWN = "%.0s"  # takes a value and writes nothing
EVERYWHERE = {
    "CSV",
    "Croissant",
    "Dawid-Skene",
    "Hugging Face",
    "Label Studio",
    "MAE",
    "Pareto",
    "RMSE",
    "Top p",
    "USD",
    "UTF-8",
    "YAML",
}
PAIRS = re.compile("%%")
# The letters of a language, as Unicode names them; of the others, Latin ones.
SCRIPTS = {
    "ar": ("ARABIC",),
    "hi": ("DEVANAGARI",),
    "ja": ("HIRAGANA", "KATAKANA", "CJK UNIFIED"),
    "ru": ("CYRILLIC",),
    "zh-hans": ("CJK UNIFIED",),
}
SYMBOLS = ("GREEK", "FEMININE ORDINAL", "MASCULINE ORDINAL", "IDEOGRAPHIC ITERATION")  # of statistics; 1.ª
# What stays in Latin letters in every language: names, keys, formats, examples and marks of statistics.
IN_LATIN_LETTERS = set(
    re.findall(
        r"\w+",
        """
        MEDAL POLLUX Croissant compared full none partial pairs all
        Panelbench panelbench up API IP JavaScript LLM QR USD UTC Ctrl Enter Esc S Shift A B a z es et BR Hant MX pt
        zh AC AI AMOUNT BCa Benjamini Bernstein Bonferroni Bradley Brennan Brown C CELL CELLS COLUMN COLUMNS CR CRLF
        CSV Cohen Conger DD Dawid EM EMAIL Ens Excel F FFFD Face Fisher Fleiss Gladen Gwet HC HTML Hajek Henderson
        Holm Hub Hugging ICC IMPORT Inspect JSON JSONL KEY Kendall Krippendorff LF LIMIT LOG LONGEST LaTeX Label Lang
        Lines MAE MATTR MB MM MOST Markdown McNemar Min N NA NAME NEAR NFC NUL OLS OpenAI PANELBENCH PDF PPI PROVIDER
        PROVIDERS Pango Parquet Pearson Prediger Python RMSE Rasch Reiczigel Rogan SD SHA SQLite SVG Skene Spearman
        Standard Student Studio TOST TSV Terry Top U UNPACKED UPLOAD URL UTF Unicode VALUE Webhooks Welch Wilson XLSX
        XML YAML YYYY Yekutieli Yes ZIP aligned allow alpha anchor ar assistant attributes b base batches better blind
        breaks budget bzip cap class column comma completion control customer de decimal deflate detail direction
        disagreement docs dump e end erase error eval exam exp f fi field files fluency format found g gap generator
        goal greedy group gz gzip header higher https id ignore imports inclusion inspect install is items json jsonl
        judge judges k kappa label language languages le line log lower macro max md mean meant median min minimum
        mode model n na name never null off on only own p parquet pdf per pip pivot points positional prob provider
        providers pyarrow quoting r random records requirements role rubric s score seed service shared sheet single
        speaker
        start study t tab tar task tau temperature text texts tokens training true turn txt type user utf v value
        values verdict windows x xls xlsx xz zip zstd
        """,
    )
)
FOR_ONE_NUMBER = {"zero", "one", "two"}  # "two words" may say the number as a word


@cache
def templates() -> tuple[Path, ...]:
    return tuple(catalogues.annotators_templates(ROOT))


def annotator_facing() -> Catalog:
    return catalogues.annotators_sentences(ROOT)


def po(language: str) -> Path:
    return catalogues.catalogue_path(ROOT, language)


@cache
def extracted_catalogue() -> Any:
    """Every sentence that the interface marks for translation. The first process of a run keeps them for all others."""
    kept = Path(os.environ[FOLDER]) / "extracted.pickle"
    with databases.alone_in_run("extracted.lock") as is_first:
        if is_first:
            kept.write_bytes(pickle.dumps(catalogues.extracted(ROOT, catalogues.sources(ROOT))))
    return pickle.loads(kept.read_bytes())


@cache
def catalogue(language: str) -> Catalog:
    return catalogues.read_catalogue(po(language))


def forms(text: Any) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def translated(language: str) -> Iterator[Message]:
    return (message for message in catalogue(language) if message.id and any(forms(message.string)))


def categories(language: str) -> list[str]:
    """The plural categories of CLDR that whole numbers have, in CLDR's order, which gettext's forms follow."""
    rule = Locale.parse(to_locale(language)).plural_form
    return [name for name in ("zero", "one", "two", "few", "many", "other") if name in rule.tags | {"other"}]


def test_it_is_known_what_an_annotator_sees() -> None:
    said = {text for message in annotator_facing() if message.id for text in forms(message.id)}
    assert {"Submit and next", "Draft saved", "I can't judge it", "Sign in", "Customer", "Give a score."} <= said
    assert {check.says for check in (OtherScript, OtherLanguage)} <= said, "a writer reads what was found in a prompt"


# What a view for annotators also calls, and only leads and operators read.
LEADS_READ = {("accounts.jobs", "cancel"), ("accounts.removal", "_hand_over")}
LEADS_READ |= {("annotation.qualification.controls", "_mail_leads"), ("annotation.readers.evidence", "as_spans")}
LEADS_READ |= {("annotation.readers.problems", "excerpt")}


def annotators_functions() -> dict[reached.Place, Any]:
    """Everything of ours that the pages call that an annotator can reach, by the matrix of `tests.access`."""
    open_to = {route.name for route in access.routes() if route.allowed & {"maarika", "layla"}}
    pages = {name: view for name, view in access.named_views() if name in open_to and not name.startswith("api_")}
    found: dict[reached.Place, Any] = {}
    for view in pages.values():
        found |= reached.reached_functions((view.__module__, view.__name__))
    return {place: function for place, function in found.items() if place not in LEADS_READ}


def test_the_pages_and_sentences_of_every_view_for_annotators_are_among_theirs() -> None:
    """If not: name the template in PAGES, or the module or function, in `catalogues`."""
    functions = annotators_functions()
    assert {("annotation.views.prompts", "write_prompt"), ("annotation.allocation", "criteria_of")} <= set(functions)
    shown = {template.relative_to(ROOT / "templates").as_posix() for template in templates()}
    pages = {path.relative_to(ROOT / "templates").as_posix() for path in (ROOT / "templates").rglob("*.html")}
    marked = {text for message in extracted_catalogue() if message.id for text in forms(message.id)}
    theirs = {text for message in annotator_facing() if message.id for text in forms(message.id)}
    said_in = {
        place: (reached.texts_in(function) & pages) - shown
        | (reached.arguments_of(catalogues.KEYWORDS, function) & marked) - theirs
        for place, function in functions.items()
    }
    assert {place: lacking for place, lacking in said_in.items() if lacking} == {}


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
def test_a_form_takes_its_values_without_names(language: str) -> None:
    """Python refuses a value for which a form has no place; `%.0s` takes it and shows nothing."""
    wrong = []
    for message in translated(language):
        for text in forms(message.string):
            if positional := re.findall(r"(?<!%)%[sd]", PAIRS.sub("", forms(message.id)[-1])):
                found = re.findall(r"(?<!%)%(?:\.0)?[sd]", PAIRS.sub("", text))
                wrong += [text] if len(found) != len(positional) else []
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_plural_forms_are_those_of_cldr(language: str) -> None:
    names, rule = categories(language), Locale.parse(to_locale(language)).plural_form
    choose = c2py(catalogue(language).plural_expr)
    assert catalogue(language).num_plurals == len(names)
    numbers = [*range(250), 1_000, 1_000_000, 1_000_001, 2_000_000]
    assert [names[choose(number)] for number in numbers] == [rule(number) for number in numbers]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_is_no_copy_of_the_english(language: str) -> None:
    copies = {text for message in translated(language) for text in forms(message.string) if text in forms(message.id)}
    words = {text for text in copies if re.search(r"[^\W\d_]{3}", PLACEHOLDER.sub("", text))}
    assert words - EVERYWHERE - SAME_AS_IN_ENGLISH.get(language, set()) == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_is_written_in_the_language_s_own_script(language: str) -> None:
    texts = [
        PLACEHOLDER.sub(" ", text.replace(NOT_SHOWN, ""))
        for message in translated(language)
        for text in forms(message.string)
    ]
    assert [text for text in texts if is_foreign(text, SCRIPTS.get(language, ("LATIN",)))] == []


def is_foreign(text: str, scripts: tuple[str, ...]) -> bool:
    """Whether it has letters of another script that are no name's."""
    if "LATIN" not in scripts:
        text = re.sub(r"[A-Za-z]+", lambda word: "" if word[0] in IN_LATIN_LETTERS else word[0], text)
    letters = [char for char in text if unicodedata.category(char) in ("Lo", "Lu", "Ll")]
    return not all(is_of(char, (*scripts, *SYMBOLS)) for char in letters)


def is_of(char: str, scripts: tuple[str, ...]) -> bool:
    return unicodedata.name(char, "").startswith(scripts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_packages_have_not_translated_is_translated_here(language: str) -> None:
    """Sign-in, passwords, two-factor authentication, their mails, and the errors of forms."""
    known = {(str(forms(message.id)[0]), message.context) for message in translated(language)}
    lacking = catalogues.lacking_in_packages(ROOT, language)
    assert [
        message.id for message in lacking if message.id and (forms(message.id)[0], message.context) not in known
    ] == []


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


NAMES_ON_PAGES = re.compile(
    r"panelbench allow_founding|Panelbench|CSV|JSON|Markdown|SHA-256|UTC|tau-b|AC|NA|complete"
    r"|USD|\.svg|\.tex|OPENAI_API_KEY=.*|PANELBENCH_PROVIDERS=.*",
    re.DOTALL,
)


def test_a_template_says_nothing_unmarked() -> None:
    unmarked = []
    for path in sorted((ROOT / "templates").rglob("*.html")):
        page = Unmarked()
        page.feed(without_tags(path))
        left = (NAMES_ON_PAGES.sub("", words) for words in page.words)
        unmarked += [(path.name, words) for words in left if re.search(r"[^\W\d_]{2}", words)]
    assert unmarked == []


def said(language: str, english: str) -> str:
    message = catalogue(language).get(english)
    assert message is not None
    return str(message.string)


@pytest.mark.django_db
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_speaks_it_and_says_until_it_is_reviewed(client: Client, settings: Any, language: str) -> None:
    page = client.get("/account/login/", headers={"accept-language": language}).content.decode()
    note = said(language, "Draft translation: no native speaker has reviewed it yet.")
    assert (note in page) is (language not in settings.REVIEWED_LANGUAGES)
    assert said(language, "Sign in") in page
    assert f'lang="{language}" dir="{"rtl" if language == "ar" else "ltr"}"' in page
    settings.REVIEWED_LANGUAGES = ["en", language]
    assert note not in client.get("/account/login/", headers={"accept-language": language}).content.decode()


@pytest.mark.django_db
def test_english_needs_no_review(client: Client) -> None:
    assert "menu-note" not in client.get("/account/login/", headers={"accept-language": "en"}).content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("asked", "given"), [("pt-PT", "pt-br"), ("zh-CN", "zh-hans"), ("de-AT,de;q=0.9", "de"), ("sw", "en")]
)
def test_a_browser_s_variety_gets_the_nearest_language(client: Client, asked: str, given: str) -> None:
    page = client.get("/account/login/", headers={"accept-language": asked}).content.decode()
    assert f'<html lang="{given}"' in page


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_date_with_its_time_is_written_as_in_the_language(language: str) -> None:
    with translation.override(language):
        written = date_format(datetime(2026, 11, 24, 15, 30, tzinfo=UTC), "DATETIME_FORMAT")
    assert re.search(r"15[:.]30", written), written
    assert not re.search("[AaPp]\\.?[Mm]|Nov(ember)? 24|\u200f", written), written


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_numbers_are_written_alike_in_every_language(language: str) -> None:
    """Decision 0040: a page never has 0,71 beside a figure of 0.71."""
    with translation.override(language):
        assert (floatformat(0.714, 2), floatformat(1234.5, "1g"), intcomma(1234567)) == ("0.71", "1,234.5", "1,234,567")


def test_a_sentence_marked_inside_an_f_string_is_found(tmp_path: Path) -> None:
    module = tmp_path / "marked.py"
    module.write_text("text = f\"<b>{escape(_('How computed'))}</b>\"\n", encoding="utf-8")
    assert "How computed" in catalogues.extracted(tmp_path, [module])
