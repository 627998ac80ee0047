"""Classes of agreement (S4): which scores are given where the panel agrees fully, partly or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import (
    CellEstimate,
    Estimate,
)
from analytics.stats.core.messages import Message
from analytics.stats.core.number_arrays import Codes
from analytics.stats.core.tables import HUMAN_KINDS, Cell, RatingsTable, cells
from analytics.stats.judge.judge_against_panel import cell_key

if TYPE_CHECKING:
    from collections.abc import Iterator


CLASS_STATISTICS = ("class_share", "score_share")
CLASSES = ("full", "partial", "none")
"""Classes of items with two raters or more: all gave the same point; some did; no two did.

With three raters: 3-0, 2-1, 1-1-1.
"""


def agreement_class(counts: NDArray[np.int64]) -> NDArray[np.str_]:
    """(N,) class of each row of counts n_ik (N, q): full, partial, none, or "" with fewer than two ratings.

    Any level. Source: METHODS 1 (S4, agreement classes).
    """
    n, top = counts.sum(axis=1), counts.max(axis=1, initial=0)
    names = np.where(top == n, "full", np.where(top == 1, "none", "partial"))
    return np.where(n >= 2, names, "")


def agreement_class_report(table: RatingsTable, *, by: Sequence[str] = ("language", "criterion")) -> list[CellEstimate]:
    """Per cell and class: ``class_share`` of the items; ``score_share`` of each point among annotators and each judge.

    ``variant`` is the point; ``judge`` names the judge, None for the panel; the cell gains ``agreement_class``. A
    judge's fractions count for the nearest point, half up. Source: METHODS 1 (S4, 4.2).
    """
    return [row for cell in cells(table, by=by) for row in of_cell(cell)]


MOST_SHOWN = 11
"""Points of the longest scale whose shares are shown one by one."""


def score_share_report(table: RatingsTable, *, by: Sequence[str] = ("language", "criterion")) -> list[CellEstimate]:
    """Per cell: ``score_share`` of each point among the annotators' scores and each judge's first answers.

    ``variant`` is the point; ``judge`` names the judge, None for the panel. Scales of MOST_SHOWN points at most.
    Source: METHODS 1 (S4).
    """
    report: list[CellEstimate] = []
    for cell in cells(table, by=by):
        if cell.scale.q > MOST_SHOWN:
            continue
        scored = _Scored.of(cell)
        is_judge = scored.rater_kind == "judge"
        names = [name for place, name in enumerate(scored.raters) if (is_judge & (scored.rater == place)).any()]
        given = [(None, scored.is_human), *((name, is_judge & scored.has(name)) for name in sorted(names))]
        for judge, keep in given:
            if keep.any():
                items = len(np.unique(scored.item_key[keep]))
                report += _score_shares(cell, cell_key(cell), scored, keep, judge, items)
    return report


def of_cell(
    cell: Cell, *, judges: Sequence[str] | None = None, raters: Sequence[str] | None = None
) -> list[CellEstimate]:
    """The rows of one cell: ``judges`` or all of them, beside the annotators or those of ``raters``."""
    scored = _Scored.of(cell)
    if judges is None:
        places = np.unique(scored.rater[np.isin(scored.rater_kind, ("judge", "jury"))])
        judges = sorted(scored.raters[place] for place in places)
    human = scored.is_human & ~scored.has(*judges)
    if raters is not None:
        human &= scored.has(*raters)
    of_row, sizes = _classes(scored, human, cell.scale.q)
    shared, n_raters = len(np.unique(scored.cluster[of_row != ""])), len(np.unique(scored.rater[human]))
    report: list[CellEstimate] = []
    about = {"level": cell.scale.level, "n_clusters": shared, "n_raters": n_raters}
    for name in CLASSES:
        key = {**cell_key(cell), "agreement_class": name}
        share = _share("class_share", None, sizes[name], sum(sizes.values()), sum(sizes.values()))
        report.append(CellEstimate(estimate=share.with_(**about), cell=key))
        inside = of_row == name
        report += _score_shares(cell, key, scored, inside & human, None, sizes[name])
        for judge in judges:
            report += _score_shares(cell, key, scored, inside & scored.has(judge), judge, sizes[name])
    return report


@dataclass(frozen=True, slots=True)
class _Scored:
    """First answers on the scale, all (M,): ``item`` is of one criterion, ``rater`` a place in ``raters``."""

    code: Codes
    item: Codes
    item_key: Codes
    rater: Codes
    cluster: Codes
    rater_kind: NDArray[Any]
    raters: tuple[str, ...]

    @classmethod
    def of(cls, cell: Cell) -> _Scored:
        import pandas as pd

        frame = cell.frame
        is_first = (frame["repeat"] == frame["first_repeat"]).to_numpy()
        rows = frame[is_first & (frame["code"] >= 0).to_numpy()]
        criterion, criteria = pd.factorize(rows["criterion"])
        rater, raters = pd.factorize(rows["rater"])
        code, key, kind = (rows[name].to_numpy() for name in ("code", "item_key", "rater_kind"))
        item, cluster = pd.factorize(key * max(len(criteria), 1) + criterion)[0], pd.factorize(rows["cluster"])[0]
        return cls(code, item, key, rater, cluster, kind, tuple(map(str, raters)))

    @property
    def is_human(self) -> NDArray[np.bool_]:
        return np.isin(self.rater_kind, HUMAN_KINDS)

    def has(self, *names: str) -> NDArray[np.bool_]:
        """(M,) whether one of these raters gave the score."""
        return np.array([*(name in names for name in self.raters), False])[self.rater]


def _classes(scored: _Scored, human: NDArray[np.bool_], q: int) -> tuple[NDArray[np.str_], dict[str, int]]:
    """(M,) class of each row's item, "" where it has fewer than two scores; and how many items each class has."""
    n = int(scored.item.max()) + 1 if scored.item.size else 0
    flat = scored.item[human] * q + scored.code[human]
    of_item = agreement_class(np.bincount(flat, minlength=n * q).reshape(n, q))
    return of_item[scored.item], {name: int((of_item == name).sum()) for name in CLASSES}


def _score_shares(
    cell: Cell, key: dict[str, str | None], scored: _Scored, keep: NDArray[np.bool_], judge: str | None, n_items: int
) -> Iterator[CellEstimate]:
    counts = np.bincount(scored.code[keep], minlength=cell.scale.q)
    total, raters, clusters = (int(counts.sum()), *(len(np.unique(x[keep])) for x in (scored.rater, scored.cluster)))
    about = {"level": cell.scale.level, "n_raters": raters, "n_ratings": total, "n_clusters": clusters}
    for code, count in enumerate(counts):
        share = _share("score_share", cell.scale.label(code), int(count), total, n_items)
        yield CellEstimate(estimate=share.with_(**about), cell=key, judge=judge)


def _share(statistic: str, variant: str | None, count: int, total: int, n_items: int) -> Estimate:
    value = count / total if total else None
    reason = None if total else Message("nothing was rated here")
    note = Message("a share of what was seen; no interval")
    return Estimate(
        statistic=statistic, variant=variant, value=value, reason=reason, n_items=n_items, interval_reason=note
    )  # fmt: skip
