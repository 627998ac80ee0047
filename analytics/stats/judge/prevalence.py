"""Prevalence of a binary flag from an imperfect judge: Rogan-Gladen with the Lang-Reiczigel interval (METHODS 3)."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.clusters import effective_number, jackknife_error
from analytics.stats.core.estimate import Estimate

Floats = NDArray[np.float64]

_LAST_CLUSTER = "without one of the clusters no items of a kind are left"
_PLUS = 2.0
"""Pseudo-observations added to each of the two validation samples (Lang & Reiczigel 2014)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Counts of a flag: the judge's on items without labels, and its hits on labelled ones.

    ``flagged`` of ``judged`` items carry the judge's flag; of ``positives`` truly flagged items the judge flags
    ``true_positives``; of ``negatives`` it leaves ``true_negatives`` alone.
    """

    flagged: int
    judged: int
    true_positives: int
    positives: int
    true_negatives: int
    negatives: int


def rogan_gladen(flags: Flags, *, by_cluster: Floats | None = None, confidence: float = 0.95) -> Estimate:
    """Prevalence = (AP + Sp - 1) / (Se + Sp - 1) from apparent prevalence, sensitivity and specificity.

    ``by_cluster`` (C, 6): the same counts of each cluster, in the order of ``Flags``, where clusters hold several
    items. The three samples then count for less, by the design effect: the jackknife variance over clusters divided by
    that of independent items; the quantile is that of t.

    The interval allows for all three samples; resampling the labelled one alone under-covers. Undefined without
    items of both kinds or where Se + Sp = 1 (the judge is no better than chance); below 1 it is flagged. Level:
    binary. Sources: Rogan & Gladen 1978, doi:10.1093/oxfordjournals.aje.a112510; Lang & Reiczigel 2014,
    doi:10.1016/j.prevetmed.2013.09.015.
    """
    n_items = flags.judged + flags.positives + flags.negatives
    if not (flags.judged and flags.positives and flags.negatives):
        reason = "it needs labelled items with and without the flag, and judged items without labels"
        return Estimate(statistic="rogan_gladen", value=None, reason=reason, n_items=n_items)
    apparent = flags.flagged / flags.judged
    sensitivity, specificity = flags.true_positives / flags.positives, flags.true_negatives / flags.negatives
    youden = sensitivity + specificity - 1
    if abs(youden) < 1e-12:
        reason = "sensitivity + specificity = 1: the judge tells nothing about the flag"
        return Estimate(statistic="rogan_gladen", value=None, reason=reason, n_items=n_items)
    raw = (apparent + specificity - 1) / youden
    found = Estimate(
        statistic="rogan_gladen", value=min(1.0, max(0.0, raw)), n_items=n_items,
        note=_note(raw, sensitivity, specificity),
    )  # fmt: skip
    if by_cluster is None:
        low, high = lang_reiczigel(flags, confidence=confidence)
        return found.with_(low=low, high=high, confidence=confidence, method="Lang-Reiczigel")
    effect, df = _design_effect(flags, by_cluster, raw, youden)
    if not np.isfinite(effect) or df < 1:
        return found.with_(interval_reason=_LAST_CLUSTER)
    low, high = lang_reiczigel(flags, effect=effect, df=df, confidence=confidence)
    method = f"Lang-Reiczigel t, design effect {effect:.2f} of clusters"
    return found.with_(low=low, high=high, confidence=confidence, method=method)


def _design_effect(flags: Flags, by_cluster: Floats, raw: float, youden: float) -> tuple[float, float]:
    """Jackknife variance over clusters divided by that of independent items, at least 1; degrees of freedom.

    NaN where a cluster left out leaves the prevalence undefined.
    """
    ap, n, tp, p, tn, q = np.array([getattr(flags, one.name) for one in fields(flags)])[:, None] - by_cluster.T
    with np.errstate(invalid="ignore", divide="ignore"):
        without = (ap / n + tn / q - 1) / (tp / p + tn / q - 1)
    labelled = by_cluster[:, 3] + by_cluster[:, 5]
    if not np.isfinite(without).all():
        return float("nan"), 0.0
    variance = jackknife_error(raw, without, labelled > 0) ** 2
    shares = [flags.flagged / flags.judged, flags.true_positives / flags.positives,
              flags.true_negatives / flags.negatives]  # fmt: skip
    sizes = (flags.judged, flags.positives, flags.negatives)
    slopes = (1.0, raw, 1 - raw)
    alone = sum(b**2 * x * (1 - x) / m for b, x, m in zip(slopes, shares, sizes, strict=True)) / youden**2
    return max(1.0, variance / alone) if alone > 0 else 1.0, effective_number(labelled[labelled > 0]) - 1


def lang_reiczigel(
    flags: Flags, *, effect: float = 1.0, df: float | None = None, confidence: float = 0.95
) -> tuple[float, float]:
    """Both bounds, clipped to [0, 1]: adjusted estimate + shift -+ z se, all from samples with pseudo-observations.

    The samples count as so many items divided by the design ``effect``; z is the quantile of t where ``df`` is given.
    """
    from scipy.special import ndtri, stdtrit

    tail = (1 + confidence) / 2
    z = float(ndtri(tail) if df is None else stdtrit(df, tail))
    n, n_se, n_sp = (size / effect for size in (flags.judged, flags.positives, flags.negatives))
    flagged, hits, spared = (x / effect for x in (flags.flagged, flags.true_positives, flags.true_negatives))
    n, n_se, n_sp = n + z**2, n_se + _PLUS, n_sp + _PLUS
    p, se, sp = (flagged + z**2 / 2) / n, (hits + _PLUS / 2) / n_se, (spared + _PLUS / 2) / n_sp
    youden = se + sp - 1
    if abs(youden) < 1e-12:
        return 0.0, 1.0
    theta = (p + sp - 1) / youden
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    half = z * (p * (1 - p) / n + theta**2 * of_se + (1 - theta) ** 2 * of_sp) ** 0.5 / abs(youden)
    middle = theta + 2 * z**2 * (theta * of_se - (1 - theta) * of_sp)
    return min(1.0, max(0.0, middle - half)), min(1.0, max(0.0, middle + half))


def _note(raw: float, sensitivity: float, specificity: float) -> str:
    notes = [f"sensitivity {sensitivity:.3f}, specificity {specificity:.3f}"]
    if sensitivity + specificity < 1:
        notes.append("below 1 together: the judge's flag points the wrong way")
    if not 0 <= raw <= 1:
        notes.append(f"clipped from {raw:.3f}")
    return "; ".join(notes)
