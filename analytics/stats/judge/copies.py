"""Is a judge (nearly) one of the annotators? (METHODS 7)

Scores of a judge may be a copy of one annotator's: a file imported twice, a model tuned on one person's labels, a
person who pasted a model's replies. Such a judge looks better than it is beside a panel with this annotator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel

_FEWEST_SHARED = 20
"""With fewer items, equal scores may be chance."""
NEARLY_ALL = 0.9
"""Share of equal scores from which a judge may be a copy."""
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
    """The annotator of whom the judge has nearly all scores, far more than any two annotators share; else None.

    On the items of the judge and j: the share of equal scores is NEARLY_ALL or more, and McNemar's exact test says that
    the judge equals j more often than the annotator who is nearest to j, one-sided, Bonferroni over annotators. A panel
    that agrees on nearly everything names nobody. Exact equality, so that any order-preserving change of scores is no
    copy. Source: McNemar 1947, doi:10.1007/BF02295996.
    """
    from scipy.stats import binom

    names, humans, judge = compared.annotators, compared.humans, compared.judge
    found: list[CopiedAnnotator] = []
    for j, name in enumerate(names):
        shared = ~np.isnan(judge) & ~np.isnan(humans[:, j])
        same = judge[shared] == humans[shared, j]
        if len(same) < _FEWEST_SHARED or same.mean() < NEARLY_ALL:
            continue
        largest_p, nearest = 0.0, 0.0
        for k in range(len(names)):
            both = ~np.isnan(humans[shared, k])
            if k == j or not both.any():
                continue
            alike = humans[shared, k][both] == humans[shared, j][both]
            more, fewer = int((same[both] & ~alike).sum()), int((~same[both] & alike).sum())
            p = float(binom.sf(more - 1, more + fewer, 0.5)) if more else 1.0
            largest_p, nearest = max(largest_p, p), max(nearest, float(alike.mean()))
        if nearest and largest_p * len(names) < _ALPHA:
            found.append(CopiedAnnotator(name, len(same), int(same.sum()), nearest, largest_p))
    return min(found, key=lambda copied: (-copied.n_same / copied.n_items, copied.annotator), default=None)
