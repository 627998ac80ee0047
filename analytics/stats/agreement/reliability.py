"""Reliability of numeric scores: intraclass correlations, variance components, and how many raters an item needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import (
    FEW_UNITS,
    NO_UNIT_DIFFERS,
    SPREAD_OF_SQUARES,
    Doubt,
    Estimate,
    Interval,
    doubted,
    kurtosis,
    n_points,
    t_interval,
    tails_of,
)
from analytics.stats.core.messages import Message
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import Units, effective_number, left_out_error

Form = Literal["1,1", "1,k", "2,1", "2,k", "3,1", "3,k"]
FORMS: tuple[Form, ...] = ("1,1", "1,k", "2,1", "2,k", "3,1", "3,k")

FEWEST_FOR_TAILS = 20
"""With fewer items, tails are not examined and F is used."""
ENOUGH_RATERS = 30
"""F assumes that the raters of ICC(2,.) are a sample and differ in severity only. If their errors differ too, its
interval covers .85 with 5 raters, .88 with 12 and .92 with 20 (50 items, 400 draws of
``bench.populations.fresh_raters``)."""
_TINY = 1e-12
"""A relative limit: scores are divided by their largest deviation before sums of squares are compared with it."""
VALUE_OUTSIDE = Message("the approximate bounds of F do not include the value, which is below 0")
ANONYMOUS = Message("raters are anonymous slots: read ICC(1,.); this form takes the slots for persons")


@dataclass(frozen=True, slots=True)
class MeanSquares:
    """Two-way layout of n items by k raters: between items (BMS), raters (JMS), within items (WMS), residual (EMS).

    The fields are numbers, or arrays (C,) with one entry for each cluster that is left out.
    """

    n: Any
    k: int
    bms: Any
    jms: Any
    wms: Any
    ems: Any


def icc(
    scores: Floats,
    form: Form,
    *,
    cluster: NDArray[np.integer] | None = None,
    confidence: float = 0.95,
    positional: bool = False,
) -> Estimate:
    """Intraclass correlation of (N, R) scores, NaN where missing, from the rows without a missing score.

    Level: interval. (1,1) = (BMS - WMS)/(BMS + (k-1) WMS); (2,1) = (BMS - EMS)/(BMS + (k-1) EMS + k (JMS - EMS)/n);
    (3,1) = (BMS - EMS)/(BMS + (k-1) EMS); (1,k) = (BMS - WMS)/BMS; (2,k) = (BMS - EMS)/(BMS + (JMS - EMS)/n); (3,k) =
    (BMS - EMS)/BMS. Intervals are from F; for (2,.) they are approximate below 30 raters. If a ``cluster`` (N,) has
    several complete items, the interval is from the jackknife over clusters: t on Fisher's z for k raters, z = log((1 +
    (k - 1) rho)/(1 - rho))/2 (Fisher 1925). Heavy tails of items' means or residuals make F far too narrow; then the
    jackknife is over items (``_tails``). Undefined with fewer than two complete items or two raters and when no score
    differs. Source: Shrout & Fleiss 1979 (doi 10.1037/0033-2909.86.2.420); (2,.) intervals: McGraw & Wong 1996 (doi
    10.1037/1082-989X.1.1.30).
    """
    return iccs(scores, (form,), cluster=cluster, confidence=confidence, positional=positional)[0]


def iccs(
    scores: Floats,
    forms: Sequence[Form],
    *,
    cluster: NDArray[np.integer] | None = None,
    confidence: float = 0.95,
    positional: bool = False,
) -> list[Estimate]:
    """``icc`` of several forms of (N, R) scores: rows, mean squares, tails and clusters left out are computed once.

    Level: interval. Source: Shrout & Fleiss 1979 (doi 10.1037/0033-2909.86.2.420).
    """
    whole = ~np.isnan(scores).any(axis=1) if scores.size else np.zeros(len(scores), dtype=bool)
    complete = scores[whole] if scores.size else scores
    n, k = complete.shape if complete.ndim == 2 else (0, 0)
    counts: dict[str, Any] = {"statistic": "icc", "n_items": n, "n_raters": k, "n_ratings": n * k}
    if reason := _too_few(n, k):
        return [Estimate(variant=form, value=None, reason=reason, **counts) for form in forms]
    unit = _unit(complete)[0]
    squares = mean_squares(unit)
    where = np.arange(n) if cluster is None else cluster[whole]
    doubt, is_heavy = _tails(unit)
    is_left_out = is_heavy or len(np.unique(where)) < n
    intervals: dict[Form, Interval] = {}
    if is_left_out:
        intervals = _without_clusters(unit, where, squares, forms, confidence)
    else:
        intervals = {form: _interval(squares, form, confidence) for form in forms}
    rows = []
    for form in forms:
        value = _value(squares, form)
        if math.isnan(value):
            rows.append(Estimate(variant=form, value=None, reason=_why_undefined(squares), **counts))
            continue
        few = form.startswith("2") and k < ENOUGH_RATERS and not is_left_out
        interval = doubted(
            doubted(intervals[form], Doubt(Message("%(number)s raters", number=k)) if few else None), doubt
        )
        note = ANONYMOUS if positional and not form.startswith("1") else None
        rows.append(Estimate(variant=form, value=value, note=note, **counts).with_(**interval.as_changes()))
    return rows


def stepped_up(single: Estimate, mean: Estimate) -> Estimate:
    """ICC(.,k) with the interval of the single-rater form, stepped up by Spearman-Brown for k = ``mean.n_raters``."""
    if mean.value is None:
        return mean
    k, estimate = mean.n_raters, mean.with_(speaks_for=single.speaks_for, method=single.method, se=None)
    reason = single.interval_reason
    if single.low is None or single.high is None or 1 + (k - 1) * single.low <= _TINY:
        reason = reason or Message("the lower bound of the mean of k raters is minus infinity")
        return estimate.with_(low=None, high=None, confidence=None, method=None, interval_reason=reason)
    low, high = (k * bound / (1 + (k - 1) * bound) for bound in (single.low, single.high))
    return estimate.with_(low=low, high=high, confidence=single.confidence)


def _unit(scores: Floats) -> tuple[Floats, float]:
    """Scores centred and divided by their largest deviation, and that deviation: 0 where no score differs (NaN stay).

    Correlations do not change, and no tolerance then depends on the unit of the scores.
    """
    centred = scores - np.nanmean(scores)
    width = float(np.nanmax(np.abs(centred)))
    if width <= 8 * np.finfo(np.float64).eps * float(np.nanmax(np.abs(scores))):
        return np.where(np.isnan(scores), np.nan, 0.0), 0.0
    return centred / width, width


def mean_squares(scores: Floats) -> MeanSquares:
    """Mean squares of complete (n, k) scores: between items and raters, residual, within items.

    Level: interval. Source: Shrout & Fleiss 1979 (doi 10.1037/0033-2909.86.2.420).
    """
    n, k = scores.shape
    centred = scores - scores.mean()
    items, raters = centred.mean(axis=1), centred.mean(axis=0)
    between, columns = k * float(items @ items), n * float(raters @ raters)
    within = float(((centred - items[:, None]) ** 2).sum())
    residual = float(((centred - items[:, None] - raters) ** 2).sum())
    return MeanSquares(
        n, k, between / (n - 1), columns / (k - 1), within / (n * (k - 1)), residual / ((n - 1) * (k - 1))
    )


def _too_few(n: int, k: int) -> str | None:
    if k < 2:
        return Message("only one rater") if k else Message("nothing is rated")
    return None if n >= 2 else Message("fewer than two items were scored by all %(raters)s raters", raters=k)


def _value(m: MeanSquares, form: Form) -> float:
    return float(_values(m, form))


def _values(m: MeanSquares, form: Form) -> Floats:
    """(...,) correlations from mean squares that are numbers or arrays (...,), NaN where undefined."""
    raters = m.k * (m.jms - m.ems) / m.n if form.startswith("2") else 0.0
    error = m.wms if form.startswith("1") else m.ems
    above = m.bms - error
    below = m.bms + (m.k - 1) * error + raters if form.endswith("1") else m.bms + raters / m.k
    scale = np.maximum(np.maximum(m.bms, m.jms), m.wms)
    values: Floats = np.full(np.shape(below), np.nan)
    np.divide(above, below, out=values, where=np.asarray(below > _TINY * scale))
    return values


def _why_undefined(m: MeanSquares) -> str:
    if max(m.bms, m.wms) == 0:
        return Message("the scores do not differ")
    return Message("the items differ so little that their estimated total variance is not positive")


def _interval(m: MeanSquares, form: Form, confidence: float) -> Interval:
    """Bounds of the single-rater form, stepped up by Spearman-Brown for the mean of k."""
    single = {"1": _one_way, "2": _two_way_random, "3": _two_way_mixed}[form[0]](m, (1 + confidence) / 2)
    if single is None or not np.isfinite(single).all() or single[1] - single[0] <= _TINY:
        return Interval(interval_reason=Message("the mean squares leave F without finite bounds"))
    value = _value(m, f"{form[0]},1")  # type: ignore[arg-type]
    if not single[0] - _TINY <= value <= single[1] + _TINY:
        return Interval(interval_reason=VALUE_OUTSIDE)
    if form.endswith("1"):
        return Interval(low=single[0], high=single[1], confidence=confidence, method="F")
    if 1 + (m.k - 1) * single[0] <= 0:
        return Interval(interval_reason=Message("the lower bound of the mean of k raters is minus infinity"))
    low, high = (m.k * bound / (1 + (m.k - 1) * bound) for bound in single)
    return Interval(low=low, high=high, confidence=confidence, method="F")


def _without_clusters(
    scores: Floats, cluster: NDArray[np.integer], m: MeanSquares, forms: Sequence[Form], confidence: float
) -> dict[Form, Interval]:
    """t intervals of the single-rater forms on Fisher's z from leaving out each cluster, stepped up like those of F."""
    _, index, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        return dict.fromkeys(forms, Interval(interval_reason=Message("an interval needs two clusters")))
    squares = _squares_without(scores, index, sizes)
    return {form: _left_out_interval(squares, sizes, m, form, confidence) for form in forms}


def _left_out_interval(
    squares: MeanSquares, sizes: NDArray[np.intp], m: MeanSquares, form: Form, confidence: float
) -> Interval:
    """The interval of one form from mean squares (C,) without each cluster of these sizes (C,)."""
    single: Form = f"{form[0]},1"  # type: ignore[assignment]
    rho = _value(m, single)
    without = _values(squares, single)
    units = Units(np.ones(len(sizes), dtype=np.int64))
    se, tail_df = (float(part) for part in left_out_error(np.array(rho), without, units))
    below = 1 + (m.k - 1) * rho
    if not np.isfinite(se):
        return Interval(interval_reason=Message("without one of the clusters no score differs"))
    if se <= _TINY or not (rho < 1 and below > 0):
        return Interval(
            interval_reason=NO_UNIT_DIFFERS if se <= _TINY else Message("the value lies at the end of its range")
        )
    z, dz = math.log(below / (1 - rho)) / 2, se * m.k / (2 * below * (1 - rho))
    df = effective_number(sizes) - 1
    around = t_interval(
        z,
        dz,
        max(1.0, min(df, tail_df)),
        method=Message("%(method)s t of Fisher's z", method=Message("jackknife")),
        confidence=confidence,
    )
    if around.low is None or around.high is None:
        return around
    low, high = (math.exp(min(2 * bound, 700.0)) for bound in (around.low, around.high))
    ends = [(low - 1) / (low + m.k - 1), (high - 1) / (high + m.k - 1)]
    if form.endswith("k"):
        if 1 + (m.k - 1) * ends[0] <= _TINY:
            return Interval(interval_reason=Message("the lower bound of the mean of k raters is minus infinity"))
        ends = [m.k * bound / (1 + (m.k - 1) * bound) for bound in ends]
    doubt = Doubt(Message("%(number)s independent units", number=f"{df + 1:.3g}")) if df + 1 < FEW_UNITS else None
    return doubted(replace(around, low=ends[0], high=ends[1], se=None), doubt)


def _squares_without(scores: Floats, index: NDArray[np.intp], sizes: NDArray[np.intp]) -> MeanSquares:
    """Mean squares (C,) of complete, centred (N, R) scores without each of C clusters, from sums of the clusters."""
    k, n = scores.shape[1], (len(scores) - sizes).astype(np.float64)
    item = scores.sum(axis=1)
    columns = np.stack([np.bincount(index, weights=column, minlength=len(sizes)) for column in scores.T], axis=1)
    of_items = np.bincount(index, weights=item**2, minlength=len(sizes))
    of_scores = np.bincount(index, weights=(scores**2).sum(axis=1), minlength=len(sizes))
    column, items, squares = columns.sum(axis=0) - columns, of_items.sum() - of_items, of_scores.sum() - of_scores
    n[n < 2] = np.nan  # undefined
    mean = column.sum(axis=1) ** 2 / (n * k)
    between, raters, total = items / k - mean, (column**2).sum(axis=1) / n - mean, squares - mean
    residual = np.maximum(0.0, total - between - raters) / ((n - 1) * (k - 1))
    return MeanSquares(n, k, between / (n - 1), raters / (k - 1), (total - between) / (n * (k - 1)), residual)


def _tails(scores: Floats) -> tuple[Doubt | None, bool]:
    """The doubt that complete (n, k) scores have heavy tails, and whether F would be too narrow for them.

    F is valid if items' means and residuals are normal; each of these may have heavier tails than the scores.
    """
    n, means = len(scores), scores.mean(axis=1)
    parts = (means,), ((scores - means[:, None]).ravel(),)
    doubt = tails_of(n_points(scores.ravel()), n, (scores.ravel(),), *parts)
    heaviest = max(kurtosis(*part) for part in ((scores.ravel(),), *parts))
    return doubt, n >= FEWEST_FOR_TAILS and heaviest > SPREAD_OF_SQUARES[0]


def _one_way(m: MeanSquares, p: float) -> tuple[float, float] | None:
    return _from_f(m.bms, m.wms, m.n - 1, m.n * (m.k - 1), m.k, p)


def _two_way_mixed(m: MeanSquares, p: float) -> tuple[float, float] | None:
    return _from_f(m.bms, m.ems, m.n - 1, (m.n - 1) * (m.k - 1), m.k, p)


def _from_f(bms: float, error: float, df1: int, df2: int, k: int, p: float) -> tuple[float, float] | None:
    if error <= _TINY * bms:
        return None
    low, high = bms / error / _f(df1, df2, p), bms / error * _f(df2, df1, p)
    return (low - 1) / (low + k - 1), (high - 1) / (high + k - 1)


def _two_way_random(m: MeanSquares, p: float) -> tuple[float, float] | None:
    """Satterthwaite's degrees of freedom for the mix of rater and residual variance."""
    rho, n, k = _value(m, "2,1"), m.n, m.k
    if m.ems <= _TINY * m.bms or m.ems == 0:
        return None
    f_j = m.jms / m.ems
    mixed = k * rho * f_j + n * (1 + (k - 1) * rho) - k * rho
    below = (n - 1) * k**2 * rho**2 * f_j**2 + (n * (1 + (k - 1) * rho) - k * rho) ** 2
    v = (k - 1) * (n - 1) * mixed**2 / below if below > 0 else 0.0
    if v <= 0:
        return None
    upper, lower = _f(n - 1, v, p), _f(v, n - 1, p)
    spread = k * m.jms + (k * n - k - n) * m.ems
    if min(upper * spread + n * m.bms, spread + n * lower * m.bms) <= 0:
        return None
    low = n * (m.bms - upper * m.ems) / (upper * spread + n * m.bms)
    return low, n * (lower * m.bms - m.ems) / (spread + n * lower * m.bms)


def _f(df1: float, df2: float, p: float) -> float:
    from scipy.special import fdtri

    return float(fdtri(df1, df2, p))


@dataclass(frozen=True, slots=True)
class Components:
    """Variance of items, of raters, and of the rest (interaction and error); ``negative`` names those set to 0."""

    item: float
    rater: float
    residual: float
    negative: tuple[str, ...] = ()

    def reliability(self, raters: int, *, absolute: bool = True) -> float:
        """Share of item variance in the mean of ``raters`` raters; ``absolute`` counts their severity as error."""
        error = self.residual + (self.rater if absolute else 0.0)
        total = self.item + error / raters
        return self.item / total if total > 0 else math.nan


def variance_components(scores: Floats) -> Components | None:
    """Components of (N, R) scores, NaN where missing in any pattern (METHODS 1: incomplete panels).

    Equates the sums of squares T_item = sum n_i. ybar_i.^2, T_rater, T_0 = sum y^2 and T_mean with their expectations
    under y = mu + item + rater + residual and solves for the three variances. Undefined (None) when the design doesn't
    separate them. Source: Henderson 1953, method 1 (doi 10.2307/3001853).
    """
    seen = ~np.isnan(scores)
    total = int(seen.sum())
    if min(seen.any(axis=1).sum(), seen.any(axis=0).sum()) < 2:
        return None
    centred, width = _unit(scores)
    y = np.where(seen, centred, 0.0)
    per_item, per_rater = seen.sum(axis=1), seen.sum(axis=0)
    sums = np.array([_squares(y.sum(axis=1), per_item), _squares(y.sum(axis=0), per_rater), float((y**2).sum())])
    i, j = int((per_item > 0).sum()), int((per_rater > 0).sum())
    item_mean, rater_mean = float(per_item @ per_item) / total, float(per_rater @ per_rater) / total
    design = np.array(
        [
            [total - item_mean, i - rater_mean, i - 1],
            [j - item_mean, total - rater_mean, j - 1],
            [total - item_mean, total - rater_mean, total - 1],
        ]
    )
    if np.linalg.matrix_rank(design) < 3:
        return None
    return _components(np.linalg.solve(design, sums), width**2)


def _squares(sums: Floats, sizes: NDArray[np.integer]) -> float:
    return float((sums[sizes > 0] ** 2 / sizes[sizes > 0]).sum())


def _components(solved: Floats, unit: float) -> Components:
    names = ("item", "rater", "residual")
    negative = tuple(name for name, value in zip(names, solved, strict=True) if value < -_TINY)
    item, rater, residual = (float(value) * unit if value > _TINY else 0.0 for value in solved)
    return Components(item, rater, residual, negative)


def reliability_curve(components: Components, most: int = 10) -> list[tuple[int, float, float]]:
    """(raters per item, absolute, relative reliability of their mean) for 1..most raters.

    Source: Brennan 2001, Generalizability Theory (doi 10.1007/978-1-4757-3456-0).
    """
    return [(m, components.reliability(m), components.reliability(m, absolute=False)) for m in range(1, most + 1)]


def component_estimates(scores: Floats, statistic: str, *, n_missing: int = 0) -> list[Estimate]:
    """``variance_component`` (item, rater, residual) or ``panel_reliability`` (m raters, absolute) of (N, R) scores.

    Level: interval. Undefined where the design does not separate items, raters and the rest. Source: Brennan 2001
    (doi 10.1007/978-1-4757-3456-0).
    """
    components = variance_components(scores) if scores.size else None
    seen = ~np.isnan(scores)
    base = Estimate(
        statistic=statistic,
        value=None,
        reason=Message("the design does not separate items, raters and the rest"),
        n_items=int(seen.any(axis=1).sum()),
        n_raters=int(seen.any(axis=0).sum()),
        n_ratings=int(seen.sum()),
        n_missing=n_missing,
        interval_reason=Message("no closed form for an incomplete panel"),
    )
    if components is None:
        return [base]
    if statistic == "variance_component":
        return [
            base.with_(variant=name, value=getattr(components, name), reason=None,
                       note=Message("estimated below 0, shown as 0") if name in components.negative else None)
            for name in ("item", "rater", "residual")
        ]  # fmt: skip
    curve = reliability_curve(components)
    return [_curve_point(base, m, absolute) for m, absolute, _ in curve]


def _curve_point(base: Estimate, raters: int, value: float) -> Estimate:
    if math.isnan(value):
        return base.with_(variant=str(raters), reason=Message("the scores do not differ"))
    return base.with_(variant=str(raters), value=value, reason=None)
