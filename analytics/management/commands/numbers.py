"""`panelbench numbers`: the estimates of a question, as the page, the API and `panelbench stats` give them."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.refusals import Refused
from analytics import answer_pages
from analytics.exporting import exports
from analytics.management.commands.export import REFUSED, USAGE, project_at
from analytics.questions.asked import asked_question
from analytics.questions.parameters import PARAMETERS


class Command(BaseCommand):
    help = "Print estimates of a campaign's ratings by any two columns. Options for names may be repeated."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="PROJECT", help="its address, as in /p/ADDRESS/")
        parser.add_argument("--campaign", default="", metavar="NAME", help="by name; not needed for the only one")
        parser.add_argument("--format", default="table", choices=("table", "json", "csv"), help="default: table")
        for name, parameter in PARAMETERS.items():
            option, meaning = f"--{name.replace('_', '-')}", parameter.meaning.replace("`", "")
            if parameter.switch:
                parser.add_argument(option, action="store_const", const=parameter.switch, help=meaning)
            elif parameter.is_list:
                parser.add_argument(option, action="append", default=[], metavar=name.upper(), help=meaning)
            else:
                parser.add_argument(option, metavar=name.upper(), help=meaning)

    def handle(self, *, project: str, campaign: str, **asked: Any) -> None:
        pairs = [(name, text) for name in PARAMETERS for text in _listed(asked[name])]
        try:
            target = exports.chosen_subject(project=project_at(project), subject="campaign", name=campaign)
            question = asked_question(target, pairs)
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
