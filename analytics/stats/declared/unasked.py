"""Statistics that pages show and no question asks for by name."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport

_CLASSES = StatisticsReport(
    "classes of the numbers page",
    "analytics.stats.judge.agreement_classes:agreement_class_report",
    group="",
    doc="methods/agreement.md#what-the-numbers-page-shows-without-a-coefficient",
    takes=("by",),
    verdicts="all",
)
_PREVALENCE = StatisticsReport(
    "prevalence of a flag",
    "analytics.stats.judge.agreement_classes:score_share_report",
    group="",
    doc="methods/agreement.md#what-the-numbers-page-shows-without-a-coefficient",
    takes=("by",),
    verdicts="all",
)
_ALIGNMENT = StatisticsReport(
    "gain of an alignment", "analytics.stats.judge.alignment:paired_gain", group="", doc="alignment.md", takes=()
)
REPORTS = (_CLASSES, _PREVALENCE, _ALIGNMENT)
STATISTICS = (
    Statistic("class_score_share", _CLASSES, "", written="share", part="variant", items="this score"),
    Statistic("prevalence", _PREVALENCE, "", written="share", part="variant", items="this score"),
    Statistic("alignment_gain", _ALIGNMENT, "", written="signed", better="higher"),
    Statistic("alignment_overfit", _ALIGNMENT, "", written="signed", better="zero"),
)
