"""Declarations: whether a judge scores the same scenario alike in every language. Each language counts as a rater of
the scenario."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable
from analytics.stats.declared.variants import UNEQUAL, WEIGHTED_KAPPA

_CONSISTENCY = StatisticsReport(
    "consistency",
    "analytics.stats.judge.consistency:consistency_report",
    group="languages",
    needs=("judge",),
    doc="methods/stability.md#parallel-consistency-fleiss_kappa-cohen_kappa-language_shift",
    prefix="consistency.",
    takes=("by", "pool", "statistics", "bootstrap", "confidence", "seed"),
    once_per=("judge",),
    verdicts="one",
    across=("language",),
    is_whole=True,
)
REPORTS = (_CONSISTENCY,)
STATISTICS = (
    Statistic(
        "consistency.fleiss_kappa",
        _CONSISTENCY,
        translatable("Fleiss’ κ with languages as raters"),
        usual=UNEQUAL,
        better="higher",
    ),
    Statistic(
        "consistency.cohen_kappa",
        _CONSISTENCY,
        translatable("Cohen’s κ of each language with English"),
        usual=WEIGHTED_KAPPA,
        better="higher",
    ),
    Statistic("consistency.mean", _CONSISTENCY, translatable("Mean score of the judge")),
    Statistic("consistency.language_shift", _CONSISTENCY, translatable("Score less that in English"), better="zero"),
)
