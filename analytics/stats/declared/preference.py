"""Preferences between two candidates."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_PREFERENCES = StatisticsReport(
    "preferences",
    "analytics.stats.ranking.preferences:preference_report",
    group="preferences",
    doc="methods/correction.md#preferences-between-two-candidates",
    prefix="preference.",
    takes=("by", "pool", "confidence"),
    is_whole=True,
    in_file_order=True,
    verdicts="one or all",
    once_per=("panel and judges",),
    reads=("model_a", "model_b"),
)
REPORTS = (_PREFERENCES,)
STATISTICS = (
    Statistic("preference.win", _PREFERENCES, translatable("Comparisons of two generators won"), written="share"),
    Statistic(
        "preference.tie", _PREFERENCES, translatable("Comparisons of two generators without a winner"), written="share"
    ),
    Statistic("preference.loss", _PREFERENCES, translatable("Comparisons of two generators lost"), written="share"),
    Statistic(
        "preference.strength",
        _PREFERENCES,
        translatable("Strength of each generator (Bradley-Terry)"),
        written="signed",
    ),
)
