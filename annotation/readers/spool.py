"""Rows of a large file, kept so that memory holds only a few of them: the rest lie in a temporary file of our own."""

from __future__ import annotations

import marshal
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, BinaryIO, Generic, TypeVar, overload

T = TypeVar("T")
Plain = tuple[Any, ...]

BATCH = 1_000  # rows
WEIGHT = 2**20  # of a batch, in the bytes that its caller counts
IN_MEMORY = 16  # batches


class Spool(Sequence[T], Generic[T]):
    """A list that may be larger than memory: appended to, then read from its start any number of times.

    Rows are appended as plain tuples of what JSON knows, and come back as what ``restore`` makes of them. Up to
    ``IN_MEMORY`` batches stay as they are; then all go to a temporary file without a name, which ends with this object.
    """

    def __init__(self, restore: Callable[[Plain], T], *, in_memory: int = IN_MEMORY) -> None:
        self._restore = restore
        self._in_memory = in_memory
        self._open: list[Plain] = []
        self._open_weight = 0
        self.weight = 0
        self._kept: list[list[Plain]] = []
        self._file: BinaryIO | None = None
        self._places: list[tuple[int, int]] = []  # offset and size of each batch in the file
        self._length = 0

    def extend(self, rows: list[Plain], weight: int = 0) -> None:
        """Add a few rows; ``weight`` is about the bytes of their long texts, so that batches of documents are short."""
        self._open += rows
        self._open_weight += weight
        self.weight += weight
        if len(self._open) >= BATCH or self._open_weight >= WEIGHT:
            self._shelve()

    def change(self, change: Callable[[T], T]) -> None:
        """Have every row changed on its way out, whenever it is read from now on."""
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
        found = list(islice(self, at, at + 1)) if at >= 0 else []
        if not found:
            raise IndexError(place)
        return found[0]

    def plain(self) -> Iterator[Plain]:
        """The rows as they were appended."""
        return chain.from_iterable(self.batches())

    def batches(self) -> Iterator[list[Plain]]:
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
        """Let go of the rows and the file; also done when nothing refers to them any more."""
        self._open, self._kept, self._places, self._length = [], [], [], 0
        if self._file is not None:
            self._file.close()

    def _shelve(self) -> None:
        batch, self._open, self._open_weight = self._open, [], 0
        self._length += len(batch)
        if self._file is None and len(self._kept) < self._in_memory:
            self._kept.append(batch)
            return
        for each in (*self._kept, batch):
            self._write(each)
        self._kept = []

    def _write(self, batch: list[Plain]) -> None:
        if self._file is None:
            self._file = temporary(self)
        packed = marshal.dumps(batch)
        offset = self._file.seek(0, 2)
        self._file.write(packed)
        self._places.append((offset, len(packed)))


def temporary(owner: object) -> BinaryIO:
    """A file without a name that is gone with its owner, or with the process."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 (it is open as long as its owner lives)
    weakref.finalize(owner, file.close)
    return file
