"""Many-facet Rasch: how severe each rater is, people and judges on one scale, whatever items each of them scored.

Rating scale model: log P(x = k) / P(x = k - 1) = item + severity of the rater - step k, below 0: lower scores. Of two
scores on one item, given their sum, the item cancels: severities come from pairs of raters alone, and no distribution
of items is assumed. Sources: Linacre 1989, Many-Facet Rasch Measurement; Andrich 1978 (doi 10.1007/BF02293814); pairs
given their sum: Choppin 1968 (doi 10.1038/219870a0), Garner & Engelhard 2002 (PMID 12011501).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import CellEstimate, Estimate, t_interval
from analytics.stats.core.messages import Message, approximate
from analytics.stats.core.number_arrays import Floats, Integers
from analytics.stats.core.resampling import ANONYMOUS, Units, left_out_error, number_of
from analytics.stats.core.tables import HUMAN_KINDS, Cell, Coded, RatingsTable, cells, coded

STATISTICS = ("rasch_severity", "rasch_infit")
_MOST_POINTS, MOST_RATERS = 20, 200
ENOUGH_CLUSTERS = 30
"""With fewer clusters, in total or for one rater, intervals say that they are approximate."""
PENALTY = 0.01
"""The penalty of a normal prior on the steps with standard deviation 10: it keeps a step finite if no pair of scores
determines the step.
"""
_STEPS, _AT_REST = 100, 1e-9
ALWAYS_ABOVE = Message("a rater, or a group of them, is always above or always below those it shares items with")
LEFT_OUT = Message(
    "always above or always below everybody it shares items with, or shares none: the others are fitted without it"
)
NOT_CONNECTED = Message("the raters fall into groups that share no item: their severities can't be compared")
_NO_ORDER = Message("a nominal scale has no severity")
_TOO_WIDE = Message("a many-facet model needs a scale of at most %(number)s points", number=_MOST_POINTS)
_TOO_MANY = Message("more than %(number)s raters", number=MOST_RATERS)
_ONE = Message("no two raters share an item")


@dataclass(frozen=True, slots=True)
class RaschFit:
    """``severity`` (R,) with mean 0, ``step`` (q - 1,), ``infit`` (R,); ``influence`` (C, R): what each cluster adds to
    the severities.
    """

    severity: Floats
    step: Floats
    infit: Floats
    influence: Floats


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Every two scores (P,) of one item: raters ``first`` < ``second``, their points, weight 1 / (n - 1), cluster."""

    first: Integers
    second: Integers
    a: Integers
    b: Integers
    weight: Floats
    cluster: Integers


def many_facet_rasch(
    item: Integers, rater: Integers, code: Integers, cluster: Integers, *, n_raters: int, q: int
) -> RaschFit | str:
    """Severities of R raters from M scores: item, rater and code (M,), cluster (N,) of each item, q points.

    Level: ordinal. Maximises sum over pairs of scores of an item, weighted by 1 / (n_i - 1), of log P(a, b | a + b),
    which is proportional to exp(a s_r + b s_s - T_a - T_b), T the sums of the steps, by Newton's method; concave.
    ``infit``: weighted mean square of what is left, 1 where the model holds, above 1 erratic, below 1 muted (Wright &
    Masters 1982). A sentence where no finite severities exist. Source: the module's.
    """
    pairs = _pairs(item, rater, code, cluster)
    if not len(pairs.first):
        return _ONE
    if reason := _not_finite(pairs, n_raters, q):
        return reason
    model = _Model.of(pairs, n_raters, q)
    severity, total = np.zeros(n_raters), np.zeros(q)
    for _ in range(_STEPS):
        move = np.linalg.solve(model.information(severity, total), model.slope(severity, total))
        move *= min(1.0, 2.0 / max(float(np.abs(move).max()), 1e-300))
        severity, total = severity + move[:n_raters], total + np.r_[0.0, move[n_raters:], 0.0]
        if np.abs(move).max() < _AT_REST:
            break
    else:
        return Message("the iterations did not come to rest")
    return RaschFit(severity - severity.mean(), np.diff(total), *_rests(pairs, model, severity, total))


def _rests(pairs: _Pairs, model: _Model, severity: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Infit (R,), and what each cluster adds to the severities, (C, R)."""
    n_raters, q, t = model.n_raters, model.q, pairs.a + pairs.b
    chance, a = model.chances(severity, total), np.arange(q)
    mean = chance @ a
    residual = pairs.a - mean[model.kind, t]
    spread = (chance @ a**2 - mean**2)[model.kind, t]
    both = np.r_[pairs.first, pairs.second]
    left, expected = (
        np.bincount(both, weights=np.tile(pairs.weight * part, 2), minlength=n_raters) for part in (residual**2, spread)
    )
    n_clusters, width = int(pairs.cluster.max()) + 1, n_raters + max(q - 2, 0)
    score = np.zeros((n_clusters, width))
    for raters, sign in ((pairs.first, 1.0), (pairs.second, -1.0)):
        np.add.at(score, (pairs.cluster, raters), sign * pairs.weight * residual)
    used = chance[model.kind, t]
    for k in range(1, q - 1):
        other = np.where((t - k >= 0) & (t - k < q), used[np.arange(len(t)), np.clip(t - k, 0, q - 1)], 0.0)
        observed = (pairs.a == k).astype(np.float64) + (pairs.b == k)
        np.add.at(score[:, n_raters + k - 1], pairs.cluster, pairs.weight * (used[:, k] + other - observed))
    influence = np.linalg.solve(model.information(severity, total), score.T).T
    with np.errstate(invalid="ignore", divide="ignore"):
        infit: Floats = np.where(expected > 0, left / expected, np.nan)
    return infit, np.asarray(influence[:, :n_raters], dtype=np.float64)


def _pairs(item: Integers, rater: Integers, code: Integers, cluster: Integers) -> _Pairs:
    """All pairs of scores of the items that have two or more; the first is that of the rater with the lower number."""
    order = np.lexsort((rater, item))
    item, rater, code = item[order], rater[order], code[order]
    start = np.flatnonzero(np.r_[True, item[1:] != item[:-1]]) if len(item) else np.empty(0, dtype=np.intp)
    size = np.diff(np.r_[start, len(item)])
    places: list[tuple[Integers, Integers]] = []
    for n in np.unique(size[size > 1]):
        at = start[size == n][:, None]
        one, other = np.triu_indices(int(n), 1)
        places.append(((at + one).ravel(), (at + other).ravel()))
    none = np.empty(0, dtype=np.intp)
    a, b = (np.concatenate([none, *(pair[side] for pair in places)]) for side in (0, 1))
    weight = 1 / (np.bincount(item)[item[a]] - 1.0) if len(a) else np.empty(0)
    where = np.unique(cluster[item[a]], return_inverse=True)[1]
    return _Pairs(rater[a], rater[b], code[a], code[b], weight, where)


def _not_finite(pairs: _Pairs, n_raters: int, q: int) -> str | None:
    """Why no finite severities exist: the graph of who is seen below whom must be strongly connected."""
    n_groups, n_strong, _group = _groups(pairs, n_raters, q)
    if n_groups > 1:
        return NOT_CONNECTED
    return ALWAYS_ABOVE if n_strong > 1 else None


def comparable_raters(item: Integers, rater: Integers, code: Integers, *, n_raters: int, q: int) -> NDArray[np.bool_]:
    """(R,) the largest group of raters with finite severities, from M scores: item, rater and code (M,), q points.

    The largest strongly connected part of the graph of who is seen below whom; of equal ones the first. Source: Ford
    1957 (doi 10.2307/2308513).
    """
    pairs = _pairs(item, rater, code, np.zeros(int(item.max(initial=-1)) + 1, dtype=np.intp))
    if not len(pairs.first):
        return np.zeros(n_raters, dtype=bool)
    group = _groups(pairs, n_raters, q)[2]
    return np.asarray(group == np.bincount(group).argmax(), dtype=np.bool_)


def _groups(pairs: _Pairs, n_raters: int, q: int) -> tuple[int, int, Integers]:
    """How many groups of raters share no item, how many are never seen below each other, and the latter (R,).

    A score below the most that its sum allows keeps its rater from being infinitely high. Source: Ford 1957
    (doi 10.2307/2308513), for points in place of wins.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    most = np.minimum(pairs.a + pairs.b, q - 1)
    below, above = pairs.a < most, pairs.b < most
    tail = np.r_[pairs.first[below], pairs.second[above]]
    head = np.r_[pairs.second[below], pairs.first[above]]
    shape = (n_raters, n_raters)
    shared = csr_array((np.ones(len(pairs.first)), (pairs.first, pairs.second)), shape=shape)
    seen = csr_array((np.ones(len(tail)), (tail, head)), shape=shape)
    n_strong, strong = connected_components(seen, directed=True, connection="strong")
    return int(connected_components(shared, directed=False)[0]), int(n_strong), strong


@dataclass(frozen=True, slots=True)
class _Model:
    """Pairs of raters (K,), the weight of each sum of their two scores (K, 2 q - 1), and of what was seen: the weighted
    sums of scores ``of_raters`` (R,) and of scores on each point ``of_points`` (q,). ``kind`` (P,): which pair of
    raters.
    """

    first: Integers
    second: Integers
    weight: Floats
    of_raters: Floats
    of_points: Floats
    kind: Integers
    n_raters: int
    q: int

    @classmethod
    def of(cls, pairs: _Pairs, n_raters: int, q: int) -> _Model:
        names, kind = np.unique(pairs.first * n_raters + pairs.second, return_inverse=True)
        width = 2 * q - 1
        cell, size = kind * width + pairs.a + pairs.b, len(names) * width
        weight = np.bincount(cell, weights=pairs.weight, minlength=size).reshape(len(names), width)
        twice = np.tile(pairs.weight, 2)
        raters, points = np.r_[pairs.first, pairs.second], np.r_[pairs.a, pairs.b]
        of_raters = np.bincount(raters, weights=twice * points, minlength=n_raters)
        of_points = np.bincount(points, weights=twice, minlength=q)
        sums = [np.asarray(part, dtype=np.float64) for part in (weight, of_raters, of_points)]
        return cls(names // n_raters, names % n_raters, sums[0], sums[1], sums[2], kind, n_raters, q)

    def chances(self, severity: Floats, total: Floats) -> Floats:
        """(K, 2 q - 1, q) P(first score = a | sum of both)."""
        t, a = np.arange(2 * self.q - 1)[:, None], np.arange(self.q)[None, :]
        other = t - a
        allowed = (other >= 0) & (other < self.q)
        of_steps = np.where(allowed, -(total[a] + total[np.clip(other, 0, self.q - 1)]), -np.inf)
        logit = (severity[self.first] - severity[self.second])[:, None, None] * a + of_steps
        chance = np.exp(logit - logit.max(axis=2, keepdims=True))
        return np.asarray(chance / chance.sum(axis=2, keepdims=True))

    def _of_points(self) -> Floats:
        """(2 q - 1, q, q) how many of the scores a and t - a are the point k."""
        t, a, k = (np.arange(n) for n in (2 * self.q - 1, self.q, self.q))
        other = t[:, None] - a[None, :]
        return np.asarray((a[None, :, None] == k).astype(np.float64) + (other[:, :, None] == k))

    def slope(self, severity: Floats, total: Floats) -> Floats:
        """(R + q - 2,) first derivatives; severities add up to 0."""
        chance, t = self.chances(severity, total), np.arange(2 * self.q - 1)
        mean = chance @ np.arange(self.q)
        expected = np.bincount(self.first, weights=(self.weight * mean).sum(axis=1), minlength=self.n_raters)
        expected += np.bincount(self.second, weights=(self.weight * (t - mean)).sum(axis=1), minlength=self.n_raters)
        points = np.einsum("pt,pta,tak->k", self.weight, chance, self._of_points(), optimize=True)
        of_steps = points - self.of_points - PENALTY * total
        return np.asarray(np.r_[self.of_raters - expected - severity.sum(), of_steps[1:-1]])

    def information(self, severity: Floats, total: Floats) -> Floats:
        """(R + q - 2, R + q - 2) minus the second derivatives."""
        chance, a, of_points, n = self.chances(severity, total), np.arange(self.q), self._of_points(), self.n_raters
        mean = chance @ a
        points = np.einsum("pta,tak->ptk", chance, of_points, optimize=True)
        weighted = self.weight[:, :, None]
        with_a = np.einsum("pta,tak->ptk", chance * a, of_points, optimize=True)
        spread = (self.weight * (chance @ a**2 - mean**2)).sum(axis=1)
        across = -(weighted * (with_a - mean[:, :, None] * points)).sum(axis=1)[:, 1:-1]
        squares = np.einsum("pt,pta,tak,tal->kl", self.weight, chance, of_points, of_points, optimize=True)
        steps = squares - np.einsum("ptk,ptl->kl", weighted * points, points, optimize=True)
        found = np.zeros((n + max(self.q - 2, 0),) * 2)
        for side in (self.first, self.second):
            np.add.at(found, (side, side), spread)
        np.add.at(found, (self.first, self.second), -spread)
        np.add.at(found, (self.second, self.first), -spread)
        found[:n, :n] += 1.0  # severities add up to 0
        for side, sign in ((self.first, 1), (self.second, -1)):
            np.add.at(found[:n, n:], side, sign * across)
        found[n:, :n] = found[:n, n:].T
        found[n:, n:] = (steps + PENALTY * np.eye(self.q))[1:-1, 1:-1]
        return found


# --- the report ------------------------------------------------------------------------------------------------------
def rasch_report(
    table: RatingsTable,
    *,
    by: Sequence[str] = ("criterion",),
    statistics: Collection[str] = STATISTICS,
    pool: bool = False,
    confidence: float = 0.95,
) -> list[CellEstimate]:
    """Per cell and rater, annotators and judges: ``rasch_severity`` in logits against the mean annotator, below 0:
    lower scores on the same items; ``rasch_infit``.

    Intervals: clusters left out (one step of Newton's method each), t; for these raters. A judge's first answers count.
    Undefined, with the reason, for anonymous annotators and where the scores leave severities without bounds. Where
    that is so for fewer than half of the raters, the others are fitted without them (``comparable_raters``).
    """
    is_rater = table.frame["rater_kind"].isin([*HUMAN_KINDS, "judge"]).to_numpy()
    chosen = RatingsTable(table.frame[is_rater], table.scales, table.notes)
    judges = set(chosen.frame["rater"][(chosen.frame["rater_kind"] == "judge").to_numpy()].astype(str))
    return [
        CellEstimate(
            estimate=row, cell={name: value or None for name, value in cell.key.items()}, annotator=name or None,
            judge=name if name in judges else None,
        )
        for cell in cells(chosen, by=by, pool=pool)
        for row, name in _of_raters(cell, judges, confidence)
        if row.statistic in statistics
    ]  # fmt: skip


def _of_raters(cell: Cell, judges: Collection[str], confidence: float) -> Iterator[tuple[Estimate, str]]:
    scores = coded(cell)
    base = Estimate(
        statistic="rasch_severity", value=None, reason=_NO_ORDER, level=cell.scale.level, n_items=scores.n_items,
        n_raters=len(scores.raters), n_ratings=int(scores.code.size), n_missing=scores.n_missing,
        n_clusters=number_of(scores.cluster),
    )  # fmt: skip
    if (reason := why_no_severity(cell, scores)) is not None:
        yield from ((base.with_(statistic=name, reason=reason), "") for name in STATISTICS)
        return
    found, scores, left_out = fitted_raters(scores)
    for name in left_out:
        yield from ((base.with_(statistic=statistic, reason=LEFT_OUT), name) for statistic in STATISTICS)
    if isinstance(found, str):
        yield from ((base.with_(statistic=name, reason=found), "") for name in STATISTICS)
        return
    if left_out:
        base = base.with_(note=Message("fitted without %(names)s", names=", ".join(left_out)))
    people = np.array([name not in judges for name in scores.raters])
    middle = people if people.any() else np.ones(len(people), dtype=bool)
    severity = found.severity - found.severity[middle].mean()
    influence = found.influence - found.influence[:, middle].mean(axis=1, keepdims=True)
    shared = scores.item[np.isin(scores.item, np.flatnonzero(np.bincount(scores.item) > 1))]
    for place, name in enumerate(scores.raters):
        own = np.isin(scores.item, shared) & (scores.rater == place)
        counts = {"n_items": int(own.sum()), "n_ratings": int(own.sum())}
        counts["n_clusters"] = number_of(scores.cluster[scores.item[own]])
        row = base.with_(**counts)
        yield _with_interval(row, float(severity[place]), influence[:, place], confidence), name
        infit = row.with_(statistic="rasch_infit", reason=Message("nothing is left to vary once the sums are known"))
        if not np.isnan(found.infit[place]):
            why = Message("a description of these scores")
            infit = infit.with_(value=float(found.infit[place]), reason=None, interval_reason=why)
        yield infit, name


def fitted_raters(scores: Coded) -> tuple[RaschFit | str, Coded, list[str]]:
    """The model of the largest group of raters that can be compared, if it has most of them; the raters left out."""
    left_out: list[str] = []
    rest = scores
    while True:
        points, code = np.unique(rest.code, return_inverse=True)
        counts = {"n_raters": len(rest.raters), "q": len(points)}
        found = many_facet_rasch(rest.item, rest.rater, code, rest.cluster, **counts)
        if not isinstance(found, str) or found not in (ALWAYS_ABOVE, NOT_CONNECTED):
            break
        kept = comparable_raters(rest.item, rest.rater, code, **counts)
        if kept.sum() < 2 or 2 * kept.sum() <= len(scores.raters):
            return found, scores, []
        left_out += [name for name, is_kept in zip(rest.raters, kept, strict=True) if not is_kept]
        for place in np.flatnonzero(~kept)[::-1]:
            rest = rest.without_rater(int(place))
    return (found, scores, []) if isinstance(found, str) else (found, rest, sorted(left_out))


def why_no_severity(cell: Cell, scores: Coded) -> str | None:
    """Why the scores of a cell have no severities, if so."""
    if not (cell.scale.has_order and cell.scale.is_numeric):
        return _NO_ORDER
    if not cell.has_persons:
        return ANONYMOUS
    if len(np.unique(scores.code)) > _MOST_POINTS:
        return _TOO_WIDE
    if len(np.unique(scores.code)) < 2:
        return Message("the scores do not differ")
    return _TOO_MANY if len(scores.raters) > MOST_RATERS else None


def _with_interval(row: Estimate, value: float, influence: Floats, confidence: float) -> Estimate:
    """The severity with its interval from what each cluster (C,) adds to it."""
    n = len(influence)
    row = row.with_(value=value, reason=None)
    if n < 2:
        return row.with_(interval_reason=Message("an interval needs two clusters"))
    without = value - n / (n - 1) * influence
    se, df = (float(part) for part in left_out_error(np.array(value), without, Units(np.ones(n, dtype=np.int64))))
    interval = t_interval(
        value, se, max(1.0, min(df, n - 1)), method=Message("jackknife t, clusters"), confidence=confidence
    )
    row = row.with_(**interval.as_changes())
    few = n if n < ENOUGH_CLUSTERS else min(n, row.n_clusters or n)
    if row.method and few < ENOUGH_CLUSTERS:
        row = row.with_(method=approximate(row.method, Message("%(number)s clusters", number=few)))
    return row
