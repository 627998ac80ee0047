"""Declarations: correlations of measures (numbers computed for each item) with each other, with the panel and with
judges; their means and ranking stability."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_STABILITY_OF_MEASURES = StatisticsReport(
    "stability of measures",
    "analytics.stats.ranking.stability:stability_of_measure",
    group="rankings",
    doc="methods/stability.md#ranking-stability-kendall_tau_b-spearman-inversions",
    prefix="stability.",
    takes=("by", "statistics", "bootstrap", "confidence", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
    once_per=("measure",),
    across=("language", "generator"),
)
_MEANS_OF_MEASURES = StatisticsReport(
    "means of measures",
    "analytics.stats.judge.measures:means_of_measure",
    group="scores",
    doc="methods/correction.md#classical_mean-judge_mean",
    prefix="means.",
    takes=("by", "statistics", "confidence"),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
    once_per=("measure",),
)
_MEASURES = StatisticsReport(
    "measures",
    "analytics.stats.judge.measures:measure_report",
    group="measures",
    needs=("measure",),
    doc="methods/surface.md",
    prefix="measures.",
    takes=("by", "pool", "statistics", "bootstrap", "confidence", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
    once_per=("measure and other",),
)
REPORTS = (
    _MEASURES,
    _STABILITY_OF_MEASURES,
    _MEANS_OF_MEASURES,
)
STATISTICS = (
    Statistic("measures.pearson", _MEASURES, translatable("Pearson’s r of a measure")),
    Statistic("measures.spearman", _MEASURES, translatable("Spearman’s ρ of a measure")),
    Statistic("measures.kendall_tau_b", _MEASURES, translatable("Kendall’s τ-b of a measure")),
)
