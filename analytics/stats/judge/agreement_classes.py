"""Classes of agreement (S4): which scores are given where the panel agrees fully, partly or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analytics.stats.core.estimate import CellEstimate, Estimate
from analytics.stats.core.tables import HUMAN_KINDS, Cell, RatingsTable, cells
from analytics.stats.judge.paired_scores import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

STATISTICS = ("class_share", "score_share")
CLASSES = ("full", "partial", "none")
"""Of items with two raters or more: all gave one point; some did; no two did. With three raters 3-0, 2-1, 1-1-1."""


def agreement_class(counts: NDArray[np.int64]) -> NDArray[np.str_]:
    """(N,) class of each row of counts n_ik (N, q): full, partial, none, or "" with fewer than two ratings.

    Any level. Source: METHODS 1 (S4, agreement classes).
    """
    n, top = counts.sum(axis=1), counts.max(axis=1, initial=0)
    names = np.where(top == n, "full", np.where(top == 1, "none", "partial"))
    return np.where(n >= 2, names, "")


def report(table: RatingsTable, *, by: Sequence[str] = ("language", "criterion")) -> list[CellEstimate]:
    """Per cell and class: ``class_share`` of the items; ``score_share`` of each point among annotators and each judge.

    ``variant`` is the point; ``judge`` names the judge, None for the panel; the cell gains ``agreement_class``. A
    judge's fractions count for the nearest point, half up. Source: METHODS 1 (S4, 4.2).
    """
    return [row for cell in cells(table, by=by) for row in of_cell(cell)]


def of_cell(
    cell: Cell, *, judges: Sequence[str] | None = None, raters: Sequence[str] | None = None
) -> list[CellEstimate]:
    """The rows of one cell: ``judges`` or all of them, beside the annotators or those of ``raters``."""
    rows = cell.frame[(cell.frame["code"] >= 0).to_numpy()]
    rows = rows[(rows["repeat"] == rows["first_repeat"]).to_numpy()]
    if judges is None:
        judges = sorted(rows["rater"][rows["rater_kind"].isin(("judge", "jury")).to_numpy()].unique())
    human = rows["rater_kind"].isin(HUMAN_KINDS).to_numpy() & ~rows["rater"].isin(list(judges)).to_numpy()
    if raters is not None:
        human &= rows["rater"].isin(list(raters)).to_numpy()
    of_row, sizes = _classes(rows, human, cell.scale.q)
    shared = int(rows["cluster"][of_row != ""].nunique())
    found: list[CellEstimate] = []
    for name in CLASSES:
        key = {**key_of(cell), "agreement_class": name}
        share = _share("class_share", None, sizes[name], sum(sizes.values()), sum(sizes.values()))
        share = share.with_(level=cell.scale.level, n_clusters=shared, n_raters=int(rows["rater"][human].nunique()))
        found.append(CellEstimate(estimate=share, cell=key))
        inside = of_row == name
        found += _score_shares(cell, key, rows[inside & human], None, sizes[name])
        for judge in judges:
            found += _score_shares(cell, key, rows[inside & (rows["rater"] == judge).to_numpy()], judge, sizes[name])
    return found


def _classes(rows: pd.DataFrame, human: NDArray[np.bool_], q: int) -> tuple[NDArray[np.str_], dict[str, int]]:
    """(rows,) class of each row's item, "" where it has fewer than two scores; and how many items each class has."""
    item = rows.groupby(["item_key", "criterion"], sort=False).ngroup().to_numpy()
    n = int(item.max()) + 1 if item.size else 0
    flat = item[human] * q + rows["code"].to_numpy()[human]
    of_item = agreement_class(np.bincount(flat, minlength=n * q).reshape(n, q))
    return of_item[item], {name: int((of_item == name).sum()) for name in CLASSES}


def _score_shares(
    cell: Cell, key: dict[str, str | None], rows: pd.DataFrame, judge: str | None, n_items: int
) -> Iterator[CellEstimate]:
    given = np.bincount(rows["code"].to_numpy(), minlength=cell.scale.q)
    for code, count in enumerate(given):
        share = _share("score_share", cell.scale.label(code), int(count), int(given.sum()), n_items)
        counted = share.with_(level=cell.scale.level, n_raters=int(rows["rater"].nunique()), n_ratings=int(given.sum()),
                              n_clusters=int(rows["cluster"].nunique()))  # fmt: skip
        yield CellEstimate(estimate=counted, cell=key, judge=judge)


def _share(statistic: str, variant: str | None, count: int, total: int, n_items: int) -> Estimate:
    value = count / total if total else None
    reason = None if total else "nothing was rated here"
    note = "a share of what was seen; no interval"
    return Estimate(
        statistic=statistic, variant=variant, value=value, reason=reason, n_items=n_items, interval_reason=note
    )  # fmt: skip
