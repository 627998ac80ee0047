"""What became of an import's rows, in one shape for every kind of file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

MOST_NAMED = 5
MOST_FOUND = 1_000
MOST_COUNTED = 20_000
_COUNTS = ("read", "stored", "not_applicable", "collapsed", "missing", "refused", "flagged")


@dataclass(slots=True)
class Report:
    """``read = stored + collapsed + missing + refused``.

    ``not_applicable`` of those stored say N/A; ``collapsed_blank`` of those collapsed are blank; ``flagged`` of those
    stored deserve a look, and ``notes`` says why. ``found`` counts values: languages, generators, raters, judges.
    ``left_out`` are the columns that nothing is made of. ``embedded_ratings`` stand inside the items of a dataset's
    files, and can be imported from them.
    """

    read: int = 0
    stored: int = 0
    not_applicable: int = 0
    collapsed: int = 0
    collapsed_blank: int = 0
    missing: int = 0
    refused: int = 0
    flagged: int = 0
    embedded_ratings: int = 0
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, said: dict[str, Any]) -> Report:
        """The report that ``as_dict`` gave, whatever else has been put beside it."""
        names = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in said.items() if name in names})

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The report as people read it, a line each."""
        said = {name: str(getattr(self, name)) for name in _COUNTS}
        said["collapsed"] += f" (of which blank: {self.collapsed_blank})"
        said["stored"] += f" (of which N/A: {self.not_applicable})" if self.not_applicable else ""
        counts = [f"{name}: {said[name]}" for name in _COUNTS if name != "not_applicable"]
        found = [f"{kind}: {_shares(values)}" for kind, values in self.found.items() if values]
        return [*counts, *found, *self.notes]


def add(counts: Counter[str], more: Mapping[str, int]) -> None:
    """Add up values, as long as there are not so many that they can't be names of kinds, raters or criteria."""
    for value, times in more.items():
        if value in counts or len(counts) < MOST_COUNTED:
            counts[value] += times


def found(counts: Mapping[str, int]) -> dict[str, int]:
    """How often each value occurs, the most frequent first; nothing said is left out, and so is what is rare among very
    many."""
    often = Counter({value: times for value, times in counts.items() if value and times > 0})
    return dict(often.most_common(MOST_FOUND))


def named(names: Iterable[str], count: int | None = None) -> str:
    """The first few of some names, and how many more there are; ``count`` when the names are only some of all."""
    every = list(names)
    more = (len(every) if count is None else count) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _shares(values: dict[str, int]) -> str:
    return named(f"{value} {count}" for value, count in values.items())
