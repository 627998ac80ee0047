"""Problems in the files of an import, the report that counts its rows, and progress.

A problem names file, line, column, the actual and the expected value, so that the owner can correct the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

from annotation.readers.words import Words, joined_words

SHOWN_AT_MOST = 200
MOST_KINDS = 200
Alike = tuple[str, str, str]
"""The values that are equal in problems of one kind: code, column and expected value."""
_EXCERPT = 120


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of one file; ``str()`` is the sentence shown to people, ``code`` the stable name for programs.

    ``line`` is the physical line (from 1) on which the record starts; ``column`` the column, field or path in it.
    Either is ``None`` if the fault belongs to the whole file or the whole record. ``found`` and ``expected`` are
    words that continue the sentence; a value from the file is quoted in them as an ``excerpt``.
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
        """The place of the problem, such as ``ratings.csv, line 12, rating_value``."""
        line = Words("line %(line)s", line=self.line) if self.line is not None else None
        return ", ".join(part for part in (self.file, line, self.column) if part)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, including the sentence."""
        return {**asdict(self), "sentence": str(self)}


def in_record(path: str, column: str | None) -> str | None:
    """A column, after the path of its record if the record has one: ``[17].turns``."""
    return ".".join(part for part in (path, column) if part) or None if path else column


_RECORD_PATH = re.compile(r"(\[[^\]]*\])+\.?")


def kind_of_problem(problem: Problem) -> Alike:
    """The kind of a problem, which is the same for the same fault in other records."""
    column = problem.column or ""
    match = _RECORD_PATH.match(column)
    return problem.code, (column[match.end() :] if match else column), problem.expected


class FormatError(ValueError):
    """A fault that ends the reading of a whole document; ``problem`` says where and why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class InvalidValue(ValueError):
    """An invalid value. It is raised where the value is read; the caller that knows the row adds its place (`at`).

    It has the ``column`` of the value, or only the ``field`` that the value should give.
    """

    def __init__(self, actual: str, expected: str, code: str, column: str | None = None, *, field: str = "") -> None:
        super().__init__(expected)
        self.found, self.expected, self.code, self.column, self.field = actual, expected, code, column, field

    def at(self, file: str, line: int | None, column: str | None = None, *, path: str = "") -> Problem:
        """The problem of this value at a place; ``path`` is the path of its record (`FileRow`)."""
        place = in_record(path, self.column or column)
        return Problem(file, line, place, self.found, self.expected, self.code)


MOST_WORDS = 1_000  # distinct answers that are not scores
LONGEST_WORD = 60  # characters of a word in a list of these answers


class Problems:
    """Collects problems: the first ``limit`` are kept, all are counted.

    ``refused`` counts the refused rows, which may be fewer than the problems (a file without a header is a problem but
    not a row). ``notes`` are sentences about important facts that are not faults, such as hidden rows that were read.
    ``left_out`` are the columns that are not used, ``outer.inner`` inside objects. ``alike`` counts the problems of
    each kind. ``top`` is the name of the first delimited file that was read, with its unchanged first lines. ``words``
    are the distinct answers that are not scores, each with its count. The object is true if there is any problem; it
    iterates over the kept problems.
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
        self.words: Counter[str] = Counter()

    def add(self, problem: Problem) -> None:
        """Note a problem of a file."""
        self.codes[problem.code] += 1
        kind = kind_of_problem(problem)
        if kind in self.alike or len(self.alike) < MOST_KINDS:
            self.alike[kind] += 1
        if len(self.shown) < self.limit:
            self.shown.append(problem)

    def refuse(self, problem: Problem) -> None:
        """Note a problem that makes one row refused."""
        self.refused += 1
        self.add(problem)

    def see_word(self, found: str) -> None:
        """Count an answer that is not a score."""
        if found in self.words or len(self.words) < MOST_WORDS:
            self.words[found] += 1

    def note_words(self) -> None:
        """Note all distinct answers that are not scores in one sentence, the most frequent first."""
        if self.words and all(len(word) <= LONGEST_WORD for word in self.words):
            listed = ", ".join(f"{word} ({count:,})" for word, count in self.words.most_common())
            self.notes.append(Words("Answers that are no scores, all of them: %(names)s.", names=listed))

    def instead(self, code: str, problem: Problem) -> None:
        """Replace all problems with a code by one problem. The rows stay refused."""
        self.shown = [problem, *(shown for shown in self.shown if shown.code != code)]
        del self.codes[code]
        for kind in [kind for kind in self.alike if kind[0] == code]:
            del self.alike[kind]
        self.codes[problem.code] += 1
        self.alike[kind_of_problem(problem)] += 1

    def note(self, file: str, sentence: str) -> None:
        """Add a note for the owner of a file, once; a note refuses no row."""
        if (noted := Words("%(file)s: %(sentence)s", file=file, sentence=sentence)) not in self.notes and len(
            self.notes
        ) < self.limit:
            self.notes.append(noted)

    @property
    def more(self) -> int:
        """The number of problems that were counted but not kept."""
        return self.codes.total() - len(self.shown)

    def sentences(self) -> list[str]:
        """One sentence per kept problem, then how many more there are."""
        rest = [f"... and {self.more:,} more."] if self.more else []
        return [str(problem) for problem in self.shown] + rest

    def grouped_sentences(self, most: int = 3) -> list[str]:
        """A sentence for each of the first ``most`` kept problems of a kind, then how many more there are like them."""
        kinds: dict[Alike, list[Problem]] = {}
        for problem in self.shown:
            kinds.setdefault(kind_of_problem(problem), []).append(problem)
        sentences = []
        for kind, problems in kinds.items():
            sentences += [str(problem) for problem in problems[:most]]
            if (more := max(self.alike[kind], len(problems)) - most) > 0:
                sentences.append(f"... and {more:,} more like the last one.")
        rest = self.codes.total() - sum(max(self.alike[kind], len(problems)) for kind, problems in kinds.items())
        return [*sentences, *([f"... and {rest:,} more."] if rest > 0 else [])]

    def __len__(self) -> int:
        return self.codes.total()

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.shown)


def excerpt(value: object) -> str:
    """A value as shown in a sentence: quoted, shortened if it is long, with invisible characters spelled out."""
    text = value if isinstance(value, str) else repr(value)
    if not text:
        return Words("nothing")
    shown = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
    return f"“{visible(shown)}”"


def visible(text: str) -> str:
    """Text with its invisible characters spelled out."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


_NEAR = 0.7
_APART = re.compile(r"[\W_]+|(?<!\d)0+(?=\d)")


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name that is most similar to this name, ignoring case; "" if no name is similar."""
    by_folded = {name.casefold(): name for name in known}
    return next((by_folded[near] for near in get_close_matches(name.casefold(), by_folded, 1, _NEAR)), "")


def did_you_mean(near: str, expected: str) -> str:
    """The expected value, after `did you mean “Fluency”?` if there is a similar name."""
    return Words("did you mean %(name)s? %(rest)s", name=excerpt(near), rest=expected) if near else expected


def loose_key(identifier: str) -> str:
    """A key that is equal for identifiers that differ only in case, in the separators of their parts, in leading zeros
    of numbers, or in the ``.0`` of a number that was read as a fraction."""
    return _APART.sub("", identifier.strip().casefold().removesuffix(".0"))


MOST_LISTED = 5
MOST_FOUND = 1_000
MOST_COUNTED = 20_000
_COUNTS = ("read", "stored", "not_applicable", "collapsed", "missing", "refused", "flagged")


@dataclass(slots=True)
class Report:
    """``read = stored + collapsed + missing + refused + held_back``.

    ``held_back`` are correct rows that are not stored because other rows of the import are refused.

    ``not_applicable`` of the stored rows are N/A; ``collapsed_blank`` of the collapsed rows are blank; ``flagged`` of
    the stored rows should be checked, and ``notes`` says why. ``found`` counts values: languages, generators, raters,
    judges. ``left_out`` are the columns that are not used. ``embedded_ratings`` are inside the items of a dataset's
    files, and can be imported from them.
    """

    read: int = 0
    stored: int = 0
    not_applicable: int = 0
    collapsed: int = 0
    collapsed_blank: int = 0
    missing: int = 0
    refused: int = 0
    held_back: int = 0
    flagged: int = 0
    embedded_ratings: int = 0
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        """The report from the values that ``as_dict`` returned; other keys are ignored."""
        names = {report_field.name for report_field in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in names})

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def after_refusal(self, refused: int) -> Report:
        """The report of an import of which nothing was stored, because ``refused`` rows, or its own, are refused."""
        refused = min(self.read, max(refused, self.refused))
        collapsed = min(self.collapsed, self.read - refused)
        missing = min(self.missing, self.read - refused - collapsed)
        return replace(
            self,
            stored=0,
            not_applicable=0,
            flagged=0,
            refused=refused,
            collapsed=collapsed,
            missing=missing,
            held_back=self.read - refused - collapsed - missing,
        )

    def lines(self) -> list[str]:
        """The report as sentences for people, one in each line."""
        texts = {name: str(getattr(self, name)) for name in _COUNTS}
        texts["collapsed"] += f" (of which blank: {self.collapsed_blank})"
        texts["stored"] += f" (of which N/A: {self.not_applicable})" if self.not_applicable else ""
        counts = [f"{name}: {texts[name]}" for name in _COUNTS if name != "not_applicable"]
        counts += [f"right, and not stored because others are refused: {self.held_back}"] if self.held_back else []
        shares = [f"{kind}: {_shares(values)}" for kind, values in self.found.items() if values]
        return [*counts, *shares, *self.notes]


def add_counts(counts: Counter[str], more: Mapping[str, int]) -> None:
    """Add counts of values, unless there are so many values that they can't be names of kinds, raters or criteria."""
    for value, times in more.items():
        if value in counts or len(counts) < MOST_COUNTED:
            counts[value] += times


def most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    """The count of each value, the most frequent first, without empty values; at most ``MOST_FOUND`` values."""
    often = Counter({value: times for value, times in counts.items() if value and times > 0})
    return dict(often.most_common(MOST_FOUND))


def shortened_list(names: Iterable[str], count: int | None = None) -> str:
    """The first few names, and the number of the others; ``count``: the number of all, if ``names`` has only some."""
    every = list(names)
    more = (len(every) if count is None else count) - MOST_LISTED
    names = joined_words(every[:MOST_LISTED])
    return Words("%(names)s and %(number)s more", names=names, number=f"{more:,}") if more > 0 else names


def _shares(values: dict[str, int]) -> str:
    return shortened_list(f"{value} {count}" for value, count in values.items())


Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the total."""
ShareProgress = Callable[[float], None]
"""Called with the share that is done, from 0 to 1."""


class TwoStepProgress:
    """Progress of reading and then comparing with the database: half of the whole each."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._total = 0

    def reading(self, done: int, total: int) -> None:
        """Report ``done`` of ``total`` bytes as read."""
        self._total = total
        if self._progress is not None:
            self._progress(done, 2 * total)

    def holding(self, share: float) -> None:
        """Report the share of the rows that is compared."""
        if self._progress is not None:
            self._progress(int(self._total * (1 + share)), 2 * self._total)


def progress_between(progress: ShareProgress | None, start: float, end: float) -> ShareProgress:
    """The progress of one step, reported as the part from ``start`` to ``end`` of the whole."""

    def tell(share: float) -> None:
        if progress is not None:
            progress(start + share * (end - start))

    return tell
