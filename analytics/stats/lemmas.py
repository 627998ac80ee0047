"""Lemmas and stop words by language; the lemmatiser used is always named (METHODS 6).

The default is simplemma's dictionaries. EstNLTK (Estonian, as in S0) and Stanza are used on request where they are
installed; a language none of them knows keeps its word forms, and the name says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from analytics.stats.stopwords import STOP_WORDS

Lemmas = Callable[[list[str]], list[str]]
ENGINES = ("simplemma", "estnltk", "stanza", "none")


class MissingEngineError(ValueError):
    """An optional lemmatiser was asked for and isn't installed, or doesn't know the language."""


def lemmatiser(language: str | None, engine: str = "simplemma") -> tuple[str, Lemmas]:
    """The name of the lemmatiser used for a language (BCP-47) and the function from words to lemmas."""
    base = (language or "").split("-")[0].lower()
    if engine == "estnltk":
        return _estnltk(base)
    if engine == "stanza":
        return _stanza(base)
    if engine == "simplemma" and (known := _simplemma_language(base)):
        return "simplemma", lambda words: [_simplemma(word, known) for word in words]
    return "word forms", lambda words: words


def without_stop_words(lemmas: list[str], language: str | None) -> list[str]:
    """The lemmas less the language's stop words; all of them where it has no list (``has_stop_words``)."""
    stop = _stop_lemmas((language or "").split("-")[0].lower())
    return [lemma for lemma in lemmas if lemma not in stop]


def has_stop_words(language: str | None) -> bool:
    """Whether there is a list of stop words for a language."""
    return (language or "").split("-")[0].lower() in STOP_WORDS


@cache
def _stop_lemmas(base: str) -> frozenset[str]:
    """Stop words as written and as lemmas, since they are looked up after lemmatising."""
    given = STOP_WORDS.get(base, "").split()
    return frozenset(given) | frozenset(lemmatiser(base)[1](list(given)))


@cache
def _simplemma_language(base: str) -> str | None:
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    code = {"no": "nb", "sr": "hbs", "hr": "hbs", "bs": "hbs", "fil": "tl"}.get(base, base)
    return code if code in SUPPORTED_LANGUAGES else None


@lru_cache(maxsize=200_000)
def _simplemma(word: str, language: str) -> str:
    from simplemma import lemmatize

    return str(lemmatize(word, lang=language)).lower()


def _estnltk(base: str) -> tuple[str, Lemmas]:
    if base != "et":
        raise MissingEngineError("EstNLTK knows Estonian only")
    _require("estnltk")
    analyze = import_module("estnltk.vabamorf.morf").analyze

    def lemmas(words: list[str]) -> list[str]:
        return [
            entry["analysis"][0]["lemma"].lower() if entry["analysis"] else entry["text"] for entry in analyze(words)
        ]

    return "estnltk", lemmas


def _stanza(base: str) -> tuple[str, Lemmas]:
    _require("stanza")
    pipeline = _stanza_pipeline(base)

    def lemmas(words: list[str]) -> list[str]:
        document = pipeline([words] if words else [])
        return [(word.lemma or word.text).lower() for sentence in document.sentences for word in sentence.words]

    return "stanza", lemmas


@cache
def _stanza_pipeline(base: str) -> Any:
    stanza = import_module("stanza")
    return stanza.Pipeline(base, processors="tokenize,pos,lemma", tokenize_pretokenized=True, download_method=None)


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise MissingEngineError(f"the lemmatiser {package} is not installed: pip install 'panelbench[{package}]'")
