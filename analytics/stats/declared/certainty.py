"""How sure annotators are, where the rubric asks for it."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_CERTAINTY = StatisticsReport(
    "certainty",
    "analytics.stats.judge.certainty:certainty_report",
    group="panel",
    doc="methods/adjudication.md#how-sure-annotators-are",
    prefix="certainty.",
    takes=("by", "pool", "statistics", "bootstrap", "confidence", "seed"),
    reads=("certainty",),
)
REPORTS = (_CERTAINTY,)
STATISTICS = (
    Statistic("certainty.mean_certainty", _CERTAINTY, translatable("Mean certainty of the annotators, 0 to 100")),
    Statistic(
        "certainty.certainty_rho",
        _CERTAINTY,
        translatable("Spearman’s ρ of each annotator’s certainty and agreement with the others"),
        better="higher",
    ),
)
