"""A question resolved once: the judge runs, ratings and columns that it reads, and the reports that compute it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Q

from analytics.questions.parameters import EACH_RUN, NO_CUT
from analytics.questions.question import NumbersQuestion, Settings
from analytics.questions.reference_rules import ADJUDICATED
from analytics.ratings.raters import (
    all_runs,
    judge_names,
    names_of_designs,
    newest_runs,
    rater_names,
    ratings_condition,
    usual_judges,
)
from analytics.stats.declared.declaring import StatisticsReport
from analytics.stats.declared.register import REPORTS, STATISTICS
from annotation.models import Campaign
from judging.models import JudgeRun
from judging.runs import whole_run

if TYPE_CHECKING:
    from analytics.stats.core.scales import Scale


class PlannedReport(NamedTuple):
    """A report that computes some of a question's statistics, which have no prefix here.

    `columns`: what it reads beside the columns that every figure needs and those that cut the table.
    """

    declared: StatisticsReport
    statistics: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a question comes to on ratings with these scales.

    `reports`: those that compute its statistics, in the order of the answer. `by`: the columns that cut the table, and
    `panels_apart` whether each panel is a table of its own. `columns`: what it reads beside the columns that every
    figure needs, in the ratings table or added to it. `scales`: the declared one of each criterion, "*" for all others,
    at the level that is asked for. `rule`: of the reference label, with what it does with a tie. `juries`: the members
    of each. `compares_judges`: whether a report sets a judge or an annotator beside the reference label. `runs`: the
    judge runs, without the runs that they continue; `names`: by run, also by each that it continues, the name of its
    judge in the table; `of_designs`: the names of judges that are only cells of designs.

    `people`: the condition on ratings by the raters and panels that are asked for; `ratings`: on those that count.
    """

    question: NumbersQuestion
    reports: tuple[PlannedReport, ...]
    by: tuple[str, ...]
    panels_apart: bool
    columns: frozenset[str]
    scales: Mapping[str, Scale]
    rule: tuple[str | None, str]
    is_adjudicated: bool
    juries: tuple[tuple[str, ...], ...]
    compares_judges: bool
    runs: tuple[JudgeRun, ...] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    of_designs: frozenset[str] = frozenset()
    people: Q = field(default_factory=Q)
    ratings: Q = field(default_factory=Q)


def planned(campaign: Campaign, question: NumbersQuestion, runs: Sequence[JudgeRun] | None = None) -> Plan:
    """The plan of a question on a campaign. A rating counts if nobody knows how long it took.

    `runs`: what `chosen_runs` gives, where the caller knows it.
    """
    runs = chosen_runs(campaign, question) if runs is None else runs
    names = rater_names(campaign, runs)
    of_designs = names_of_designs(runs, names)
    panels = Q(annotation__assignment__duty__panel__name__in=question.panels) if question.panels else Q()
    people = ratings_condition(question.raters) & panels
    counting = ratings_condition(question.raters, blind_only=question.blind_only) & panels
    if question.min_seconds:
        counting &= Q(annotation__seconds=None) | Q(annotation__seconds__gte=question.min_seconds)
    return replace(
        plan_of(question, campaign.rubric_version.scales),
        runs=tuple(runs),
        names=names,
        of_designs=of_designs,
        people=people,
        ratings=counting,
    )


def plan_of(question: NumbersQuestion, scales: Mapping[str, Scale]) -> Plan:
    """The plan of a question on a ratings table that is there, with these scales."""
    dimensions, level, rule = question.dimensions, question.level, question.rule
    asked = [STATISTICS[name] for name in question.statistics]
    reports = []
    for declared in REPORTS.values():
        on_measure = "measure" in declared.once_per  # the same statistics, of numbers that nobody rated
        own = [one for one in asked if one.report is declared]
        computed = [one for one in asked if one.report.prefix == declared.prefix] if on_measure else own
        if computed:
            read = [*declared.reads, *(name for one in own for name in one.reads)]
            named = [
                name.replace("CRITERION", key) for name in read for key in (scales if "CRITERION" in name else " ")
            ]
            names = tuple(one.plain for one in computed)
            reports.append(PlannedReport(declared, names, (*question.measures, *named)))
    return Plan(
        question=question,
        reports=tuple(reports),
        by=tuple(name for name in dimensions if name not in NO_CUT),
        panels_apart="panel" in dimensions,
        columns=frozenset({*dimensions, *(name for report in reports for name in report.columns)}),
        scales={key: replace(scale, level=level) if level else scale for key, scale in scales.items()},  # type: ignore[arg-type]
        rule=rule,
        is_adjudicated=question.reference in ADJUDICATED,
        juries=tuple(question.jury_members),
        compares_judges=any(report.declared.name in ("calibration", "human ceiling") for report in reports),
    )


def chosen_runs(campaign: Campaign, question: Settings) -> list[JudgeRun]:
    """The judge runs that a question is about, without the runs that they continue; of other settings the newest."""
    if not isinstance(question, NumbersQuestion):
        return list(newest_runs(campaign))
    if question.runs:
        runs = list(all_runs(campaign))
        inner = {part.pk for run in runs for part in whole_run([run]) if part.pk != run.pk}
        runs = [
            run for run in runs if str(run.pk) in question.runs or (EACH_RUN in question.runs and run.pk not in inner)
        ]
    else:
        runs = list(newest_runs(campaign))
    is_every = question.runs or question.designs or all(run.design_id is None for run in runs)
    if is_every and not question.judges:
        return runs
    names = judge_names(campaign, runs)
    wanted: Collection[str] = {*question.judges, *(name for members in question.jury_members for name in members)}
    if not question.judges:
        everyone, of_designs = [names[run.pk] for run in runs], names_of_designs(runs, names)
        wanted = usual_judges(everyone, of_designs, chosen=question.judges_named)
    return [run for run in runs if names[run.pk] in wanted]
