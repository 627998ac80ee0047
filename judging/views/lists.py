"""Runs as lists show them: how far each is, in one query."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from judging import runs
from judging.models import Call, JudgeRun

DONE = (Call.State.SETTLED, Call.State.FAILED)
MOST = 200


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One row: the run, and how many of its calls are done."""

    run: JudgeRun
    planned: int
    done: int
    failed: int

    @property
    def phase(self) -> runs.Phase:
        return runs.phase(self.run, finished=self.planned == self.done)


def list_page(found: QuerySet[JudgeRun]) -> list[ListedRun]:
    """The newest runs first."""
    counted = found.select_related("judge", "dataset", "rubric_version__rubric").annotate(
        planned=Count("calls"),
        done=Count("calls", filter=Q(calls__state__in=DONE)),
        failed=Count("calls", filter=Q(calls__state=Call.State.FAILED)),
    )
    return [ListedRun(run, run.planned, run.done, run.failed) for run in counted.order_by("-pk")[:MOST]]
