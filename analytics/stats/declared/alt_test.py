"""May a judge stand in for an annotator?"""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_ALTERNATIVE_ANNOTATOR_TEST = StatisticsReport(
    "alternative annotator test",
    "analytics.stats.planning.pilot:alt_test_with_power",
    group="soundness",
    needs=("judge",),
    doc="methods/calibration.md#the-alternative-annotator-test-alt_test_omega-alt_test_rho",
    prefix="alt_test.",
    takes=("by", "pool", "statistics", "bootstrap", "confidence", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="one",
    once_per=("judge",),
)
REPORTS = (_ALTERNATIVE_ANNOTATOR_TEST,)
STATISTICS = (
    Statistic(
        "alt_test.alt_test_omega",
        _ALTERNATIVE_ANNOTATOR_TEST,
        translatable("Annotators that the judge beats (ω)"),
        better="higher",
    ),
    Statistic(
        "alt_test.alt_test_rho",
        _ALTERNATIVE_ANNOTATOR_TEST,
        translatable("Mean advantage over annotators (ρ)"),
        better="higher",
    ),
    Statistic(
        "alt_test.alt_test_power",
        _ALTERNATIVE_ANNOTATOR_TEST,
        translatable("Power of the alternative annotator test"),
        better="higher",
    ),
)
