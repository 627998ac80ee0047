"""Means of the panel and of judges."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_MEANS = StatisticsReport(
    "means",
    "analytics.stats.judge.corrected_means:means_report",
    group="scores",
    doc="methods/correction.md#classical_mean-judge_mean",
    prefix="means.",
    takes=("by", "confidence"),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
    also_by=("criterion",),
)
REPORTS = (_MEANS,)
STATISTICS = (
    Statistic(
        "means.classical_mean",
        _MEANS,
        translatable("Mean of the panel"),
        short_title=translatable("Panel mean"),
        part="generator",
    ),
    Statistic(
        "means.judge_mean",
        _MEANS,
        translatable("Mean of each judge"),
        short_title=translatable("Judge mean"),
        part="generator",
    ),
)
