"""The statistics shown beside a judge's figures, and its ranking of generators."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_RANKING = StatisticsReport(
    "ranking",
    "analytics.stats.ranking.stability:ranking_report",
    group="beside",
    needs=("judge",),
    doc="methods/stability.md#ranking-stability-kendall_tau_b-spearman-inversions",
    prefix="ranking.",
    takes=("by", "pool", "bootstrap", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="one",
    once_per=("judge",),
)
_BESIDE_THE_PANEL = StatisticsReport(
    "beside the panel",
    "analytics.stats.judge.beside:beside_report",
    group="beside",
    needs=("judge",),
    doc="methods/calibration.md#on-request-confusion-class_share-score_share",
    prefix="beside.",
    takes=("by", "pool", "statistics", "bootstrap", "confidence", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="one",
    once_per=("judge", "rule"),
)
REPORTS = (
    _RANKING,
    _BESIDE_THE_PANEL,
)
STATISTICS = (
    Statistic("beside.confusion", _BESIDE_THE_PANEL, translatable("Confusion matrix, row shares")),
    Statistic(
        "beside.panel_given_judge",
        _BESIDE_THE_PANEL,
        translatable("Mean of the panel behind each score of the judge"),
        doc="methods/calibration.md#the-reliability-table-panel_given_judge",
    ),
    Statistic(
        "beside.verdict_confidence",
        _BESIDE_THE_PANEL,
        translatable("Verdict Confidence with the judge in one annotator’s place"),
        better="higher",
        doc="methods/calibration.md#the-judge-in-a-raters-place-verdict_confidence",
    ),
    Statistic(
        "beside.f1",
        _BESIDE_THE_PANEL,
        translatable("F1 of each label against every annotator"),
        better="higher",
        part="variant",
        doc="methods/calibration.md#labels-accuracy-accuracy_adjacent-f1-f1_weighted-f1_macro-precision-recall-cohen_kappa",
    ),
    Statistic(
        "beside.human_f1",
        _BESIDE_THE_PANEL,
        translatable("F1 of each label, annotators against each other"),
        better="higher",
        doc="methods/calibration.md#f1-of-the-annotators-human_f1",
    ),
    Statistic(
        "ranking.ranking_tau_b",
        _RANKING,
        translatable("τ-b between the judge’s and the panel’s ranking"),
        better="higher",
    ),
)
