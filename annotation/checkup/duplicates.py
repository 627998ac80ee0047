"""Duplicates: equal texts, and texts that differ in a few characters.

MinHash signatures of the sets of five neighbouring characters give candidates; whether two texts are nearly equal is
then decided by their edit distance. Only items in one language are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, cast

from analytics.stats.declared.declaring import translatable
from annotation.checkup.checked_items import CheckedItem
from annotation.checkup.declared import Check, CheckScope, Hit

if TYPE_CHECKING:
    import numpy as np
    from datasketch import MinHash
    from numpy.typing import NDArray

SHINGLE = 5  # characters
PERMUTATIONS = 64
CANDIDATE = 0.7  # Jaccard similarity of the sets of characters, at which a pair becomes a candidate
NEARLY_EQUAL = 90  # of 100: 1 - edit distance without replacements / length of both texts
COMPARED = 10_000  # characters of an item in which nearly equal ones are looked for: half from each end
SHORTEST_COMPARED = 30  # letters and digits; shorter texts are alike by chance
FULL_BUCKET = 50  # items in one bucket: what 50 share is a template, and finds nothing more
MOST_ESTIMATED = 50  # candidates of one item, of which the signatures are compared
MOST_CANDIDATES = 10  # of one item, of which the texts are compared
KEPT_TEXTS = 60 * 2**20  # bytes of texts that are kept for the second look; beyond, signatures alone decide


def _text_digest(item: CheckedItem) -> bytes:
    """Equal for items of one language with equal texts, whatever their length."""
    words = f"{item.language}\n{item.words}\n".encode(errors="surrogatepass")
    return blake2b(words + item.unread, digest_size=12).digest()


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
        self.has_text = False

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        self.has_text |= bool(item.words)
        if len(item.words) < SHORTEST_COMPARED:  # short answers are equal by chance
            return
        first = self.first.setdefault(_text_digest(item), item.ordinal)
        if first != item.ordinal:
            yield Hit(item.ordinal, None, {"item": first + 1, "other": first})

    def why_not(self) -> str:
        return "" if self.has_text else "no_texts"


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
        super().__init__(scope)
        self.signatures: dict[str, list[tuple[int, NDArray[np.uint32]]]] = defaultdict(list)
        self.texts: dict[int, str] = {}
        self.bytes_kept = 0
        self.seen: set[bytes] = set()
        self.has_text = False

    def look(self, item: CheckedItem) -> Iterable[Hit]:
        text = item.words
        self.has_text |= bool(text)
        digest = _text_digest(item)
        if len(text) < SHORTEST_COMPARED or digest in self.seen:  # `EqualText` has it
            return ()
        self.seen.add(digest)
        if len(text) > COMPARED:
            text = f"{text[: COMPARED // 2]} {text[-COMPARED // 2 :]}"
        self.signatures[item.language].append((item.ordinal, text_signature(text)))
        if self.bytes_kept < KEPT_TEXTS:
            self.texts[item.ordinal] = text
            self.bytes_kept += len(text.encode(errors="surrogatepass"))
        return ()

    def finish(self) -> Iterator[Hit]:
        import numpy as np
        from datasketch import MinHashLSH

        bands = MinHashLSH(CANDIDATE, PERMUTATIONS)  # how many, and of how many numbers
        for signed in self.signatures.values():
            values = np.stack([hashvalues for _ordinal, hashvalues in signed])
            buckets: dict[bytes, list[int]] = defaultdict(list)
            for row, (ordinal, hashvalues) in enumerate(signed):
                self.at_work()
                keys = [
                    blake2b(
                        hashvalues[band * bands.r : (band + 1) * bands.r].tobytes(), digest_size=8, key=b"%d" % band
                    )
                    for band in range(bands.b)
                ]
                own = [buckets[key.digest()] for key in keys]
                shared = Counter(other for bucket in own for other in bucket)
                nearest = sorted(shared, key=lambda other: (-shared[other], other))[:MOST_ESTIMATED]
                estimates = (values[nearest] == values[row]).mean(axis=1)
                likeliest = sorted(zip(-estimates, nearest, strict=True))[:MOST_CANDIDATES]
                alike = [(signed[other][0], -float(estimate)) for estimate, other in likeliest]
                if best := self._best(ordinal, alike):
                    yield Hit(ordinal, None, {"item": best[1] + 1, "other": best[1], "share": best[0]})
                    continue  # a later one is compared with the first of its kind
                for bucket in own:
                    if len(bucket) < FULL_BUCKET:
                        bucket.append(row)

    def _best(self, ordinal: int, candidates: Iterable[tuple[int, float]]) -> tuple[int, int] | None:
        """The likeliest earlier item that is nearly equal, after how equal it is of 100."""
        from rapidfuzz.fuzz import ratio

        best: tuple[int, int] | None = None
        for other, estimate in candidates:
            text, earlier = self.texts.get(ordinal), self.texts.get(other)
            share = ratio(text, earlier, score_cutoff=NEARLY_EQUAL) if text and earlier else 100 * estimate
            if share >= NEARLY_EQUAL and (best is None or share > best[0]):
                best = int(share), other
        return best

    def why_not(self) -> str:
        return "" if self.has_text else "no_texts"


@cache
def _empty_signature() -> MinHash:
    from datasketch import MinHash

    return MinHash(PERMUTATIONS, hashfunc=int)


def text_signature(text: str) -> NDArray[np.uint32]:
    """The MinHash signature of a text of at least five characters, as `CheckedItem.words` has it."""
    signature = _empty_signature().copy()
    signature.update_batch(_shingles(text).tolist())
    return cast("NDArray[np.uint32]", signature.hashvalues)


def _shingles(text: str) -> NDArray[np.uint32]:
    """Hashes of all runs of five characters, each once."""
    import numpy as np

    points = np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), dtype=np.uint32).astype(np.uint64)
    hashed = np.zeros(len(points) - SHINGLE + 1, dtype=np.uint64)
    for shift in range(SHINGLE):
        hashed = hashed * np.uint64(0x100000001B3) + points[shift : len(points) - SHINGLE + 1 + shift]
    return np.unique((hashed ^ (hashed >> np.uint64(29))).astype(np.uint32))


CHECKS: tuple[type[Check], ...] = (EqualText, NearlyEqualText)
