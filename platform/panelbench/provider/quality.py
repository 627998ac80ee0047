"""How good a text looks to a simulated judge: a fixed number per text, from cues that need no language skills."""

from __future__ import annotations

import hashlib
import re
from statistics import fmean
from typing import Final

_MARK: Final = re.compile(r"<<<[^>\n]*>>>")
_WORD: Final = re.compile(r"[^\W\d_]+")
_TWICE: Final = re.compile(r"\b(\w+)\s+\1\b", re.IGNORECASE)
_NOISY: Final = re.compile(r"[!?]{2,}|\s[,.!?]|[,;]{2,}|\S{40,}")
_ENDS: Final = tuple('.!?…。！？؟।"”»)')


def latent(material: str) -> float:
    """The quality of a text in [0, 1]: two thirds what can be seen in it, one third a fixed whim of its own."""
    return 0.67 * _looks(material) + 0.33 * unit(material)


def unit(*parts: str) -> float:
    """A number in [0, 1) fixed by the parts."""
    digest = hashlib.blake2b("\x1f".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def _looks(material: str) -> float:
    turns = [turn.strip() for turn in _MARK.split(material) if turn.strip()]
    if not turns:
        return 0.0
    words = _WORD.findall(material.casefold())
    variety = len(set(words)) / max(1, len(words)) ** 0.9
    blemishes = len(_TWICE.findall(material)) + len(_NOISY.findall(material))
    cues = (
        min(1.0, fmean(len(turn) for turn in turns) / 90),
        fmean(turn.endswith(_ENDS) for turn in turns),
        fmean(not turn[:1].islower() for turn in turns),
        min(1.0, variety),
        len(set(turns)) / len(turns),
        0.6**blemishes,
    )
    return fmean(cues)
