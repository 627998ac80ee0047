"""Declarations: how consistent several judges are across languages. Each language counts as a rater."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_LANGUAGES = StatisticsReport(
    "languages",
    "analytics.stats.judge.consistency:languages_report",
    group="languages",
    needs=("judge",),
    doc="methods/stability.md#parallel-consistency-fleiss_kappa-cohen_kappa-language_shift",
    prefix="languages.",
    takes=("statistics",),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
    once_per=("judges",),
)
REPORTS = (_LANGUAGES,)
STATISTICS = (
    Statistic(
        "languages.ensemble_kappa",
        _LANGUAGES,
        translatable("Consistency of all judges together: Ens, Min, Ens − Min"),
        better="higher",
    ),
    Statistic("languages.kappa_gap", _LANGUAGES, translatable("Consistency on one criterion less that on another")),
    Statistic("languages.kappa_against_level", _LANGUAGES, translatable("ρ over judges between consistency and mean")),
)
