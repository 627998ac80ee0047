"""Which of very many rows have the same key: found by hash in a temporary file, then looked at one by one."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import compress, pairwise
from typing import Any, BinaryIO, Generic, TypeVar

from annotation.readers.spool import Plain, Spool, temporary

T = TypeVar("T")

KEPT, DROPPED = 0, -1
_BLOCK = 200_000  # hashes in memory; those of more rows go to disk
_PARTS = 256  # of the hashes on disk, each small enough to be looked at as a whole
_TOGETHER = 50_000  # rows with doubtful keys in memory


class Ledger(Generic[T]):
    """Rows in the order in which they come, and in the end one row for each key.

    Memory holds a block of hashes, and of rows no more than a `Spool` does, however many there are.
    """

    def __init__(
        self,
        restore: Callable[[Plain], T],
        key: Callable[[Plain], Hashable],
        *,
        block: int = _BLOCK,
        together: int = _TOGETHER,
    ) -> None:
        self.rows: Spool[T] = Spool(restore)
        self._restore, self._key, self._together = restore, key, together
        self._hashes = _Hashes(block)

    @property
    def entered(self) -> int:
        """How many rows there were."""
        return self._hashes.count

    def extend(self, rows: list[Plain], weight: int = 0) -> None:
        """Add rows; ``weight`` is about the bytes of their long texts."""
        self._hashes.extend(map(hash, map(self._key, rows)))
        self.rows.extend(rows, weight)

    def settle(
        self,
        decide: Callable[[list[Plain]], list[int]],
        amended: Callable[[Plain, int], Plain] = lambda row, _fate: row,
    ) -> Spool[T]:
        """The rows that stay. ``decide`` is given the rows that have one key, in order, and says for each `KEPT`,
        `DROPPED`, or a number with which ``amended`` changes the row."""
        doubtful = self._hashes.repeated()
        if doubtful is None:
            return self.rows
        fates = array("i", bytes(4 * len(self.rows)))
        for places, rows in self._groups(doubtful):
            for place, fate in zip(places, decide(rows), strict=True):
                fates[place] = fate
        return self._rewritten(fates, amended) if any(fates) else self.rows

    def _groups(self, doubtful: bytearray) -> Iterator[tuple[list[int], list[Plain]]]:
        """The places and the rows of each key that occurs more than once."""
        marked = compress(enumerate(self.rows.plain()), doubtful)
        parts = -(-sum(doubtful) // self._together)
        if parts == 1:
            yield from self._grouped(marked)
            return
        shelves: list[Spool[Any]] = [Spool(_as_it_is, in_memory=0) for _ in range(parts)]
        for place, row in marked:
            shelves[hash(self._key(row)) % parts].extend([(place, row)], _weight(row))
        for shelf in shelves:
            yield from self._grouped(iter(shelf))
            shelf.close()

    def _grouped(self, marked: Iterator[tuple[int, Plain]]) -> Iterator[tuple[list[int], list[Plain]]]:
        groups: dict[Hashable, tuple[list[int], list[Plain]]] = {}
        for place, row in marked:
            places, rows = groups.setdefault(self._key(row), ([], []))
            places.append(place)
            rows.append(row)
        # Different keys may have one hash.
        return (group for group in groups.values() if len(group[0]) > 1)

    def _rewritten(self, fates: array[int], amended: Callable[[Plain, int], Plain]) -> Spool[T]:
        rows: Spool[T] = Spool(self._restore)
        for row, fate in zip(self.rows.plain(), fates, strict=True):
            if fate != DROPPED:
                rows.extend([amended(row, fate) if fate else row], _weight(row))
        self.rows.close()
        return rows


class _Hashes:
    """A block of hashes in memory; full blocks go to disk with their places, cut into parts by value."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._open = array("q")
        self._written = 0
        self._file: BinaryIO | None = None  # from the first full block on
        self._parts: list[list[tuple[int, int]]] = [[] for _ in range(_PARTS)]

    @property
    def count(self) -> int:
        return self._written + len(self._open)

    def extend(self, values: Iterable[int]) -> None:
        self._open.extend(values)
        if len(self._open) >= self._block:
            self._write()

    def repeated(self) -> bytearray | None:
        """A mark for each place whose hash occurs at another place too; None when all are different."""
        if self._file is None:
            found = list(_repeated(self._open, range(len(self._open))))
            return _marks(len(self._open), found) if found else None
        self._write()
        marks = bytearray(self._written)
        for part in self._parts:
            pairs = self._read(self._file, part)
            for place in _repeated(pairs[::2], pairs[1::2]):
                marks[place] = 1
        self._file.close()
        return marks if any(marks) else None

    def _write(self) -> None:
        import numpy as np  # only for large files, for which loops in Python take too long

        if self._file is None:
            self._file = temporary(self)
        hashes = np.frombuffer(self._open, dtype=np.int64)
        order = np.argsort(hashes % _PARTS, kind="stable")
        pairs = np.column_stack((hashes[order], order + self._written))
        ends = np.cumsum(np.bincount(hashes % _PARTS, minlength=_PARTS))
        offset = self._file.tell()
        for part, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
            self._parts[part].append((offset + 16 * start, 16 * (end - start)))
        self._file.write(pairs.tobytes())
        self._written += len(self._open)
        self._open = array("q")

    @staticmethod
    def _read(file: BinaryIO, part: list[tuple[int, int]]) -> array[int]:
        pairs = array("q")
        for offset, size in part:
            file.seek(offset)
            pairs.frombytes(file.read(size))
        return pairs


def _repeated(hashes: array[int], places: range | array[int]) -> Iterator[int]:
    if len(set(hashes)) == len(hashes):
        return
    often = Counter(hashes)
    yield from (place for value, place in zip(hashes, places, strict=True) if often[value] > 1)


def _marks(length: int, places: list[int]) -> bytearray:
    marks = bytearray(length)
    for place in places:
        marks[place] = 1
    return marks


def _weight(row: Plain) -> int:
    return sum(len(part) for part in row if isinstance(part, str))


def _as_it_is(row: Plain) -> Plain:
    return row
