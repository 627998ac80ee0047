"""McNemar cell by cell: what counts as a hit, and who is left out."""

from __future__ import annotations

from typing import Any

import pandas as pd

from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import mcnemar


def table(rows: list[tuple[str, str, Any]], kinds: dict[str, str] | None = None) -> RatingsTable:
    frame = pd.DataFrame(rows, columns=["item", "rater", "score"])
    return ratings_table(frame.assign(rater_kind=[(kinds or {}).get(rater, "annotator") for rater in frame["rater"]]))


def note(found: RatingsTable, **options: Any) -> tuple[str | None, str]:
    first, *_ = mcnemar.mcnemar_report(found, raters=("a", "b"), by=[], **options)
    return first.reference, str(first.estimate.note)


THREE = [("1", "a", 1), ("1", "b", 2), ("2", "a", 3), ("2", "b", 3), ("3", "a", 2), ("3", "b", 1)]


def test_the_others_mode_decides_who_is_right_and_a_tie_leaves_the_item_out() -> None:
    others = [("1", "c", 1), ("1", "d", 1), ("2", "c", 3), ("3", "c", 1), ("3", "d", 2)]
    found = table(THREE + others)
    assert note(found) == ("mode", "a alone 1, b alone 0")
    first, *_ = mcnemar.mcnemar_report(found, raters=("a", "b"), by=[])
    assert (first.estimate.n_items, first.estimate.n_missing) == (2, 1)


def test_a_reference_in_the_file_comes_first() -> None:
    found = table([*THREE, ("1", "key", 2), ("3", "key", 1), ("1", "c", 1)], {"key": "reference"})
    assert note(found) == ("reference", "a alone 0, b alone 2")


def test_two_labels_are_compared_as_flags() -> None:
    flags = [("1", "a", "yes"), ("1", "b", "no"), ("2", "a", "no"), ("2", "b", "no")]
    assert note(table(flags))[0] == "labels"
    assert note(table(flags))[1].startswith("a alone 1, b alone 0")


def test_many_points_without_others_are_undefined() -> None:
    first, *_ = mcnemar.mcnemar_report(table(THREE), raters=("a", "b"), by=[])
    assert first.estimate.reason == "no shared item has a mode of other annotators to be right about"
