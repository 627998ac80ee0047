"""Runs on the versions of a dataset: one on a later version goes on where one on an earlier version ends."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from annotation.models import Dataset, Item, RubricVersion
from judging.models import Judge, JudgeRun


def continued(
    *, judge: Judge, dataset: Dataset, rubric_version: RubricVersion, repeats: int | None = None
) -> JudgeRun | None:
    """The run of an earlier version that a new one goes on from: it has asked, or will, about that version's items.

    It has the same judge and rubric version, and as many ``repeats`` unless they don't matter. The latest version
    counts before the newest run. A cancelled run, or one that goes on from a cancelled run, leaves items unasked.
    """
    earlier = Dataset.objects.parts_of(dataset).exclude(pk=dataset.pk)
    found = JudgeRun.objects.filter(judge=judge, rubric_version=rubric_version, dataset__in=earlier)
    if repeats is not None:
        found = found.filter(repeats=repeats)
    newest_first = found.select_related("dataset").order_by("-dataset_id", "-pk")
    return next((run for run in newest_first if not _is_cut_short(run)), None)


def _is_cut_short(run: JudgeRun) -> bool:
    return any(judge_run.state == JudgeRun.State.CANCELLED for judge_run in whole_run([run]))


def asked_about(*, dataset: Dataset, after: JudgeRun | None) -> QuerySet[Item]:
    """The items in their order that a run on ``dataset`` asks about when it goes on ``after`` an earlier one."""
    items = Item.objects.of(dataset)
    return items.exclude(dataset__in=Dataset.objects.parts_of(after.dataset)) if after else items


def whole_run(runs: Iterable[JudgeRun]) -> list[JudgeRun]:
    """The runs, and those that they go on from: together they have the verdicts on all items."""
    found = {run.pk: run for run in runs}
    while missing := {run.continues_id for run in found.values() if run.continues_id} - {*found}:
        found |= {run.pk: run for run in JudgeRun.objects.filter(pk__in=missing).select_related("judge")}
    return list(found.values())
