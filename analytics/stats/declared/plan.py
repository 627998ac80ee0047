"""The number of labels still needed, estimated from the campaign until now."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_PLAN = StatisticsReport(
    "plan",
    "analytics.stats.planning.pilot:plan_report",
    group="planning",
    doc="methods/planning.md",
    prefix="plan.",
    takes=("by", "pool", "statistics", "goals", "bootstrap", "seed"),
    is_whole=True,
    in_file_order=True,
    verdicts="one",
    once_per=("first judge",),
)
REPORTS = (_PLAN,)
STATISTICS = (
    Statistic("plan.labels_needed", _PLAN, translatable("Labels for a mean of that width")),
    Statistic("plan.items_needed", _PLAN, translatable("Items for an α of that width"), items="two scores"),
    Statistic("plan.raters_needed", _PLAN, translatable("Raters per item for that reliability"), items="two scores"),
    Statistic(
        "plan.items_for_difference", _PLAN, translatable("Items of each generator for a difference of that size")
    ),
    Statistic(
        "plan.alt_test_power",
        _PLAN,
        translatable("Power of the alternative annotator test, with that ε"),
        better="higher",
    ),
    Statistic("plan.labels_affordable", _PLAN, translatable("Labels that the budget pays for")),
    Statistic(
        "plan.sequence_mean",
        _PLAN,
        translatable("Mean with an interval that stays valid at every look"),
        doc="methods/planning.md#may-labelling-stop",
        reads=("rated_place",),
    ),
)
