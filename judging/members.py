"""The tables of the judging app in a bundle: judges, their runs, and the cost and reply of each call."""

from __future__ import annotations

from annotation.bundle import Member, Outgoing, Row
from judging.models import Attempt, Call, Judge, JudgeRun, Verdict

_OURS = ("project", "created_by")
_UNDER_WAY = (Call.State.WAITING, Call.State.LEASED)


def _halted(row: Row, outgoing: Outgoing) -> None:
    """A run is paid for where it was started: elsewhere what is left of it waits until somebody resumes it."""
    is_running = row["state"] == JudgeRun.State.RUNNING
    if is_running and Call.objects.filter(run=row["id"], state__in=_UNDER_WAY).exists():
        row["state"] = JudgeRun.State.PAUSED.value


def _unleased(row: Row, outgoing: Outgoing) -> None:
    if row["state"] == Call.State.LEASED:
        row["state"] = Call.State.WAITING.value


def _without_bodies(row: Row, outgoing: Outgoing) -> None:
    if not outgoing.replies:
        row["request"], row["reply"] = {}, {}


MEMBERS = (
    Member(
        name="judges",
        model=Judge,
        rows=lambda project: Judge.objects.filter(project=project),
        leaves=_OURS,
        since={"concurrency": 2, "timeout": 2, "tries": 2},
    ),
    Member(
        name="runs",
        model=JudgeRun,
        rows=lambda project: JudgeRun.objects.filter(project=project),
        refers={
            "judge": "judges",
            "dataset": "datasets",
            "rubric_version": "rubric_versions",
            "continues": "runs",
            "file_import": "intakes",
        },
        written={"file_import": "intake"},
        leaves=_OURS,
        since={"key": 2, "width": 2},
        sent=_halted,
    ),
    Member(
        name="calls",
        model=Call,
        rows=lambda project: Call.objects.filter(run__project=project),
        refers={"run": "runs", "item": "items", "criterion": "criteria"},
        leaves=("lease", "leased_until", "not_before"),
        sent=_unleased,
    ),
    Member(
        name="attempts",
        model=Attempt,
        rows=lambda project: Attempt.objects.filter(call__run__project=project),
        refers={"call": "calls"},
        since={"estimated": 2, "reserved": 2},
        sent=_without_bodies,
    ),
    Member(
        name="verdicts",
        model=Verdict,
        rows=lambda project: Verdict.objects.filter(run__project=project),
        refers={"run": "runs", "item": "items", "criterion": "criteria", "attempt": "attempts"},
    ),
)
