"""The columns of files: the field that each column gives, the values in its cells, and whether they are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from analytics.stats.declared.declaring import translatable
from annotation.readers.mapping import MOST_NOTED, Mapping
from annotation.readers.problems import (
    InvalidValue,
    Problem,
    did_you_mean,
    excerpt,
    nearest_name,
)
from annotation.readers.rows import (
    FileRow,
    RowBlock,
    as_written,
    blocks_of,
    hole_names,
    is_blank,
    key_path,
    matches_any,
    value_at,
    without_value_at,
)
from annotation.readers.words import Field, Words, joined_words

SPREAD = "attributes"
MOST_BESIDE = 200  # names


class MappedColumn(NamedTuple):
    """One mapped column that a file has: its name, where it is, the field it gives and that field's value map.

    ``inner`` is the path inside the object ``outer``, such as ``safety.scores``.
    """

    column: str
    outer: str
    inner: str | None
    field: str
    meant: dict[str, str]


class ColumnPlan(NamedTuple):
    """How a mapping applies to rows with the same columns. ``kept``: columns that are not mapped; ``opened``: the
    inner keys that are mapped out of an object; ``spread``: objects with keys that become columns. ``met``: columns
    inside objects that occurred in a row; ``beside``: examples of other keys that those objects have."""

    sources: tuple[MappedColumn, ...]
    constants: dict[str, str]
    kept: tuple[str, ...]
    opened: dict[str, frozenset[str]]
    spread: tuple[str, ...]
    met: set[str]
    beside: set[str]

    def take(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The values by field, after value maps and constants. Raises ``InvalidValue`` if two columns disagree."""
        values: dict[str, Any] = {}
        for source in self.sources:
            value = fields[source.outer]
            if source.inner is not None:
                value = self._inside(source, value)
            if source.meant:
                value = source.meant.get(as_written(value), value)
            if is_blank(values.get(source.field)):
                values[source.field] = value
            elif not is_blank(value) and value != values[source.field]:
                raise self._disagreement(source, values[source.field], value)
        for name, constant in self.constants.items():
            if is_blank(values.get(name)):
                values[name] = constant
        return values

    def _inside(self, source: MappedColumn, outer: Any) -> Any:
        inner = source.inner or ""
        if not isinstance(outer, dict):
            return None
        if key_path(outer, inner):
            self.met.add(source.column)
        elif len(self.beside) < MOST_BESIDE:
            self.beside.update(f"{source.outer}.{key}" for key in outer)
        return value_at(outer, inner)

    def rest(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The columns that give no field, unchanged."""
        rest: dict[str, Any] = {}
        for name in self.kept:
            value, taken = fields[name], self.opened.get(name)
            if taken is not None and isinstance(value, dict):
                for path in taken:
                    value = without_value_at(value, path)
            if name in self.spread and isinstance(value, dict):
                rest |= {key if key not in fields else f"{name}.{key}": part for key, part in value.items()}
            elif value != {} or fields[name] == {}:
                rest[name] = value
        return rest

    def column(self, field: str) -> str:
        """The file's own column name for a field."""
        return next((source.column for source in self.sources if source.field == field), field)

    def _disagreement(self, source: MappedColumn, earlier: Any, value: Any) -> InvalidValue:
        text = Words(
            "%(value)s in %(column)s and %(other)s in %(another)s",
            value=excerpt(earlier),
            column=self.column(source.field),
            other=excerpt(value),
            another=source.column,
        )
        expected = Words(
            "one %(field)s, or “Not stored” for the column",
            "one %(field)s, or one of the two columns under ignore in the mapping",
            field=source.field,
        )
        return InvalidValue(text, expected, "ambiguous", source.column)


class ColumnPlanner:
    """Makes the plan for each set of columns in a file, once, and passes it to ``headings``."""

    def __init__(self, mapping: Mapping, headings: ColumnUsage | None = None) -> None:
        self.mapping, self._headings = mapping, headings
        self._plans: dict[tuple[str, ...], ColumnPlan] = {}

    def plan(self, fields: dict[str, Any]) -> ColumnPlan:
        """The plan for rows with the same columns as this row, and with objects in the same columns."""
        names = tuple(fields)
        if names not in self._plans:
            plan = self._plans[names] = self._made(names)
            if self._headings is not None:
                self._headings.see(self.mapping, fields, plan)
        return self._plans[names]

    def _made(self, names: tuple[str, ...]) -> ColumnPlan:
        mapping, there = self.mapping, frozenset(names)
        ignored = {*mapping.ignore, *(name for name in names if matches_any(name, mapping.ignore))}
        located = {column: _located(column, there) for column in (*mapping.columns, *ignored)}
        sources = tuple(
            MappedColumn(column, *located[column], field, _meant(mapping, field))
            for column, field in mapping.columns.items()
            if located[column][0] in there and field != SPREAD
        )
        opened: dict[str, set[str]] = {}
        for outer, inner in located.values():
            if inner is not None:
                opened.setdefault(outer, set()).add(inner)
        whole = {source.outer for source in sources if source.inner is None} | ignored
        return ColumnPlan(
            sources=sources,
            constants=mapping.constants,
            kept=tuple(name for name in names if name not in whole),
            opened={outer: frozenset(inner) for outer, inner in opened.items()},
            met=set(),
            beside=set(),
            spread=tuple(column for column, field in mapping.columns.items() if field == SPREAD),
        )


def _meant(mapping: Mapping, field: str) -> dict[str, str]:
    """The value map of a field; the map of ``score`` is also used for ``score.CRITERION``."""
    return mapping.values.get(field) or mapping.values.get(field.partition(".")[0], {})


def _located(column: str, names: frozenset[str]) -> tuple[str, str | None]:
    """The column itself, also if its name contains a dot; otherwise the object that contains it, and its path there."""
    if column in names or "." not in column:
        return column, None
    dots = (place for place, character in enumerate(column) if character == ".")
    place = next((place for place in dots if column[:place] in names), column.index("."))
    return column[:place], column[place + 1 :]


def missing_field_problem(file: str, missing: list[str], mapping: Mapping, columns: Iterable[str]) -> Problem | None:
    """The problem of a file that gives a field by neither a column nor a constant."""
    if not missing:
        return None
    field = missing[0]
    expected: str = Words("a column for it, or a constant for all rows")
    named = next((column for column, target in mapping.columns.items() if target == field), "")
    if not named:
        return Problem(file, None, None, Words("no %(name)s", name=Field(field)), expected, "no_column")
    expected = did_you_mean(nearest_name(named, columns), expected)
    return Problem(
        file,
        None,
        None,
        Words("no column %(name)s, which is to give the %(field)s", name=excerpt(named), field=Field(field)),
        expected,
        "no_column",
    )


def _leaves(name: str, value: Any, depth: int = 3) -> Iterator[str]:
    """The name of a column, or the paths inside it if it contains objects."""
    if not isinstance(value, dict) or not value or not depth:
        yield name
        return
    for key, part in value.items():
        yield from _leaves(f"{name}.{key}", part, depth - 1)


def _meet(leaf: str, path: str) -> bool:
    """Whether two paths in an object are equal, or one is inside the other."""
    return leaf == path or leaf.startswith(f"{path}.") or path.startswith(f"{leaf}.")


@dataclass(slots=True)
class ColumnUsage:
    """How the columns of all files of an import are used."""

    taken: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    wanted: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)
    unused: dict[str, None] = field(default_factory=dict)
    kept: dict[str, None] = field(default_factory=dict)
    partly: dict[str, bool] = field(default_factory=dict)  # beside mapped paths of an object: whether it is kept
    inside: list[ColumnPlan] = field(default_factory=list)
    made_from: set[str] = field(default_factory=set)  # by steps of the shape, or out of the names of files

    def see(self, mapping: Mapping, fields: dict[str, Any], plan: ColumnPlan) -> None:
        """Note the columns of the first row of those with the same columns, and how the mapping uses them."""
        if len(self.kept) + len(self.ignored) > MOST_NOTED:
            return
        self.wanted |= mapping.columns
        self.made_from.update(name for step in mapping.shape for name in step.made_from)
        self.made_from.update(name for pattern in mapping.files for name in hole_names(pattern))
        plain = [source for source in plan.sources if source.inner is None]
        self.given.update(mapping.constants, (source.field for source in plain))
        self.taken.update(source.column for source in plain)
        if len(plain) < len(plan.sources):
            self.inside.append(plan)  # the columns inside objects are known only after their rows are read
        self.taken.update(name for name in plan.spread if name in plan.kept)
        used = {*plan.opened, *plan.spread, *(source.outer for source in plan.sources)}
        self.kept |= dict.fromkeys(name for name in plan.kept if name not in used)
        self.ignored |= dict.fromkeys(name for name in fields if name not in used and name not in plan.kept)
        inside = [f"{outer}.{path}" for outer, paths in plan.opened.items() for path in sorted(paths)]
        ignored = [path for path in inside if path not in mapping.columns and value_at(fields, path) is not None]
        self.ignored |= dict.fromkeys(ignored)
        unused = [*(name for name in fields if name not in used), *ignored]
        self.unused |= dict.fromkeys(leaf for name in unused for leaf in _leaves(name, value_at(fields, name)))
        for outer in {source.outer: None for source in plan.sources if source.inner is not None}:
            paths = [source.column for source in plan.sources if source.outer == outer]
            leaves = _leaves(outer, fields[outer])
            self.partly |= {leaf: outer in plan.kept for leaf in leaves if not any(_meet(leaf, path) for path in paths)}

    def left_out(self, *, keeps: bool) -> list[str]:
        """The columns that are not used; ``keeps``: columns that the mapping doesn't name are kept."""
        unused = [
            name
            for name in self.unused
            if name not in self.made_from and not (keeps and name.partition(".")[0] in self.kept)
        ]
        return [
            *unused,
            *(leaf for leaf, is_kept in self.partly.items() if not (keeps and is_kept) and leaf not in unused),
        ]

    def notes(self, kept: str) -> list[str]:
        """Sentences on columns that give no field; ``kept``: the template for columns that the mapping doesn't name."""
        for plan in self.inside:
            self.taken |= plan.met
            self.given.update(source.field for source in plan.sources if source.column in plan.met)
        missing = [column for column, target in self.wanted.items() if self._is_missed(column, target)]
        parts = (
            (translatable("Columns left out, as the mapping says: %(names)s."), list(self.ignored)),
            (kept, list(self.kept)),
            (
                translatable("Columns that the mapping names and no file has: %(names)s."),
                list(map(self._wanted, missing)),
            ),
        )
        return [Words(template, names=joined_words(columns)) for template, columns in parts if columns]

    def _is_missed(self, column: str, target: str) -> bool:
        # Columns of turns are in their dialogue by this point. If several columns may give a field, each may be absent.
        is_there = column in self.taken or column in self.ignored or column in self.kept or target.startswith("turn.")
        return not is_there and target not in self.given and list(self.wanted.values()).count(target) == 1

    def _wanted(self, column: str) -> str:
        near = nearest_name(column, [*self.kept, *(text for plan in self.inside for text in sorted(plan.beside))])
        return Words("%(name)s (did you mean %(near)s?)", name=column, near=near) if near else column


FACT_BATCH = 250  # rows
MOST_COLUMNS = 2_000
MOST_DISTINCT = 1_000
LONGEST = 1_000  # characters; longer texts with the same beginning count as equal
EXAMPLES = 3
MOST_FREQUENT = 5
_LONGEST_EXAMPLE = 80


@dataclass(slots=True)
class ColumnFacts:
    """One column: the ``target`` field in the mapping ("" if there is none), and the values of its cells in all rows.

    ``counts`` says how often each value occurs, for the first ``MOST_DISTINCT`` of them; lists and objects are
    not compared.
    """

    name: str
    target: str = ""
    filled: int = 0
    blank: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def distinct(self) -> int:
        return len(self.counts)

    @property
    def is_many(self) -> bool:
        """Whether there are more values than the counted ones."""
        return self.distinct >= MOST_DISTINCT

    @property
    def examples(self) -> list[str]:
        """The first few values, shortened."""
        return [value[:_LONGEST_EXAMPLE] for value in islice(self.counts, EXAMPLES)]

    @property
    def most(self) -> list[tuple[str, int]]:
        """The most frequent values, shortened, with their counts; empty if every cell has a different value."""
        repeated = [(value, count) for value, count in self.counts.most_common(MOST_FREQUENT) if count > 1]
        return [(value[:_LONGEST_EXAMPLE], count) for value, count in repeated]

    def see(self, value: Any, times: int = 1) -> None:
        """Count a value that occurs in ``times`` cells."""
        if is_blank(value):
            self.blank += times
            return
        self.filled += times
        shown = _shown(value)[:LONGEST]
        if shown in self.counts or self.distinct < MOST_DISTINCT:
            self.counts[shown] += times


class TableFacts:
    """Counts the values in the columns of rows while they are read, in bounded memory."""

    def __init__(self) -> None:
        self._columns: dict[str, ColumnFacts] = {}

    def clear(self) -> None:
        """Forget all counts, because the files are read again."""
        self._columns.clear()

    def following(self, rows: Iterator[FileRow]) -> Iterator[FileRow]:
        """Yield the rows unchanged, and count their values."""
        while some := list(islice(rows, FACT_BATCH)):
            for block in blocks_of(some, FACT_BATCH):
                self.see(block)
            yield from some

    def see(self, block: RowBlock) -> None:
        """Count the values of some rows."""
        for name, values in zip(block.columns, block.values, strict=True):
            self._see(name, values)

    def columns(self, mapping: Mapping) -> list[ColumnFacts]:
        """The columns of all files in the order in which they appear, with their fields in ``mapping``; objects are
        opened one level deep."""
        for name, facts in self._columns.items():
            facts.target = _target(name, mapping)
        return list(self._columns.values())

    def _see(self, name: str, values: Sequence[Any]) -> None:
        if set(map(type, values)) == {str}:
            facts = self._of(name)
            for value, times in Counter(values).items():
                facts.see(value, times)
            return
        for value in values:
            parts = {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
            for column, part in parts.items():
                self._of(column).see(part)

    def _of(self, name: str) -> ColumnFacts:
        if name not in self._columns:
            if len(self._columns) >= MOST_COLUMNS:
                return ColumnFacts(name)  # counted, and not kept
            self._columns[name] = ColumnFacts(name)
        return self._columns[name]


def _target(column: str, mapping: Mapping) -> str:
    """The field that a column gives; each column inside a spread object gives an attribute of its own."""
    outer = column.partition(".")[0]
    if column not in mapping.columns and (matches_any(column, mapping.ignore) or outer in mapping.ignore):
        return "ignore"
    by_outer = mapping.columns.get(outer, "")
    return mapping.columns.get(column) or ("" if by_outer == SPREAD and outer != column else by_outer)


MOST_ENTRIES = 20


def _entry_shown(entry: Any) -> str:
    """An entry of a list as people read it: ``annotator: A1, value: 3``."""
    if isinstance(entry, dict):
        parts = (f"{key}: {as_written(part)}" for key, part in entry.items() if not isinstance(part, dict | list))
        return ", ".join(part[:_LONGEST_EXAMPLE] for part in parts) or "{…}"
    return "[…]" if isinstance(entry, list) else as_written(entry)


def _shown(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        return "; ".join(map(_entry_shown, value[:MOST_ENTRIES])) + (
            f" … {len(value):,} entries" if len(value) > MOST_ENTRIES else ""
        )
    if isinstance(value, list):
        return f"[{len(value)} entries]"
    return "{…}" if isinstance(value, dict) else as_written(value)
