"""Drift of raters: has a rater become more severe, or more lenient, from the first to the second half of their ratings?

The facet rater x time of the many-facet model (``rasch``): every rater stands in it twice, with the earlier and the
later half of their own ratings, and ``rasch_drift`` is the later severity less the earlier one. Sources: Wolfe, Moulder
& Myford 2001 (PMID 12011500), Myford & Wolfe 2009 (doi 10.1111/j.1745-3984.2009.00088.x), who fit blocks apart and
compare them; here all blocks are fitted together, so that items which raters saw at different times link the blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement.rasch import (
    ENOUGH_CLUSTERS,
    LEFT_OUT,
    MOST_RATERS,
    NOT_CONNECTED,
    fitted_raters,
    why_no_severity,
)
from analytics.stats.core.estimates import CellEstimate, Estimate, corrected_together, t_interval
from analytics.stats.core.messages import Message, approximate
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import Units, left_out_error, number_of
from analytics.stats.core.tables import HUMAN_KINDS, Cell, Coded, RatingsTable, cells, coded

if TYPE_CHECKING:
    import pandas as pd


STATISTICS = ("rasch_drift",)
TIME = "submitted_at"
"""The column with the time of each rating: a date and time, or any number that grows."""
FEWEST = 15
"""Items shared with other raters in each half: with fewer, intervals cover too little (docs/methods/raters.md)."""
NO_TIMES = Message("no times of ratings are known")
SAME_TIME = Message("all ratings have one time")
ALARM = 0.05
_HALVED = "halved"
IN_ONE_ORDER = Message(
    "against the raters who do not drift: all rated in one order, so that a drift of all can't be seen"
)


def drift_report(
    table: RatingsTable, *, by: Sequence[str] = ("criterion",), pool: bool = False, confidence: float = 0.95
) -> list[CellEstimate]:
    """Per cell and annotator ``rasch_drift`` in logits: severity in the later half of their ratings less the earlier.

    Above 0: higher scores later. The half ends where a rater's ratings of items that somebody else rated too are halved
    best without parting equal times. p: no drift, t, clusters left out; ``p_corrected``: Holm's, over the raters of a
    cell. Judges have one severity. Where all rated in one order, each rater is compared with those who do not drift,
    and marked approximate. Level: ordinal. Source: the module's.
    """
    is_rater = table.frame["rater_kind"].isin([*HUMAN_KINDS, "judge"]).to_numpy()
    chosen = RatingsTable(table.frame[is_rater], table.scales, table.notes)
    judges = set(chosen.frame["rater"][(chosen.frame["rater_kind"] == "judge").to_numpy()].astype(str))
    report: list[CellEstimate] = []
    for cell in cells(chosen, by=by, pool=pool):
        key = {name: value or None for name, value in cell.key.items()}
        rows = [
            CellEstimate(estimate=row, cell=key, annotator=name or None)
            for row, name in _drifts(cell, judges, confidence)
        ]
        report += corrected_together(rows)
    return report


def _drifts(cell: Cell, judges: Collection[str], confidence: float) -> Iterator[tuple[Estimate, str]]:
    scores = coded(cell)
    refusal = why_no_severity(cell, scores)
    if refusal is None and 2 * len(scores.raters) > MOST_RATERS:
        refusal = Message("more than %(number)s raters", number=MOST_RATERS // 2)
    base = Estimate(
        statistic="rasch_drift", value=None, level=cell.scale.level, n_items=scores.n_items,
        n_raters=len(scores.raters), n_ratings=int(scores.code.size), n_missing=scores.n_missing,
        n_clusters=number_of(scores.cluster), reason=refusal or NO_TIMES,
    )  # fmt: skip
    if refusal is not None:
        yield base, ""
        return
    people = [rater for rater, name in enumerate(scores.raters) if name not in judges]
    later, rows = _halved(scores, _times(cell.frame, scores), people, base)
    yield from ((row, scores.raters[rater]) for rater, row in rows.items() if row.reason != _HALVED)
    halved = [rater for rater, row in rows.items() if row.reason == _HALVED]
    for rater, found in _found(scores, later, halved, confidence).items():
        row, own = rows[rater], scores.rater == rater
        if isinstance(found, str):
            yield row.with_(reason=found), scores.raters[rater]
            continue
        few = min(number_of(scores.cluster[scores.item[own & (later == half)]]) for half in (False, True))
        tested = found.estimate(row, confidence)
        if tested.method and (few < ENOUGH_CLUSTERS or found.is_relative):
            why = (
                Message("%(number)s clusters in a half", number=few)
                if few < ENOUGH_CLUSTERS
                else Message("all rated in one order")
            )
            tested = tested.with_(method=approximate(tested.method, why))
        yield tested.with_(note=IN_ONE_ORDER if found.is_relative else None), scores.raters[rater]


def _halved(
    scores: Coded, time: Floats, raters: Sequence[int], base: Estimate
) -> tuple[NDArray[np.bool_], dict[int, Estimate]]:
    """(M,) which scores are of the later half of their rater's, and a row of each rater; its reason says why if none.

    Only scores of items that somebody else rated too count; equal times stay together.
    """
    shared = np.bincount(scores.item)[scores.item] > 1
    later = np.zeros(len(scores.item), dtype=bool)
    rows: dict[int, Estimate] = {}
    for rater in raters:
        own = np.flatnonzero(shared & (scores.rater == rater))
        clusters = number_of(scores.cluster[scores.item[own]])
        moments, counts = np.unique(time[own], return_counts=True)
        before = counts.cumsum()[:-1]
        sizes = np.minimum(before, len(own) - before)
        if np.isnan(time[own]).any():
            reason: str = NO_TIMES
        elif not len(sizes):
            reason = SAME_TIME if len(own) else Message("no item is shared with another rater")
        elif sizes.max() < FEWEST:
            reason = Message(
                "a half has %(number)s items that others rated too; %(needed)s are needed",
                number=sizes.max(),
                needed=FEWEST,
            )
        else:
            reason = _HALVED
            later[own] = time[own] > moments[sizes.argmax()]
        rows[rater] = base.with_(n_items=len(own), n_ratings=len(own), n_clusters=clusters, reason=reason)
    return later, rows


@dataclass(frozen=True, slots=True)
class _Drift:
    """``value``, what each cluster (C,) adds to it, and whether it is only against raters who are taken as steady."""

    value: float
    influence: Floats
    is_relative: bool = False

    def estimate(self, row: Estimate, confidence: float) -> Estimate:
        """The row with the drift, its interval and its test."""
        from scipy.special import stdtr

        n = len(self.influence)
        without = self.value - n / (n - 1) * self.influence
        se, df = (float(x) for x in left_out_error(np.array(self.value), without, Units(np.ones(n, dtype=np.int64))))
        df = max(1.0, min(df, n - 1))
        interval = t_interval(self.value, se, df, method=Message("jackknife t, clusters"), confidence=confidence)
        row = row.with_(value=self.value, reason=None).with_(**interval.as_changes())
        return row.with_(p=float(2 * stdtr(df, -abs(self.value) / se))) if row.low is not None else row


def _found(
    scores: Coded, later: NDArray[np.bool_], raters: Sequence[int], confidence: float
) -> dict[int, _Drift | str]:
    """The drift of each of these raters, or why it has none.

    Where all rated in one order the halves share no items, and only what a rater does beside the others can be seen:
    each is split alone. A rater who drifts would make the others seem to drift the other way, so those who are found
    to drift stay split while the others are compared with the rest, the clearest first.
    """
    drifts = _fitted(scores, later, raters)
    if drifts is not None:
        return drifts
    drifting: list[int] = []
    while True:
        alone: dict[int, _Drift | str] = {}
        for rater in raters:
            split = _fitted(scores, later, sorted({*drifting, rater}))
            found = NOT_CONNECTED if split is None else split[rater]
            alone[rater] = found if isinstance(found, str) else replace(found, is_relative=True)
        blank = Estimate(statistic="rasch_drift", value=None, reason=NO_TIMES)
        tests = {
            rater: p
            for rater, drift in alone.items()
            if rater not in drifting and not isinstance(drift, str)
            if (p := drift.estimate(blank, confidence).p) is not None
        }
        clearest = min(tests, key=tests.__getitem__, default=None)
        if clearest is None or tests[clearest] * len(tests) >= ALARM or len(drifting) + 2 >= len(scores.raters):
            return alone
        drifting.append(clearest)


def _times(frame: pd.DataFrame, scores: Coded) -> Floats:
    """(M,) the time of each score; NaN where none is known."""
    import pandas as pd

    if TIME not in frame:
        return np.full(len(scores.place), np.nan)
    given = frame.set_index("row")[TIME].reindex(scores.place)
    numbers = pd.to_numeric(given, errors="coerce")
    if numbers.isna().all():
        moments = pd.to_datetime(given, errors="coerce", utc=True, format="ISO8601")
        numbers = (moments - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    return numbers.to_numpy(dtype=np.float64)


def _fitted(scores: Coded, later: NDArray[np.bool_], raters: Sequence[int]) -> dict[int, _Drift | str] | None:
    """The drift of these raters, each of whom stands in one model twice; None where the halves share no items."""
    places, rater = np.unique(scores.rater * 2 + (later & np.isin(scores.rater, raters)), return_inverse=True)
    fit, kept, _left_out = fitted_raters(replace(scores, rater=rater, raters=tuple(map(str, places))))
    if isinstance(fit, str):
        return None if fit == NOT_CONNECTED else dict.fromkeys(raters, fit)
    at = {int(name): place for place, name in enumerate(kept.raters)}
    drifts: dict[int, _Drift | str] = dict.fromkeys(raters, LEFT_OUT)
    for one in raters:
        if {2 * one, 2 * one + 1} <= at.keys():
            before, after = at[2 * one], at[2 * one + 1]
            drifts[one] = _Drift(
                float(fit.severity[after] - fit.severity[before]), fit.influence[:, after] - fit.influence[:, before]
            )
    return drifts
