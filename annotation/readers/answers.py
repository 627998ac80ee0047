"""What ratings and verdicts share: a score, N/A or nothing, and one answer per key however often it is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from annotation.readers.aligning import aligned
from annotation.readers.cells import Columns, Places
from annotation.readers.fields import Plan, Planner, as_number, is_blank, lacking
from annotation.readers.garbage import seldom_collected
from annotation.readers.headings import Headings
from annotation.readers.ledger import DROPPED, KEPT, Ledger
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problem, Problems, Unfit, excerpt
from annotation.readers.progress import Meter
from annotation.readers.reading import is_tabular, read_blocks
from annotation.readers.report import add
from annotation.readers.rows import Block
from annotation.readers.spool import Plain, Spool


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


def optional_number(value: Any, field: str) -> float | None:
    """A number, or nothing."""
    return None if is_blank(value) else as_number(value, field)


class AnswerRow(Protocol):
    """What two answers are compared by, and where they stand."""

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
    @property
    def column(self) -> str: ...


Kept = TypeVar("Kept", bound=AnswerRow)


class Repetitions(Generic[Kept]):
    """Keeps one answer of those with one key, counts identical repetitions, refuses contradictions.

    A repetition is identical when score, N/A and blank agree and the rationales do, or only one of the two has one (an
    export without the column); then the one with the rationale is kept.
    """

    def __init__(self, problems: Problems, restore: Callable[[Plain], Kept]) -> None:
        self._problems, self._restore = problems, restore
        self.collapsed = 0
        self.collapsed_blank = 0
        self.refused = 0

    def decide(self, alike: list[Plain]) -> list[int]:
        """What becomes of each of the rows with one key, in the order of the files."""
        rows = [self._restore(row) for row in alike]
        fates, kept = [DROPPED] * len(rows), 0
        for place, row in enumerate(rows[1:], start=1):
            if not _same(rows[kept], row):
                self._refuse(rows[kept], row)
                continue
            self.collapsed += 1
            self.collapsed_blank += row.missing
            if not rows[kept].rationale and row.rationale:
                kept = place
        fates[kept] = KEPT
        return fates

    def _refuse(self, earlier: Kept, row: Kept) -> None:
        place = f"line {earlier.line}" + ("" if earlier.file == row.file else f" of {earlier.file}")
        found = f"{_said(row)} where {place} has {_said(earlier)}"
        expected = "one answer by one rater on one criterion of one item"
        self._problems.refuse(Problem(row.file, row.line, row.column, found, expected, "conflict"))
        self.refused += 1


def _same(one: AnswerRow, other: AnswerRow) -> bool:
    answers = (one.score, one.applicable, one.missing) == (other.score, other.applicable, other.missing)
    return answers and (one.rationale == other.rationale or not one.rationale or not other.rationale)


def _said(row: AnswerRow) -> str:
    if row.missing:
        return "a blank"
    answer = "N/A" if row.score is None else f"{row.score:g}"
    return f"{answer} with {excerpt(row.rationale)}" if row.rationale else answer


@dataclass(slots=True)
class Counts:
    """What answers say, counted in one pass: how many of each kind, by whom, and on which criteria."""

    scored: int = 0
    not_applicable: int = 0
    missing: int = 0
    whose: Counter[str] = field(default_factory=Counter)
    criteria: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, rows: Spool[Any]) -> Counts:
        """Of ratings or verdicts, whose rows begin alike."""
        counts = cls()
        for batch in rows.batches():
            _items, whose, criteria, scores, applicable, missing, *_rest = zip(*batch, strict=True)
            counts.missing += sum(missing)
            counts.not_applicable += len(batch) - sum(applicable)
            counts.scored += len(batch) - scores.count(None)
            add(counts.whose, Counter(whose))
            add(counts.criteria, Counter(criteria))
        return counts


class Builder(Protocol):
    """Makes the rows of some answers, as the plain values of what is kept. Raises ``Unfit`` at the first bad one."""

    who: str
    """The field that names the rater or judge."""

    def rows(self, answers: Columns, file: str) -> list[Plain]: ...


class AnswerReader(Generic[Kept]):
    """Reads files of answers into a ledger. Counts so that read = kept + collapsed + refused."""

    def __init__(
        self,
        mapping: Mapping,
        builder: Builder,
        restore: Callable[[Plain], Kept],
        key: Callable[[Plain], Hashable],
    ) -> None:
        self.mapping, self._builder = mapping, builder
        self.problems = Problems()
        self._headings = Headings()
        self.repetitions = Repetitions(self.problems, restore)
        self._ledger = Ledger(restore, key)

    @property
    def read(self) -> int:
        """The answers that the files hold, as far as they could be read."""
        return self._ledger.entered + self.problems.refused - self.repetitions.refused

    @seldom_collected()
    def read_files(self, meter: Meter) -> Spool[Kept]:
        """Read all files, each to its end or to what makes its rest unreliable; the answers, one per key."""
        for name, raw in aligned(meter.members(self.problems), self.mapping, self.problems):
            blocks = meter.watched(read_blocks(name, raw, layout=self.mapping, problems=self.problems))
            planner = Planner(self.mapping.of(name), self._headings)
            _FileReader(name, planner, self._builder, self._ledger, self.problems).read(blocks)
        self.problems.notes += self._headings.notes("Columns that nothing takes, not stored")
        self.problems.left_out = self._headings.left_out(keeps=False)
        return self._ledger.settle(self.repetitions.decide)


class _FileReader(Generic[Kept]):
    """Reads the rows of one file, batch by batch; a batch in which anything is wrong is read again row by row."""

    def __init__(self, name: str, planner: Planner, builder: Builder, ledger: Ledger[Kept], problems: Problems) -> None:
        self._name, self._mapping, self._planner = name, planner.mapping, planner
        self._builder, self._ledger, self._problems = builder, ledger, problems

    def read(self, blocks: Iterator[Block]) -> None:
        """Read to the end of the rows, or to the first when its file lacks what is needed."""
        first = next(blocks, None)
        if first is None:
            return
        if problem := self._lacking(self._planner.plan(first.first()), first.columns):
            self._problems.add(problem)
            return
        places: dict[tuple[str, ...], Places] = {}
        for block in chain([first], blocks):
            if block.columns not in places:
                places[block.columns] = Places.of(self._planner.plan(block.first()), self._mapping)
            self._enter(block, places[block.columns])

    def _lacking(self, plan: Plan, columns: tuple[str, ...]) -> Problem | None:
        # Records of a JSON file may leave keys out; there, what the mapping names counts as given.
        mapped = [source.field for source in plan.sources] if is_tabular(self._name, self._mapping) else []
        given = {*(mapped or self._mapping.columns.values()), *self._mapping.constants}
        kinds = {field.partition(".")[0] for field in given if "." in field}
        needed = ["item", self._builder.who, "criterion", "score"]
        if "score" in kinds and "score" not in given:
            needed = ["item", self._builder.who]
        elif "ratings" in kinds and "score" not in given:
            needed = ["item"]
        missing = [field for field in needed if field not in given]
        return lacking(self._name, missing, self._mapping, columns)

    def _enter(self, batch: Block, places: Places) -> None:
        if batch.size > 1 and places.lists:
            self._enter_one_by_one(batch, places)
            return
        try:
            answers = places.answers(batch, self._builder.who, self._mapping)
            rows = self._builder.rows(answers, self._name) if answers["line"] else []
        except Unfit:
            self._enter_one_by_one(batch, places)
            return
        self._ledger.extend(rows, _weight(answers))

    def _enter_one_by_one(self, batch: Block, places: Places) -> None:
        for row in batch.rows():
            try:
                answers = places.answers(Block.of([row]), self._builder.who, self._mapping)
            except Unfit as fault:
                self._problems.refuse(fault.at(self._name, row.line))
                continue
            for number in range(len(answers["line"])):
                self._enter_answer({name: column[number : number + 1] for name, column in answers.items()}, places)

    def _enter_answer(self, answer: Columns, places: Places) -> None:
        (line,), (column,) = answer["line"], answer["column"]
        try:
            self._ledger.extend(self._builder.rows(answer, self._name), _weight(answer))
        except Unfit as fault:
            place = column if fault.field in {"", "score"} else places.plan.column(fault.field)
            self._problems.refuse(fault.at(self._name, line, place))


def _weight(answers: Columns) -> int:
    """About the bytes of the texts that may be of any length."""
    replies = (reply for reply in answers.get("reply", ()) if isinstance(reply, str))
    return sum(map(len, answers["rationale"])) + sum(map(len, replies))
