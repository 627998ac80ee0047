"""Every figure about a judge and a reference, under many weightings of the same pairs at once (METHODS 3).

Every kernel takes distinct pairs ``x, y`` of shape (m,) and whole-number weights ``w`` of shape (R, m) that say how
often each pair occurs: one row of ones is the sample itself, R rows of resampling counts are R bootstrap samples. It
returns (R,), NaN where the correlation is undefined because one of the two does not vary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement import continuous_scales
from analytics.stats.agreement.continuous_scales import Value
from analytics.stats.core.estimates import Shape
from analytics.stats.core.messages import Message
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.scales import Scale, Weighting, disagreement, snapped

_FLAT = 1e-14
"""Variance, in units of the mean square, below which a vector counts as constant: what rounding leaves."""
BLOCK_CELLS = 2_000_000
"""Most numbers one block of resamples may hold at once (16 MB)."""


def pearson(x: Floats, y: Floats, w: Floats) -> Floats:
    r"""Pearson's r of pairs (m,), (m,) under weights (R, m) -> (R,).

    r = sum w (x - mx)(y - my) / sqrt(sum w (x - mx)^2 sum w (y - my)^2). Level: interval. Undefined (NaN) for a
    constant vector. Source: Pearson 1895, doi:10.1098/rspl.1895.0041.
    """
    x, y = _unit(x), _unit(y)
    n = w.sum(axis=1)
    mx, my = _over(w @ x, n), _over(w @ y, n)
    qx, qy = _over(w @ x**2, n), _over(w @ y**2, n)
    sxx, syy = qx - mx**2, qy - my**2
    return _ratio(
        _over(w @ (x * y), n) - mx * my, np.where(sxx > _FLAT * qx, sxx, 0), np.where(syy > _FLAT * qy, syy, 0)
    )


def spearman(x: Floats, y: Floats, w: Floats) -> Floats:
    """Spearman's rho of pairs (m,), (m,) under weights (R, m) -> (R,): Pearson's r of the midranks.

    Level: ordinal. Undefined (NaN) for a constant vector. Source: Spearman 1904, doi:10.2307/1412159.
    """
    blocks = [_spearman_block(x, y, rows) for rows in _blocks(w, len(x))]
    return np.concatenate(blocks) if blocks else np.empty(0)


def kendall_tau_b(x: Floats, y: Floats, w: Floats) -> Floats:
    r"""Kendall's tau-b of pairs (m,), (m,) under weights (R, m) -> (R,).

    tau_b = (C - D) / sqrt((P - T_x)(P - T_y)) over all P pairs of observations, C concordant, D discordant, T tied.
    Copies of one pair are tied with each other in both. Level: ordinal. Undefined (NaN) for a constant vector.
    Source: Kendall 1945, doi:10.1093/biomet/33.3.239.
    """
    n = w.sum(axis=1)
    pairs = n * (n - 1) / 2
    free_x, free_y = pairs - _tied(x, w), pairs - _tied(y, w)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((free_x > 0) & (free_y > 0), _concordance(x, y, w) / np.sqrt(free_x * free_y), np.nan)


def midranks(x: Floats, w: Floats) -> Floats:
    """Average ranks (from 1) of values (m,) that occur w (R, m) times -> (R, m)."""
    order = np.argsort(x, kind="stable")
    starts, inverse = _groups(x[order])
    size = np.add.reduceat(w[:, order], starts, axis=1)
    middle = np.cumsum(size, axis=1) - (size - 1) / 2
    ranks = np.empty_like(w, dtype=np.float64)
    ranks[:, order] = middle[:, inverse]
    return ranks


def _spearman_block(x: Floats, y: Floats, w: Floats) -> Floats:
    n = w.sum(axis=1, keepdims=True)
    # The mean midrank is (n + 1)/2 whatever the ties: a constant vector leaves exactly 0.
    u, v = (_over(midranks(a, w) - (n + 1) / 2, n) for a in (x, y))
    total = n[:, 0]
    return _ratio(*(_over((w * a * b).sum(axis=1), total) for a, b in ((u, v), (u, u), (v, v))))


def _concordance(x: Floats, y: Floats, w: Floats) -> Floats:
    """C - D for each row of weights: over the grid of distinct values when it is small, else over all pairs."""
    ux, kx = np.unique(x, return_inverse=True)
    uy, ky = np.unique(y, return_inverse=True)
    if len(ux) * len(uy) <= 16 * len(x):
        shape = (len(ux), len(uy))
        return np.concatenate([_grid_concordance(b, kx, ky, shape) for b in _blocks(w, shape[0] * shape[1])])
    return _pair_concordance(x, y, w)


def _grid_concordance(w: Floats, kx: NDArray[np.intp], ky: NDArray[np.intp], shape: tuple[int, int]) -> Floats:
    table = code_weights(kx * shape[1] + ky, w, shape[0] * shape[1]).reshape(len(w), *shape)
    below = np.cumsum(np.cumsum(table, axis=1), axis=2)
    lower_x = below[:, :-1, :]
    # Of the cells with a smaller x: those with a smaller y agree, those with a larger y disagree.
    agree = np.concatenate([np.zeros((*lower_x.shape[:2], 1)), lower_x[:, :, :-1]], axis=2)
    disagree = lower_x[:, :, -1:] - lower_x
    scores: Floats = (table[:, 1:, :] * (agree - disagree)).sum(axis=(1, 2))
    return scores


def _pair_concordance(x: Floats, y: Floats, w: Floats) -> Floats:
    m = len(x)
    total = np.zeros(len(w))
    step = max(1, BLOCK_CELLS // max(m, 1))
    for start in range(0, m, step):
        rows = slice(start, start + step)
        signs = np.sign(x[rows, None] - x) * np.sign(y[rows, None] - y)
        total += ((w @ signs.T) * w[:, rows]).sum(axis=1)
    return total / 2


def _tied(x: Floats, w: Floats) -> Floats:
    order = np.argsort(x, kind="stable")
    size = np.add.reduceat(w[:, order], _groups(x[order])[0], axis=1)
    tied: Floats = (size * (size - 1) / 2).sum(axis=1)
    return tied


def _groups(ordered: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each run of equal values starts, and the run each value belongs to."""
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    return np.flatnonzero(is_new), np.cumsum(is_new) - 1


def _blocks(w: Floats, width: int) -> Iterator[Floats]:
    step = max(1, BLOCK_CELLS // max(width, 1))
    for start in range(0, len(w), step):
        yield w[start : start + step]


def _unit(x: Floats) -> Floats:
    """Values around their middle one, divided by their range: exactly zero everywhere when they are all equal.

    Resamples without a far value then keep their digits.
    """
    return np.asarray((x - np.median(x)) / (float(np.ptp(x)) or 1.0))


def _over(total: Floats, n: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / n


def _ratio(sxy: Floats, sxx: Floats, syy: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((sxx > 0) & (syy > 0), np.clip(sxy / np.sqrt(sxx * syy), -1, 1), np.nan)


# Figures read off a confusion matrix of reference (rows) against judge (columns) (METHODS 3).
#
# A stack of matrices has shape (R, q, q): one for the sample and one per resample. Every kernel returns (R,), NaN where
# the figure is undefined.


def confusion(reference: Codes, judge: Codes, w: Floats, q: int) -> Floats:
    """Counts of category codes (m,), (m,) under weights (R, m) -> (R, q, q), reference in rows."""
    return code_weights(reference * q + judge, w, q * q).reshape(len(w), q, q)


def code_weights(codes: Codes, w: Floats, size: int) -> Floats:
    """Total weight of each code 0..size-1, codes (m,), weights (R, m) -> (R, size)."""
    order = np.argsort(codes, kind="stable")
    used, starts = np.unique(codes[order], return_index=True)
    total = np.zeros((len(w), size))
    if len(used):
        total[:, used] = np.add.reduceat(w[:, order], starts, axis=1)
    return total


def row_shares(c: Floats) -> Floats:
    """Share of each judge label given the reference label, (R, q, q) -> (R, q, q); NaN for a label never used."""
    return _quotient(c, c.sum(axis=2, keepdims=True))


def accuracy(c: Floats) -> Floats:
    """Share of items where judge and reference give the same label, (R, q, q) -> (R,)."""
    return _quotient(np.trace(c, axis1=1, axis2=2), c.sum(axis=(1, 2)))


def adjacent(c: Floats) -> Floats:
    """Share of items where the two lie at most one step of the scale apart, (R, q, q) -> (R,)."""
    k = np.arange(c.shape[1])
    return _quotient(c[:, abs(k[:, None] - k) <= 1].sum(axis=1), c.sum(axis=(1, 2)))


def judged(c: Floats, k: int) -> Floats:
    """Items the judge gives label k, (R, q, q) -> (R,)."""
    items: Floats = c[:, :, k].sum(axis=1)
    return items


def referred(c: Floats, k: int) -> Floats:
    """Items with reference label k, (R, q, q) -> (R,)."""
    items: Floats = c[:, k, :].sum(axis=1)
    return items


def involved(c: Floats, k: int) -> Floats:
    """Items to which the judge, the reference, or both give label k, (R, q, q) -> (R,)."""
    return judged(c, k) + referred(c, k) - c[:, k, k]


def precision(c: Floats, k: int) -> Floats:
    """For the items with label k by the judge, the share that also has reference label k, (b, q, q) -> (b,).

    Level: nominal. Undefined if the judge never gives the label.
    """
    return _quotient(c[:, k, k], judged(c, k))


def recall(c: Floats, k: int) -> Floats:
    """For the items with reference label k, the share that also has label k by the judge, (b, q, q) -> (b,).

    Level: nominal. Undefined if the reference never gives the label.
    """
    return _quotient(c[:, k, k], referred(c, k))


def f1(c: Floats, k: int) -> Floats:
    """F1 of label k = 2 TP / (2 TP + FP + FN), (R, q, q) -> (R,); undefined (NaN) when neither ever gives it.

    Source: van Rijsbergen 1979, Information Retrieval, ch. 7.
    """
    return _quotient(2 * c[:, k, k], referred(c, k) + judged(c, k))


def f1_weighted(c: Floats) -> Floats:
    """Mean of the labels' F1 weighted by how often the reference gives each, (R, q, q) -> (R,)."""
    support = c.sum(axis=2)
    per_label = np.stack([f1(c, k) for k in range(c.shape[1])], axis=1)
    # A label without support weighs nothing, so its 0/0 must not spread.
    return _quotient(np.where(support > 0, support * per_label, 0.0).sum(axis=1), support.sum(axis=1))


def f1_macro(c: Floats) -> Floats:
    """Plain mean of the F1 of the labels that the judge or the reference gives, (R, q, q) -> (R,)."""
    per_label = np.stack([f1(c, k) for k in range(c.shape[1])], axis=1)
    is_used = ~np.isnan(per_label)
    return _quotient(np.where(is_used, per_label, 0.0).sum(axis=1), is_used.sum(axis=1).astype(np.float64))


def cohen_kappa_of_confusion(c: Floats, d: Floats) -> Floats:
    """Cohen's kappa (R, q, q), disagreement (q, q) -> (R,); undefined (NaN) when only one label is used.

    kappa = 1 - sum d_kl p_kl / sum d_kl p_k. p_.l, which is (p_o - p_e) / (1 - p_e) of the weights w = 1 - d. Nothing
    is subtracted below the line, so that it is 0 exactly where no two labels are used.
    Source: Cohen 1960, doi:10.1177/001316446002000104; weighted: Cohen 1968, doi:10.1037/h0026256.
    """
    p = _quotient(c, c.sum(axis=(1, 2), keepdims=True))
    expected = np.einsum("rk,kl,rl->r", p.sum(axis=2), d, p.sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - np.einsum("rkl,kl->r", p, d) / expected, np.nan)


def _quotient(total: Floats, n: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n > 0, total / n, np.nan)


MOST_LABELS = 11
"""Scales with more points (0-100) get no figures label by label."""
_NO_ORDER = Message("a nominal scale has no distances: only labels can be compared")
_NO_LABELS = Message("an interval scale without declared points has no labels to compare")


class Pairs:
    """Judge x and reference y, distinct pairs (m,) on a scale, under weights w (b, m)."""

    def __init__(self, x: Floats, y: Floats, w: Floats, scale: Scale) -> None:
        self.x, self.y, self.w, self.scale = x, y, w, scale

    @cached_property
    def confusion(self) -> Floats:
        """(b, q, q) counts with both rounded half up to the points of the scale, reference in rows."""
        return confusion(snapped(self.y, self.scale), snapped(self.x, self.scale), self.w, self.scale.q)

    def mean(self, of_pairs: Floats) -> Floats:
        """(b,) weighted mean of a value per pair (m,)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: Floats = (self.w @ of_pairs) / self.w.sum(axis=1)
        return mean

    def kappa(self, weighting: Weighting) -> Floats:
        """(b,) Cohen's kappa between judge and reference."""
        return cohen_kappa_of_confusion(self.confusion, disagreement(self.scale, weighting))


@dataclass(frozen=True, slots=True)
class PairFigure:
    """A named figure of pairs -> (b,), and what is to be said when it comes out NaN.

    ``base`` (b,) counts the pairs a share (or F1) rests on; None for what is no share. ``shape``: what values it takes.
    ``skewed``: whether few pairs off the commonest one, or heavy tails (``distances``), leave its interval approximate.
    """

    statistic: str
    kernel: Callable[[Pairs], Floats]
    undefined: str
    variant: str | None = None
    base: Callable[[Pairs], Floats] | None = None
    shape: Shape = "coefficient"
    skewed: bool = False
    distances: bool = False


def mean_signed_error(pairs: Pairs) -> Floats:
    """Bias: mean of judge - reference; positive when the judge is lenient. Level: interval."""
    return pairs.mean(pairs.x - pairs.y)


def mean_absolute_error(pairs: Pairs) -> Floats:
    """MAE: mean of |judge - reference| (POLLUX D.2.1). Level: interval."""
    return pairs.mean(abs(pairs.x - pairs.y))


def root_mean_squared_error(pairs: Pairs) -> Floats:
    """RMSE: root of the mean of (judge - reference)^2. Level: interval."""
    return np.sqrt(pairs.mean((pairs.x - pairs.y) ** 2))


def _all_pairs(pairs: Pairs) -> Floats:
    total: Floats = pairs.w.sum(axis=1)
    return total


_NOTHING = Message("no item has both a judge score and a reference label")
_FLAT_PAIRS = Message("the judge's or the reference's scores do not vary")
_ONE_LABEL = Message("only one label is used")

DISTANCES = (
    PairFigure("mae", mean_absolute_error, _NOTHING, shape="positive"),
    PairFigure("rmse", root_mean_squared_error, _NOTHING, shape="positive", distances=True),
    PairFigure("bias", mean_signed_error, _NOTHING, shape="free"),
    PairFigure("pearson", lambda p: pearson(p.x, p.y, p.w), _FLAT_PAIRS, skewed=True, distances=True),
    PairFigure("spearman", lambda p: spearman(p.x, p.y, p.w), _FLAT_PAIRS, skewed=True),
    PairFigure("kendall_tau_b", lambda p: kendall_tau_b(p.x, p.y, p.w), _FLAT_PAIRS, skewed=True),
)
_STEPS = (
    PairFigure("accuracy_adjacent", lambda p: adjacent(p.confusion), _NOTHING, base=_all_pairs, shape="share"),
    PairFigure("cohen_kappa", lambda p: p.kappa("linear"), _ONE_LABEL, "linear", skewed=True, distances=True),
    PairFigure("cohen_kappa", lambda p: p.kappa("quadratic"), _ONE_LABEL, "quadratic", skewed=True, distances=True),
)
IN_SCORES = ("mae", "rmse", "bias")
"""Figures in the unit of the scores; all others have none."""
CORRELATIONS = ("pearson", "spearman", "kendall_tau_b")
_LABELS = (
    PairFigure("accuracy", lambda p: accuracy(p.confusion), _NOTHING, base=_all_pairs, shape="share"),
    PairFigure("cohen_kappa", lambda p: p.kappa("identity"), _ONE_LABEL, "unweighted", skewed=True),
    PairFigure("f1_weighted", lambda p: f1_weighted(p.confusion), _NOTHING, base=_all_pairs, shape="share"),
    PairFigure("f1_macro", lambda p: f1_macro(p.confusion), _NOTHING, base=_all_pairs, shape="share"),
)
_BY_LABEL = {
    "f1": (f1, involved, Message("neither the judge nor the reference gives this label")),
    "precision": (precision, judged, Message("the judge never gives this label")),
    "recall": (recall, referred, Message("the reference never gives this label")),
}
STATISTICS = tuple(dict.fromkeys(f.statistic for f in (*DISTANCES, *_LABELS, *_STEPS))) + tuple(_BY_LABEL)


def figures(scale: Scale, statistics: Sequence[str] | None = None) -> list[PairFigure]:
    """The figures that apply to a scale, those of ``statistics`` only when it is given."""
    names = STATISTICS if statistics is None else statistics
    available = [*DISTANCES, *_LABELS, *_STEPS, *_each_label(scale)]
    return [figure for figure in available if figure.statistic in names]


def inapplicable(figure: PairFigure, scale: Scale) -> str | None:
    """Why a figure makes no sense on a scale, if so."""
    if not scale.has_order and figure in (*DISTANCES, *_STEPS):
        return _NO_ORDER
    if figure in DISTANCES:
        return None
    if scale.is_continuous:
        return scale.why_continuous
    return None if scale.declared or scale.level in ("nominal", "ordinal") else _NO_LABELS


def values(chosen: Sequence[PairFigure], x: Floats, y: Floats, w: Floats, scale: Scale) -> Floats:
    """All chosen figures of pairs (m,), (m,) under weights (b, m) -> (F, b), NaN where undefined."""
    has_matrix = any(not inapplicable(figure, scale) for figure in chosen if figure not in DISTANCES)
    blocks = [_block(chosen, Pairs(x, y, rows, scale)) for rows in _blocks(w, scale.q**2 if has_matrix else 1)]
    return np.concatenate(blocks, axis=1)


def _block(chosen: Sequence[PairFigure], pairs: Pairs) -> Floats:
    if not pairs.x.size:
        return np.full((len(chosen), len(pairs.w)), np.nan)
    return np.array([_or_nan(figure, pairs) for figure in chosen]).reshape(len(chosen), len(pairs.w))


def _or_nan(figure: PairFigure, pairs: Pairs) -> Floats:
    return np.full(len(pairs.w), np.nan) if inapplicable(figure, pairs.scale) else figure.kernel(pairs)


def _each_label(scale: Scale) -> Iterator[PairFigure]:
    if scale.q > MOST_LABELS:
        return
    for statistic, (kernel, base, undefined) in _BY_LABEL.items():
        for k in range(scale.q):
            yield PairFigure(
                statistic, _of_label(kernel, k), undefined, scale.label(k), _of_label(base, k), shape="share"
            )


def _of_label(kernel: Callable[[Floats, int], Floats], k: int) -> Callable[[Pairs], Floats]:
    return lambda pairs: kernel(pairs.confusion, k)


# Figures about a judge and a reference on many different pairs of scores: values and gradients, without resampling.
#
# The kernels above reweight distinct pairs 2,000 times: too slow when a hundred thousand of them differ. Here
# each figure is computed once, together with its gradient, the derivative by the weight of each pair (n,), from sorted
# scores and running sums. The values are those of the kernels (tests/analytics/stats/judge/test_many_pairs.py).


MANY_PAIRS = 1000
"""From so many different pairs on figures are linearised: resamples would say the same, and tau takes their square."""
_FLATNESS = 1e-14
_STEP = 0.01

KAPPAS: dict[str | None, Weighting] = {"unweighted": "identity", "linear": "linear", "quadratic": "quadratic"}


def is_many(part: Codes, x: Floats, y: Floats) -> bool:
    """Whether more than ``MANY_PAIRS`` of the triples of part, x and y (n,) differ. Source: decision 0016."""
    if len(x) <= MANY_PAIRS:
        return False
    number = part.astype(np.int64)
    for column in (x, y):
        distinct, code = np.unique(column, return_inverse=True)
        number = np.unique(number * len(distinct) + code, return_inverse=True)[1]
    return int(number.max()) >= MANY_PAIRS


def value_of(figure: PairFigure, x: Floats, y: Floats, scale: Scale) -> Value:
    """One figure of ``figures`` of judge x and reference y (n,): NaN where its kernel is.

    Level: the kernel's own. Source: METHODS 3.
    """
    if figure.statistic in _PLAIN:
        return _PLAIN[figure.statistic](x, y)
    reference, judge = snapped(y, scale), snapped(x, scale)
    if figure.statistic == "accuracy":
        return _mean(reference == judge)
    if figure.statistic == "accuracy_adjacent":
        return _mean(abs(reference - judge) <= 1)
    if figure.statistic == "cohen_kappa":
        return continuous_scales.cohen_kappa_of_many_points(
            reference, judge, continuous_scales.Distance.of(scale, KAPPAS[figure.variant])
        )
    if figure.statistic == "f1_weighted":
        return _weighted_f1(reference, judge, scale.q)
    return _by_differences(figure, x, y, reference * scale.q + judge, scale)


def _mean(of_pairs: NDArray[np.generic]) -> Value:
    return continuous_scales.ratio(np.asarray(of_pairs, dtype=np.float64), np.ones(len(of_pairs)))


def _rmse(x: Floats, y: Floats) -> Value:
    square, gradient = _mean((x - y) ** 2)
    root = float(np.sqrt(square))
    return root, gradient / (2 * root) if root > 0 else np.zeros(len(x))


def pearson_value(x: Floats, y: Floats) -> Value:
    """Pearson's r of pairs (n,), (n,) and its gradient; NaN for a constant vector.

    Level: interval. Source: Pearson 1895, doi:10.1098/rspl.1895.0041.
    """
    if x.min() == x.max() or y.min() == y.max():
        return np.nan, np.zeros(len(x))
    u, v = ((z - z.mean()) / np.ptp(z) for z in (x, y))
    products = [float((a * b).mean()) for a, b in ((u, v), (u, u), (v, v))]
    if min(products[1:]) <= _FLATNESS:
        return np.nan, np.zeros(len(x))
    u, v = u / np.sqrt(products[1]), v / np.sqrt(products[2])
    r = float((u * v).mean())
    return float(np.clip(r, -1, 1)), (u * v - r * (u**2 + v**2) / 2) / len(x)


def spearman_value(x: Floats, y: Floats) -> Value:
    """Spearman's rho of pairs (n,), (n,): Pearson's r of the midranks, which move with the weights, too.

    Level: ordinal. NaN for a constant vector. Source: Spearman 1904, doi:10.2307/1412159.
    """
    u, above_u = _ranks(x)
    v, above_v = _ranks(y)
    a, b, c = (float((s * t).mean()) for s, t in ((u, v), (u, u), (v, v)))
    if min(b, c) <= _FLATNESS:
        return np.nan, np.zeros(len(x))
    rho = a / np.sqrt(b * c)
    da = u * v + above_u(v) + above_v(u) - 3 * a
    db, dc = u**2 + 2 * above_u(u) - 3 * b, v**2 + 2 * above_v(v) - 3 * c
    return float(np.clip(rho, -1, 1)), (da / np.sqrt(b * c) - rho / 2 * (db / b + dc / c)) / len(x)


def _ranks(x: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Midranks (n,) centred and divided by n, and the mean of other values (n,) above each, ties counting half."""
    _, code, size = np.unique(x, return_inverse=True, return_counts=True)
    middle = (np.cumsum(size) - size / 2) / len(x) - 0.5

    def above(values: Floats) -> Floats:
        sums = np.bincount(code, weights=values)
        return np.asarray((sums.sum() - np.cumsum(sums) + sums / 2)[code] / len(x))

    return middle[code], above


def kendall_tau_b_value(x: Floats, y: Floats) -> Value:
    """Kendall's tau-b of pairs (n,), (n,) in n log n steps; NaN for a constant vector.

    Level: ordinal. Source: Kendall 1945, doi:10.1093/biomet/33.3.239; Knight 1966, doi:10.1080/01621459.1966.10480879.
    """
    _, kx, of_x = np.unique(x, return_inverse=True, return_counts=True)
    _, ky, of_y = np.unique(y, return_inverse=True, return_counts=True)
    free_x, free_y = (len(x) - size[code] for size, code in ((of_x, kx), (of_y, ky)))
    pairs_x, pairs_y = float(free_x.sum()) / 2, float(free_y.sum()) / 2
    if not min(pairs_x, pairs_y) > 0:
        return np.nan, np.zeros(len(x))
    own = concordance(kx, ky)
    root = np.sqrt(pairs_x) * np.sqrt(pairs_y)
    tau = float(own.sum()) / 2 / root
    return tau, own / root - tau / 2 * (free_x / pairs_x + free_y / pairs_y)


def concordance(x: Codes, y: Codes) -> Floats:
    """(n,) concordant less discordant partners of each of the pairs x, y (n,) of whole numbers.

    Level: ordinal. Source: Knight 1966, doi:10.1080/01621459.1966.10480879.
    """
    return _dominated(x, y) + _dominated(-x, -y) - _dominated(x, -y) - _dominated(-x, y)


def _dominated(x: Codes, y: Codes) -> Floats:
    """(n,) how many have both a smaller x and a smaller y: blocks of the order by x are merged by y, pair after pair.

    Of equal x the larger y stands first, so that no earlier one of the same x has a smaller y.
    """
    n = len(x)
    order = np.lexsort((-y, x))
    rank = np.unique(y[order], return_inverse=True)[1]
    smaller, place = np.zeros(n), np.arange(n)
    by_y = np.argsort(rank, kind="stable")
    width = 1
    while width < n:
        # Inside blocks of twice the width, ascending in y; of equal y the right half first: strictly smaller only.
        block = place // (2 * width)
        is_left = (place // width) % 2 == 0
        key = (block * (int(rank.max()) + 1) + rank) * 2 + is_left
        by_y = np.argsort(key, kind="stable")
        left = is_left[by_y]
        seen = np.cumsum(left)
        before = np.concatenate([[0], seen])[(block * 2 * width)[by_y]]
        smaller[by_y[~left]] += (seen - before)[~left]
        width *= 2
    dominated = np.empty(n)
    dominated[order] = smaller
    return dominated


def _weighted_f1(reference: Codes, judge: Codes, q: int) -> Value:
    """Labels' F1 = 2 T / (R + J) weighted by their R: sum_k 2 R T / (R + J) / n."""
    n = len(reference)
    r, j = (np.bincount(codes, minlength=q).astype(np.float64) for codes in (reference, judge))
    hit = reference == judge
    t = np.bincount(reference[hit], minlength=q)
    total = np.maximum(r + j, 1)
    value = float((2 * r * t / total).sum()) / n
    own = (2 * t * j / total**2)[reference] - (2 * t * r / total**2)[judge] + np.where(hit, (2 * r / total)[judge], 0)
    return value, (own - value) / n


def _by_differences(figure: PairFigure, x: Floats, y: Floats, cell: Codes, scale: Scale) -> Value:
    """Figures of one label of a short scale, from the confusion matrix and its cells a little heavier and lighter."""
    used, index, count = np.unique(cell, return_inverse=True, return_counts=True)
    points, step = scale.values, _STEP * np.eye(len(used))
    weights = np.concatenate([count[None, :], count + step, count - step]).astype(np.float64)
    pairs = Pairs(points[used % scale.q], points[used // scale.q], weights, scale)
    value, *moved = figure.kernel(pairs).tolist()
    if np.isnan(value):
        return np.nan, np.zeros(len(x))
    heavier, lighter = np.array(moved).reshape(2, -1)
    return value, np.nan_to_num((heavier - lighter) / (2 * _STEP))[index]


_PLAIN: dict[str, Callable[[Floats, Floats], Value]] = {
    "mae": lambda x, y: _mean(abs(x - y)),
    "bias": lambda x, y: _mean(x - y),
    "rmse": _rmse,
    "pearson": pearson_value,
    "spearman": spearman_value,
    "kendall_tau_b": kendall_tau_b_value,
}
