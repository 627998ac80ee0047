"""What changes of texts and requests do to a judge's scores, cell by cell (METHODS 5; S4, section 3.5).

The ratings table has, in the rows of the judge, what it gave the same item before and after each change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import NO_RESAMPLE_DIFFERS, CellEstimate, Estimate, approximate, percentile
from analytics.stats.core.resampling import THIS_JUDGE, number_of, resampled_sums
from analytics.stats.core.tables import Cell, RatingsTable, cells
from analytics.stats.judge.audits import share
from analytics.stats.judge.panel import cell_key

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

CHANGED = "changed_scores"
"""The column of a judge's rows: a JSON object, by change the score before and after it."""
STATISTICS = ("score_drop", "fall", "stay", "rise")
FEW_CLUSTERS = 30
NOT_RUN = "not run: the judge was not asked about changed texts"
_NOMINAL = "a nominal scale has no distances"


def perturbation_report(
    table: RatingsTable,
    *,
    judge: str,
    by: Sequence[str] = ("language", "criterion"),
    pool: bool = False,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[CellEstimate]:
    """For each change (the variant) in every cell: ``score_drop``, the mean of before less after in points of the
    scale, and the shares of the scores that ``fall``, ``stay`` and ``rise``.

    Undefined, with the reason, in cells where the judge was asked about nothing changed.
    """
    report: list[CellEstimate] = []
    for cell in cells(table, by=by, pool=pool):
        own = (cell.frame["rater"] == judge).to_numpy()
        if not own.any():
            continue
        rows = [*_of_cell(cell, own, bootstrap, confidence, seed)]
        rows = rows or [Estimate(statistic=name, value=None, reason=NOT_RUN) for name in STATISTICS]
        report += [
            CellEstimate(
                estimate=row.with_(
                    level=cell.scale.level, n_raters=1, speaks_for=THIS_JUDGE if row.is_defined else None
                ),
                cell=cell_key(cell),
                judge=judge,
            )
            for row in rows
        ]
    return report


def _of_cell(cell: Cell, own: NDArray[np.bool_], bootstrap: int, confidence: float, seed: int) -> Iterator[Estimate]:
    frame = cell.frame[own & (cell.frame["repeat"] == cell.frame["first_repeat"]).to_numpy()]
    if CHANGED not in frame:
        return
    given = [json.loads(text) if isinstance(text, str) and text else {} for text in frame[CHANGED]]
    clusters = np.unique(frame["cluster"].astype(str).to_numpy(), return_inverse=True)[1] if len(frame) else np.empty(0)
    for change in sorted({name for scores in given for name in scores}):
        at = [place for place, scores in enumerate(given) if change in scores]
        pairs = np.array([given[place][change] for place in at], dtype=np.float64)
        cluster = np.asarray(clusters[at], dtype=np.intp)
        for row in perturbed(pairs[:, 0], pairs[:, 1], cluster, bootstrap=bootstrap, confidence=confidence, seed=seed):
            if row.statistic == "stay" or cell.scale.has_order:
                yield row.with_(variant=change)
            elif row.statistic == "score_drop":
                yield Estimate(statistic="score_drop", variant=change, value=None, reason=_NOMINAL)


def perturbed(
    before: Floats, after: Floats, cluster: Codes, *, bootstrap: int = 2000, confidence: float = 0.95, seed: int = 0
) -> list[Estimate]:
    """Scores of the same items before and after a change (N,), (N,), clusters (N,) -> STATISTICS.

    score_drop: mean of before - after; clusters are resampled, percentile interval; approximate below 30 clusters.
    Where every difference is the same, it is its own interval from 30 clusters on, and has none below. Shares:
    Wilson. Source: S4, section 3.5; METHODS 5.
    """
    gap = before - after
    n, c = len(gap), number_of(cluster)
    drop = _drop(gap, cluster, bootstrap, confidence, seed).with_(statistic="score_drop", n_items=n, n_clusters=c)
    shares = {"fall": gap > 0, "stay": gap == 0, "rise": gap < 0}
    return [
        drop,
        *(share(name, int(hits.sum()), n, clusters=c, confidence=confidence) for name, hits in shares.items()),
    ]


def _drop(gap: Floats, cluster: Codes, bootstrap: int, confidence: float, seed: int) -> Estimate:
    estimate = Estimate(statistic="score_drop", value=float(gap.mean()), n_ratings=2 * len(gap))
    sums = np.bincount(np.unique(cluster, return_inverse=True)[1], weights=gap)
    sizes = np.bincount(np.unique(cluster, return_inverse=True)[1])
    if np.ptp(gap) == 0:
        if len(sums) < FEW_CLUSTERS:
            return estimate.with_(interval_reason=NO_RESAMPLE_DIFFERS)
        method = approximate("constant", "every item has the same difference")
        return estimate.with_(low=estimate.value, high=estimate.value, confidence=confidence, method=method)
    if not bootstrap or len(sums) < 2:
        return estimate.with_(interval_reason="an interval needs resampling and two clusters")
    drawn = resampled_sums(np.column_stack([sums, sizes]), resamples=bootstrap, rng=np.random.default_rng(seed))
    interval = percentile(drawn[:, 0] / drawn[:, 1], confidence=confidence)
    estimate = estimate.with_(seed=seed, **interval.as_changes())
    if estimate.method and len(sums) < FEW_CLUSTERS:
        return estimate.with_(method=approximate(estimate.method, f"{len(sums)} clusters"))
    return estimate


def by_expectation(
    rows: Sequence[Estimate], expects: Mapping[str, str]
) -> tuple[tuple[Estimate, ...], tuple[Estimate, ...]]:
    """Of the defined score drops: those after changes with which scores should fall, and the shifts (after less before,
    as ``perturbation``) after those that must not matter. A fall after one that must only not raise it is no shift.
    """
    drops = [row for row in rows if row.statistic == "score_drop" and row.is_defined]
    falls = tuple(drop for drop in drops if expects.get(drop.variant or "") == "fall")
    others = (drop for drop in drops if expects.get(drop.variant or "", "fall") != "fall")
    return falls, tuple(_shift(drop, expects[drop.variant or ""]) for drop in others)


def _shift(drop: Estimate, expects: str) -> Estimate:
    floor = 0.0 if expects == "no_rise" else -float("inf")
    value, low, high = (None if x is None else max(floor, 0.0 - x) for x in (drop.value, drop.high, drop.low))
    return drop.with_(statistic="perturbation", value=value, low=low, high=high)
