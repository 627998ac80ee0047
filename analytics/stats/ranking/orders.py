"""How far two rankings agree, as far as the order of generators is clear (METHODS 4): intervals without resampled taus.

Kendall's tau-b, Spearman's rho and the number of inversions see only the *signs* of differences between generators'
means. They jump where two means meet, so there their bootstrap is inconsistent: resampling turns close neighbours
round once more and pulls tau towards 0. The differences themselves are smooth. Here the signs that are clear in both
languages, all at once, are found from the differences, and the interval is what every ranking compatible with them
allows: it holds tau, rho and inversions together, and errs to the wide side (docs/decisions/0014).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations, product

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.intervals import MAX_UNDEFINED_SHARE, Interval, approximate
from analytics.stats.core.scales import rounding
from analytics.stats.ranking.concordance import rank_pairs

Floats = NDArray[np.float64]
Bounds = tuple[float, float]

METHOD = "compatible rankings, stepwise bootstrap of differences"


@dataclass(frozen=True, slots=True)
class Allowed:
    """Lowest and highest values that rankings compatible with the clear signs can have."""

    tau_b: Bounds
    spearman: Bounds
    inversions: Bounds


def intervals(
    means: Floats, boards: Floats, *, n_scenarios: int, confidence: float = 0.95, tie: float | None = None
) -> tuple[Interval, Interval, Interval]:
    """Of tau-b, rho and inversions, from (G, 2) means, (B, G, 2) resampled ones and the scenarios behind each mean.

    ``tie``: the difference up to which means are equal, by default 1e-9 of the means' range.
    """
    undefined = np.isnan(boards).any(axis=(1, 2))
    share = float(undefined.mean())
    if n_scenarios < 2:
        return (Interval(interval_reason="an interval needs two scenarios to resample"),) * 3
    if share > MAX_UNDEFINED_SHARE:
        reason = f"{share:.1%} of the resamples leave a generator without a mean (more than 5%)"
        return (Interval(interval_reason=reason, undefined_share=share),) * 3
    gaps = Gaps.of(means, boards[~undefined], tie)
    found = allowed(gaps.clear_signs(df=n_scenarios - 1, confidence=confidence), len(means))
    method = approximate(METHOD, "conservative" if gaps.vary else "a difference varies in no resample")
    tau, rho, inversions = (
        Interval(low=low, high=high, confidence=confidence, method=method, undefined_share=share)
        for low, high in (found.tau_b, found.spearman, found.inversions)
    )
    return tau, rho, inversions


RANK_SETS = "set of ranks, stepwise bootstrap of differences"


def rank_sets(
    means: Floats, boards: Floats, *, n_scenarios: int, confidence: float = 0.95, tie: float
) -> NDArray[np.intp]:
    """(G, 2) lowest and highest rank (1 = best) of each of G generators in one language, all held at ``confidence``.

    means (G,), boards (B, G). A generator can't rank above those that are clearly better, nor below those that are
    clearly worse; which differences are clear is found stepwise (``Gaps.clear_signs``). Source: simultaneous confidence
    sets of ranks, Mogstad, Romano, Shaikh & Wilhelm 2024 (doi 10.1093/restud/rdad006).
    """
    n, defined = len(means), ~np.isnan(boards).any(axis=1)
    if defined.mean() < 1 - MAX_UNDEFINED_SHARE:
        return np.tile(np.array([1, n]), (n, 1))
    gaps = Gaps.of(means[:, None], boards[defined][:, :, None], tie)
    signs = gaps.clear_signs(df=n_scenarios - 1, confidence=confidence)[:, 0]
    sets = np.tile(np.array([1, n]), (n, 1))
    for sign, i, j in zip(signs, *np.triu_indices(n, 1), strict=True):
        better, worse = (i, j) if sign > 0 else (j, i)
        sets[worse, 0] += sign != 0
        sets[better, 1] -= sign != 0
    return sets


@dataclass(frozen=True, slots=True)
class Gaps:
    """Differences between the means of all P pairs of generators in K languages.

    ``sign`` and ``t`` (P, K): of each difference, its direction and its size in standard errors; ``drawn`` (P, K, B):
    how far each resampled difference lies from it, in the same measure.
    """

    sign: Floats
    t: Floats
    drawn: Floats
    vary: bool

    @classmethod
    def of(cls, means: Floats, boards: Floats, tie: float | None = None) -> Gaps:
        """From (G, K) means and (B, G, K) resampled ones; means no further apart than ``tie`` are equal."""
        tie = rounding(means, boards) if tie is None else tie
        first, second = np.triu_indices(len(means), 1)
        sign, gap = rank_pairs(means, tie), means[first] - means[second]
        columns = np.ascontiguousarray(np.moveaxis(boards, 0, -1))
        drawn = columns[first] - columns[second]
        spread = drawn.std(axis=-1)
        varies = spread > tie
        drawn -= gap[..., None]
        np.abs(drawn, out=drawn)
        drawn /= np.where(varies, spread, np.inf)[..., None]
        t = np.where(varies, abs(gap) / np.where(varies, spread, 1), np.where(sign == 0, 0, np.inf))
        return cls(sign, t, drawn, bool(varies.all()))

    def clear_signs(self, *, df: float, confidence: float = 0.95) -> Floats:
        """(P, K) signs of the differences that are clear, 0 of the others; at ``confidence`` none of them is wrong.

        A difference is clear when it lies further from 0 than the largest error of all differences not yet clear,
        resampled; what is clear is taken out of that family, until nothing more is. The bound is taken at the t
        distribution's quantile (``df``) with the bootstrap's tail. Source: stepwise, Romano & Wolf 2005
        (doi 10.1198/016214504000000539); of ranks, Mogstad, Romano, Shaikh & Wilhelm 2024
        (doi 10.1093/restud/rdad006).
        """
        clear = np.zeros(self.t.shape, dtype=bool)
        while not clear.all():
            largest = self.drawn[~clear].max(axis=0)
            found = ~clear & (self.t > _widened(float(np.quantile(largest, confidence)), df))
            if not found.any():
                break
            clear |= found
        return np.where(clear, self.sign, 0.0)


def allowed(signs: Floats, n: int) -> Allowed:
    """What rankings of n generators in two languages allow, given (P, 2) pair signs, 0 where the order is not known.

    Bounds from pairs (tau-b, inversions) and from threes of generators (rho) looked at one by one: never too narrow,
    seldom wider than trying all rankings out. Rankings with ties lie within those without.
    """
    agreed = signs[:, 0] * signs[:, 1]
    n_pairs, same, crossed = len(agreed), int((agreed > 0).sum()), int((agreed < 0).sum())
    tau = (2 * same / n_pairs - 1, 1 - 2 * crossed / n_pairs)
    return Allowed(tau, _spearman(signs, n) if n > 2 else tau, (float(crossed), float(n_pairs - same)))


def _widened(bound: float, df: float) -> float:
    """A normal bound moved to where the t distribution has the same tail."""
    from scipy.special import ndtr, stdtrit

    return float(stdtrit(df, ndtr(bound)))


def _spearman(signs: Floats, n: int) -> Bounds:
    """Bounds of rho = 3 / (n (n^2 - 1)) sum_i S_i T_i, S_i = sum_j s_ij, as a sum over all threes of generators.

    Of three, sum_i S_i T_i counts each pair's own product 2 s_ij t_ij, as do all n - 2 threes with that pair; one
    count is due, so (n - 3) / (n - 2) of it is taken off.
    """
    known = (signs[_threes(n)] + 1).astype(np.intp)
    code = known[:, 0] * 9 + known[:, 1] * 3 + known[:, 2]
    low, high = _extremes(n)
    unit, one, other = 3 / (n * (n * n - 1)), code[:, 0], code[:, 1]
    return float(unit * low[one, other].sum()), float(unit * high[one, other].sum())


@lru_cache(maxsize=8)
def _threes(n: int) -> NDArray[np.intp]:
    """(T, 3) places of the pairs (a, b), (a, c), (b, c) of every three of n generators among all pairs."""
    place = np.zeros((n, n), dtype=np.intp)
    place[np.triu_indices(n, 1)] = np.arange(n * (n - 1) // 2)
    a, b, c = np.array(list(combinations(range(n), 3))).T
    return np.column_stack([place[a, b], place[a, c], place[b, c]])


def _order_signs() -> Floats:
    """(6, 3) signs of the pairs (a, b), (a, c), (b, c) in each order of three."""
    ranks = np.array(list(permutations(range(3))), dtype=np.float64)
    return np.sign(ranks[:, [0, 0, 1]] - ranks[:, [1, 2, 2]])


def _products() -> tuple[Floats, Floats]:
    """(6, 6) of two orders of three: sum_i S_i T_i, and the sum of s t over the three pairs."""
    ab, ac, bc = (s := _order_signs()).T
    ranks = np.column_stack([ab + ac, bc - ab, -ac - bc])
    return ranks @ ranks.T, s @ s.T


@lru_cache(maxsize=8)
def _extremes(n: int) -> tuple[Floats, Floats]:
    """(27, 27) least and largest share of three, among n, that the orders compatible with its known pairs can have."""
    sums, pairs = _products()
    kernel = sums - 2 * pairs * (n - 3) / (n - 2)
    known = np.array(list(product((-1, 0, 1), repeat=3)))[:, None, :]
    fits = ((known == 0) | (known == _order_signs())).all(axis=2)
    both = fits[:, None, :, None] & fits[None, :, None, :]
    return np.where(both, kernel, np.inf).min(axis=(2, 3)), np.where(both, kernel, -np.inf).max(axis=(2, 3))
