"""Several judges on the items that all of them scored."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_ABOUT_WHICH = "methods/comparison.md#which-items"
_ABOUT_AGREEMENT = "methods/comparison.md#agreement-with-the-panel"
_COMPARISON = StatisticsReport(
    "comparison",
    "analytics.stats.judge.comparison:comparison_by_levels",
    group="several judges",
    needs=("judge",),
    doc="methods/comparison.md#differences-effects-interactions",
    prefix="comparison.",
    takes=("by", "statistics", "against", "bootstrap", "confidence", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
    once_per=("rules", "judges"),
    reads=("levels",),
)
REPORTS = (_COMPARISON,)
STATISTICS = (
    Statistic(
        "comparison.accuracy",
        _COMPARISON,
        translatable("Equal scores on the common items"),
        better="higher",
        doc=_ABOUT_AGREEMENT,
    ),
    Statistic(
        "comparison.accuracy_difference",
        _COMPARISON,
        translatable("Equal scores, difference of two judges"),
        written="signed",
    ),
    Statistic(
        "comparison.accuracy_effect", _COMPARISON, translatable("Equal scores, effect of each level"), written="signed"
    ),
    Statistic(
        "comparison.accuracy_interaction",
        _COMPARISON,
        translatable("Equal scores, largest interactions"),
        written="signed",
    ),
    Statistic(
        "comparison.mae",
        _COMPARISON,
        translatable("Mean absolute error on the common items"),
        better="lower",
        doc=_ABOUT_AGREEMENT,
    ),
    Statistic(
        "comparison.mae_difference",
        _COMPARISON,
        translatable("Mean absolute error, difference of two judges"),
        written="signed",
    ),
    Statistic(
        "comparison.mae_effect",
        _COMPARISON,
        translatable("Mean absolute error, effect of each level"),
        written="signed",
    ),
    Statistic(
        "comparison.mae_interaction",
        _COMPARISON,
        translatable("Mean absolute error, largest interactions"),
        written="signed",
    ),
    Statistic(
        "comparison.kappa",
        _COMPARISON,
        translatable("Cohen’s κ on the common items"),
        better="higher",
        doc=_ABOUT_AGREEMENT,
    ),
    Statistic(
        "comparison.kappa_difference",
        _COMPARISON,
        translatable("Cohen’s κ, difference of two judges"),
        written="signed",
    ),
    Statistic(
        "comparison.kappa_effect", _COMPARISON, translatable("Cohen’s κ, effect of each level"), written="signed"
    ),
    Statistic(
        "comparison.kappa_interaction", _COMPARISON, translatable("Cohen’s κ, largest interactions"), written="signed"
    ),
    Statistic(
        "comparison.common_items",
        _COMPARISON,
        translatable("Items that all judges scored"),
        better="higher",
        doc=_ABOUT_WHICH,
    ),
    Statistic(
        "comparison.left_out",
        _COMPARISON,
        translatable("Items left out of a comparison"),
        better="lower",
        doc=_ABOUT_WHICH,
    ),
)
