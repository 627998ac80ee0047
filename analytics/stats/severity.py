"""Is the judge stricter in one language than in another, on answers the panel finds equally good? (METHODS 4)

Differential item functioning by ordinal logistic regression: the judge's score on the panel's reference, the language,
and their product. A language effect beside the reference is uniform severity; a product is severity that changes
along the scale. Source: Zumbo 1999; Swaminathan & Rogers 1990, doi:10.1111/j.1745-3984.1990.tb00754.x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.stats.ordinal import fit_ordinal

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
