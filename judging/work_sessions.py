"""Work sessions on judge runs (judging/asking/sessions.py): the run as what asks."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from accounts.refusals import Refused
from judging import calls, judges, runs
from judging.asking import leases, sessions
from judging.asking.client import ProviderAnswer, ProviderRefused, ProviderUnavailable
from judging.asking.leases import TakenRequests
from judging.calls import CALLS, CallOutcome
from judging.models import JudgeRun
from judging.requests import CallRequest, CallRequestWriter


class RunAsker(sessions.Asker[CallRequest, CallOutcome]):
    """A judge run, with its prompt and endpoint. Refused if its provider is not declared any more."""

    rows = CALLS

    def __init__(self, run: JudgeRun) -> None:
        self.subject, self.name = run, f"Judge run {run.pk}"
        self.writer = CallRequestWriter(run)
        self.models = [
            sessions.AskedModel(judges.endpoint(run.judge), run.judge.model, judges.pace(run.judge), run.width)
        ]

    def is_running(self) -> bool:
        return JudgeRun.objects.filter(pk=self.subject.pk, state=JudgeRun.State.RUNNING).exists()

    def take(self, *, free: Mapping[sessions.ModelKey, int], lease: UUID) -> TakenRequests[CallRequest]:
        return calls.take_calls(run=self.subject, limit=sum(free.values()), lease=lease, writer=self.writer)

    def read(self, asked: CallRequest, answer: ProviderAnswer, lease: UUID) -> CallOutcome:
        return calls.answered_outcome(asked, lease=lease, variant=self.writer.variant, answer=answer)

    def unread(self, asked: CallRequest, answer: ProviderAnswer, lease: UUID, fault: Exception) -> CallOutcome:
        return calls.unread_outcome(asked, lease=lease, answer=answer, fault=fault)

    def unavailable(self, asked: CallRequest, unavailable: ProviderUnavailable, lease: UUID) -> CallOutcome:
        return calls.unavailable_outcome(asked, unavailable, lease=lease)

    def refused(self, asked: CallRequest, no: ProviderRefused, lease: UUID) -> CallOutcome:
        return calls.refused_outcome(asked, no, lease=lease)

    def unstorable(self, outcome: CallOutcome, fault: Exception) -> CallOutcome:
        return calls.unstorable_outcome(outcome, fault)

    def pause(self, reason: str) -> None:
        runs.pause_run(run=self.subject, reason=reason)

    def save_widths(self, widths: Mapping[sessions.ModelKey, int]) -> None:
        [width] = widths.values()
        JudgeRun.objects.filter(pk=self.subject.pk).update(width=width)


def work_on_run(run_pk: int) -> bool:
    """Work on a run for one session. Returns True if due calls may remain for the next session."""
    run = JudgeRun.objects.select_related("judge", "rubric_version", "project").filter(pk=run_pk).first()
    if run is None or run.by_batch or run.state != JudgeRun.State.RUNNING or sessions.is_stopping():
        return False
    CALLS.release_dead()
    if CALLS.holders(run) >= leases.MOST_HOLDERS:
        return False
    try:
        asker = RunAsker(run)
    except Refused as no:
        runs.pause_run(run=run, reason=no.sentence)
        return False
    return sessions.work_as(asker)
