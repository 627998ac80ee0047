"""The scores as they are."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_DISTRIBUTION = StatisticsReport(
    "distribution",
    "analytics.stats.judge.agreement_classes:score_share_report",
    group="scores",
    doc="methods/agreement.md#what-the-numbers-page-shows-without-a-coefficient",
    prefix="distribution.",
    takes=("by",),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
)
REPORTS = (_DISTRIBUTION,)
STATISTICS = (
    Statistic(
        "distribution.score_share",
        _DISTRIBUTION,
        translatable("Share of each score"),
        items="this score",
        written="share",
        part="variant",
    ),
)
