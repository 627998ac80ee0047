"""From a judge's score to the panel score it stands for: six calibrators, cross-validated by cluster (METHODS 3).

A calibrator is fitted to judge scores ``f`` (n,) and panel scores ``y`` (n,) and returns a function of judge scores
(m,) -> (m,). Level: interval, but for ``ordinal_logit``, which asks for an order only.
One that doesn't beat the constant (the labels' mean) out of sample is useless, and is reported so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analytics.stats.core.estimates import percentile
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import resampled_sums

Predict = Callable[[Floats], Floats]
Fit = Callable[[Floats, Floats], Predict]

FEW_LABELS = 100
POOLING = 20
"""A language with n labels of its own weighs n / (n + POOLING) against all languages together."""
MOST_OUTSIDE = 0.05
_CELL_PRIOR = 5
_RIDGE = 1.0


def raised(f: Floats) -> int:
    """Power of two that brings scores (n,) that differ near 1, so that squares of the smallest are not 0.

    At most 900, so that scores of 1 beside them do not overflow.
    """
    return min(-math.frexp(float(np.ptp(f)))[1], 900)


def constant(f: Floats, y: Floats) -> Predict:
    """The mean of labels (n,) whatever the judge says: the baseline to beat. Source: METHODS 3."""
    level = float(y.mean())
    return lambda x: np.full(len(x), level)


def offset(f: Floats, y: Floats) -> Predict:
    """The judge's score less its bias on the labels: x + mean(y - f), f and y (n,). Source: METHODS 3."""
    shift = float((y - f).mean())
    return lambda x: x + shift


def ridge_affine(f: Floats, y: Floats) -> Predict:
    """a + b f with the slope drawn towards 0 as by one more label: b = S_fy / (S_ff + var f)."""
    centre, level = f.mean(), y.mean()
    if np.ptp(f) == 0:  # the mean of equal scores may miss them by a rounding error
        return lambda x: np.full(len(x), level)
    exponent = raised(f)
    deviation = np.ldexp(f - centre, exponent)
    spread = (deviation**2).sum()
    slope = (deviation * (y - level)).sum() / (spread + _RIDGE * spread / len(f))
    return lambda x: level + slope * np.ldexp(x - centre, exponent)


def isotonic(f: Floats, y: Floats) -> Predict:
    """The best never-falling step function (pool adjacent violators), straight between scores seen in the labels.

    Source: Barlow & Brunk 1972, doi:10.1080/01621459.1972.10481216.
    """
    scores, index = np.unique(f, return_inverse=True)
    n = np.bincount(index)
    fitted = _pooled_violators(np.bincount(index, weights=y) / n, n)
    return lambda x: np.asarray(np.interp(x, scores, fitted))


def _pooled_violators(means: Floats, n: Codes) -> Floats:
    """(m,) the never-falling sequence nearest to means (m,) of n (m,) labels each."""
    blocks: list[tuple[float, int, int]] = []  # mean, labels, means
    for block in zip(means.tolist(), n.tolist(), [1] * len(means), strict=True):
        blocks.append(block)
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (a, m, width), (b, k, more) = blocks[-2:]
            blocks[-2:] = [((a * m + b * k) / (m + k), m + k, width + more)]
    return np.repeat([mean for mean, _, _ in blocks], [width for _, _, width in blocks])


def cell_means(f: Floats, y: Floats) -> Predict:
    """Mean label of each judge score, drawn towards the overall mean as by five labels; that mean for unseen scores.

    (sum of y where f = s, + 5 mean y) / (their number + 5), f and y (n,). Source: METHODS 3.
    """
    scores, index = np.unique(f, return_inverse=True)
    level = y.mean()
    n = np.bincount(index)
    shrunk = (np.bincount(index, weights=y) + _CELL_PRIOR * level) / (n + _CELL_PRIOR)

    def predict(x: Floats) -> Floats:
        at = np.clip(np.searchsorted(scores, x), 0, len(scores) - 1)
        return np.asarray(np.where(scores[at] == x, shrunk[at], level))

    return predict


def ordinal_logit(f: Floats, y: Floats) -> Predict:
    """Expected label of a proportional-odds model of labels on the judge's score, its slope under a weak prior.

    f and y (n,); the labels' mean where they do not vary. Source: McCullagh 1980,
    doi:10.1111/j.2517-6161.1980.tb01109.x.
    """
    points, codes = np.unique(y, return_inverse=True)
    if len(points) < 2 or np.ptp(f) == 0:
        return constant(f, y)
    centre, exponent = f.mean(), raised(f)
    deviation = np.ldexp(f - centre, exponent)
    unit = np.sqrt((deviation**2).mean())

    def predict(x: Floats) -> Floats:
        z = np.ldexp(x - centre, exponent) / unit
        return np.asarray(points[0] + fitted.above(z[:, None]) @ np.diff(points))

    fitted = fit_ordinal(codes, (deviation / unit)[:, None], ridge=0.02)
    return predict


CALIBRATORS: dict[str, Fit] = {
    "constant": constant,
    "offset": offset,
    "ridge_affine": ridge_affine,
    "isotonic": isotonic,
    "cell_means": cell_means,
    "ordinal_logit": ordinal_logit,
}


def default_calibrator(n_labels: int) -> str:
    """Two parameters below 100 labels, a free monotone shape from there."""
    return "ridge_affine" if n_labels < FEW_LABELS else "isotonic"


def pooled(fit: Fit, f: Floats, y: Floats, language: Codes) -> Callable[[Floats, Codes], Floats]:
    """One calibrator per language, shrunk towards the calibrator of all languages and keeps the weight n / (n + 20).

    ``language`` (n,) are indices; a language without labels gets the calibrator of all.
    """
    everywhere = fit(f, y)
    own = {int(one): fit(f[language == one], y[language == one]) for one in np.unique(language)}
    share = {one: n / (n + POOLING) for one in own if (n := int((language == one).sum()))}

    def predict(x: Floats, of: Codes) -> Floats:
        predicted = everywhere(x)
        for one, local in own.items():
            here = of == one
            predicted[here] = share[one] * local(x[here]) + (1 - share[one]) * predicted[here]
        return predicted

    return predict


@dataclass(frozen=True, slots=True)
class Validation:
    """Out-of-fold squared error of a calibrator beside the constant's; ``gain`` = 1 - error / constant's error."""

    calibrator: str
    error: float
    constant_error: float
    gain: float | None
    gain_low: float | None = None
    gain_high: float | None = None
    gain_reason: str | None = None

    @property
    def is_useful(self) -> bool:
        """Whether the judge's score tells anything the labels' mean doesn't."""
        return self.gain is not None and self.gain > 0


def cross_validate(
    name: str, f: Floats, y: Floats, cluster: Codes, *, rng: np.random.Generator, folds: int = 5
) -> Validation:
    """Squared error of a calibrator on clusters it hasn't seen, beside the constant's; f, y and cluster (n,).

    The gain's bounds are its 2.5 and 97.5 % points over resampled clusters of out-of-fold errors.
    """
    fold = folds_by_cluster(cluster, folds=folds, rng=rng)
    own, base = (out_of_fold(CALIBRATORS[one], f, y, fold) for one in (name, "constant"))
    losses = np.stack([(y - own) ** 2, (y - base) ** 2])
    error, baseline = losses.mean(axis=1)
    if baseline <= 1e-24 * float(np.abs(y).max()) ** 2:
        return Validation(name, float(error), 0.0, None)
    return Validation(name, float(error), float(baseline), float(1 - error / baseline), *_bounds(losses, cluster, rng))


def out_of_fold(fit: Fit, f: Floats, y: Floats, fold: Codes) -> Floats:
    """(n,) prediction of each label by a calibrator fitted without its fold."""
    predicted = np.empty(len(y))
    for one in np.unique(fold):
        held = fold == one
        predicted[held] = fit(f[~held], y[~held])(f[held])
    return predicted


def folds_by_cluster(cluster: Codes, *, folds: int, rng: np.random.Generator) -> Codes:
    """(n,) fold of each label; whole clusters in random order, dealt out one by one."""
    clusters, index = np.unique(cluster, return_inverse=True)
    if len(clusters) < 2:
        raise ValueError("cross-validation needs two clusters")
    dealt = rng.permutation(np.arange(len(clusters)) % min(folds, len(clusters)))
    return np.asarray(dealt[index], dtype=np.intp)


def share_outside(seen: Floats, scores: Floats) -> float:
    """Share of judge scores (N,) beyond the range seen in labels (n,); from 5 % on no claim about levels is made."""
    return float(((scores < seen.min()) | (scores > seen.max())).mean()) if len(scores) else 0.0


def _bounds(losses: Floats, cluster: Codes, rng: np.random.Generator) -> tuple[float | None, float | None, str | None]:
    """Percentile bounds of the gain over resampled clusters, or the reason there are none."""
    _, index = np.unique(cluster, return_inverse=True)
    sums = np.stack([np.bincount(index, weights=row) for row in losses])
    own, base = resampled_sums(sums.T, resamples=2000, rng=rng).T
    varies = base > 1e-12 * sums[1].sum()
    interval = percentile(1 - np.divide(own, base, out=np.full(len(own), np.nan), where=varies))
    return interval.low, interval.high, interval.interval_reason


# Proportional-odds regression: ordered categories on numbers.


@dataclass(frozen=True, slots=True)
class OrdinalFit:
    """Slopes (p,), cuts (q - 1,) and negative log-likelihood of logit P(Y > k) = x b - c_k."""

    slopes: Floats
    cuts: Floats
    loss: float

    def above(self, columns: Floats) -> Floats:
        """(N, q - 1) probability of a category above each cut."""
        from scipy.special import expit

        return np.asarray(expit((columns @ self.slopes)[:, None] - self.cuts))


_STEPS = 100
FLAT = 1e-10
"""A Newton step that gains less likelihood than this per observation is the last."""


def fit_ordinal(codes: Codes, columns: Floats, *, ridge: float = 0.0) -> OrdinalFit:
    """Maximum likelihood for codes 0..q-1 (N,), each of them used, on columns (N, p), less ``ridge`` times b'b.

    Newton's method, the likelihood being concave in slopes and cuts together (Pratt 1981, doi:
    10.1080/01621459.1981.10477613); scipy.optimize would do, at a second's import. Source: McCullagh 1980,
    doi:10.1111/j.2517-6161.1980.tb01109.x.
    """
    n, p, q = len(codes), columns.shape[1], int(codes.max()) + 1
    shares = np.bincount(codes, minlength=q)[::-1].cumsum()[::-1][1:] / n
    theta = np.concatenate([np.zeros(p), np.log((1 - shares) / shares)])
    penalty = np.concatenate([np.full(p, ridge), np.zeros(q - 1)])
    edges = _edges(codes, columns, q)
    loss, gradient, hessian = _likelihood(theta, edges, codes, penalty)
    for _ in range(_STEPS):
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0].astype(np.float64)
        minimum = _descended(theta, step, loss, edges, codes, penalty)
        if minimum is None:
            break
        theta, gain = theta - minimum[0], loss - minimum[1][0]
        loss, gradient, hessian = minimum[1]
        if gain < FLAT * n:
            break
    return OrdinalFit(theta[:p], theta[p:], loss)


def _edges(codes: Codes, columns: Floats, q: int) -> tuple[Floats, Floats]:
    """Design of the logits of P(Y >= k) and P(Y > k), (N, p + q - 1) each, for the category k of each observation."""
    cuts = -np.eye(q + 1)[:, 1:q]
    return np.hstack([columns, cuts[codes]]), np.hstack([columns, cuts[codes + 1]])


def _likelihood(
    theta: Floats, edges: tuple[Floats, Floats], codes: Codes, penalty: Floats
) -> tuple[float, Floats, Floats]:
    """Penalised negative log-likelihood with its gradient and Hessian; infinite where cuts cross."""
    from scipy.special import expit

    lower, upper = edges
    last = int(codes.max())
    u, v = np.where(codes > 0, expit(lower @ theta), 1.0), np.where(codes < last, expit(upper @ theta), 0.0)
    share = u - v
    if (share <= 0).any():
        return float("inf"), theta, np.eye(len(theta))
    du, dv = u * (1 - u) / share, v * (1 - v) / share
    gradient = -(lower.T @ du - upper.T @ dv) + 2 * penalty * theta
    cross = lower.T @ (upper * (du * dv)[:, None])
    own = lower.T @ (lower * (du * (1 - 2 * u) - du**2)[:, None])
    other = upper.T @ (upper * (-dv * (1 - 2 * v) - dv**2)[:, None])
    hessian = -(own + other + cross + cross.T) + 2 * np.diag(penalty)
    return float(-np.log(share).sum() + penalty @ theta**2), gradient, hessian


def _descended(
    theta: Floats, step: Floats, loss: float, edges: tuple[Floats, Floats], codes: Codes, penalty: Floats
) -> tuple[Floats, tuple[float, Floats, Floats]] | None:
    """The largest of step, step/2, ... that lowers the loss, and what is there; None when none does."""
    for halvings in range(30):
        shorter = step / 2**halvings
        there = _likelihood(theta - shorter, edges, codes, penalty)
        if there[0] < loss:
            return shorter, there
    return None
