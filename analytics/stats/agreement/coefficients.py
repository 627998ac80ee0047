"""Agreement coefficients as kernels: patterns (P, q) and weights (B, P) in, values (B,) out.

A kernel gets the distinct rows of counts n_pk (how many raters gave point k in pattern p) and, for each of B
weightings, how often each pattern occurs. One row of totals gives the value, B rows of resampling weights the
bootstrap, U rows with a unit left out the jackknife. NaN means undefined. Letters are METHODS 1's: n_k margins, n_p
raters per item, pi_k, p_a observed and p_e expected agreement, w_kl weights, d_kl distances.

Three parts:

- Raters are exchangeable: percent agreement, Fleiss' kappa, Krippendorff's alpha, Gwet's AC, Verdict Confidence.
- Raters are identified: Cohen's kappa of two raters, Conger's kappa of a panel. It matters who gave a score, so a
  pattern is an item's row of codes (P, R), one column per rater, -1 where a rater gave no score. Disagreement
  d_kl = 1 - w_kl (``scales.disagreement``) keeps its digits where points lie near each other on a wide scale. A sum of
  products without a minus sign is exactly 0 where nothing disagrees, so no tolerance is needed. Edge cases: METHODS 1.
- Standard errors by linearisation. ``*_influence`` kernels give (P,) contributions whose mean over items is the
  coefficient; ``linearised_standard_error`` makes one number of them. With independent items this is Gwet's variance,
  sum_i (c_i - c)^2 / (N (N - 1)); with clusters the contributions are summed within each cluster first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.number_arrays import Floats, Integers
from analytics.stats.core.resampling import Units

if TYPE_CHECKING:
    from analytics.stats.core.scales import Level, Scale
    from analytics.stats.core.tables import Coded


TINY = 1e-12
"""Shares and counts below this are 0: their other values are far larger. Not for distances between scores."""
_ROUNDING = 1e-14
"""A difference of squares below this share of them is a rounding error: 0."""
FEW_POINTS = 20
"""Scales of up to so many points are counted in a table of items by points, however many items there are."""
MOST_COUNTS = 200_000
"""Items by points that are still counted in a table and resampled."""
_MOST_CATEGORIES = 1001
"""Beyond this many points an interval or ratio scale is continuous: categories mean nothing on it."""


def is_wide(scale: Scale, n_items: int) -> bool:
    """Whether ``continuous_scales`` computes a cell: too many points and items for a table of items by points.

    True for more than ``_MOST_CATEGORIES`` labels or ranks, or a table of more than ``MOST_COUNTS`` entries.
    """
    if scale.q > _MOST_CATEGORIES:
        return scale.level in ("nominal", "ordinal")
    return scale.q > FEW_POINTS and n_items * scale.q > MOST_COUNTS


def percent_agreement_kernel(counts: Floats, weights: Floats) -> Floats:
    """Pairwise agreement of patterns (P, q) under weights (B, P) -> (B,).

    Mean over items with n_i >= 2 of sum_k n_ik (n_ik - 1) / (n_i (n_i - 1)). Any level. Undefined without such an item.
    Source: Fleiss 1971 (doi 10.1037/h0031619).
    """
    return _observed(counts, weights, np.eye(counts.shape[1]))


def percent_agreement_pooled(counts: Floats, weights: Floats) -> Floats:
    """Share of all pairs of ratings of one item that agree, (P, q), (B, P) -> (B,): items count by their pairs.

    sum_i sum_k n_ik (n_ik - 1) / sum_i n_i (n_i - 1). Any level. Undefined without a pair. Source: METHODS 1.
    """
    n = counts.sum(axis=1)
    return _ratio(weights @ (counts * (counts - 1)).sum(axis=1), weights @ (n * (n - 1)))


def percent_agreement_exact(counts: Floats, weights: Floats) -> Floats:
    """Share of the items with n_i >= 2 on which all raters agree, (P, q), (B, P) -> (B,).

    Any level. Undefined without such an item. Source: METHODS 1 (S4, full agreement).
    """
    n = counts.sum(axis=1)
    return _ratio(weights @ ((n >= 2) & (counts.max(axis=1) == n)), weights @ (n >= 2))


def percent_agreement_adjacent(counts: Floats, weights: Floats) -> Floats:
    """Pairwise agreement within one step of the scale, (P, q), (B, P) -> (B,), averaged over items with n_i >= 2.

    Level: ordinal or above. Source: METHODS 1 (S3, Table 4: share of score pairs that differ by no more than one).
    """
    k = np.arange(counts.shape[1])
    return _observed(counts, weights, (np.abs(np.subtract.outer(k, k)) <= 1).astype(np.float64))


def fleiss_kappa_kernel(counts: Floats, weights: Floats) -> Floats:
    """Fleiss' kappa with unequal numbers of raters, (P, q), (B, P) -> (B,).

    kappa = (p_a - p_e) / (1 - p_e), p_a over items with n_i >= 2, p_e = sum_k pi_k^2, pi_k the mean of n_ik / n_i over
    items with n_i >= 1. Level: nominal. Undefined when one category only is used. Source: Fleiss 1971
    (doi 10.1037/h0031619).
    """
    p_e = (_prevalence(counts, weights) ** 2).sum(axis=1)
    return _corrected(percent_agreement_kernel(counts, weights), p_e)


def fleiss_kappa_fixed(counts: Floats, weights: Floats, n: float) -> Floats:
    """Fleiss' kappa as if every item had ``n`` raters, (P, q), (B, P) -> (B,): S0's script (paper_compat).

    Over the N items with n_i >= 2: P_i = (sum_k n_ik^2 - n) / (n (n - 1)), p_k = sum_i n_ik / (N n). With unequal n_i
    the p_k don't add to 1 and the value is biased; it is here to be shown beside the sound one.
    """
    paired = counts.sum(axis=1) >= 2
    counts, weights = counts[paired], weights[:, paired]
    items = weights.sum(axis=1)
    p_a = _ratio(weights @ (((counts**2).sum(axis=1) - n) / (n * (n - 1))), items)
    p_e = (_over(weights @ counts, items * n) ** 2).sum(axis=1)
    return _corrected(p_a, p_e)


def krippendorff_alpha_kernel(counts: Floats, weights: Floats, x: Floats, level: Level) -> Floats:
    """Krippendorff's alpha of patterns (P, q) with points x (q,) under weights (B, P) -> (B,); missing data allowed.

    alpha = 1 - (n - 1) sum_kl o_kl d_kl / sum_kl n_k n_l d_kl over items with n_i >= 2. Distances d: nominal [k != l];
    interval (x_k - x_l)^2; ratio ((x_k - x_l) / (x_k + x_l))^2, 0 at 0/0; ordinal (sum_{g=k..l} n_g - (n_k + n_l)/2)^2,
    which is the squared difference of the midranks of k and l. Undefined when one category only is paired.
    Source: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability; Hayes & Krippendorff 2007
    (doi 10.1080/19312450709336664).
    """
    paired = counts.sum(axis=1) >= 2
    counts, weights = counts[paired], weights[:, paired]
    if level == "ordinal":
        return _alpha_ordinal(counts, weights)
    d = distances(x, level)
    per_item = ((counts @ d) * counts).sum(axis=1) / (counts.sum(axis=1) - 1)
    n_k = weights @ counts
    return _alpha(weights @ per_item, ((n_k @ d) * n_k).sum(axis=1), n_k.sum(axis=1))


def krippendorff_alpha_interval(moments: Floats, weights: Floats) -> Floats:
    """Interval alpha from (P, 3) per-item n_i, sum x, sum x^2 under weights (B, P) -> (B,): for continuous scores.

    The same value as ``krippendorff_alpha_kernel`` at interval level without a list of categories; x should be centred.
    """
    n_i, s, ss = moments[moments[:, 0] >= 2].T
    w = weights[:, moments[:, 0] >= 2]
    n, total, squares = w @ n_i, w @ s, w @ ss
    expected = n * squares - total**2
    # What rounding leaves of a difference of squares is in proportion to them, whatever the scores' unit.
    expected = np.where(expected > _ROUNDING * n * squares, expected, 0)
    return _alpha(w @ (2 * (n_i * ss - s**2) / (n_i - 1)), 2 * expected, n)


def distances(x: Floats, level: Level) -> Floats:
    """(q, q) squared distances d_kl of nominal, interval and ratio points x (q,), scaled to at most 1."""
    if level == "nominal":
        return 1 - np.eye(len(x))
    difference = np.subtract.outer(x, x)
    if level == "ratio":
        total = np.add.outer(x, x)
        return np.asarray(np.divide(difference, total, out=np.zeros_like(total), where=total != 0) ** 2)
    return np.asarray((difference / (float(np.ptp(x)) or 1.0)) ** 2) if len(x) else difference


def gwet_ac_kernel(counts: Floats, weights: Floats, w: Floats) -> Floats:
    """Gwet's AC1 (identity w) or AC2 of patterns (P, q) with agreement weights w (q, q) under weights (B, P) -> (B,).

    p_e = T sum_k pi_k (1 - pi_k) / (q (q - 1)), T = sum w_kl. It is 1 when one category of a longer scale is used;
    undefined for a scale of one point. Level: that of the weights (identity: nominal).
    Source: Gwet 2008 (doi 10.1348/000711006X126600).
    """
    q = counts.shape[1]
    if q < 2:
        return np.full(len(weights), np.nan)
    pi = _prevalence(counts, weights)
    return _corrected(_observed(counts, weights, w), w.sum() * (pi * (1 - pi)).sum(axis=1) / (q * (q - 1)))


def brennan_prediger(counts: Floats, weights: Floats, w: Floats) -> Floats:
    """Brennan-Prediger of patterns (P, q) with agreement weights w (q, q) under weights (B, P) -> (B,): p_e = T / q^2.

    Level: that of the weights (identity: nominal). Undefined on a scale of one point. Source: Brennan & Prediger 1981
    (doi 10.1177/001316448104100307).
    """
    q = counts.shape[1]
    return _corrected(_observed(counts, weights, w), np.full(len(weights), w.sum() / max(q, 1) ** 2))


def verdict_confidence(counts: Floats, weights: Floats) -> Floats:
    """Verdict Confidence of patterns (P, q) under weights (B, P) -> (B,).

    Mean over items with n_i >= 2 of max_k n_ik / n_i. Any level. Source: METHODS 1 (S2, D.2.2).
    """
    n = counts.sum(axis=1)
    return _ratio(weights @ np.where(n >= 2, _over(counts.max(axis=1), n), 0), weights @ (n >= 2))


def verdict_confidence_chance(counts: Floats, weights: Floats) -> Floats:
    """The same expected by chance, (P, q), (B, P) -> (B,): raters of each item label uniformly over the q points.

    Any level. Undefined without an item with n_i >= 2. Source: METHODS 1 (3 raters, 3 points: S2's 17/27).
    """
    n = counts.sum(axis=1)
    expected = np.array([chance_majority(int(size), counts.shape[1]) if size >= 2 else 0.0 for size in n])
    return _ratio(weights @ expected, weights @ (n >= 2))


def verdict_confidence_corrected(counts: Floats, weights: Floats) -> Floats:
    """(mean observed - mean_i E_i) / (1 - mean_i E_i), (P, q), (B, P) -> (B,). Undefined on a scale of one point.

    Any level. Source: METHODS 1.
    """
    return _corrected(verdict_confidence(counts, weights), verdict_confidence_chance(counts, weights))


@lru_cache(maxsize=4096)
def chance_majority(n: int, q: int) -> float:
    """E[max_k n_k] / n for n uniform labels over q points (3 raters, 3 points: 17/27), exactly.

    P(max <= m) = n! [t^n] (sum_{j <= m} t^j / j!)^q / q^n, and E[max] = sum_{m >= 0} P(max > m). The powers are
    taken one label at a time on scaled coefficients, so that nothing overflows.
    """
    return float(sum(1 - _all_at_most(m, n, q) for m in range(n))) / n


def _all_at_most(m: int, n: int, q: int) -> float:
    """P(no point gets more than m of n uniform labels): ``used[t]`` is P(t labels used, none above m) so far."""
    used = np.zeros(n + 1)
    used[0] = 1.0
    for points_left in range(q, 0, -1):
        used = _with_one_more_point(used, m, 1 / points_left)
    return float(used[n])


def _with_one_more_point(used: Floats, m: int, p: float) -> Floats:
    """``used`` after one more point: it gets Binomial(labels not used yet, p) of the labels, at most m."""
    n = len(used) - 1
    after = np.zeros(n + 1)
    for t in np.flatnonzero(used):
        most = min(m, n - int(t))
        after[t : t + most + 1] += used[t] * _binomial(n - int(t), p)[: most + 1]
    return after


@lru_cache(maxsize=4096)
def _binomial(n: int, p: float) -> Floats:
    """(n + 1,) binomial probabilities."""
    from scipy.special import gammaln, xlog1py, xlogy

    j = np.arange(n + 1)
    log_choose = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
    return np.asarray(np.exp(log_choose + xlogy(j, p) + xlog1py(n - j, -p)))


def _alpha_ordinal(counts: Floats, weights: Floats) -> Floats:
    """Ordinal distances depend on the margins, hence on the resample: midranks r (B, q), centred and scaled by n."""
    n_k = weights @ counts
    n = n_k.sum(axis=1)
    r = _over(np.cumsum(n_k, axis=1) - n_k / 2, n) - 0.5
    n_i = counts.sum(axis=1)
    squares, sums = r**2 @ counts.T, r @ counts.T
    squares *= n_i
    sums *= sums
    squares -= sums
    squares *= weights
    total = (n_k * r).sum(axis=1)
    return _alpha(squares @ (2 / (n_i - 1)), 2 * (n * (n_k * r**2).sum(axis=1) - total**2), n)


def _alpha(observed: Floats, expected: Floats, n: Floats) -> Floats:
    """1 - (n - 1) sum o d / sum n n d; undefined where all scores are equal: ``expected`` is exactly 0 there."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - (n - 1) * observed / expected, np.nan)


def _observed(counts: Floats, weights: Floats, w: Floats) -> Floats:
    """p_a (B,): mean over n_i >= 2 of sum_k n_ik (n*_ik - 1) / (n_i (n_i - 1)), n*_ik = sum_l w_kl n_il."""
    return _ratio(weights @ item_agreement(counts, w), weights @ (counts.sum(axis=1) >= 2))


def item_agreement(counts: Floats, w: Floats) -> Floats:
    """(P,) weighted agreement within each pattern, 0 where n_p < 2."""
    n = counts.sum(axis=1)
    return np.where(n >= 2, _over((counts * (counts @ w - 1)).sum(axis=1), n * (n - 1)), 0)


def _prevalence(counts: Floats, weights: Floats) -> Floats:
    """pi_k (B, q): mean of n_ik / n_i over items with n_i >= 1."""
    n = counts.sum(axis=1)
    return _over(weights @ np.where(n[:, None] >= 1, _over(counts, n), 0), weights @ (n >= 1))


def _corrected(p_a: Floats, p_e: Floats) -> Floats:
    """(p_a - p_e) / (1 - p_e), undefined where the agreement expected by chance is 1."""
    return _ratio(p_a - p_e, 1 - p_e)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.abs(denominator) > TINY, numerator / denominator, np.nan)


def _over(rows: Floats, totals: Floats) -> Floats:
    """Rows (or a vector) divided by their totals; NaN or infinite where a total is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(rows / (totals[:, None] if rows.ndim == 2 else totals))


# --- identified raters (METHODS 1) -----------------------------------------------------------------------------------

ROUNDING_OF_PAIRS = 1e-12
"""Contributions of items whose spread is below this share of the largest one are all equal."""


@dataclass(frozen=True, slots=True)
class OrderedPatterns:
    """``codes`` (P, R): the distinct rows of codes, one column per rater; ``units``: what is resampled."""

    codes: Integers
    units: Units

    @property
    def weights(self) -> Floats:
        """(1, P) how many items show each row."""
        return self.units.pattern_totals[None, :]


def ordered_patterns_of(cell: Coded) -> OrderedPatterns:
    """Distinct ordered rows of a coded cell; its clusters are the units."""
    codes, row = np.unique(cell.matrix(), axis=0, return_inverse=True)
    return OrderedPatterns(codes, Units.of(row.ravel(), cell.cluster))


def cohen_kappa_kernel(a: Integers, b: Integers, weights: Floats, d: Floats) -> Floats:
    """Cohen's kappa of codes (P,), (P,) with disagreement d (q, q) under weights (B, P) -> (B,).

    kappa = 1 - (sum d_kl p_kl) / (sum d_kl p_k. p_.l), over items scored by both. Level: nominal (d = [k != l]) or
    ordinal. Undefined without a common item or when both use one and the same point only.
    Source: Cohen 1960 (doi 10.1177/001316446002000104), 1968 (doi 10.1037/h0026256).
    """
    both = (a >= 0) & (b >= 0)
    a, b, weights = a[both], b[both], weights[:, both]
    n = weights.sum(axis=1)
    p_k, p_l = _over(weights @ one_hot(a, len(d)), n), _over(weights @ one_hot(b, len(d)), n)
    observed, expected = _over(weights @ d[a, b], n), ((p_k @ d) * p_l).sum(axis=1)
    return _kappa(observed, expected)


def pair_kappas(codes: Integers, d: Floats) -> tuple[Floats, Floats]:
    """Cohen's kappa of every two raters and how many items they share, (R, R) each, from (N, R) codes, -1 for none.

    ``cohen_kappa_kernel`` for all pairs at once, one product of matrices for each point of the scale; d (q, q). Level:
    nominal or ordinal. Source: Cohen 1960 (doi 10.1177/001316446002000104), 1968 (doi 10.1037/h0026256).
    """
    seen = (codes >= 0).astype(np.float64)
    n = seen.T @ seen
    observed, expected = np.zeros_like(n), np.zeros_like(n)
    used = np.unique(codes[codes >= 0])
    has = {int(code): (codes == code).astype(np.float64) for code in used}
    for code, own in has.items():
        apart = sum((d[code, other] * theirs for other, theirs in has.items()), np.zeros(codes.shape))
        observed += own.T @ apart
        expected += (own.T @ seen) * (apart.T @ seen).T
    with np.errstate(invalid="ignore", divide="ignore"):
        return _kappa(np.where(n > 0, observed / n, np.nan), np.where(n > 0, expected / n**2, np.nan)), n


def cohen_kappa_se(a: Integers, b: Integers, totals: Floats, d: Floats) -> float:
    """Large-sample standard error of Cohen's kappa (weighted or not) of independent items; totals (P,).

    var = {sum p_kl [w_kl - (wbar_k. + wbar_.l)(1 - kappa)]^2 - [kappa - p_e (1 - kappa)]^2} / (n (1 - p_e)^2).
    Source: Fleiss, Cohen & Everitt 1969 (doi 10.1037/h0028106).
    """
    both = (a >= 0) & (b >= 0)
    a, b, totals = a[both], b[both], totals[both]
    n, q = totals.sum(), len(d)
    if n < 2:
        return np.nan
    p = np.bincount(a.astype(np.intp) * q + b, weights=totals, minlength=q * q).reshape(q, q) / n
    p_k, p_l = p.sum(axis=1), p.sum(axis=0)
    expected = float(p_k @ d @ p_l)
    if not expected > 0:
        return np.nan
    # The mean is subtracted before squaring: near points have 1 - p_e near 0, which would magnify what rounding leaves.
    observed = float((p * d).sum())
    inner = np.add.outer(d @ p_l, p_k @ d) * (observed / expected) - d
    apart, size = inner - observed, float(np.abs(inner[p > 0]).max())
    error = float(np.sqrt((p * apart**2).sum()))
    return error / (np.sqrt(n) * expected) if error > ROUNDING_OF_PAIRS * size else 0.0


def conger_kappa_kernel(codes: Integers, weights: Floats, d: Floats) -> Floats:
    """Conger's kappa of ordered codes (P, R) with disagreement d (q, q) under weights (B, P) -> (B,).

    (p_a - p_e) / (1 - p_e), p_a as in Gwet's AC; 1 - p_e = mean over raters g != h of sum d_kl p_gk p_hl, p_g the
    shares of the points among rater g's own scores. Equals Cohen's kappa for two raters. Undefined when a rater has no
    score in the (re)sample or when one point only is used. Source: Conger 1980 (doi 10.1037/0033-2909.88.2.322);
    missing scores: Gwet 2014, chapter 2.
    """
    apart, paired = _pair_disagreement(codes, d)
    margins = _margins(codes, weights, len(d))
    r = codes.shape[1]
    expected = np.zeros(len(weights))
    before = np.zeros((len(weights), len(d)))
    for g in range(r):  # each pair of raters once: a sum without subtraction
        expected += 2 * ((before @ d) * margins[:, g]).sum(axis=1)
        before = before + margins[:, g]
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = (weights @ apart) / (weights @ paired)
    return _kappa(observed, expected / (r * (r - 1)))


def conger_influence(codes: Integers, totals: Floats, d: Floats) -> Floats:
    """(P,) linearised contribution of an item of each pattern to Conger's kappa; their mean over items is kappa.

    Integers (P, R), -1 where missing; the derivative goes through every rater's own margins, each over the items that
    rater scored. Source: METHODS 1, with the p_e of Conger 1980 (doi 10.1037/0033-2909.88.2.322).
    """
    (n_items, r), q = codes.shape, len(d)
    n = totals.sum()
    apart, paired = _pair_disagreement(codes, d)
    margins = _margins(codes, totals[None, :], q)[0]
    expected_with_others = np.stack([np.delete(margins, g, axis=0).sum(axis=0) for g in range(r)]) @ d
    expected = float((expected_with_others * margins).sum()) / (r * (r - 1))
    ratio = float(totals @ apart / (totals @ paired)) / expected
    margins_part = np.zeros(n_items)
    for g in range(r):
        scored = codes[:, g] >= 0
        gain = expected_with_others[g][codes[:, g]] - expected_with_others[g] @ margins[g]
        margins_part += np.where(scored, gain * n / (totals @ scored), 0) * 2 / (r * (r - 1))
    own_part = n / (totals @ paired) * np.where(paired, 1 - apart / expected, 0)
    return np.asarray(own_part + ratio * margins_part / expected)


def one_hot(codes: Integers, q: int) -> Floats:
    """(P, q) indicator of each code; a row of zeros for -1."""
    return np.asarray(codes[:, None] == np.arange(q), dtype=np.float64)


def _margins(codes: Integers, weights: Floats, q: int) -> Floats:
    """(B, R, q) shares of the points among each rater's own scores."""
    counted = [weights @ one_hot(codes[:, g], q) for g in range(codes.shape[1])]
    return np.stack([_over(rows, rows.sum(axis=1)) for rows in counted], axis=1)


def _pair_disagreement(codes: Integers, d: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """(P,) mean disagreement over the pairs of scores of a pattern, 0 without a pair, and whether it has a pair."""
    counts = sum((one_hot(codes[:, g], len(d)) for g in range(codes.shape[1])), start=np.zeros((len(codes), len(d))))
    n = counts.sum(axis=1)
    return (counts * (counts @ d)).sum(axis=1) / np.maximum(n * (n - 1), 1), n >= 2


def _kappa(observed: Floats, expected: Floats) -> Floats:
    """1 - observed / expected disagreement (B,), undefined where the disagreement expected by chance is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - observed / expected, np.nan)


# --- linearised standard errors --------------------------------------------------------------------------------------
def linearised_standard_error(influence: Floats, units: Units) -> float:
    """se of the mean of item contributions (P,): se^2 = C / (C - 1) sum_c (sum_{i in c} (c_i - c))^2 / N^2.

    NaN with fewer than two units. Source: Gwet 2008 (doi 10.1348/000711006X126600); clusters: Liang & Zeger 1986
    (doi 10.1093/biomet/73.1.13).
    """
    if units.n < 2:
        return float("nan")
    totals = units.pattern_totals
    n = totals.sum()
    centred = influence - totals @ influence / n
    per_unit = centred if units.composition is None else units.composition @ centred
    return float(np.sqrt(units.n / (units.n - 1) * (units.multiplicity @ per_unit**2)) / n)


def gwet_influence(counts: Floats, totals: Floats, w: Floats) -> Floats:
    """(P,) contributions to AC1 / AC2 of patterns (P, q) that occur totals (P,) times.

    p_e|i = T sum_k (n_ik / n_i)(1 - pi_k) / (q (q - 1)). Source: Gwet 2008 (doi 10.1348/000711006X126600).
    """
    q = counts.shape[1]
    shares, pi = _linearised_shares(counts), _linearised_prevalence(counts, totals)
    p_e_i = w.sum() * (shares * (1 - pi)).sum(axis=1) / (q * (q - 1))
    p_e = w.sum() * float((pi * (1 - pi)).sum()) / (q * (q - 1))
    return _contributions(counts, totals, w, p_e, p_e_i)


def brennan_prediger_influence(counts: Floats, totals: Floats, w: Floats) -> Floats:
    """(P,) contributions to Brennan-Prediger of patterns (P, q): chance agreement is a constant, p_e|i = T / q^2.

    Source: Gwet 2008 (doi 10.1348/000711006X126600), with the p_e of Brennan & Prediger 1981.
    """
    p_e = float(w.mean())
    return _contributions(counts, totals, w, p_e, np.full(len(counts), p_e))


def fleiss_influence(counts: Floats, totals: Floats, w: Floats) -> Floats:
    """(P,) contributions to Fleiss' kappa of patterns (P, q) with agreement weights w (identity: the kappa itself).

    p_e|i = sum_kl w_kl (n_ik / n_i) pi_l. Source: Gwet 2008 (doi 10.1348/000711006X126600), with Fleiss' p_e.
    """
    shares, pi = _linearised_shares(counts), _linearised_prevalence(counts, totals)
    return _contributions(counts, totals, w, float(pi @ w @ pi), shares @ (w @ pi))


def _contributions(counts: Floats, totals: Floats, w: Floats, p_e: float, p_e_i: Floats) -> Floats:
    """kappa_i - 2 (1 - kappa)(p_e|i - p_e)/(1 - p_e), kappa_i = (N/N')(p_a|i - p_e)/(1 - p_e), 0 where n_i < 2."""
    paired = counts.sum(axis=1) >= 2
    p_a_i = item_agreement(counts, w)
    scale = totals.sum() / (totals @ paired)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.where(paired, scale * (p_a_i - p_e) / (1 - p_e), 0)
        kappa = (float(totals @ p_a_i / (totals @ paired)) - p_e) / (1 - p_e)
        return np.asarray(own - 2 * (1 - kappa) * (p_e_i - p_e) / (1 - p_e))


def _linearised_shares(counts: Floats) -> Floats:
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def _linearised_prevalence(counts: Floats, totals: Floats) -> Floats:
    return np.asarray(totals @ _linearised_shares(counts) / (totals @ (counts.sum(axis=1) >= 1)))
