"""Files that belong together line by line (``test.src``, ``test.mt``, ``test.da``) -> one file of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

import orjson

from annotation.readers.containers import members
from annotation.readers.encoding import text_lines
from annotation.readers.mapping import Mapping
from annotation.readers.patterns import file_fits
from annotation.readers.problems import FormatError, Problem, Problems
from annotation.readers.reading import File

_IN_MEMORY = 4 * 2**20
Group = dict[str, File]


def aligned(files: Iterable[File], layout: Mapping, problems: Problems) -> Iterator[File]:
    """The files, or where the mapping says ``aligned`` those that belong together as one: JSON Lines whose line n holds
    line n of each, by column, and what stands in the holes of their names. Never raises on bad input."""
    if not layout.aligned:
        yield from files
        return
    for said, group in _grouped(files, layout, problems):
        with SpooledTemporaryFile(_IN_MEMORY) as joined:
            try:
                _require_all(group, layout)
                _join(cast(BinaryIO, joined), dict(said), group, layout)
            except FormatError as error:
                problems.add(error.problem)
                continue
            yield "+".join(name for name, _raw in group.values()) + ".jsonl", cast(BinaryIO, joined)


def _grouped(
    files: Iterable[File], layout: Mapping, problems: Problems
) -> Iterator[tuple[tuple[tuple[str, str], ...], Group]]:
    """The files by what the holes of their patterns say, each under its column."""
    groups: dict[tuple[tuple[str, str], ...], Group] = {}
    for name, raw in members(files, problems):
        for pattern, column in layout.aligned.items():
            if (said := file_fits(pattern, name)) is not None:
                groups.setdefault(tuple(said.items()), {})[column] = (name, _kept(raw))
                break
        else:
            expected = f"a name such as {', '.join(layout.aligned)}, as the mapping says under aligned"
            problems.add(Problem(name, None, None, "a file of another name", expected, "not_aligned"))
    yield from groups.items()


def _kept(raw: bytes | BinaryIO) -> bytes | BinaryIO:
    """Content that can still be read when the next file of its container is open."""
    if isinstance(raw, bytes) or raw.seekable():
        return raw
    return raw.read()


def _require_all(group: Group, layout: Mapping) -> None:
    for pattern, column in layout.aligned.items():
        if column not in group:
            first = next(name for name, _raw in group.values())
            raise FormatError(Problem(first, None, None, "no file beside it for " + column, pattern, "no_file"))


def _join(joined: BinaryIO, said: dict[str, str], group: Group, layout: Mapping) -> None:
    lines = [text_lines(name, raw, layout.of(name).encoding) for name, raw in group.values()]
    for number, texts in enumerate(zip_longest(*lines), start=1):
        if None in texts:
            raise FormatError(_shorter(group, texts, number))
        record = {column: text.removesuffix("\n").removesuffix("\r") for column, text in zip(group, texts, strict=True)}
        joined.write(orjson.dumps({**said, **record}) + b"\n")
    joined.seek(0)


def _shorter(group: Group, texts: tuple[str | None, ...], number: int) -> Problem:
    names = [name for name, _raw in group.values()]
    short, long = names[texts.index(None)], next(name for name, text in zip(names, texts, strict=True) if text)
    found = f"the end of the file, where {long} has another line"
    return Problem(short, number, None, found, "files with equally many lines", "line_counts")
