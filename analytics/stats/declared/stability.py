"""Rankings of generators across languages."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_STABILITY = StatisticsReport(
    "stability",
    "analytics.stats.ranking.stability:stability_report",
    group="rankings",
    doc="methods/stability.md#ranking-stability-kendall_tau_b-spearman-inversions",
    prefix="stability.",
    takes=("by", "pool", "bootstrap", "confidence", "seed"),
    once_per=("panel and judges",),
    verdicts="one",
    across=("language", "generator"),
    fixed={"paper_compat": False},
)
REPORTS = (_STABILITY,)
STATISTICS = (
    Statistic("stability.mean", _STABILITY, translatable("Mean of each generator")),
    Statistic("stability.rank", _STABILITY, translatable("Rank of each generator")),
    Statistic(
        "stability.kendall_tau_b",
        _STABILITY,
        translatable("τ-b between the rankings of two languages"),
        better="higher",
    ),
    Statistic(
        "stability.spearman", _STABILITY, translatable("ρ between the rankings of two languages"), better="higher"
    ),
    Statistic("stability.inversions", _STABILITY, translatable("Inversions between two languages"), better="lower"),
    Statistic(
        "stability.confirmed_inversions",
        _STABILITY,
        translatable("Confirmed inversions between two languages"),
        better="lower",
    ),
    Statistic("stability.tied_pairs", _STABILITY, translatable("Tied pairs between two languages")),
)
