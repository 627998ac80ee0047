"""The shape of a mapping: its steps by their names, and those steps that look at several rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from annotation.readers.documents import Node
from annotation.readers.problems import FormatError, InvalidValue, Problems, excerpt
from annotation.readers.rows import FileRow, as_written, case_folded, matches_any, value_at
from annotation.readers.steps import (
    COUNT,
    NAMES,
    WORD,
    WORDS,
    Compose,
    Digest,
    Entries,
    Explode,
    Extract,
    Fields,
    First,
    Flatten,
    Keep,
    LookUp,
    Match,
    Melt,
    Pair,
    Parse,
    Require,
    ShapeStep,
    Single,
    Split,
    Transcript,
    Transpose,
    Where,
    as_list,
)


@dataclass(frozen=True)
class Number(ShapeStep):
    """``number: column``: the records numbered as they come, from ``start``; with ``within`` each value of that column
    is numbered by itself."""

    number: str = field(metadata=WORD)
    within: str = field(default="", metadata=WORD)
    start: int = field(default=1, metadata=COUNT)

    def rows(self, name: str, rows: Iterator[FileRow], problems: Problems) -> Iterator[FileRow]:
        next_ones: dict[str, int] = {}
        for row in rows:
            group = as_written(value_at(row.fields, self.within)) if self.within else ""
            next_ones[group] = next_ones.get(group, self.start - 1) + 1
            yield row.with_fields({**row.fields, self.number: next_ones[group]})


@dataclass(frozen=True)
class Every(ShapeStep):
    """``every: 3``: so many rows in a row are about one thing. They must agree in the columns ``same``; ``position``
    and ``group`` name columns for the place in the run and the number of the run, from 1."""

    every: int = field(metadata=COUNT)
    same: tuple[str, ...] = field(default=(), metadata=NAMES)
    position: str = field(default="position", metadata=WORD)
    group: str = field(default="group", metadata=WORD)

    def rows(self, name: str, rows: Iterator[FileRow], problems: Problems) -> Iterator[FileRow]:
        run: list[FileRow] = []
        number = 0
        for row in rows:
            run.append(row)
            if len(run) < self.every:
                continue
            number += 1
            yield from self._run(name, run, number, problems)
            run = []
        short = InvalidValue(f"{len(run)} rows at the end", f"{self.every} rows for each of them", "short_run")
        for row in run:
            problems.refuse(short.at(name, row.line))

    def _run(self, name: str, run: list[FileRow], number: int, problems: Problems) -> Iterator[FileRow]:
        if fault := self._fault(run):
            for row in run:
                problems.refuse(fault.at(name, row.line))
            return
        for place, row in enumerate(run, start=1):
            yield row.with_fields({**row.fields, self.position: place, self.group: number})

    def _fault(self, run: list[FileRow]) -> InvalidValue | None:
        first = run[0]
        for row in run[1:]:
            for column in self.same:
                value, other = value_at(first.fields, column), value_at(row.fields, column)
                if value != other:
                    text = f"{excerpt(other)} on line {row.line} where line {first.line} has {excerpt(value)}"
                    return InvalidValue(text, f"one {column} in {self.every} rows in a row", "mixed_run", column)
        return None


@dataclass(frozen=True)
class Total(ShapeStep):
    """``total: score``: one row for all rows that are equal in the columns ``by``, with the sum of the numbers in the
    column ``of``. ``weights`` gives a number for each text in it, `*` standing for anything, the first that fits.

    The texts in the columns ``join`` of rows that add something become one, each on a line of its own; the lists in
    the columns ``collect`` of all rows become one list; the other columns are left out. The rows come when the file
    has been read, in the order in which their first ones stand there.
    """

    total: str = field(metadata=WORD)
    of: str = field(metadata=WORD)
    by: tuple[str, ...] = field(metadata=NAMES)
    weights: dict[str, str] = field(default_factory=dict, metadata=WORDS)
    join: tuple[str, ...] = field(default=(), metadata=NAMES)
    collect: tuple[str, ...] = field(default=(), metadata=NAMES)

    def rows(self, name: str, rows: Iterator[FileRow], problems: Problems) -> Iterator[FileRow]:
        groups: dict[tuple[str, ...], _Group] = {}
        for row in rows:
            key = tuple(as_written(value_at(row.fields, column)) for column in self.by)
            group = groups.setdefault(key, _Group(row.with_fields({})))
            try:
                weight = self._weight(value_at(row.fields, self.of))
            except InvalidValue as fault:
                problems.refuse(fault.at(name, row.line))
                group.is_whole = False
                continue
            group.score += weight
            for column in self.collect:
                group.lists.setdefault(column, []).extend(as_list(value_at(row.fields, column), column))
            if weight:
                group.texts.append([as_written(value_at(row.fields, column)) for column in self.join])
        for key, group in groups.items():
            if group.is_whole:
                texts = ("\n".join(filter(None, column)) for column in zip(*group.texts, strict=True))
                joined = dict.fromkeys(self.join, "") | dict(zip(self.join, texts, strict=False))
                yield group.first.with_fields(
                    dict(zip(self.by, key, strict=True)) | {self.total: float(group.score)} | joined | group.lists
                )

    def _weight(self, value: object) -> Decimal:
        """The number that a row adds; a blank adds nothing. Raises ``InvalidValue``."""
        text = as_written(value)
        if self.weights:
            words = (words for words in self.weights if matches_any(case_folded(text), [case_folded(words)]))
            if (fitting := next(words, None)) is None:
                raise InvalidValue(excerpt(text), f"one of {', '.join(self.weights)} in {self.of}", "weight", self.of)
            text = self.weights[fitting]
        if text and re.fullmatch(r"[+-]?\d{1,15}(\.\d{1,15})?", text, re.ASCII) is None:
            raise InvalidValue(excerpt(text), f"a number in {self.of}", "not_a_number", self.of)
        return Decimal(text or 0)


@dataclass(slots=True)
class _Group:
    """The rows that become one: the place of the first, their sum, and the texts of each that adds something."""

    first: FileRow
    score: Decimal = Decimal(0)
    texts: list[list[str]] = field(default_factory=list)
    lists: dict[str, list[Any]] = field(default_factory=dict)
    is_whole: bool = True


@dataclass(frozen=True)
class Spans(ShapeStep):
    """``spans: evidence``: a new column with the marked texts of the columns ``of``, each with the name of its field.

    A mark begins with ``open`` and ends with ``close``. Offsets count the text without any of these, as `replace` would
    store it. ``label`` and ``severity`` are columns; both ends of a mark without the other are none.
    """

    spans: str = field(metadata=WORD)
    of: dict[str, str] = field(metadata=WORDS)
    open: str = field(default="<v>", metadata=WORD)
    close: str = field(default="</v>", metadata=WORD)
    label: str = field(default="", metadata=WORD)
    severity: str = field(default="", metadata=WORD)

    def reshape(self, record: Fields) -> Iterable[Fields]:
        named = {"label": self.label, "severity": self.severity}
        beside = {name: as_written(value_at(record, column)) for name, column in named.items() if column}
        found = [
            {"field": part, "start": start, "end": end, "quote": quote, **beside}
            for column, part in self.of.items()
            for start, end, quote in self._marked(as_written(value_at(record, column)))
        ]
        yield {**record, self.spans: found}

    @property
    def made_from(self) -> tuple[str, ...]:
        return (*self.of, *filter(None, (self.label, self.severity)))

    def _marked(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and text of each mark, counted without the marks."""
        plain, begins = "", None
        for piece in re.split(f"({re.escape(self.open)}|{re.escape(self.close)})", text):
            if piece == self.open:
                begins = len(plain)
            elif piece == self.close:
                if begins is not None and begins < len(plain):
                    yield begins, len(plain), plain[begins:]
                begins = None
            else:
                plain += piece


KINDS: tuple[type[ShapeStep], ...] = (
    *(Keep, Parse, Split, Single, Transpose, Flatten, Explode, Entries, Pair, LookUp, Match, First, Melt),
    *(Extract, Compose, Number, Every, Total, Spans, Digest, Transcript, Where, Require),
)
BY_NAME: dict[str, type[ShapeStep]] = {fields(kind)[0].name: kind for kind in KINDS}


def steps_of(node: Node) -> tuple[ShapeStep, ...]:
    """The steps of a mapping. Raises ``FormatError``."""
    if not isinstance(node.value, list):
        raise FormatError(node.problem(f"a list of steps: {', '.join(BY_NAME)}", "shape"))
    return tuple(_step(child) for child in node.value)


def _step(node: Node) -> ShapeStep:
    members = dict(node.members()) if isinstance(node.value, dict) else {}
    kinds = [name for name in members if name in BY_NAME]
    if len(kinds) != 1:
        raise FormatError(node.problem(f"one step of {', '.join(BY_NAME)}", "shape"))
    kind = BY_NAME[kinds[0]]
    known = {option.name: option for option in fields(kind)}
    for name, child in members.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
            expected = f"did you mean {near[0]}?" if near else f"one of {', '.join(known)}"
            raise FormatError(child.problem(expected, "unknown_key", f"the key {excerpt(name)} in {kinds[0]}"))
    return kind(**{name: known[name].metadata["reader"](child) for name, child in members.items()})
