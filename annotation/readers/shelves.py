"""Very many rows, put together by what belongs together, so that each part fits into memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from annotation.readers.progress import Told, between
from annotation.readers.spool import IN_MEMORY, Plain, Spool

ROWS = 100_000  # of one shelf
WEIGHT = 8 * 2**20  # of one shelf, in bytes of long texts
MOST = 256  # shelves, each of which is a file when it is large


class Shelves:
    """Rows on as few shelves as hold them; those of one ``key`` are on the same one, in the order in which they came.

    ``rows`` and ``weight`` are about what there will be; rows without any weight hold no long texts.
    """

    def __init__(self, key: Callable[[Plain], Hashable], rows: int, weight: int = 0) -> None:
        count = min(MOST, max(1, -(-rows // ROWS), -(-weight // WEIGHT)))
        self._key, self._is_weighed = key, weight > 0
        # Together they keep no more in memory than one spool does.
        self._shelves: list[Spool[Plain]] = [Spool(tuple, in_memory=IN_MEMORY // count) for _ in range(count)]

    def extend(self, rows: list[Plain]) -> None:
        """Put some rows where they belong."""
        if len(self._shelves) == 1:
            self._shelves[0].extend(rows, self._weight(rows))
            return
        piles: list[list[Plain]] = [[] for _ in self._shelves]
        count = len(piles)
        for row, place in zip(rows, map(hash, map(self._key, rows)), strict=True):
            piles[place % count].append(row)
        for shelf, pile in zip(self._shelves, piles, strict=True):
            shelf.extend(pile, self._weight(pile))

    def __len__(self) -> int:
        return sum(map(len, self._shelves))

    def __iter__(self) -> Iterator[list[Plain]]:
        """The rows, shelf by shelf."""
        return (list(shelf.plain()) for shelf in self._shelves if shelf)

    def told(self, told: Told | None) -> Iterator[list[Plain]]:
        """The rows, shelf by shelf; ``told`` hears which share of them has been seen to."""
        tell, done = between(told, 0, 1), 0
        for shelf in self:
            yield shelf
            done += len(shelf)
            tell(done / len(self))

    def _weight(self, rows: list[Plain]) -> int:
        return sum(len(part) for row in rows for part in row if type(part) is str) if self._is_weighed else 0
