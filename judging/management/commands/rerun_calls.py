"""`panelbench rerun_calls RUN --status refused`: repeat calls of a run, by workers or in this very process.

Exit status: 0 queued, or with --here finished; 1 ended paused, cancelled or with failed calls; 2 nothing to repeat.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from accounts.refusals import Refused
from judging import runs, tasks
from judging.management.commands.run_judge import USAGE
from judging.management.commands.run_judge import Command as RunJudge
from judging.models import JudgeRun


class Command(RunJudge):
    help = "Repeat, and pay again, the calls of a judge run that failed or whose verdicts have a status."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, metavar="RUN", help="the run's number, as in its address")
        reasons = f"why a call is repeated, one or several times: {', '.join(runs.RERUN)} (failed)"
        parser.add_argument("--status", action="append", choices=runs.RERUN, metavar="STATUS", help=reasons)
        parser.add_argument("--here", action="store_true", help="do the work in this process, without a queue")

    def handle(self, **options: Any) -> None:
        judge_run = JudgeRun.objects.select_related("judge", "project").filter(pk=options["run"]).first()
        if judge_run is None:
            raise CommandError(f"There is no run {options['run']}.", returncode=USAGE)
        try:
            count = runs.rerun_failed(run=judge_run, statuses=options["status"] or runs.RERUN[:1])
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        self.stdout.write(f"Run {judge_run.pk}: {count} calls will be repeated")
        if not options["here"]:
            tasks.enqueue_run(judge_run.pk)
            return
        self.work_here(judge_run)
        self.conclude(judge_run)
