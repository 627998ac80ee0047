"""Agreement on scales of many points (a slider of 0 to 100 with decimals): exact without a table of items by points.

Items hardly ever repeat each other there, so nothing is gained by counting patterns, and items x points, or points x
points, would fill the memory. Each coefficient is computed from the long list of scores instead: disagreement within
items from sums and sorted scores, chance disagreement from the margins. A kernel returns its value and its gradient
(N,), the derivative by the weight of each item; the gradient, summed within clusters, gives the standard error.
The values are those of ``coefficients`` (tests/analytics/stats/agreement/test_wide.py compares them).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement.coefficients import TINY, chance_majority, distances
from analytics.stats.core.estimates import Interval, Shape, jackknife_interval
from analytics.stats.core.messages import Message
from analytics.stats.core.number_arrays import Floats, Integers
from analytics.stats.core.resampling import effective_number

if TYPE_CHECKING:
    from analytics.stats.core.scales import Scale
    from analytics.stats.core.tables import Coded

Kind = Literal["identity", "adjacent", "linear", "quadratic", "ordinal"]
Value = tuple[float, Floats]
"""A coefficient, NaN where undefined, and its gradient (N,)."""


def gradient_standard_error(gradient: Floats, cluster: NDArray[np.intp]) -> tuple[float, float, float]:
    """se of a value from its gradient (N,) and clusters (N,), degrees of freedom of the clusters, and of their tails.

    se^2 = (C - 1) / C sum_c (N / (N - N_c) g_c)^2, g_c the gradient summed within a cluster: leaving out clusters, to
    first order. NaN with fewer than two. Source: the infinitesimal jackknife, Efron 1982 (doi 10.1137/1.9781611970319);
    degrees of freedom as in ``resampling.left_out_error``.
    """
    sizes = np.bincount(cluster)
    totals, c = np.bincount(cluster, weights=gradient), len(sizes)
    if c < 2:
        return float("nan"), 0.0, 0.0
    change = (totals - totals.mean()) * len(cluster) / (len(cluster) - sizes)
    squares, fourths = float((change**2).sum()), float((change**4).sum())
    tail_df = 2 * c / max(c * fourths / squares**2 - 1, 1e-9) if squares**2 > 0 else 0.0
    return float(np.sqrt((c - 1) / c * squares)), effective_number(sizes) - 1, tail_df


def interval(
    value: Value,
    cluster: NDArray[np.intp],
    shape: Shape,
    *,
    is_kappa: bool = False,
    confidence: float,
    unit: float = 1.0,
) -> Interval:
    """Linearised interval of a value with a gradient (N,), items in clusters (N,), by the ``shape`` of the figure.

    ``unit`` is the size of the numbers that the value is made of. Source: ``estimates.jackknife_interval``.
    """
    se, df, tail_df = gradient_standard_error(value[1], cluster)
    n = float(cluster.max()) + 1
    return jackknife_interval(
        value[0], se, df, shape, tail_df=tail_df, n=n, is_kappa=is_kappa, confidence=confidence, unit=unit,
        by=Message("linearised"),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two points are apart, d_kl = 1 - w_kl for the agreement weights w_kl of ``scales.agreement_weights``.

    ``by_step`` |u_k - u_l| + ``by_square`` (u_k - u_l)^2 on positions u (q,) in ascending order; a distance without
    positions is 1 outside ``reach`` steps of the scale (identity: 0, adjacent: 1).
    """

    q: int
    u: Floats | None = None
    by_step: float = 0.0
    by_square: float = 0.0
    reach: int = 0

    @classmethod
    def of(cls, scale: Scale, kind: Kind) -> Distance:
        """The distance that belongs to a weighting."""
        q = scale.q
        if kind in ("identity", "adjacent"):
            return cls(q, reach=int(kind == "adjacent"))
        if kind == "ordinal":
            step = 1 / (q * (q - 1))
            return cls(q, np.arange(q, dtype=np.float64) - (q - 1) / 2, step, step)
        u = np.asarray((scale.values - np.median(scale.values)) / (np.ptp(scale.values) or 1.0), dtype=np.float64)
        return cls(q, u, by_step=float(kind == "linear"), by_square=float(kind == "quadratic"))

    def between(self, a: Integers, b: Integers) -> Floats:
        """(m,) distances of codes a and b (m,)."""
        if self.u is None:
            return np.asarray(abs(a - b) > self.reach, dtype=np.float64)
        apart = abs(self.u[a] - self.u[b])
        return np.asarray(self.by_step * apart + self.by_square * apart**2)

    def toward(self, margin: Floats) -> Floats:
        """(q,) sum_l d_kl m_l of every point k, margin m (q,): its distance from all that the margin holds."""
        total = margin.sum()
        if self.u is None:
            near = margin.copy()
            if self.reach:
                near[1:] += margin[:-1]
                near[:-1] += margin[1:]
            return np.asarray(total - near)
        u = _around(self.u, margin)
        first, second = margin * u, margin * u**2
        squares = u**2 * total - 2 * u * first.sum() + second.sum()
        steps = u * (2 * np.cumsum(margin) - total) + first.sum() - 2 * np.cumsum(first)
        return np.asarray(self.by_step * steps + self.by_square * squares)


def _around(u: Floats, margin: Floats) -> Floats:
    """Positions (q,) counted from the mean of a margin (q,): differences of squares keep their digits there."""
    total = float(margin.sum())
    return np.asarray(u - (float(margin @ u) / total if total > 0 else 0.0))


class LongScores:
    """One cell's scores sorted by item and point, with what the coefficients are made of."""

    def __init__(self, cell: Coded) -> None:
        order = np.lexsort((cell.code, cell.item))
        self.cell, self.scale, self.n_items = cell, cell.scale, cell.n_items
        self.item, self.code = cell.item[order], cell.code[order]
        self.n = np.bincount(self.item, minlength=self.n_items).astype(np.float64)
        self.paired = self.n >= 2
        is_first = np.ones(len(self.item), dtype=bool)
        is_first[1:] = (self.item[1:] != self.item[:-1]) | (self.code[1:] != self.code[:-1])
        starts = np.flatnonzero(is_first)
        self.run_item, self.run_code = self.item[starts], self.code[starts]
        self.count = np.diff(starts, append=len(self.item)).astype(np.float64)

    def per_item(self, of_scores: Floats) -> Floats:
        """(N,) sums of a value per score (M,)."""
        return np.asarray(np.bincount(self.item, weights=of_scores, minlength=self.n_items), dtype=np.float64)

    def per_item_of_runs(self, of_runs: Floats) -> Floats:
        """(N,) sums of a value per distinct point of an item."""
        return np.asarray(np.bincount(self.run_item, weights=of_runs, minlength=self.n_items), dtype=np.float64)

    def points_used(self, kept: NDArray[np.bool_]) -> int:
        """How many points the scores of the kept items (N,) take."""
        return int(np.count_nonzero(np.bincount(self.run_code[kept[self.run_item]])))

    @cached_property
    def squares(self) -> Floats:
        """(N,) sum_k n_ik^2."""
        return self.per_item_of_runs(self.count**2)

    @cached_property
    def most(self) -> Floats:
        """(N,) max_k n_ik."""
        top = np.zeros(self.n_items)
        np.maximum.at(top, self.run_item, self.count)
        return top

    def disagreement(self, distance: Distance) -> Floats:
        """(N,) sum of d over all ordered pairs of an item's scores."""
        if distance.u is None:
            return np.asarray(self.n**2 - self.squares - (self._neighbours() if distance.reach else 0))
        u = _around(distance.u, np.bincount(self.code, minlength=distance.q).astype(np.float64))[self.code]
        ends = np.cumsum(self.n)
        rank = np.arange(1, len(u) + 1) - (ends - self.n)[self.item]
        steps = 2 * self.per_item(u * (2 * rank - self.n[self.item] - 1))
        squares = 2 * (self.n * self.per_item(u**2) - self.per_item(u) ** 2)
        return np.asarray(distance.by_step * steps + distance.by_square * np.maximum(squares, 0))

    def _neighbours(self) -> Floats:
        """(N,) ordered pairs of scores that are one step apart."""
        next_to = (self.run_item[1:] == self.run_item[:-1]) & (self.run_code[1:] == self.run_code[:-1] + 1)
        pairs = np.where(next_to, 2 * self.count[1:] * self.count[:-1], 0.0)
        return np.asarray(np.bincount(self.run_item[1:], weights=pairs, minlength=self.n_items), dtype=np.float64)

    def mean_disagreement(self, distance: Distance) -> Value:
        """Mean over the items with two scores of the mean distance between their scores."""
        return ratio(self.disagreement(distance) / np.maximum(self.n * (self.n - 1), 1) * self.paired, self.paired)

    def agreement(self, distance: Distance) -> Value:
        """p_a: mean over the items with two scores of 1 - their mean disagreement."""
        own = np.where(self.paired, 1 - self.disagreement(distance) / np.maximum(self.n * (self.n - 1), 1), 0)
        return ratio(own, self.paired)

    def concentration(self, kept: NDArray[np.bool_], per_item: Floats) -> Value:
        """sum_k pi_k^2 with pi_k the mean over the kept items (N,) of n_ik / per_item_i."""
        share = np.where(kept[self.run_item], self.count / per_item[self.run_item], 0)
        n = max(int(kept.sum()), 1)
        pi = np.bincount(self.run_code, weights=share, minlength=self.scale.q) / n
        value = float(pi @ pi)
        return value, np.where(kept, 2 * (self.per_item_of_runs(share * pi[self.run_code]) - value) / n, 0)


def ratio(above: Floats, below: NDArray[Any]) -> Value:
    """sum a_i / sum b_i of what each item (N,) adds. Source: METHODS 1."""
    total = float(below.sum())
    value = float(above.sum()) / total if total > 0 else np.nan
    return value, np.asarray((above - value * below) / total if total > 0 else np.zeros(len(above)))


def corrected(observed: Value, expected: Value) -> Value:
    """(p_a - p_e) / (1 - p_e), undefined where chance alone agrees always."""
    (p_a, g_a), (p_e, g_e) = observed, expected
    if not abs(1 - p_e) > TINY:
        return np.nan, np.zeros(len(g_a))
    kappa = (p_a - p_e) / (1 - p_e)
    return kappa, np.asarray((g_a - (1 - kappa) * g_e) / (1 - p_e))


def coefficient(scores: LongScores, statistic: str, variant: str | None) -> Value:
    """A count-based coefficient by its name (``rater_agreement.STATISTICS``): that of its kernel in ``coefficients``.

    Any level, as in the kernel named alike. Source: METHODS 1.
    """
    n, paired, q = scores.n, scores.paired, scores.scale.q
    identity = Distance.of(scores.scale, "identity")
    if statistic == "percent_agreement":
        return scores.agreement(identity)
    if statistic == "percent_agreement_pooled":
        return ratio(scores.squares - n, n * (n - 1))
    if statistic == "percent_agreement_exact":
        return ratio((paired & (scores.most == n)).astype(np.float64), paired)
    if statistic == "percent_agreement_adjacent":
        return scores.agreement(Distance.of(scores.scale, "adjacent"))
    if statistic == "fleiss_kappa":
        return _fleiss(scores, variant)
    if statistic == "krippendorff_alpha":
        return alpha(scores)
    if statistic == "verdict_confidence":
        return _confidence(scores, variant)
    distance = Distance.of(scores.scale, variant)  # type: ignore[arg-type]
    weight = q**2 - float(distance.toward(np.ones(q)).sum())
    if statistic == "brennan_prediger":
        return corrected(scores.agreement(distance), (weight / q**2, np.zeros(scores.n_items)))
    value, gradient = scores.concentration(n >= 1, n)
    share = weight / (q * (q - 1))
    return corrected(scores.agreement(distance), (share * (1 - value), -share * gradient))


def _fleiss(scores: LongScores, variant: str | None) -> Value:
    """Fleiss' kappa over all items, over complete ones, or as S0's script takes it (every item like the first)."""
    n = scores.n
    if variant == "paper_compat":
        per_score = n[scores.cell.item]
        places = np.where(per_score >= 2, scores.cell.place, np.iinfo(np.intp).max)
        first = float(per_score[places.argmin()])
        own = np.where(scores.paired, (scores.squares - first) / (first * (first - 1)), 0)
        return corrected(ratio(own, scores.paired), scores.concentration(scores.paired, np.full(len(n), first)))
    kept = n == len(scores.cell.raters) if variant == "complete" else n >= 1
    entering = kept & scores.paired
    own = np.where(entering, (scores.squares - n) / np.maximum(n * (n - 1), 1), 0)
    return corrected(ratio(own, entering), scores.concentration(kept, n))


def _confidence(scores: LongScores, variant: str | None) -> Value:
    n, paired = scores.n, scores.paired
    if variant == "observed":
        return ratio(np.where(paired, scores.most / np.maximum(n, 1), 0), paired)
    sizes, index = np.unique(n, return_inverse=True)
    expected = np.array([chance_majority(int(size), scores.scale.q) if size >= 2 else 0.0 for size in sizes])[index]
    chance = ratio(np.where(paired, expected, 0), paired)
    return chance if variant == "chance" else corrected(_confidence(scores, "observed"), chance)


class _Pairable:
    """The scores of the items with two or more, and their margin n_k (q,)."""

    def __init__(self, scores: LongScores) -> None:
        enters = scores.paired[scores.item]
        self.item, self.code = scores.item[enters], scores.code[enters]
        self.n_items, self.q = scores.n_items, scores.scale.q
        self.margin = np.bincount(self.code, minlength=self.q).astype(np.float64)

    def per_item(self, of_points: Floats) -> Floats:
        """(N,) sum_k n_ik v_k."""
        return np.asarray(
            np.bincount(self.item, weights=of_points[self.code], minlength=self.n_items), dtype=np.float64
        )

    def per_point(self, of_items: Floats) -> Floats:
        """(q,) sum_i n_ik v_i."""
        return np.asarray(np.bincount(self.code, weights=of_items[self.item], minlength=self.q), dtype=np.float64)


def alpha(scores: LongScores) -> Value:
    """Krippendorff's alpha of long scores at the scale's level, as ``coefficients.krippendorff_alpha_kernel``.

    1 - (n - 1) O / E over items with n_i >= 2, O = sum_i sum_kl n_ik n_il d_kl / (n_i - 1), E = sum_kl n_k n_l d_kl.
    Source: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability.
    """
    pairable = _Pairable(scores)
    n_i, n = np.where(scores.paired, scores.n, 0.0), float(len(pairable.code))
    nothing, scaled = np.zeros(scores.n_items), np.where(scores.paired, 1 / np.maximum(n_i - 1, 1), 0)
    moved = nothing
    if scores.scale.level == "ordinal":
        observed, moved, expected, slope = _ordinal_parts(pairable, n_i, scaled)
    elif scores.scale.level == "ratio":
        observed, expected, slope = _ratio_parts(scores, pairable)
    else:
        distance = Distance.of(scores.scale, "identity" if scores.scale.level == "nominal" else "quadratic")
        toward = distance.toward(pairable.margin)
        observed, expected, slope = (
            scores.disagreement(distance), float(toward @ pairable.margin), 2 * pairable.per_item(toward),
        )  # fmt: skip
    if np.count_nonzero(pairable.margin) < 2 or not expected > 0:
        return np.nan, nothing
    own = observed * scaled
    total = float(own.sum())
    gradient = -(n_i * total + (n - 1) * (own + moved) - (n - 1) * total * slope / expected) / expected
    return 1 - (n - 1) * total / expected, np.where(scores.paired, gradient, 0)


def _ordinal_parts(pairable: _Pairable, n_i: Floats, scaled: Floats) -> tuple[Floats, Floats, float, Floats]:
    """O_i, what O gains because the ranks move with the weight of item i, E and its derivative by that weight.

    Ordinal distances are squared differences of midranks r_k, here centred and divided by n; the derivative of r_k by
    the weight of item i is (sum_{g < k} n_ig + n_ik / 2) / n.
    """
    n_k = pairable.margin
    n = max(float(n_k.sum()), 1.0)
    r = (np.cumsum(n_k) - n_k / 2) / n - 0.5
    sums, squares = pairable.per_item(r), pairable.per_item(r**2)
    observed = np.maximum(2 * (n_i * squares - sums**2), 0)

    def through_ranks(by_rank: Floats) -> Floats:
        return pairable.per_item(by_rank.sum() - np.cumsum(by_rank) + by_rank / 2) / n

    moved = through_ranks(4 * (r * pairable.per_point(n_i * scaled) - pairable.per_point(sums * scaled)))
    spread = float(n_k @ r**2)
    slope = 2 * (n_i * spread + n * (squares + through_ranks(2 * n_k * r)))
    return observed, moved, 2 * n * spread, slope


def _ratio_parts(scores: LongScores, pairable: _Pairable) -> tuple[Floats, float, Floats]:
    """O_i, E and its derivative, from the table of distances between all points."""
    d = distances(scores.scale.values, "ratio")
    toward = d @ pairable.margin
    starts = np.cumsum(scores.n).astype(np.intp) - scores.n.astype(np.intp)
    observed = np.zeros(scores.n_items)
    for apart in range(1, int(scores.n.max(initial=0))):
        items = np.flatnonzero(scores.n > apart)
        for place in range(int(scores.n.max()) - apart):
            items = items[scores.n[items] > place + apart]
            first = starts[items] + place
            observed[items] += 2 * d[scores.code[first], scores.code[first + apart]]
    return observed, float(toward @ pairable.margin), 2 * pairable.per_item(toward)


def cohen_kappa_of_many_points(a: Integers, b: Integers, distance: Distance) -> Value:
    """Cohen's kappa of codes (N,), (N,), -1 where a rater gave none, as ``coefficients.cohen_kappa_kernel``.

    1 - d_o / d_e, d_o the mean distance on common items, d_e that of the two margins. Its standard error with items
    standing alone is that of Fleiss, Cohen & Everitt 1969 (doi 10.1037/h0028106).
    """
    both = np.flatnonzero((a >= 0) & (b >= 0))
    gradient, n = np.zeros(len(a)), len(both)
    if not n:
        return np.nan, gradient
    x, y = a[both], b[both]
    of_x, of_y = (np.bincount(codes, minlength=distance.q) / n for codes in (x, y))
    from_y = distance.toward(of_y)
    observed, expected = distance.between(x, y), float(of_x @ from_y)
    if np.count_nonzero(of_x + of_y) < 2 or not expected > 0:
        return np.nan, gradient
    d_o = float(observed.mean())
    chance = from_y[x] + distance.toward(of_x)[y] - 2 * expected
    gradient[both] = (d_o * chance / expected - (observed - d_o)) / expected / n
    return 1 - d_o / expected, gradient


def conger_kappa_of_many_points(scores: LongScores, distance: Distance) -> Value:
    """Conger's kappa of the panel, as ``coefficients.conger_kappa_kernel``: chance of raters g != h.

    Source: Conger 1980 (doi 10.1037/0033-2909.88.2.322).
    """
    cell, r = scores.cell, len(scores.cell.raters)
    scored = np.bincount(cell.rater, minlength=r)
    observed, gradient = scores.mean_disagreement(distance)
    if not scored.all() or np.isnan(observed) or np.count_nonzero(np.bincount(cell.code)) < 2:
        return np.nan, np.zeros(scores.n_items)
    margins = [np.bincount(cell.code[cell.rater == g], minlength=distance.q) / scored[g] for g in range(r)]
    together = distance.toward(np.sum(margins, axis=0))
    toward = [together - distance.toward(margin) for margin in margins]
    apart = float(sum(margin @ away for margin, away in zip(margins, toward, strict=True))) / (r * (r - 1))
    moved = np.zeros(scores.n_items)
    for g, away in enumerate(toward):
        own = cell.rater == g
        change = (away[cell.code[own]] - float(margins[g] @ away)) / scored[g]
        moved += np.bincount(cell.item[own], weights=change, minlength=scores.n_items)
    return 1 - observed / apart, np.asarray((2 * moved / (r * (r - 1)) * observed / apart - gradient) / apart)
