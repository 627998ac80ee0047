"""Generation parameters that a judge recovers."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_LABEL_RECOVERY = StatisticsReport(
    "label recovery",
    "analytics.stats.judge.soundness:recovery_by_criterion",
    group="soundness",
    needs=("judge",),
    doc="methods/stability.md#label-recovery-recovery",
    prefix="recovery.",
    takes=("by",),
    is_whole=True,
    in_file_order=True,
    verdicts="one",
    once_per=("judge",),
    reads=("score_label", "CRITERION", "attribute_CRITERION"),
)
REPORTS = (_LABEL_RECOVERY,)
STATISTICS = (
    Statistic(
        "recovery.label_recovery",
        _LABEL_RECOVERY,
        translatable("Generation parameters that the judge recovers"),
        better="higher",
    ),
)
