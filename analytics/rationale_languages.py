"""Whether a rationale is in a language that its criterion was shown in, or in that of the item (S2 App. B).

Two checks: the script of most letters, and English in the place of another language in Latin script. Other languages
of one script are not told apart: short rationales do not say enough.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

import regex

from accounts import languages

FEWEST_LETTERS = 10
FEWEST_WORDS = 6
_ENGLISH_SHARE, _OWN_SHARE = 0.8, 0.5
_SCRIPTS = {
    "Hans": ("Han",),
    "Hant": ("Han",),
    "Jpan": ("Han", "Hiragana", "Katakana"),
    "Kore": ("Hangul", "Han"),
    "Aran": ("Arabic",),
}
_LETTER = regex.compile(r"\p{L}")
_WORD = regex.compile(r"\p{L}+")


def is_in_another_language(text: str, expected: Collection[str]) -> bool:
    """Whether a rationale is written in none of the `expected` languages, as far as this can be told.

    Fewer than ten letters say nothing. Under half of the letters in an expected script: another language. Six words or
    more that are English, where English is not expected and the words are not known in an expected language: English.
    """
    letters = _LETTER.findall(text)
    scripts = {name for tag in expected for name in _scripts_of(tag)}
    if len(letters) < FEWEST_LETTERS or not scripts:
        return False
    if 2 * len(_in(frozenset(scripts)).findall(text)) < len(letters):
        return True
    return "Latn" in scripts and _is_english_instead(text, {tag.partition("-")[0] for tag in expected})


def _is_english_instead(text: str, expected: Collection[str]) -> bool:
    from simplemma import in_target_language  # its dictionaries are read at the first call

    known = [tag for tag in sorted(expected) if tag in _with_dictionary()]
    if "en" in expected or len(known) < len(expected) or len(_WORD.findall(text)) < FEWEST_WORDS:
        return False
    own = max(float(in_target_language(text, lang=tag)) for tag in known)
    return float(in_target_language(text, lang="en")) >= _ENGLISH_SHARE and own < _OWN_SHARE


@cache
def _with_dictionary() -> frozenset[str]:
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    return frozenset(SUPPORTED_LANGUAGES)


def _scripts_of(tag: str) -> tuple[str, ...]:
    """The Unicode names of the scripts of a language; none for one that nobody knows the script of."""
    code = languages.script(tag)
    return _SCRIPTS.get(code, (code,) if code else ())


@cache
def _in(scripts: frozenset[str]) -> Any:
    return regex.compile("|".join(rf"\p{{Script={name}}}" for name in sorted(scripts)))
