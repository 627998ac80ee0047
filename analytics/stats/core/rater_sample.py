"""Intervals for raters like these: items and raters are both a sample (the default takes the raters as they are)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimate import CellEstimate, Estimate
from analytics.stats.core.intervals import FEW_UNITS, NO_WIDTH, Interval, Shape, jackknife_interval
from analytics.stats.core.resampling import effective_number

if TYPE_CHECKING:
    import pandas as pd

    from analytics.stats.core.tables import RatingsTable

Floats = NDArray[np.float64]
Report = Callable[["RatingsTable"], Sequence[CellEstimate]]
RatersAs = Literal["these", "sample"]
RATERS_AS: tuple[RatersAs, ...] = ("these", "sample")
THESE, LIKE_THESE, THIS_JUDGE = "these raters", "raters like these", "this judge"
"""What ``Estimate.speaks_for`` holds."""
FEWEST_RATERS = 3
FEW_RATERS = FEW_UNITS
"""With fewer raters (their effective number) an interval for raters like these says that it is approximate."""
TOO_FEW = "fewer than three raters are no sample of raters"
ANONYMOUS = "anonymous slots are no persons: raters cannot be taken as a sample"


def for_these(estimate: Estimate, whom: str = THESE) -> Estimate:
    """The same, saying that it speaks for these raters alone."""
    return estimate.with_(speaks_for=whom) if estimate.value is not None else estimate


def saying_whom(row: CellEstimate, whom: str | None) -> CellEstimate:
    """The same, speaking for ``whom`` where its figure does not say it itself; None: it is about no rater."""
    if whom is None or row.estimate.speaks_for is not None:
        return row
    return replace(row, estimate=for_these(row.estimate, whom))


def without_interval(estimate: Estimate, reason: str) -> Estimate:
    """The same without its interval, which would have spoken for these raters alone."""
    found = estimate.with_(low=None, high=None, confidence=None, method=None, se=None, undefined_share=None, seed=None)
    return found.with_(interval_reason=reason, speaks_for=LIKE_THESE)


def for_raters_like_these(
    estimate: Estimate,
    without: Sequence[float | None],
    sizes: Sequence[int] | NDArray[np.integer],
    shape: Shape,
    parts: Sequence[int] | NDArray[np.integer] | None = None,
) -> Estimate:
    """The estimate with an interval that holds items and raters for samples.

    ``estimate`` has the interval for these raters, [l, u]. ``without`` (R,) holds the value with each rater left out,
    ``sizes`` (R,) how many scores each gave. Raters left out one by one give a second interval [l', u']: jackknife
    error around the mean of these values (a panel of R - 1 may have another level), t with the effective number of
    raters less 1, on the scale of ``shape``. Together: low = value - sqrt((value - l)^2 + (value - l')^2), high alike.
    Raters who are all alike add nothing. What items and raters do together is in both parts, so that the interval is
    rather too wide. ``parts`` (R,): raters of two panels are left out within their own, and degrees of freedom added by
    Satterthwaite. No interval with fewer than three raters in a part. Sources: two-way resampling, Owen 2007
    (doi 10.1214/07-AOAS122); adding intervals, Zou & Donner 2008 (doi 10.1002/sim.3095); docs/decisions/0020.
    """
    if estimate.value is None:
        return estimate
    if estimate.low is None or estimate.high is None:
        return estimate.with_(speaks_for=LIKE_THESE)
    kept = np.asarray(sizes) > 0
    given = np.asarray(sizes)[kept]
    part = np.zeros(len(given), dtype=np.intp) if parts is None else np.asarray(parts)[kept]
    own = [given[part == one] for one in np.unique(part)]
    if min(map(len, own), default=0) < FEWEST_RATERS:
        return without_interval(estimate, TOO_FEW)
    values = np.array([np.nan if value is None else value for value in without], dtype=np.float64)
    if np.isnan(values).any():
        return without_interval(estimate, "without one of the raters the figure is undefined")
    confidence, value = estimate.confidence or 0.95, estimate.value
    raters = _of_raters(value, values, given, part, shape, confidence)
    if raters.low is None or raters.high is None:
        return without_interval(estimate, raters.interval_reason or TOO_FEW)
    low = value - math.hypot(value - estimate.low, value - raters.low)
    high = value + math.hypot(estimate.high - value, raters.high - value)
    lowest, highest = BOUNDS[shape]
    method = f"{estimate.method} and raters left out"
    fewest = min(map(effective_number, own))
    if fewest < FEW_RATERS:
        method = f"{method} (approximate: {fewest:.3g} raters)"
    return estimate.with_(
        low=max(low, lowest), high=min(high, highest), method=method, se=None, speaks_for=LIKE_THESE
    )  # fmt: skip


def of_report(
    rows: Sequence[CellEstimate],
    again: Report,
    table: RatingsTable,
    shapes: Mapping[str, Shape],
    *,
    raters: Sequence[str] | None = None,
    sides: tuple[str, tuple[str, str]] | None = None,
) -> list[CellEstimate]:
    """A report with intervals for raters like these: ``again`` makes it anew without each annotator.

    Rows of the statistics in ``shapes`` get them, the others stay with these raters. ``sides``: a column and two of its
    values that are compared; raters of one side only are a sample of their own. Source: docs/decisions/0020.
    """
    panel = table.annotators().frame
    panel = panel[(panel["code"] >= 0).to_numpy()]
    names = [name for name in sorted(map(str, panel["rater"].unique())) if raters is None or name in raters]
    left = {}
    for name in names:
        kept = replace(table, frame=table.frame[(table.frame["rater"] != name).to_numpy()])
        left[name] = {_key(row): row.estimate.value for row in again(kept)}
    return [
        _of_row(row, panel, left, shapes[row.estimate.statistic], sides)
        if row.estimate.statistic in shapes and row.annotator is None
        else row
        for row in rows
    ]


def _of_row(
    row: CellEstimate,
    panel: pd.DataFrame,
    left: Mapping[str, Mapping[tuple[object, ...], float | None]],
    shape: Shape,
    sides: tuple[str, tuple[str, str]] | None,
) -> CellEstimate:
    here = panel
    named = {"language": row.language, "generator": row.generator}
    for column, value in {**row.cell, **{column: value for column, value in named.items() if value}}.items():
        if column in here:
            here = here[(here[column].fillna("").astype(str) == (value or "")).to_numpy()]
    if sides:
        here = here[here[sides[0]].astype(str).isin(sides[1]).to_numpy()]
    scored = here["rater"].astype(str)
    names = [name for name in left if (scored == name).any()]
    sizes = [int((scored == name).sum()) for name in names]
    parts = None
    if sides:
        on = here[sides[0]].astype(str)
        parts = [sum(2**k for k, side in enumerate(sides[1]) if ((scored == n) & (on == side)).any()) for n in names]
    without = [left[name].get(_key(row)) for name in names]
    return replace(row, estimate=for_raters_like_these(row.estimate, without, sizes, shape, parts))


def _key(row: CellEstimate) -> tuple[object, ...]:
    """What tells a row from the others of its report."""
    e = row.estimate
    return (
        e.statistic,
        e.variant,
        *row.cell.items(),
        row.language,
        row.languages,
        row.generator,
        row.raters,
        row.judge,
    )


BOUNDS: dict[Shape, tuple[float, float]] = {
    "share": (0.0, 1.0),
    "coefficient": (-math.inf, 1.0),
    "positive": (0.0, math.inf),
    "free": (-math.inf, math.inf),
}


def _of_raters(
    value: float,
    without: Floats,
    sizes: NDArray[np.integer],
    part: NDArray[np.integer],
    shape: Shape,
    confidence: float,
) -> Interval:
    """The part of the raters; no width where they are all alike."""
    unit = max(1.0, abs(value)) if shape in ("share", "coefficient") else abs(value)
    variances, dfs = [], []
    for one in np.unique(part):
        own = without[part == one]
        variances.append((len(own) - 1) / len(own) * float(((own - own.mean()) ** 2).sum()))
        dfs.append(effective_number(sizes[part == one]) - 1)
    se = math.sqrt(sum(variances))
    if se <= NO_WIDTH * max(unit, float(np.abs(without).max())):
        return Interval(low=value, high=value)
    total = sum(v**2 / d for v, d in zip(variances, dfs, strict=True) if v > 0 and d > 0)
    df = se**4 / total if total > 0 and min(dfs) > 0 else 0.0
    if df < 1:
        return Interval(interval_reason="one rater gave nearly all scores: raters cannot be taken as a sample")
    return jackknife_interval(value, se, df, shape, confidence=confidence)
