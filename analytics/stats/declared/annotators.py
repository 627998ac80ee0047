"""Each annotator beside the others."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable
from analytics.stats.declared.variants import WEIGHTED_KAPPA

_ANNOTATORS = StatisticsReport(
    "annotators",
    "analytics.stats.judge.annotators:annotator_report",
    group="panel",
    doc="methods/adjudication.md#each-annotator-beside-the-others",
    prefix="annotators.",
    takes=("by", "pool", "statistics", "bootstrap", "confidence", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
    also_by=("criterion",),
)
REPORTS = (_ANNOTATORS,)
STATISTICS = (
    Statistic("annotators.severity", _ANNOTATORS, translatable("Severity of each annotator"), better="zero"),
    Statistic(
        "annotators.cohen_kappa",
        _ANNOTATORS,
        translatable("Cohen’s κ of each annotator with the others"),
        usual=WEIGHTED_KAPPA,
        better="higher",
    ),
    Statistic(
        "annotators.accuracy",
        _ANNOTATORS,
        translatable("Equal scores of each annotator and the others"),
        better="higher",
    ),
    Statistic("annotators.same_score", _ANNOTATORS, translatable("Share of each annotator’s most frequent score")),
    Statistic(
        "annotators.same_score_of_others", _ANNOTATORS, translatable("The same share of the others on these items")
    ),
)
