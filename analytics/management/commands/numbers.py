"""`panelbench numbers`: the estimates of a question, as the page, the API and `panelbench stats` give them."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.refusals import Refused
from analytics import answer_pages, questions
from analytics.exporting import exports
from analytics.management.commands.export import REFUSED, USAGE, project_at
from analytics.questions import LISTS, PARAMETERS, SWITCHES

HELP = {
    "rows": "criterion, language, generator, judge, panel or an attribute of the items (default: criterion)",
    "columns": "the same; none with an empty text (default: language)",
    "where": "only items and criteria with this value: --where language=et",
    "statistic": "krippendorff_alpha, mae, consistency.mean ... (default: krippendorff_alpha)",
    "variant": "only this variant of a statistic",
    "judge": "only this judge (default: all)",
    "run": "the number of a judge run, or each (default: one run of each judge)",
    "designs": "also judges that are only cells of designs (default: only where they are named)",
    "pairs": "all: list the pairs of more than 24 raters, too (default: their means alone)",
    "raters": "only this annotator (default: all)",
    "panel": "only this panel (default: all)",
    "jury": "judges as one more rater: A,B,C; a name that holds a comma in double quotes",
    "cluster": "item: items of one scenario are taken for independent (default: they are not)",
    "measure": "a numeric attribute of the items, or text.words, text.mattr ...: set beside scores, and ranked",
    "goal": "half_width=0.25, reliability=0.8, epsilon=0.15, budget=500, price.et=1.5 or split=minimax, for plan.*",
    "jury_rule": "majority, median, mean or minimum (default: majority; a tie gives no score)",
    "against": "the judge that the others are compared with, for comparison.*_difference",
    "reference": "mode, mode_split, median, mean, minimum, each, dawid_skene, adjudicated or adjudicated_first",
    "ties": "what the mode does with a tie: exclude, lower, upper or median (default: exclude)",
    "pool": "pool the criteria",
    "blind": "leave out ratings by people who could see verdicts",
    "exclude": "leave out: speed, rationale, critical or single (docs/methods/agreement.md)",
    "min_seconds": "leave out ratings of items that took less time",
    "level": "nominal, ordinal or interval, whatever the criteria declare",
    "confidence": "of the intervals (default: 0.95)",
    "bootstrap": "resamples (default: 2000)",
    "seed": "of the random numbers",
}


class Command(BaseCommand):
    help = "Print estimates of a campaign's ratings by any two columns. Options for names may be repeated."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="PROJECT", help="its address, as in /p/ADDRESS/")
        parser.add_argument("--campaign", default="", metavar="NAME", help="by name; not needed for the only one")
        parser.add_argument("--format", default="table", choices=("table", "json", "csv"), help="default: table")
        for name in PARAMETERS:
            option = f"--{name.replace('_', '-')}"
            if name in SWITCHES:
                parser.add_argument(option, action="store_const", const=SWITCHES[name], help=HELP[name])
            elif name in LISTS:
                parser.add_argument(option, action="append", default=[], metavar=name.upper(), help=HELP[name])
            else:
                parser.add_argument(option, metavar=name.upper(), help=HELP[name])

    def handle(self, *, project: str, campaign: str, **asked: Any) -> None:
        pairs = [(name, text) for name in PARAMETERS for text in _listed(asked[name])]
        try:
            target = exports.chosen_subject(project=project_at(project), subject="campaign", name=campaign)
            question = questions.asked_question(target, pairs)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        try:
            snapshot = answer_pages.answer_now(target, question)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=REFUSED) from None
        from analytics.stats.cli.files import rendered_rows

        provenance = {name: str(getattr(snapshot, name)) for name in answer_pages.MADE}
        more = {"query": snapshot.content["query"], "question": snapshot.content["question"], "provenance": provenance}
        sys.stdout.write(rendered_rows(snapshot.content["estimates"], asked["format"], more))
        for note in snapshot.content["notes"]:
            self.stderr.write(f"note: {note}")


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [] if value is None else [str(value)]
