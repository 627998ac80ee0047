"""Reports of a question on one judge beside the panel (METHODS 3 to 5), for `families`, with its audits.

Audits read columns of the ratings table beside the judge's scores: no row is added to it. `length_of_text` is the
characters of the item; `judge_family` the family of the judge's model; `changed_scores` the judge's scores of the same
item before and after each change, in its audit runs (docs/decisions/0028).

pandas and scipy are loaded when a report is computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from analytics import ratings
from analytics.ratings import Row
from annotation.models import Campaign, Item
from annotation.writers.tables import Column, Table
from judging.models import JudgeRun

if TYPE_CHECKING:
    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import RatingsTable


# --- audits: columns of the ratings table that are read beside a judge's scores --------------------------------------
LENGTH, FAMILY, CHANGED = "length_of_text", "judge_family", "changed_scores"
READ = {
    "audit.": (LENGTH, FAMILY),
    "perturbation.": (CHANGED,),
    "leaderboard.": ("task_type", "macro_group"),
    "preference.": ("model_a", "model_b"),
}
"""By family of statistics, the columns that the family reads: columns of audits, or attributes of the items."""


def with_audited(found: Table, campaign: Campaign, runs: Sequence[JudgeRun], columns: Sequence[str]) -> Table:
    """The table with these audit columns; verdicts of audit runs have no rows of their own."""
    if not {LENGTH, FAMILY, CHANGED}.intersection(columns):
        return found
    names = ratings.rater_names(campaign, runs)
    judges = {names[run.pk]: run for run in runs}
    by_column: dict[str, Callable[[Row], Any]] = {}
    if LENGTH in columns:
        lengths = item_lengths(campaign)
        by_column[LENGTH] = lambda row: float(lengths.get(row.item, 0))
    if FAMILY in columns:
        families = {name: model_family(run.judge.model) for name, run in judges.items()}
        by_column[FAMILY] = lambda row: families.get(row.rater, "") if row.rater_kind == "judge" else ""
    if CHANGED in columns:
        changed = ratings.changed_scores(campaign, {run.judge_id: name for name, run in judges.items()})
        by_column[CHANGED] = lambda row: changed.get((row.rater, row.item, row.criterion), "")
    chosen, width = [name for name in columns if name in by_column], len(ratings.COLUMNS)

    def rows() -> Iterator[Sequence[Any]]:
        return ((*row, *(by_column[name](Row(*row[:width])) for name in chosen)) for row in found.rows)

    return replace(
        found,
        columns=(*found.columns, *(Column(name, "number" if name == LENGTH else "text") for name in chosen)),
        rows=rows(),
    )


def model_family(name: str) -> str:
    """The family of a model by its name: the first letters of the name after the publisher, for example gpt in
    openai/gpt-4o.
    """
    found = re.match(r"[^\W\d_]+", name.rpartition("/")[2].casefold())
    return found[0] if found else name.casefold()


def item_lengths(campaign: Campaign) -> dict[str, int]:
    """By item, the number of characters of its turns and fields."""
    texts = Item.objects.of(campaign.dataset).values_list("external_id", "turns", "fields")
    return {
        item: sum(len(turn.get("text") or "") for turn in turns)
        + sum(len(str(text)) for text in (fields or {}).values())
        for item, turns, fields in texts.iterator()
    }


def judge_families(table: RatingsTable) -> dict[str, str]:
    """By judge, the family of its model."""
    if FAMILY not in table.frame:
        return {}
    own = table.frame[table.frame["rater_kind"] == "judge"].drop_duplicates("rater")
    return dict(zip(own["rater"], own[FAMILY], strict=True))


def audit_rows(table: RatingsTable, *, judge: str, **options: Any) -> list[CellEstimate]:
    """The audits of one judge beside the panel; the audit of its own family compares it with all other judges."""
    from analytics.stats.judge import soundness

    length = LENGTH if LENGTH in table.frame else None
    is_beside = (table.frame["rater_kind"] == "annotator") | (table.frame["rater"] == judge)
    beside = replace(table, frame=table.frame[is_beside.to_numpy()])
    own = soundness.audit_report(beside, judge=judge, length=length, **options)
    families = judge_families(table)
    if judge not in families:  # a jury has no family
        return own
    of_all = soundness.audit_report(table, judge=judge, families=families, **options)
    return [*own, *(row for row in of_all if row.estimate.statistic == "self_preference")]


def perturbation_rows(table: RatingsTable, *, judge: str, **options: Any) -> list[CellEstimate]:
    """The effects of changed texts on the scores of one judge."""
    from analytics.stats.judge import audits

    return audits.perturbation_report(table, judge=judge, **options)


def preferences(table: RatingsTable, *, judge: str | None, **options: Any) -> list[CellEstimate]:
    """Win, tie, loss and strength of generators by the annotators, or by one judge."""
    from analytics.stats.ranking.preferences import preference_report

    return preference_report(table, judge=judge, **options)


# --- reports of a question -------------------------------------------------------------------------------------------
def _correct(table: RatingsTable, *, judge: str, **options: Any) -> list[CellEstimate]:
    from analytics.stats.judge import corrected_means

    return corrected_means.correction_report(_beside_panel(table, judge), judge=judge, **options)


def _leaderboard(table: RatingsTable, *, judge: str, **options: Any) -> list[CellEstimate]:
    from analytics.stats.judge import leaderboard

    return leaderboard.leaderboard_report(_beside_panel(table, judge), judge=judge, **options)


def _alt_test(table: RatingsTable, *, judge: str, statistics: Sequence[str], **options: Any) -> list[CellEstimate]:
    from analytics.stats.judge import alt_test
    from analytics.stats.planning import pilot

    part = _beside_panel(table, judge)
    rows = alt_test.alt_test_report(part, judge=judge, **options)
    if "alt_test_power" in statistics:
        about = {name: options[name] for name in ("by", "pool", "seed")}
        rows += pilot.alt_test_power_report(part, judge=judge, **about)
    return rows


def plan(
    table: RatingsTable, *, judge: str | None, names: Sequence[str], goals: Mapping[str, Any], **how: Any
) -> list[CellEstimate]:
    """The number of labels still needed, with the campaign until now as a pilot.

    If there is no budget, or if the budget is too small, a row says this.
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
    from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel, cell_key
    from analytics.stats.ranking.stability import ranking_agreement

    across = [name for name in by if name != "generator"]
    return [
        CellEstimate(
            estimate=ranking_agreement(JudgeAgainstPanel.of(cell, judge), **how), cell=cell_key(cell), judge=judge
        )
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
    """The statistics shown beside a judge's figures: its confusion with the reference, the panel's mean behind each of
    its scores, Verdict Confidence with the judge in one annotator's place, F1 of each label against every annotator,
    and F1 of the annotators against each other.
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
    """Label recovery of every parameter.

    A parameter is a nominal criterion with the same name as an item attribute; the attribute's values are its labels.
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
    """The table with only the annotators and this judge."""
    frame = table.frame
    return replace(table, frame=frame[((frame["rater_kind"] == "annotator") | (frame["rater"] == judge)).to_numpy()])
