"""A judge's mean corrected by few labels."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_CORRECTED_MEANS = StatisticsReport(
    "corrected means",
    "analytics.stats.judge.corrected_means:correction_report",
    group="correction",
    needs=("judge",),
    doc="methods/correction.md#ppi_mean-ppi_plus_mean",
    prefix="correct.",
    takes=("by", "pool", "confidence", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="one",
    once_per=("judge",),
)
REPORTS = (_CORRECTED_MEANS,)
STATISTICS = (
    Statistic("correct.ppi_mean", _CORRECTED_MEANS, translatable("Mean corrected by PPI")),
    Statistic("correct.ppi_plus_mean", _CORRECTED_MEANS, translatable("Mean corrected by PPI++")),
    Statistic("correct.mean_of_these_items", _CORRECTED_MEANS, translatable("Corrected mean of these very items")),
    Statistic(
        "correct.ppi_gain", _CORRECTED_MEANS, translatable("Gain of PPI++ over the labels alone"), better="higher"
    ),
    Statistic(
        "correct.calibration_gain",
        _CORRECTED_MEANS,
        translatable("Gain of each calibrator"),
        better="higher",
        doc="methods/correction.md#calibration_gain",
    ),
    Statistic(
        "correct.rogan_gladen",
        _CORRECTED_MEANS,
        translatable("Prevalence by Rogan-Gladen"),
        doc="methods/correction.md#rogan_gladen",
    ),
)
