"""Reference labels: the panel's settled score of each item, by a declared rule; every exclusion is counted.

METHODS 2. Only annotators enter; judges and juries never do. Adjudicators' scores are used where the rule says so. Ties
are never broken by sort order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from analytics.stats.tables import TRUE_WORDS, Cell, Coded, RatingsTable, cells, coded

if TYPE_CHECKING:
    import pandas as pd

Rule = Literal["mode", "median", "mean", "dawid_skene", "adjudicated_first"]
Ties = Literal["exclude", "lower", "upper", "median", "adjudicated"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ReferenceLabels:
    """``frame``: item_key, item, language, generator, criterion, cluster, score, label, n_ratings, share, tied.

    One row per item that has a reference; ``score`` is a number (the rank of a text point), ``label`` the point as text
    ("" when a mean or median lies between points), ``share`` of its raters that gave it. ``excluded`` counts items
    without a reference by reason.
    """

    frame: pd.DataFrame
    rule: Rule
    ties: Ties
    excluded: dict[str, int]


@dataclass(frozen=True, slots=True)
class Exclusions:
    """How many ratings each rule removed, in order, and how many are left."""

    broken_rationale: int
    critical: int
    single: int
    left: int


def reference_labels(table: RatingsTable, *, rule: Rule = "mode", ties: Ties = "exclude") -> ReferenceLabels:
    """The settled score of every item on every criterion.

    ``mode``: the point most annotators gave; ``ties`` says what happens when several did: ``exclude``, the ``lower`` or
    ``upper`` of them, the ``median`` of the item's scores, or what an adjudicator gave (``adjudicated``; excluded where
    nobody did). ``median``: middle score, the mean of the two middle ones when they differ. ``mean``: of numbers.
    ``dawid_skene``: the most probable point under a fit per criterion and language. ``adjudicated_first``: the
    adjudicator's score where there is one, else the mode under ``ties``.
    """
    import pandas as pd

    parts, excluded = [], dict[str, int]()
    chosen = table.only(rater_kind=("annotator", "adjudicator"))
    for cell in cells(chosen, by=("language", "criterion")):
        part, reasons = _of_cell(cell, rule, ties)
        parts.append(part)
        for reason in reasons:
            excluded[reason] = excluded.get(reason, 0) + 1
    frame = pd.concat(parts, ignore_index=True) if parts else chosen.frame.iloc[:0]
    return ReferenceLabels(frame, rule, ties, excluded)


def settled(
    counts: NDArray[np.int64], x: Floats, ties: Ties, adjudicated: Floats | None = None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Mode of (N, q) counts on points x (q,): (N,) scores, NaN where there is none, and (N,) whether it was a tie."""
    if not len(x):
        return np.full(len(counts), np.nan), np.zeros(len(counts), dtype=bool)
    top = counts == counts.max(axis=1, keepdims=True)
    rated, tied = counts.sum(axis=1) > 0, top.sum(axis=1) > 1
    score = x[top.argmax(axis=1)]
    if ties == "upper":
        score = x[len(x) - 1 - top[:, ::-1].argmax(axis=1)]
    elif ties == "median":
        score = np.where(tied, medians(counts, x), score)
    elif ties != "lower":
        instead = np.nan if ties == "exclude" or adjudicated is None else adjudicated
        score = np.where(tied, instead, score)
    return np.where(rated, score, np.nan), tied & rated


def modes(scores: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Mode of each item's scores (N, R), NaN where missing: (N,) scores, NaN where tied or not rated, and (N,) ties.

    Any level; scales of any length, for no table of items by points is made. Source: METHODS 2.
    """
    in_order = np.sort(scores, axis=1)
    length = run_lengths(in_order)
    top = length.max(axis=1, initial=0)
    tied = (length == top[:, None]).sum(axis=1) > 1
    at = length.argmax(axis=1)[:, None] if scores.shape[1] else np.zeros((len(scores), 0), dtype=np.intp)
    value = np.take_along_axis(in_order, at, axis=1).sum(axis=1)
    return np.where((top > 0) & ~tied, value, np.nan), tied & (top > 0)


def run_lengths(in_order: Floats) -> NDArray[np.intp]:
    """(N, R) at the last of each run of equal scores in sorted rows (N, R) the run's length; 0 elsewhere and at NaN.

    Any level. Source: METHODS 2.
    """
    place, length = np.zeros(len(in_order), dtype=np.intp), np.zeros(in_order.shape, dtype=np.intp)
    for r in range(in_order.shape[1]):
        given = ~np.isnan(in_order[:, r])
        goes_on = given & (in_order[:, r] == in_order[:, r - 1]) if r else np.zeros(len(in_order), dtype=bool)
        place = np.where(goes_on, place + 1, given.astype(np.intp))
        length[:, r] = place
        if r:
            length[goes_on, r - 1] = 0
    return length


def medians(counts: NDArray[np.int64], x: Floats) -> Floats:
    """(N,) median of the scores counted in (N, q) on points x (q,); the mean of the two middle ones; NaN for none."""
    n = counts.sum(axis=1)
    if not len(x):
        return np.full(len(n), np.nan)
    below = np.cumsum(counts, axis=1)
    low = (below > ((n - 1) // 2)[:, None]).argmax(axis=1)
    high = (below > (n // 2)[:, None]).argmax(axis=1)
    return np.where(n > 0, (x[low] + x[high]) / 2, np.nan)


def excluding(
    table: RatingsTable, *, broken_rationale: str | None = None, critical: str | None = None, at_least: int = 2
) -> tuple[RatingsTable, Exclusions]:
    """S2's exclusions in its order, each counted; read the result with and without them.

    ``broken_rationale`` and ``critical`` name boolean columns. First the ratings whose rationale breaks the rule go,
    then every rating of an (item, criterion) with a critical mark, then (item, criterion) pairs left with fewer than
    ``at_least`` ratings. Source: METHODS 2 (S2).
    """
    frame = table.frame
    broken = _flags(frame, broken_rationale)
    keep = ~broken
    marked = _any_of_pair(frame, _flags(frame, critical))
    hit = keep & marked
    keep &= ~marked
    pair = _pair(frame)
    sizes = np.bincount(pair[keep], minlength=int(pair.max()) + 1 if pair.size else 0)
    single = keep & (sizes[pair] < at_least)
    keep &= ~single
    counted = Exclusions(int(broken.sum()), int(hit.sum()), int(single.sum()), int(keep.sum()))
    return RatingsTable(frame[keep], table.scales, table.notes), counted


def _of_cell(cell: Cell, rule: Rule, ties: Ties) -> tuple[pd.DataFrame, list[str]]:
    kinds = cell.frame["rater_kind"]
    items = cell.frame.drop_duplicates("item_key")[
        ["item_key", "item", "language", "generator", "criterion", "cluster"]
    ]
    annotators = Cell(cell.key, cell.frame[(kinds == "annotator").to_numpy()], cell.scale)
    scores, order = _coded_by_item(annotators, items["item_key"])
    counts = np.zeros((len(items), cell.scale.q), dtype=np.int64)
    counts[order] = scores.counts()
    adjudicated = _adjudicated(cell, items["item_key"])
    value, tied = _by_rule(scores, order, counts, adjudicated, rule, ties)
    return _labelled(items, cell, counts, value, tied), _reasons(counts, value, tied)


def _coded_by_item(cell: Cell, keys: pd.Series[int]) -> tuple[Coded, NDArray[np.intp]]:
    """The annotators' scores and, for each of their items, its place among ``keys``."""
    import pandas as pd

    scores = coded(cell)
    rows = cell.frame[(cell.frame["code"] >= 0).to_numpy()]
    rows = rows[(rows["repeat"] == rows["first_repeat"]).to_numpy()]
    return scores, np.asarray(pd.Index(keys).get_indexer(pd.Index(np.unique(rows["item_key"]))), dtype=np.intp)


def _adjudicated(cell: Cell, keys: pd.Series[int]) -> Floats:
    """(N,) the adjudicator's score of each item, NaN where there is none; of several the file's last."""
    rows = cell.frame[(cell.frame["rater_kind"] == "adjudicator").to_numpy() & (cell.frame["code"] >= 0).to_numpy()]
    rows = rows.sort_values("row")
    values = cell.scale.values[rows["code"].to_numpy()]
    given = dict(zip(rows["item_key"], values, strict=True))
    return np.array([given.get(key, np.nan) for key in keys], dtype=np.float64)


def _by_rule(
    scores: Coded, order: NDArray[np.intp], counts: NDArray[np.int64], adjudicated: Floats, rule: Rule, ties: Ties
) -> tuple[Floats, NDArray[np.bool_]]:
    x = scores.scale.values
    no_ties = np.zeros(len(counts), dtype=bool)
    if rule == "median":
        return medians(counts, x), no_ties
    if rule == "mean":
        with np.errstate(invalid="ignore"):
            return counts @ x / counts.sum(axis=1), no_ties
    if rule == "dawid_skene":
        return _most_probable(scores, order, len(counts))
    value, tied = settled(counts, x, ties, adjudicated)
    if rule == "adjudicated_first":
        decided = ~np.isnan(adjudicated)
        return np.where(decided, adjudicated, value), tied & ~decided
    return value, tied


def _most_probable(scores: Coded, order: NDArray[np.intp], n_items: int) -> tuple[Floats, NDArray[np.bool_]]:
    from analytics.stats.dawid_skene import fit

    value, tied = np.full(n_items, np.nan), np.zeros(n_items, dtype=bool)
    if scores.code.size:
        code = fit(scores).code
        value[order] = np.where(code >= 0, scores.scale.values[code], np.nan)
        tied[order] = code < 0
    return value, tied


def _labelled(
    items: pd.DataFrame, cell: Cell, counts: NDArray[np.int64], value: Floats, tied: NDArray[np.bool_]
) -> pd.DataFrame:
    """The rows of the items that have a value."""
    known, x = ~np.isnan(value), cell.scale.values
    counts, value = counts[known], value[known]
    place = np.clip(np.searchsorted(x, value), 0, len(x) - 1)
    on_point = x[place] == value
    n = counts.sum(axis=1)
    labels = np.array([*map(cell.scale.label, range(cell.scale.q)), ""], dtype=object)
    return items[known].assign(
        score=value,
        label=np.where(on_point, labels[place], labels[-1]),
        n_ratings=n,
        share=np.where(on_point & (n > 0), counts[np.arange(len(n)), place] / np.maximum(n, 1), np.nan),
        tied=tied[known],
    )


def _reasons(counts: NDArray[np.int64], value: Floats, tied: NDArray[np.bool_]) -> list[str]:
    missing = np.isnan(value)
    names = np.where(tied, "tied", np.where(counts.sum(axis=1) == 0, "not rated", "no single label"))
    return [str(name) for name in names[missing]]


def _flags(frame: pd.DataFrame, column: str | None) -> NDArray[np.bool_]:
    """A boolean column, also when it was read as text."""
    if column is None:
        return np.zeros(len(frame), dtype=bool)
    return np.asarray(frame[column].astype(str).str.lower().isin(TRUE_WORDS), dtype=bool)


def _pair(frame: pd.DataFrame) -> NDArray[np.intp]:
    """(rows,) number of each row's (item, criterion)."""
    return np.asarray(frame.groupby(["item_key", "criterion"], sort=False).ngroup(), dtype=np.intp)


def _any_of_pair(frame: pd.DataFrame, flag: NDArray[np.bool_]) -> NDArray[np.bool_]:
    pair = _pair(frame)
    return np.asarray(np.bincount(pair, weights=flag)[pair] > 0) if pair.size else flag
