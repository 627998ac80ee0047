"""What became of an import's rows, in one shape for every kind of file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

MOST_NAMED = 5
_COUNTS = ("read", "stored", "not_applicable", "collapsed", "missing", "refused", "flagged")


@dataclass(slots=True)
class Report:
    """``read = stored + collapsed + missing + refused``.

    ``not_applicable`` of those stored say N/A; ``collapsed_blank`` of those collapsed are blank; ``flagged`` of those
    stored deserve a look, and ``notes`` says why. ``found`` counts values: languages, generators, raters, judges.
    """

    read: int = 0
    stored: int = 0
    not_applicable: int = 0
    collapsed: int = 0
    collapsed_blank: int = 0
    missing: int = 0
    refused: int = 0
    flagged: int = 0
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


def found(values: Iterable[str | None]) -> dict[str, int]:
    """How often each value occurs, the most frequent first; nothing said is left out."""
    return dict(Counter(value for value in values if value).most_common())


def named(names: Iterable[str]) -> str:
    """The first few of some names, and how many more there are."""
    every = list(names)
    rest = f" and {len(every) - MOST_NAMED:,} more" if len(every) > MOST_NAMED else ""
    return ", ".join(every[:MOST_NAMED]) + rest


def _shares(values: dict[str, int]) -> str:
    return named(f"{value} {count}" for value, count in values.items())
