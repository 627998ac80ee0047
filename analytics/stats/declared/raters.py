"""Models of raters: Rasch, variance by source, Dawid and Skene."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_ABOUT_VARIANCE = "methods/raters.md#variance-by-source-generalizability"
_RATER_MODELS = StatisticsReport(
    "rater models",
    "analytics.stats.judge.rater_models:rater_models_report",
    group="rater models",
    doc="methods/raters.md#severity-on-one-scale-many-facet-rasch",
    prefix="raters.",
    takes=("by", "pool", "statistics", "confidence"),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
)
REPORTS = (_RATER_MODELS,)
STATISTICS = (
    Statistic(
        "raters.rasch_severity",
        _RATER_MODELS,
        translatable("Severity of each rater on one scale (Rasch)"),
        written="signed",
        better="zero",
    ),
    Statistic("raters.rasch_infit", _RATER_MODELS, translatable("Infit of each rater (Rasch)")),
    Statistic(
        "raters.rasch_drift",
        _RATER_MODELS,
        translatable("Drift of each rater (Rasch)"),
        written="signed",
        better="zero",
        reads=("submitted_at",),
        doc="methods/raters.md#drift-of-raters-over-time",
    ),
    Statistic(
        "raters.variance_share",
        _RATER_MODELS,
        translatable("Share of the variance by source"),
        written="share",
        doc=_ABOUT_VARIANCE,
    ),
    Statistic(
        "raters.dependability",
        _RATER_MODELS,
        translatable("Dependability of the mean of several raters (Φ)"),
        better="higher",
        doc=_ABOUT_VARIANCE,
    ),
    Statistic(
        "raters.annotator_accuracy",
        _RATER_MODELS,
        translatable("Accuracy of each annotator (Dawid-Skene)"),
        written="share",
        better="higher",
        doc="methods/raters.md#accuracy-of-annotators-dawid-skene",
    ),
)
