"""How varied a text's words are: TTR, MATTR, MTLD (METHODS 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

WINDOW = 100
MTLD_THRESHOLD = 0.72


def ttr(tokens: Sequence[str]) -> float | None:
    """Type-token ratio: distinct / all; None without tokens. Falls with length: compare texts of one length only."""
    return len(set(tokens)) / len(tokens) if tokens else None


def mattr(tokens: Sequence[str], window: int = WINDOW) -> float | None:
    """Moving-average TTR over all windows of ``window`` tokens; of a shorter text its TTR, None without tokens.

    Source: Covington & McFall 2010, doi:10.1080/09296171003643098.
    """
    if len(tokens) <= window:
        return ttr(tokens)
    held = Counter(tokens[:window])
    total = distinct = len(held)
    for old, new in zip(tokens, tokens[window:], strict=False):
        held[new] += 1
        distinct += held[new] == 1
        held[old] -= 1
        distinct -= held[old] == 0
        total += distinct
    return total / (window * (len(tokens) - window + 1))


def mtld(tokens: Sequence[str], threshold: float = MTLD_THRESHOLD) -> float | None:
    """Measure of textual lexical diversity: mean length of runs that keep TTR above .72, forwards and backwards.

    The rest of the text counts as the part (1 - TTR) / (1 - threshold) of a run. None without tokens, or when no token
    recurs and so no run ever ends. Source: McCarthy & Jarvis 2010, doi:10.3758/BRM.42.2.381.
    """
    runs = [_runs(order, threshold) for order in (tokens, tokens[::-1])]
    if not tokens or 0 in runs:
        return None
    return sum(len(tokens) / n for n in runs) / 2


def _runs(tokens: Iterable[str], threshold: float) -> float:
    seen: set[str] = set()
    runs, length, ratio = 0.0, 0, 1.0
    for token in tokens:
        length += 1
        seen.add(token)
        ratio = len(seen) / length
        if ratio <= threshold:
            runs, length, ratio = runs + 1, 0, 1.0
            seen.clear()
    return runs + (1 - ratio) / (1 - threshold)
