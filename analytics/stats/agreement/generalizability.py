"""Generalizability: how much of the spread of scores comes from the items, the raters, the languages and the criteria.

And what that says of a mean of several raters (a D-study). Every facet is taken as random; people only, no judge.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from analytics.stats.core.estimates import CellEstimate, Estimate, jackknife_interval
from analytics.stats.core.messages import Message, approximate
from analytics.stats.core.number_arrays import Floats, Integers
from analytics.stats.core.resampling import ANONYMOUS, Units, left_out_error, number_of
from analytics.stats.core.tables import Cell, RatingsTable, cells

if TYPE_CHECKING:
    import pandas as pd


STATISTICS = ("variance_share", "dependability")
RESIDUAL = "residual"
MOST_RATERS_PER_ITEM = 10
_MOST_GROUPS = 60
"""Clusters are left out one by one up to this number, then in so many groups."""
ENOUGH_GROUPS = 30
"""Below, intervals say that they are approximate."""
OF_FEW_LEVELS = ("language", "criterion")
"""Facets of few levels, often estimated below 0: their intervals cover .76 to .93 (``bench.coverage_raters``)."""
BELOW_ZERO = Message("estimated below 0, shown as 0")
NOT_SEPARATE = Message("the design does not separate items, raters and the rest")
_NO_NUMBERS = Message("a scale without numbers in order has no variance")


def facet_components(y: Floats, facets: Mapping[str, Integers]) -> dict[str, float] | None:
    """Variance of each facet and of the rest from scores y (M,), facets: codes (M,) of each score's level.

    Level: interval. Henderson's method 1: with levels g of sizes n_g, T = sum_g (sum of y in g)^2 / n_g for every
    facet, and the sum of squares, are set equal to what is expected under y = mu + sum of random effects + rest:
    E T_f = M mu^2 + sum_l v_l sum_{g in f, h in l} n_gh^2 / n_g + v_rest |f|. Values can be negative; None where the
    design does not tell them apart. Source: Henderson 1953 (doi 10.2307/3001853); Brennan 2001 (doi
    10.1007/978-1-4757-3456-0).
    """
    n = len(y)
    names = list(facets)
    levels = [np.unique(codes, return_inverse=True)[1] for codes in facets.values()]
    whole = [np.zeros(n, dtype=np.intp), *levels, np.arange(n)]
    centred = y - y.mean() if n else y
    sums = np.array([_sum_of_squares(centred, level) for level in whole])
    expected = np.array([[_shared(level, other) for other in (*levels, np.arange(n))] for level in whole])
    design, right = expected[1:] - expected[0], sums[1:] - sums[0]
    if n < 2 or np.linalg.matrix_rank(design) < len(names) + 1:
        return None
    return dict(zip((*names, RESIDUAL), np.linalg.solve(design, right).tolist(), strict=True))


def _sum_of_squares(y: Floats, level: Integers) -> float:
    size = np.bincount(level)
    return float((np.bincount(level, weights=y) ** 2 / np.maximum(size, 1)).sum())


def _shared(level: Integers, other: Integers) -> float:
    """sum n_gh^2 / n_g over the levels g of one facet and h of another."""
    both, count = np.unique(level * (int(other.max()) + 1) + other, return_counts=True)
    return float((count.astype(np.float64) ** 2 / np.bincount(level)[both // (int(other.max()) + 1)]).sum())


def dependability(components: Mapping[str, float], raters: int) -> float:
    """Share of the items' variance in the mean of so many raters who differ in severity: v_i / (v_i + error / raters).

    The error is all that changes with the rater. Source: Brennan 2001 (doi 10.1007/978-1-4757-3456-0), Phi.
    """
    positive = {name: max(value, 0.0) for name, value in components.items()}
    error = positive.get("rater", 0.0) + positive.get("rater x criterion", 0.0) + positive[RESIDUAL]
    total = positive["item"] + error / raters
    return positive["item"] / total if total > 0 else math.nan


def generalizability_report(
    table: RatingsTable,
    *,
    by: Sequence[str] = ("criterion",),
    statistics: Collection[str] = STATISTICS,
    pool: bool = False,
    confidence: float = 0.95,
) -> list[CellEstimate]:
    """Per cell: ``variance_share`` of every facet (the variant): item, rater, language where there are several, and
    the residual; with ``pool`` also criterion, item x criterion and rater x criterion. ``dependability`` of the mean of
    1 to 10 raters.

    Intervals leave out clusters of items, so that they speak of these raters and languages. First ratings of people
    only; undefined, with the reason, for anonymous raters and where the design does not separate the facets.
    """
    return [
        CellEstimate(estimate=row, cell={name: value or None for name, value in cell.key.items()})
        for cell in cells(table.annotators(), by=by, pool=pool)
        for row in _of_cell(cell, confidence)
        if row.statistic in statistics
    ]


def _of_cell(cell: Cell, confidence: float) -> Iterator[Estimate]:
    frame = cell.frame
    used = frame[((frame["code"] >= 0) & (frame["repeat"] == frame["first_repeat"])).to_numpy()]
    facets = _facets(used)
    base = Estimate(
        statistic="variance_share", value=None, reason=NOT_SEPARATE, level=cell.scale.level,
        n_items=int(used["item_key"].nunique()), n_raters=int(used["rater"].nunique()), n_ratings=len(used),
        n_clusters=int(used["cluster"].nunique()), n_missing=int(frame["missing"].sum()),
    )  # fmt: skip
    reason = None if cell.scale.has_order and cell.scale.is_numeric else _NO_NUMBERS
    reason = reason or (None if cell.has_persons else ANONYMOUS)
    y = np.asarray(used["score"], dtype=np.float64) if reason is None else np.empty(0)
    whole = facet_components(y, facets) if len(y) else None
    if whole is None:
        yield from (base.with_(statistic=name, reason=reason or NOT_SEPARATE) for name in STATISTICS)
        return
    cluster = np.unique(used["cluster"].astype(str).to_numpy(), return_inverse=True)[1]
    without = _left_out(y, facets, cluster)
    yield from _figures(base, whole, without, confidence)


def _facets(used: pd.DataFrame) -> dict[str, Integers]:
    """By name the levels of each facet that has two or more; nothing that says the same as another one."""
    import pandas as pd

    columns = {"item": ["item_key"], "rater": ["rater"], "language": ["language"], "criterion": ["criterion"]}
    columns |= {"item x criterion": ["item_key", "criterion"], "rater x criterion": ["rater", "criterion"]}
    crossed = used["criterion"].nunique() > 1
    found: dict[str, Integers] = {}
    for name, parts in columns.items():
        if len(parts) > 1 and not crossed:
            continue
        codes = np.asarray(used.groupby(parts, dropna=False, sort=False).ngroup())
        if name == "item" or len(pd.unique(codes)) > 1:
            found[name] = codes
    return found


def _left_out(y: Floats, facets: Mapping[str, Integers], cluster: Integers) -> list[dict[str, float] | None]:
    """The components without each cluster, or each group of clusters."""
    group = cluster % _MOST_GROUPS if number_of(cluster) > _MOST_GROUPS else cluster
    found = []
    for one in np.unique(group):
        kept = group != one
        found.append(facet_components(y[kept], {name: codes[kept] for name, codes in facets.items()}))
    return found


def _figures(
    base: Estimate, whole: Mapping[str, float], without: Sequence[Mapping[str, float] | None], confidence: float
) -> Iterator[Estimate]:
    for name in whole:
        row = base.with_(variant=name)
        if max(whole.values()) <= 0:
            yield row.with_(reason=Message("the scores do not differ"))
        elif whole[name] <= 0:
            yield row.with_(value=0.0, reason=None, note=BELOW_ZERO, interval_reason=BELOW_ZERO)
        else:
            others = [each and _share(each, name) for each in without]
            shown = _with_interval(row, _share(whole, name), others, confidence)
            few = shown.method if name in OF_FEW_LEVELS else None
            yield shown.with_(method=approximate(few, Message("few levels"))) if few else shown
    for raters in range(1, MOST_RATERS_PER_ITEM + 1):
        row = base.with_(statistic="dependability", variant=str(raters))
        value = dependability(whole, raters)
        if math.isnan(value):
            yield row.with_(reason=Message("the scores do not differ"))
        else:
            others = [each and dependability(each, raters) for each in without]
            yield _with_interval(row, value, others, confidence)


def _share(components: Mapping[str, float], name: str) -> float:
    total = sum(max(value, 0.0) for value in components.values())
    return max(components[name], 0.0) / total if total > 0 else math.nan


def _with_interval(row: Estimate, value: float, without: Sequence[object], confidence: float) -> Estimate:
    row = row.with_(value=value, reason=None)
    values = np.array([np.nan if each is None else each for each in without], dtype=np.float64)
    if len(values) < 2:
        return row.with_(interval_reason=Message("an interval needs two clusters"))
    if np.isnan(values).any():
        return row.with_(interval_reason=Message("without one of the clusters the design does not separate the facets"))
    se, df = (
        float(part) for part in left_out_error(np.array(value), values, Units(np.ones(len(values), dtype=np.int64)))
    )
    n = len(values)
    if not 0 < value < 1 or se <= 1e-12:
        return row.with_(interval_reason=Message("it lies at the end of its range"))
    # On the log-odds scale, where shares are closer to symmetric.
    odds = math.log(value / (1 - value))
    around = jackknife_interval(odds, se / (value * (1 - value)), n - 1, "free", tail_df=df, confidence=confidence)
    if around.low is None or around.high is None:
        return row.with_(interval_reason=around.interval_reason)
    low, high = (1 / (1 + math.exp(-min(max(end, -700.0), 700.0))) for end in (around.low, around.high))
    method = Message("jackknife t of log-odds, clusters")
    if n < ENOUGH_GROUPS:
        method = approximate(method, Message("%(number)s clusters", number=n))
    return row.with_(low=low, high=high, confidence=confidence, method=method)
