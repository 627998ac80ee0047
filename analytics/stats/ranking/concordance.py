"""Do judges rank generators alike in every language? Ranking stability (METHODS 4; Chung & Freienthal 2026).

A *board* is one criterion's mean score of each generator in each language, (G, L). Rankings of two languages are
compared by Kendall's tau-b, Spearman's rho and inversions. Scenarios are resampled jointly over languages when items
are parallel, else each generator's items within each language (``orders`` makes the intervals); the test permutes
language labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.resampling import Units
from analytics.stats.core.scales import rounding

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


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
    found: Codes = (_by_scenario(s, np.ones(len(s.score))) > 0).sum(axis=0).reshape(s.shape)
    return found


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


def spearman(first: Floats, second: Floats, n: int) -> Floats:
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


def compare(first: Floats, second: Floats, tie: float | None = None) -> Compared:
    """Rankings of two languages from generators' means (G,), (G,); generators without a mean in both are left out.

    ``tie`` as in ``rank_pairs``.
    """
    shared = ~(np.isnan(first) | np.isnan(second))
    n = int(shared.sum())
    if n < 2:
        return Compared(None, None, None, 0, n, "fewer than two generators were scored in both languages")
    s, t = rank_pairs(np.column_stack([first[shared], second[shared]]), tie).T
    tied = int(((s == 0) | (t == 0)).sum())
    if not (s.any() and t.any()):
        return Compared(
            None, None, None, tied, n, "all generators have the same mean in a language: no ranking (ceiling)"
        )
    return Compared(float(tau_b(s, t)), float(spearman(s, t, n)), int(inversions(s, t)), tied, n)


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
