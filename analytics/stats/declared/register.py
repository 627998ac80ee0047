"""All reports and statistics that are declared."""

from __future__ import annotations

from analytics.stats.declared import (
    agreement,
    alt_test,
    annotators,
    audit,
    beside,
    calibration,
    certainty,
    comparison,
    conformal,
    consistency,
    correct,
    distribution,
    judges,
    languages,
    leaderboard,
    means,
    measures,
    perturbation,
    plan,
    preference,
    raters,
    recovery,
    reference,
    severity,
    stability,
    survival,
    unasked,
    within_panel,
)
from analytics.stats.declared.declaring import Need, Statistic, StatisticsReport, translatable

_LISTED = (
    agreement,
    within_panel,
    calibration,
    stability,
    survival,
    consistency,
    distribution,
    reference,
    annotators,
    certainty,
    raters,
    means,
    audit,
    perturbation,
    correct,
    leaderboard,
    preference,
    alt_test,
    beside,
    severity,
    conformal,
    recovery,
    judges,
    languages,
    comparison,
    plan,
    measures,
)
_COMPUTED = (
    agreement,
    within_panel,
    calibration,
    consistency,
    stability,
    survival,
    annotators,
    certainty,
    raters,
    distribution,
    reference,
    means,
    audit,
    perturbation,
    correct,
    leaderboard,
    alt_test,
    severity,
    conformal,
    recovery,
    beside,
    judges,
    measures,
    preference,
    comparison,
    plan,
    languages,
)
REPORTS: dict[str, StatisticsReport] = {report.name: report for file in _COMPUTED for report in file.REPORTS}
"""In the order in which they are computed, in which the rows of an answer stand."""
STATISTICS: dict[str, Statistic] = {statistic.name: statistic for file in _LISTED for statistic in file.STATISTICS}
"""In the order in which forms and refusals list them."""
BY_PLAIN_NAME: dict[str, Statistic] = {
    **{statistic.plain: statistic for statistic in reversed(STATISTICS.values())},
    **{name: statistic for name, statistic in STATISTICS.items() if name == statistic.plain},
    **{statistic.plain: statistic for statistic in unasked.STATISTICS},
}
"""By `Estimate.statistic` one of the statistics whose figures bear it: they are all written alike."""
COEFFICIENTS = tuple(name for name, statistic in STATISTICS.items() if statistic.is_coefficient)
"""The coefficients that a page on agreement may show."""
HEAT_MAPS = tuple(name for name, statistic in STATISTICS.items() if statistic.symbol)
"""The coefficients that the numbers page has a heat map of."""
OVER_REPEATS = tuple(statistic.plain for statistic in STATISTICS.values() if statistic.over_repeats)
"""Statistics of one judge, with its repeats as ratings."""
GROUPS = {
    "agreement": translatable("Agreement among raters"),
    "panel": translatable("Who and what makes raters agree"),
    "rater models": translatable("Models of raters"),
    "judge": translatable("A judge beside the panel"),
    "rankings": translatable("Rankings of generators across languages"),
    "languages": translatable("Languages as raters"),
    "scores": translatable("Scores, means and reference labels"),
    "beside": translatable("Beside the judge’s figures"),
    "soundness": translatable("Is the judge sound?"),
    "correction": translatable("A judge corrected by few labels"),
    "preferences": translatable("Preferences between two candidates"),
    "two judges": translatable("Two judges"),
    "several judges": translatable("Several judges on the same items"),
    "measures": translatable("Measures of the items"),
    "planning": translatable("Planning"),
}
"""The titles of the groups of statistics, in the order of the form on Explore."""


def statistics_of(*reports: str) -> tuple[str, ...]:
    """The names of the statistics that these reports compute."""
    return tuple(name for name, statistic in STATISTICS.items() if statistic.report.name in reports)


def statistics_that_need(need: Need) -> frozenset[str]:
    """The names of the statistics that no question can ask for without this."""
    return frozenset(name for name, statistic in STATISTICS.items() if need in statistic.report.needs)


def is_chance_corrected(plain: str) -> bool:
    """Whether 0 is agreement by chance, so that values below it have a meaning."""
    return plain in BY_PLAIN_NAME and BY_PLAIN_NAME[plain].is_chance_corrected


def is_usual(plain: str, variant: str | None, level: str) -> bool:
    """Whether a variant is the one that is shown unless others are asked for: those are neither computed nor stored."""
    usual = BY_PLAIN_NAME[plain].usual if plain in BY_PLAIN_NAME else {}
    return not usual or variant is None or variant == usual.get(level)
