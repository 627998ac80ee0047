"""The words of scripts that are written without spaces. Pure.

Japanese, Chinese and Thai are cut by the models of BudouX (Apache-2.0, inside its wheel, under 100 KB each). Lao, Khmer
and Burmese have none there: two syllables, by the rules of their spelling, stand for a word. All of it is approximate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module, resources
from itertools import pairwise
from typing import Final

_KANA: Final = re.compile("[\u3041-\u30ff\u31f0-\u31ff]")
_THAI: Final = re.compile("[\u0e01-\u0e5b]")
_LAO: Final = re.compile("[\u0e81-\u0edf]")
_KHMER: Final = re.compile("[\u1780-\u17dd]")
_BURMESE: Final = re.compile("[\u1000-\u109f]")
_TRADITIONAL: Final = frozenset({"Hant", "TW", "HK", "MO"})
# Where a syllable begins: before a vowel that is written first, or a consonant that neither follows one nor ends the
# syllable before it.
_STARTS_LAO: Final = re.compile(
    "(?<![\u0ec0-\u0ec4])(?=[\u0e81-\u0eae\u0edc\u0edd][\u0ebc\u0eb0-\u0ebb\u0ebd\u0ec8-\u0ecd])|(?=[\u0ec0-\u0ec4])"
)
_STARTS_KHMER: Final = re.compile(
    "(?<!\u17d2)(?=[\u1780-\u17b3](?:\u17d2[\u1780-\u17a2])*[\u17b4-\u17c8])|(?<!\u17d2)(?=[\u1780-\u17b3]\u17d2)"
)
_STARTS_BURMESE: Final = re.compile("(?<!\u1039)(?=[\u1000-\u102a\u103f](?!\u103a|\u1039))")
SYLLABLES_OF_A_WORD: Final = 2


def words_without_spaces(text: str, language: str) -> list[str]:
    """A run of one such script, without spaces and marks of punctuation, cut into words; joined they are the text."""
    if _KANA.search(text) or language.split("-", maxsplit=1)[0] == "ja":
        return _parser("ja_word")(text)
    for script, starts in ((_LAO, _STARTS_LAO), (_KHMER, _STARTS_KHMER), (_BURMESE, _STARTS_BURMESE)):
        if script.search(text):
            places = [start.start() for start in starts.finditer(text) if 0 < start.start() < len(text)]
            ends = [0, *places[SYLLABLES_OF_A_WORD - 1 :: SYLLABLES_OF_A_WORD], len(text)]
            return [text[first:last] for first, last in pairwise(ends) if first < last]
    if _THAI.search(text):
        return _parser("th")(text)
    return _parser("zh-hant" if _TRADITIONAL & {*language.split("-")} else "zh-hans")(text)


@cache
def _parser(model: str) -> Callable[[str], list[str]]:
    weights = json.loads(resources.files("budoux").joinpath("models", f"{model}.json").read_text(encoding="utf-8"))
    parser = import_module("budoux").Parser(weights)
    return lambda text: [str(word) for word in parser.parse(text)]
