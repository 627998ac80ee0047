"""Two judges."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable
from analytics.stats.declared.variants import WEIGHTED_KAPPA

_TWO_JUDGES = StatisticsReport(
    "two judges",
    "analytics.stats.judge.two_judges:two_judges_report",
    group="two judges",
    needs=("judge", "two judges"),
    doc="methods/calibration.md#differences-compare---between",
    prefix="judges.",
    takes=("by", "pool", "statistics", "bootstrap", "confidence", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
    once_per=("pair of judges",),
)
REPORTS = (_TWO_JUDGES,)
STATISTICS = (
    Statistic("judges.spearman", _TWO_JUDGES, translatable("Spearman’s ρ between judges"), better="higher"),
    Statistic("judges.kendall_tau_b", _TWO_JUDGES, translatable("Kendall’s τ-b between judges"), better="higher"),
    Statistic("judges.pearson", _TWO_JUDGES, translatable("Pearson’s r between judges"), better="higher"),
    Statistic("judges.accuracy", _TWO_JUDGES, translatable("Equal scores of two judges"), better="higher"),
    Statistic(
        "judges.cohen_kappa",
        _TWO_JUDGES,
        translatable("Cohen’s κ between judges"),
        usual=WEIGHTED_KAPPA,
        better="higher",
    ),
    Statistic("judges.mae", _TWO_JUDGES, translatable("Mean absolute difference of two judges"), better="lower"),
    Statistic(
        "judges.tost",
        _TWO_JUDGES,
        translatable("Equivalence of two judges (TOST, margin .05)"),
        doc="methods/audits.md#two-instructions-the-same-scores-equivalence",
    ),
    Statistic(
        "judges.mcnemar",
        _TWO_JUDGES,
        translatable("McNemar’s test of two judges"),
        doc="methods/calibration.md#mcnemar-mcnemar-variants-exact-midp-chi2-chi2_corrected",
    ),
)
