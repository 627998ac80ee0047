"""Are criteria independent of each other, and do two panels see the same? (METHODS 1: S2, footnote 11 and G.3.)

Both compare two means of the same items, so both work on distinct pairs of values and resample whole clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.clusters import number_of
from analytics.stats.core.estimate import CellEstimate, Estimate
from analytics.stats.core.intervals import Shape
from analytics.stats.core.rater_sample import RatersAs, of_report
from analytics.stats.core.resampling import MOST_LEFT_OUT, Units, bootstrap, left_out_interval
from analytics.stats.core.tables import RatingsTable, cells, grouped
from analytics.stats.judge.association import spearman

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Kernel = Callable[[Floats, Floats, Floats], Floats]
_FREE: Shape = "free"
_COEFFICIENT: Shape = "coefficient"


def between_criteria(
    table: RatingsTable,
    *,
    by: Sequence[str] = ("language",),
    resamples: int = 2000,
    seed: int = 0,
    raters_as: RatersAs = "these",
) -> list[CellEstimate]:
    """``criteria_spearman`` of every pair of criteria over the items both were scored on, from the annotators' means.

    ``variant`` names the pair. Undefined where a criterion's means don't vary. Independent criteria stay near 0; the
    largest one reported for S2's criteria is .13. ``raters_as`` "sample": intervals for raters like these.
    """
    if raters_as == "sample":
        rows_of = between_criteria(table, by=by, resamples=resamples, seed=seed)
        return of_report(
            rows_of, lambda kept: between_criteria(kept, by=by, resamples=0), table, {"criteria_spearman": _COEFFICIENT}
        )
    found = []
    for key, rows in grouped(table.annotators().frame, list(by)):
        means = rows.groupby(["item_key", "criterion"])["score"].mean().unstack()
        clusters = rows.groupby("item_key")["cluster"].first()
        for first, second in combinations(means.columns, 2):
            both = means[[first, second]].dropna()
            estimate = _compared(
                "criteria_spearman",
                f"{first} ~ {second}",
                spearman,
                both.to_numpy(),
                clusters[both.index],
                resamples,
                seed,
            ).with_(n_raters=int(rows["rater"].nunique()))
            found.append(CellEstimate(estimate=estimate, cell=dict(zip(by, key, strict=True))))
    return found


def between_panels(
    table: RatingsTable,
    first: str,
    second: str,
    *,
    by: Sequence[str] = ("language", "criterion"),
    resamples: int = 2000,
    seed: int = 0,
    raters_as: RatersAs = "these",
) -> list[CellEstimate]:
    """Two panels (column ``panel``) on the items both scored, from their item means.

    ``panel_difference``: mean of second minus first; ``panel_spearman``: do they order the items alike? ``variant``
    names the two. Say crowd first, experts second. ``raters_as`` "sample": both panels are samples of such raters.
    """
    if raters_as == "sample":
        shapes: dict[str, Shape] = {"panel_difference": _FREE, "panel_spearman": _COEFFICIENT}
        return of_report(
            between_panels(table, first, second, by=by, resamples=resamples, seed=seed),
            lambda kept: between_panels(kept, first, second, by=by, resamples=0),
            table, shapes, sides=("panel", (first, second)),
        )  # fmt: skip
    found = []
    for cell in cells(table.annotators(), by=by):
        means = cell.frame.groupby(["item_key", "panel"])["score"].mean().unstack().reindex(columns=[first, second])
        both = means.dropna()
        clusters = cell.frame.groupby("item_key")["cluster"].first()[both.index]
        for statistic, kernel in (("panel_difference", _difference), ("panel_spearman", spearman)):
            estimate = _compared(
                statistic, f"{first} ~ {second}", kernel, both.to_numpy(dtype=np.float64), clusters, resamples, seed
            ).with_(n_raters=int(cell.frame["rater"][cell.frame["panel"].isin([first, second]).to_numpy()].nunique()))
            found.append(CellEstimate(estimate=estimate, cell=cell.key))
    return found


def _difference(x: Floats, y: Floats, w: Floats) -> Floats:
    """(B,) weighted mean of y - x; NaN where no item is left."""
    total = w.sum(axis=1)
    return np.asarray(np.divide(w @ (y - x), total, out=np.full(len(w), np.nan), where=total > 0))


def _compared(
    statistic: str,
    variant: str,
    kernel: Kernel,
    pairs: Floats,
    clusters: pd.Series[str],
    resamples: int,
    seed: int,
) -> Estimate:
    """One figure of (N, 2) paired means; N items in clusters (N,)."""
    base = Estimate(
        statistic=statistic,
        variant=variant,
        value=None,
        reason="no item has both",
        n_items=len(pairs),
        n_ratings=2 * len(pairs),
        n_clusters=number_of(clusters.to_numpy(dtype=str)),
    )
    if not len(pairs):
        return base
    distinct, pattern = np.unique(pairs, axis=0, return_inverse=True)
    units = Units.of(pattern.ravel(), np.unique(clusters.to_numpy(dtype=str), return_inverse=True)[1])

    def value(weights: Floats) -> Floats:
        return kernel(distinct[:, 0], distinct[:, 1], weights)

    found = float(value(units.pattern_totals[None, :])[0])
    if np.isnan(found):
        return base.with_(reason="one side does not vary")
    unit, shape = (float(np.abs(pairs).max()), _FREE) if kernel is _difference else (1.0, _COEFFICIENT)
    drawn = units.n_kinds > MOST_LEFT_OUT
    if drawn and resamples:
        interval = bootstrap(value, units, rng=np.random.default_rng(seed), resamples=resamples, unit=unit)
    else:
        interval = left_out_interval(value, units, shape, unit=unit)
    estimate = base.with_(value=found, reason=None, seed=seed if drawn and resamples else None)
    return estimate.with_(**interval.as_changes())
