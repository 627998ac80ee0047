"""How long a rationale is and how long it has to be. Pure."""

from __future__ import annotations

import re
import unicodedata

# Scripts that put no spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han. About two letters make a word there.
_UNSPACED_LETTER = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_SPACED_WORD = re.compile(r"[^\W_]+(?:['\u2019\-][^\W_]+)*")


def count_words(text: str) -> int:
    """Words between spaces or punctuation; in scripts without spaces, half the letters, rounded up."""
    unspaced = len(_UNSPACED_LETTER.findall(text))
    spaced = _SPACED_WORD.findall(_UNSPACED_LETTER.sub(" ", _bare(text)))
    return len(spaced) + -(-unspaced // 2)


def _bare(text: str) -> str:
    """Without vowel signs, accents and joiners: they are part of the word they stand in, and no letters to `re`."""
    return "".join(char for char in text if unicodedata.category(char) not in ("Mn", "Mc", "Me", "Cf"))


def words_needed(*, rule: str, minimum: int, score: float | None, best: float | None) -> int:
    """How many words ``rule`` asks for beside ``score``; none beside N/A, and of the best point at most one."""
    if score is None or rule not in ("required", "required_except_best"):
        return 0
    if score == best:
        return 1 if rule == "required" else 0
    return max(1, minimum)
