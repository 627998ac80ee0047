"""Places of generators with and without faulty dialogues, and by simulator."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_SURVIVAL = StatisticsReport(
    "survival",
    "analytics.stats.ranking.survival:survival_report",
    group="rankings",
    doc="methods/stability.md#which-places-survive-survival",
    prefix="survival.",
    takes=("by", "pool", "bootstrap", "confidence", "seed"),
    once_per=("panel and judges",),
    verdicts="one",
    across=("language", "generator"),
    reads=("simulator", "dialogue_fault"),
)
REPORTS = (_SURVIVAL,)
STATISTICS = (
    Statistic(
        "survival.place",
        _SURVIVAL,
        translatable("Place of each generator, without faults and by simulator"),
        part="variant",
    ),
    Statistic("survival.survival", _SURVIVAL, translatable("Whether the place of each generator survives")),
    Statistic(
        "survival.survivals", _SURVIVAL, translatable("Places that survive, change or stay open"), part="variant"
    ),
    Statistic("survival.faulty_dialogues", _SURVIVAL, translatable("Rated dialogues with a known fault")),
)
