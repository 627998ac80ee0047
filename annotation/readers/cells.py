"""Where the answers stand in rows with the same columns, and those answers as columns of their own.

Rows are read in batches, and most of what is done to a batch is done to one column at a time: a loop in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from annotation.readers.fields import Plan, as_text, first_of, written
from annotation.readers.guessing import RATER_KEYS, RATIONALE_KEYS, SCORE_KEYS
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Unfit, excerpt
from annotation.readers.rows import Block

Columns = dict[str, Sequence[Any]]
"""Values by field, one for each row or for each answer."""


class Wide(NamedTuple):
    """A column that holds the answers on one criterion, the field it gives, and the field of its rationale."""

    criterion: str
    field: str
    rationale: str
    column: str


class Listed(NamedTuple):
    """A column that holds lists of {rater, score} on one criterion, and the field it gives."""

    criterion: str
    field: str
    column: str


class Places(NamedTuple):
    """Where the answers of rows with the same columns stand: in one ``long`` column whose criterion is said beside it,
    in a column per criterion (``wide``), and in ``lists``.

    With ``may_be_none`` a record without any is no fault: an item that nobody has rated yet.
    """

    plan: Plan
    long: str | None
    wide: tuple[Wide, ...]
    lists: tuple[Listed, ...]
    may_be_none: bool

    @classmethod
    def of(cls, plan: Plan, mapping: Mapping) -> Places:
        given = tuple(dict.fromkeys((*plan.constants, *(source.field for source in plan.sources))))
        mapped = (*given, *mapping.columns.values())
        # A JSON record may leave out the key of its score, which is then missing; one without ratings holds no rating.
        is_long = "score" in given or not any(field.startswith(("score.", "ratings.")) for field in mapped)
        return cls(
            plan=plan,
            long=plan.column("score") if is_long else None,
            wide=tuple(
                Wide(criterion, field, f"rationale.{criterion}", plan.column(field))
                for field, criterion in _named(given, "score")
            ),
            lists=tuple(Listed(criterion, field, plan.column(field)) for field, criterion in _named(given, "ratings")),
            may_be_none=any(field.startswith("ratings.") for field in mapping.columns.values()),
        )

    def answers(self, rows: Block, who: str, mapping: Mapping) -> Columns:
        """The answers in some rows, or of one row where there are lists. Raises ``Unfit`` when a row is no good."""
        values = _values(self.plan, rows)
        values["line"] = rows.lines
        answers = self._beside(values, rows.size)
        for place in self.lists:
            (entries,) = values[place.field]
            if entries:
                answers = _joined(answers, _listed(entries, place, values, who, mapping))
        if not answers["line"] and not self.may_be_none:
            raise Unfit("a record without a score", "a score on at least one criterion", "no_score")
        return answers

    def _beside(self, values: Columns, count: int) -> Columns:
        """The answers that stand in columns, those of a row one after the other."""
        shared = _texts(values.get("rationale"), count)
        parts: list[Columns] = []
        if self.long is not None:
            said = {name: values.get(name, [None] * count) for name in ("criterion", "score")}
            parts.append({**said, "rationale": shared, "column": [self.long] * count})
        for place in self.wide:
            own = _texts(values.get(place.rationale), count)
            parts.append(
                {
                    "criterion": [place.criterion] * count,
                    "score": values[place.field],
                    "rationale": [mine or ours for mine, ours in zip(own, shared, strict=True)],
                    "column": [place.column] * count,
                }
            )
        if len(parts) == 1:
            return {**values, **parts[0]}
        whole: list[Columns] = [{**values, **part} for part in parts]
        return {name: _in_turn([part[name] for part in whole]) for name in {**values, **_PARTS}}


_PARTS = dict.fromkeys(("criterion", "score", "rationale", "column"))


def _named(fields: tuple[str, ...], kind: str) -> list[tuple[str, str]]:
    """The fields of a kind that name a criterion, with that criterion."""
    parted = [(field, *field.partition(".")) for field in fields]
    return [(field, criterion) for field, before, _dot, criterion in parted if before == kind and criterion]


def _values(plan: Plan, rows: Block) -> Columns:
    """The values of some rows by field, as ``plan.take`` gives them for each."""
    fields = [source.field for source in plan.sources]
    if len(set(fields)) == len(fields) and all(source.inner is None for source in plan.sources):
        values: Columns = {field: [value] * rows.size for field, value in plan.constants.items()}
        for source in plan.sources:
            column = rows.column(source.outer)
            meant = source.meant
            values[source.field] = [meant.get(written(value), value) for value in column] if meant else column
        return values
    taken = [plan.take(row.fields) for row in rows.rows()]
    return {field: [row[field] for row in taken] for field in taken[0]}


def _texts(column: Sequence[Any] | None, count: int) -> Sequence[str]:
    if column is None:
        return [""] * count
    return [value if type(value) is str else as_text(value, "rationale") for value in column]


def _in_turn(columns: list[Sequence[Any]]) -> Sequence[Any]:
    return list(chain.from_iterable(zip(*columns, strict=True)))


def _joined(one: Columns, other: Columns) -> Columns:
    return {name: [*one.get(name, ()), *other[name]] for name in other}


def _listed(entries: Any, place: Listed, values: Columns, who: str, mapping: Mapping) -> Columns:
    """The answers in a list of {rater, score, rationale}, with what their row says beside."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Unfit(excerpt(entries), "a list of ratings, each with its rater and score", "shape", place.column)
    raters = [_meant(first_of(entry, RATER_KEYS), "rater", mapping) for entry in entries]
    of_row = values.get(who, [None])[0]
    return {
        **{field: [*column] * len(entries) for field, column in values.items()},
        who: [of_row if rater is None else rater for rater in raters],
        "criterion": [place.criterion] * len(entries),
        "score": [_meant(first_of(entry, SCORE_KEYS), "score", mapping) for entry in entries],
        "rationale": [as_text(first_of(entry, RATIONALE_KEYS), "rationale") for entry in entries],
        "column": [f"{place.column}[{number}]" for number in range(1, len(entries) + 1)],
    }


def _meant(value: Any, field: str, mapping: Mapping) -> Any:
    return mapping.values.get(field, {}).get(written(value), value)
