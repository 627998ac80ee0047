"""Duplicates: equal texts, and texts that differ in a few characters.

MinHash signatures of the sets of five neighbouring characters give candidates; whether two texts are nearly equal is
then decided by their edit distance. Only items in one language are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import regex

from analytics.stats.declared.declaring import translatable
from annotation.checkup.checked_items import CheckedItem
from annotation.checkup.declared import Check, CheckScope, Hit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHINGLE = 5  # characters
PERMUTATIONS = 64
CANDIDATE = 0.7  # Jaccard similarity of the sets of characters, at which a pair becomes a candidate
NEARLY_EQUAL = 90  # of 100: 1 - edit distance without replacements / length of both texts
COMPARED = 10_000  # characters of an item that are compared
SHORTEST_COMPARED = 30  # letters and digits; shorter texts are alike by chance
MOST_CANDIDATES = 10  # of one item
KEPT_TEXTS = 60 * 2**20  # bytes of texts that are kept for the second look; beyond, signatures alone decide
_SIGNS = regex.compile(r"[^\p{L}\p{M}\p{N}]+")


def _comparable(item: CheckedItem) -> str:
    """Its text without case, spaces and punctuation."""
    return str(_SIGNS.sub(" ", item.text[:COMPARED].casefold()).strip())


class EqualText(Check):
    name = "equal_text"
    subject = "duplicates"
    severity = "error"
    title = translatable("Same text as an earlier item")
    help = translatable(
        "Equal but for case, spaces and punctuation, in the same language; the first one is not counted."
    )
    says = translatable("Equal to item %(item)d of this dataset")

    def __init__(self, scope: CheckScope) -> None:
        super().__init__(scope)
        self.first: dict[bytes, int] = {}

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        text = _comparable(item)
        if not text:
            return
        digest = blake2b(f"{item.language}\n{text}\n{item.cut}".encode(errors="surrogatepass"), digest_size=12)
        first = self.first.setdefault(digest.digest(), item.ordinal)
        if first != item.ordinal:
            yield Hit(item.ordinal, None, {"item": first + 1, "other": first})

    def why_not(self) -> str:
        return "" if self.first else "no_texts"


class NearlyEqualText(Check):
    name = "nearly_equal_text"
    subject = "duplicates"
    severity = "warning"
    title = translatable("Nearly the same text as an earlier item")
    help = translatable(
        "At least 90 % of the characters are the same, in the same language. Of such items only the later ones are "
        "counted."
    )
    says = translatable("%(share)d %% like item %(item)d of this dataset")

    def __init__(self, scope: CheckScope) -> None:
        from datasketch import MinHash

        super().__init__(scope)
        self.empty = MinHash(PERMUTATIONS, hashfunc=int)
        self.signatures: dict[str, list[tuple[int, NDArray[np.uint32]]]] = defaultdict(list)
        self.texts: dict[int, str] = {}
        self.bytes_kept = 0
        self.seen: set[bytes] = set()

    def look(self, item: CheckedItem) -> Iterable[Hit]:
        text = _comparable(item)
        if len(text) < SHORTEST_COMPARED:
            return ()
        digest = blake2b(f"{item.language}\n{text}".encode(errors="surrogatepass"), digest_size=12).digest()
        if digest in self.seen:  # `EqualText` has it
            return ()
        self.seen.add(digest)
        signature = self.empty.copy()
        signature.update_batch(_shingles(text).tolist())
        self.signatures[item.language].append((item.ordinal, signature.hashvalues))
        if self.bytes_kept < KEPT_TEXTS:
            self.texts[item.ordinal] = text
            self.bytes_kept += len(text.encode(errors="surrogatepass"))
        return ()

    def finish(self) -> Iterator[Hit]:
        from datasketch import MinHash, MinHashLSH

        for signed in self.signatures.values():
            index = MinHashLSH(CANDIDATE, PERMUTATIONS, hashfunc=_short_digest)
            values = dict(signed)
            for ordinal, hashvalues in signed:
                signature = MinHash(
                    hashvalues=hashvalues, permutations=self.empty.permutations, hashfunc=int, scheme=self.empty.scheme
                )
                if best := self._best(ordinal, index.query(signature), values):
                    yield Hit(ordinal, None, {"item": best[1] + 1, "other": best[1], "share": best[0]})
                else:  # a later one is compared with the first of its kind
                    index.insert(ordinal, signature, check_duplication=False)

    def _best(self, ordinal: int, candidates: Any, values: dict[int, NDArray[np.uint32]]) -> tuple[int, int] | None:
        """The likeliest earlier item that is nearly equal, after how equal it is of 100."""
        from rapidfuzz.fuzz import ratio

        alike = [(float((values[other] == values[ordinal]).mean()), -other) for other in candidates]
        best: tuple[int, int] | None = None
        for estimate, other in sorted(alike, reverse=True)[:MOST_CANDIDATES]:
            text, earlier = self.texts.get(ordinal), self.texts.get(-other)
            share = ratio(text, earlier, score_cutoff=NEARLY_EQUAL) if text and earlier else 100 * estimate
            if share >= NEARLY_EQUAL and (best is None or share > best[0]):
                best = int(share), -other
        return best

    def why_not(self) -> str:
        return "" if self.signatures else "no_texts"


def _short_digest(band: bytes) -> bytes:
    return blake2b(band, digest_size=8).digest()


def _shingles(text: str) -> NDArray[np.uint32]:
    """Hashes of all runs of five characters, each once."""
    import numpy as np

    points = np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), dtype=np.uint32).astype(np.uint64)
    hashed = np.zeros(len(points) - SHINGLE + 1, dtype=np.uint64)
    for shift in range(SHINGLE):
        hashed = hashed * np.uint64(0x100000001B3) + points[shift : len(points) - SHINGLE + 1 + shift]
    return np.unique((hashed ^ (hashed >> np.uint64(29))).astype(np.uint32))


CHECKS: tuple[type[Check], ...] = (EqualText, NearlyEqualText)
