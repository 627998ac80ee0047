"""The answer to a question: its ratings table, what is left out of it, and an estimate for every cell.

pandas and scipy are loaded by `measured_cells` alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from django.db.models import Max, Q

from analytics import ratings
from analytics.questions import (
    AGREEMENT,
    CALIBRATION,
    CONSISTENCY,
    LEFT_OUT,
    NEEDS_ORDER,
    PAIRS,
    STABILITY,
    TIMES,
    WITHIN_PANEL,
    NumbersQuestion,
    chosen_runs,
)
from annotation.models import Annotation, Campaign, Rating
from annotation.writers.tables import Column, Table
from judging.models import JudgeRun

if TYPE_CHECKING:
    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.scales import Scale
    from analytics.stats.core.tables import RatingsTable

Progress = Callable[[int, int], None]
Report = Callable[["RatingsTable"], "list[CellEstimate]"]
VARIANTS = {
    "fleiss_kappa": {"nominal": "unequal", "ordinal": "unequal", "interval": "unequal"},
    "gwet_ac": {"nominal": "identity", "ordinal": "ordinal", "interval": "quadratic"},
    "brennan_prediger": {"nominal": "identity", "ordinal": "ordinal", "interval": "quadratic"},
    "conger_kappa": {"nominal": "identity", "ordinal": "quadratic", "interval": "quadratic"},
    "cohen_kappa": {"nominal": "unweighted", "ordinal": "quadratic", "interval": "quadratic"},
}
"""The one variant of a statistic that is shown unless others are asked for, by the criterion's level of measurement."""


# --- the rows that a question is about -------------------------------------------------------------------------------
def question_table(campaign: Campaign, question: NumbersQuestion, runs: Sequence[JudgeRun] | None = None) -> Table:
    """The ratings table of a question: nothing is left in it that the figures do not rest on."""
    found = ratings.table(
        campaign=campaign,
        runs=chosen_runs(campaign, question) if runs is None else runs,
        raters=question.raters,
        blind_only=question.blind_only,
        more=_of_panels(question) & _slow_enough(question),
    )
    if set(TIMES) & set(question.dimensions):
        found = _with_times(found, campaign)
    wanted: dict[int, set[str]] = {}
    for column, value in question.where:
        wanted.setdefault(found.names.index(column), set()).add(value)
    if not wanted:
        return found
    return replace(
        found, rows=(row for row in found.rows if all(_cell(row[place]) in them for place, them in wanted.items()))
    )


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _with_times(found: Table, campaign: Campaign) -> Table:
    """The table with the columns `week` and `hundred` of each item, by its last annotation; nothing where it has none.

    Ratings of one item so stay together. Items with the same time are in the order of the dataset.
    """
    here = Annotation.objects.filter(campaign=campaign, superseded_at=None)
    last = here.values_list("item__external_id").annotate(last=Max("submitted_at")).order_by("last", "item__ordinal")
    times = {
        item: ("{:04}-W{:02}".format(*moment.astimezone(UTC).isocalendar()), str(place // 100 * 100 + 1))
        for place, (item, moment) in enumerate(last)
    }
    item_at = found.names.index("item")
    rows = ((*row, *times.get(row[item_at], (None, None))) for row in found.rows)
    return replace(found, columns=(*found.columns, *(Column(name, "text") for name in TIMES)), rows=rows)


def _of_panels(question: NumbersQuestion) -> Q:
    return Q(annotation__assignment__duty__panel__name__in=question.panels) if question.panels else Q()


def _slow_enough(question: NumbersQuestion) -> Q:
    """Where nobody knows how long it took, a rating counts."""
    if not question.min_seconds:
        return Q()
    return Q(annotation__seconds=None) | Q(annotation__seconds__gte=question.min_seconds)


def excluded_scores(campaign: Campaign, question: NumbersQuestion) -> dict[str, int]:
    """How many scores of the chosen raters each exclusion leaves out, and how many by people who could see verdicts
    are counted where that exclusion is off.
    """
    chosen = ratings.ratings_condition(question.raters) & _of_panels(question)
    here = Rating.objects.filter(
        chosen, annotation__campaign=campaign, annotation__superseded_at=None, status=Rating.Status.SCORED
    )
    return {
        "not_blind": here.filter(annotation__blind=False).count(),
        "too_fast": here.exclude(_slow_enough(question)).count() if question.min_seconds else 0,
    }


def counted_table(found: Table) -> dict[str, int]:
    """How many items, clusters, annotators, ratings and verdicts a table holds."""
    rows = [ratings.Row(*row[: len(ratings.COLUMNS)]) for row in found.rows]
    people = [row for row in rows if row.rater_kind == "annotator"]
    return {
        "items": len({row.item for row in rows}),
        "clusters": len({row.cluster for row in rows}),
        "raters": len({row.rater for row in people}),
        "ratings": len(people),
        "judges": len({row.rater for row in rows} - {row.rater for row in people}),
        "verdicts": len(rows) - len(people),
    }


# --- estimates -------------------------------------------------------------------------------------------------------
def measured_cells(
    found: Table, question: NumbersQuestion, *, scales: Mapping[str, Scale], progress: Progress
) -> dict[str, Any]:
    """Estimates of every cell as rows (`CellEstimate.as_row`), and the notes on the table.

    `asked` of a row is its statistic with the family's name before it, as in `questions.STATISTICS`.
    """
    from analytics.stats.core.validation import ratings_table

    table = ratings_table(ratings.frame(found), scales=_levelled(scales, question.level))
    reports = list(_reports(table, question))
    rows: dict[str, dict[str, Any]] = {}  # what does not depend on the judge is in the report of each
    for done, (family, report) in enumerate(reports):
        progress(done, len(reports))
        for row in report(table):
            asked = family + row.estimate.statistic
            if asked in question.statistics and _is_variant(row, question):
                plain = {**row.as_row(), "asked": asked}
                rows[json.dumps(plain)] = plain
    progress(len(reports), len(reports))
    return {"estimates": list(rows.values()), "notes": list(table.notes)}


def _levelled(scales: Mapping[str, Scale], level: str) -> dict[str, Scale]:
    return {name: replace(scale, level=level) if level else scale for name, scale in scales.items()}  # type: ignore[arg-type]


def _is_variant(row: CellEstimate, question: NumbersQuestion) -> bool:
    """Whether the row's variant is one that is asked for."""
    estimate = row.estimate
    if question.variants:
        return estimate.variant in question.variants
    usual = VARIANTS.get(estimate.statistic)
    return usual is None or estimate.variant is None or estimate.variant == usual.get(estimate.level or "")


def _reports(table: RatingsTable, question: NumbersQuestion) -> Iterator[tuple[str, Report]]:
    """A report for every family of statistics, judge and panel that is asked for, after the family's prefix."""
    from analytics.stats.agreement import among_raters

    how: dict[str, Any] = {"bootstrap": question.bootstrap, "confidence": question.confidence, "seed": question.seed}
    how |= {"by": tuple(_by(question)), "pool": question.pool}
    judges = sorted(table.frame.loc[_is_judge(table), "rater"].unique())
    for part in _parts(table, question):
        if wanted := question.wanted(AGREEMENT):
            yield "", partial(_reported, among_raters.agreement_report, part, {**how, "statistics": wanted})
        for family, report, options in _within_panel(table, question, how):
            yield family, partial(_reported, report, part, options)
        for judge in judges:
            for family, report, options in _of_judge(table, question, judge, how):
                yield family, partial(_reported, report, part, options)
        for report, options in _of_rankings(question, judges, how):
            yield "stability.", partial(_reported, report, part, options)


def _by(question: NumbersQuestion) -> Iterator[str]:
    """The columns of the table that cut it into cells."""
    return (name for name in question.dimensions if name not in ("judge", "panel", "languages"))


def _parts(table: RatingsTable, question: NumbersQuestion) -> list[str | None]:
    """None for the whole table, or the panels one by one."""
    return sorted(table.frame["panel"].dropna().unique()) if "panel" in question.dimensions else [None]


def _reported(report: Any, panel: str | None, options: dict[str, Any], table: RatingsTable) -> list[CellEstimate]:
    """The rows of a report on the whole table, or on one panel's ratings with those of all judges, who sit on none."""
    if panel is None:
        found: list[CellEstimate] = report(table, **options)
        return found
    rows = replace(table, frame=table.frame[_is_judge(table) | (table.frame["panel"] == panel)])
    return [replace(row, cell={**row.cell, "panel": str(panel)}) for row in report(rows, **options)]


def _is_judge(table: RatingsTable) -> Any:
    return table.frame["rater_kind"] == "judge"


def _within_panel(
    table: RatingsTable, question: NumbersQuestion, how: dict[str, Any]
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """The family's prefix, a report and its options, on who and what makes a panel agree."""
    from analytics.stats.agreement import within_panel
    from analytics.stats.judge.panel import agreement_class_report

    asked, by, pool = set(question.wanted(WITHIN_PANEL)), how["by"], {"by": how["by"], "pool": question.pool}
    confidence = {"confidence": question.confidence}
    if asked & {"class_share", "score_share"}:
        yield "", agreement_class_report, {"by": by}
    if "commonest_share" in asked:
        yield "", within_panel.commonest_report, pool
    if asked & set(within_panel.RATIONALES):
        yield "", within_panel.rationale_length_report, {"by": by, **confidence}
    if asked & set(within_panel.LABELS):
        yield "", within_panel.spread_report, pool
    if statistics := question.wanted(LEFT_OUT):
        yield "left_out.", within_panel.left_out_report, {**pool, **confidence, "statistics": statistics}
    if statistics := question.wanted(PAIRS):
        yield "pairs.", within_panel.pair_report, {**how, "statistics": statistics}
    for report, options in _of_means(table, question, asked, by):
        yield "", report, options


def _of_means(
    table: RatingsTable, question: NumbersQuestion, asked: set[str], by: Sequence[str]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Two criteria, or two panels, on the same items; means of criteria that have them."""
    from analytics.stats.agreement import within_panel
    from analytics.stats.judge import differences

    drawn = {"resamples": question.bootstrap, "seed": question.seed}
    ordered = [key for key in sorted(table.frame["criterion"].unique()) if _has_means(table.scales[key])]
    if "criteria_spearman" in asked:
        of_means = {"by": [name for name in by if name != "criterion"], **drawn}
        yield partial(_on_criteria, differences.between_criteria, ordered), of_means
    panels = sorted(table.annotators().frame["panel"].dropna().unique()) if "panel" in table.frame else []
    for first, second in combinations(panels, 2):
        both = {"by": [name for name in by if name != "panel"], "first": first, "second": second}
        if asked & {"panel_difference", "panel_spearman"}:
            yield partial(_on_criteria, differences.between_panels, ordered), {**both, **drawn}
        if "panel_same_mode" in asked:
            yield within_panel.same_mode_report, {**both, "confidence": question.confidence}


def _has_means(scale: Scale) -> bool:
    """Whether a mean of its scores says something: scores in order, or a share of one of two labels."""
    return scale.is_numeric and (scale.has_order or scale.q == 2)


def _of_judge(
    table: RatingsTable, question: NumbersQuestion, judge: str, how: dict[str, Any]
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """The family's prefix, a report and its options, on one judge beside the panel, and on its languages as raters."""
    from analytics.stats.judge import calibration, consistency

    wanted = question.wanted(CALIBRATION)
    beside = [name for name in wanted if name in (*calibration.BESIDE, *calibration.ON_REQUEST)]
    how = {**how, "judge": judge}
    if figures := [name for name in wanted if name not in beside]:
        for criteria, rule, ties in _rules(table, question):
            report = partial(_on_criteria, calibration.calibration_report, criteria)
            yield "", report, {**how, "reference": rule, "ties": ties, "statistics": figures}
    if beside:
        yield "", calibration.beside_humans, {**how, "statistics": beside}
    if languages := question.wanted(CONSISTENCY):
        by = tuple(name for name in how["by"] if name != "language")
        yield "consistency.", consistency.consistency_report, {**how, "by": by, "statistics": languages}


def _rules(table: RatingsTable, question: NumbersQuestion) -> Iterator[tuple[list[str], str | None, str]]:
    """Criteria with their rule of reference and what it does with a tie.

    Nominal criteria have no order: the mode stands for a rule that needs one, and ties are left out. Criteria that are
    pooled have one rule.
    """
    rule, ties = question.rule
    criteria = sorted(table.frame["criterion"].unique())
    nominal = [key for key in criteria if table.scales[key].level == "nominal"]
    if question.pool and nominal:
        nominal = criteria
    if nominal:
        yield nominal, "mode" if rule in NEEDS_ORDER else rule, "exclude"
    if ordered := [key for key in criteria if key not in nominal]:
        yield ordered, rule, ties


def _on_criteria(report: Any, criteria: Sequence[str], table: RatingsTable, **options: Any) -> list[CellEstimate]:
    """The rows of a report on some criteria alone."""
    found: list[CellEstimate] = report(table.only(criterion=criteria), **options)
    return found


def _of_rankings(
    question: NumbersQuestion, judges: Sequence[str], how: dict[str, Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The rankings of generators by the panel and by each judge."""
    from analytics.stats.ranking import stability

    if wanted := question.wanted(STABILITY):
        by = tuple(name for name in how["by"] if name not in ("language", "generator"))
        for judge in (None, *judges):
            yield partial(_rankings, stability.stability_report, wanted), {**how, "by": by, "judge": judge}


def _rankings(report: Any, wanted: Sequence[str], table: RatingsTable, **options: Any) -> list[CellEstimate]:
    return [row for row in report(table, paper_compat=False, **options) if row.estimate.statistic in wanted]
