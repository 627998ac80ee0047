"""A row of a file, through a mapping, to the values of our fields."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from accounts.languages import canonical
from annotation.readers.nearness import hint, nearest
from annotation.readers.paths import found, located, without
from annotation.readers.patterns import fits
from annotation.readers.problems import Problem, Unfit, excerpt

if TYPE_CHECKING:
    from annotation.readers.headings import Headings
    from annotation.readers.mapping import Mapping  # whose steps read values with what is here

# What a spreadsheet makes of a long number: 2.9E+15.
_MANGLED = re.compile(r"[+-]?[0-9](?:[.,][0-9]+)?[Ee][+-]?[0-9]+")
# What it makes of an identifier such as 3-1: 1-Mar, Mar-01.
_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_DATED = re.compile(rf"[0-9]{{1,2}}-(?:{_MONTH})|(?:{_MONTH})-[0-9]{{2}}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,300}(?:\.[0-9]*)?")
SPREAD = "attributes"
MOST_BESIDE = 200  # names


class Source(NamedTuple):
    """One mapped column that a file has: its name, where it is, the field it gives and that field's value map.

    ``inner`` is the path inside the object ``outer``, such as ``safety.scores``.
    """

    column: str
    outer: str
    inner: str | None
    field: str
    meant: dict[str, str]


class Plan(NamedTuple):
    """What a mapping means for rows with the same columns: ``kept`` are those that nothing is said about, ``opened``
    the inner keys taken out of an object, ``spread`` the objects whose keys become columns of their own. ``met`` are
    the columns inside objects that some row has had, ``beside`` some of what those objects have instead."""

    sources: tuple[Source, ...]
    constants: dict[str, str]
    kept: tuple[str, ...]
    opened: dict[str, frozenset[str]]
    spread: tuple[str, ...]
    met: set[str]
    beside: set[str]

    def take(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The values by field, value maps and constants applied. Raises ``Unfit`` when two columns disagree."""
        values: dict[str, Any] = {}
        for source in self.sources:
            value = fields[source.outer]
            if source.inner is not None:
                value = self._inside(source, value)
            if source.meant:
                value = source.meant.get(written(value), value)
            if is_blank(values.get(source.field)):
                values[source.field] = value
            elif not is_blank(value) and value != values[source.field]:
                raise self._disagreement(source, values[source.field], value)
        for field, constant in self.constants.items():
            if is_blank(values.get(field)):
                values[field] = constant
        return values

    def _inside(self, source: Source, outer: Any) -> Any:
        inner = source.inner or ""
        if not isinstance(outer, dict):
            return None
        if located(outer, inner):
            self.met.add(source.column)
        elif len(self.beside) < MOST_BESIDE:
            self.beside.update(f"{source.outer}.{key}" for key in outer)
        return found(outer, inner)

    def rest(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The columns that no field takes, as they are."""
        rest: dict[str, Any] = {}
        for name in self.kept:
            value, taken = fields[name], self.opened.get(name)
            if taken is not None and isinstance(value, dict):
                for path in taken:
                    value = without(value, path)
            if name in self.spread and isinstance(value, dict):
                rest |= {key if key not in fields else f"{name}.{key}": part for key, part in value.items()}
            elif value != {} or fields[name] == {}:
                rest[name] = value
        return rest

    def column(self, field: str) -> str:
        """What the owner of the file calls a field."""
        return next((source.column for source in self.sources if source.field == field), field)

    def _disagreement(self, source: Source, earlier: Any, value: Any) -> Unfit:
        found = f"{excerpt(earlier)} in {self.column(source.field)} and {excerpt(value)} in {source.column}"
        expected = f"one {source.field}, or one of the two columns under ignore in the mapping"
        return Unfit(found, expected, "ambiguous", source.column)


class Planner:
    """Makes the plan for each set of columns that a file's rows have, once, and tells ``headings`` of it."""

    def __init__(self, mapping: Mapping, headings: Headings | None = None) -> None:
        self.mapping, self._headings = mapping, headings
        self._plans: dict[tuple[str, ...], Plan] = {}

    def plan(self, fields: dict[str, Any]) -> Plan:
        """The plan for rows with the columns of this one; objects are looked into, so they count by being objects."""
        names = tuple(fields)
        if names not in self._plans:
            plan = self._plans[names] = self._made(names)
            if self._headings is not None:
                self._headings.see(self.mapping, fields, plan)
        return self._plans[names]

    def _made(self, names: tuple[str, ...]) -> Plan:
        mapping, there = self.mapping, frozenset(names)
        ignored = {*mapping.ignore, *(name for name in names if fits(name, mapping.ignore))}
        located = {column: _located(column, there) for column in (*mapping.columns, *ignored)}
        sources = tuple(
            Source(column, *located[column], field, _meant(mapping, field))
            for column, field in mapping.columns.items()
            if located[column][0] in there and field != SPREAD
        )
        opened: dict[str, set[str]] = {}
        for outer, inner in located.values():
            if inner is not None:
                opened.setdefault(outer, set()).add(inner)
        whole = {source.outer for source in sources if source.inner is None} | ignored
        return Plan(
            sources=sources,
            constants=mapping.constants,
            kept=tuple(name for name in names if name not in whole),
            opened={outer: frozenset(inner) for outer, inner in opened.items()},
            met=set(),
            beside=set(),
            spread=tuple(column for column, field in mapping.columns.items() if field == SPREAD),
        )


def _meant(mapping: Mapping, field: str) -> dict[str, str]:
    """The value map of a field; that of ``score`` also holds for ``score.CRITERION``."""
    return mapping.values.get(field) or mapping.values.get(field.partition(".")[0], {})


def _located(column: str, names: frozenset[str]) -> tuple[str, str | None]:
    """The column itself, also when its name holds a dot, or else the object it is in and its path there."""
    if column in names or "." not in column:
        return column, None
    dots = (place for place, character in enumerate(column) if character == ".")
    place = next((place for place in dots if column[:place] in names), column.index("."))
    return column[:place], column[place + 1 :]


def written(value: Any) -> str:
    """A value as people write it in a value map: 2 and 2.0 are ``2``, true is ``true``."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def folded(name: Any) -> str:
    """A name as it is compared: upper and lower case alike, and so is the space between its words."""
    return " ".join(written(name).casefold().split())


def is_blank(value: Any) -> bool:
    """Nothing, or nothing but white space."""
    return value is None or (isinstance(value, str) and not value.strip())


def as_key(value: Any, field: str, *, is_trusted: bool = False) -> str:
    """An identifier as text. What a spreadsheet has turned into a rounded number or a date is refused, unless somebody
    vouches for it (``is_trusted``)."""
    if isinstance(value, str):
        key = value.strip()
        if is_trusted and key:
            return key
        if _MANGLED.fullmatch(key):
            expected = f"the whole {field}: a spreadsheet has rounded it (trust_ids: on in the mapping vouches for it)"
            raise Unfit(excerpt(key), expected, "mangled_id", field=field)
        if _DATED.fullmatch(key) and field != "criterion":
            expected = f"the {field} as it was: a spreadsheet has made a date of it (trust_ids: on vouches for it)"
            raise Unfit(excerpt(key), expected, "mangled_id", field=field)
        if key:
            return key
    elif isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    elif isinstance(value, float):
        raise Unfit(excerpt(value), f"the whole {field} as text or a whole number", "mangled_id", field=field)
    if is_blank(value):
        raise Unfit("nothing", f"the {field}", f"no_{field}", field=field)
    raise Unfit(excerpt(value), f"the {field} as text", "shape", field=field)


def as_text(value: Any, field: str) -> str:
    """Text, untouched; a number is written out."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise Unfit(excerpt(value), f"text for {field}", "shape", field=field)


def as_number(value: Any, field: str) -> float:
    """A number written out in digits with a point: no exponent, no decimal comma, no NaN."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and _NUMBER.fullmatch(text := value.strip()):
        return float(text)
    hint = f"a number for {field}; a word can be given a value in the mapping, as in values: {{{field}: {{Yes: 1}}}}"
    raise Unfit(excerpt(value), hint, "not_a_number", field=field)


def as_language(value: Any) -> str:
    """A language tag in its one spelling."""
    if is_blank(value):
        raise Unfit("nothing", "a language tag such as et or pt-BR", "no_language", field="language")
    try:
        return canonical(str(value))
    except ValueError as error:
        raise Unfit(excerpt(value), f"a language tag ({error})", "language", field="language") from None


def first_of(entry: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The value under the first of some names that an object has."""
    return next((entry[name] for name in names if name in entry), None)


def lacking(file: str, missing: list[str], mapping: Mapping, columns: Iterable[str]) -> Problem | None:
    """The problem of a file that gives a field neither by a column nor by a constant."""
    if not missing:
        return None
    field = missing[0]
    expected = "a column for it, or a constant for all rows"
    named = next((column for column, target in mapping.columns.items() if target == field), "")
    if not named:
        return Problem(file, None, None, f"no {field}", expected, "no_column")
    expected = f"{hint(nearest(named, columns))}{expected}"
    return Problem(file, None, None, f"no column {excerpt(named)}, which is to give the {field}", expected, "no_column")
