"""The columns of some files: which were taken, left out or looked for in vain, and which hold e-mail addresses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from annotation.readers.fields import Plan
from annotation.readers.mapping import Mapping
from annotation.readers.nearness import nearest
from annotation.readers.paths import found
from annotation.readers.patterns import fits
from annotation.readers.problems import Problems, excerpt
from annotation.readers.report import named
from annotation.readers.rows import Row

LOOKED_AT = 50
MOST = 2_000
_EMAIL = re.compile(r"[^\s@<>(),;:\"]+@[^\s@<>(),;:\"]+\.[^\W\d_]{2,}")


def headed(name: str, rows: Iterator[Row], layout: Mapping, problems: Problems) -> Iterator[Row]:
    """The rows as they are; once they are under way, a note on the columns called by an e-mail address."""
    columns: dict[str, None] = {}
    for row in islice(rows, LOOKED_AT):
        if len(columns) < MOST:
            columns.update(dict.fromkeys(columns_of([row.fields])))
        yield row
    note_addresses(name, columns, layout, problems)
    yield from rows


def note_addresses(name: str, columns: Iterable[str], layout: Mapping, problems: Problems) -> None:
    """Note the columns that are called by somebody's e-mail address."""
    if called := [column for column in _with_addresses(columns) if not _is_settled(column, layout)]:
        problems.note(name, _about_columns(called))


def columns_of(rows: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The columns of some rows in the order in which they appear, objects opened one level deep."""
    columns: dict[str, None] = {}
    for fields in rows:
        for name, value in fields.items():
            inner = [f"{name}.{key}" for key in value] if isinstance(value, dict) else [name]
            columns.update(dict.fromkeys(inner))
    return tuple(columns)


def _address(text: str) -> str:
    """The e-mail address in a text, or ""."""
    match = _EMAIL.search(text)
    return match[0] if match else ""


def _with_addresses(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(_address, texts)))


def _is_settled(column: str, layout: Mapping) -> bool:
    """Whether the mapping leaves the column out, maps it to a field, or gives the person a code."""
    mapped = layout.columns.get(column)
    coded = any(person and person in column for person in layout.values.get("rater", {}))
    return coded or fits(column, layout.ignore) or (mapped is not None and not _address(mapped))


def _about_columns(columns: list[str]) -> str:
    first = json.dumps(columns[0], ensure_ascii=False)
    sentence = f"the names of these columns are e-mail addresses: {named(map(excerpt, columns))}."
    codes = f"Before you store them, give each person a code in the mapping, as in {_code(_address(columns[0]))}"
    return f"{sentence} {codes}, map the column to another field, or leave it out, as in ignore: [{first}]."


def _code(person: str) -> str:
    return f"values: {{rater: {{{json.dumps(person, ensure_ascii=False)}: rater-1}}}}"


def about_raters(raters: Iterable[str]) -> list[str]:
    """A note on raters who are called by their e-mail addresses, if there are any."""
    called = _with_addresses(raters)
    sentence = f"These raters are called by e-mail addresses: {named(map(excerpt, called))}."
    why = "What raters are called is shown here and stands in exports: give each a code in the mapping, as in"
    return [f"{sentence} {why} {_code(called[0])}."] if called else []


def _leaves(name: str, value: Any, depth: int = 3) -> Iterator[str]:
    """A column, or those inside it where it holds objects."""
    if not isinstance(value, dict) or not value or not depth:
        yield name
        return
    for key, part in value.items():
        yield from _leaves(f"{name}.{key}", part, depth - 1)


@dataclass(slots=True)
class Headings:
    """What became of the columns of all files of an import."""

    taken: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    wanted: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)
    unused: dict[str, None] = field(default_factory=dict)
    kept: dict[str, None] = field(default_factory=dict)
    inside: list[Plan] = field(default_factory=list)

    def see(self, mapping: Mapping, fields: dict[str, Any], plan: Plan) -> None:
        """Look at the first of the rows that have the same columns, and at what the mapping makes of them."""
        if len(self.kept) + len(self.ignored) > MOST:
            return
        self.wanted |= mapping.columns
        plain = [source for source in plan.sources if source.inner is None]
        self.given.update(mapping.constants, (source.field for source in plain))
        self.taken.update(source.column for source in plain)
        if len(plain) < len(plan.sources):
            self.inside.append(plan)  # what stands inside objects is known once their rows are read
        self.taken.update(name for name in plan.spread if name in plan.kept)
        used = {*plan.opened, *plan.spread, *(source.outer for source in plan.sources)}
        self.kept |= dict.fromkeys(name for name in plan.kept if name not in used)
        self.ignored |= dict.fromkeys(name for name in fields if name not in used and name not in plan.kept)
        inside = [f"{outer}.{path}" for outer, paths in plan.opened.items() for path in sorted(paths)]
        ignored = [path for path in inside if path not in mapping.columns and found(fields, path) is not None]
        self.ignored |= dict.fromkeys(ignored)
        unused = [*(name for name in fields if name not in used), *ignored]
        self.unused |= dict.fromkeys(leaf for name in unused for leaf in _leaves(name, found(fields, name)))

    def left_out(self, *, keeps: bool) -> list[str]:
        """The columns that nothing is made of; ``keeps`` says that those the mapping doesn't name are kept."""
        return [name for name in self.unused if not (keeps and name.partition(".")[0] in self.kept)]

    def notes(self, kept: str) -> list[str]:
        """Sentences on columns that give no field; ``kept`` says what becomes of those the mapping doesn't name."""
        for plan in self.inside:
            self.taken |= plan.met
            self.given.update(source.field for source in plan.sources if source.column in plan.met)
        missing = [column for column, target in self.wanted.items() if self._is_missed(column, target)]
        parts = (
            ("Columns left out, as the mapping says", list(self.ignored)),
            (kept, list(self.kept)),
            ("Columns that the mapping names and no file has", [self._wanted(column) for column in missing]),
        )
        return [f"{words}: {', '.join(columns)}." for words, columns in parts if columns]

    def _is_missed(self, column: str, target: str) -> bool:
        # The columns of turns have gone into their dialogue; of several that may give a field, none need be there.
        is_there = column in self.taken or column in self.ignored or column in self.kept or target.startswith("turn.")
        return not is_there and target not in self.given and list(self.wanted.values()).count(target) == 1

    def _wanted(self, column: str) -> str:
        near = nearest(column, [*self.kept, *(each for plan in self.inside for each in sorted(plan.beside))])
        return f"{column} (did you mean {near}?)" if near else column
