"""Items as patterns: how many raters gave each point, counted once per distinct pattern.

Every coefficient that doesn't ask who gave a score sees an item i only through its counts n_ik. A million items rated
by three people on five points show 55 different rows of counts, so the kernels work on (P, q) rows and weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.resampling import Units

if TYPE_CHECKING:
    from analytics.stats.core.tables import Coded

Floats = NDArray[np.float64]

TABULATED_CODES = 1 << 16
"""Largest number of ordered patterns that is counted in a table instead of sorted."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """``counts`` (P, q): n_pk raters gave the point k in pattern p; ``units``: what is resampled, made of patterns."""

    counts: Floats
    units: Units

    @property
    def weights(self) -> Floats:
        """(1, P) how many items show each pattern: the sample itself, as kernels take it."""
        return self.units.pattern_totals[None, :]

    @property
    def n(self) -> Floats:
        """(P,) raters per item, n_p."""
        return np.asarray(self.counts.sum(axis=1))

    def where(self, keep: NDArray[np.bool_]) -> Patterns:
        """The same items without those whose pattern is not kept; a cluster may so become empty but stays a unit."""
        if self.units.composition is None:
            return Patterns(self.counts[keep], Units(self.units.multiplicity[keep]))
        return Patterns(self.counts[keep], Units(self.units.multiplicity, self.units.composition[:, keep]))


def patterns_of(cell: Coded) -> Patterns:
    """Patterns of a coded cell; its clusters are the units."""
    return patterns_of_counts(cell.counts(), cell.cluster)


def patterns_of_counts(counts: NDArray[np.int64], cluster: NDArray[np.intp] | None = None) -> Patterns:
    """Patterns of (N, q) counts n_ik, items being resampled by their (N,) cluster."""
    distinct, pattern = _distinct(counts)
    return Patterns(distinct.astype(np.float64), Units.of(pattern, cluster))


def patterns_of_codes(codes: NDArray[np.integer], q: int) -> Patterns:
    """Patterns of an (N, R) array of codes 0..q-1, negative where missing, every item standing alone.

    With few raters and points the ordered patterns fit a table: one pass over the codes and no sorting.
    """
    n_items, n_raters = codes.shape
    n_ordered = (q + 1) ** n_raters
    if n_ordered > TABULATED_CODES:
        return patterns_of_counts(_counted(codes, q))
    number: NDArray[np.uint16] = np.zeros(n_items, dtype=np.uint16)
    for rater in range(n_raters):
        number *= np.uint16(q + 1)
        number += (np.maximum(codes[:, rater], -1) + 1).astype(np.uint16)
    seen = np.bincount(number, minlength=n_ordered)
    ordered = np.flatnonzero(seen)
    digits = ordered[:, None] // (q + 1) ** np.arange(n_raters) % (q + 1) - 1
    counts, index = np.unique(_counted(digits, q), axis=0, return_inverse=True)
    multiplicity = np.bincount(index.ravel(), weights=seen[ordered], minlength=len(counts)).astype(np.int64)
    return Patterns(counts.astype(np.float64), Units(multiplicity))


def _counted(codes: NDArray[np.integer], q: int) -> NDArray[np.int64]:
    """(N, q) n_ik from (N, R) codes."""
    item, rater = np.nonzero(codes >= 0)
    return np.bincount(item * q + codes[item, rater], minlength=len(codes) * q).reshape(len(codes), q)


def _distinct(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Distinct rows and the row each item shows, by one number per row where the counts fit one."""
    base = int(counts.max()) + 1 if counts.size else 1
    if base ** counts.shape[1] < 2**62:
        number = counts @ base ** np.arange(counts.shape[1], dtype=np.int64)
        _, first, pattern = np.unique(number, return_index=True, return_inverse=True)
        return counts[first], pattern
    distinct, pattern = np.unique(counts, axis=0, return_inverse=True)
    return distinct, pattern.ravel()
