"""Whether a text reads as the name of a person: a heading `Marta González`, a rater `anna_k` or `j.smith@example.org`.

A sign, not a proof: given names are looked up in `names.txt`, surnames are told by what stands beside them. What is
found is pointed out and never refused, so that a heading taken for a name costs as little as a name that is missed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.resources import files as resources
from typing import NamedTuple

from babel import Locale

_EMAIL = re.compile(r"[^\s@<>(),;:\"]+@[^\s@<>(),;:\"]+\.[^\W\d_]{2,}")
# Identifiers that programs make: digits on both sides of letters, hexadecimal digits, capitals and digits.
_IDENTIFIER = re.compile(r"(?=[^\s]*\d)(?:[\w-]*\d[A-Za-z]+\d[\w-]*|[0-9a-f]{8}[0-9a-f-]*|[A-Z0-9_-]{6,})")
# Accents that stand by themselves and vowel signs belong to their word, and so does an apostrophe in it.
_SIGNS = r"\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff\u0e31-\u0e4e"
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_SIGNS}]|['’](?=\w))*")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Letters that have no accent to be taken off, as they are often written without them.
_PLAIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ß": "ss", "ı": "i", "æ": "ae", "þ": "th", "ð": "d"})
# Whose name follows: `rater: Tamm`, `scored by Tamm`.
_INTRODUCED = re.compile(r"\b(?:rater|annotator|reviewer|labell?er|coder|expert)\s*[:=]\s*$|\w{3,}ed[ _]by[ _]+$")
# Surnames that begin a Chinese, Korean or Japanese name and hardly another word.
_CHINESE = "王李张張刘劉陈陳杨楊赵趙吴吳徐孙孫郭郑鄭谢謝邓鄧冯馮彭蔡潘袁蒋蔣魏吕呂沈姚卢盧姜崔谭譚廖汪"
_FULL = re.compile(rf"[{_CHINESE}][\u4e00-\u9fff]{{1,2}}|김[가-힣]{{2}}")
_JAPANESE = (
    *("佐藤", "鈴木", "高橋", "田中", "伊藤", "渡辺", "渡邉", "山本", "中村", "小林", "加藤", "吉田", "山田", "佐々木"),
    *("山口", "松本", "井上", "木村", "清水", "山崎", "池田", "橋本", "阿部", "石川", "前田", "藤田", "岡田", "長谷川"),
)
# How surnames of some languages end, and few other words that are written with a capital letter.
_ENDING = re.compile(
    r".{3,}(?:d[oó]ttir|[lnr]sen|sson|(?<!mi)nen|[oe]v[aá]?|[oe]vi[cć]|sk[aáiy]|wicz|czyk|enko|chuk|auskas|aitis|iņš"
    r"|opoulos|opoulou|akis|idis|yan|shvili|adze|o[gğ]lu|zade|ов|ова|ев|ева|ин|ина|ский|ская|енко|чук|ић|όπουλος|άκης)",
    re.IGNORECASE,
)


class _Lists(NamedTuple):
    """``given`` names and those that are words as ``both``; ``words``, and the names of languages and countries, are
    no surnames."""

    given: frozenset[str]
    both: frozenset[str]
    words: frozenset[str]


class _Token(NamedTuple):
    """A word of a text, how it is looked up, and where it begins and ends."""

    text: str
    plain: str
    start: int
    end: int


@lru_cache(maxsize=10_000)
def personal(text: str) -> str:
    """What of a text reads as a person's name or e-mail address; "" where nothing does."""
    if found := _EMAIL.search(text):
        return found[0]
    if _IDENTIFIER.fullmatch(text):
        return ""
    tokens = list(_tokens(text))
    if len(tokens) == 2 and all(map(_is_surname, tokens)) and _ENDING.fullmatch(tokens[1].text):
        return text.strip()
    for place, token in enumerate(tokens):
        if _is_given(token, tokens[place + 1 : place + 2]):
            return _with_surname(text, tokens[place:])
        if _is_in_asia(token.text):
            return token.text
        if _is_surname(token) and (_has_initial(text, tokens, place) or _is_introduced(text, token)):
            return text.strip()
    return ""


def among(texts: Iterable[str]) -> list[str]:
    """Those of some texts that read as a person's name or e-mail address, each once, in their order."""
    return [text for text in dict.fromkeys(texts) if personal(text)]


def _tokens(text: str) -> Iterator[_Token]:
    for word in _WORD.finditer(text):
        start = word.start()
        for part in _CAMEL.split(word[0]):
            yield _Token(part, _folded(part), start, start + len(part))
            start += len(part)


def _folded(word: str) -> str:
    """In small letters and without accents; vowel signs, which are no accents, stay."""
    if word.isascii():
        return word.lower()
    apart = unicodedata.normalize("NFKD", word.casefold().translate(_PLAIN))
    return "".join([letter for letter in apart if not unicodedata.combining(letter)])


@cache
def _lists() -> _Lists:
    said: dict[str, set[str]] = {}
    words: set[str] = set()
    for line in (resources("annotation.readers") / "names.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            words = said[line.strip("[]")] = set()
        elif not line.startswith("#"):
            words.update(map(_folded, line.split()))
    english = Locale("en")
    for called in (*english.languages.values(), *english.territories.values()):
        said["words"].update(token.plain for token in _tokens(called))
    return _Lists(**{name: frozenset(words) for name, words in said.items()})


def _is_given(token: _Token, following: list[_Token]) -> bool:
    lists = _lists()
    if token.plain in lists.given:
        return not token.text.isupper() or len(token.text) > 4  # ERIC, BERT and the like are acronyms
    return token.plain in lists.both and token.text.istitle() and any(map(_is_surname, following))


def _is_surname(token: _Token) -> bool:
    """A capitalised word that is neither a heading's nor a name that may be a word."""
    lists = _lists()
    is_name = token.text[:1].isupper() and not token.text.isupper() and len(token.text) > 2
    return is_name and token.plain not in lists.words and token.plain not in lists.both


def _is_introduced(text: str, token: _Token) -> bool:
    return bool(_INTRODUCED.search(text[: token.start].lower()))


def _has_initial(text: str, tokens: list[_Token], place: int) -> bool:
    """`J. Smith` and `Smith, J.`: one capital letter and a full stop beside the word."""
    beside = (*tokens[max(0, place - 1) : place], *tokens[place + 1 : place + 2])
    return any(each.end - each.start == 1 and each.text.isupper() and text[each.end :][:1] == "." for each in beside)


def _is_in_asia(word: str) -> bool:
    return bool(_FULL.fullmatch(word)) or (2 < len(word) < 7 and word.startswith(_JAPANESE))


def _with_surname(text: str, tokens: list[_Token]) -> str:
    """The given name and the names that follow it."""
    last = tokens[0]
    for token in tokens[1:]:
        if not (_is_surname(token) or len(token.text) == 1 or token.plain in _lists().given):
            break
        last = token
    return text[tokens[0].start : last.end]
