"""What is wrong with a file, said so that its owner can put it right: file, line, column, found, expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

SHOWN_AT_MOST = 200
MOST_KINDS = 200
Alike = tuple[str, str, str]
"""What problems of one kind have in common: code, column and what was expected."""
_EXCERPT = 120


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of one file; ``str()`` is the sentence shown to people, ``code`` the stable name for programs.

    ``line`` is the physical line (from 1) on which the record starts; ``column`` the column, field or path in it.
    Either is ``None`` when the fault belongs to the whole file or the whole record. ``found`` and ``expected`` are
    words that continue the sentence; a value from the file stands in them as an ``excerpt``.
    """

    file: str
    line: int | None
    column: str | None
    found: str
    expected: str
    code: str

    def __str__(self) -> str:
        return f"{self.place}: found {self.found}; expected {self.expected}."

    @property
    def place(self) -> str:
        """``ratings.csv, line 12, rating_value``."""
        line = f"line {self.line}" if self.line is not None else None
        return ", ".join(part for part in (self.file, line, self.column) if part)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the sentence among them."""
        return {**asdict(self), "sentence": str(self)}


class FormatError(ValueError):
    """A fault that ends the reading of a whole document; ``problem`` says where and why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Unfit(ValueError):
    """A value that cannot be taken, raised where the value is read and placed in its file by whoever knows the row.

    It may know the ``column`` it stands in, or only the ``field`` that it was to give.
    """

    def __init__(self, found: str, expected: str, code: str, column: str | None = None, *, field: str = "") -> None:
        super().__init__(expected)
        self.found, self.expected, self.code, self.column, self.field = found, expected, code, column, field

    def at(self, file: str, line: int | None, column: str | None = None) -> Problem:
        """The problem this value makes at a place."""
        return Problem(file, line, self.column or column, self.found, self.expected, self.code)


class Problems:
    """Collects problems: the first ``limit`` are kept, all are counted.

    ``refused`` counts the rows that were not taken, which may be fewer than the problems (a file without a header is a
    problem but no row). ``notes`` are sentences about what is no fault and yet to be known, such as hidden rows that
    were read too. ``left_out`` are the columns that nothing is made of, ``outer.inner`` inside objects. ``alike``
    counts the problems of each kind. ``top`` is the name of the first delimited file that was read, with its first
    lines as they stand. True when there is any problem; iterates over the kept ones.
    """

    def __init__(self, limit: int = SHOWN_AT_MOST) -> None:
        self.limit = limit
        self.shown: list[Problem] = []
        self.codes: Counter[str] = Counter()
        self.alike: Counter[Alike] = Counter()
        self.refused = 0
        self.notes: list[str] = []
        self.left_out: list[str] = []
        self.top: tuple[str, list[str]] | None = None

    def add(self, problem: Problem) -> None:
        """Note a problem of a file."""
        self.codes[problem.code] += 1
        kind = (problem.code, problem.column or "", problem.expected)
        if kind in self.alike or len(self.alike) < MOST_KINDS:
            self.alike[kind] += 1
        if len(self.shown) < self.limit:
            self.shown.append(problem)

    def refuse(self, problem: Problem) -> None:
        """Note a problem because of which one row is not taken."""
        self.refused += 1
        self.add(problem)

    def instead(self, code: str, problem: Problem) -> None:
        """Say one problem in place of all of a code. The rows stay refused."""
        self.shown = [problem, *(each for each in self.shown if each.code != code)]
        del self.codes[code]
        for kind in [kind for kind in self.alike if kind[0] == code]:
            del self.alike[kind]
        self.codes[problem.code] += 1
        self.alike[(problem.code, problem.column or "", problem.expected)] += 1

    def note(self, file: str, sentence: str) -> None:
        """Note what the owner of a file should know, once; it refuses nothing."""
        if (noted := f"{file}: {sentence}") not in self.notes and len(self.notes) < self.limit:
            self.notes.append(noted)

    @property
    def more(self) -> int:
        """How many problems there are beyond those kept."""
        return self.codes.total() - len(self.shown)

    def sentences(self) -> list[str]:
        """One sentence per kept problem, then how many more there are."""
        rest = [f"... and {self.more:,} more."] if self.more else []
        return [str(problem) for problem in self.shown] + rest

    def __len__(self) -> int:
        return self.codes.total()

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.shown)


def excerpt(value: object) -> str:
    """A value as shown in a sentence: quoted, invisible characters spelled out, long ones cut."""
    text = value if isinstance(value, str) else repr(value)
    if not text:
        return "nothing"
    shown = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
    return f"“{visible(shown)}”"


def visible(text: str) -> str:
    """Text with its invisible characters spelled out."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
