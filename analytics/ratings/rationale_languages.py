"""Whether a rationale is written in another language than it should be.

Two checks: the script of most letters, and English in the place of another language in Latin script (S2 App. B). Other
languages of one script are not told apart: short rationales do not say enough.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import cache

from accounts import languages

_FEWEST_LETTERS = 10
FEWEST_WORDS = 6
_ENGLISH_SHARE, _OWN_SHARE = 0.8, 0.5
_SCRIPTS = {
    "Latn": ("LATIN",),
    "Cyrl": ("CYRILLIC",),
    "Grek": ("GREEK",),
    "Arab": ("ARABIC",),
    "Aran": ("ARABIC",),
    "Hebr": ("HEBREW",),
    "Deva": ("DEVANAGARI",),
    "Beng": ("BENGALI",),
    "Taml": ("TAMIL",),
    "Telu": ("TELUGU",),
    "Gujr": ("GUJARATI",),
    "Knda": ("KANNADA",),
    "Mlym": ("MALAYALAM",),
    "Guru": ("GURMUKHI",),
    "Thai": ("THAI",),
    "Laoo": ("LAO",),
    "Mymr": ("MYANMAR",),
    "Khmr": ("KHMER",),
    "Geor": ("GEORGIAN",),
    "Armn": ("ARMENIAN",),
    "Ethi": ("ETHIOPIC",),
    "Hans": ("CJK",),
    "Hant": ("CJK",),
    "Jpan": ("CJK", "HIRAGANA", "KATAKANA"),
    "Kore": ("HANGUL", "CJK"),
}
"""By script, how the Unicode names of its letters begin. A language in another script is not checked."""
_ALSO_IN = {
    **dict.fromkeys(("sr", "bs", "kk", "tt", "uz", "az", "tk"), ("LATIN", "CYRILLIC")),
    **dict.fromkeys(("ha", "ms", "ku"), ("LATIN", "ARABIC")),
    **dict.fromkeys(("ky", "tg"), ("CYRILLIC", "ARABIC")),
    **dict.fromkeys(("sd", "ks"), ("ARABIC", "DEVANAGARI")),
    "pa": ("GURMUKHI", "ARABIC"),
}
"""Languages that people write in either of two scripts, unless the tag names one."""
_WORD = re.compile(r"[^\W\d_]+")


def is_in_another_language(text: str, expected: Collection[str]) -> bool:
    """Whether a rationale is written in none of the `expected` languages, as far as this can be told.

    Fewer than ten letters say nothing. Under half of the letters in an expected script: another language. Six words or
    more that are English, where English is not expected and the words are not known in an expected language: English.
    """
    letters = [character for character in text if character.isalpha()]
    known = [_letters_of(tag) for tag in expected]
    scripts = {name for names in known for name in names}
    if len(letters) < _FEWEST_LETTERS or not all(known):
        return False
    own = sum(unicodedata.name(letter, "").partition(" ")[0] in scripts for letter in letters)
    if 2 * own < len(letters):
        return True
    return "LATIN" in scripts and _is_english_instead(text, {tag.partition("-")[0] for tag in expected})


def _letters_of(tag: str) -> tuple[str, ...]:
    """How the names of its letters begin, in every script that it is written in; none where it is not checked."""
    language, _hyphen, more = tag.partition("-")
    names_script = any(len(part) == 4 and part.isalpha() for part in more.split("-"))
    names = _SCRIPTS.get(languages.script(tag), ())
    return names if names_script or not names else (*names, *_ALSO_IN.get(language, ()))


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
