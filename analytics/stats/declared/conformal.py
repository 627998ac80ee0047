"""How far a judge's score may be off on a new item."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_CONFORMAL_INTERVALS = StatisticsReport(
    "conformal intervals",
    "analytics.stats.judge.soundness:conformal_report",
    group="correction",
    needs=("judge",),
    doc="methods/calibration.md#items-that-the-judge-can-score-alone-conformal",
    prefix="conformal.",
    takes=("by", "pool"),
    is_whole=True,
    in_file_order=True,
    verdicts="one",
    once_per=("judge",),
)
REPORTS = (_CONFORMAL_INTERVALS,)
STATISTICS = (
    Statistic(
        "conformal.conformal_radius",
        _CONFORMAL_INTERVALS,
        translatable("Distance that covers 90% of new items"),
        better="lower",
    ),
    Statistic(
        "conformal.conformal_width", _CONFORMAL_INTERVALS, translatable("Mean width of these intervals"), better="lower"
    ),
    Statistic(
        "conformal.for_people", _CONFORMAL_INTERVALS, translatable("Items that people should rate"), better="lower"
    ),
)
