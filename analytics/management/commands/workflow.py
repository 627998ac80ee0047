"""`panelbench workflow`: the four steps before a judge is used across languages, and an exit status for a pipeline.

Exit status 0: every step passed. 1: a step failed. 2: wrong usage, no thresholds, or ratings that can't be used. 3: no
step failed, but one was not run or has too little to say.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from accounts.refusals import Refused
from analytics import workflow
from analytics.api.workflow import WorkflowSerializer
from analytics.management.commands.gate import UNDECIDED, numbered_campaign
from analytics.questions.asked import question_choices
from analytics.workflow import StepState, WorkflowStep

EXITS = {StepState.PASSED: 0, StepState.FAILED: 1, StepState.NOT_RUN: 3, StepState.INSUFFICIENT: 3}


class Command(BaseCommand):
    help = "Print the four steps before a judge is used across languages. Exit status 1: one failed, 3: one is open."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--campaign", required=True, metavar="CAMPAIGN", help="its number, as in its address")
        parser.add_argument("--judge", default="", metavar="NAME", help="the judge (default: the first by name)")
        parser.add_argument("--language", default="", metavar="TAG", help="the language of step 3 (default: English)")
        parser.add_argument("--json", action="store_true", dest="as_json", help="as the API gives it")

    def handle(self, *, campaign: str, judge: str, language: str, as_json: bool, **_options: object) -> None:
        target = numbered_campaign(campaign)
        choices = question_choices(target)
        for name, text, known in (("judge", judge, choices.judges), ("language", language, choices.languages)):
            if text and text not in known:
                sentence = f"There is no {name} {text} here. There are: {', '.join(known) or 'none'}."
                raise CommandError(sentence, returncode=UNDECIDED)
        try:
            found = workflow.campaign_workflow(target, judge=judge, language=language, now=True, choices=choices)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=UNDECIDED) from None
        if as_json:
            self.stdout.write(json.dumps(WorkflowSerializer(found).data, default=str))
        else:
            head = f"{found.judge or 'no judge'} · {found.language} · thresholds {found.thresholds or 'not declared'}"
            self.stdout.write("\n".join((head, *map(_written, enumerate(found.steps, 1)))))
        if found.thresholds is None:
            raise CommandError("No thresholds are declared. A lead declares them first.", returncode=UNDECIDED)
        if status := EXITS[found.state]:
            raise SystemExit(status)


def _written(numbered: tuple[int, WorkflowStep]) -> str:
    number, step = numbered
    lines = [f"{number}. {step.state.value.upper():<12} {step.title}", f"    {step.sentence}"]
    lines += [f"    It passes with: {step.threshold}"] if step.threshold else []
    for each in step.shown:
        words = " · ".join(filter(None, (each.name, each.languages, each.number, each.words, each.below)))
        lines.append(f"    {each.state.value:<12} {words}")
    return "\n".join(lines)
