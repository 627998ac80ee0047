"""Agreement among the raters of a panel."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable
from analytics.stats.declared.variants import QUADRATIC, UNEQUAL, WEIGHTED_AC

_ABOUT_PERCENT = "methods/agreement.md#percent-agreement"
_AGREEMENT = StatisticsReport(
    "agreement",
    "analytics.stats.agreement.rater_agreement:agreement_report",
    group="agreement",
    doc="methods/agreement.md#gwets-ac1-and-ac2-brennan-prediger-conger",
    takes=("by", "pool", "statistics", "keeps", "bootstrap", "confidence", "seed", "pairs"),
)
REPORTS = (_AGREEMENT,)
STATISTICS = (
    Statistic(
        "krippendorff_alpha",
        _AGREEMENT,
        translatable("Krippendorff’s α"),
        symbol="α",
        better="higher",
        is_coefficient=True,
        is_chance_corrected=True,
        doc="methods/agreement.md#krippendorffs-alpha",
    ),
    Statistic(
        "fleiss_kappa",
        _AGREEMENT,
        translatable("Fleiss’ κ"),
        symbol="κ",
        usual=UNEQUAL,
        better="higher",
        is_coefficient=True,
        is_chance_corrected=True,
        doc="methods/agreement.md#fleiss-kappa",
    ),
    Statistic(
        "gwet_ac",
        _AGREEMENT,
        translatable("Gwet’s AC"),
        symbol="AC",
        usual=WEIGHTED_AC,
        better="higher",
        is_coefficient=True,
        is_chance_corrected=True,
    ),
    Statistic(
        "brennan_prediger",
        _AGREEMENT,
        translatable("Brennan-Prediger κ"),
        usual=WEIGHTED_AC,
        better="higher",
        is_coefficient=True,
        is_chance_corrected=True,
    ),
    Statistic(
        "conger_kappa",
        _AGREEMENT,
        translatable("Conger’s κ"),
        usual=QUADRATIC,
        better="higher",
        is_coefficient=True,
        is_chance_corrected=True,
    ),
    Statistic(
        "percent_agreement",
        _AGREEMENT,
        translatable("Percent agreement"),
        symbol="%",
        written="share",
        is_coefficient=True,
        better="higher",
        doc=_ABOUT_PERCENT,
    ),
    Statistic(
        "percent_agreement_exact",
        _AGREEMENT,
        translatable("Percent agreement, all raters"),
        better="higher",
        doc=_ABOUT_PERCENT,
    ),
    Statistic(
        "percent_agreement_adjacent",
        _AGREEMENT,
        translatable("Percent agreement within one step"),
        better="higher",
        doc=_ABOUT_PERCENT,
    ),
    Statistic(
        "icc",
        _AGREEMENT,
        translatable("Intraclass correlation"),
        better="higher",
        doc="methods/agreement.md#intraclass-correlation",
    ),
    Statistic(
        "verdict_confidence",
        _AGREEMENT,
        translatable("Verdict Confidence"),
        better="higher",
        doc="methods/agreement.md#verdict-confidence",
    ),
    Statistic(
        "applicability_agreement",
        _AGREEMENT,
        translatable("Percent agreement on N/A"),
        short_title=translatable("Percent agreement"),
        written="share",
        better="higher",
        doc=_ABOUT_PERCENT,
    ),
    Statistic(
        "applicability_ac",
        _AGREEMENT,
        translatable("Gwet’s AC1 on N/A"),
        short_title=translatable("Gwet’s AC1"),
        better="higher",
    ),
    Statistic(
        "panel_reliability",
        _AGREEMENT,
        translatable("Reliability of the mean of several raters"),
        better="higher",
        doc="methods/agreement.md#raters-per-item",
    ),
)
