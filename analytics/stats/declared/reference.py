"""Reference labels of a panel."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_REFERENCE_LABELS = StatisticsReport(
    "reference labels",
    "analytics.stats.judge.reference:reference_labels_report",
    group="scores",
    doc="methods/agreement.md#reference-labels-reference",
    prefix="reference.",
    takes=("by", "pool", "statistics", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
    once_per=("rule",),
)
REPORTS = (_REFERENCE_LABELS,)
STATISTICS = (
    Statistic(
        "reference.reference_share", _REFERENCE_LABELS, translatable("Items with a reference label"), better="higher"
    ),
    Statistic(
        "reference.reference_excluded",
        _REFERENCE_LABELS,
        translatable("Items without a reference label, by reason"),
        better="lower",
    ),
    Statistic(
        "reference.label_share", _REFERENCE_LABELS, translatable("Share of each reference label"), written="share"
    ),
)
