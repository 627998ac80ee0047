"""Rows that are single turns -> one record per dialogue: transcripts as spreadsheets and chat logs keep them.

A mapping says so by fields that begin with ``turn.``: ``turn.speaker``, ``turn.text``, ``turn.name``, ``turn.number``
(the order), and any other name for a column that differs from turn to turn and is not kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, islice
from typing import Any, NamedTuple

from annotation.readers.fields import as_number, as_text, written
from annotation.readers.mapping import Mapping
from annotation.readers.paths import found, without
from annotation.readers.patterns import fits
from annotation.readers.problems import Problem, Problems, Unfit, excerpt
from annotation.readers.rows import Row

PREFIX = "turn."
NUMBER = "number"
COLUMN = "(turns)"
"""The column that the gathered turns stand in."""
MOST_TURNS = 10_000


class _Layout(NamedTuple):
    """The column of the id, what each column of a turn is, the value maps of those, and the columns that may differ."""

    key: str
    parts: dict[str, str]
    values: dict[str, dict[str, str]]
    ignored: tuple[str, ...]


def gathered(name: str, rows: Iterator[Row], mapping: Mapping, problems: Problems) -> tuple[Iterator[Row], Mapping]:
    """The rows of one file with the turns of a dialogue put together, and the mapping that reads those.

    What a mapping without fields of turns is about stays as it is. All rows of a dialogue follow each other and agree
    in everything that is not of the turn; a dialogue whose rows do not is refused as a whole.
    """
    parts = {column: field.removeprefix(PREFIX) for column, field in mapping.columns.items() if _is_part(field)}
    if not parts:
        return rows, mapping
    values = {field.removeprefix(PREFIX): meant for field, meant in mapping.values.items() if _is_part(field)}
    key = next((column for column, field in mapping.columns.items() if field == "id"), None)
    if key is None:
        expected = "a column for the id, which the rows of one dialogue have in common"
        problems.add(Problem(name, None, None, "turns without an id of their dialogue", expected, "no_column"))
        next(rows, None)  # so that whoever counts the columns has seen them
        return iter(()), mapping
    layout = _Layout(key, parts, values, mapping.ignore)
    columns = {column: field for column, field in mapping.columns.items() if column not in parts}
    return _dialogues(name, rows, layout, problems), replace(mapping, columns={**columns, COLUMN: "turns"})


def _is_part(field: str) -> bool:
    return field.startswith(PREFIX)


def _dialogues(name: str, rows: Iterator[Row], layout: _Layout, problems: Problems) -> Iterator[Row]:
    seen: set[int] = set()
    columns = {f"{PREFIX}{part}": column for column, part in layout.parts.items()}
    turns = dialogues = 0
    for said, group in groupby(rows, key=lambda row: written(found(row.fields, layout.key))):
        first, *others = islice(group, MOST_TURNS + 1)
        try:
            _require_new(said, seen, layout.key)
            yield _dialogue([first, *others], layout)
        except Unfit as fault:
            problems.refuse(fault.at(name, first.line, columns.get(fault.field)))
        turns, dialogues = turns + 1 + len(others), dialogues + 1
    problems.note(name, f"{turns:,} rows are the turns of {dialogues:,} dialogues.")


def _require_new(said: str, seen: set[int], key: str) -> None:
    """Ids are remembered as their hashes, which takes a bounded few bytes each."""
    if not said:
        raise Unfit("nothing", "the id of the dialogue in each of its rows", "no_id", key)
    if hash(said) in seen:
        expected = f"all rows of a dialogue below each other: sort the file by {key}"
        raise Unfit(f"rows of {excerpt(said)} once more, after those of others", expected, "scattered", key)
    seen.add(hash(said))


def _dialogue(rows: list[Row], layout: _Layout) -> Row:
    if len(rows) > MOST_TURNS:
        raise Unfit(f"more than {MOST_TURNS:,} rows", "the turns of one dialogue", "too_many_turns", layout.key)
    shared = rows[0].fields
    for column in layout.parts:
        shared = without(shared, column)
    for row in rows[1:]:
        _require_same(rows[0], row, shared, layout)
    turns = [{part: said for part, said in turn.items() if part != NUMBER} for turn in _in_order(rows, layout)]
    return Row(rows[0].line, {**shared, COLUMN: turns})


def _require_same(first: Row, other: Row, shared: dict[str, Any], layout: _Layout) -> None:
    for column, value in shared.items():
        differs = other.fields.get(column) != value
        if differs and not fits(column, layout.ignored):
            there = f"{excerpt(other.fields.get(column))} on line {other.line}"
            expected = f"one {column} in all rows of a dialogue; one that differs is ignored, or given {PREFIX}{column}"
            raise Unfit(f"{excerpt(value)}, but {there}", expected, "mixed_dialogue", column)


def _in_order(rows: list[Row], layout: _Layout) -> list[dict[str, Any]]:
    turns = [_turn(row, layout) for row in rows]
    column = next((column for column, part in layout.parts.items() if part == NUMBER), None)
    if column is None:
        return turns
    places = [as_number(turn[NUMBER], f"{PREFIX}{NUMBER}") for turn in turns]
    if twice := [place for place, count in Counter(places).items() if count > 1]:
        raise Unfit(
            f"turn {written(twice[0])} more than once", "a number of its own for each turn", "turn_twice", column
        )
    return [turn for _, turn in sorted(zip(places, turns, strict=True), key=lambda each: each[0])]


def _turn(row: Row, layout: _Layout) -> dict[str, Any]:
    """A turn by its parts; what a spreadsheet took for a number is the text it shows."""
    turn: dict[str, Any] = {}
    for column, part in layout.parts.items():
        value = found(row.fields, column)
        value = layout.values.get(part, {}).get(written(value), value)
        turn[part] = value if part == NUMBER else as_text(value, f"{PREFIX}{part}")
    return turn
