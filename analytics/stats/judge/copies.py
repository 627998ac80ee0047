"""Is a judge (nearly) one of the annotators? (METHODS 7)

Scores of a judge may be a copy of one annotator's: a file imported twice, a model tuned on one person's labels, a
person who pasted a model's replies. Such a judge looks better than it is beside a panel with this annotator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.number_arrays import Floats
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel

_FEWEST_SHARED = 20
"""With fewer items, equal scores may be chance."""
_MOST, _NEARLY_ALL = 0.8, 0.9
"""Shares of equal scores from which a judge may be a copy: of one among three annotators or more, and of one of two."""
_ALPHA = 0.01


@dataclass(frozen=True, slots=True)
class CopiedAnnotator:
    """Both raters gave the same score to ``n_same`` of ``n_items`` items; ``others``: the largest share of two
    annotators.
    """

    annotator: str
    n_items: int
    n_same: int
    others: float
    p: float


def copied_annotator(compared: JudgeAgainstPanel) -> CopiedAnnotator | None:
    """The annotator of whom the judge has most scores, far more than any two annotators share; else None.

    Named is an annotator j whom the judge equals on _MOST of their items or more, where all of these hold, each
    one-sided and exact, Bonferroni over annotators: McNemar's tests that the judge equals j more often than the
    annotator who is nearest to j does, and more often than it equals any other; and that it follows j on more than half
    of the items on which j is alone against two others or more who agree. A judge that is only good goes with those
    others. Where most items have one other annotator, _NEARLY_ALL is asked for instead; a good annotator beside a
    careless one then can't be told from a copied one. Exact equality, so that any order-preserving change of scores is
    no copy. Source: McNemar 1947, doi:10.1007/BF02295996.
    """
    names, humans, judge = compared.annotators, compared.humans, compared.judge
    found: list[CopiedAnnotator] = []
    for j, name in enumerate(names):
        shared = ~np.isnan(judge) & ~np.isnan(humans[:, j])
        same = judge[shared] == humans[shared, j]
        if len(same) < _FEWEST_SHARED or same.mean() < _MOST:
            continue
        others, own = np.delete(humans[shared], j, axis=1), humans[shared, j]
        largest_p = 0.0
        if ((~np.isnan(others)).sum(axis=1) > 1).mean() >= 0.5:
            alone = _alone(own, others)
            largest_p = _more_often(int(same[alone].sum()), int((~same[alone]).sum()))
        elif same.mean() < _NEARLY_ALL:
            continue
        nearest = 0.0
        for other in others.T:
            both = ~np.isnan(other)
            if not both.any():
                continue
            for alike in (other[both] == own[both], other[both] == judge[shared][both]):
                p = _more_often(int((same[both] & ~alike).sum()), int((~same[both] & alike).sum()))
                largest_p = max(largest_p, p)
            nearest = max(nearest, float((other[both] == own[both]).mean()))
        if nearest and largest_p * len(names) < _ALPHA:
            found.append(CopiedAnnotator(name, len(same), int(same.sum()), nearest, largest_p))
    return min(found, key=lambda copied: (-copied.n_same / copied.n_items, copied.annotator), default=None)


def _alone(own: Floats, others: Floats) -> NDArray[np.bool_]:
    """(N,) whether two ``others`` (N, m) or more gave one and the same score, and ``own`` (N,) is not it."""
    rated = ~np.isnan(others)
    low = np.where(rated, others, np.inf).min(axis=1, initial=np.inf)
    high = np.where(rated, others, -np.inf).max(axis=1, initial=-np.inf)
    return np.asarray((rated.sum(axis=1) > 1) & (low == high) & (own != low))


def _more_often(more: int, fewer: int) -> float:
    """One-sided exact p of ``more`` or more out of both, if either were as likely."""
    from scipy.stats import binom

    return float(binom.sf(more - 1, more + fewer, 0.5)) if more else 1.0
