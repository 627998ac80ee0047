"""Reports of a question on one judge beside the panel (METHODS 3 to 5), for `families`.

pandas and scipy are loaded when a report is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from analytics.audit_columns import audit_rows, perturbation_rows

if TYPE_CHECKING:
    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import RatingsTable


def _correct(table: RatingsTable, *, judge: str, **options: Any) -> list[CellEstimate]:
    from analytics.stats.judge import corrected_means

    return corrected_means.correction_report(_beside_panel(table, judge), judge=judge, **options)


def _leaderboard(table: RatingsTable, *, judge: str, **options: Any) -> list[CellEstimate]:
    from analytics.stats.judge import leaderboard

    return leaderboard.leaderboard_report(_beside_panel(table, judge), judge=judge, **options)


def _alt_test(table: RatingsTable, *, judge: str, wanted: Sequence[str], **options: Any) -> list[CellEstimate]:
    from analytics.stats.judge import alt_test
    from analytics.stats.planning import pilot

    part = _beside_panel(table, judge)
    rows = alt_test.alt_test_report(part, judge=judge, **options)
    if "alt_test_power" in wanted:
        about = {name: options[name] for name in ("by", "pool", "seed")}
        rows += pilot.alt_test_power_report(part, judge=judge, **about)
    return rows


def plan(
    table: RatingsTable, *, judge: str | None, names: Sequence[str], goals: Mapping[str, Any], **how: Any
) -> list[CellEstimate]:
    """What the campaign so far, as a pilot, says of the labels still needed; without a budget, or with one that is too
    small, its row says so.
    """
    from analytics.stats.core.estimates import CellEstimate, Estimate
    from analytics.stats.planning import pilot

    part, wanted = _beside_panel(table, judge or ""), pilot.Goals(**goals)

    def rows(*statistics: str) -> list[CellEstimate]:
        return pilot.pilot_report(part, wanted, judge=judge, statistics=statistics, **how) if statistics else []

    found = rows(*(name for name in names if name != "labels_affordable"))
    if "labels_affordable" in names:
        reason = pilot.NO_SPREAD if wanted.budget else "no budget is given: goal=budget=AMOUNT"
        try:
            affordable = rows("labels_affordable")
        except ValueError as error:
            affordable, reason = [], str(error)
        missing = CellEstimate(estimate=Estimate(statistic="labels_affordable", value=None, reason=reason))
        found += affordable or [missing]
    return found


def _ranking(table: RatingsTable, *, judge: str, by: Sequence[str], pool: bool, **how: Any) -> list[CellEstimate]:
    """The ranking of generators by a judge beside that by the panel, on the same items."""
    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import cells
    from analytics.stats.judge.panel import cell_key, meet
    from analytics.stats.ranking.stability import ranking_agreement

    across = [name for name in by if name != "generator"]
    return [
        CellEstimate(estimate=ranking_agreement(meet(cell, judge), **how), cell=cell_key(cell), judge=judge)
        for cell in cells(_beside_panel(table, judge), by=across, pool=pool)
    ]


def beside_panel(
    table: RatingsTable,
    *,
    judge: str,
    criteria: Sequence[str],
    rule: str | None,
    ties: str,
    statistics: Sequence[str],
    **how: Any,
) -> list[CellEstimate]:
    """What stands beside a judge's figures: its confusion with the reference, the panel's mean behind each of its
    scores, Verdict Confidence with the judge in one annotator's place, F1 of each label against every annotator, and
    that of the annotators against each other.
    """
    from analytics.stats.judge import calibration, differences

    part = _beside_panel(table.only(criterion=criteria), judge)
    rows: list[CellEstimate] = []
    if "confusion" in statistics:
        rule_of = {"reference": rule, "ties": cast("Any", ties)}
        rows += calibration.calibration_report(part, judge=judge, statistics=["confusion"], **rule_of, **how)
    if of_items := [name for name in ("panel_given_judge", "verdict_confidence") if name in statistics]:
        rows += calibration.beside_humans(part, judge=judge, statistics=of_items, **how)
    if "f1" in statistics:
        rows += calibration.calibration_report(part, judge=judge, statistics=["f1"], reference="each", **how)
    if "human_f1" in statistics:
        rows += [replace(row, judge=judge) for row in differences.human_f1_report(part, by=how["by"], pool=how["pool"])]
    return rows


def _severity(table: RatingsTable, *, judge: str, by: Sequence[str], pool: bool) -> list[CellEstimate]:
    from analytics.stats.judge import consistency, soundness

    part = _beside_panel(table, judge)
    pivot = consistency.PIVOT if consistency.PIVOT in set(part.frame["language"].dropna()) else None
    return soundness.severity_report(part, judge=judge, by=by, pool=pool, pivot=pivot)


def _conformal(table: RatingsTable, *, judge: str, **options: Any) -> list[CellEstimate]:
    from analytics.stats.judge import soundness

    return soundness.conformal_report(_beside_panel(table, judge), judge=judge, **options)


def _recovery(table: RatingsTable, *, judge: str, by: Sequence[str]) -> list[CellEstimate]:
    """Label recovery of every parameter: a nominal criterion called as an attribute of the items, of which its labels
    are the values.
    """
    from analytics.stats.judge import soundness

    frame = table.frame
    own = frame[((frame["rater"] == judge) & (frame["repeat"] == frame["first_repeat"])).to_numpy()]
    columns = {key: name for key in table.scales for name in (key, f"attribute_{key}") if name in frame}
    if not columns or own.empty:
        return []
    first = own.groupby("item_key", sort=False).first()
    read = own.pivot_table(index="item_key", columns="criterion", values="score_label", aggfunc="first", dropna=False)
    part = first.assign(
        **{f"parameter_{key}": first[name] for key, name in columns.items()},
        **{f"judge_parameter_{key}": read.get(key) for key in columns},
    )
    names = [f"parameter_{key}" for key in columns]
    rows = soundness.recovery_report(part, names, by=[name for name in by if name != "criterion"])
    return [replace(row, judge=judge, estimate=_named_plainly(row)) for row in rows]


def _named_plainly(row: CellEstimate) -> Any:
    return row.estimate.with_(variant=(row.estimate.variant or "").removeprefix("parameter_"))


def _beside_panel(table: RatingsTable, judge: str) -> RatingsTable:
    """The table with the annotators and this judge alone."""
    frame = table.frame
    return replace(table, frame=frame[((frame["rater_kind"] == "annotator") | (frame["rater"] == judge)).to_numpy()])


REPORTS: dict[str, Callable[..., list[CellEstimate]]] = {
    "audit": audit_rows,
    "perturbation": perturbation_rows,
    "correct": _correct,
    "leaderboard": _leaderboard,
    "alt_test": _alt_test,
    "severity": _severity,
    "conformal": _conformal,
    "recovery": _recovery,
    "ranking": _ranking,
}
TAKES: dict[str, tuple[str, ...]] = {
    "audit": ("by", "pool"),
    "perturbation": ("by", "pool", "bootstrap", "confidence", "seed"),
    "correct": ("by", "pool", "confidence", "seed"),
    "leaderboard": ("by", "pool", "confidence", "seed"),
    "alt_test": ("by", "pool", "bootstrap", "confidence", "seed"),
    "severity": ("by", "pool"),
    "conformal": ("by", "pool"),
    "recovery": ("by",),
    "ranking": ("by", "pool", "bootstrap", "seed"),
}
