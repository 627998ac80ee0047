"""Words and sentences of any script (METHODS 6).

Words are runs of letters, marks and digits, so that Devanagari vowel signs and Arabic tashkil stay in their word.
Scripts written without spaces (Han, kana, Thai, Lao, Khmer, Burmese) are cut by the optional ``budoux`` package where
it is installed and knows the language, else into characters with their marks. ``tokeniser`` says which was used.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

Words = Callable[[str], list[str]]

_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # Han iteration and zero
    (0x3041, 0x30FF),  # kana
    (0x31F0, 0x31FF),  # small katakana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3134F),
)
_BUDOUX = {
    "ja": "japanese",
    "th": "thai",
    "zh": "simplified_chinese",
    "zh-Hant": "traditional_chinese",
    "zh-HK": "traditional_chinese",
    "zh-TW": "traditional_chinese",
}
_SENTENCE_ENDS = re.compile(r"[.!?…。！？｡।॥؟۔።]+[\s\"'»”’)\]」』]*|\n+")
_JOINERS = "\u200c\u200d"


def tokeniser(language: str | None = None) -> tuple[str, Words]:
    """The name of the tokeniser used for a language (BCP-47) and the function from text to lowercase words."""
    model = _budoux_model(language)
    if model and find_spec("budoux"):
        return "budoux", lambda text: [word for phrase in _phrases(model, text) for word in words(phrase, whole=True)]
    return "words by script", words


def words(text: str, *, whole: bool = False) -> list[str]:
    """Lowercase words in order; unspaced scripts by character unless ``whole`` keeps their runs together."""
    return (_patterns().whole if whole else _patterns().by_character).findall(
        unicodedata.normalize("NFC", text).lower()
    )


def sentences(text: str) -> list[str]:
    """Sentences by their closing marks (Latin, CJK, danda, Arabic, Ethiopic) and line breaks."""
    return [part.strip() for part in _SENTENCE_ENDS.split(text) if words(part)]


class _Patterns:
    def __init__(self) -> None:
        unspaced = "".join(f"{chr(low)}-{chr(high)}" for low, high in _UNSPACED)
        marks = _marks()
        letter = rf"[^\W_]|[{marks}{_JOINERS}]"
        spaced = rf"(?:(?![{unspaced}])(?:{letter}))"
        inner = rf"{spaced}+(?:['’\-]{spaced}+)*"
        number = r"\d+(?:[.,]\d+)+"
        self.by_character = re.compile(rf"{number}|(?=[^\W_])(?:[{unspaced}](?:(?![{_JOINERS}])[{marks}])*|{inner})")
        self.whole = re.compile(rf"{number}|(?=[^\W_])(?:(?:[{unspaced}]|[{marks}])+|{inner})")


@cache
def _patterns() -> _Patterns:
    return _Patterns()


def _marks() -> str:
    """All combining marks as ranges of a character class: ``\\w`` leaves them out."""
    ranges: list[list[int]] = []
    for code in range(0x300, 0x20000):
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


def _budoux_model(language: str | None) -> str | None:
    tag = language or ""
    return _BUDOUX.get(tag) or _BUDOUX.get(tag.split("-")[0])


def _phrases(model: str, text: str) -> list[str]:
    return [str(phrase) for phrase in _parser(model).parse(text)]


@cache
def _parser(model: str) -> Any:
    return getattr(import_module("budoux"), f"load_default_{model}_parser")()
