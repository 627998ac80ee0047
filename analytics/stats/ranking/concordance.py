"""Do judges rank generators alike in every language? Ranking stability (METHODS 4; Chung & Freienthal 2026).

A *board* is one criterion's mean score of each generator in each language, (G, L). Rankings of two languages are
compared by Kendall's tau-b, Spearman's rho and inversions. Scenarios are resampled jointly over languages when items
are parallel, else each generator's items within each language (``orders`` makes the intervals); the test permutes
language labels.

How far two rankings agree, as far as the order of generators is clear (METHODS 4): intervals without resampled taus.

Kendall's tau-b, Spearman's rho and the number of inversions see only the *signs* of differences between generators'
means. They jump where two means meet, so there their bootstrap is inconsistent: resampling turns close neighbours
round once more and pulls tau towards 0. The differences themselves are smooth. Here the signs that are clear in both
languages, all at once, are found from the differences, and the interval is what every ranking compatible with them
allows: it holds tau, rho and inversions together, and errs to the wide side (docs/decisions/0014).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations, product

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import MAX_UNDEFINED_SHARE, Interval
from analytics.stats.core.messages import Message, approximate
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import Units
from analytics.stats.core.scales import rounding


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores (M,) of one criterion with the generator, language and scenario (cluster) index of each."""

    score: Floats
    generator: Codes
    language: Codes
    scenario: Codes
    generators: tuple[str, ...]
    languages: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """(G, L)."""
        return len(self.generators), len(self.languages)

    @property
    def is_parallel(self) -> bool:
        """Whether most scenarios occur in every language that has any."""
        pairs = np.unique(np.column_stack([self.scenario, self.language]), axis=0)
        per_scenario = np.unique(pairs[:, 0], return_counts=True)[1]
        return len(self.languages) > 1 and bool((per_scenario == len(self.languages)).mean() > 0.5)

    @property
    def tie(self) -> float:
        """Means closer than this are equal: relative to the range of the scores."""
        return rounding(self.score)

    @property
    def cell(self) -> Codes:
        """(M,) place of each score in the flattened board."""
        return self.generator * len(self.languages) + self.language


def board(s: Scores) -> Floats:
    """(G, L) mean scores, NaN where a generator has none in a language."""
    size = s.shape[0] * s.shape[1]
    total, count = np.bincount(s.cell, weights=s.score, minlength=size), np.bincount(s.cell, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / count).reshape(s.shape)


def scenarios(s: Scores) -> Codes:
    """(G, L) number of scenarios behind each mean."""
    counts: Codes = (_by_scenario(s, np.ones(len(s.score))) > 0).sum(axis=0).reshape(s.shape)
    return counts


def rank_pairs(means: Floats, tie: float | None = None) -> Floats:
    """Sign of each difference of generators' means (..., G, L) -> (..., P, L) over all P pairs; ties 0, missing NaN.

    ``tie``: the difference up to which means are equal; by default 1e-9 of the means' own range.
    """
    first, second = np.triu_indices(means.shape[-2], 1)
    gap = means[..., first, :] - means[..., second, :]
    return np.where(abs(gap) <= (rounding(means) if tie is None else tie), 0.0, np.sign(gap))


def tau_b(first: Floats, second: Floats) -> Floats:
    """Kendall's tau-b of two sets of pair signs (..., P), (..., P) -> (...); NaN where either has no ranking.

    tau_b = sum s t / sqrt(sum s^2 sum t^2) over the pairs, a tied pair counting 0. Source: Kendall 1945,
    doi:10.1093/biomet/33.3.239.
    """
    free = (first**2).sum(axis=-1) * (second**2).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(free > 0, (first * second).sum(axis=-1) / np.sqrt(free), np.nan)


def ranks(signs: Floats, n: int) -> Floats:
    """Average ranks (1 = best) from pair signs (..., P) of n generators -> (..., n)."""
    first, second = np.triu_indices(n, 1)
    above = np.full((*signs.shape[:-1], n), (n + 1) / 2)
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        # Each of n - 1 rivals moves a generator half a rank up, half a rank down, or, tied, not at all.
        above[..., i] -= signs[..., pair] / 2
        above[..., j] += signs[..., pair] / 2
    return above


def rank_spearman(first: Floats, second: Floats, n: int) -> Floats:
    """Spearman's rho of two rankings given as pair signs (..., P) of n generators -> (...); NaN without a ranking."""
    a, b = (ranks(signs, n) - (n + 1) / 2 for signs in (first, second))
    free = (a**2).sum(axis=-1) * (b**2).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(free > 0, (a * b).sum(axis=-1) / np.sqrt(free), np.nan)


def inversions(first: Floats, second: Floats) -> Floats:
    """Strictly discordant pairs of generators, (..., P), (..., P) -> (...)."""
    return np.asarray((first * second < 0).sum(axis=-1), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Compared:
    """How two languages rank the generators both have: point values, what ties hide, and why there may be none."""

    tau_b: float | None
    spearman: float | None
    inversions: int | None
    tied_pairs: int
    n_generators: int
    reason: str | None = None


def compare_rankings(first: Floats, second: Floats, tie: float | None = None) -> Compared:
    """Rankings of two languages from generators' means (G,), (G,); generators without a mean in both are left out.

    ``tie`` as in ``rank_pairs``.
    """
    shared = ~(np.isnan(first) | np.isnan(second))
    n = int(shared.sum())
    if n < 2:
        return Compared(None, None, None, 0, n, Message("fewer than two generators were scored in both languages"))
    s, t = rank_pairs(np.column_stack([first[shared], second[shared]]), tie).T
    tied = int(((s == 0) | (t == 0)).sum())
    if not (s.any() and t.any()):
        return Compared(
            None, None, None, tied, n, Message("all generators have the same mean in a language: no ranking (ceiling)")
        )
    return Compared(float(tau_b(s, t)), float(rank_spearman(s, t, n)), int(inversions(s, t)), tied, n)


def resampled_boards(s: Scores, *, resamples: int, rng: np.random.Generator, parallel: bool) -> Floats:
    """(B, G, L) boards of resampled scenarios.

    Parallel: scenarios are drawn once for all generators and languages, so what a scenario does everywhere cancels.
    Otherwise scenarios are drawn anew within each generator and language (the published procedure).
    """
    totals, counts = (_by_scenario(s, values) for values in (s.score, np.ones(len(s.score))))
    if parallel:
        total, count = np.hsplit(_drawn(np.hstack([totals, counts]), resamples, rng), 2)
    else:
        total, count = _independent(totals, counts, resamples, rng)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / count).reshape(resamples, *s.shape)


def permuted(s: Scores, first: int, second: int, *, resamples: int, rng: np.random.Generator, centre: bool) -> Floats:
    """(B, G, 2) boards of two languages with the language labels of each generator's items shuffled.

    ``centre`` takes out each language's overall mean beforehand, so that a stricter language isn't taken for another
    ranking; without it this is the published label shuffling.
    """
    chosen = (s.language == first) | (s.language == second)
    score, generator = s.score[chosen].copy(), s.generator[chosen]
    is_second = s.language[chosen] == second
    if centre:
        for side in (is_second, ~is_second):
            score[side] -= score[side].mean()
    boards = np.full((resamples, len(s.generators), 2), np.nan)
    for g in range(len(s.generators)):
        own, size = score[generator == g], int(is_second[generator == g].sum())
        if 0 < size < len(own):
            boards[:, g, :] = _shuffled_means(own, size, resamples, rng)
    return boards


def p_inversions(observed: float, shuffled: Floats, *, paper_compat: bool = False) -> float:
    """p of at least the observed inversions among permuted ones (B,): (1 + #{>= observed}) / (B + 1).

    ``paper_compat``: the share of permutations at or above, doubled and cut at 1, as S0 prints it.
    """
    at_least = int((shuffled >= observed).sum())
    return min(1.0, 2 * at_least / len(shuffled)) if paper_compat else (1 + at_least) / (len(shuffled) + 1)


def p_of_inversions(means: Floats, boards: Floats, *, df: float, tie: float) -> Floats:
    """(P,) p of H1: the two languages order a pair of generators in opposite ways; means (G, 2), boards (B, G, 2).

    The larger of the two languages' two-sided p of a difference, by t (``df``) with the spread of the resamples, where
    the differences have opposite signs, else 1. Source: qualitative interaction, Gail & Simon 1985
    (doi 10.2307/2530862), whose one-sided p is half of this.
    """
    from scipy.special import stdtr

    i, j = np.triu_indices(len(means), 1)
    gap, signs = means[i] - means[j], rank_pairs(means, tie)
    spread = np.nanstd(boards[:, i] - boards[:, j], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.where(spread > tie, 2 * stdtr(df, -abs(gap) / spread), np.where(signs == 0, 1.0, 0.0)).max(axis=1)
    return np.where((signs[:, 0] * signs[:, 1] < 0) & ~np.isnan(p), p, 1.0)


def language_pairs(n: int) -> Iterator[tuple[int, int]]:
    """All pairs of n languages."""
    return combinations(range(n), 2)


def _by_scenario(s: Scores, values: Floats) -> Floats:
    """(C, G L) sums of values per scenario and cell of the board."""
    _, scenario = np.unique(s.scenario, return_inverse=True)
    size = s.shape[0] * s.shape[1]
    n = int(scenario.max()) + 1
    sums = np.bincount(scenario * size + s.cell, weights=values, minlength=n * size)
    return sums.reshape(n, size).astype(np.float64)


def _independent(totals: Floats, counts: Floats, resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    total, count = np.zeros((2, resamples, totals.shape[1]))
    for cell in range(totals.shape[1]):
        here = counts[:, cell] > 0
        if here.any():
            own = np.column_stack([totals[here, cell], counts[here, cell]])
            total[:, cell], count[:, cell] = _drawn(own, resamples, rng).T
    return total, count


def _drawn(sums: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """(B, k) sums (C, k) of C scenarios drawn with replacement: one matrix product."""
    units = Units(np.ones(len(sums), dtype=np.intp), sums)
    return np.concatenate(list(units.draw(rng, resamples)))


def _shuffled_means(own: Floats, size: int, resamples: int, rng: np.random.Generator) -> Floats:
    """(B, 2) means of a generator's items dealt at random to the first and the second (``size`` items) language."""
    order = rng.permuted(np.tile(own, (resamples, 1)), axis=1)
    second = order[:, :size].sum(axis=1)
    total = own.sum()
    return np.column_stack([(total - second) / (len(own) - size), second / size])


# --- orders that the differences allow -------------------------------------------------------------------------------
Bounds = tuple[float, float]

_METHOD = Message("compatible rankings, stepwise bootstrap of differences")


@dataclass(frozen=True, slots=True)
class AllowedOrders:
    """Lowest and highest values that rankings compatible with the clear signs can have."""

    tau_b: Bounds
    spearman: Bounds
    inversions: Bounds


def rank_intervals(
    means: Floats, boards: Floats, *, n_scenarios: int, confidence: float = 0.95, tie: float | None = None
) -> tuple[Interval, Interval, Interval]:
    """Of tau-b, rho and inversions, from (G, 2) means, (B, G, 2) resampled ones and the scenarios behind each mean.

    ``tie``: the difference up to which means are equal, by default 1e-9 of the means' range.
    """
    undefined = np.isnan(boards).any(axis=(1, 2))
    share = float(undefined.mean())
    if n_scenarios < 2:
        return (Interval(interval_reason=Message("an interval needs two scenarios to resample")),) * 3
    if share > MAX_UNDEFINED_SHARE:
        reason = Message(
            "%(share)s of the resamples leave a generator without a mean (more than 5%%)", share=f"{share:.1%}"
        )
        return (Interval(interval_reason=reason, undefined_share=share),) * 3
    gaps = Gaps.of(means, boards[~undefined], tie)
    ranks = allowed(gaps.clear_signs(df=n_scenarios - 1, confidence=confidence), len(means))
    why = Message("conservative") if gaps.vary else Message("a difference varies in no resample")
    method = approximate(_METHOD, why)
    tau, rho, inversions = (
        Interval(low=low, high=high, confidence=confidence, method=method, undefined_share=share)
        for low, high in (ranks.tau_b, ranks.spearman, ranks.inversions)
    )
    return tau, rho, inversions


RANK_SETS = Message("set of ranks, stepwise bootstrap of differences")


@dataclass(frozen=True, slots=True)
class Standing:
    """A generator among its rivals in one language: those that are clearly better, and those clearly worse."""

    rivals: frozenset[str]
    better: frozenset[str] = frozenset()
    worse: frozenset[str] = frozenset()

    def places(self, among: frozenset[str] | None = None) -> tuple[int, int]:
        """The first and the last place (1 = best) that it may have, among all its rivals or only some of them.

        It can't rank above those that are clearly better, nor below those that are clearly worse.
        """
        rivals = self.rivals if among is None else self.rivals & among
        return 1 + len(self.better & rivals), 1 + len(rivals - self.worse)


def clear_standings(
    generators: Sequence[str], means: Floats, boards: Floats, *, n_scenarios: int, confidence: float = 0.95, tie: float
) -> list[Standing]:
    """How each of G generators stands in one language; all of it, also among fewer rivals, holds at ``confidence``.

    means (G,), boards (B, G). Which differences are clear is found stepwise (``Gaps.clear_signs``). Source:
    simultaneous confidence sets of ranks, Mogstad, Romano, Shaikh & Wilhelm 2024 (doi 10.1093/restud/rdad006).
    """
    n, defined = len(means), ~np.isnan(boards).any(axis=1)
    orders = np.zeros((n, n))
    if defined.mean() >= 1 - MAX_UNDEFINED_SHARE:
        gaps = Gaps.of(means[:, None], boards[defined][:, :, None], tie)
        orders[np.triu_indices(n, 1)] = gaps.clear_signs(df=n_scenarios - 1, confidence=confidence)[:, 0]
        orders -= orders.T
    names = np.array(list(generators), dtype=object)
    return [
        Standing(frozenset(generators) - {own}, frozenset(names[signs < 0]), frozenset(names[signs > 0]))
        for own, signs in zip(generators, orders, strict=True)
    ]


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
            newly_clear = ~clear & (self.t > _widened(float(np.quantile(largest, confidence)), df))
            if not newly_clear.any():
                break
            clear |= newly_clear
        return np.where(clear, self.sign, 0.0)


def allowed(signs: Floats, n: int) -> AllowedOrders:
    """What rankings of n generators in two languages allow, given (P, 2) pair signs, 0 where the order is not known.

    Bounds from pairs (tau-b, inversions) and from threes of generators (rho) looked at one by one: never too narrow,
    seldom wider than trying all rankings out. Rankings with ties lie within those without.
    """
    agreed = signs[:, 0] * signs[:, 1]
    n_pairs, same, crossed = len(agreed), int((agreed > 0).sum()), int((agreed < 0).sum())
    tau = (2 * same / n_pairs - 1, 1 - 2 * crossed / n_pairs)
    return AllowedOrders(tau, _spearman(signs, n) if n > 2 else tau, (float(crossed), float(n_pairs - same)))


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


def tau_b_of_sums(sums: Floats, g: int) -> Floats:
    """(B,) tau-b of means from (B, 3 g) sums of judge, panel and numbers of items."""
    judge, panel, n = np.split(sums, 3, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.stack([judge / n, panel / n], axis=-1)
    signs = np.nan_to_num(rank_pairs(means))
    return tau_b(signs[..., 0], signs[..., 1])
