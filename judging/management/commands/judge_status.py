"""`panelbench judge_status RUN`: how far a run is. Exit status 1 when it is paused, cancelled or has failed calls."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from judging import runs
from judging.models import JudgeRun
from judging.runs import Phase


class Command(BaseCommand):
    help = "Show the progress of a judge run."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, metavar="RUN", help="the run's number, as in its address")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, run: int, as_json: bool, **options: Any) -> None:
        judge_run = JudgeRun.objects.select_related("judge", "dataset", "rubric_version__rubric").filter(pk=run).first()
        if judge_run is None:
            raise CommandError(f"There is no run {run}.", returncode=2)
        progress = runs.run_progress(judge_run)
        phase = runs.phase(judge_run, finished=progress.finished)
        status = {"run": judge_run.pk, "phase": phase.value, "reason": judge_run.reason, **asdict(progress)}
        self.stdout.write(json.dumps(status, default=str) if as_json else _written(judge_run, phase, progress))
        if phase in (Phase.PAUSED, Phase.CANCELLED) or progress.failed:
            raise SystemExit(1)


def _written(run: JudgeRun, phase: Phase, progress: runs.RunProgress) -> str:
    rows = {
        "run": f"{run.pk}: {run.judge} on {run.dataset} by {run.rubric_version}",
        "state": f"{phase.label} {run.reason}".strip(),
        "calls": f"{progress.done} of {progress.planned}, {progress.in_flight} in flight, {progress.failed} failed, "
        f"{progress.reused} by replies of earlier runs",
        "verdicts": ", ".join(f"{count} {status}" for status, count in sorted(progress.verdicts.items())) or "none",
        "tokens": f"{progress.tokens_in} in, {progress.tokens_out} out",
        "cost": "not known" if progress.cost is None else f"${progress.cost:.4f}",
    }
    return "\n".join(f"{name:<9} {text}" for name, text in rows.items())
