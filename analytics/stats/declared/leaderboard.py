"""Generators side by side, by corrected means."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_LEADERBOARD = StatisticsReport(
    "leaderboard",
    "analytics.stats.judge.leaderboard:leaderboard_report",
    group="correction",
    needs=("judge",),
    doc="methods/correction.md#results-generators-side-by-side",
    prefix="leaderboard.",
    takes=("by", "pool", "confidence", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="one",
    once_per=("judge",),
    reads=("task_type", "macro_group"),
)
REPORTS = (_LEADERBOARD,)
STATISTICS = (
    Statistic("leaderboard.panel_mean", _LEADERBOARD, translatable("Mean of each generator by the panel")),
    Statistic(
        "leaderboard.judge_mean", _LEADERBOARD, translatable("Mean of each generator by the judge"), part="generator"
    ),
    Statistic("leaderboard.corrected_mean", _LEADERBOARD, translatable("Corrected mean of each generator")),
    Statistic("leaderboard.pooled_mean", _LEADERBOARD, translatable("Corrected mean, calibrated with all languages")),
    Statistic("leaderboard.macro_mean", _LEADERBOARD, translatable("Mean in which every task type counts once")),
    Statistic(
        "leaderboard.effective_labels",
        _LEADERBOARD,
        translatable("Labels that the correction is worth"),
        better="higher",
    ),
    Statistic(
        "leaderboard.corrected_difference",
        _LEADERBOARD,
        translatable("Corrected difference of two generators"),
        written="signed",
    ),
)
