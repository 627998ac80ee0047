"""Classes of agreement (S4): which scores are given where the panel agrees fully, partly or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analytics.stats.estimate import CellEstimate, Estimate
from analytics.stats.tables import HUMAN_KINDS, Cell, RatingsTable, cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

CLASSES = ("full", "partial", "none")
"""Of items with two raters or more: all gave one point; some did; no two did. With three raters 3-0, 2-1, 1-1-1."""


def agreement_class(counts: NDArray[np.int64]) -> NDArray[np.str_]:
    """(N,) class of each row of counts n_ik (N, q): full, partial, none, or "" with fewer than two ratings."""
    n, top = counts.sum(axis=1), counts.max(axis=1)
    names = np.where(top == n, "full", np.where(top == 1, "none", "partial"))
    return np.where(n >= 2, names, "")


def report(table: RatingsTable, *, by: Sequence[str] = ("language", "criterion")) -> list[CellEstimate]:
    """Per cell and class: ``class_share`` of the items; ``score_share`` of each point among annotators and each judge.

    ``variant`` is the point; ``judge`` names the judge, None for the panel; the cell gains ``agreement_class``. A
    judge's scores between points are left out of its shares. Source: METHODS 1 (S4, 4.2).
    """
    return [row for cell in cells(table, by=by) for row in _of_cell(cell)]


def _of_cell(cell: Cell) -> Iterator[CellEstimate]:
    rows = cell.frame[(cell.frame["code"] >= 0).to_numpy()]
    rows = rows[(rows["repeat"] == rows["first_repeat"]).to_numpy()]
    classes = _class_of_items(rows, cell.scale.q)
    of_row = rows["item_key"].map(classes).to_numpy()
    human = rows["rater_kind"].isin(HUMAN_KINDS).to_numpy()
    judges = sorted(rows["rater"][rows["rater_kind"].isin(("judge", "jury")).to_numpy()].unique())
    n_items = sum(1 for name in classes.values() if name)
    for name in CLASSES:
        key = {**cell.key, "agreement_class": name}
        size = sum(1 for found in classes.values() if found == name)
        yield CellEstimate(estimate=_share("class_share", None, size, n_items, n_items), cell=key)
        inside = of_row == name
        yield from _score_shares(cell, key, rows[inside & human], None, size)
        for judge in judges:
            yield from _score_shares(cell, key, rows[inside & (rows["rater"] == judge).to_numpy()], judge, size)


def _class_of_items(rows: pd.DataFrame, q: int) -> dict[int, str]:
    import pandas as pd

    panel = rows[rows["rater_kind"].isin(HUMAN_KINDS).to_numpy()]
    item, keys = pd.factorize(panel["item_key"])
    counts = np.bincount(item * q + panel["code"].to_numpy(), minlength=len(keys) * q).reshape(len(keys), q)
    return dict(zip(map(int, keys), map(str, agreement_class(counts)), strict=True))


def _score_shares(
    cell: Cell, key: dict[str, str | None], rows: pd.DataFrame, judge: str | None, n_items: int
) -> Iterator[CellEstimate]:
    given = np.bincount(rows["code"].to_numpy(), minlength=cell.scale.q)
    for code, count in enumerate(given):
        share = _share("score_share", cell.scale.label(code), int(count), int(given.sum()), n_items)
        counted = share.with_(level=cell.scale.level, n_raters=int(rows["rater"].nunique()), n_ratings=int(given.sum()))
        yield CellEstimate(estimate=counted, cell=key, judge=judge)


def _share(statistic: str, variant: str | None, count: int, total: int, n_items: int) -> Estimate:
    value = count / total if total else None
    reason = None if total else "nothing was rated here"
    note = "a share of what was seen; no interval"
    return Estimate(
        statistic=statistic, variant=variant, value=value, reason=reason, n_items=n_items, interval_reason=note
    )  # fmt: skip
