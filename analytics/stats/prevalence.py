"""Prevalence of a binary flag from an imperfect judge: Rogan-Gladen with the Lang-Reiczigel interval (METHODS 3)."""

from __future__ import annotations

from dataclasses import dataclass

from analytics.stats.estimate import Estimate

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


def rogan_gladen(flags: Flags, *, confidence: float = 0.95) -> Estimate:
    """Prevalence = (AP + Sp - 1) / (Se + Sp - 1) from apparent prevalence, sensitivity and specificity.

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
    low, high = lang_reiczigel(flags, confidence=confidence)
    return Estimate(
        statistic="rogan_gladen", value=min(1.0, max(0.0, raw)), low=low, high=high, confidence=confidence,
        method="Lang-Reiczigel", n_items=n_items, note=_note(raw, sensitivity, specificity),
    )  # fmt: skip


def lang_reiczigel(flags: Flags, *, confidence: float = 0.95) -> tuple[float, float]:
    """Both bounds, clipped to [0, 1]: adjusted estimate + shift -+ z se, all from samples with pseudo-observations."""
    from scipy.special import ndtri

    z = float(ndtri((1 + confidence) / 2))
    n, n_se, n_sp = flags.judged + z**2, flags.positives + _PLUS, flags.negatives + _PLUS
    p = (flags.flagged + z**2 / 2) / n
    se, sp = (flags.true_positives + _PLUS / 2) / n_se, (flags.true_negatives + _PLUS / 2) / n_sp
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
