"""What ratings and verdicts share: a score, N/A or nothing, and one answer per key however often it is said."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, BinaryIO, Generic, NamedTuple, Protocol, TypeVar

from annotation.formats.fields import Plan, Planner, as_number, as_text, first_of, is_blank, lacking, written
from annotation.formats.guessing import RATER_KEYS, RATIONALE_KEYS, SCORE_KEYS
from annotation.formats.mapping import Mapping
from annotation.formats.problems import Problem, Problems, Unfit, excerpt
from annotation.formats.reading import is_tabular, read
from annotation.formats.rows import Row


class Answer(NamedTuple):
    """A score, or not applicable, or missing."""

    score: float | None
    applicable: bool = True
    missing: bool = False


MISSING = Answer(None, missing=True)
NOT_APPLICABLE = Answer(None, applicable=False)


def as_answer(value: Any) -> Answer:
    """Blank and null are missing; the literal N/A is not applicable; everything else must be a number."""
    if is_blank(value):
        return MISSING
    if isinstance(value, str) and value.strip().upper() == "N/A":
        return NOT_APPLICABLE
    return Answer(as_number(value, "score"))


class AnswerRow(Protocol):
    """The part of a rating or verdict that the ledger looks at."""

    @property
    def score(self) -> float | None: ...
    @property
    def applicable(self) -> bool: ...
    @property
    def missing(self) -> bool: ...
    @property
    def rationale(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


Kept = TypeVar("Kept", bound=AnswerRow)


class Ledger(Generic[Kept]):
    """Keeps one answer per key, counts identical repetitions, refuses contradictions.

    A repetition is identical when score, N/A and blank agree and the rationales do, or only one of the two has one (an
    export without the column); then the rationale is kept.
    """

    def __init__(self) -> None:
        self._rows: dict[Hashable, Kept] = {}
        self.collapsed = 0
        self.collapsed_blank = 0

    def enter(self, key: Hashable, row: Kept) -> None:
        """Raises ``Unfit`` naming the line of the row that this one contradicts."""
        earlier = self._rows.get(key)
        if earlier is None:
            self._rows[key] = row
            return
        if not _same(earlier, row):
            place = f"line {earlier.line}" + ("" if earlier.file == row.file else f" of {earlier.file}")
            found = f"{_said(row)} where {place} has {_said(earlier)}"
            raise Unfit(found, "one answer by one rater on one criterion of one item", "conflict")
        self.collapsed += 1
        self.collapsed_blank += row.missing
        if not earlier.rationale and row.rationale:
            self._rows[key] = row

    def rows(self) -> list[Kept]:
        """The answers in the order in which they were first said."""
        return list(self._rows.values())


def _same(one: AnswerRow, other: AnswerRow) -> bool:
    answers = (one.score, one.applicable, one.missing) == (other.score, other.applicable, other.missing)
    return answers and (one.rationale == other.rationale or not one.rationale or not other.rationale)


def _said(row: AnswerRow) -> str:
    if row.missing:
        return "a blank"
    answer = "N/A" if row.score is None else f"{row.score:g}"
    return f"{answer} with {excerpt(row.rationale)}" if row.rationale else answer


class Cell(NamedTuple):
    """One answer as it stands in a row: its criterion, value and rationale, and who gave it where that is in the cell;
    ``column`` is where a fault in it is to be found."""

    criterion: Any
    score: Any
    rationale: str
    column: str
    rater: Any = None


def cells(plan: Plan, values: dict[str, Any], mapping: Mapping) -> Iterator[Cell]:
    """The answers of one row: one in a long file, one per ``score.CRITERION`` or entry of ``ratings.CRITERION``."""
    rationale = as_text(values.get("rationale"), "rationale")
    if "score" in values or _is_long_without_score(values, mapping):
        yield Cell(values.get("criterion"), values.get("score"), rationale, plan.column("score"))
    for field, value in values.items():
        kind, _, criterion = field.partition(".")
        if kind == "score" and criterion:
            own = as_text(values.get(f"rationale.{criterion}"), "rationale")
            yield Cell(criterion, value, own or rationale, plan.column(field))
        elif kind == "ratings" and criterion and value:
            yield from _listed(value, criterion, plan.column(field), mapping)


def _is_long_without_score(values: dict[str, Any], mapping: Mapping) -> bool:
    """A JSON record may leave out the key of its score, which is then missing; an item without ratings is no rating."""
    fields = (*values, *mapping.columns.values())
    return not any(field.startswith(("score.", "ratings.")) for field in fields)


def _listed(entries: Any, criterion: str, column: str, mapping: Mapping) -> Iterator[Cell]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Unfit(excerpt(entries), "a list of ratings, each with its rater and score", "shape", column)
    for number, entry in enumerate(entries, start=1):
        rater, score = first_of(entry, RATER_KEYS), first_of(entry, SCORE_KEYS)
        rater = mapping.values.get("rater", {}).get(written(rater), rater)
        score = mapping.values.get("score", {}).get(written(score), score)
        rationale = as_text(first_of(entry, RATIONALE_KEYS), "rationale")
        yield Cell(criterion, score, rationale, f"{column}[{number}]", rater)


Build = Callable[[dict[str, Any], Cell, str, int], tuple[Hashable, Kept]]


class AnswerReader(Generic[Kept]):
    """Reads files of answers into a ledger. ``who`` is the field that names the rater or judge; ``build`` makes the key
    and the row of one cell. Counts so that read = kept + collapsed + refused."""

    def __init__(self, mapping: Mapping, who: str, build: Build[Kept]) -> None:
        self.mapping, self.who, self._build = mapping, who, build
        self.problems = Problems()
        self.ledger: Ledger[Kept] = Ledger()
        self.taken = 0
        # An item that nobody has rated yet is no fault; a record of a file of ratings that holds no rating is.
        self._has_lists = any(field.startswith("ratings.") for field in mapping.columns.values())

    @property
    def read(self) -> int:
        """The answers that the files hold, as far as they could be read."""
        return self.taken + self.problems.refused

    def read_file(self, name: str, raw: bytes | BinaryIO) -> None:
        """Read a file to its end, or to what makes its rest unreliable."""
        planner = Planner(self.mapping)
        for number, row in enumerate(read(name, raw, layout=self.mapping, problems=self.problems)):
            plan = planner.plan(row.fields)
            if number == 0 and (problem := self._lacking(name, plan)):
                self.problems.add(problem)
                return
            self._read_row(name, row, plan)

    def _lacking(self, name: str, plan: Plan) -> Problem | None:
        # Records of a JSON file may leave keys out; there, what the mapping names counts as given.
        mapped = [source.field for source in plan.sources] if is_tabular(name, self.mapping) else []
        given = {*(mapped or self.mapping.columns.values()), *self.mapping.constants}
        kinds = {field.partition(".")[0] for field in given if "." in field}
        needed = ["item", self.who, "criterion", "score"]
        if "score" in kinds and "score" not in given:
            needed = ["item", self.who]
        elif "ratings" in kinds and "score" not in given:
            needed = ["item"]
        return lacking(name, [field for field in needed if field not in given])

    def _read_row(self, name: str, row: Row, plan: Plan) -> None:
        try:
            values = plan.take(row.fields)
            found = list(cells(plan, values, self.mapping))
            if not found and not self._has_lists:
                raise Unfit("a record without a score", "a score on at least one criterion", "no_score")
        except Unfit as fault:
            self.problems.refuse(fault.at(name, row.line))
            return
        for cell in found:
            try:
                self.ledger.enter(*self._build(values, cell, name, row.line))
                self.taken += 1
            except Unfit as fault:
                column = cell.column if fault.field in {"", "score"} else plan.column(fault.field)
                self.problems.refuse(fault.at(name, row.line, column))
