"""`panelbench perturb`: audit a judge with changed texts. Its figures: `panelbench numbers --statistic perturbation.*`.

Exit status as of `run_judge`: 0 started, or with --wait and --here finished; 1 ended otherwise; 2 usage error.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from accounts.refusals import Refused
from judging import perturbed_runs
from judging.management.commands import run_judge
from judging.management.commands.run_judge import chosen_dataset, chosen_rubric, named_judge, named_project
from judging.perturbation import USUAL


class Command(run_judge.Command):
    help = "Ask a judge about some items as they are and changed; figures of the changes are those of perturbation.*"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="P", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--judge", required=True, metavar="NAME", help="the name of a judge")
        parser.add_argument("--dataset", required=True, metavar="D", help='a name (its newest version) or "name v2"')
        parser.add_argument("--rubric", required=True, metavar="R", help='a key (its newest version) or "key v2"')
        known = f"repeatable: {', '.join(USUAL)}; other shares, in percent, too (default: {USUAL[0]} and whitespace)"
        parser.add_argument("--change", action="append", dest="changes", metavar="CHANGE", help=known)
        most = f"items of each language, 1 to {perturbed_runs.MOST_PER_LANGUAGE} ({perturbed_runs.PER_LANGUAGE})"
        parser.add_argument("--per-language", type=int, default=perturbed_runs.PER_LANGUAGE, metavar="N", help=most)
        parser.add_argument(
            "--seed", type=int, default=0, metavar="N", help="of the drawn items and of their changes (0)"
        )
        parser.add_argument(
            "--budget", type=run_judge.money, metavar="USD", help="pause before more than this is spent"
        )
        parser.add_argument("--forecast", action="store_true", help="only say what it takes")
        run_judge.add_waiting(parser)

    def handle(self, **options: Any) -> None:
        try:
            project = named_project(options["project"])
            chosen: dict[str, Any] = {
                "judge": named_judge(project, options["judge"]),
                "dataset": chosen_dataset(project, options["dataset"]),
                "rubric_version": chosen_rubric(project, options["rubric"]),
                "changes": options["changes"] or [USUAL[0], "whitespace"],
                "per_language": options["per_language"],
            }
            perturbed_runs.refuse_unfit_audit(budget=options["budget"], **chosen)
            forecast = perturbed_runs.forecast_audit(seed=options["seed"], **chosen)
            self._tell(forecast)
            if options["forecast"]:
                return
            run = perturbed_runs.start_perturbed_run(seed=options["seed"], budget=options["budget"], **chosen)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=run_judge.USAGE) from None
        self.stdout.write(f"Run {run.pk}: audit of {run.judge.name} on {run.dataset}")
        self.carry_out(run, options)

    def _tell(self, forecast: perturbed_runs.PerturbationForecast) -> None:
        cost = f", about ${forecast.cost:.4f}" if forecast.cost is not None else ""
        self.stdout.write(f"{forecast.items} items, {forecast.calls} calls, {forecast.answered} answered already{cost}")
        for change, items in forecast.perturbed.items():
            self.stdout.write(f"  {change}: changes {items} of {forecast.items} items")
