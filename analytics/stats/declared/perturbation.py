"""The effects of changed texts on a judge's scores."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_PERTURBATION = StatisticsReport(
    "perturbation",
    "analytics.stats.judge.audits:perturbation_report",
    group="soundness",
    needs=("judge",),
    doc="methods/audits.md#in-a-project-the-page-audits",
    prefix="perturbation.",
    takes=("by", "pool", "bootstrap", "confidence", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="one",
    once_per=("judge",),
    reads=("changed_scores",),
)
REPORTS = (_PERTURBATION,)
STATISTICS = (
    Statistic("perturbation.score_drop", _PERTURBATION, translatable("Fall of the mean score with changed texts")),
    Statistic("perturbation.fall", _PERTURBATION, translatable("Scores that fall with changed texts")),
    Statistic("perturbation.stay", _PERTURBATION, translatable("Scores that stay with changed texts"), written="share"),
    Statistic("perturbation.rise", _PERTURBATION, translatable("Scores that rise with changed texts")),
)
