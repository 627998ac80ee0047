"""A question resolved once: the judge runs, ratings and columns that it reads, and the reports that compute it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from django.db.models import Q

from analytics import ratings
from analytics.exclusions import of_panels, slow_enough
from analytics.questions.parameters import EACH_RUN, NO_CUT
from analytics.questions.question import NumbersQuestion
from analytics.questions.reference_rules import NEEDS_ORDER
from analytics.stats.declared.declaring import StatisticsReport
from analytics.stats.declared.register import REPORTS, STATISTICS
from annotation.models import Campaign
from judging.models import JudgeRun
from judging.runs import whole_run

if TYPE_CHECKING:
    from analytics.stats.core.scales import Scale

Rule = tuple[list[str], str | None, str]
"""Criteria with their rule of reference (None: the default of each level) and what it does with a tie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a question comes to on ratings with these scales.

    `reports`: those that compute its statistics, in the order of the answer. `by`: the columns that cut the table.
    `scales`: the declared one of each criterion, "*" for all others, at the level that is asked for. `runs`: the judge
    runs, without the runs that they continue. `ratings`: the condition on ratings that count.
    """

    question: NumbersQuestion
    reports: tuple[StatisticsReport, ...]
    by: tuple[str, ...]
    scales: Mapping[str, Scale]
    runs: tuple[JudgeRun, ...] = ()
    ratings: Q = field(default_factory=Q)

    @property
    def columns(self) -> frozenset[str]:
        """What it reads beside the columns that every figure needs: in the ratings table, or added to it."""
        read = (name for report in self.reports for name in self.columns_of(report))
        return frozenset((*self.question.dimensions, *read))

    def columns_of(self, report: StatisticsReport) -> tuple[str, ...]:
        """What a report reads beside the columns that every figure needs and those that cut the table."""
        asked = (STATISTICS[name] for name in self.question.statistics)
        read = (*report.reads, *(name for one in asked if one.report is report for name in one.reads))
        every = (
            name.replace("CRITERION", key) for name in read for key in (self.scales if "CRITERION" in name else [""])
        )
        return (*self.question.measures, *every)

    def rules(self, criteria: Sequence[str]) -> list[Rule]:
        """The rules of reference on these criteria.

        Nominal criteria have no order: the mode stands for a rule that needs one, and ties are left out. Criteria that
        are pooled have one rule.
        """
        rule, ties = self.question.rule
        nominal = [key for key in criteria if (self.scales.get(key) or self.scales["*"]).level == "nominal"]
        if self.question.pool and nominal:
            nominal = list(criteria)
        ordered = [key for key in criteria if key not in nominal]
        rules: list[Rule] = [(nominal, "mode" if rule in NEEDS_ORDER else rule, "exclude"), (ordered, rule, ties)]
        return [rule for rule in rules if rule[0]]


def planned(campaign: Campaign, question: NumbersQuestion) -> Plan:
    """The plan of a question on a campaign."""
    plan = plan_of(question, ratings.scales(campaign))
    here = ratings.ratings_condition(question.raters, blind_only=question.blind_only)
    only = here & of_panels(question) & slow_enough(question)
    return replace(plan, runs=tuple(chosen_runs(campaign, question)), ratings=only)


def plan_of(question: NumbersQuestion, scales: Mapping[str, Scale]) -> Plan:
    """The plan of a question on a ratings table that is there, with these scales."""
    asked = [STATISTICS[name].report for name in question.statistics]
    names, prefixes = {report.name for report in asked}, {report.prefix for report in asked}
    reports = [
        report
        for report in REPORTS.values()
        if report.name in names or ("measure" in report.once_per and report.prefix in prefixes)
    ]
    level = question.level
    return Plan(
        question=question,
        reports=tuple(reports),
        by=tuple(name for name in question.dimensions if name not in NO_CUT),
        scales={key: replace(scale, level=level) if level else scale for key, scale in scales.items()},  # type: ignore[arg-type]
    )


def chosen_runs(campaign: Campaign, question: NumbersQuestion) -> list[JudgeRun]:
    """The judge runs that a question is about, without the runs that they continue."""
    if question.runs:
        runs = list(ratings.all_runs(campaign))
        inner = {part.pk for run in runs for part in whole_run([run]) if part.pk != run.pk}
        runs = [
            run for run in runs if str(run.pk) in question.runs or (EACH_RUN in question.runs and run.pk not in inner)
        ]
    else:
        runs = list(ratings.newest_runs(campaign))
    is_every = question.runs or question.designs or all(run.design_id is None for run in runs)
    if is_every and not question.judges:
        return runs
    names = ratings.judge_names(campaign, runs)
    wanted: Collection[str] = {*question.judges, *(name for members in question.jury_members for name in members)}
    if not question.judges:
        everyone, of_designs = [names[run.pk] for run in runs], ratings.names_of_designs(runs, names)
        wanted = ratings.usual_judges(everyone, of_designs, chosen=question.judges_named)
    return [run for run in runs if names[run.pk] in wanted]
