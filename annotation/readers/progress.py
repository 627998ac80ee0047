"""How far the reading of some files has come, told in bytes of the files as they are, packed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from annotation.readers.columns import Facts
from annotation.readers.containers import File, members
from annotation.readers.encoding import opened
from annotation.readers.problems import Problems
from annotation.readers.rows import Block, Row

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and those there are."""
Told = Callable[[float], None]
"""Called with the share that is done, from 0 to 1."""

EVERY = 2_000  # rows


class Meter:
    """Opens files one after the other and tells ``progress`` where it is in them, and ``facts`` what it sees."""

    def __init__(self, files: Iterable[File], progress: Progress | None, facts: Facts | None = None) -> None:
        self._files = [(name, opened(raw)) for name, raw in files]
        self._sizes = [stream.seek(0, 2) for _name, stream in self._files]
        self._progress, self._facts = progress, facts
        if facts is not None:
            facts.clear()
        self._before = 0
        self._stream: BinaryIO | None = None

    def members(self, problems: Problems) -> Iterator[File]:
        """The files, those inside gzip and zip in the place of these."""
        for (name, stream), size in zip(self._files, self._sizes, strict=True):
            stream.seek(0)
            self._stream = stream
            yield from members([(name, stream)], problems)
            self._stream = None
            self._before += size
            self.tell()

    def watched(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The rows of a member, as they are, once facts has seen them; progress is told as they come."""
        for block in blocks:
            if self._facts is not None:
                self._facts.see(block)
            yield block
            self.tell()

    def following(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The same, one by one; progress is told every now and then."""
        rows = rows if self._facts is None else self._facts.following(rows)
        return rows if self._progress is None else self._followed(rows)

    def tell(self) -> None:
        """Tell progress now."""
        if self._progress is not None:
            here = self._stream.tell() if self._stream is not None else 0
            self._progress(self._before + here, sum(self._sizes))

    def _followed(self, rows: Iterator[Row]) -> Iterator[Row]:
        for number, row in enumerate(rows):
            if not number % EVERY:
                self.tell()
            yield row


class Halves:
    """Progress of what is read, and then held against the database: a half each."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._total = 0

    def reading(self, done: int, total: int) -> None:
        """So many bytes are read."""
        self._total = total
        if self._progress is not None:
            self._progress(done, 2 * total)

    def holding(self, share: float) -> None:
        """This share of what was read is looked up."""
        if self._progress is not None:
            self._progress(int(self._total * (1 + share)), 2 * self._total)


def between(told: Told | None, start: float, end: float) -> Told:
    """For a step on somebody's way: its own share is told as the part of the whole from ``start`` to ``end``."""

    def tell(share: float) -> None:
        if told is not None:
            told(start + share * (end - start))

    return tell
