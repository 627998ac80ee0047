"""The answer to a question: its ratings table, what is left out of it, and an estimate for every cell.

A cell that was computed once is stored by the digest of all that it depends on (docs/decisions/0027): after a
submission only the cells that it touches are computed again. pandas and scipy are loaded by workers and commands alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from analytics import ratings
from analytics.computation.stored_cells import ALL_JUDGES, NEEDED, CellReport, CellStore, CodedTable, CutTable
from analytics.exclusions import filtered, of_panels, slow_enough, without_excluded
from analytics.families import (
    FamilyReport,
    asked_judges,
    columns_of_families,
    family_reports,
    measure_notes,
    with_additions,
)
from analytics.questions.parameters import NO_CUT
from analytics.questions.plan import chosen_runs
from analytics.questions.question import NumbersQuestion, Settings
from analytics.questions.reference_rules import NEEDS_ORDER
from analytics.stats.declared.register import is_usual, statistics_of
from annotation.models import Campaign
from annotation.writers.tables import Table
from judging.models import JudgeRun

if TYPE_CHECKING:
    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.scales import Scale
    from analytics.stats.core.tables import RatingsTable

Progress = Callable[[int, int], None]


# --- the rows that a question is about -------------------------------------------------------------------------------
def question_table(
    campaign: Campaign,
    question: NumbersQuestion,
    runs: Sequence[JudgeRun] | None = None,
    left_out: Counter[str] | None = None,
) -> Table:
    """The ratings table of a question: nothing is left in it that the figures do not rest on.

    `left_out` is added to as rows are read: by exclusion, how many ratings it leaves out. Filters are about items and
    criteria, so that they let all ratings of one item and criterion through or none.
    """
    runs = chosen_runs(campaign, question) if runs is None else runs
    found = ratings.table(
        campaign=campaign,
        runs=runs,
        raters=question.raters,
        blind_only=question.blind_only,
        more=of_panels(question) & slow_enough(question),
    )
    found = without_excluded(filtered(found, question), campaign, question, left_out)
    return with_additions(found, campaign, question, runs)


# --- estimates -------------------------------------------------------------------------------------------------------
def measured_cells(
    found: Table, question: NumbersQuestion, *, scales: Mapping[str, Scale], store: CellStore, progress: Progress
) -> dict[str, Any]:
    """Estimates of every cell as rows (`CellEstimate.as_row`), and the notes on the table.

    `asked` of a row is its statistic with the family's name before it, as in `stats.declared`.
    """
    columns = {*NEEDED, *question.dimensions, "rationale_length", *columns_of_families(found, question)}
    table = CodedTable(found, _levelled(scales, question.level), columns)
    cut, reports = CutTable(table, store), list(_reports(table, question))
    cut.prepare([_OFF_POINTS, *(report for _family, report in reports)])
    rows: dict[str, dict[str, Any]] = {}  # what does not depend on the judge is in the report of each
    for done, (family, report) in enumerate(reports):
        progress(done, len(reports))
        for row in cut.rows(report, partial(_plain, question, family, report.panel)):
            rows[json.dumps(row)] = row
    progress(len(reports), len(reports))
    notes = [*_notes(cut.rows(_OFF_POINTS, dict)), *measure_notes(table.values("language"), question.measures)]
    if question.variants and not rows:  # an empty answer says why
        names = ", ".join(question.variants)
        notes += [f"no figure of {each} has the variant {names}" for each in question.statistics]
    return {"estimates": list(rows.values()), "notes": notes}


def _off_points(table: RatingsTable) -> Iterator[dict[str, int]]:
    """How many scores of judges lie beyond the ends of the scale, and how many between its points."""
    from analytics.stats.core.validation import scores_off_points

    beyond, between = scores_off_points(table)
    yield {"beyond": beyond, "between": between}


_OFF_POINTS = CellReport(name="off points", compute=_off_points, options={}, by=("criterion",), judge=ALL_JUDGES)


def _notes(counts: Iterable[Mapping[str, int]]) -> list[str]:
    """What a reader should know of scores that are no points of the scale."""
    from analytics.stats.core.validation import notes_off_points

    every = list(counts)
    return list(notes_off_points(*(sum(each[name] for each in every) for name in ("beyond", "between"))))


def _plain(question: NumbersQuestion, family: str, panel: str | None, row: CellEstimate) -> dict[str, Any] | None:
    """A row that is asked for as plain values."""
    asked = family + row.estimate.statistic
    if asked not in question.statistics or not _is_variant(row, question):
        return None
    if panel is not None:
        row = replace(row, cell={**row.cell, "panel": panel})
    return {**row.as_row(), "asked": asked}


def _levelled(scales: Mapping[str, Scale], level: str) -> dict[str, Scale]:
    return {name: replace(scale, level=level) if level else scale for name, scale in scales.items()}  # type: ignore[arg-type]


def _is_variant(row: CellEstimate, question: NumbersQuestion) -> bool:
    """Whether the row's variant is one that is asked for."""
    estimate = row.estimate
    if question.variants:
        return estimate.variant in question.variants
    return is_usual(estimate.statistic, estimate.variant, estimate.level or "")


def _reports(table: CodedTable, question: NumbersQuestion) -> Iterator[tuple[str, CellReport]]:
    """A report for every family of statistics, judge and panel that is asked for, after the family's prefix."""
    judges = asked_judges(table, question)
    by = tuple(name for name in question.dimensions if name not in NO_CUT)
    rules = list(_rules(table, question))
    panels: list[str] | list[None] = table.values("panel") if "panel" in question.dimensions else [None]
    for panel in panels:
        if wanted := question.wanted(statistics_of("agreement")):
            yield "", replace(agreement_cells(question, by, wanted), panel=panel)
        for family, report in _within_panel(table, question, by):
            yield family, replace(report, panel=panel)
        for judge in judges:
            for family, report in _of_judge(table, question, judge, by):
                yield family, replace(report, panel=panel)
        for ranked in (None, *judges) if question.wanted(statistics_of("stability")) else ():
            yield "stability.", replace(_of_rankings(question, ranked, by), panel=panel)
        for of_family in family_reports(table, question, judges=judges, rules=rules, by=by):
            yield of_family.prefix, _family_cells(question, by, of_family, panel)


def _family_cells(
    question: NumbersQuestion, by: tuple[str, ...], family: FamilyReport, panel: str | None
) -> CellReport:
    """A report of `families`, computed as one cell: it may compare cells or judges."""
    asked = {"asked": question.statistics, "variants": question.variants}
    return CellReport(
        name=family.prefix, compute=family.compute, options={**family.about, **asked}, by=by, pool=question.pool,
        judge=family.judge or ALL_JUDGES, panel=panel, in_file_order=True, is_whole=True, more=family.columns,
    )  # fmt: skip


def options_of(settings: Settings, **more: Any) -> dict[str, Any]:
    """How intervals are made, for every report."""
    return {"bootstrap": settings.bootstrap, "confidence": settings.confidence, "seed": settings.seed, **more}


def _listing(settings: Settings) -> dict[str, str]:
    """The pairs of large panels, where they are asked for."""
    return {"pairs": "all"} if isinstance(settings, NumbersQuestion) and settings.pairs else {}


def agreement_cells(settings: Settings, by: tuple[str, ...], statistics: Sequence[str]) -> CellReport:
    """Agreement among the annotators of every cell."""
    from analytics.stats.agreement import rater_agreement

    is_asked = isinstance(settings, NumbersQuestion)
    variants, pool = (settings.variants, settings.pool) if is_asked else ((), False)  # type: ignore[attr-defined]
    how = options_of(settings, statistics=tuple(statistics), pool=pool, **_listing(settings))
    compute = partial(rater_agreement.agreement_report, by=by, keeps=None if variants else is_usual, **how)
    return CellReport(
        name="agreement", compute=compute, options={**how, "variants": variants}, by=by, pool=pool,
        in_file_order=bool(variants),
    )  # fmt: skip


def _within_panel(
    table: CodedTable, question: NumbersQuestion, by: tuple[str, ...]
) -> Iterator[tuple[str, CellReport]]:
    """The family's prefix and a report, on who and what makes a panel agree."""
    from analytics.stats.agreement import within_panel
    from analytics.stats.judge.agreement_classes import agreement_class_report

    asked, pool = set(question.statistics), {"pool": question.pool}
    confidence = {"confidence": question.confidence}
    report = partial(_report, question, by)
    if asked & {"class_share", "score_share"}:
        yield "", report(agreement_class_report, {}, judge=ALL_JUDGES)
    if "commonest_share" in asked:
        yield "", report(within_panel.commonest_report, pool)
    if asked & set(within_panel.RATIONALES):
        lengths = report(within_panel.rationale_length_report, confidence, judge=ALL_JUDGES)
        yield "", replace(lengths, more=("rationale_length",))
    if asked & set(within_panel.LABELS):  # numbers the items of all cells together
        yield "", replace(report(within_panel.spread_report, pool), is_whole=True, in_file_order=True)
    if statistics := question.wanted(statistics_of("left out")):
        yield "left_out.", report(within_panel.left_out_report, {**pool, **confidence, "statistics": statistics})
    if statistics := question.wanted(statistics_of("pairs of raters")):
        options = options_of(question, pool=question.pool, statistics=statistics, **_listing(question))
        yield "pairs.", report(within_panel.pair_report, options)
    for of_means in _of_means(table, question, asked, by):
        yield "", of_means


def _of_means(
    table: CodedTable, question: NumbersQuestion, asked: set[str], by: tuple[str, ...]
) -> Iterator[CellReport]:
    """Two criteria, or two panels, on the same items; means of criteria that have them."""
    from analytics.stats.agreement import within_panel
    from analytics.stats.judge import differences

    drawn = {"resamples": question.bootstrap, "seed": question.seed}
    ordered = [key for key in table.criteria if _has_means(table.scale(key))]
    if "criteria_spearman" in asked:
        across = tuple(name for name in by if name != "criterion")
        yield replace(_report(question, across, differences.between_criteria, drawn), criteria=ordered, is_whole=True)
    panels = table.values("panel", table.where("rater_kind", ("annotator",)))
    for first, second in combinations(panels, 2):
        both = {"first": first, "second": second}
        if asked & {"panel_difference", "panel_spearman"}:
            report = _report(question, by, differences.between_panels, {**both, **drawn})
            yield replace(report, criteria=ordered)
        if "panel_same_mode" in asked:
            yield _report(question, by, within_panel.same_mode_report, {**both, "confidence": question.confidence})


def _report(
    question: NumbersQuestion,
    by: tuple[str, ...],
    report: Callable[..., Iterable[CellEstimate]],
    options: Mapping[str, Any],
    judge: str | None = None,
) -> CellReport:
    """A report of these options, whose rows are then those that the question asks for."""
    name = getattr(report, "__name__", "report")
    about = {**options, "by": by, "statistics asked": question.statistics, "variants": question.variants}
    compute = partial(report, by=by, **options)
    return CellReport(name=name, compute=compute, options=about, by=by, pool=question.pool, judge=judge)


def _has_means(scale: Scale) -> bool:
    """Whether a mean of its scores says something: scores in order, or a share of one of two labels."""
    return scale.is_numeric and (scale.has_order or scale.q == 2)


def _of_judge(
    table: CodedTable, question: NumbersQuestion, judge: str, by: tuple[str, ...]
) -> Iterator[tuple[str, CellReport]]:
    """The family's prefix and a report, on one judge beside the panel, and on its languages as raters."""
    from analytics.stats.judge import calibration, consistency

    wanted = question.wanted(statistics_of("calibration", "human ceiling"))
    beside = [name for name in wanted if name in (*calibration.BESIDE, *calibration.ON_REQUEST)]
    how = options_of(question, judge=judge, pool=question.pool)
    if figures := [name for name in wanted if name not in beside]:
        for criteria, rule, ties in _rules(table, question):
            yield "", replace(calibration_cells(question, by, judge, figures, (rule, ties)), criteria=criteria)
    if beside:
        yield "", _report(question, by, calibration.beside_humans, {**how, "statistics": beside}, judge=judge)
    if languages := question.wanted(statistics_of("consistency")):
        across = tuple(name for name in by if name != "language")
        report = _report(
            question, across, consistency.consistency_report, {**how, "statistics": languages}, judge=judge
        )
        yield "consistency.", replace(report, is_whole=True)  # are items or scenarios parallel: one decision


def calibration_cells(
    settings: Settings, by: tuple[str, ...], judge: str, statistics: Sequence[str], rule: tuple[str | None, str]
) -> CellReport:
    """One judge against the panel in every cell; ``rule`` as in `reference_rules.RULES`."""
    from analytics.stats.judge import calibration

    is_asked = isinstance(settings, NumbersQuestion)
    variants, pool = (settings.variants, settings.pool) if is_asked else ((), False)  # type: ignore[attr-defined]
    how = options_of(settings, statistics=tuple(statistics), pool=pool, judge=judge, reference=rule[0], ties=rule[1])
    compute = partial(calibration.calibration_report, by=by, keeps=None if variants else is_usual, **how)
    options = {**how, "variants": variants}
    return CellReport(name="calibration", compute=compute, options=options, by=by, pool=pool, judge=judge)


def _rules(table: CodedTable, question: NumbersQuestion) -> Iterator[tuple[list[str], str | None, str]]:
    """Criteria with their rule of reference and what it does with a tie.

    Nominal criteria have no order: the mode stands for a rule that needs one, and ties are left out. Criteria that are
    pooled have one rule.
    """
    rule, ties = question.rule
    criteria = table.criteria
    nominal = [key for key in criteria if table.scale(key).level == "nominal"]
    if question.pool and nominal:
        nominal = criteria
    if nominal:
        yield nominal, "mode" if rule in NEEDS_ORDER else rule, "exclude"
    if ordered := [key for key in criteria if key not in nominal]:
        yield ordered, rule, ties


def _of_rankings(question: NumbersQuestion, judge: str | None, by: tuple[str, ...]) -> CellReport:
    """The rankings of generators by the panel, or by a judge."""
    from analytics.stats.ranking import stability

    across = tuple(name for name in by if name not in ("language", "generator"))
    how = options_of(question, judge=judge, pool=question.pool, paper_compat=False)
    return _report(question, across, stability.stability_report, how, judge=judge)
