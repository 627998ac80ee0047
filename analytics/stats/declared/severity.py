"""Is a judge stricter in one language?"""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_SEVERITY_OF_A_JUDGE = StatisticsReport(
    "severity of a judge",
    "analytics.stats.judge.soundness:severity_against_pivot",
    group="soundness",
    needs=("judge",),
    doc="methods/stability.md#is-the-judge-stricter-in-one-language-severity",
    prefix="severity.",
    takes=("by", "pool"),
    is_whole=True,
    in_file_order=True,
    verdicts="one",
    once_per=("judge",),
)
REPORTS = (_SEVERITY_OF_A_JUDGE,)
STATISTICS = (
    Statistic(
        "severity.severity_shift",
        _SEVERITY_OF_A_JUDGE,
        translatable("Leniency by language"),
        written="signed",
        better="zero",
    ),
    Statistic("severity.severity_uniform", _SEVERITY_OF_A_JUDGE, translatable("Test of one difference everywhere")),
    Statistic(
        "severity.severity_nonuniform",
        _SEVERITY_OF_A_JUDGE,
        translatable("Test of a difference that changes along the scale"),
    ),
)
