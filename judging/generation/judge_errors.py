"""How far a judge's errors can bias a curated set, from items of its source that a panel labelled. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analytics.stats.core.shares import wilson_of_share

EACH_SHARE = 0.975  # two intervals that hold together at 95 % (Bonferroni)


class ComparedFlags(NamedTuple):
    """The judge's flag and the panel's on one issue of one item."""

    language: str
    issue: str
    family: str
    by_judge: bool
    by_panel: bool


@dataclass(slots=True)
class _Share:
    """A share of items, and the families that they are from: the number of independent answers."""

    hits: int = 0
    items: int = 0
    families: set[str] = field(default_factory=set)

    def add(self, hit: bool, family: str) -> None:
        self.hits += hit
        self.items += 1
        self.families.add(family)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Wilson's interval with the number of families as n; all shares when no item was labelled."""
        if not self.items:
            return 0.0, 1.0
        return wilson_of_share(self.hits / self.items, len(self.families), confidence=confidence)

    def stored(self) -> dict[str, Any] | None:
        if not self.items:
            return None
        low, high = self.interval(0.95)
        numbers = {"hits": self.hits, "items": self.items, "families": len(self.families)}
        return {"value": self.hits / self.items, "low": low, "high": high, **numbers}


def error_bounds(
    labelled: Iterable[ComparedFlags], in_set: Mapping[tuple[str, str], tuple[int, int]]
) -> list[dict[str, Any]]:
    """For each (language, issue) of the set: the judge's errors, and how many items of the set can have the issue.

    ``in_set``: items of the set with the judge's flag, and without it. Among m flagged and u other items, the number
    that has the issue by a panel is expected from floor(m a + u c) to ceil(m b + u d), where [a, b] is the interval of
    the share of flagged items that the panel flags too (the predictive value) and [c, d] of the unflagged items that
    the panel flags (the false omission rate). The set was chosen by the judge's flags, so these two shares are the ones
    that carry over from the labelled items; sensitivity and specificity are given beside them. Each interval is
    Wilson's at 97.5 %, so that both hold at 95 % or more; n is the number of families, as items of one are alike.
    """
    shares: dict[tuple[str, str], dict[str, _Share]] = defaultdict(lambda: defaultdict(_Share))
    for row in labelled:
        own = shares[row.language, row.issue]
        own["sensitivity" if row.by_panel else "specificity"].add(row.by_judge == row.by_panel, row.family)
        own["predictive" if row.by_judge else "omitted"].add(row.by_panel, row.family)
    rows = []
    for (language, issue), (flagged, other) in sorted(in_set.items()):
        own = shares[language, issue]
        items = own["sensitivity"].items + own["specificity"].items
        bounds = None
        if items:
            a, b = own["predictive"].interval(EACH_SHARE)
            c, d = own["omitted"].interval(EACH_SHARE)
            low, high = math.floor(flagged * a + other * c + 1e-9), math.ceil(flagged * b + other * d - 1e-9)
            bounds = [low, high]
        rows.append(
            {
                "language": language,
                "issue": issue,
                "flagged": flagged,
                "items": flagged + other,
                "labelled": items,
                "sensitivity": own["sensitivity"].stored(),
                "specificity": own["specificity"].stored(),
                "bounds": bounds,
            }
        )
    return rows
