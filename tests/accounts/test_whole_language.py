"""Every page of leads says everything in the reader's language: in a made-up catalogue no letter of English is left."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from django.utils import translation

from accounts.models import User
from accounts.sentences import stored_sentence
from analytics.figure_words import translated_message
from analytics.stats.core.messages import Message, approximate, joined
from annotation.readers import Words
from annotation.views.import_words import shown_words
from bench import structure
from panelbench.management.commands import catalogues
from tests.access import answers_to_every_method
from tests.cast import Cast
from tests.test_access import ROUTES, Furnished, address, cast, furnished, parts  # noqa: F401 (fixtures)
from tests.test_locale import PLACEHOLDER, ROOT, extracted_catalogue

LANGUAGE = "ja"
"""Its catalogue is replaced by one in which every letter of English is an ア."""
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
UNSAID = {"script", "style", "code", "kbd", "bdi", "pre", "samp", "textarea", "svg"}
ENGLISH = re.compile("[A-Za-z]{2}")
NAMES = re.compile(
    r"Panelbench|MEDAL|POLLUX"
    r"|Aino|Boris|Maarika|Layla|Other|Kassa|Round 1|Fluency|Coherence|Judge Nobody May See|Pakk 1"
    r"|Crowd|Closer|Theirs|reviewers|Part|Dialogues|Few|Plan|[Qq]uality( of generated text)?|fluency|coherence"
    r"|generation-(quality|tasks)"
    r"|gone|Styles|Estonian|English|eesti|what another annotator wrote|generator-nobody-may-see|tuning|test|complete"
    r"|CSV|JSONL?|YAML|XML|XLSX|PARQUET|ZIP|HTML|PDF|SHA-256 \w+|GB|KB|MB|UTC|[vs]\.csv|\b(et|ar|en)\b|\bse\b"
    r"|item|judge|criterion|score|purpose|lowest|highest|explanation|question|\bid\b|language|generator|scenario|ratings"
    r"|kassa|Next|Markdown|d\.jsonl|at \d|attribute-nobody-may-see|Generation tasks by style|https://|<br>|<span"
    r"|\b[A-Z]{2}\d\b|Pakk \d|Story|fiction|easy|Pikemalt|too strict|\.(svg|tex)|email, name, panel, languages"
)
"""Names of what `access.furnish` makes, of formats, of columns and tables in files."""
SPOKEN = ("title", "aria-label", "placeholder", "alt", "data-confirm")


class Said(HTMLParser):
    """What a page says: its texts and spoken attributes, without code, names and what is in another language."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        is_silent = tag in UNSAID or given.get("lang") not in (None, LANGUAGE) or given.get("translate") == "no"
        if not (is_silent or self._is_silent):
            self.texts += [value for name in SPOKEN if (value := given.get(name))]
        if tag not in VOID:
            self._open.append((tag, is_silent))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self._is_silent:
            self.texts.append(data)

    @property
    def _is_silent(self) -> bool:
        return any(is_silent for _tag, is_silent in self._open)


def in_kana(sentence: str) -> str:
    pieces = re.split(f"({PLACEHOLDER.pattern}|&\\w+;)", sentence)
    return "".join(piece if place % 2 else re.sub("[A-Za-z]", "ア", piece) for place, piece in enumerate(pieces))


def folder_of(folder: Path, sentences: Catalog) -> Path:
    """Writes a catalogue of these sentences into the folder."""
    catalogue = Catalog(locale=LANGUAGE, fuzzy=False)
    for message in sentences:
        if message.id:
            forms = (message.id,) if isinstance(message.id, str) else message.id
            said = in_kana(forms[-1])
            catalogue.add(message.id, said if isinstance(message.id, str) else (said,), context=message.context)
    path = folder / LANGUAGE / "LC_MESSAGES" / "django.mo"
    path.parent.mkdir(parents=True)
    path.write_bytes(catalogues.compiled(catalogue))
    return folder


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a catalogue with every sentence."""
    return folder_of(tmp_path_factory.mktemp("locale"), extracted_catalogue())


@pytest.fixture
def in_that_language(made_up: Path, settings: Any, cast: Cast) -> Cast:  # noqa: F811
    settings.LOCALE_PATHS = [str(made_up)]
    settings.COMPLETE_LANGUAGES = ["en", LANGUAGE]
    settings.PAGE_CACHE_MB = 0
    User.objects.filter(pk=cast.aino.pk).update(ui_language=LANGUAGE)
    return cast


def test_no_page_of_leads_says_anything_in_english(in_that_language: Cast, parts: dict[str, Any]) -> None:  # noqa: F811
    client, left, opened = in_that_language.client("aino"), set(), 0
    for route in ROUTES:
        if not route.pattern.startswith("p/<slug:project>/") or route.name in ("taxonomy", "duties_by_rules"):
            continue
        answer = answers_to_every_method(client, there := address(route, parts), ["get"])[0]
        if answer.status != 200 or "<html" not in answer.text[:100]:
            continue
        assert f'<html lang="{LANGUAGE}"' in answer.text, there
        opened += 1
        page = Said()
        page.feed(answer.text)
        left |= {(route.name, text) for text in page.texts if ENGLISH.search(NAMES.sub("", text))}
    assert opened >= 90
    assert sorted(left) == []


WRITERS_PAGES = ("desk", "desk_writing", "desk_writing_text", "prompt_collections", "prompt_collection", "prompt")


def test_no_page_of_people_who_write_says_anything_in_english(
    cast: Cast,  # noqa: F811
    parts: dict[str, Any],  # noqa: F811
    settings: Any,
    tmp_path: Path,
) -> None:
    """Their language has only annotators' sentences, as ten catalogues have; the same pages of leads are English."""
    settings.LOCALE_PATHS = [str(folder_of(tmp_path, catalogues.annotators_sentences(ROOT)))]
    settings.COMPLETE_LANGUAGES = ["en"]
    User.objects.filter(pk__in=(cast.aino.pk, cast.maarika.pk)).update(ui_language=LANGUAGE)
    left: set[tuple[str, str]] = set()
    routes = {route.name: route for route in ROUTES}
    for name in (*WRITERS_PAGES, "prompt_write"):
        page = cast.client("maarika").get(there := address(routes[name], parts), follow=True).content.decode()
        assert f'<html lang="{LANGUAGE}"' in page, there
        heard = Said()
        heard.feed(page)
        left |= {(name, text) for text in heard.texts if ENGLISH.search(NAMES.sub("", text))}
        if name in ("prompt_collections", "prompt_collection", "prompt"):
            assert '<html lang="en"' in cast.client("aino").get(there).content.decode(), there
    assert sorted(left) == []


# --- what is composed in English and translated on the page -----------------------------------------------------------
def test_a_sentence_is_found_with_its_values_and_its_parts(made_up: Path, settings: Any) -> None:
    settings.LOCALE_PATHS = [str(made_up)]
    few = Message("%(items)s items of %(clusters)s clusters off the commonest point", items=23, clusters=10)
    method = approximate(Message("Wilson t, %(method)s", method=Message("jackknife")), few)
    assert method == "Wilson t, jackknife (approximate: 23 items of 10 clusters off the commonest point)"
    assert translated_message(method) == method
    with translation.override(LANGUAGE):
        assert translated_message(method) == in_kana(method)
        both = joined(
            (
                Message("mean over %(number)s pairs", number=3),
                Message("Holm p %(p)s in a family of %(number)s", p=0.01, number=4),
            )
        )
        assert both == "mean over 3 pairs; Holm p 0.01 in a family of 4"
        assert translated_message(both) == in_kana(both)
        assert translated_message("of no list") == "of no list"
        assert (
            shown_words(
                Words("did you mean %(name)s? %(rest)s", name="“Fluency”", rest=Words("one of %(names)s", names="a, b"))
            )
            == "アアア アアア アアアア “Fluency”? アアア アア a, b"
        )
        assert (
            stored_sentence("The receiver answered with status 404.")
            == "アアア アアアアアアアア アアアアアアアア アアアア アアアアアア 404."
        )


SAID_BY = ("reason", "note", "method", "interval_reason")
OF_PARTS = {"Wilson, jackknife", "Dawid-Skene EM", ", cut at the ends of the scale"}
"""Parts of sentences, and names."""


def test_what_statistics_say_of_figures_is_a_message_of_the_catalogues() -> None:
    paths = [path for path in (ROOT / "analytics/stats").rglob("*.py") if "cli" not in path.parts]
    said = {text for path in paths for text in _said(path)}
    listed = {message.id for message in catalogues.extracted(ROOT, paths)}
    assert len(listed) > 300
    assert [text for text in sorted(said - OF_PARTS) if re.search("[a-z] [a-z]", text)] == []
    assert [text for text in sorted(said) if "(approximate" in text or "; " in text] == []


def _said(path: Path) -> Iterator[str]:
    """The whole texts that a module gives to a figure, or keeps in a constant."""
    for node in ast.walk(structure.parsed_file(path)[1]):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = [word.value for word in node.keywords if word.arg in SAID_BY]
            given += node.args if name in ("approximate", "Doubt") else []
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            given = [node.value] if any(name in SAID_BY for name in names) else []
        else:
            continue
        yield from (text.value for text in given if isinstance(text, ast.Constant) and isinstance(text.value, str))
