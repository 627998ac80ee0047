"""The common part of reading ratings and verdicts: an answer is a score, N/A or missing, and there is one per key.

Rows are read in batches, and most operations on a batch work on one column at a time, which is a loop in C.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from analytics.stats.declared.declaring import translatable
from annotation.readers.columns import ColumnPlan, ColumnPlanner, ColumnUsage, missing_field_problem
from annotation.readers.guessing import RATER_KEYS, RATIONALE_KEYS, SCORE_KEYS
from annotation.readers.mapping import Mapping
from annotation.readers.problems import InvalidValue, Problem, Problems, add_counts, excerpt, in_record
from annotation.readers.reading import FileProgress, is_tabular, join_aligned_files, read_blocks
from annotation.readers.rows import RowBlock, as_number, as_text, as_written, first_of, is_blank
from annotation.readers.spool import DROPPED, KEPT, KeyedRows, PlainRow, Spool, rare_garbage_collection
from annotation.readers.words import Words

T = TypeVar("T")
MOST_CACHED = 50_000


class _Known(dict[str, T]):
    """Converted values by text, each computed on first access."""

    def __init__(self, convert: Callable[[str], T], most: int) -> None:
        super().__init__()
        self._convert, self._most = convert, most

    def __missing__(self, text: str) -> T:
        converted = self._convert(text)
        if len(self) >= self._most:
            self.clear()
        self[text] = converted
        return converted


class CachedConversion(Generic[T]):
    """A conversion that caches the results of recent texts. Other values (1, 1.0 and true are one key) and values that
    cannot be converted are not cached."""

    def __init__(self, convert: Callable[[Any], T], most: int) -> None:
        self._convert, self._known = convert, _Known(convert, most)

    def __call__(self, value: Any) -> T:
        return self._known[value] if type(value) is str else self._convert(value)

    def convert_all(self, column: Sequence[Any]) -> Iterable[T]:
        """The converted values of a column; the loop is in C if all values are texts."""
        return map(self._known.__getitem__ if set(map(type, column)) == {str} else self, column)


def cached_conversion(convert: Callable[[Any], T], *, most: int = MOST_CACHED) -> CachedConversion[T]:
    """``convert`` with a cache of at most ``most`` texts."""
    return CachedConversion(convert, most)


def convert_column(convert: CachedConversion[T], column: Sequence[Any] | None) -> Iterable[T | None]:
    """The converted values of a column; if the column is absent, an endless sequence of ``None``."""
    return repeat(None) if column is None else convert.convert_all(column)


ValuesByField = dict[str, Sequence[Any]]
"""Values by field, one for each row or for each answer."""


class WideColumn(NamedTuple):
    """A column with the answers on one criterion, the field it gives, and the field of its rationale."""

    criterion: str
    field: str
    rationale: str
    column: str


class ListColumn(NamedTuple):
    """A column with lists of {rater, score} on one criterion, and the field it gives."""

    criterion: str
    field: str
    column: str


class AnswerColumns(NamedTuple):
    """Where rows with the same columns have their answers: in one ``long`` column with the criterion in another column,
    in a column per criterion (``wide``), and in ``lists``.

    ``may_be_none``: a record without answers is allowed, such as an item that nobody has rated yet.
    """

    plan: ColumnPlan
    long: str | None
    wide: tuple[WideColumn, ...]
    lists: tuple[ListColumn, ...]
    may_be_none: bool

    @classmethod
    def of(cls, plan: ColumnPlan, mapping: Mapping) -> AnswerColumns:
        given = tuple(dict.fromkeys((*plan.constants, *(source.field for source in plan.sources))))
        mapped = (*given, *mapping.columns.values())
        # A JSON record may lack the key of its score, which is then missing; a record without a list has no ratings.
        is_long = "score" in given or not any(field.startswith(("score.", "ratings.")) for field in mapped)
        return cls(
            plan=plan,
            long=plan.column("score") if is_long else None,
            wide=tuple(
                WideColumn(criterion, field, f"rationale.{criterion}", plan.column(field))
                for field, criterion in _named(given, "score")
            ),
            lists=tuple(
                ListColumn(criterion, field, plan.column(field)) for field, criterion in _named(given, "ratings")
            ),
            may_be_none=any(field.startswith("ratings.") for field in mapping.columns.values()),
        )

    def answers(self, rows: RowBlock, who: str, mapping: Mapping) -> ValuesByField:
        """The answers in some rows, or in one row if there are lists. Raises ``InvalidValue`` for an invalid row."""
        values = _values(self.plan, rows)
        values["line"] = rows.lines
        answers = self._beside(values, rows.size)
        for place in self.lists:
            (entries,) = values[place.field]
            if entries:
                other = _listed(entries, place, values, who, mapping)
                answers = {name: [*answers.get(name, ()), *other[name]] for name in other}
        if not answers["line"] and not self.may_be_none:
            raise InvalidValue(
                Words("a record without a score"), Words("a score on at least one criterion"), "no_score"
            )
        return answers

    def _beside(self, values: ValuesByField, count: int) -> ValuesByField:
        """The answers of the long column and of all wide columns; the answers of one row follow each other."""
        shared = _texts(values.get("rationale"), count)
        parts: list[ValuesByField] = []
        if self.long is not None:
            long_columns = {name: values.get(name, [None] * count) for name in ("criterion", "score")}
            parts.append({**long_columns, "rationale": shared, "column": [self.long] * count})
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
        whole: list[ValuesByField] = [{**values, **part} for part in parts]
        return {
            name: list(chain.from_iterable(zip(*[part[name] for part in whole], strict=True)))
            for name in {**values, **_PARTS}
        }


_PARTS = dict.fromkeys(("criterion", "score", "rationale", "column"))


def _named(fields: tuple[str, ...], kind: str) -> list[tuple[str, str]]:
    """The fields of a kind that name a criterion, with that criterion."""
    parted = [(field, *field.partition(".")) for field in fields]
    return [(field, criterion) for field, before, _dot, criterion in parted if before == kind and criterion]


def _values(plan: ColumnPlan, rows: RowBlock) -> ValuesByField:
    """The values of some rows by field, as ``plan.take`` gives them for each."""
    fields = [source.field for source in plan.sources]
    if len(set(fields)) == len(fields) and all(source.inner is None for source in plan.sources):
        values: ValuesByField = {field: [value] * rows.size for field, value in plan.constants.items()}
        for source in plan.sources:
            column = rows.column(source.outer)
            meant = source.meant
            values[source.field] = [meant.get(as_written(value), value) for value in column] if meant else column
        return values
    taken = [plan.take(row.fields) for row in rows.rows()]
    return {field: [row[field] for row in taken] for field in taken[0]}


def _texts(column: Sequence[Any] | None, count: int) -> Sequence[str]:
    if column is None:
        return [""] * count
    return [value if type(value) is str else as_text(value, "rationale") for value in column]


def _listed(entries: Any, place: ListColumn, values: ValuesByField, who: str, mapping: Mapping) -> ValuesByField:
    """The answers in a list of {rater, score, rationale}, with the other values of their row."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidValue(
            excerpt(entries), Words("a list of ratings, each with its rater and score"), "shape", place.column
        )
    raters = [_meant(first_of(entry, RATER_KEYS), "rater", mapping) for entry in entries]
    of_row = values.get(who, [None])[0]
    return {
        **{field: [*column] * len(entries) for field, column in values.items()},
        who: [of_row if rater is None else rater for rater in raters],
        "criterion": [place.criterion] * len(entries),
        "score": [_meant(first_of(entry, SCORE_KEYS), "score", mapping) for entry in entries],
        "rationale": [as_text(first_of(entry, RATIONALE_KEYS), "rationale") for entry in entries],
        "evidence": [entry.get("evidence") for entry in entries],
        "column": [f"{place.column}[{number}]" for number in range(1, len(entries) + 1)],
    }


def _meant(value: Any, field: str, mapping: Mapping) -> Any:
    return mapping.values.get(field, {}).get(as_written(value), value)


class AnswerValue(NamedTuple):
    """A score, or not applicable, or missing."""

    score: float | None
    applicable: bool = True
    missing: bool = False


MISSING = AnswerValue(None, missing=True)
NOT_APPLICABLE = AnswerValue(None, applicable=False)


def as_answer(value: Any, *, decimal_comma: bool = False) -> AnswerValue:
    """Blank and null are missing; the literal N/A is not applicable; everything else must be a number."""
    if is_blank(value):
        return MISSING
    if isinstance(value, str) and value.strip().upper() == "N/A":
        return NOT_APPLICABLE
    return AnswerValue(as_number(value, "score", decimal_comma=decimal_comma))


def optional_number(value: Any, field: str, *, decimal_comma: bool = False) -> float | None:
    """A number, or None for a blank."""
    return None if is_blank(value) else as_number(value, field, decimal_comma=decimal_comma)


class AnswerRow(Protocol):
    """The values in which two answers are compared, and their place in the files."""

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
    """Keeps one of the answers with the same key, counts identical repetitions, refuses contradictions.

    A repetition is identical if score, N/A and blank agree, and if rationales and spans agree or only one of the two
    answers has them (an export without the column); then the answer that has them is kept.
    """

    def __init__(self, problems: Problems, restore: Callable[[PlainRow], Kept]) -> None:
        self._problems, self._restore = problems, restore
        self.collapsed = 0
        self.collapsed_blank = 0
        self.refused = 0

    def decide(self, alike: list[PlainRow]) -> list[int]:
        """What becomes of each of the rows with the same key, in the order of the files."""
        rows = [self._restore(row) for row in alike]
        fates, kept = [DROPPED] * len(rows), 0
        for place, row in enumerate(rows[1:], start=1):
            if not _same(rows[kept], row):
                self._refuse(rows[kept], row)
                continue
            self.collapsed += 1
            self.collapsed_blank += row.missing
            if list(map(bool, _beside_score(row))) > list(map(bool, _beside_score(rows[kept]))):
                kept = place
        fates[kept] = KEPT
        return fates

    def _refuse(self, earlier: Kept, row: Kept) -> None:
        place = Words("line %(line)s", line=earlier.line)
        if earlier.file != row.file:
            place = Words("line %(line)s of %(file)s", line=earlier.line, file=earlier.file)
        text = Words(
            "%(answer)s where %(place)s has %(earlier)s",
            answer=_score_in_words(row),
            place=place,
            earlier=_score_in_words(earlier),
        )
        expected = Words("one answer by one rater on one criterion of one item")
        self._problems.refuse(Problem(row.file, row.line, row.column, text, expected, "conflict"))
        self.refused += 1


def _same(one: AnswerRow, other: AnswerRow) -> bool:
    answers = (one.score, one.applicable, one.missing) == (other.score, other.applicable, other.missing)
    beside = zip(_beside_score(one), _beside_score(other), strict=True)
    return answers and all(mine == theirs or not mine or not theirs for mine, theirs in beside)


def _beside_score(row: AnswerRow) -> tuple[str, str]:
    return row.rationale, getattr(row, "evidence", "")


def _score_in_words(row: AnswerRow) -> str:
    if row.missing:
        return Words("a blank")
    answer = Words("N/A") if row.score is None else f"{row.score:g}"
    return (
        Words("%(answer)s with %(rationale)s", answer=answer, rationale=excerpt(row.rationale))
        if row.rationale
        else answer
    )


@dataclass(slots=True)
class AnswerCounts:
    """Counts of answers from one pass: the number of each kind, the raters or judges, and the criteria."""

    scored: int = 0
    not_applicable: int = 0
    missing: int = 0
    whose: Counter[str] = field(default_factory=Counter)
    criteria: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, rows: Spool[Any]) -> AnswerCounts:
        """Count ratings or verdicts; the first columns of their rows are the same."""
        counts = cls()
        for batch in rows.batches():
            _items, whose, criteria, scores, applicable, missing, *_rest = zip(*batch, strict=True)
            counts.missing += sum(missing)
            counts.not_applicable += len(batch) - sum(applicable)
            counts.scored += len(batch) - scores.count(None)
            add_counts(counts.whose, Counter(whose))
            add_counts(counts.criteria, Counter(criteria))
        return counts


class AnswerBuilder(Protocol):
    """Makes rows from answers, as plain values. Raises ``InvalidValue`` for the first invalid one."""

    who: str
    """The field that names the rater or judge."""

    def rows(self, answers: ValuesByField, file: str) -> list[PlainRow]: ...


class AnswerReader(Generic[Kept]):
    """Reads files of answers into a ledger. Counts so that read = kept + collapsed + refused."""

    def __init__(
        self,
        mapping: Mapping,
        builder: AnswerBuilder,
        restore: Callable[[PlainRow], Kept],
        key: Callable[[PlainRow], Hashable],
    ) -> None:
        self.mapping, self._builder = mapping, builder
        self.problems = Problems()
        self._headings = ColumnUsage()
        self.repetitions = Repetitions(self.problems, restore)
        self._ledger = KeyedRows(restore, key)

    @property
    def read(self) -> int:
        """The number of answers in the files, as far as the files could be read."""
        return self._ledger.entered + self.problems.refused - self.repetitions.refused

    @rare_garbage_collection()
    def read_files(self, meter: FileProgress) -> Spool[Kept]:
        """Read each file to its end, or to a fault that makes the rest unreliable; return one answer per key."""
        for name, raw in join_aligned_files(meter.members(self.problems), self.mapping, self.problems):
            blocks = meter.watched(read_blocks(name, raw, layout=self.mapping, problems=self.problems))
            planner = ColumnPlanner(self.mapping.of(name), self._headings)
            _FileReader(name, planner, self._builder, self._ledger, self.problems).read(blocks)
        self.problems.note_words()
        self.problems.notes += self._headings.notes(
            translatable("Columns that are not used and not stored: %(names)s.")
        )
        self.problems.left_out = self._headings.left_out(keeps=False)
        return self._ledger.settle(self.repetitions.decide)


class _FileReader(Generic[Kept]):
    """Reads the rows of one file in batches; a batch with any fault is read again row by row."""

    def __init__(
        self, name: str, planner: ColumnPlanner, builder: AnswerBuilder, ledger: KeyedRows[Kept], problems: Problems
    ) -> None:
        self._name, self._mapping, self._planner = name, planner.mapping, planner
        self._builder, self._ledger, self._problems = builder, ledger, problems

    def read(self, blocks: Iterator[RowBlock]) -> None:
        """Read all rows, or only the first if the file lacks a needed field."""
        first = next(blocks, None)
        if first is None:
            return
        if problem := self._lacking(self._planner.plan(first.first()), first.columns):
            self._problems.add(problem)
            return
        places: dict[tuple[str, ...], AnswerColumns] = {}
        for block in chain([first], blocks):
            if block.columns not in places:
                places[block.columns] = AnswerColumns.of(self._planner.plan(block.first()), self._mapping)
            self._enter(block, places[block.columns])

    def _lacking(self, plan: ColumnPlan, columns: tuple[str, ...]) -> Problem | None:
        # Records of a JSON file may lack keys, so in such a file every column of the mapping counts as given.
        mapped = [source.field for source in plan.sources] if is_tabular(self._name, self._mapping) else []
        given = {*(mapped or self._mapping.columns.values()), *self._mapping.constants}
        kinds = {field.partition(".")[0] for field in given if "." in field}
        needed = ["item", self._builder.who, "criterion", "score"]
        if "score" in kinds and "score" not in given:
            needed = ["item", self._builder.who]
        elif "ratings" in kinds and "score" not in given:
            needed = ["item"]
        missing = [field for field in needed if field not in given]
        return missing_field_problem(self._name, missing, self._mapping, columns)

    def _enter(self, batch: RowBlock, places: AnswerColumns) -> None:
        if batch.size > 1 and places.lists:
            self._enter_one_by_one(batch, places)
            return
        try:
            answers = _with_paths(places.answers(batch, self._builder.who, self._mapping), batch.paths)
            rows = self._builder.rows(answers, self._name) if answers["line"] else []
        except InvalidValue:
            self._enter_one_by_one(batch, places)
            return
        self._ledger.extend(rows, _weight(answers))

    def _enter_one_by_one(self, batch: RowBlock, places: AnswerColumns) -> None:
        for row in batch.rows():
            try:
                one = RowBlock.of([row])
                answers = _with_paths(places.answers(one, self._builder.who, self._mapping), one.paths)
            except InvalidValue as fault:
                self._problems.refuse(fault.at(self._name, row.line, path=row.path))
                continue
            for number in range(len(answers["line"])):
                self._enter_answer(
                    {name: column[number : number + 1] for name, column in answers.items()}, places, row.path
                )

    def _enter_answer(self, answer: ValuesByField, places: AnswerColumns, path: str) -> None:
        (line,), (column,) = answer["line"], answer["column"]
        try:
            self._ledger.extend(self._builder.rows(answer, self._name), _weight(answer))
        except InvalidValue as fault:
            is_score = fault.field in {"", "score"}
            place = column if is_score else in_record(path, places.plan.column(fault.field))
            if is_score and fault.code == "not_a_number":
                self._problems.see_word(fault.found)
            self._problems.refuse(fault.at(self._name, line, place))


def _with_paths(answers: ValuesByField, paths: Sequence[str]) -> ValuesByField:
    """The answers with the path of the row before the column name; every row gives the same number of answers."""
    if not paths or not answers["line"]:
        return answers
    columns, each_gives = answers["column"], len(answers["column"]) // len(paths)
    located = [in_record(paths[number // each_gives], column) for number, column in enumerate(columns)]
    return {**answers, "column": located}


def _weight(answers: ValuesByField) -> int:
    """The approximate bytes of the texts of unlimited length."""
    texts = (text for name in ("reply", "prompt") for text in answers.get(name, ()) if isinstance(text, str))
    return sum(map(len, answers["rationale"])) + sum(map(len, texts))
