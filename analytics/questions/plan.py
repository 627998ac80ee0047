"""Finds what a question selects in one campaign."""

from __future__ import annotations

from collections.abc import Collection

from analytics import ratings
from analytics.questions.parameters import EACH_RUN
from analytics.questions.question import NumbersQuestion
from annotation.models import Campaign
from judging.models import JudgeRun
from judging.runs import whole_run


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
