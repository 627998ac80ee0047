"""How far a judge's errors can bias a curated set, from items of its source that a panel labelled. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from analytics.stats.core.shares import wilson_of_share

EACH_SHARE = 0.975  # two intervals that hold together at 95 % (Bonferroni)
Cell = tuple[str, str]  # the judge's overall score of an item, and its generator


class ComparedFlags(NamedTuple):
    """The judge's flag and the panel's on one issue of one item that could have been chosen."""

    language: str
    issue: str
    family: str
    by_judge: bool
    by_panel: bool
    cell: Cell = ("", "")


class FlagsInSet(NamedTuple):
    """How many items of a set the judge flags on an issue in each cell, and how many it does not."""

    flagged: Mapping[Cell, int]
    other: Mapping[Cell, int]


def error_bounds(
    labelled: Iterable[ComparedFlags], in_set: Mapping[tuple[str, str], FlagsInSet]
) -> list[dict[str, Any]]:
    """For each (language, issue) of the set: the judge's errors, and how many items of the set can have the issue.

    Among m flagged and u other items of the set, the number that has the issue by a panel is expected from
    floor(m' a + u' c) to ceil(m' b + u' d + rest), where [a, b] is the interval of the share of flagged items that the
    panel flags too (the predictive value) and [c, d] of the unflagged items that the panel flags (the false omission
    rate). A balanced set was chosen by the judge's flags, overall score and generator, so labelled items count by the
    set's distribution over score and generator: with n_c labelled and m_c items of the set in a cell, each has the
    weight m_c / n_c. m' and u' are the items in cells with a labelled one; the ``rest`` may have the issue or not
    (``uncovered``). Each interval is Wilson's at 97.5 %, so that both hold at 95 % or more; n is Kish's number of
    independent answers, (sum w)^2 / sum w^2 over the families' weights w, as items of one family are alike.
    Sensitivity and specificity are of the labelled items as they are, with n by the families' sizes.
    """
    by_issue: dict[tuple[str, str], list[ComparedFlags]] = defaultdict(list)
    for row in labelled:
        by_issue[row.language, row.issue].append(row)
    rows = []
    for (language, issue), (flagged, other) in sorted(in_set.items()):
        own = by_issue[language, issue]
        bounds, covered = None, 0
        if own:
            low = high = 0.0
            for is_flagged, items in ((True, flagged), (False, other)):
                there = [row for row in own if row.by_judge == is_flagged]
                least, most, inside = _expected(there, items)
                low, high, covered = low + least, high + most, covered + inside
            bounds = [math.floor(low + 1e-9), math.ceil(high - 1e-9)]
        total = sum(flagged.values()) + sum(other.values())
        rows.append(
            {
                "language": language,
                "issue": issue,
                "flagged": sum(flagged.values()),
                "items": total,
                "labelled": len(own),
                "uncovered": total - covered,
                "sensitivity": _agreement([row for row in own if row.by_panel]),
                "specificity": _agreement([row for row in own if not row.by_panel]),
                "bounds": bounds,
            }
        )
    return rows


def _expected(labelled: Sequence[ComparedFlags], in_set: Mapping[Cell, int]) -> tuple[float, float, int]:
    """The least and the highest expected number of items with the issue, and the items in cells with a labelled one."""
    of_cell = Counter(row.cell for row in labelled)
    covered = sum(items for cell, items in in_set.items() if of_cell[cell])
    rest = sum(in_set.values()) - covered
    if not covered:
        return 0.0, float(rest), 0
    weights = [in_set.get(row.cell, 0) / of_cell[row.cell] for row in labelled]
    share = sum(weight for row, weight in zip(labelled, weights, strict=True) if row.by_panel) / covered
    low, high = wilson_of_share(min(1.0, share), independent_answers(labelled, weights), confidence=EACH_SHARE)
    return covered * low, covered * high + rest, covered


def independent_answers(labelled: Sequence[ComparedFlags], weights: Sequence[float]) -> float:
    """(sum w)^2 / sum w^2 over the families' weights: their number if all weigh the same, less if a few weigh most."""
    of_family: dict[str, float] = defaultdict(float)
    for row, weight in zip(labelled, weights, strict=True):
        of_family[row.family] += weight
    return max(1.0, sum(of_family.values()) ** 2 / sum(weight**2 for weight in of_family.values()))


def _agreement(labelled: Sequence[ComparedFlags]) -> dict[str, Any] | None:
    """The share of items that judge and panel flag alike; None without any."""
    if not labelled:
        return None
    hits = sum(row.by_judge == row.by_panel for row in labelled)
    low, high = wilson_of_share(hits / len(labelled), independent_answers(labelled, [1.0] * len(labelled)))
    numbers = {"hits": hits, "items": len(labelled), "families": len({row.family for row in labelled})}
    return {"value": hits / len(labelled), "low": low, "high": high, **numbers}
