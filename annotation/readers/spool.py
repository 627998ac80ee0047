"""Collections of rows that keep only a few rows in memory; the others are in temporary files.

`Spool` is a list, `KeyedRows` finds the rows with the same key, `PartitionedRows` puts rows that belong together into
parts that fit into memory.
"""

from __future__ import annotations

import gc
import marshal
import tempfile
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, compress, islice, pairwise
from threading import Lock
from typing import Any, BinaryIO, Generic, TypeVar, overload

from annotation.readers.problems import ShareProgress, progress_between

RARE_THRESHOLD = 500_000  # net new objects between two collections of the youngest generation; Python's default is 700
_lock = Lock()
_thresholds: list[tuple[int, int, int]] = []


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Collect garbage rarely inside this context: rows have no cycles, so they are freed when they are stored.

    The setting belongs to the process, so the last of several threads that leaves the context restores it.
    """
    with _lock:
        _thresholds.append(gc.get_threshold())
        gc.set_threshold(RARE_THRESHOLD, *_thresholds[0][1:])
    try:
        yield
    finally:
        with _lock:
            first = _thresholds[0]
            _thresholds.pop()
            if not _thresholds:
                gc.set_threshold(*first)


T = TypeVar("T")
PlainRow = tuple[Any, ...]
BATCH = 1_000  # rows
BATCH_WEIGHT = 2**20  # of a batch, in the bytes that the caller counts
IN_MEMORY = 16  # batches


class Spool(Sequence[T], Generic[T]):
    """A list that may be larger than memory: appended to, then read from its start any number of times.

    Rows are appended as plain tuples of JSON values, and ``restore`` converts them when they are read. Up to
    ``IN_MEMORY`` batches stay in memory; then all are written to a temporary file without a name, which is deleted with
    this object.
    """

    def __init__(self, restore: Callable[[PlainRow], T], *, in_memory: int = IN_MEMORY) -> None:
        self._restore = restore
        self._in_memory = in_memory
        self._open: list[PlainRow] = []
        self._open_weight = 0
        self.weight = 0
        self._kept: list[list[PlainRow]] = []
        self._file: BinaryIO | None = None
        self._places: list[tuple[int, int]] = []  # offset and size of each batch in the file
        self._length = 0

    def extend(self, rows: list[PlainRow], weight: int = 0) -> None:
        """Add a few rows; ``weight`` is about the bytes of their long texts, so that batches of documents are short."""
        self._open += rows
        self._open_weight += weight
        self.weight += weight
        if len(self._open) >= BATCH or self._open_weight >= BATCH_WEIGHT:
            self._write_kept()

    def change(self, change: Callable[[T], T]) -> None:
        """Apply ``change`` to every row whenever it is read from now on."""
        restore = self._restore
        self._restore = lambda row: change(restore(row))

    def __len__(self) -> int:
        return self._length + len(self._open)

    def __iter__(self) -> Iterator[T]:
        return map(self._restore, self.plain())

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        """The row or rows at a place, read from the start: for the first few rows, and for tests."""
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            return list(islice(self, start, stop, step))
        at = place + len(self) if place < 0 else place
        rows = list(islice(self, at, at + 1)) if at >= 0 else []
        if not rows:
            raise IndexError(place)
        return rows[0]

    def plain(self) -> Iterator[PlainRow]:
        """The rows as they were appended."""
        return chain.from_iterable(self.batches())

    def batches(self) -> Iterator[list[PlainRow]]:
        """The rows in the pieces in which they are kept."""
        yield from self._kept
        if self._file is not None:
            for offset, size in self._places:
                self._file.seek(offset)
                yield marshal.loads(self._file.read(size))  # noqa: S302 (nobody else writes to this file)
        if self._open:
            yield self._open

    @property
    def is_on_disk(self) -> bool:
        return self._file is not None

    def close(self) -> None:
        """Free the rows and the file; this also happens when nothing refers to the object any more."""
        self._open, self._kept, self._places, self._length = [], [], [], 0
        if self._file is not None:
            self._file.close()

    def _write_kept(self) -> None:
        batch, self._open, self._open_weight = self._open, [], 0
        self._length += len(batch)
        if self._file is None and len(self._kept) < self._in_memory:
            self._kept.append(batch)
            return
        for rows in (*self._kept, batch):
            self._write(rows)
        self._kept = []

    def _write(self, batch: list[PlainRow]) -> None:
        if self._file is None:
            self._file = temporary_file(self)
        packed = marshal.dumps(batch)
        offset = self._file.seek(0, 2)
        self._file.write(packed)
        self._places.append((offset, len(packed)))


def temporary_file(owner: object) -> BinaryIO:
    """A file without a name that is deleted with its owner, or with the process."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 (it is open as long as its owner lives)
    weakref.finalize(owner, file.close)
    return file


KEPT, DROPPED = 0, -1
_BLOCK = 200_000  # hashes in memory; further ones are written to disk
_PARTS = 256  # parts of the hashes on disk, each small enough to be read as a whole
_TOGETHER = 50_000  # rows with doubtful keys in memory


class KeyedRows(Generic[T]):
    """Rows in the order in which they are added, and in the end one row for each key.

    For any number of rows, memory has one block of hashes, and as many rows as a `Spool`.
    """

    def __init__(
        self,
        restore: Callable[[PlainRow], T],
        key: Callable[[PlainRow], Hashable],
        *,
        block: int = _BLOCK,
        together: int = _TOGETHER,
    ) -> None:
        self.rows: Spool[T] = Spool(restore)
        self._restore, self._key, self._together = restore, key, together
        self._hashes = _Hashes(block)

    @property
    def entered(self) -> int:
        """The number of rows that were added."""
        return self._hashes.count

    def extend(self, rows: list[PlainRow], weight: int = 0) -> None:
        """Add rows; ``weight`` is about the bytes of their long texts."""
        self._hashes.extend(map(hash, map(self._key, rows)))
        self.rows.extend(rows, weight)

    def settle(
        self,
        decide: Callable[[list[PlainRow]], list[int]],
        amended: Callable[[PlainRow, int], PlainRow] = lambda row, _fate: row,
    ) -> Spool[T]:
        """The rows that stay. ``decide`` gets the rows with the same key, in order, and returns for each row `KEPT`,
        `DROPPED`, or a number with which ``amended`` changes the row."""
        doubtful = self._hashes.repeated()
        if doubtful is None:
            return self.rows
        fates = array("i", bytes(4 * len(self.rows)))
        for places, rows in self._groups(doubtful):
            for place, fate in zip(places, decide(rows), strict=True):
                fates[place] = fate
        return self._rewritten(fates, amended) if any(fates) else self.rows

    def _groups(self, doubtful: bytearray) -> Iterator[tuple[list[int], list[PlainRow]]]:
        """The places and the rows of each key that occurs more than once."""
        marked = compress(enumerate(self.rows.plain()), doubtful)
        parts = -(-sum(doubtful) // self._together)
        if parts == 1:
            yield from self._grouped(marked)
            return
        partitions: list[Spool[Any]] = [Spool(_as_it_is, in_memory=0) for _ in range(parts)]
        for place, row in marked:
            partitions[hash(self._key(row)) % parts].extend([(place, row)], _text_weight(row))
        for partition in partitions:
            yield from self._grouped(iter(partition))
            partition.close()

    def _grouped(self, marked: Iterator[tuple[int, PlainRow]]) -> Iterator[tuple[list[int], list[PlainRow]]]:
        groups: dict[Hashable, tuple[list[int], list[PlainRow]]] = {}
        for place, row in marked:
            places, rows = groups.setdefault(self._key(row), ([], []))
            places.append(place)
            rows.append(row)
        # Different keys may have the same hash.
        return (group for group in groups.values() if len(group[0]) > 1)

    def _rewritten(self, fates: array[int], amended: Callable[[PlainRow, int], PlainRow]) -> Spool[T]:
        rows: Spool[T] = Spool(self._restore)
        for row, fate in zip(self.rows.plain(), fates, strict=True):
            if fate != DROPPED:
                rows.extend([amended(row, fate) if fate else row], _text_weight(row))
        self.rows.close()
        return rows


class _Hashes:
    """A block of hashes in memory; full blocks are written to disk with their places, in parts by value."""

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
        """A mark for each place with a hash that also occurs at another place; None if all hashes are different."""
        if self._file is None:
            numbers = list(_repeated(self._open, range(len(self._open))))
            return _marks(len(self._open), numbers) if numbers else None
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
            self._file = temporary_file(self)
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


def _text_weight(row: PlainRow) -> int:
    return sum(len(part) for part in row if isinstance(part, str))


def _as_it_is(row: PlainRow) -> PlainRow:
    return row


PARTITION_ROWS = 100_000  # of one partition
PARTITION_WEIGHT = 8 * 2**20  # of one partition, in bytes of long texts
MOST_PARTITIONS = 256  # each large partition is a file


class PartitionedRows:
    """Rows in as few partitions as possible; rows with the same ``key`` are in the same partition, in their order.

    ``rows`` and ``weight`` are the expected totals; rows without any weight have no long texts.
    """

    def __init__(self, key: Callable[[PlainRow], Hashable], rows: int, weight: int = 0) -> None:
        count = min(MOST_PARTITIONS, max(1, -(-rows // PARTITION_ROWS), -(-weight // PARTITION_WEIGHT)))
        self._key, self._is_weighed = key, weight > 0
        # Together they keep no more in memory than one spool does.
        self._partitions: list[Spool[PlainRow]] = [Spool(tuple, in_memory=IN_MEMORY // count) for _ in range(count)]

    def extend(self, rows: list[PlainRow]) -> None:
        """Add some rows to their partitions."""
        if len(self._partitions) == 1:
            self._partitions[0].extend(rows, self._weight(rows))
            return
        parts: list[list[PlainRow]] = [[] for _ in self._partitions]
        count = len(parts)
        for row, place in zip(rows, map(hash, map(self._key, rows)), strict=True):
            parts[place % count].append(row)
        for partition, part in zip(self._partitions, parts, strict=True):
            partition.extend(part, self._weight(part))

    def __len__(self) -> int:
        return sum(map(len, self._partitions))

    def __iter__(self) -> Iterator[list[PlainRow]]:
        """The rows, partition by partition."""
        return (list(partition.plain()) for partition in self._partitions if partition)

    def with_progress(self, progress: ShareProgress | None) -> Iterator[list[PlainRow]]:
        """The rows, partition by partition; ``progress`` is called with the share that is done."""
        tell, done = progress_between(progress, 0, 1), 0
        for partition in self:
            yield partition
            done += len(partition)
            tell(done / len(self))

    def _weight(self, rows: list[PlainRow]) -> int:
        return sum(len(part) for row in rows for part in row if type(part) is str) if self._is_weighed else 0
