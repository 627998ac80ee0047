"""Is the judge stricter in one language than in another, on answers the panel finds equally good? (METHODS 4)

Differential item functioning by ordinal logistic regression: the judge's score on the panel's reference, the language,
and their product. A language effect beside the reference is uniform severity; a product is severity that changes
along the scale. Source: Zumbo 1999; Swaminathan & Rogers 1990, doi:10.1111/j.1745-3984.1990.tb00754.x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.stats.judge.calibrators import fit_ordinal

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Functioning:
    """Likelihood-ratio tests and the language effect in logits (positive: more lenient than the first language).

    ``shift`` (L - 1,), ``p_uniform`` and ``p_nonuniform`` are None with a ``reason`` when the model can't be fitted.
    """

    shift: tuple[float, ...] | None
    p_uniform: float | None
    p_nonuniform: float | None
    n_items: int
    reason: str | None = None


def differential_functioning(judge: Codes, reference: Floats, language: Codes) -> Functioning:
    """DIF of judge codes (N,) given reference (N,) and language index (N,), 0 being the pivot."""
    n = len(judge)
    languages = np.unique(language)
    if len(languages) < 2 or len(np.unique(judge)) < 2 or np.ptp(reference) == 0:
        reason = "it needs two languages, two judge scores and a reference that varies"
        return Functioning(None, None, None, n, reason)
    from scipy.special import chdtrc

    x = ((reference - reference.mean()) / reference.std())[:, None]
    dummies = (language[:, None] == languages[1:]).astype(np.float64)
    codes = np.unique(judge, return_inverse=True)[1]
    models = (x, np.hstack([x, dummies]), np.hstack([x, dummies, x * dummies]))
    fits = [fit_ordinal(codes, columns) for columns in models]
    base, uniform, full = (fit.loss for fit in fits)
    df = dummies.shape[1]
    shift = tuple(float(b) for b in fits[1].slopes[1:])
    p_uniform, p_full = (float(chdtrc(df, max(0.0, 2 * gain))) for gain in (base - uniform, uniform - full))
    return Functioning(shift, p_uniform, p_full, n)


def regressed_means(humans: Floats, language: Codes) -> Floats:
    """(N,) what an item's panel mean says of its true score: drawn towards its language's mean by its reliability.

    m_L + v / (v + e / n_i) (mean_i - m_L), v and e the variances of items and of single scores within the items of the
    language, scores (N, R), NaN where missing, language (N,). Matching on raw means finds a severity that is not there
    wherever languages differ in quality, for error draws an item back to its own language's mean. Level: interval.
    Source: Kelley's regressed scores; the regression correction of Shealy & Stout 1993, doi:10.1007/BF02294572.
    """
    n = (~np.isnan(humans)).sum(axis=1)
    mean = np.nansum(humans, axis=1) / np.maximum(n, 1)
    regressed = mean.copy()
    for one in np.unique(language):
        here = language == one
        size, own = n[here], mean[here]
        freedom = int((size - 1).sum())
        if freedom < 1 or len(own) < 3:
            continue
        error = float(np.nansum((humans[here] - own[:, None]) ** 2)) / freedom
        items = max(float(own.var(ddof=1)) - error * float((1 / size).mean()), 0.0)
        trust = items / (items + error / size) if items > 0 else np.zeros(len(size))
        trust = np.ones(len(size)) if error == 0 else trust
        regressed[here] = own.mean() + trust * (own - own.mean())
    return np.asarray(regressed, dtype=np.float64)


MOST_GROUPS = 40


def shift_errors(judge: Codes, reference: Floats, language: Codes, cluster: Codes) -> list[tuple[float, int]]:
    """Standard error and degrees of freedom of each language's shift (L - 1): clusters left out, in 40 groups at most.

    judge, reference, language and cluster (N,); NaN where a model without a group cannot be fitted. Level: ordinal.
    Source: delete-a-group jackknife, Kott 2001 (Journal of Official Statistics 17:521-526).
    """
    clusters = np.unique(cluster, return_inverse=True)[1]
    groups = min(int(clusters.max(initial=-1)) + 1, MOST_GROUPS)
    group = clusters % max(groups, 1)
    others = len(np.unique(language)) - 1
    without = []
    for one in range(groups):
        kept = group != one
        found = differential_functioning(judge[kept], reference[kept], language[kept])
        if found.shift is None or len(found.shift) != others:
            return [(float("nan"), 0)] * others
        without.append(found.shift)
    if groups < 2:
        return [(float("nan"), 0)] * others
    spread = np.array(without) - np.mean(without, axis=0)
    errors = np.sqrt((groups - 1) / groups * (spread**2).sum(axis=0))
    return [(float(se), groups - 1) for se in errors]
